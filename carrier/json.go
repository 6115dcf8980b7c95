package carrier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrNotObject is returned for a payload that is not one JSON object: there is no
// place for a field in it.
var ErrNotObject = errors.New("carrier: the payload is not a JSON object")

// InjectJSON returns the JSON object payload with the token of ctx in its field
// consistency_token, which it replaces if it is there. The rest stays as it is, byte
// for byte, and all of it if ctx has neither session nor collector. The error wraps
// ErrNotObject.
func InjectJSON(ctx context.Context, payload []byte) ([]byte, error) {
	return std.InjectJSON(ctx, payload)
}

// ExtractJSON returns a context whose session begins with the token in the field
// consistency_token of payload. The error wraps ErrNotObject, ErrMissing or
// token.ErrInvalid.
func ExtractJSON(ctx context.Context, payload []byte) (context.Context, error) {
	return std.ExtractJSON(ctx, payload)
}

// InjectJSON is the function InjectJSON by the settings of c.
func (c *Carrier) InjectJSON(ctx context.Context, payload []byte) ([]byte, error) {
	o, err := readObject(payload)
	if err != nil {
		return nil, err
	}
	tok, ok := c.text(ctx)
	if !ok {
		return payload, nil
	}
	text, err := json.Marshal(tok)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	switch {
	case o.found:
		out.Write(payload[:o.value])
		out.Write(text)
		out.Write(payload[o.valueEnd:])
		return out.Bytes(), nil
	case o.fields > 0:
		text = append([]byte(`,"`+Field+`":`), text...)
	default:
		text = append([]byte(`"`+Field+`":`), text...)
	}
	out.Write(payload[:o.end])
	out.Write(text)
	out.Write(payload[o.end:])
	return out.Bytes(), nil
}

// ExtractJSON is the function ExtractJSON by the settings of c.
func (c *Carrier) ExtractJSON(ctx context.Context, payload []byte) (context.Context, error) {
	o, err := readObject(payload)
	if err != nil {
		return nil, err
	}
	var text *string
	if o.found {
		if err := json.Unmarshal(payload[o.value:o.valueEnd], &text); err != nil {
			c.invalid.Add(1)
			return nil, notText()
		}
	}
	if text == nil { // or null
		return c.resume(ctx, "", false)
	}
	return c.resume(ctx, *text, true)
}

// object is where things are in a payload.
type object struct {
	fields          int
	found           bool
	value, valueEnd int // of Field
	end             int // of the closing brace
}

// readObject reads a payload without keeping anything of it. A field that is there
// twice is an error: others might take the other one.
func readObject(payload []byte) (o object, err error) {
	if !json.Valid(payload) {
		return o, fmt.Errorf("%w: not JSON at all", ErrNotObject)
	}
	d := json.NewDecoder(bytes.NewReader(payload))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return o, fmt.Errorf("%w: it begins with another value", ErrNotObject)
	}
	for ; d.More(); o.fields++ {
		name, err := d.Token()
		if err != nil {
			return o, fmt.Errorf("%w: %w", ErrNotObject, err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return o, fmt.Errorf("%w: %w", ErrNotObject, err)
		}
		if name != Field {
			continue
		}
		if o.found {
			return o, fmt.Errorf("%w: it has two fields %s", ErrNotObject, Field)
		}
		o.found, o.valueEnd = true, int(d.InputOffset())
		o.value = o.valueEnd - len(value)
	}
	o.end = bytes.LastIndexByte(payload, '}')
	return o, nil
}

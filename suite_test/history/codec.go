package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// maxLine bounds one line of the text form, in bytes.
const maxLine = 1 << 20

// ErrFormat is wrapped by every error of [Decode] that the text itself caused.
var ErrFormat = errors.New("history: malformed line")

// promotionLine and initialLine are the lines that are not operations.
type promotionLine struct {
	Kind Kind `json:"kind"`
	Promotion
}

type initialLine struct {
	Kind    Kind   `json:"kind"`
	Key     string `json:"key"`
	Version int64  `json:"version"`
}

// Encode writes h as JSON lines, one record a line, so that the files of
// several processes can be concatenated.
func Encode(w io.Writer, h History) error {
	buffered := bufio.NewWriter(w)
	enc := json.NewEncoder(buffered)
	for _, key := range slices.Sorted(maps.Keys(h.Initial)) {
		if err := enc.Encode(initialLine{kindInitial, key, h.Initial[key]}); err != nil {
			return fmt.Errorf("history: encoding the initial version of %q: %w", key, err)
		}
	}
	for i := range h.Promotions {
		if err := enc.Encode(promotionLine{kindPromotion, h.Promotions[i]}); err != nil {
			return fmt.Errorf("history: encoding promotion %d: %w", i, err)
		}
	}
	for i := range h.Ops {
		if err := enc.Encode(&h.Ops[i]); err != nil {
			return fmt.Errorf("history: encoding %s: %w", h.Ops[i].Mark(), err)
		}
	}
	if err := buffered.Flush(); err != nil {
		return fmt.Errorf("history: writing: %w", err)
	}
	return nil
}

// Decode reads JSON lines. It is strict: an unknown field, a field of another
// kind of record, anything after the record and a line above 1 MiB are errors
// that name the line and wrap [ErrFormat]. Empty lines are skipped.
func Decode(r io.Reader) (History, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	d := decoder{interned: make(map[string]string)}
	number := 1
	for ; lines.Scan(); number++ {
		if err := d.line(bytes.TrimSpace(lines.Bytes())); err != nil {
			return History{}, fmt.Errorf("%w %d: %w", ErrFormat, number, err)
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return History{}, fmt.Errorf("%w %d: %w", ErrFormat, number, err)
	} else if err != nil {
		return History{}, fmt.Errorf("history: reading line %d: %w", number, err)
	}
	return d.history, nil
}

// decoder collects the records of one text. Names repeat on every line, so
// each is kept once.
type decoder struct {
	history  History
	interned map[string]string
}

func (d *decoder) line(text []byte) error {
	if len(text) == 0 {
		return nil
	}
	switch kind, err := kindOf(text); {
	case err != nil:
		return err
	case kind == kindInitial:
		return d.initial(text)
	case kind == kindPromotion:
		return d.promotion(text)
	}
	return d.op(text)
}

// kindOf finds out which record a line holds. Operations as Encode writes them
// are the common case and are not parsed twice.
func kindOf(text []byte) (Kind, error) {
	for kind := Write; kind <= Receive; kind++ {
		if bytes.HasPrefix(text, []byte(`{"kind":"`+kind.String()+`"`)) {
			return kind, nil
		}
	}
	var head struct{ Kind Kind }
	err := json.Unmarshal(text, &head)
	return head.Kind, err
}

func (d *decoder) initial(text []byte) error {
	var line initialLine
	if err := strict(text, &line); err != nil {
		return err
	}
	return d.history.declare(line.Key, line.Version)
}

func (d *decoder) promotion(text []byte) error {
	var line promotionLine
	if err := strict(text, &line); err != nil {
		return err
	}
	d.history.Promotions = append(d.history.Promotions, line.Promotion)
	return nil
}

func (d *decoder) op(text []byte) error {
	var op Op
	if err := strict(text, &op); err != nil {
		return err
	}
	if op.Kind < Write || op.Kind > Receive {
		return fmt.Errorf("kind %q, want an operation", op.Kind)
	}
	for _, name := range []*string{&op.Process, &op.Session, &op.Clock, &op.Key, &op.Node, &op.From.Session} {
		*name = d.intern(*name)
	}
	d.history.Ops = append(d.history.Ops, op)
	return nil
}

func (d *decoder) intern(name string) string {
	if kept, ok := d.interned[name]; ok {
		return kept
	}
	d.interned[name] = name
	return name
}

// strict decodes one JSON value and nothing beside it.
func strict(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if dec.InputOffset() != int64(len(text)) {
		return errors.New("something follows the record")
	}
	return nil
}

package carrier

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

var here = token.Key{System: 11}

func wrote(lsn uint64) token.Token {
	return token.FromEntries(token.Entry{Key: here, Write: token.Position{Timeline: 1, LSN: token.LSN(lsn)}})
}

// sender is a context whose session has written.
func sender() context.Context {
	return session.NewContext(context.Background(), session.New(wrote(77)))
}

func signer(t *testing.T, id string) *token.Signer {
	t.Helper()
	s, err := token.NewSigner(token.Secret{ID: id, Key: bytes.Repeat([]byte(id), 20)})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// plain is headers that cannot tell an empty one from none.
type plain map[string]string

func (p plain) Get(key string) string { return p[key] }
func (p plain) Set(key, value string) { p[key] = value }

// message is one form of a message: sent with the token of a context, and received
// with or without it, or with another text in its place.
type message struct {
	send    func(c *Carrier, ctx context.Context) (text string)
	receive func(c *Carrier, ctx context.Context, text string) (context.Context, error)
	without func(c *Carrier, ctx context.Context) (context.Context, error)
}

var forms = map[string]message{
	"JSON": {
		func(c *Carrier, ctx context.Context) string {
			payload, err := c.InjectJSON(ctx, []byte(`{"order": 7}`))
			var m map[string]any
			if err = errors.Join(err, json.Unmarshal(payload, &m)); err != nil {
				return err.Error()
			}
			return m[Field].(string)
		},
		func(c *Carrier, ctx context.Context, text string) (context.Context, error) {
			payload, _ := json.Marshal(map[string]any{"order": 7, Field: text})
			return c.ExtractJSON(ctx, payload)
		},
		func(c *Carrier, ctx context.Context) (context.Context, error) {
			return c.ExtractJSON(ctx, []byte(`{}`))
		},
	},
	"JSON null": {
		func(c *Carrier, ctx context.Context) string {
			text, _ := c.text(ctx)
			return text
		},
		func(c *Carrier, ctx context.Context, text string) (context.Context, error) {
			return c.ExtractJSON(ctx, []byte(`{"consistency_token":"`+text+`"}`))
		},
		func(c *Carrier, ctx context.Context) (context.Context, error) {
			return c.ExtractJSON(ctx, []byte(`{"consistency_token":null}`))
		},
	},
	"headers": {
		func(c *Carrier, ctx context.Context) string {
			h := http.Header{}
			c.InjectHeaders(ctx, h)
			return h.Get(Header)
		},
		func(c *Carrier, ctx context.Context, text string) (context.Context, error) {
			return c.ExtractHeaders(ctx, http.Header{Header: {text}})
		},
		func(c *Carrier, ctx context.Context) (context.Context, error) {
			return c.ExtractHeaders(ctx, http.Header{})
		},
	},
	"map": {
		func(c *Carrier, ctx context.Context) string {
			m := map[string]any{Field: "old"}
			c.InjectMap(ctx, m)
			return m[Field].(string)
		},
		func(c *Carrier, ctx context.Context, text string) (context.Context, error) {
			return c.ExtractMap(ctx, map[string]any{Field: text})
		},
		func(c *Carrier, ctx context.Context) (context.Context, error) { return c.ExtractMap(ctx, nil) },
	},
	"map of bytes": {
		func(c *Carrier, ctx context.Context) string {
			text, _ := c.text(ctx)
			return text
		},
		func(c *Carrier, ctx context.Context, text string) (context.Context, error) {
			return c.ExtractMap(ctx, map[string]any{Field: []byte(text)})
		},
		func(c *Carrier, ctx context.Context) (context.Context, error) {
			return c.ExtractMap(ctx, map[string]any{Field: nil})
		},
	},
}

func sessionOf(t *testing.T, ctx context.Context, err error) *session.Session {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	s, ok := session.FromContext(ctx)
	if !ok {
		t.Fatal("no session")
	}
	return s
}

func TestATokenTravelsInAMessage(t *testing.T) {
	for name, f := range forms {
		for with, s := range map[string]*token.Signer{"unsigned": nil, "signed": signer(t, "k1")} {
			t.Run(name+" "+with, func(t *testing.T) {
				c := &Carrier{Signer: s, Missing: MissingRefused}
				ctx, err := f.receive(c, context.Background(), f.send(c, sender()))
				if have := sessionOf(t, ctx, err).Token(); !have.Equal(wrote(77)) {
					t.Errorf("have %s", have)
				}
				// Somebody who has written nothing is not somebody who dropped it.
				from := session.NewContext(context.Background(), session.New())
				ctx, err = f.receive(c, context.Background(), f.send(c, from))
				if have := sessionOf(t, ctx, err).Token(); !have.IsZero() {
					t.Errorf("have %s, want nothing", have)
				}
				if missing, invalid := c.Counts(); missing+invalid != 0 {
					t.Errorf("have %d, %d counted", missing, invalid)
				}
			})
		}
	}
}

func TestMessagesWithoutAToken(t *testing.T) {
	for name, f := range forms {
		for missing, marked := range map[Missing]bool{MissingStrong: true, MissingStale: false} {
			c := &Carrier{Missing: missing}
			ctx, err := f.without(c, sender())
			var n session.Need
			sessionOf(t, ctx, err).Need(&n, here, time.Now())
			if n.Marked != marked || n.Aged || !n.Position.IsZero() {
				t.Errorf("%s, %d: have marked %t, aged %t, position %s", name, missing, n.Marked, n.Aged, n.Position)
			}
			if have, _ := c.Counts(); have != 1 {
				t.Errorf("%s: have %d counted", name, have)
			}
		}
		c := &Carrier{Missing: MissingRefused}
		if ctx, err := f.without(c, sender()); !errors.Is(err, ErrMissing) || ctx != nil {
			t.Errorf("%s: have %v", name, err)
		}
		if have, _ := c.Counts(); have != 1 {
			t.Errorf("%s: have %d counted", name, have)
		}
	}
}

func TestMessagesWithABadToken(t *testing.T) {
	for name, f := range forms {
		for _, missing := range []Missing{MissingStrong, MissingStale, MissingRefused} {
			c := &Carrier{Missing: missing}
			if _, err := f.receive(c, context.Background(), "garbage"); !errors.Is(err, token.ErrInvalid) {
				t.Errorf("%s: have %v", name, err)
			}
			if _, err := f.receive(c, context.Background(), strings.Repeat("A", 1<<20)); !errors.Is(err, token.ErrInvalid) || len(err.Error()) > 200 {
				t.Errorf("%s: have %v", name, err)
			}
			if missing, invalid := c.Counts(); missing != 0 || invalid != 2 {
				t.Errorf("%s: have %d, %d counted", name, missing, invalid)
			}
		}
		c := &Carrier{Signer: signer(t, "k1")}
		for _, forged := range []string{wrote(77).String(), signer(t, "k2").Sign(wrote(77)), "0/77"} {
			if _, err := f.receive(c, context.Background(), forged); !errors.Is(err, token.ErrSignature) {
				t.Errorf("%s: have %v", name, err)
			}
		}
	}
}

func TestWhatIsNoText(t *testing.T) {
	var c Carrier
	for _, v := range []any{7, true, []string{"0/1"}, map[string]any{}} {
		if _, err := c.ExtractMap(context.Background(), map[string]any{Field: v}); !errors.Is(err, token.ErrInvalid) {
			t.Errorf("map %v: have %v", v, err)
		}
		payload, _ := json.Marshal(map[string]any{Field: v})
		if _, err := c.ExtractJSON(context.Background(), payload); !errors.Is(err, token.ErrInvalid) {
			t.Errorf("%s: have %v", payload, err)
		}
	}
	if _, invalid := c.Counts(); invalid != 8 {
		t.Errorf("have %d counted", invalid)
	}
}

// Headers that cannot tell an empty one from none: missing is the safe side.
func TestHeadersWithoutValues(t *testing.T) {
	h := plain{}
	InjectHeaders(sender(), h)
	ctx, err := ExtractHeaders(context.Background(), h)
	if have := sessionOf(t, ctx, err).Token(); !have.Equal(wrote(77)) {
		t.Errorf("have %s", have)
	}
	InjectHeaders(session.NewContext(context.Background(), session.New()), h)
	if _, err := (&Carrier{Missing: MissingRefused}).ExtractHeaders(context.Background(), h); !errors.Is(err, ErrMissing) {
		t.Errorf("have %v", err)
	}
}

// The rest of a payload is somebody else's.
func TestJSONKeepsThePayload(t *testing.T) {
	const tok = `"consistency_token":"r1.AQUAAAAAAAAACwEAAAAAAABN"`
	text := wrote(77).String()
	if tok != `"consistency_token":"`+text+`"` {
		t.Fatalf("have %s", text)
	}
	for payload, want := range map[string]string{
		`{}`:                                `{` + tok + `}`,
		" {\n} \n":                          " {\n" + tok + "} \n",
		`{"a" : 1.50,"b":[{"x":"}"}]}`:      `{"a" : 1.50,"b":[{"x":"}"}],` + tok + `}`,
		`{"id":12345678901234567890,"a":0}`: `{"id":12345678901234567890,"a":0,` + tok + `}`,
		`{"consistency_token":"old","a":1}`: `{` + tok + `,"a":1}`,
		`{"a":1, "consistency_token" :` + "\t" + `{"x":[1]} }`: `{"a":1, "consistency_token" :` + "\t\"" + text + `" }`,
		`{"a":{"consistency_token":"inner"}}`:                  `{"a":{"consistency_token":"inner"},` + tok + `}`,
		`{"Consistency_Token":1}`:                              `{"Consistency_Token":1,` + tok + `}`,
	} {
		have, err := InjectJSON(sender(), []byte(payload))
		if err != nil || string(have) != want {
			t.Errorf("%s\nhave %s, %v\nwant %s", payload, have, err, want)
			continue
		}
		ctx, err := ExtractJSON(context.Background(), have)
		if got := sessionOf(t, ctx, err).Token(); !got.Equal(wrote(77)) {
			t.Errorf("%s: extracted %s", have, got)
		}
	}
}

func TestPayloadsThatAreNoObject(t *testing.T) {
	for _, payload := range []string{
		"", "null", "7", `"x"`, `[{"consistency_token":"0/1"}]`, `{"a":1`, `{} {}`, `{"a":1}x`, "\xff",
		`{"consistency_token":"0/1","consistency_token":"0/2"}`,
		strings.Repeat(`{"a":`, 20000) + "1" + strings.Repeat("}", 20000),
	} {
		if _, err := InjectJSON(sender(), []byte(payload)); !errors.Is(err, ErrNotObject) {
			t.Errorf("%.40s: have %v", payload, err)
		}
		if _, err := ExtractJSON(sender(), []byte(payload)); !errors.Is(err, ErrNotObject) {
			t.Errorf("%.40s: have %v", payload, err)
		}
	}
}

func TestTokenOfAContext(t *testing.T) {
	if have := Token(context.Background()); !have.IsZero() {
		t.Errorf("have %s", have)
	}
	var sink token.Token
	ctx := session.Collect(sender(), &sink)
	if have := Token(ctx); !have.Equal(wrote(77)) {
		t.Errorf("have %s", have)
	}
	sink = wrote(99)
	if have := Token(session.Collect(sender(), &sink)); !have.Equal(wrote(99)) {
		t.Errorf("with a collector: have %s", have)
	}
}

// One message's worker does not hold up the next one's.
func TestEachMessageHasASessionOfItsOwn(t *testing.T) {
	worker := session.NewContext(context.Background(), session.New(wrote(999)))
	ctx, err := ExtractMap(worker, map[string]any{Field: wrote(7).String()})
	s := sessionOf(t, ctx, err)
	if !s.Token().Equal(wrote(7)) {
		t.Errorf("have %s", s.Token())
	}
	s.MarkWrote(here)
	if old, _ := session.FromContext(worker); !old.Token().Equal(wrote(999)) {
		t.Errorf("the worker's has become %s", old.Token())
	}
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, `{"consistency_token":"0/1","b":[]}`, `[]`, ` {"a" : {} } `, `{"\u0063onsistency_token":"0/1"}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		before := bytes.Clone(payload)
		out, err := InjectJSON(sender(), payload)
		if !bytes.Equal(before, payload) {
			t.Fatal("the payload was changed in its place")
		}
		if err != nil {
			if !errors.Is(err, ErrNotObject) {
				t.Fatal(err)
			}
			return
		}
		ctx, err := ExtractJSON(context.Background(), out)
		if have := sessionOf(t, ctx, err).Token(); !have.Equal(wrote(77)) {
			t.Fatalf("%q: have %s", out, have)
		}
		var was, is map[string]json.RawMessage
		if err := errors.Join(json.Unmarshal(payload, &was), json.Unmarshal(out, &is)); err != nil {
			t.Fatal(err)
		}
		delete(was, Field)
		delete(is, Field)
		if len(was) != len(is) {
			t.Fatalf("%q has become %q", payload, out)
		}
		for k := range was {
			if !bytes.Equal(was[k], is[k]) {
				t.Fatalf("%q: %q has become %q", k, was[k], is[k])
			}
		}
	})
}

// A hop that has lost its session does not pass for one that has nothing to see.
func TestWhoHasNoSessionSendsNothing(t *testing.T) {
	ctx := context.Background()
	payload, err := InjectJSON(ctx, []byte(`{"id":1}`))
	if err != nil || string(payload) != `{"id":1}` {
		t.Errorf("JSON: have %s, %v", payload, err)
	}
	h, m := http.Header{}, map[string]any{}
	if InjectHeaders(ctx, h); len(h) != 0 {
		t.Errorf("headers: have %v", h)
	}
	if InjectMap(ctx, m); len(m) != 0 {
		t.Errorf("map: have %v", m)
	}
	if _, err := (&Carrier{Missing: MissingRefused}).ExtractJSON(ctx, payload); !errors.Is(err, ErrMissing) {
		t.Errorf("have %v, want ErrMissing", err)
	}
}

package token

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func roundTrip(t *testing.T, tok Token) {
	t.Helper()
	got, err := Parse(tok.String())
	if err != nil {
		t.Fatalf("%v: %s", err, describe(tok))
	}
	wantEqual(t, got, tok)
	if got.String() != tok.String() {
		t.Errorf("again %s", got)
	}
}

func TestTextRoundTrip(t *testing.T) {
	properties(t, func(t *testing.T, g generator) {
		tok := g.token()
		if tok.IsZero() {
			return
		}
		roundTrip(t, tok)
		if text := tok.String(); strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
			t.Errorf("unsafe text %s", text)
		}
	})
}

// The text form is stored by others: a change here is a new version.
func TestTextIsFixed(t *testing.T) {
	for name, c := range map[string]struct {
		tok  Token
		want string
	}{
		"empty": {Token{}, ""},
		"bare":  {FromLSN(0x3000060), "01" + "04" + "00" + "00000003000060"},
		"usual": {
			FromEntries(Entry{
				Key: Key{System: 0x6001020304050607}, Write: at(3, 0xA2C_FE118820), Floor: at(3, 0xA2C_FE118860),
				Minted: time.UnixMilli(0x19_8765_4321),
			}),
			"01" + "2d" + "6001020304050607" + "03" + "000a2cfe118820" + "8001" + "a18695bb9803",
		},
		"marks": {
			FromEntries(Entry{Wrote: true, SeenNodes: []Incarnation{2, 1 << 63}}),
			"01" + "c002" + "02" + "0000000000000002" + "8000000000000000",
		},
		"after a promotion": {
			FromEntries(Entry{Key: Key{Name: 9}, Write: at(200, 1), Former: at(5, 7), Floor: at(201, 2)}),
			"01" + "9604" + "0000000000000009" + "c801" + "00000000000001" + "05" + "00000000000007" + "c901" + "00000000000002",
		},
		"resolved": {resolved(system), "02" + "40" + "8508" + "0000000000000007" + "01" + "0000000000000a"},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.tok.String()
			raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(text, "r1."))
			if err != nil || !strings.HasPrefix(text, "r1.") && text != "" {
				t.Fatalf("text %q: %v", text, err)
			}
			if got := hexOf(raw); got != c.want {
				t.Errorf("have %s\nwant %s", got, c.want)
			}
		})
	}
}

func hexOf(raw []byte) string {
	var b strings.Builder
	for _, c := range raw {
		b.WriteString(strings.ToLower(string("0123456789ABCDEF"[c>>4])))
		b.WriteString(strings.ToLower(string("0123456789ABCDEF"[c&15])))
	}
	return b.String()
}

func TestTextLength(t *testing.T) {
	usual := Entry{
		Key: Key{System: 7421938451230987654}, Write: at(3, 0xA2C_FE118820), Floor: at(3, 0xA2C_FE218860),
		Minted: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC),
	}
	named := usual
	named.Key.Name = NameHash("orders")
	if n, m := len(FromEntries(usual).String()), len(FromEntries(named).String()); n > 45 || m > 60 {
		t.Errorf("one cluster: %d bytes, with a name %d", n, m)
	}
	// A signature adds ".<key id>.<43 characters of MAC>".
	const signature = 1 + 16 + 1 + 43
	for n := 1; n <= 20; n++ {
		tok := widest(n)
		roundTrip(t, tok)
		if have := len(tok.String()) + signature; have > MaxText {
			t.Errorf("%d entries: %d bytes with a signature, want at most %d", n, have, MaxText)
		}
		if have := len(tok.appendPayload(nil)); have > maxPayload {
			t.Errorf("%d entries: payload of %d bytes, want at most %d", n, have, maxPayload)
		}
	}
	if have := len(widest(roomy).appendPayload(nil)); have != maxPayload {
		t.Errorf("longest payload is %d bytes, not %d", have, maxPayload)
	}
}

// widest returns a token of n entries with the longest text that there is.
func widest(n int) Token {
	list := make([]Entry, n)
	for i := range list {
		e := &list[i]
		e.Key = Key{System: math.MaxUint64 - uint64(i), Name: math.MaxUint64}
		e.Write, e.Floor, e.Former = at(maxTimeline-1, maxLSN), at(maxTimeline, maxLSN), at(maxTimeline-2, maxLSN)
		e.Minted, e.Wrote = time.UnixMilli(maxMinted), true
		for j := range MaxSeenNodes {
			e.SeenNodes = append(e.SeenNodes, Incarnation(math.MaxUint64-uint64(j)))
		}
	}
	return FromEntries(list...)
}

func TestTextMarshaling(t *testing.T) {
	type claims struct {
		Token Token  `json:"ryw"`
		None  *Token `json:"none,omitempty"`
	}
	in := claims{Token: resolved(full)}
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out claims
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	wantEqual(t, out.Token, in.Token)
	if raw, err = json.Marshal(claims{}); err != nil || string(raw) != `{"ryw":""}` {
		t.Fatalf("empty: %s, %v", raw, err)
	}
	if err := json.Unmarshal(raw, &out); err != nil || !out.Token.IsZero() {
		t.Errorf("empty text: %v, %s", err, describe(out.Token))
	}
}

func TestUnmarshalTextKeepsTokenOnError(t *testing.T) {
	tok := FromLSN(5)
	wantInvalid(t, tok.UnmarshalText([]byte("r1.")), "empty payload")
	wantEqual(t, tok, FromLSN(5))
}

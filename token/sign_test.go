package token

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
)

// secret returns a key that is recognised in whatever form it is printed.
func secret(id string) Secret {
	return Secret{ID: id, Key: []byte(strings.Repeat("very secret "+id+" ", 4)[:40])}
}

func signer(t testing.TB, ids ...string) *Signer {
	t.Helper()
	var more []Secret
	for _, id := range ids[1:] {
		more = append(more, secret(id))
	}
	s, err := NewSigner(secret(ids[0]), more...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// signed is a token as they usually are.
var signed = FromEntries(Entry{Key: Key{System: 7421938451230987654}, Write: at(2, 0x3000060), Floor: at(2, 0x3000148)})

func wantBadSignature(t *testing.T, err error, part string) {
	t.Helper()
	wantInvalid(t, err, part)
	if !errors.Is(err, ErrSignature) {
		t.Errorf("error %q does not wrap ErrSignature", err)
	}
}

func TestSignedTextsAreVerified(t *testing.T) {
	s := signer(t, "k1")
	for _, tok := range []Token{FromLSN(7), signed, widest(6), widest(16), widest(17)} {
		text := s.Sign(tok)
		if len(text) > MaxText {
			t.Errorf("text of %d bytes, want at most %d", len(text), MaxText)
		}
		if !strings.HasPrefix(text, tok.String()+".k1.") {
			t.Errorf("text %q is not %q with key id and MAC", text, tok)
		}
		got, err := s.Verify(text)
		if err != nil {
			t.Fatal(err)
		}
		wantEqual(t, got, tok)
	}
	if have := s.Sign(Token{}); have != "" {
		t.Errorf("empty token: have %q, want no text", have)
	}
}

// The longest key id leaves room for the largest token.
func TestSignedTextIsBounded(t *testing.T) {
	s := signer(t, strings.Repeat("k", MaxSecretID))
	longest := 0
	for n := range 18 {
		text := s.Sign(widest(n))
		longest = max(longest, len(text))
		if n == 0 {
			continue
		}
		if _, err := s.Verify(text); err != nil {
			t.Errorf("%d entries: %v", n, err)
		}
	}
	if longest > MaxText || longest < MaxText-100 {
		t.Errorf("longest text has %d bytes, want a little less than %d", longest, MaxText)
	}
}

// An attacker changes one byte, anywhere, or leaves something out.
func TestChangedTextsAreRefused(t *testing.T) {
	s := signer(t, "k1")
	text := s.Sign(signed)
	for i := range text {
		for _, b := range []byte{'A', 'z', '-', '.', '=', '\n', 0, 0xff} {
			changed := []byte(text)
			if changed[i] == b {
				continue
			}
			changed[i] = b
			if tok, err := s.Verify(string(changed)); !errors.Is(err, ErrInvalid) {
				t.Fatalf("byte %d as %q: have %s, %v", i, b, describe(tok), err)
			}
		}
		if _, err := s.Verify(text[:i]); !errors.Is(err, ErrInvalid) {
			t.Fatalf("first %d bytes: have %v", i, err)
		}
	}
}

func TestVerifyRefuses(t *testing.T) {
	s, tok := signer(t, "k1"), signed
	text := s.Sign(tok)
	mac := text[len(text)-macLen:]
	for name, c := range map[string]struct{ text, part string }{
		"unsigned":         {tok.String(), "none on"},
		"bare LSN":         {"A2C/FE118820", "none on"},
		"MAC only":         {tok.String() + "." + mac, "none on"},
		"no key id":        {tok.String() + ".." + mac, `key "" is not known`},
		"one more segment": {text + ".x", "none on"},
		"other key":        {signer(t, "k2").Sign(tok), `key "k2" is not known`},
		"other key, same id": {
			func() string {
				o, err := NewSigner(Secret{ID: "k1", Key: secret("k2").Key})
				if err != nil {
					t.Fatal(err)
				}
				return o.Sign(tok)
			}(), `not by key "k1"`,
		},
		"no MAC":         {tok.String() + ".k1.", "not by key"},
		"MAC of another": {FromLSN(9).String() + ".k1." + mac, "not by key"},
		"header split":   {text + "\r\nSet-Cookie: x=1", "not by key"},
		"other version":  {"r2" + text[2:], "none on"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.Verify(c.text)
			wantBadSignature(t, err, c.part)
		})
	}
	for name, c := range map[string]struct{ text, part string }{
		"empty":    {"", "empty"},
		"too long": {text + strings.Repeat("A", MaxText), "at most 1024"},
	} {
		_, err := s.Verify(c.text)
		wantInvalid(t, err, c.part)
		if errors.Is(err, ErrSignature) {
			t.Errorf("%s: %v wraps ErrSignature, want it not to", name, err)
		}
	}
}

// A key used for other things as well makes no MAC of ours by accident, and what
// is signed but is no token is still refused.
func TestTheMACIsOursAlone(t *testing.T) {
	k := secret("k1")
	if have := len(k.mac("")); have != macLen {
		t.Errorf("MAC of %d characters, want %d", have, macLen)
	}
	// As Python's hmac module computes it.
	const want = "r1.AQQAAAAAAwAAYA.k1.yCIkRzXOi0YtoB71BudJ3IwAZleDEDl_n28rDzM3OT0"
	if have := signer(t, "k1").Sign(FromLSN(0x3000060)); have != want {
		t.Errorf("have %q, want %q", have, want)
	}
	body := "r1.AA.k1"
	_, err := signer(t, "k1").Verify(body + "." + k.mac(body))
	wantInvalid(t, err, "entries")
}

func TestKeysRotate(t *testing.T) {
	old, tok := signer(t, "k1"), signed
	s := signer(t, "k1", "k2") // a process that has been told of the new key
	if !strings.Contains(s.Sign(tok), ".k1.") {
		t.Errorf("have %q, want it signed by the first key", s.Sign(tok))
	}
	before := old.Sign(tok)
	if err := s.Rotate(secret("k2"), secret("k1")); err != nil {
		t.Fatal(err)
	}
	after := s.Sign(tok)
	for _, text := range []string{before, after} {
		if _, err := s.Verify(text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
	_, err := old.Verify(after)
	wantBadSignature(t, err, "not known")
	if err := s.Rotate(secret("k2")); err != nil {
		t.Fatal(err)
	}
	_, err = s.Verify(before)
	wantBadSignature(t, err, "not known")
}

func TestRotatingWhileOthersVerify(t *testing.T) {
	s := signer(t, "a", "b")
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for i := range 200 {
				if _, err := s.Verify(s.Sign(FromLSN(LSN(i + 1)))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for range 100 {
		for _, keys := range [][2]string{{"b", "a"}, {"a", "b"}} {
			if err := s.Rotate(secret(keys[0]), secret(keys[1])); err != nil {
				t.Error(err)
			}
		}
	}
	users.Wait()
}

func TestSecretsThatCannotBeUsed(t *testing.T) {
	many := make([]Secret, MaxSecrets)
	for i := range many {
		many[i] = secret(fmt.Sprint("k", i))
	}
	s := signer(t, "k1")
	for name, c := range map[string]struct {
		keys []Secret
		part string
	}{
		"no id":        {[]Secret{secret("")}, "ID of 0 bytes"},
		"long id":      {[]Secret{secret(strings.Repeat("k", MaxSecretID+1))}, "ID of 17 bytes"},
		"dot":          {[]Secret{secret("a.b")}, `ID "a.b"`},
		"line break":   {[]Secret{secret("a\nb")}, `ID "a\nb"`},
		"short":        {[]Secret{{ID: "k", Key: make([]byte, MinSecret-1)}}, "31 bytes"},
		"second":       {[]Secret{secret("a"), {ID: "k"}}, "0 bytes"},
		"same id":      {[]Secret{secret("a"), secret("b"), secret("a")}, `two with the id "a"`},
		"one too many": {append(many, secret("one")), "want at most 16"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewSigner(c.keys[0], c.keys[1:]...)
			if !errors.Is(err, ErrSecret) || !strings.Contains(err.Error(), c.part) {
				t.Errorf("have %v, want ErrSecret with %q", err, c.part)
			}
			if err := s.Rotate(c.keys[0], c.keys[1:]...); err == nil {
				t.Error("Rotate took it")
			}
			if _, err := s.Verify(signer(t, "k1").Sign(FromLSN(1))); err != nil {
				t.Errorf("the former keys are gone: %v", err)
			}
		})
	}
}

// What the caller does to the key afterwards does not matter.
func TestSignerKeepsACopy(t *testing.T) {
	k := secret("k1")
	s, err := NewSigner(k)
	if err != nil {
		t.Fatal(err)
	}
	clear(k.Key)
	if _, err := s.Verify(signer(t, "k1").Sign(FromLSN(1))); err != nil {
		t.Error(err)
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	k, s := secret("k1"), signer(t, "k1")
	var out bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
		for _, v := range []any{k, &k, s, []Secret{k}, struct{ K Secret }{k}} {
			fmt.Fprintf(&out, verb+"\n", v)
		}
	}
	slog.New(slog.NewTextHandler(&out, nil)).Info("", "secret", k, "pointer", &k, "signer", s)
	slog.New(slog.NewJSONHandler(&out, nil)).Info("", "secret", k, "pointer", &k, "signer", s)
	raw, err := json.Marshal([]any{k, &k, map[string]any{"k": k}})
	if err != nil {
		t.Fatal(err)
	}
	out.Write(raw)
	_, err = NewSigner(Secret{ID: "k1", Key: k.Key[:20]})
	fmt.Fprintln(&out, err)
	_, err = s.Verify(signer(t, "k2").Sign(FromLSN(1)))
	fmt.Fprintln(&out, err)

	text := strings.ToLower(out.String())
	for _, form := range []string{
		"very", fmt.Sprintf("%x", k.Key[:8]), base64.StdEncoding.EncodeToString(k.Key)[:12], fmt.Sprint(k.Key)[1:20],
	} {
		if strings.Contains(text, strings.ToLower(form)) {
			t.Errorf("the key appears as %q in:\n%s", form, text)
		}
	}
	if !strings.Contains(text, `key "k1"`) {
		t.Errorf("the id does not appear in:\n%s", text)
	}
}

func TestZeroSigner(t *testing.T) {
	var s Signer
	_, err := s.Verify(signer(t, "k1").Sign(FromLSN(1)))
	wantBadSignature(t, err, "not known")
	defer func() {
		if recover() == nil {
			t.Error("a zero Signer signed")
		}
	}()
	s.Sign(FromLSN(1))
}

// A text that nobody signed costs no more than looking at it.
func TestRefusingCostsLittle(t *testing.T) {
	s, tok := signer(t, "k1"), signed
	for name, text := range map[string]string{
		"unsigned": tok.String(), "long": strings.Repeat("r1.AA.k1.", 1<<17), "forged": tok.String() + ".k1." + strings.Repeat("A", macLen),
	} {
		allocs := testing.AllocsPerRun(100, func() { _, _ = s.Verify(text) })
		if allocs > 30 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

func FuzzVerify(f *testing.F) {
	s := signer(f, "k1", "k2")
	f.Add("", "k1")
	f.Add("r1.AA.k1.", "k1")
	seeds(30, func(g generator) {
		tok := g.token()
		f.Add(s.Sign(tok), tok.String())
	})
	f.Fuzz(func(t *testing.T, text, payload string) {
		if tok, err := s.Verify(text); err != nil {
			wantInvalid(t, err, "")
		} else if s.Sign(tok) != text && signer(t, "k2").Sign(tok) != text {
			t.Fatalf("%q was not signed by us: %s", text, describe(tok))
		}
		// Signed garbage is garbage still.
		k := secret("k2")
		body := payload + ".k2"
		tok, err := s.Verify(body + "." + k.mac(body))
		if err != nil {
			wantInvalid(t, err, "")
			return
		}
		if tok.String() != payload {
			t.Fatalf("payload %q: have %s", payload, describe(tok))
		}
		checkNormal(t, tok)
	})
}

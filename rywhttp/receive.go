package rywhttp

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/token"
)

// maxHeaders is how many tokens a request's header may hold: proxies join lines.
const maxHeaders = 16

// received is what a request came with.
type received struct {
	tok    token.Token // of header and cookies together
	writes token.Token // what the cookies to be replaced by a write's hold
	held   []held
	any    bool // something was there, if only an empty header
	err    error

	stored  stored
	unknown bool // something was there that nobody knows
}

// receive reads a request's tokens. However much the client sent, it keeps no
// more than MaxCookies of it.
func (c *Config) receive(r *http.Request, now time.Time) (in received) {
	if !c.NoHeader {
		c.receiveHeader(&in, r.Header[c.Header])
	}
	if !c.NoCookies {
		for h, text := range c.scan(r.Header) {
			if len(in.held) == MaxCookies {
				in.err = fmt.Errorf("%w: more than %d cookies", token.ErrInvalid, MaxCookies)
				break
			}
			c.receiveCookie(&in, h, text, now)
		}
	}
	return in
}

func (c *Config) receiveHeader(in *received, lines []string) {
	n := 0
	for _, line := range lines {
		for text := range strings.SplitSeq(line, ",") {
			if n++; n > maxHeaders {
				in.err = fmt.Errorf("%w: more than %d in the header", token.ErrInvalid, maxHeaders)
				return
			}
			in.add(c.parse(strings.Trim(text, " \t")))
		}
	}
}

func (c *Config) receiveCookie(in *received, h held, text string, now time.Time) {
	t, ok := in.add(c.parse(text))
	h.bad = !ok
	h.settled = h.kind == kindOpen && now.Sub(minted(t)) > c.OpenFor
	if h.replacedByWrite() {
		in.writes = in.writes.Merge(t)
	}
	in.held = append(in.held, h)
}

func (in *received) add(t token.Token, err error) (_ token.Token, ok bool) {
	in.any = true
	if err != nil {
		in.err = err
		return token.Token{}, false
	}
	in.tok = in.tok.Merge(t)
	return t, true
}

// parse reads a text as it must be for this configuration. The empty text is
// that of the empty token: the client says that it has nothing to see.
func (c *Config) parse(text string) (token.Token, error) { return parse(text, c.Signer) }

func parse(text string, signer *token.Signer) (token.Token, error) {
	switch {
	case text == "":
		return token.Token{}, nil
	case signer != nil:
		return signer.Verify(text)
	}
	return token.Parse(text)
}

// text is what parse reads.
func (c *Config) text(t token.Token) string { return format(t, c.Signer) }

func format(t token.Token, signer *token.Signer) string {
	if signer != nil {
		return signer.Sign(t)
	}
	return t.String()
}

func minted(t token.Token) (last time.Time) {
	for i := range t.Len() {
		if m := t.At(i).Minted; m.After(last) {
			last = m
		}
	}
	return last
}

// refused returns why the request is to be refused, or nil.
func (c *Config) refused(in *received) error {
	switch {
	case in.err != nil && c.Invalid == InvalidRefused:
		return in.err
	case !in.any && c.Missing == MissingRefused:
		return ErrMissing
	}
	return nil
}

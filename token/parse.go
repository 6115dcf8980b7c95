package token

import (
	"encoding/base64"
	"errors"
	"strings"
)

// base64url refuses what RawURLEncoding lets pass: bits that decode to nothing.
var base64url = base64.RawURLEncoding.Strict()

// Parse reads a text that String made, or a bare LSN such as "A2C/FE118820" (see
// FromLSN). Nothing else is accepted: a text that Parse takes and that is no LSN
// is the String of the result. The error wraps ErrInvalid and repeats no more
// than a few escaped bytes of the text. The empty text is an error too: whether a
// missing token means "nothing to wait for" is for the caller to say.
func Parse(text string) (Token, error) {
	switch {
	case text == "":
		return Token{}, invalid("empty text")
	case len(text) > MaxText:
		return Token{}, invalid("text of %d bytes, want at most %d", len(text), MaxText)
	case strings.HasPrefix(text, prefix):
		return parsePayload(text[len(prefix):])
	case strings.Contains(text, "/"):
		return parseBare(text)
	case hasOtherVersion(text):
		return Token{}, invalid("text %s is of another version, want %s", excerpt(text), prefix)
	default:
		return Token{}, invalid("text %s: want the form %s... or an LSN", excerpt(text), prefix)
	}
}

func parseBare(text string) (Token, error) {
	lsn, err := ParseLSN(text)
	if err != nil {
		return Token{}, err
	}
	if lsn == 0 || lsn > maxLSN {
		return Token{}, invalid("LSN %s: no server gets there, want 0/1 to %s", lsn, LSN(maxLSN))
	}
	return FromLSN(lsn), nil
}

// hasOtherVersion reports whether the text begins like a token: r, digits, dot.
func hasOtherVersion(text string) bool {
	version, _, found := strings.Cut(text, ".")
	if !found || len(version) < 2 || version[0] != 'r' {
		return false
	}
	return strings.Trim(version[1:], "0123456789") == ""
}

func parsePayload(segment string) (Token, error) {
	switch strings.Count(segment, ".") {
	case 0:
	case 2:
		return Token{}, invalid("signed token: no signatures are read here, but by Signer.Verify")
	default:
		return Token{}, invalid("%d segments, want 2", 2+strings.Count(segment, "."))
	}
	payload, err := decodeBase64(segment)
	if err != nil {
		return Token{}, err
	}
	return decode(payload)
}

func decodeBase64(segment string) ([]byte, error) {
	// encoding/base64 skips line breaks.
	if i := strings.IndexAny(segment, "\r\n"); i >= 0 {
		return nil, invalid("byte %d is a line break", len(prefix)+i)
	}
	payload, err := base64url.DecodeString(segment)
	if err == nil {
		return payload, nil
	}
	var at base64.CorruptInputError
	errors.As(err, &at)
	i := min(int(at), len(segment))
	return nil, invalid("base64url ends at byte %d with %s", len(prefix)+i, excerpt(segment[i:]))
}

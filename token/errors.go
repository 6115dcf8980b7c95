package token

import (
	"errors"
	"fmt"
	"strconv"
)

// ErrInvalid is wrapped by every error of this package: the text is not a
// token. A caller must not treat such a text as "no token": what it should have
// covered is unknown.
var ErrInvalid = errors.New("invalid token")

// excerptLen bounds how many bytes of foreign text an error repeats.
const excerptLen = 10

// invalid returns an error that wraps ErrInvalid.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}

// excerpt returns the beginning of a foreign text, escaped for logs.
func excerpt(text string) string {
	if len(text) <= excerptLen {
		return strconv.QuoteToASCII(text)
	}
	return strconv.QuoteToASCII(text[:excerptLen]) + "..."
}

package token

import (
	"fmt"
	"log/slog"
	"strings"
)

// Secret is a key for signing tokens. It prints, logs and marshals without its
// key.
type Secret struct {
	// ID names the key in every text that it signs and is no secret: 1 to
	// MaxSecretID letters, digits, '-' or '_'. A new key needs a new id.
	ID string
	// Key is at least MinSecret random bytes, the same in all processes that
	// accept each other's tokens. Signer keeps a copy.
	Key []byte
	_   struct{}
}

// idAlphabet is what may stand in a cookie, a header and a URL as it is.
const idAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func (s *Secret) validate() error {
	switch {
	case s.ID == "" || len(s.ID) > MaxSecretID:
		return fmt.Errorf("%w: ID of %d bytes, want 1 to %d", ErrSecret, len(s.ID), MaxSecretID)
	case strings.Trim(s.ID, idAlphabet) != "":
		return fmt.Errorf("%w: ID %q, want letters, digits, '-' and '_' only", ErrSecret, s.ID)
	case len(s.Key) < MinSecret:
		return fmt.Errorf("%w: Key of %q has %d bytes, want at least %d", ErrSecret, s.ID, len(s.Key), MinSecret)
	}
	return nil
}

// String returns the id and never the key.
func (s Secret) String() string { return fmt.Sprintf("key %q", s.ID) }

// GoString is String, for %#v.
func (s Secret) GoString() string { return s.String() }

// Format writes String for every verb: %x and %d would print the key.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprintf(f, "%s", s.String()) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText keeps the key out of JSON and other forms.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

package token

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
)

// ErrSignature is wrapped, together with ErrInvalid, by what Verify returns for a
// text that no key of the Signer has signed: unsigned, signed by a key that is not
// known, or changed since.
var ErrSignature = fmt.Errorf("%w: signature", ErrInvalid)

// ErrSecret is wrapped by the error for a Secret that cannot be used.
var ErrSecret = errors.New("invalid secret")

// Limits of signing.
const (
	// MinSecret is the length of the shortest key that is accepted, in bytes.
	MinSecret = 32
	// MaxSecretID is the length of the longest key id, in bytes.
	MaxSecretID = 16
	// MaxSecrets is how many keys a Signer holds.
	MaxSecrets = 16
)

// purpose keeps a MAC of this package from being one of anything else that the
// same key is used for.
const purpose = "gorm-ryw token\x00"

// macLen is the length of a MAC in base64url.
const macLen = 43

// Signer signs tokens and accepts only what it, or a process with the same keys,
// has signed, so that a client can hold a token but not make one up. It proves
// where a token comes from and nothing else: whoever has a signed token may use it
// as often as they like and give it to others, to whom it says only how far to
// wait. Made by NewSigner; a zero Signer accepts nothing. Safe for concurrent use.
//
// To change keys without refusing anybody: give every process the new key as one
// that only verifies, then make it the one that signs, and drop the old one when
// the tokens that it signed have outlived their maximal age.
type Signer struct{ keys atomic.Pointer[keyring] }

// keyring is the keys of one moment; the first one signs. It is never changed.
type keyring []Secret

// NewSigner returns a Signer that signs with the first secret and accepts what
// any of them has signed. The error wraps ErrSecret.
func NewSigner(signs Secret, verify ...Secret) (*Signer, error) {
	s := &Signer{}
	if err := s.Rotate(signs, verify...); err != nil {
		return nil, err
	}
	return s, nil
}

// Rotate replaces all keys, for calls that begin after it returns. On an error
// everything stays as it was.
func (s *Signer) Rotate(signs Secret, verify ...Secret) error {
	keys := append(keyring{signs}, verify...)
	if len(keys) > MaxSecrets {
		return fmt.Errorf("%w: have %d, want at most %d", ErrSecret, len(keys), MaxSecrets)
	}
	for i := range keys {
		if err := keys[i].validate(); err != nil {
			return err
		}
		if keys.find(keys[i].ID) != &keys[i] {
			return fmt.Errorf("%w: two with the id %q", ErrSecret, keys[i].ID)
		}
		keys[i].Key = append([]byte(nil), keys[i].Key...)
	}
	s.keys.Store(&keys)
	return nil
}

// ring returns the keys, none for a zero Signer.
func (s *Signer) ring() keyring {
	if keys := s.keys.Load(); keys != nil {
		return *keys
	}
	return nil
}

func (k keyring) find(id string) *Secret {
	for i := range k {
		if k[i].ID == id {
			return &k[i]
		}
	}
	return nil
}

// Sign returns the text of t with a signature: what String returns, the id of the
// key and the MAC, within MaxText. It is the empty string for the empty token,
// which asks for nothing and so needs no proof.
func (s *Signer) Sign(t Token) string {
	if t.IsZero() {
		return ""
	}
	keys := s.ring()
	if keys == nil {
		panic("token: a Signer is made by NewSigner")
	}
	key := &keys[0]
	body := t.String() + "." + key.ID
	return body + "." + key.mac(body)
}

// Verify reads a text that Sign made with one of the keys. Like Parse it refuses
// the empty text. A bare LSN and an unsigned text are refused whatever they say:
// the error wraps ErrSignature, and like every error of this package ErrInvalid.
// Nothing of the payload is looked at before the MAC was found to be right.
func (s *Signer) Verify(text string) (Token, error) {
	switch {
	case text == "":
		return Token{}, invalid("empty text")
	case len(text) > MaxText:
		return Token{}, invalid("text of %d bytes, want at most %d", len(text), MaxText)
	case !strings.HasPrefix(text, prefix) || strings.Count(text, ".") != 3:
		return Token{}, badSignature("none on %s", excerpt(text))
	}
	end := strings.LastIndexByte(text, '.')
	body, mac := text[:end], text[end+1:]
	at := strings.LastIndexByte(body, '.')
	key := s.ring().find(body[at+1:])
	if key == nil {
		return Token{}, badSignature("key %s is not known", excerpt(body[at+1:]))
	}
	if !hmac.Equal([]byte(mac), []byte(key.mac(body))) {
		return Token{}, badSignature("not by key %s", excerpt(key.ID))
	}
	return parsePayload(body[len(prefix):at])
}

func badSignature(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrSignature, fmt.Sprintf(format, args...))
}

// mac returns the MAC of a text up to and including the key id.
func (s *Secret) mac(body string) string {
	h := hmac.New(sha256.New, s.Key)
	h.Write([]byte(purpose))
	h.Write([]byte(body))
	var sum [sha256.Size]byte
	return base64.RawURLEncoding.EncodeToString(h.Sum(sum[:0]))
}

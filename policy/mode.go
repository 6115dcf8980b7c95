package policy

import "fmt"

// Mode is who decides where reads go.
type Mode uint8

// The modes.
const (
	// Normal is what the rest of this package says.
	Normal Mode = iota
	// PrimaryOnly sends every read to its primary.
	PrimaryOnly
	// PlainResolver leaves every read where dbresolver sends it, a stale replica
	// included: nothing is guaranteed. Writes are captured and sessions learn of
	// what they read all the same, so that going back to Normal is safe at once.
	PlainResolver

	modes
)

func (m Mode) String() string {
	switch m {
	case Normal:
		return "Normal"
	case PrimaryOnly:
		return "PrimaryOnly"
	case PlainResolver:
		return "PlainResolver"
	}
	return fmt.Sprintf("Mode(%d)", uint8(m))
}

// Valid reports whether m is one of the modes.
func (m Mode) Valid() bool { return m < modes }

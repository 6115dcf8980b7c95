package token

import (
	"strconv"
	"strings"
)

// LSN is a position in the write-ahead log of a PostgreSQL server, in bytes
// since the cluster was created. Zero is no position: PostgreSQL never hands it
// out.
type LSN uint64

// lsnHalf is the longest half of an LSN's text: 32 bits in hexadecimal.
const lsnHalf = 8

// String returns the LSN as PostgreSQL prints it, for example "A2C/FE118820".
func (l LSN) String() string {
	var buf [2*lsnHalf + 1]byte
	return string(l.append(buf[:0]))
}

func (l LSN) append(dst []byte) []byte {
	dst = appendHex(dst, uint32(l>>32))
	dst = append(dst, '/')
	return appendHex(dst, uint32(l))
}

func appendHex(dst []byte, half uint32) []byte {
	const digits = "0123456789ABCDEF"
	shift := 28
	for shift > 0 && half>>shift == 0 {
		shift -= 4
	}
	for ; shift >= 0; shift -= 4 {
		dst = append(dst, digits[half>>shift&0xF])
	}
	return dst
}

// ParseLSN reads what PostgreSQL's type pg_lsn reads: two hexadecimal numbers of
// one to eight digits, of either case, with a slash between them and nothing
// around them. Leading zeros are allowed because newer servers print them. The
// error wraps ErrInvalid.
func ParseLSN(text string) (LSN, error) {
	high, low, found := strings.Cut(text, "/")
	if !found {
		return 0, invalid("LSN %s: want the form A2C/FE118820", excerpt(text))
	}
	h, okHigh := parseHex(high)
	l, okLow := parseHex(low)
	if !okHigh || !okLow {
		return 0, invalid("LSN %s: want 1 to 8 hex digits on each side", excerpt(text))
	}
	return LSN(h)<<32 | LSN(l), nil
}

// parseHex is stricter than strconv alone, which takes signs and prefixes only
// in other modes, but any number of leading zeros in this one.
func parseHex(text string) (uint32, bool) {
	if len(text) > lsnHalf {
		return 0, false
	}
	n, err := strconv.ParseUint(text, 16, 32)
	return uint32(n), err == nil
}

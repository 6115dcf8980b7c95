package token

import (
	"encoding/base64"
	"encoding/binary"
)

// The text form; the package comment has the format as a table.
const (
	prefix     = "r1."
	maxPayload = 715 // six entries with everything set; sixteen without what they have no room for need 705
	lsnBytes   = 7   // of maxLSN
)

// Of the payload's first byte.
const (
	headCount  = 0x1F
	headOthers = 0x20
)

// Flags of an entry; those up to flagWrote fit into one byte.
const (
	flagSystem = 1 << iota
	flagName
	flagWrite
	flagFloorNear // on the timeline of Write
	flagFloorFar  // on another one, or without Write
	flagMinted
	flagWrote
	flagSeenPrimary
	flagSeenNodes
	flagFormer
	flagBroadCovered
	flagsEnd
)

// String returns the token's text: opaque, made of letters, digits, '-', '_' and
// '.', and equal for equal tokens. It is the empty string for the empty token.
func (t Token) String() string {
	if t.IsZero() {
		return ""
	}
	var raw [maxPayload]byte
	var text [MaxText]byte
	return string(base64.RawURLEncoding.AppendEncode(append(text[:0], prefix...), t.appendPayload(raw[:0])))
}

// MarshalText returns the same text as String; it never fails.
func (t Token) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText sets t to what Parse returns. Unlike Parse it takes the empty
// text for the empty token, as that is what MarshalText makes of it. On an error
// t is left as it was.
func (t *Token) UnmarshalText(text []byte) error {
	if len(text) == 0 {
		*t = Token{}
		return nil
	}
	parsed, err := Parse(string(text))
	if err != nil {
		return err
	}
	*t = parsed
	return nil
}

func (t Token) appendPayload(dst []byte) []byte {
	head := byte(len(t.entries))
	if t.others {
		head |= headOthers
	}
	dst = append(dst, head)
	for i := range t.entries {
		dst = appendEntry(dst, &t.entries[i])
	}
	return dst
}

func appendEntry(dst []byte, e *Entry) []byte {
	flags := e.flags()
	dst = binary.AppendUvarint(dst, flags)
	if flags&flagSystem != 0 {
		dst = binary.BigEndian.AppendUint64(dst, e.Key.System)
	}
	if flags&flagName != 0 {
		dst = binary.BigEndian.AppendUint64(dst, e.Key.Name)
	}
	if flags&flagWrite != 0 {
		dst = appendPosition(dst, e.Write)
	}
	if flags&flagFormer != 0 {
		dst = appendPosition(dst, e.Former)
	}
	if flags&flagFloorNear != 0 {
		dst = binary.AppendVarint(dst, int64(e.Floor.LSN)-int64(e.Write.LSN))
	}
	if flags&flagFloorFar != 0 {
		dst = appendPosition(dst, e.Floor)
	}
	if flags&flagMinted != 0 {
		dst = binary.AppendUvarint(dst, uint64(e.Minted.UnixMilli()))
	}
	if flags&flagSeenNodes != 0 {
		dst = appendNodes(dst, e.SeenNodes)
	}
	return dst
}

func (e *Entry) flags() (flags uint64) {
	set := func(flag uint64, on bool) {
		if on {
			flags |= flag
		}
	}
	hasFloor, near := !e.Floor.IsZero(), e.Floor.Timeline == e.Write.Timeline
	set(flagSystem, e.Key.System != 0)
	set(flagName, e.Key.Name != 0)
	set(flagWrite, !e.Write.IsZero())
	set(flagFloorNear, hasFloor && near)
	set(flagFloorFar, hasFloor && !near)
	set(flagMinted, !e.Minted.IsZero())
	set(flagWrote, e.Wrote)
	set(flagSeenPrimary, e.SeenPrimary)
	set(flagSeenNodes, len(e.SeenNodes) > 0)
	set(flagFormer, !e.Former.IsZero())
	set(flagBroadCovered, e.BroadCovered)
	return flags
}

func appendPosition(dst []byte, p Position) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.Timeline))
	var lsn [8]byte
	binary.BigEndian.PutUint64(lsn[:], uint64(p.LSN))
	return append(dst, lsn[8-lsnBytes:]...)
}

func appendNodes(dst []byte, nodes []Incarnation) []byte {
	dst = append(dst, byte(len(nodes)))
	for _, n := range nodes {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	return dst
}

package token

import (
	"encoding/binary"
	"fmt"
	"time"
)

// decoder reads a payload from left to right. The first problem stays in err;
// from then on everything reads as zero.
type decoder struct {
	payload []byte
	off     int
	entry   int // number of the entry being read, from 1 on
	err     error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = invalid("entry %d, payload byte %d: %s", d.entry, d.off, fmt.Sprintf(format, args...))
	}
}

// decode returns the token of a payload, or an error unless that token's payload
// is this one.
func decode(payload []byte) (Token, error) {
	if len(payload) == 0 {
		return Token{}, invalid("empty payload")
	}
	count, others := int(payload[0]&headCount), payload[0]&headOthers != 0
	switch {
	case payload[0]&^(headCount|headOthers) != 0:
		return Token{}, invalid("unknown bits in head %#x", payload[0])
	case count == 0 || count > MaxEntries:
		return Token{}, invalid("%d entries, want 1 to %d", count, MaxEntries)
	case others && count != MaxEntries:
		return Token{}, invalid("entries dropped from %d, want %d", count, MaxEntries)
	}
	d := decoder{payload: payload, off: 1}
	t := Token{entries: d.entries(count, others), others: others}
	if d.err == nil && d.off != len(payload) {
		d.fail("%d bytes after the last entry", len(payload)-d.off)
	}
	if d.err != nil {
		return Token{}, d.err
	}
	return t, nil
}

func (d *decoder) entries(count int, others bool) []Entry {
	list := make([]Entry, 0, count)
	for d.entry = 1; d.entry <= count && d.err == nil; d.entry++ {
		e := d.readEntry()
		if problem := contradiction(list, &e, count, others); problem != "" {
			d.fail("%s", problem)
			break
		}
		list = append(list, e)
	}
	d.entry = min(d.entry, count)
	return list
}

func (d *decoder) readEntry() (e Entry) {
	flags := d.uvarint("flags", flagsEnd-1)
	has := func(flag uint64) bool { return flags&flag != 0 }
	e.Wrote, e.SeenPrimary, e.BroadCovered = has(flagWrote), has(flagSeenPrimary), has(flagBroadCovered)
	if has(flagSystem) {
		e.Key.System = d.fixed("system", 8)
	}
	if has(flagName) {
		e.Key.Name = d.fixed("name", 8)
	}
	if has(flagWrite) {
		e.Write = d.position("timeline of write", "LSN of write")
	}
	if has(flagFormer) {
		e.Former = d.position("timeline of former", "LSN of former")
	}
	if has(flagFloorNear) {
		e.Floor = d.near(e.Write)
	}
	if has(flagFloorFar) {
		e.Floor = d.far(e.Write, has(flagFloorNear))
	}
	if has(flagMinted) {
		e.Minted = d.minted()
	}
	if has(flagSeenNodes) {
		e.SeenNodes = d.nodes()
	}
	return e
}

func (d *decoder) position(timeline, lsn string) (p Position) {
	p.Timeline = uint32(d.uvarint(timeline, maxTimeline))
	p.LSN = LSN(d.fixed(lsn, lsnBytes))
	return p
}

func (d *decoder) near(write Position) Position {
	zigzag := d.uvarint("floor", 1<<57)
	lsn := int64(write.LSN) + (int64(zigzag>>1) ^ -int64(zigzag&1))
	if lsn <= 0 || lsn > maxLSN || write.Timeline == 0 {
		d.fail("floor is out of range or beside no write")
	}
	return Position{Timeline: write.Timeline, LSN: LSN(lsn)}
}

func (d *decoder) far(write Position, near bool) Position {
	floor := d.position("timeline of floor", "LSN of floor")
	if near || floor.Timeline == write.Timeline || floor.Timeline == 0 {
		d.fail("floor is on the timeline of write, or on none")
	}
	return floor
}

func (d *decoder) minted() time.Time {
	ms := d.uvarint("minted", maxMinted)
	if ms == 0 {
		d.fail("minted is 0")
	}
	return time.UnixMilli(int64(ms)).UTC()
}

func (d *decoder) nodes() []Incarnation {
	count := d.fixed("number of nodes", 1)
	if count == 0 || count > MaxSeenNodes {
		d.fail("%d nodes, want 1 to %d", count, MaxSeenNodes)
		return nil
	}
	nodes := make([]Incarnation, 0, count)
	last := uint64(0)
	for range count {
		n := d.fixed("node", 8)
		if n <= last {
			d.fail("nodes are not in ascending order")
		}
		nodes, last = append(nodes, Incarnation(n)), n
	}
	return nodes
}

// fixed reads a big-endian number of n bytes. Zero is for what is not there, and
// what is not there is not written.
func (d *decoder) fixed(what string, n int) (v uint64) {
	if d.err != nil {
		return 0
	}
	if len(d.payload)-d.off < n {
		d.fail("%s is cut off", what)
		return 0
	}
	for _, b := range d.payload[d.off : d.off+n] {
		v = v<<8 | uint64(b)
	}
	if v == 0 {
		d.fail("%s is 0", what)
		return 0
	}
	d.off += n
	return v
}

// uvarint reads a number of variable length that is at most limit, in the
// shortest form.
func (d *decoder) uvarint(what string, limit uint64) uint64 {
	if d.err != nil {
		return 0
	}
	v, n := binary.Uvarint(d.payload[d.off:])
	switch {
	case n == 0:
		d.fail("%s is cut off", what)
	case n < 0 || v > limit:
		d.fail("%s is out of range", what)
	case n > 1 && d.payload[d.off+n-1] == 0:
		d.fail("%s is not in its shortest form", what)
	default:
		d.off += n
		return v
	}
	return 0
}

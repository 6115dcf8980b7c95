package token

import (
	"math/rand/v2"
	"testing"
	"time"
)

// rounds is how many random cases a property is tried on.
const rounds = 4_000

// generator makes random tokens from few distinct values, so that keys, timelines
// and incarnations of different tokens meet often.
type generator struct{ *rand.Rand }

// properties runs f on a generator of fixed seed, printed with a failure.
func properties(t *testing.T, f func(t *testing.T, g generator)) {
	t.Helper()
	for seed := range uint64(4) {
		g := generator{rand.New(rand.NewPCG(seed, 1))}
		for range rounds / 4 {
			f(t, g)
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
}

func (g generator) chance(percent int) bool { return g.IntN(100) < percent }

// key returns one of 1+span keys and wildcards of them.
func (g generator) key(span int) Key {
	k := Key{System: uint64(1 + g.IntN(span)), Name: uint64(1 + g.IntN(2))}
	if g.chance(30) {
		k.System = 0
	}
	if g.chance(40) {
		k.Name = 0
	}
	return k
}

func (g generator) position() Position {
	switch g.IntN(12) {
	case 0, 1, 2:
		return Position{}
	case 3:
		return Position{LSN: LSN(1 + g.IntN(3))}
	case 4:
		return Position{Timeline: uint32(g.IntN(maxTimeline + 1)), LSN: LSN(1 + g.Int64N(maxLSN))}
	default:
		return Position{Timeline: uint32(1 + g.IntN(3)), LSN: LSN(1 + g.IntN(3))}
	}
}

func (g generator) entry(span int) Entry {
	e := Entry{Key: g.key(span), Write: g.position(), Floor: g.position()}
	if g.chance(30) {
		e.Former = g.position()
	}
	if g.chance(50) {
		e.Minted = time.UnixMilli(int64(g.IntN(4)))
	}
	e.Wrote, e.SeenPrimary, e.BroadCovered = g.chance(20), g.chance(10), g.chance(30)
	if g.chance(30) {
		for range g.IntN(6) {
			e.SeenNodes = append(e.SeenNodes, Incarnation(1+g.IntN(12)))
		}
	}
	return e
}

// token returns a token as a session could come to hold it: from other tokens, by
// marking and resolving.
func (g generator) token() Token {
	span := 2 + g.IntN(12)
	list := make([]Entry, g.IntN(1+g.IntN(24)))
	for i := range list {
		list[i] = g.entry(span)
	}
	t := FromEntries(list...)
	for range g.IntN(4) {
		t = g.step(t, span)
	}
	return t
}

func (g generator) step(t Token, span int) Token {
	e := g.entry(span)
	switch g.IntN(5) {
	case 0:
		return t.With(e)
	case 1:
		return t.Mark(e.Key, e.Marks(), e.Minted)
	case 2:
		return t.Replace(e)
	case 3:
		return t.Replace(Entry{Key: e.Key})
	default:
		return g.resolve(t)
	}
}

// resolve does what a reader does that knows its cluster fully.
func (g generator) resolve(t Token) Token {
	if t.IsZero() {
		return t
	}
	e := t.At(g.IntN(t.Len()))
	e.Floor = e.Floor.Max(Position{Timeline: 3, LSN: 3})
	e.Wrote, e.SeenPrimary, e.SeenNodes, e.BroadCovered = false, false, nil, true
	return t.Replace(e)
}

// keys returns every key that the generator can make and some that it cannot.
func (g generator) keys() []Key {
	list := make([]Key, 0, 16*4)
	for system := range uint64(16) {
		for name := range uint64(4) {
			list = append(list, Key{system, name})
		}
	}
	return list
}

func describe(t Token) string {
	text := t.String()
	for _, e := range t.Entries() {
		text += "\n\t" + describeEntry(e)
	}
	return text
}

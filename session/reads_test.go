package session

import (
	"testing"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/token"
)

func TestReadOfAReplicaIsRemembered(t *testing.T) {
	s := New()
	first, second := later(), later()
	s.ReadNode(here, 7, second)
	s.ReadNode(here, 7, first)
	n := needOf(s, here)
	if r := n.Reads(); len(r) != 1 || r[0] != (NodeRead{Key: here, Node: 7, At: second}) || n.PrimaryOnly() || n.None() {
		t.Errorf("have %v, %s", r, describe(n))
	}
	wantNeed(t, s, there, Need{})
	s.ReadNode(here, 8, first)
	wantNeed(t, s, here, Need{nreads: 2})
}

// What was read may be newer than any position known before the read ended.
func TestReadIsSettledByALaterQueryOnly(t *testing.T) {
	s := New()
	before, read := later(), later()
	s.ReadNode(here, 7, read)
	for name, begun := range map[string]mono.Instant{"before": before, "at": read} {
		if s.SettleRead(here, 7, at(1, 100), begun); len(needOf(s, here).Reads()) != 1 {
			t.Errorf("settled by a query begun %s the read's end", name)
		}
	}
	wantNeed(t, s, here, Need{nreads: 1})
	s.SettleRead(here, 8, at(1, 100), later()) // another node
	s.SettleRead(there, 7, at(1, 100), later())
	wantNeed(t, s, here, Need{nreads: 1})
	s.SettleRead(here, 7, at(1, 100), later())
	wantNeed(t, s, here, Need{Position: at(1, 100)})
	s.SettleRead(here, 7, at(1, 200), later()) // nothing to settle any more
	wantNeed(t, s, here, Need{Position: at(1, 100)})
}

// The primary is at least as far as any of its standbys.
func TestReadsAreSettledByThePrimary(t *testing.T) {
	s := New()
	old, begun, read := later(), later(), later()
	s.ReadNode(here, 7, old)
	s.ReadNode(here, 8, read)
	s.ReadNode(there, 9, old)
	s.Advance(here, at(1, 100), old, false) // at the same time is not after
	wantNeed(t, s, here, Need{Position: at(1, 100), nreads: 2})
	s.Advance(here, at(1, 100), begun, false)
	n := needOf(s, here)
	if r := n.Reads(); len(r) != 1 || r[0].Node != 8 || n.Position != at(1, 100) {
		t.Errorf("have %v, %s, want the read that ended after the query began", r, describe(n))
	}
	wantNeed(t, s, there, Need{nreads: 1})
}

func TestNodeThatIsGoneIsReplacedByThePrimary(t *testing.T) {
	s := New()
	s.ReadNode(here, 7, later())
	s.LoseNode(here, 8)
	s.LoseNode(there, 7)
	wantNeed(t, s, here, Need{nreads: 1})
	begun := later()
	s.LoseNode(here, 7)
	wantNeed(t, s, here, Need{Marked: true})
	s.Advance(here, at(1, 100), begun, false)
	wantNeed(t, s, here, Need{Position: at(1, 100), Marked: true})
	s.Advance(here, at(1, 100), later(), false)
	wantNeed(t, s, here, Need{Position: at(1, 100)})
}

// A replica in a life that is not known was read: which one it was cannot be
// found again.
func TestReadOfANodeThatIsNotKnown(t *testing.T) {
	s := New()
	s.ReadNode(here, 0, later())
	wantNeed(t, s, here, Need{Marked: true})
}

func TestTooManyReadsBecomeAMark(t *testing.T) {
	s := New()
	for i := range MaxReads {
		s.ReadNode(here, token.Incarnation(i+1), later())
	}
	wantNeed(t, s, here, Need{nreads: MaxReads})
	begun := later()
	s.ReadNode(here, 100, later())
	wantNeed(t, s, here, Need{Marked: true})
	s.Advance(here, at(1, 50), begun, false)
	wantNeed(t, s, here, Need{Position: at(1, 50), Marked: true})
}

func TestTooManyReadsOfOtherClustersBecomeAMark(t *testing.T) {
	s := New()
	for i := range MaxReads {
		s.ReadNode(there, token.Incarnation(i+1), later())
	}
	s.ReadNode(here, 100, later())
	wantNeed(t, s, here, Need{Marked: true})
	wantNeed(t, s, there, Need{nreads: MaxReads})
}

func TestReadsTravelAsSeenNodes(t *testing.T) {
	s := New()
	s.Advance(here, at(1, 50), later(), true)
	s.ReadNode(here, 7, later())
	e, _ := s.Token().Entry(here)
	if len(e.SeenNodes) != 1 || e.SeenNodes[0] != 7 || e.Write != at(1, 50) {
		t.Errorf("entry: have %+v", e)
	}
	received := later()
	next := New(handed(t, s.Token()))
	n := needOf(next, here)
	if r := n.Reads(); len(r) != 1 || r[0].Node != 7 || r[0].At <= received || n.Position != at(1, 50) {
		t.Errorf("have %v, %s, want a read of 7 dated from its receipt", r, describe(n))
	}
	next.SettleRead(here, 7, at(1, 60), later())
	wantNeed(t, next, here, Need{Position: at(1, 60)})
	if e, _ := next.Token().Entry(here); len(e.SeenNodes) != 0 {
		t.Errorf("settled, but the token still has %v", e.SeenNodes)
	}
}

package main

import (
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// How a thread of work carries what it has seen from one operation to the next.
const (
	carryLive = iota // a session in memory, as between the statements of one request
	carryText        // the text of a token, as between requests
	carryHint        // the text of a token, given to each query as a scope
	carries
)

// bearer carries it. The controls use the text for what they have instead of a
// token.
type bearer struct {
	how  int
	live *session.Session
	text string
	// seen is where it read last, by itself or before it was handed on.
	seen sight
}

// sight is a read on a standby: which, and when, of the history's clock. Tokens
// name nodes in a way that only the library understands.
type sight struct {
	Server string `json:"server,omitempty"`
	At     int64  `json:"at,omitempty"`
}

func newBearer(how int) *bearer { return &bearer{how: how, live: session.New()} }

// token is what is handed to another process.
func (b *bearer) token() string {
	if b.how == carryLive {
		return b.live.Token().String()
	}
	return b.text
}

// session returns what the next operation is to see.
func (b *bearer) session() (*session.Session, error) {
	if b.how == carryLive {
		return b.live, nil
	}
	t, err := b.parsed()
	return session.New(t), err
}

func (b *bearer) parsed() (token.Token, error) {
	if b.text == "" {
		return token.Token{}, nil
	}
	return token.Parse(b.text)
}

// observe merges what another process handed on.
func (b *bearer) observe(text string) error {
	if text == "" {
		return nil
	}
	t, err := token.Parse(text)
	if err != nil {
		return err
	}
	s, err := b.session()
	if err != nil {
		return err
	}
	s.Observe(t)
	b.keep(s)
	return nil
}

// keep carries a session's state on.
func (b *bearer) keep(s *session.Session) {
	if b.how != carryLive {
		b.text = s.Token().String()
	}
}

// need is what a token asks for, for those who ask whether it could be had.
type need struct {
	lsn      uint64
	timeline uint32
	nodes    int // standbys that were read, each of which may serve, or tell
	// primary is why only a primary will do; empty if a standby may.
	primary string
}

// Reasons why only a primary can serve a read.
const (
	needStrong  = "it asked for the primary"
	needWrote   = "a write's position is not known"
	needSaw     = "a position read on the primary is not known"
	needSeveral = "positions of several standbys are not known"
)

func needOf(t token.Token) need {
	var n need
	var most token.Position
	for _, e := range t.Entries() {
		switch n.nodes = max(n.nodes, len(e.SeenNodes)); {
		case e.Wrote:
			n.primary = needWrote
		case e.SeenPrimary:
			n.primary = needSaw
		case n.nodes > 1:
			n.primary = needSeveral
		}
		for _, p := range []token.Position{e.Write, e.Floor} {
			if p.Compare(most) > 0 {
				most = p
			}
		}
	}
	n.lsn, n.timeline = uint64(most.LSN), most.Timeline
	return n
}

package policy

import (
	"context"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
)

// givenElsewhere are the reasons of statements that never get to Decide.
var givenElsewhere = map[Reason]bool{
	Undecided: true, ByDefault: true, ByResolver: true, NotPure: true, InTransaction: true, LookupBeforeWrite: true,
}

// decideCase is one way to each reason.
type decideCase struct {
	name     string
	settings Settings
	at       []uint64 // positions of the standbys, the primary being at 1000
	prepare  func(*rig, *Request)
	replica  int // -1: the primary
	why      Reason
}

var decideCases = []decideCase{
	{
		"strong",
		Settings{},
		[]uint64{1000},
		func(_ *rig, q *Request) { q.Level = Strong }, -1, ByStrong,
	},
	{
		"no set",
		Settings{},
		[]uint64{1000},
		func(_ *rig, q *Request) { q.Set = nil }, -1, NoReplicas,
	},
	{
		"empty set",
		Settings{},
		nil,
		func(*rig, *Request) {}, -1, NoReplicas,
	},
	{
		"stale ok",
		Settings{},
		[]uint64{10},
		func(_ *rig, q *Request) { q.Level = StaleOK }, 0, Anywhere,
	},
	{
		"stale ok never looks at the session",
		Settings{},
		[]uint64{10},
		func(_ *rig, q *Request) { q.Level, q.Sessions[0] = StaleOK, wrote(900) }, 0, Anywhere,
	},
	{
		"nothing to be seen",
		Settings{},
		[]uint64{10},
		func(*rig, *Request) {}, 0, Anywhere,
	},
	{
		"caught up exactly",
		Settings{},
		[]uint64{900},
		func(_ *rig, q *Request) { q.Sessions[0] = wrote(900) }, 0, CaughtUp,
	},
	{
		"the one that has caught up",
		Settings{},
		[]uint64{899, 900},
		func(_ *rig, q *Request) { q.Sessions[0] = wrote(900) }, 1, CaughtUp,
	},
	{
		"both sessions count",
		Settings{},
		[]uint64{850, 900},
		func(_ *rig, q *Request) { q.Sessions = []*session.Session{wrote(800), wrote(900)} }, 1, CaughtUp,
	},
	{
		"one byte short, no wait",
		Settings{},
		[]uint64{899},
		func(_ *rig, q *Request) { q.Sessions[0] = wrote(900) }, -1, Behind,
	},
	{
		"short for the whole wait",
		Settings{Wait: 20 * time.Millisecond},
		[]uint64{899},
		func(_ *rig, q *Request) { q.Sessions[0] = wrote(900) }, -1, Behind,
	},
	{
		"catches up",
		Settings{Wait: patience},
		[]uint64{800},
		func(r *rig, q *Request) {
			r.servers[0].Set(func(st *fakepg.State) { st.LSN = 900 }) // nobody knows yet
			q.Sessions[0] = wrote(900)
		}, 0, Awaited,
	},
	{
		"may have caught up by now",
		Settings{Wait: patience},
		[]uint64{899},
		func(r *rig, q *Request) { q.Sessions[0], r.set.Replicas[0].Checks = wrote(900), true }, 0, Checked,
	},
	{
		"a mode without replicas",
		Settings{Mode: PrimaryOnly},
		[]uint64{1000},
		func(*rig, *Request) {}, -1, ByMode,
	},
	{
		"wrote just now",
		Settings{Window: time.Hour},
		[]uint64{1000},
		func(_ *rig, q *Request) { q.Sessions[0] = wroteAgo(900, time.Minute) }, -1, InWindow,
	},
	{
		"wrote long ago",
		Settings{Window: time.Minute},
		[]uint64{899, 900},
		func(_ *rig, q *Request) { q.Sessions[0] = wroteAgo(900, time.Hour) }, 1, CaughtUp,
	},
	{
		"no more may fall back",
		Settings{Fallback: Fallback{Concurrent: 1}},
		[]uint64{899},
		func(r *rig, q *Request) {
			r.fallBack()
			q.Sessions[0] = wrote(900)
		}, -1, Overloaded,
	},
	{
		"no more may fall back, stale will do",
		Settings{Fallback: Fallback{Concurrent: 1, Stale: true}},
		[]uint64{899},
		func(r *rig, q *Request) {
			r.fallBack()
			q.Sessions[0] = wrote(900)
		}, 0, ServedStale,
	},
	{
		"bare LSN",
		Settings{},
		[]uint64{899, 900},
		func(_ *rig, q *Request) { q.Sessions[0] = session.New(token.FromLSN(900)) }, 1, CaughtUp,
	},
	{
		"read before",
		Settings{},
		[]uint64{950, 900, 950},
		func(r *rig, q *Request) {
			q.Sessions[0].ReadNode(key, r.node(1).State().Incarnation, later())
		}, 1, SameNode,
	},
	{
		"open transaction",
		Settings{},
		[]uint64{1000},
		func(_ *rig, q *Request) { q.Sessions[0].BeginWrite() }, -1, InWrite,
	},
	{
		"none healthy, stale ok",
		Settings{},
		[]uint64{1000},
		func(r *rig, q *Request) { r.kill(r.servers[0], r.node(0)); q.Level = StaleOK }, -1, NoneHealthy,
	},
	{
		"none healthy, token",
		Settings{Wait: patience},
		[]uint64{1000},
		func(r *rig, q *Request) { r.kill(r.servers[0], r.node(0)); q.Sessions[0] = wrote(900) }, -1, NoneHealthy,
	},
	{
		"staleness cannot be told",
		Settings{},
		[]uint64{1000},
		func(r *rig, q *Request) {
			r.kill(r.primary, r.group.Primary)
			q.Level, q.MaxStaleness = StaleOK, 1
		}, -1, NoneHealthy,
	},
	{
		"none proven",
		Settings{Wait: patience},
		[]uint64{1000},
		func(r *rig, q *Request) {
			r.servers[0].Set(func(st *fakepg.State) { st.Pooled = true })
			r.ask(r.node(0))
			q.Sessions[0] = wrote(900)
		}, -1, NoneProven,
	},
	{
		"token of a later timeline",
		Settings{Wait: patience},
		[]uint64{1000},
		func(_ *rig, q *Request) {
			q.Sessions[0] = session.New(token.FromEntries(token.Entry{Key: key, Write: at(2, 10)}))
		}, -1, OtherTimeline,
	},
	{
		"aged",
		Settings{MaxTokenAge: time.Hour},
		[]uint64{1000},
		func(_ *rig, q *Request) {
			q.Sessions[0] = session.New(token.FromEntries(token.Entry{Key: key, Write: at(1, 10), Minted: time.Now().Add(-2 * time.Hour)}))
		}, -1, TokenAged,
	},
	{
		"of any age",
		Settings{},
		[]uint64{1000},
		func(_ *rig, q *Request) {
			q.Sessions[0] = session.New(token.FromEntries(token.Entry{Key: key, Write: at(1, 10), Minted: time.Unix(1, 0)}))
		}, 0, CaughtUp,
	},
	{
		"overflow",
		Settings{},
		[]uint64{1000},
		func(_ *rig, q *Request) { q.Sessions[0] = session.New(overflow()) }, -1, TokenOverflow,
	},
	{
		"mark, and the primary is down",
		Settings{},
		[]uint64{1000},
		func(r *rig, q *Request) {
			q.Sessions[0].MarkWrote(key)
			r.kill(r.primary, r.group.Primary)
		}, -1, MarkUnresolved,
	},
	{
		"mark, and no replica could serve",
		Settings{},
		[]uint64{1000},
		func(r *rig, q *Request) {
			q.Sessions[0].MarkWrote(key)
			r.kill(r.servers[0], r.node(0))
		}, -1, MarkUnresolved,
	},
	{
		"mark resolved",
		Settings{},
		[]uint64{900, 1000},
		func(_ *rig, q *Request) { q.Sessions[0].MarkWrote(key) }, 1, CaughtUp,
	},
	{
		"the only one failed, token",
		Settings{Wait: patience},
		[]uint64{1000},
		func(r *rig, q *Request) { q.Sessions[0], q.Exclude = wrote(900), r.set.Replicas[0] }, -1, ReplicaFailed,
	},
	{
		"the only one failed, stale ok",
		Settings{},
		[]uint64{1000},
		func(r *rig, q *Request) { q.Level, q.Exclude = StaleOK, r.set.Replicas[0] }, -1, ReplicaFailed,
	},
	{
		"one failed, the other is behind",
		Settings{},
		[]uint64{1000, 10},
		func(r *rig, q *Request) { q.Sessions[0], q.Exclude = wrote(900), r.set.Replicas[0] }, -1, Behind,
	},
	{
		"one failed",
		Settings{},
		[]uint64{1000, 1000},
		func(r *rig, q *Request) { q.Sessions[0], q.Exclude = wrote(900), r.set.Replicas[0] }, 1, CaughtUp,
	},
	{
		"preferred",
		Settings{},
		[]uint64{1000, 1000, 1000},
		func(r *rig, q *Request) { q.Sessions[0], q.Prefer = wrote(900), r.set.Replicas[2] }, 2, CaughtUp,
	},
	{
		"preferred, stale ok",
		Settings{},
		[]uint64{10, 10, 10},
		func(r *rig, q *Request) { q.Level, q.Prefer = StaleOK, r.set.Replicas[2] }, 2, Anywhere,
	},
	{
		"preferred but behind",
		Settings{},
		[]uint64{1000, 10},
		func(r *rig, q *Request) { q.Sessions[0], q.Prefer = wrote(900), r.set.Replicas[1] }, 0, CaughtUp,
	},
	{
		"preferred but failed",
		Settings{},
		[]uint64{1000, 1000},
		func(r *rig, q *Request) { q.Level, q.Prefer, q.Exclude = StaleOK, r.set.Replicas[1], r.set.Replicas[1] }, 0, Anywhere,
	},
}

// overflow is a token that names 16 other clusters and had no room for ours.
func overflow() token.Token {
	var entries []token.Entry
	for i := range token.MaxEntries + 1 {
		entries = append(entries, token.Entry{Key: token.Key{System: uint64(i + 1)}, Write: at(1, 5)})
	}
	return token.FromEntries(entries...)
}

func TestDecide(t *testing.T) {
	for _, tc := range decideCases {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, tc.settings, tc.at...)
			q := r.read(session.New())
			tc.prepare(r, q)
			d := r.decide(q)
			r.want(d, tc.replica, tc.why)
			if waits := tc.why == Awaited || tc.why == Behind; d.Waited != 0 && !waits {
				t.Errorf("waited %s for nothing", d.Waited)
			}
			if d.Level != q.Level {
				t.Errorf("level: have %s, want %s", d.Level, q.Level)
			}
		})
	}
}

// After a failover every position before it is of another timeline: what of it
// was lost, only the primary's history tells.
func TestTokenOfAnEarlierTimeline(t *testing.T) {
	primary, standby := fakepg.PrimaryAt(1000), fakepg.StandbyAt(2, 1000)
	primary.Timeline, standby.Timeline = 2, 2
	r := newRigOf(t, Settings{Wait: patience}, primary, standby)
	q := r.read(wrote(10))
	d := r.decide(q)
	r.want(d, -1, OtherTimeline)
	if d.Want != at(1, 10) || d.Gap() != 0 {
		t.Errorf("have want %s, gap %d", d.Want, d.Gap())
	}
	// The read of the primary brings its position along.
	q.Sessions[0].Advance(key, at(2, 1000), later(), false)
	r.want(r.decide(q), 0, CaughtUp)
}

func TestClusterThatIsNotKnown(t *testing.T) {
	primary := fakepg.PrimaryAt(1000)
	primary.Version = "9.6" // never becomes known
	r := newRigOf(t, Settings{}, primary, fakepg.StandbyAt(2, 1000))
	r.want(r.decide(r.read(wrote(10))), -1, UnknownCluster)
	q := r.read(session.New())
	r.want(r.decide(q), 0, Anywhere)
	// Which server it was that answered, nobody can prove.
	if d := r.decide(q); d.Incarnation != 0 {
		t.Errorf("incarnation: have %d, want none", d.Incarnation)
	}
}

func TestCanceled(t *testing.T) {
	r := newRig(t, Settings{Wait: patience}, 10)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	d := r.router.Decide(ctx, r.read(wrote(900)))
	r.want(d, -1, Canceled)
}

func TestEveryReasonIsReached(t *testing.T) {
	reached := map[Reason]bool{Canceled: true, UnknownCluster: true, AfterWindow: true} // above, and for windows
	for _, tc := range decideCases {
		reached[tc.why] = true
	}
	for _, why := range Reasons() {
		if reached[why] == givenElsewhere[why] {
			t.Errorf("%s: reached by a test %v, given elsewhere %v", why, reached[why], givenElsewhere[why])
		}
	}
}

func TestReasonsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for i, why := range Reasons() {
		name := why.String()
		if int(why) != i || name == "" || seen[name] {
			t.Errorf("reason %d: have %d, %q", i, why, name)
		}
		seen[name] = true
	}
	labels := map[string]bool{}
	for _, why := range Reasons() {
		if have := why.Label(); !isLabel(have) || labels[have] || reasonLabels[why] == "" {
			t.Errorf("%s: have label %q", why, have)
		}
		labels[why.Label()] = true
	}
	if have := Reason(200).String(); seen[have] || have == "" {
		t.Errorf("unknown reason: have %q", have)
	}
}

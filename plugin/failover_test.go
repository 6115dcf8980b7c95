package rywplugin

import (
	"context"
	"errors"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
)

func on(timeline uint32, lsn uint64) token.Position {
	return token.Position{Timeline: timeline, LSN: token.LSN(lsn)}
}

// promote makes the address lead to another server, promoted at end of the timeline
// before, and the replicas follow it. Empty history: the role may not ask for it.
func (a *app) promote(history string, lsn uint64) {
	a.t.Helper()
	a.primary.Crash(func(st *fakepg.State) { st.Timeline, st.LSN, st.History = 2, lsn, history })
	for _, r := range a.replicas {
		r.Crash(func(st *fakepg.State) { st.Timeline, st.LSN = 2, lsn })
	}
	a.again()
}

// again has every server asked until it has answered.
func (a *app) again() {
	a.t.Helper()
	for _, n := range append(a.ryw.home.Replicas(), a.ryw.home.Primary) {
		n.Redial()
		if _, err := n.Sample(context.Background()); err != nil {
			a.t.Fatal(err)
		}
	}
}

func sessionAt(e token.Entry) (context.Context, *session.Session) {
	e.Key = key()
	s := session.New(token.FromEntries(e))
	return session.NewContext(context.Background(), s), s
}

const endedAt1000 = "1\t0/3E8\tno recovery target specified\n"

// What was written before the end of the timeline, every server of the next one
// has; beyond it the write may be lost, which is said, and the read served.
func TestTimelineThatWasLeft(t *testing.T) {
	strong := scopes.Strong()
	for name, tc := range map[string]struct {
		entry   token.Entry
		history string
		want    int
		lost    bool
	}{
		"before its end":          {token.Entry{Write: on(1, 1000)}, endedAt1000, 0, false},
		"beyond its end":          {token.Entry{Write: on(1, 1001)}, endedAt1000, 0, true},
		"read before its end":     {token.Entry{Floor: on(1, 900)}, endedAt1000, 0, false},
		"read beyond its end":     {token.Entry{Floor: on(1, 1001)}, endedAt1000, 0, true},
		"end not known":           {token.Entry{Write: on(1, 10)}, "", -1, true},
		"not an ancestor":         {token.Entry{Write: on(1, 10)}, "7\t0/3E8\tx\n", -1, true},
		"history not understood":  {token.Entry{Write: on(1, 10)}, "what", -1, true},
		"former beyond its end":   {token.Entry{Write: on(2, 1000), Former: on(1, 1001)}, endedAt1000, 0, true},
		"former before its end":   {token.Entry{Write: on(2, 1000), Former: on(1, 1000)}, endedAt1000, 0, false},
		"nothing on the old one":  {token.Entry{Write: on(2, 1000)}, endedAt1000, 0, false},
		"a mark of the old one":   {token.Entry{Write: on(1, 1), Wrote: true}, endedAt1000, 0, true},
		"a mark of the new one":   {token.Entry{Write: on(2, 1), Wrote: true}, endedAt1000, 0, false},
		"read on the old, strong": {token.Entry{Floor: on(1, 1001)}, endedAt1000, -1, true},
		"seen on the old, strong": {token.Entry{Write: on(1, 1001)}, endedAt1000, -1, true},
		"kept on the old, strong": {token.Entry{Write: on(1, 1000)}, endedAt1000, -1, false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, Config{}, 900)
			a.promote(tc.history, 1100)
			_, s := sessionAt(tc.entry)
			for range 3 { // the same session, each time in another process
				s = session.New(s.Token())
				db := a.db.WithContext(session.NewContext(context.Background(), s))
				if tc.want < 0 && tc.history == endedAt1000 {
					db = db.Scopes(strong)
				}
				have, e := a.read(db)
				if tc.want >= 0 && have != tc.want {
					t.Errorf("have server %d, %s, want %d", have, e, tc.want)
				}
				if e.PossiblyLost != tc.lost || errors.Is(e.Err(), ErrLostWrite) != tc.lost {
					t.Errorf("possibly lost: have %v (%s), want %v", e.PossiblyLost, e, tc.lost)
				}
			}
		})
	}
}

// A primary that was left behind is found out by a session that has seen a later
// timeline: by asking again, where its address leads to the new one by now, or by
// an error.
func TestStalePrimary(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	ctx, _ := sessionAt(token.Entry{Write: on(2, 500)})
	for name, do := range map[string]func(db *gorm.DB) error{
		"read":        func(db *gorm.DB) error { return db.Raw("select 1").Scan(&[]int{}).Error },
		"strong":      func(db *gorm.DB) error { return db.Scopes(scopes.Strong()).Raw("select 1").Scan(&[]int{}).Error },
		"row":         func(db *gorm.DB) error { return db.Raw("select 1").Row().Scan(new(int)) },
		"transaction": func(db *gorm.DB) error { return db.Transaction(func(*gorm.DB) error { return nil }) },
	} {
		if err := do(a.db.WithContext(ctx)); !errors.Is(err, ErrStalePrimary) {
			t.Errorf("%s: have %v, want %v", name, err, ErrStalePrimary)
		}
	}
	a.want(a.db, -1, policy.ByDefault)
	a.primary.Set(func(st *fakepg.State) { st.Timeline, st.LSN, st.Start = 2, 600, 9 })
	a.want(a.db.WithContext(ctx), -1, policy.OtherTimeline)
}

// A position that the primary has not reached is not waited for there: what it was,
// nobody knows, and that is said.
func TestPositionBeyondThePrimary(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	ctx, _ := sessionAt(token.Entry{Write: on(1, 5000)})
	if e := a.want(a.db.WithContext(ctx), -1, policy.Behind); !e.PossiblyLost {
		t.Errorf("have %s, want possibly lost", e)
	}
	a.primary.Advance(9000)
	if e := a.want(a.db.WithContext(ctx), -1, policy.Behind); e.PossiblyLost {
		t.Errorf("reached: have %s", e)
	}
}

// The server that answers may have been promoted after the read was decided.
func TestPromotedWhileTheReadWasUnderWay(t *testing.T) {
	a := newApp(t, Config{}, 900)
	ctx, _ := sessionAt(token.Entry{Write: on(1, 1050)})
	a.primary.Advance(100)
	a.again()
	hold := a.primary.HoldOnly("select 9")
	read := make(chan Explanation, 1)
	go func() {
		var nine []int
		read <- Explain(a.db.WithContext(ctx).Raw("select 9").Scan(&nine))
	}()
	hold.Arrived()
	a.primary.Set(func(st *fakepg.State) { st.Timeline, st.LSN, st.Start, st.History = 2, 1200, 9, endedAt1000 })
	a.ryw.home.Primary.Redial()
	hold.Release()
	if e := <-read; !e.PossiblyLost {
		t.Errorf("have %s, want possibly lost", e)
	}
}

// A commit that one server has acknowledged, and whose position is asked of another
// one that was promoted meanwhile, is not proved to have survived by that.
func TestPromotedBetweenCommitAndCapture(t *testing.T) {
	a := newApp(t, Config{}, 900)
	ctx, s := sessionAt(token.Entry{Floor: on(1, 100)})
	a.again()
	hold := a.primary.HoldOnly("insert into p")
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		a.write(a.db.WithContext(ctx))
	}()
	hold.Arrived() // the position is asked for behind it, on a new connection
	a.primary.Set(func(st *fakepg.State) { st.Timeline, st.LSN, st.Start, st.History = 2, 1200, 9, endedAt1000 })
	a.ryw.home.Primary.Redial()
	hold.Release()
	<-wrote
	a.again()
	var one []int
	e := Explain(a.db.WithContext(session.NewContext(ctx, s)).Raw("select 1").Scan(&one))
	if !e.PossiblyLost {
		t.Errorf("have %s, want possibly lost", e)
	}
}

package rywplugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
)

// app is an application on fake servers that are asked only when that is needed.
type app struct {
	t        *testing.T
	db       *gorm.DB
	ryw      *Plugin
	primary  *fakepg.Server
	replicas []*fakepg.Server
}

// newApp has a primary at position 1000 and replicas at the positions given.
func newApp(t *testing.T, cfg Config, positions ...uint64) *app {
	t.Helper()
	a := &app{t: t, primary: fakepg.New(t, fakepg.PrimaryAt(1000))}
	for i, lsn := range positions {
		a.replicas = append(a.replicas, fakepg.New(t, fakepg.StandbyAt(2+i, lsn)))
	}
	a.db = open(t, a.primary)
	cfg.Replicas, cfg.ProbeInterval, cfg.ProbeTimeout = dialectors(a.replicas...), time.Hour, 10*time.Second
	if cfg.MaxWait == 0 {
		cfg.MaxWait = NoWait
	}
	a.ryw = use(t, a.db, cfg)
	ready(t, a.ryw)
	return a
}

// read sends a pure read and says which server got it: -1 is the primary.
func (a *app) read(db *gorm.DB) (int, Explanation) {
	a.t.Helper()
	const text = "select 1 as one"
	before := a.got(text)
	var one []int
	tx := db.Raw(text).Scan(&one)
	if tx.Error != nil {
		a.t.Fatalf("read: %v", tx.Error)
	}
	after := a.got(text)
	for i := range after {
		if after[i] != before[i] {
			return i - 1, Explain(tx)
		}
	}
	a.t.Fatal("read: no server got it")
	return 0, Explanation{}
}

// got is how often each server was sent a text, the primary first.
func (a *app) got(text string) []int {
	var n []int
	for _, s := range append([]*fakepg.Server{a.primary}, a.replicas...) {
		count := 0
		for _, sql := range s.Statements() {
			if strings.Contains(sql, text) {
				count++
			}
		}
		n = append(n, count)
	}
	return n
}

func (a *app) want(db *gorm.DB, server int, why policy.Reason) Explanation {
	a.t.Helper()
	have, e := a.read(db)
	if have != server || e.Reason != why || e.Replica != (server >= 0) {
		a.t.Errorf("have server %d, %s, want %d, %s", have, e, server, why)
	}
	return e
}

func (a *app) write(db *gorm.DB) *gorm.DB {
	a.t.Helper()
	tx := db.Exec("insert into p values (1)")
	if tx.Error != nil {
		a.t.Fatalf("write: %v", tx.Error)
	}
	return tx
}

func withSession() (context.Context, *session.Session) {
	s := session.New()
	return session.NewContext(context.Background(), s), s
}

func TestDefaultIsThePrimary(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	a.want(a.db, -1, policy.ByDefault)
	a.want(a.db.Scopes(scopes.StaleOK()), 0, policy.Anywhere)
	a.want(a.db.WithContext(scopes.WithStaleOK(context.Background())), 0, policy.Anywhere)
	a.want(a.db.WithContext(scopes.WithStaleOK(context.Background())).Scopes(scopes.Strong()), -1, policy.ByStrong)
	b := newApp(t, Config{Default: StaleOK}, 1000)
	b.want(b.db, 0, policy.Anywhere)
}

// A session's write is read back, on a replica as soon as one has it.
func TestSessionReadsItsWrites(t *testing.T) {
	a := newApp(t, Config{}, 900, 900)
	ctx, s := withSession()
	db := a.db.WithContext(ctx)
	tx := a.write(db)
	if e, _ := s.Token().Entry(key()); e.Write != position(1000) || e.Marked() {
		t.Errorf("session: have %+v", e)
	}
	if e, _ := Token(tx).Entry(key()); e.Write != position(1000) || e.Marked() {
		t.Errorf("token of the write: have %+v", e)
	}
	e := a.want(db, -1, policy.Behind)
	if e.Want != position(1000) || e.Have != position(900) || e.Gap != 100 {
		t.Errorf("have %s", e)
	}
	ready(t, a.ryw)
	if n := a.ryw.Status().Nodes[1]; n.Gap != 100 || n.LagKnown || n.Lag == 0 {
		t.Errorf("behind all that is remembered: have gap %d, lag %s, known %v", n.Gap, n.Lag, n.LagKnown)
	}
	a.replicas[1].Set(func(st *fakepg.State) { st.LSN = 1000 })
	ready(t, a.ryw)
	if n := a.ryw.Status().Nodes[2]; n.Gap != 0 || !n.LagKnown || n.Lag != 0 {
		t.Errorf("caught up: have gap %d, lag %s, known %v", n.Gap, n.Lag, n.LagKnown)
	}
	a.want(db, 1, policy.CaughtUp)
	// Others are not kept from anything.
	if _, e := a.read(a.db.Scopes(scopes.StaleOK())); e.Reason != policy.Anywhere {
		t.Errorf("other session: have %s", e)
	}
	if st := a.ryw.Status(); st.Captures != 1 || st.Marks != 0 || st.Reads[policy.CaughtUp] != 1 {
		t.Errorf("status: have %+v", st)
	}
}

func key() token.Key { return token.Key{System: fakepg.System} }

func position(lsn token.LSN) token.Position { return token.Position{Timeline: 1, LSN: lsn} }

// Every form of the hint carries the token; another process has no session.
func TestTokenIsHonoured(t *testing.T) {
	a := newApp(t, Config{}, 900, 1000)
	tok := Token(a.write(a.db))
	for name, db := range map[string]*gorm.DB{
		"token":   a.db.Scopes(scopes.ReadYourWrites(tok)),
		"text":    a.db.Scopes(scopes.ReadYourWrites(tok.String())),
		"LSN":     a.db.Scopes(scopes.ReadYourWrites("0/3E8")),
		"clause":  a.db.Clauses(scopes.ReadYourWrites(tok).Clause()),
		"context": a.db.WithContext(scopes.WithReadYourWrites(context.Background(), tok)),
		"session": a.db.WithContext(session.NewContext(context.Background(), session.New(tok))),
	} {
		if have, e := a.read(db); have != 1 {
			t.Errorf("%s: have server %d, %s, want the replica that has caught up", name, have, e)
		}
	}
	if err := a.db.Scopes(scopes.ReadYourWrites("bad")).Raw("select 1").Row().Scan(new(int)); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("bad token: have %v, want token.ErrInvalid", err)
	}
}

// A bound in one hint holds beside the token in another.
func TestBoundBesideAToken(t *testing.T) {
	a := newApp(t, Config{}, 950, 1000)
	tok := token.FromEntries(token.Entry{Key: key(), Write: position(900)})
	for range 10 { // either has the token's position
		a.want(a.db.Scopes(scopes.ReadYourWrites(tok), scopes.StaleOK(scopes.MaxStaleness(time.Hour))), 1, policy.CaughtUp)
	}
	ctx := session.NewContext(scopes.WithStaleOK(context.Background(), scopes.MaxStaleness(time.Hour)), session.New(tok))
	for range 10 {
		if have, e := a.read(a.db.WithContext(ctx)); have != 1 {
			t.Errorf("have server %d, %s, want the replica within the bound", have, e)
		}
	}
}

func TestFailedCaptureIsAMark(t *testing.T) {
	a := newApp(t, Config{CaptureTimeout: 20 * time.Millisecond}, 1000)
	ctx, s := withSession()
	hold := a.holdPositions()
	tx := a.write(a.db.WithContext(ctx))
	hold.Release()
	if e, _ := s.Token().Entry(key()); !e.Wrote || e.Write != position(1) {
		t.Errorf("session: have %+v, want a mark, and on which timeline", e)
	}
	if e, _ := Token(tx).Entry(key()); !e.Wrote {
		t.Errorf("token: have %+v, want a mark", e)
	}
	if st := a.ryw.Status(); st.CaptureFailures != 1 || st.Marks != 1 || st.Captures != 0 {
		t.Errorf("status: have %+v", st)
	}
	// The next read resolves it.
	a.want(a.db.WithContext(ctx), 0, policy.CaughtUp)
}

// holdPositions keeps the primary from answering the watcher, but not the
// application, whose connection is used once before.
func (a *app) holdPositions() *fakepg.Hold {
	return a.primary.HoldOnly("pg_current_wal_insert_lsn")
}

func TestWritesInATransaction(t *testing.T) {
	a := newApp(t, Config{}, 900)
	ctx, s := withSession()
	var inside, sink token.Token
	err := a.db.WithContext(Into(ctx, &sink)).Transaction(func(tx *gorm.DB) error {
		a.write(tx)
		inside = Token(tx)
		if have, e := a.read(tx); have != -1 || e.Reason != policy.InTransaction {
			t.Errorf("read inside: have server %d, %s", have, e)
		}
		a.want(a.db.WithContext(ctx), -1, policy.InWrite)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := inside.Entry(key()); !e.Wrote {
		t.Errorf("token inside: have %+v, want a mark", e)
	}
	for name, tok := range map[string]token.Token{"session": s.Token(), "sink": sink} {
		if e, _ := tok.Entry(key()); e.Write != position(1000) || e.Marked() {
			t.Errorf("%s: have %+v", name, e)
		}
	}
	a.want(a.db.WithContext(ctx), -1, policy.Behind)
}

// The usual "defer tx.Rollback()" says nothing new behind a Commit.
func TestRollbackBehindACommit(t *testing.T) {
	a := newApp(t, Config{}, 900)
	ctx, s := withSession()
	tx := a.db.WithContext(ctx).Begin()
	a.write(tx)
	if err := tx.Commit().Error; err != nil {
		t.Fatal(err)
	}
	tx.Rollback()
	if e, _ := s.Token().Entry(key()); e.Write != position(1000) || e.Marked() {
		t.Errorf("session: have %+v", e)
	}
}

func TestRollbackIsARead(t *testing.T) {
	a := newApp(t, Config{}, 900)
	ctx, s := withSession()
	undo := errors.New("undo")
	err := a.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		a.write(tx)
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	if e, _ := s.Token().Entry(key()); !e.SeenPrimary || e.Wrote {
		t.Errorf("session: have %+v", e)
	}
}

// database/sql rolls a transaction back by itself when its context ends. What was
// read in it has been read all the same.
func TestTransactionWhoseContextEnds(t *testing.T) {
	a := newApp(t, Config{}, 900)
	ctx, s := withSession()
	ctx, cancel := context.WithCancel(ctx)
	tx := a.db.WithContext(ctx).Begin()
	a.read(tx)
	cancel()
	for end := time.Now().Add(10 * time.Second); ; { // by a goroutine of the context's
		if e, _ := s.Token().Entry(key()); e.SeenPrimary {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("session: have %+v, want to have seen the primary", s.Token().Entries())
		}
	}
	if err := tx.Rollback().Error; err == nil {
		t.Error("rolled back a second time")
	}
	if err := tx.Commit().Error; err == nil {
		t.Error("committed what was rolled back")
	}
	fresh := session.NewContext(context.Background(), s)
	a.want(a.db.WithContext(fresh), -1, policy.Behind) // and not: a write under way
}

type withHook struct {
	ID int64
}

var hooked func(tx *gorm.DB) error

func (withHook) TableName() string { return "p" }

func (*withHook) BeforeUpdate(tx *gorm.DB) error { return hooked(tx) }

// What a hook writes commits with the statement that it belongs to.
func TestTokenOfAWriteInAHook(t *testing.T) {
	a := newApp(t, Config{}, 900)
	ctx, s := withSession()
	var inside token.Token
	hooked = func(tx *gorm.DB) error {
		inside = Token(a.write(tx))
		a.want(a.db.WithContext(tx.Statement.Context), -1, policy.InWrite)
		return nil
	}
	tx := a.db.WithContext(ctx).Model(&withHook{ID: 1}).Update("id", 2)
	if tx.Error != nil {
		t.Fatal(tx.Error)
	}
	if e, _ := inside.Entry(key()); !e.Wrote {
		t.Errorf("token inside: have %s, want a mark", inside)
	}
	if e, _ := s.Token().Entry(key()); e.Write != position(1000) || e.Marked() {
		t.Errorf("session: have %+v", e)
	}
}

// A replica that died is replaced before the caller notices; the watcher has not
// noticed either.
func TestReadIsRetriedElsewhere(t *testing.T) {
	tok := token.FromEntries(token.Entry{Key: key(), Write: position(900)})
	for _, s := range []scopes.Scope{scopes.StaleOK(), scopes.ReadYourWrites(tok)} {
		a := newApp(t, Config{}, 1000, 1000, 1000)
		for dead := range a.replicas {
			a.replicas[dead].Refuse(true)
			a.replicas[dead].Drop()
			for range 5 {
				have, e := a.read(a.db.Scopes(s))
				if have >= 0 && have <= dead || dead < 1 && have < 0 {
					t.Errorf("%d dead: have server %d, %s", dead+1, have, e)
				}
			}
		}
		a.want(a.db.Scopes(s), -1, policy.ReplicaFailed)
		for _, rep := range a.ryw.router.Pools.All() {
			if rep.Replica != nil && rep.Replica.Busy() != 0 {
				t.Errorf("reads under way: have %d, want none", rep.Replica.Busy())
			}
		}
	}
}

func TestMixedStatementsGoToThePrimary(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	for _, text := range []string{"select nextval('s')", "select 1 from p for update", "with x as (delete from p returning 1) select 1 from x"} {
		before := a.got(text)
		tx := a.db.Scopes(scopes.StaleOK()).Raw(text).Scan(&[]int{})
		after := a.got(text)
		if tx.Error != nil || after[0] != before[0]+1 || after[1] != before[1] || Explain(tx).Reason != policy.NotPure {
			t.Errorf("%s: have %v, %s, %v", text, after, Explain(tx), tx.Error)
		}
	}
}

func TestAfterCloseEverythingGoesToThePrimary(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	ctx, s := withSession()
	if err := a.ryw.Close(); err != nil {
		t.Fatal(err)
	}
	a.want(a.db.Scopes(scopes.StaleOK()), -1, policy.NoneHealthy)
	a.write(a.db.WithContext(ctx))
	if e, _ := s.Token().Entry(key()); !e.Wrote {
		t.Errorf("session: have %+v, want a mark", e)
	}
	a.want(a.db.WithContext(ctx), -1, policy.MarkUnresolved)
}

// Without replicas nothing is asked for.
func TestWithoutReplicas(t *testing.T) {
	a := newApp(t, Config{})
	ctx, s := withSession()
	a.write(a.db.WithContext(ctx))
	a.want(a.db.WithContext(ctx), -1, policy.NoReplicas)
	if n := a.got("pg_current_wal"); n[0] != 0 {
		t.Errorf("position queries: have %d, want none", n[0])
	}
	if tok := s.Token(); !tok.At(0).Wrote {
		t.Errorf("session: have %+v, want a mark", tok.Entries())
	}
}

// In mode Off a session sees its writes, and what it has read is not kept.
func TestMonotonicOff(t *testing.T) {
	a := newApp(t, Config{Monotonic: MonotonicOff}, 900, 800)
	ctx, s := withSession()
	seen := map[int]bool{}
	for range 40 {
		server, _ := a.read(a.db.WithContext(ctx))
		seen[server] = true
	}
	if !seen[0] || !seen[1] {
		t.Errorf("have servers %v, want both, whichever was read before", seen)
	}
	a.want(a.db.WithContext(ctx).Scopes(scopes.Strong()), -1, policy.ByStrong)
	if !s.Token().IsZero() {
		t.Errorf("session: have %+v, want nothing", s.Token().Entries())
	}
	a.write(a.db.WithContext(ctx))
	a.want(a.db.WithContext(ctx), -1, policy.Behind)
	floor := token.FromEntries(token.Entry{Key: key(), Floor: position(990), SeenPrimary: true})
	if have, e := a.read(a.db.Scopes(scopes.ReadYourWrites(floor))); have < 0 {
		t.Errorf("floor of a token: have %s", e)
	}
}

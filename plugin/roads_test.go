package rywplugin

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
	"gorm.io/plugin/dbresolver"
)

type person struct {
	ID   int64
	Name string
}

func (person) TableName() string { return "p" }

// sentTo says which server got the statement that do sends, -1 being the primary.
func (a *app) sentTo(text string, do func(db *gorm.DB)) int {
	a.t.Helper()
	before := a.got(text)
	do(a.db)
	for i, n := range a.got(text) {
		if n != before[i] {
			return i - 1
		}
	}
	a.t.Fatalf("no server got %q", text)
	return 0
}

// What GORM looks up before it writes is asked of the primary, whatever the
// default, the query or the context says; what looks much the same is not.
func TestLookupsBeforeWriting(t *testing.T) {
	a := newApp(t, Config{Default: StaleOK}, 1000)
	var p person
	for name, tc := range map[string]struct {
		want int
		do   func(db *gorm.DB)
	}{
		"FirstOrCreate": {-1, func(db *gorm.DB) { db.FirstOrCreate(&p, person{Name: "a"}) }},
		"FirstOrInit":   {-1, func(db *gorm.DB) { db.FirstOrInit(&p, person{Name: "a"}) }},
		"FirstOrCreate, ordered, stale": {-1, func(db *gorm.DB) {
			db.Scopes(scopes.StaleOK()).Order("name").FirstOrCreate(&p)
		}},
		"columns of a table": {-1, func(db *gorm.DB) {
			if rows, err := db.Table("p").Limit(1).Rows(); err == nil {
				_ = rows.Close()
			}
		}},
		"First": {0, func(db *gorm.DB) { db.First(&p) }},
		"Last":  {0, func(db *gorm.DB) { db.Last(&p) }},
		"Take":  {0, func(db *gorm.DB) { db.Take(&p) }},
		"Find":  {0, func(db *gorm.DB) { db.Limit(1).Order("id").Find(&p) }},
		"rows of a table": {0, func(db *gorm.DB) {
			if rows, err := db.Table("p").Where("id = 1").Limit(1).Rows(); err == nil {
				_ = rows.Close()
			}
		}},
	} {
		if have := a.sentTo(`FROM "p"`, tc.do); have != tc.want {
			t.Errorf("%s: have server %d, want %d", name, have, tc.want)
		}
	}
}

// The one connection of Connection is left alone, for reads and writes; that
// something was read on it, the session knows.
func TestConnection(t *testing.T) {
	a := newApp(t, Config{Default: StaleOK}, 900)
	ctx, s := withSession()
	err := a.db.WithContext(ctx).Connection(func(tx *gorm.DB) error {
		for name, tc := range map[string]string{"read": "select 1", "set": "set x = 1", "write": "update p set id = 1"} {
			if have := a.sentTo(tc, func(*gorm.DB) { tx.Raw(tc).Scan(&[]int{}) }); have != -1 {
				t.Errorf("%s: have server %d, want the primary", name, have)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := s.Token().Entry(key()); !e.SeenPrimary {
		t.Errorf("session: have %+v, want to have seen the primary", e)
	}
}

// A pool that neither GORM nor dbresolver was opened with is left alone.
func TestPoolOfSomebodyElse(t *testing.T) {
	a := newApp(t, Config{Default: StaleOK}, 1000)
	other := fakepg.New(t, fakepg.PrimaryAt(5))
	theirs := open(t, other).ConnPool
	for range 3 {
		db := a.db.Session(&gorm.Session{Initialized: true})
		db.Statement.ConnPool = theirs
		if err := db.Raw("select 7").Scan(&[]int{}).Error; err != nil {
			t.Fatal(err)
		}
	}
	if n := a.got("select 7"); n[0]+n[1] != 0 {
		t.Errorf("statements on our servers: have %v, want none", n)
	}
	if st := a.ryw.Status(); len(st.Nodes) != 2 {
		t.Errorf("nodes: have %d, want the pool not taken for a server of ours", len(st.Nodes))
	}
}

func TestReadOnlyTransactions(t *testing.T) {
	readOnly := &sql.TxOptions{ReadOnly: true}
	stale := scopes.StaleOK().Clause()
	behind := scopes.ReadYourWrites(token.FromEntries(token.Entry{Key: key(), Write: position(950)})).Clause()
	ses := func(s *session.Session) context.Context { return session.NewContext(context.Background(), s) }
	for name, tc := range map[string]struct {
		begin func(db *gorm.DB) *gorm.DB
		want  int
		why   policy.Reason
	}{
		"no hint":             {func(db *gorm.DB) *gorm.DB { return db.Begin(readOnly) }, -1, policy.InTransaction},
		"clause":              {func(db *gorm.DB) *gorm.DB { return db.Clauses(stale).Begin(readOnly) }, 0, policy.Anywhere},
		"read-write":          {func(db *gorm.DB) *gorm.DB { return db.Clauses(stale).Begin() }, -1, policy.InTransaction},
		"strong":              {func(db *gorm.DB) *gorm.DB { return db.Clauses(scopes.Strong().Clause()).Begin(readOnly) }, -1, policy.InTransaction},
		"token, behind":       {func(db *gorm.DB) *gorm.DB { return db.Clauses(behind).Begin(readOnly) }, -1, policy.InTransaction},
		"context":             {func(db *gorm.DB) *gorm.DB { return db.WithContext(scopes.WithStaleOK(ses(nil))).Begin(readOnly) }, 0, policy.Anywhere},
		"session":             {func(db *gorm.DB) *gorm.DB { return db.WithContext(ses(session.New())).Begin(readOnly) }, 0, policy.Anywhere},
		"clause over session": {func(db *gorm.DB) *gorm.DB { return db.WithContext(ses(session.New())).Clauses(behind).Begin(readOnly) }, -1, policy.InTransaction},
		"repeatable read": {func(db *gorm.DB) *gorm.DB {
			return db.Clauses(stale).Begin(&sql.TxOptions{ReadOnly: true, Isolation: sql.LevelRepeatableRead})
		}, 0, policy.Anywhere},
		"serializable": {func(db *gorm.DB) *gorm.DB {
			return db.Clauses(stale).Begin(&sql.TxOptions{ReadOnly: true, Isolation: sql.LevelSerializable})
		}, -1, policy.InTransaction},
		"dbresolver.Read":        {func(db *gorm.DB) *gorm.DB { return db.Clauses(dbresolver.Read).Begin() }, 0, policy.Anywhere},
		"dbresolver.Read, token": {func(db *gorm.DB) *gorm.DB { return db.Clauses(dbresolver.Read, behind).Begin() }, -1, policy.InTransaction},
		"dbresolver.Write":       {func(db *gorm.DB) *gorm.DB { return db.Clauses(dbresolver.Write, stale).Begin() }, -1, policy.InTransaction},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, Config{}, 900)
			tx := tc.begin(a.db)
			if tx.Error != nil {
				t.Fatal(tx.Error)
			}
			have, e := a.read(tx)
			if have != tc.want || e.Reason != tc.why || e.Replica != (tc.want >= 0) {
				t.Errorf("have server %d, %s, want %d, %s", have, e, tc.want, tc.why)
			}
			if err := tx.Commit().Error; err != nil {
				t.Fatal(err)
			}
			a.idle()
		})
	}
}

// Prepared statements cannot cross servers: the primary it is.
func TestReadOnlyTransactionWithPreparedStatements(t *testing.T) {
	a := newApp(t, Config{}, 900)
	tx := a.db.Session(&gorm.Session{PrepareStmt: true}).Clauses(scopes.StaleOK().Clause()).Begin(&sql.TxOptions{ReadOnly: true})
	if tx.Error != nil {
		t.Fatal(tx.Error)
	}
	if e := Explain(tx); e.Replica {
		t.Errorf("have %s, want the primary", e)
	}
	if err := tx.Rollback().Error; err != nil {
		t.Fatal(err)
	}
}

// idle fails the test if a replica counts a read as under way.
func (a *app) idle() {
	a.t.Helper()
	for _, k := range a.ryw.router.Pools.All() {
		if k.Replica != nil && k.Replica.Busy() != 0 {
			a.t.Errorf("reads under way: have %d, want none", k.Replica.Busy())
		}
	}
}

// What was read in a transaction on a replica is not unseen outside of it, before
// its end and after.
func TestReadOnlyTransactionIsARead(t *testing.T) {
	for name, end := range map[string]func(*gorm.DB) error{
		"open":       func(*gorm.DB) error { return nil },
		"commit":     func(tx *gorm.DB) error { return tx.Commit().Error },
		"rollback":   func(tx *gorm.DB) error { return tx.Rollback().Error },
		"left alone": func(*gorm.DB) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, Config{}, 900, 800)
			ctx, s := withSession()
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			a.replicas[1].Refuse(true)
			a.replicas[1].Drop()
			tx := a.db.WithContext(ctx).Begin(&sql.TxOptions{ReadOnly: true})
			if have, e := a.read(tx); have != 0 {
				t.Fatalf("have server %d, %s", have, e)
			}
			if err := end(tx); err != nil {
				t.Fatal(err)
			}
			if name == "left alone" {
				cancel()
			}
			tok := s.Token()
			if e := tok.At(0); len(e.SeenNodes) != 1 && e.Floor != position(900) {
				t.Errorf("session: have %+v, want the node that was read", e)
			}
			a.replicas[0].Refuse(true)
			a.replicas[0].Drop()
			a.replicas[1].Refuse(false)
			after := session.NewContext(context.Background(), session.New(tok))
			if have, e := a.read(a.db.WithContext(after)); have != -1 {
				t.Errorf("afterwards: have server %d, %s, want not the one that is behind", have, e)
			}
		})
	}
}

// A replica that does not take the transaction is replaced before the caller
// notices.
func TestReadOnlyTransactionIsRetried(t *testing.T) {
	a := newApp(t, Config{}, 900, 900)
	for _, r := range a.replicas {
		r.Refuse(true)
		r.Drop()
	}
	tx := a.db.Clauses(scopes.StaleOK().Clause()).Begin(&sql.TxOptions{ReadOnly: true})
	if tx.Error != nil {
		t.Fatal(tx.Error)
	}
	if have, _ := a.read(tx); have != -1 {
		t.Errorf("have server %d, want the primary", have)
	}
	_ = tx.Rollback()
	a.idle()
}

func TestSQLTx(t *testing.T) {
	a := newApp(t, Config{}, 900)
	ctx, s := withSession()
	err := a.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		raw, ok := SQLTx(tx)
		if !ok {
			t.Fatal("have none in a transaction")
		}
		_, err := raw.ExecContext(context.Background(), "insert into p values (1)")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := s.Token().Entry(key()); e.Write != position(1000) {
		t.Errorf("session: have %+v, want what was done with the *sql.Tx captured", e)
	}
	if _, ok := SQLTx(a.db); ok {
		t.Error("have one outside of a transaction")
	}
	if _, ok := SQLTx(nil); ok {
		t.Error("have one of nil")
	}
	foreign := a.begin()
	if have, _ := SQLTx(a.inside(ctx, foreign)); have != foreign {
		t.Errorf("have %p, want the application's own %p", have, foreign)
	}
	_ = foreign.Rollback()
}

// NoCapture asks nothing and tells nobody; a captured statement beside it in one
// transaction is captured all the same.
func TestNoCapture(t *testing.T) {
	quiet := scopes.NoCapture()
	for name, do := range map[string]func(db *gorm.DB) error{
		"exec":   func(db *gorm.DB) error { return db.Scopes(quiet).Exec("insert into p values (1)").Error },
		"update": func(db *gorm.DB) error { return db.Scopes(quiet).Model(&person{ID: 1}).Update("name", "a").Error },
		"clause": func(db *gorm.DB) error {
			return db.Clauses(quiet.Clause()).Model(&person{ID: 1}).Update("name", "a").Error
		},
		"returning": func(db *gorm.DB) error { return db.Scopes(quiet).Raw("delete from p returning 1").Scan(&[]int{}).Error },
		"rows": func(db *gorm.DB) error {
			rows, err := db.Scopes(quiet).Raw("delete from p returning 1").Rows()
			if err != nil {
				return err
			}
			return errors.Join(rows.Close(), rows.Err())
		},
		"transaction": func(db *gorm.DB) error {
			return db.Transaction(func(tx *gorm.DB) error { return tx.Scopes(quiet).Exec("insert into p values (1)").Error })
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, Config{}, 900)
			ctx, s := withSession()
			if err := do(a.db.WithContext(ctx)); err != nil {
				t.Fatal(err)
			}
			for _, e := range s.Token().Entries() {
				if e.Wrote || !e.Write.IsZero() {
					t.Errorf("session: have %+v, want nothing written", e)
				}
			}
			if st := a.ryw.Status(); st.Captures+st.CaptureFailures+st.Marks != 0 {
				t.Errorf("have %d captures, %d failures, %d marks, want none", st.Captures, st.CaptureFailures, st.Marks)
			}
		})
	}
	a := newApp(t, Config{}, 900)
	ctx, s := withSession()
	_ = a.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		a.write(tx.Scopes(quiet))
		a.write(tx)
		return nil
	})
	if e, _ := s.Token().Entry(key()); e.Write != position(1000) {
		t.Errorf("with a captured one: have %+v", e)
	}
}

// A hook's dry run, or a statement of a hook that was refused, is not the end of the
// statement on whose behalf the hook runs.
func TestDryRunInAHook(t *testing.T) {
	for name, do := range map[string]func(tx *gorm.DB){
		"dry run": func(tx *gorm.DB) {
			tx.Session(&gorm.Session{DryRun: true, NewDB: true}).Model(&person{ID: 1}).Update("name", "a")
		},
		"bad token": func(tx *gorm.DB) {
			tx.Session(&gorm.Session{NewDB: true}).Scopes(scopes.ReadYourWrites("no token")).Model(&person{ID: 1}).Update("name", "a")
		},
		"read": func(tx *gorm.DB) { tx.Session(&gorm.Session{NewDB: true}).Raw("select 1").Scan(&[]int{}) },
	} {
		a := newApp(t, Config{}, 900)
		ctx, s := withSession()
		hooked = func(tx *gorm.DB) error {
			do(tx)
			return nil
		}
		if err := a.db.WithContext(ctx).Model(&withHook{ID: 1}).Update("id", 2).Error; err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if e, _ := s.Token().Entry(key()); e.Write != position(1000) || e.Marked() {
			t.Errorf("%s: session: have %+v, want the update captured", name, e)
		}
	}
}

// A hint on a group of conditions is one of the query, and so is its error.
func TestHintOnAGroupOfConditions(t *testing.T) {
	a := newApp(t, Config{Default: StaleOK}, 900)
	tok := token.FromEntries(token.Entry{Key: key(), Write: position(950)})
	group := func(s scopes.Scope, cond any, args ...any) *gorm.DB {
		return a.db.Where(a.db.Where(cond, args...).Scopes(s)).Where("id > 0")
	}
	const text = `SELECT * FROM "p" WHERE`
	for name, cond := range map[string]any{"text": "id = 1 OR id = 2", "struct": person{ID: 1}, "map": map[string]any{"id": 1}} {
		if have := a.sentTo(text, func(*gorm.DB) { group(scopes.ReadYourWrites(tok), cond).Find(&[]person{}) }); have != -1 {
			t.Errorf("%s: have server %d, want the primary", name, have)
		}
	}
	err := group(scopes.ReadYourWrites("no token"), "id = 1").Find(&[]person{}).Error
	if !errors.Is(err, token.ErrInvalid) {
		t.Errorf("bad token: have %v, want %v", err, token.ErrInvalid)
	}
	for want, cond := range map[string]*gorm.DB{
		`a = 1 AND (id = 1 OR (id = 2))`:              a.db.Where("id = 1").Or("id = 2"),
		`a = 1 AND (id = 1 OR id = 2)`:                a.db.Where("id = 1 OR id = 2"),
		`a = 1 AND (id = 1 AND (id = 2 OR (id = 3)))`: a.db.Where("id = 1").Where(a.db.Where("id = 2").Or("id = 3")),
		`a = 1 AND (id = 1 AND (NOT id = 2))`:         a.db.Where("id = 1").Not("id = 2"),
	} {
		sql := a.db.ToSQL(func(tx *gorm.DB) *gorm.DB {
			return tx.Where("a = 1").Where(cond.Scopes(scopes.StaleOK())).Find(&[]person{})
		})
		if sql != `SELECT * FROM "p" WHERE `+want {
			t.Errorf("text: have %s, want %s", sql, want)
		}
	}
}

// The positions that rows bring are not written behind the caller's back.
func TestCollectorOfRows(t *testing.T) {
	a := newApp(t, Config{}, 900)
	var tok token.Token
	hold := a.primary.HoldOnly("pg_current_wal")
	ctx := Into(context.Background(), &tok)
	rows, err := a.db.WithContext(ctx).Raw("delete from p returning 1").Rows()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(rows.Close(), rows.Err()); err != nil {
		t.Fatal(err)
	}
	if e, _ := tok.Entry(key()); !e.Wrote {
		t.Errorf("have %s, want a mark", tok)
	}
	hold.Release()
}

// Savepoints write nothing.
func TestSavepointsWriteNothing(t *testing.T) {
	a := newApp(t, Config{}, 900)
	ctx, s := withSession()
	err := a.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		return tx.Transaction(func(tx *gorm.DB) error { return tx.Raw("select 1").Scan(&[]int{}).Error })
	})
	if err != nil {
		t.Fatal(err)
	}
	if e, _ := s.Token().Entry(key()); !e.Write.IsZero() || e.Wrote {
		t.Errorf("session: have %+v, want nothing written", e)
	}
}

// A read whose primary goes away before the first row is decided anew: by then a
// replica may have caught up, or the primary may be back.
func TestReadIsRetriedAfterThePrimaryWasLost(t *testing.T) {
	tok := token.FromEntries(token.Entry{Key: key(), Write: position(950)})
	for name, tc := range map[string]struct {
		scope scopes.Scope
		want  int
	}{
		"token":  {scopes.ReadYourWrites(tok), 0},
		"strong": {scopes.Strong(), -1},
	} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t, Config{}, 900)
			hold := a.primary.HoldOnly("select 5")
			read := make(chan error, 1)
			go func() { read <- a.db.Scopes(tc.scope).Raw("select 5").Scan(&[]int{}).Error }()
			hold.Arrived()
			a.replicas[0].Set(func(st *fakepg.State) { st.LSN = 1000 })
			ready(t, a.ryw)
			a.primary.Drop() // with what is held
			hold.Release()
			if err := <-read; err != nil {
				t.Fatal(err)
			}
			if n := a.got("select 5"); n[tc.want+1] == 0 || n[0]+n[1] < 2 {
				t.Errorf("statements: have %v, want another one on server %d", n, tc.want)
			}
		})
	}
}

// A hook's read-only transaction is part of the write that it runs for.
func TestReadOnlyTransactionOfAHook(t *testing.T) {
	a := newApp(t, Config{Default: StaleOK}, 1000)
	ctx, _ := withSession()
	hooked = func(tx *gorm.DB) error {
		in := a.db.WithContext(tx.Statement.Context).Begin(&sql.TxOptions{ReadOnly: true})
		if have, e := a.read(in); have != -1 {
			t.Errorf("have server %d, %s, want the primary", have, e)
		}
		return in.Rollback().Error
	}
	db := a.db.WithContext(ctx).Session(&gorm.Session{SkipDefaultTransaction: true})
	if err := db.Model(&withHook{ID: 1}).Update("id", 2).Error; err != nil {
		t.Fatal(err)
	}
}

// The session of a hint on one statement learns of the commit of the transaction
// that it ran in.
func TestHintOnAStatementInATransaction(t *testing.T) {
	a := newApp(t, Config{}, 900)
	scope := scopes.ReadYourWrites(token.Token{})
	err := a.db.Transaction(func(tx *gorm.DB) error {
		return tx.Scopes(scope).Model(&person{ID: 1}).Update("name", "a").Error
	})
	if err != nil {
		t.Fatal(err)
	}
	if e := a.want(a.db.Scopes(scope), -1, policy.Behind); e.Want != position(1000) {
		t.Errorf("have %s, want the commit's position wanted", e)
	}
}

// A read that was never answered has seen nothing: it does not bind its session to the
// primary, which is away.
func TestReadThatWasNotAnswered(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	ctx, s := withSession()
	a.primary.Refuse(true)
	a.primary.Drop()
	for name, do := range map[string]func(db *gorm.DB) error{
		"find": func(db *gorm.DB) error { return db.Raw("select 1").Scan(&[]int{}).Error },
		"row":  func(db *gorm.DB) error { return db.Raw("select 1").Row().Scan(new(int)) },
	} {
		if err := do(a.db.WithContext(ctx).Scopes(scopes.Strong())); err == nil {
			t.Errorf("%s: answered by nobody, without an error", name)
		}
		if !s.Token().IsZero() {
			t.Errorf("%s: session: have %+v, want nothing seen", name, s.Token().Entries())
		}
	}
	a.want(a.db.WithContext(ctx), 0, policy.Anywhere)
}

// The hint of one query's clause is not that of the transactions begun with the context
// that the query leaves behind, whose session must see the query's write.
func TestClauseDoesNotOutliveItsStatement(t *testing.T) {
	a := newApp(t, Config{}, 900)
	ctx, _ := withSession()
	stale := scopes.StaleOK().Clause()
	done := a.db.WithContext(ctx).Clauses(stale).Model(&person{ID: 1}).Update("name", "a")
	read := a.db.WithContext(ctx).Clauses(stale).Raw("select 1").Scan(&[]int{})
	for name, after := range map[string]*gorm.DB{"write": done, "read": read} {
		tx := a.db.WithContext(after.Statement.Context).Begin(&sql.TxOptions{ReadOnly: true})
		if have, e := a.read(tx); have != -1 {
			t.Errorf("behind a %s: have server %d, %s, want not the replica that is behind", name, have, e)
		}
		if err := tx.Rollback().Error; err != nil {
			t.Fatal(err)
		}
	}
}

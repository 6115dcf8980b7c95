package rywplugin

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/scopes"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
)

// thing reads something else when it was deleted.
type thing struct{ ID int }

func (*thing) AfterDelete(tx *gorm.DB) error {
	return tx.Session(&gorm.Session{NewDB: true}).Scopes(scopes.Strong()).Raw("select 2 as two").Row().Err()
}

// What returns no *gorm.DB is explained all the same.
func TestExplainInto(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	stale := a.db.Scopes(scopes.StaleOK())
	for name, tc := range map[string]struct {
		run  func(ctx context.Context) error
		node int
		why  policy.Reason
	}{
		"generics": {func(ctx context.Context) error {
			_, err := gorm.G[thing](a.db, scopes.StaleOK().Clause()).Find(ctx)
			return err
		}, 0, policy.Anywhere},
		"rows": {func(ctx context.Context) error {
			rows, err := stale.WithContext(ctx).Raw("select 1 as one").Rows()
			if err != nil {
				return err
			}
			return errors.Join(rows.Err(), rows.Close())
		}, 0, policy.Anywhere},
		"row": {func(ctx context.Context) error {
			return stale.WithContext(ctx).Raw("select 1 as one").Row().Err()
		}, 0, policy.Anywhere},
		"row of the primary": {func(ctx context.Context) error {
			return a.db.WithContext(ctx).Raw("select 1 as one").Row().Err()
		}, -1, policy.ByDefault},
		"write of generics": {func(ctx context.Context) error {
			return gorm.G[thing](a.db).Exec(ctx, "insert into p values (1)")
		}, -1, policy.NotPure},
		"write of nobody": {func(ctx context.Context) error {
			return a.db.WithContext(ctx).Scopes(scopes.NoCapture()).Exec("insert into p values (1)").Error
		}, -1, policy.NotPure},
		"the last of several": {func(ctx context.Context) error {
			db := a.db.WithContext(ctx)
			return errors.Join(db.Raw("select 1 as one").Row().Err(), db.Scopes(scopes.StaleOK()).Raw("select 1 as one").Row().Err())
		}, 0, policy.Anywhere},
		"the statement, not its hook's": {func(ctx context.Context) error {
			return a.db.WithContext(ctx).Session(&gorm.Session{SkipDefaultTransaction: true}).Delete(&thing{ID: 1}).Error
		}, -1, policy.NotPure},
		"in a transaction": {func(ctx context.Context) error {
			return a.db.WithContext(ctx).Transaction(func(tx *gorm.DB) error { return tx.Raw("select 1 as one").Row().Err() })
		}, -1, policy.InTransaction},
		"in a transaction on a replica": {func(ctx context.Context) error {
			return a.db.WithContext(scopes.WithStaleOK(ctx)).Transaction(func(tx *gorm.DB) error {
				return tx.Raw("select 1 as one").Row().Err()
			}, &sql.TxOptions{ReadOnly: true})
		}, 0, policy.Anywhere},
	} {
		t.Run(name, func(t *testing.T) {
			var e Explanation
			if err := tc.run(ExplainInto(t.Context(), &e)); err != nil {
				t.Fatal(err)
			}
			want := "primary"
			if tc.node >= 0 {
				want = a.replicas[tc.node].Addr()
			}
			if e.Node != want || e.Reason != tc.why || e.Replica != (tc.node >= 0) {
				t.Errorf("have %s, want %s: %s", e, want, tc.why)
			}
		})
	}
}

// The token is that of the statement, as Explain has it.
func TestExplainIntoHasTheToken(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	ctx, s := withSession()
	var e Explanation
	if err := gorm.G[thing](a.db).Exec(ExplainInto(ctx, &e), "insert into p values (1)"); err != nil {
		t.Fatal(err)
	}
	if have, _ := e.Token.Entry(key()); have.Write != position(1000) {
		t.Errorf("have %+v", have)
	}
	if e.Token.String() != s.Token().String() {
		t.Errorf("have %s, want the session's %s", e.Token, s.Token())
	}
}

// A context that comes from a routed statement does not explain those that ran in a
// transaction later.
func TestExplainContextInATransaction(t *testing.T) {
	a := newApp(t, Config{}, 1000)
	read := a.db.Scopes(scopes.StaleOK()).Raw("select 1 as one").Scan(new([]int))
	if e := ExplainContext(read.Statement.Context); !e.Replica {
		t.Fatalf("have %s", e)
	}
	err := a.db.WithContext(read.Statement.Context).Transaction(func(tx *gorm.DB) error {
		in := tx.Raw("select 1 as one").Scan(new([]int))
		if e := ExplainContext(in.Statement.Context); e.Reason != policy.InTransaction || e.Replica || !e.Token.IsZero() {
			t.Errorf("in the transaction: have %s, token %s", e, e.Token)
		}
		// And the other way round.
		out := a.db.WithContext(in.Statement.Context).Scopes(scopes.StaleOK()).Raw("select 1 as one").Scan(new([]int))
		if e := ExplainContext(out.Statement.Context); e.Reason != policy.Anywhere {
			t.Errorf("outside of it: have %s", e)
		}
		return in.Error
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestExplainRetries(t *testing.T) {
	a := newApp(t, Config{}, 1000, 1000)
	for _, s := range a.replicas {
		s.Fail("57P01")
	}
	var seen []Explanation
	undo := a.ryw.OnRead(func(_ context.Context, e Explanation) { seen = append(seen, e) })
	e := a.want(a.db.Scopes(scopes.ReadYourWrites(token.FromLSN(900))), -1, policy.ReplicaFailed)
	if e.Retries != 2 || e.Tried != a.replicas[0].Addr() && e.Tried != a.replicas[1].Addr() {
		t.Errorf("have %d retries, the last after %q", e.Retries, e.Tried)
	}
	undo()
	undo()
	a.read(a.db.Scopes(scopes.Strong()))
	if len(seen) != 1 || seen[0].Retries != 2 || seen[0].Reason != policy.ReplicaFailed {
		t.Errorf("told of %v", seen)
	}
	st := a.ryw.Status()
	if c := st.Clusters[0]; c.TokenReads != 1 || c.Fallbacks[policy.ReplicaFailed] != 1 {
		t.Errorf("have %+v", c)
	}
}

func TestOnReadIsToldOfReadsOnly(t *testing.T) {
	type mark struct{}
	a := newApp(t, Config{}, 1000)
	var first, second []Explanation
	var ctxs []context.Context
	a.ryw.OnRead(func(ctx context.Context, e Explanation) { first, ctxs = append(first, e), append(ctxs, ctx) })
	undo := a.ryw.OnRead(func(_ context.Context, e Explanation) { second = append(second, e) })
	db := a.db.WithContext(context.WithValue(t.Context(), mark{}, "mine"))
	a.write(db)
	a.read(db.Scopes(scopes.StaleOK()))
	undo()
	a.read(db)
	if len(first) != 2 || len(second) != 1 || !first[0].Replica || first[1].Reason != policy.ByDefault {
		t.Errorf("have %v and %v", first, second)
	}
	for _, ctx := range ctxs {
		if ctx.Value(mark{}) != "mine" {
			t.Error("not with the statement's context")
		}
	}
}

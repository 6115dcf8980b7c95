package scopes

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/ctxval"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

var (
	key = token.Key{System: 42}
	tok = token.FromEntries(token.Entry{Key: key, Write: token.Position{Timeline: 1, LSN: 900}})
)

// text is a string type of an application.
type text string

func positionOf(h *policy.Hint) token.Position {
	var n session.Need
	if h != nil {
		for _, s := range h.Sessions {
			s.Need(&n, key, time.Time{})
		}
	}
	return n.Want()
}

// forms are the ways to give a query a scope.
var forms = map[string]func(db *gorm.DB, s Scope) error{
	"scope":  func(db *gorm.DB, s Scope) error { return db.Scopes(s).Find(&[]project{}).Error },
	"clause": func(db *gorm.DB, s Scope) error { return db.Clauses(s.Clause()).Find(&[]project{}).Error },
	"generics": func(db *gorm.DB, s Scope) error {
		_, err := gorm.G[project](db, s.Clause()).Find(context.Background())
		return err
	},
	"scope, raw":  func(db *gorm.DB, s Scope) error { return db.Scopes(s).Raw("select 1").Scan(new(int)).Error },
	"clause, raw": func(db *gorm.DB, s Scope) error { return db.Clauses(s.Clause()).Raw("select 1").Scan(new(int)).Error },
	"scope, row": func(db *gorm.DB, s Scope) error {
		return db.Scopes(s).Model(&project{}).Select("id").Row().Scan(new(int))
	},
	"clause, row": func(db *gorm.DB, s Scope) error {
		return db.Clauses(s.Clause()).Model(&project{}).Select("id").Row().Scan(new(int))
	},
	"scope, raw row":  func(db *gorm.DB, s Scope) error { return db.Scopes(s).Raw("select 1").Row().Scan(new(int)) },
	"clause, raw row": func(db *gorm.DB, s Scope) error { return db.Clauses(s.Clause()).Raw("select 1").Row().Err() },
	"scope, rows":     func(db *gorm.DB, s Scope) error { return rows(db.Scopes(s).Model(&project{})) },
	"clause, rows":    func(db *gorm.DB, s Scope) error { return rows(db.Clauses(s.Clause()).Model(&project{})) },
	"scope, create":   func(db *gorm.DB, s Scope) error { return db.Scopes(s).Create(&project{}).Error },
	"clause, create":  func(db *gorm.DB, s Scope) error { return db.Clauses(s.Clause()).Create(&project{}).Error },
}

func rows(db *gorm.DB) error {
	r, err := db.Rows()
	if err == nil {
		err = errors.Join(r.Err(), r.Close())
	}
	return err
}

func TestEveryFormPutsTheHintOnTheQuery(t *testing.T) {
	for name, query := range forms {
		t.Run(name, func(t *testing.T) {
			p := &installed{}
			if err := query(open(t, p), ReadYourWrites(tok)); !errors.Is(err, errNowhere) {
				t.Errorf("have %v, want the query sent", err)
			}
			if h := p.last(t); h == nil || h.Level != policy.ReadYourWrites || positionOf(h).LSN != 900 {
				t.Errorf("hint: have %+v", h)
			}
		})
	}
}

// Ignored, a scope would make the read stale without a word.
func TestWithoutThePluginEveryFormFails(t *testing.T) {
	for name, query := range forms {
		for scope, s := range map[string]Scope{"StaleOK": StaleOK(), "Strong": Strong(), "ReadYourWrites": ReadYourWrites(tok)} {
			if err := query(open(t), s); !errors.Is(err, ErrNoPlugin) {
				t.Errorf("%s of %s: have %v, want ErrNoPlugin", name, scope, err)
			}
		}
	}
}

func TestWithoutThePluginBeginFails(t *testing.T) {
	// GORM keeps only the text of an error that another is added to.
	if err := open(t).Clauses(Strong().Clause()).Begin().Error; err == nil || !strings.Contains(err.Error(), ErrNoPlugin.Error()) {
		t.Errorf("have %v, want ErrNoPlugin", err)
	}
}

func TestOtherQueriesOfTheHandleAreNotTouched(t *testing.T) {
	db := open(t)
	if err := db.Scopes(Strong()).Find(&[]project{}).Error; !errors.Is(err, ErrNoPlugin) {
		t.Fatal(err)
	}
	if err := db.Find(&[]project{}).Error; !errors.Is(err, errNowhere) {
		t.Errorf("have %v, want the query sent", err)
	}
	p := &installed{}
	db = open(t, p)
	_ = db.Scopes(Strong()).Find(&[]project{}).Error
	_ = db.Find(&[]project{}).Error
	if p.last(t) != nil {
		t.Error("the hint is on the next query, too")
	}
}

func TestLevels(t *testing.T) {
	for name, tc := range map[string]struct {
		scope Scope
		want  policy.Hint
	}{
		"StaleOK":           {StaleOK(), policy.Hint{Level: policy.StaleOK}},
		"StaleOK, bounded":  {StaleOK(MaxStaleness(time.Second)), policy.Hint{Level: policy.StaleOK, MaxStaleness: time.Second}},
		"StaleOK, no bound": {StaleOK(MaxStaleness(0)), policy.Hint{Level: policy.StaleOK}},
		"Strong":            {Strong(), policy.Hint{Level: policy.Strong}},
	} {
		p := &installed{}
		_ = open(t, p).Scopes(tc.scope).Find(&[]project{}).Error
		if have := p.last(t); have == nil || !reflect.DeepEqual(*have, tc.want) {
			t.Errorf("%s: have %+v, want %+v", name, have, tc.want)
		}
	}
}

func TestNegativeStalenessFails(t *testing.T) {
	for _, h := range []*policy.Hint{staleOK([]Option{MaxStaleness(-1)}), staleOK([]Option{MaxStaleness(-1), MaxStaleness(5)})} {
		if h.Err == nil || !strings.Contains(h.Err.Error(), "MaxStaleness: have -1ns, want 0 or more") {
			t.Errorf("have %v", h.Err)
		}
	}
}

// On one query the strongest of several counts, and the tokens of all of them.
func TestSeveralScopesOnOneQuery(t *testing.T) {
	p := &installed{}
	db := open(t, p)
	other := ReadYourWrites(token.LSN(950))
	_ = db.Scopes(StaleOK(MaxStaleness(time.Second)), ReadYourWrites(tok), other).Find(&[]project{}).Error
	if h := p.last(t); h.Level != policy.ReadYourWrites || positionOf(h).LSN != 950 || len(h.Sessions) != 2 || h.MaxStaleness != time.Second {
		t.Errorf("have %+v", h)
	}
	_ = db.Clauses(Strong().Clause(), StaleOK().Clause()).Scopes(StaleOK()).Find(&[]project{}).Error
	if h := p.last(t); h.Level != policy.Strong {
		t.Errorf("have %+v", h)
	}
	one := ReadYourWrites(tok)
	_ = db.Scopes(one, one).Find(&[]project{}).Error
	again := p.last(t)
	_ = db.Scopes(one).Find(&[]project{}).Error
	if again != p.last(t) {
		t.Error("one scope, given twice or for two queries, is not one hint: its reads would not be monotonic")
	}
}

func TestTokensInEveryForm(t *testing.T) {
	for name, tc := range map[string]struct {
		hint *policy.Hint
		want token.Token
	}{
		"token":               {readYourWrites(tok), tok},
		"empty token":         {readYourWrites(token.Token{}), token.Token{}},
		"text":                {readYourWrites(tok.String()), tok},
		"text of a type":      {readYourWrites(text(tok.String())), tok},
		"empty text":          {readYourWrites(""), token.Token{}},
		"empty text of type":  {readYourWrites(text("")), token.Token{}},
		"LSN":                 {readYourWrites(token.LSN(900)), token.FromLSN(900)},
		"LSN of zero":         {readYourWrites(token.LSN(0)), token.Token{}},
		"text of an LSN":      {readYourWrites("0/384"), token.FromLSN(900)},
		"in a context":        {hintOf(WithReadYourWrites(context.Background(), tok)), tok},
		"text, in a context":  {hintOf(WithReadYourWrites(context.Background(), text("0/384"))), token.FromLSN(900)},
		"empty, in a context": {hintOf(WithReadYourWrites(context.Background(), "")), token.Token{}},
	} {
		if tc.hint.Err != nil || tc.hint.Level != policy.ReadYourWrites || !tc.hint.Sessions[0].Token().Equal(tc.want) {
			t.Errorf("%s: have %+v, want %s", name, tc.hint, tc.want)
		}
	}
}

func hintOf(ctx context.Context) *policy.Hint { return ctxval.From(ctx).Hint.(*policy.Hint) }

// A token that cannot be read must not be taken for none.
func TestBadToken(t *testing.T) {
	for _, bad := range []string{"x", " ", "0/384 ", "r1.", tok.String() + "A"} {
		for name, h := range map[string]*policy.Hint{"query": readYourWrites(bad), "context": hintOf(WithReadYourWrites(context.Background(), bad))} {
			if !errors.Is(h.Err, token.ErrInvalid) || len(h.Sessions) > 0 {
				t.Errorf("%s, %q: have %+v, want token.ErrInvalid", name, bad, h)
			}
		}
	}
}

func TestContextHints(t *testing.T) {
	ctx := context.WithValue(context.Background(), text("mine"), "kept")
	ses := session.New()
	ctx = session.NewContext(ctx, ses)
	for name, tc := range map[string]struct {
		ctx  context.Context
		want policy.Hint
	}{
		"stale ok": {WithStaleOK(ctx, MaxStaleness(7)), policy.Hint{Level: policy.StaleOK, MaxStaleness: 7}},
		"strong":   {WithStrong(ctx), policy.Hint{Level: policy.Strong}},
		"replaced": {WithStrong(WithStaleOK(WithReadYourWrites(ctx, tok))), policy.Hint{Level: policy.Strong}},
	} {
		if have := *hintOf(tc.ctx); !reflect.DeepEqual(have, tc.want) {
			t.Errorf("%s: have %+v, want %+v", name, have, tc.want)
		}
		if have, _ := session.FromContext(tc.ctx); have != ses || tc.ctx.Value(text("mine")) != "kept" {
			t.Errorf("%s: what was in the context is gone", name)
		}
	}
	if v := ctxval.From(ctx); v.Hint != nil {
		t.Error("the outer context has a hint")
	}
}

func TestClauseAddsNothingToTheSQL(t *testing.T) {
	c := Strong().Clause()
	var cl clause.Clause
	c.Build(nil) // touches no builder
	c.MergeClause(&cl)
	if c.Name() != PluginName || cl.Name != "" || cl.Expression != nil {
		t.Errorf("have %q, %+v", c.Name(), cl)
	}
	db := open(t, &installed{})
	plain := db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Find(&[]project{}) })
	for name, have := range map[string]string{
		"clause": db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Clauses(c).Find(&[]project{}) }),
		"scope":  db.ToSQL(func(tx *gorm.DB) *gorm.DB { return tx.Scopes(Strong()).Find(&[]project{}) }),
	} {
		if have != plain {
			t.Errorf("%s: have %s, want %s", name, have, plain)
		}
	}
}

func TestOnQueryOfAPlainStatement(t *testing.T) {
	db := open(t)
	if h := OnQuery(db.Statement); h != nil {
		t.Errorf("have %+v", h)
	}
	tx := db.Set(hintKey, "not a hint")
	if h := OnQuery(tx.Statement); h != nil {
		t.Errorf("have %+v", h)
	}
}

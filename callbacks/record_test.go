package callbacks

import (
	"context"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/internal/ctxval"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
)

var here = token.Key{System: 11}

func TestTokenOfNothing(t *testing.T) {
	for name, tx := range map[string]*gorm.DB{"nil": nil, "zero": {}, "no context": {Statement: &gorm.Statement{}}} {
		if name == "no context" {
			tx.Statement.Context = context.Background()
		}
		if have := TokenOf(tx); !have.IsZero() {
			t.Errorf("%s: have %s", name, have)
		}
	}
	if RecordOf(context.Background()) != nil {
		t.Error("a record in an empty context")
	}
}

// The record is the context of the statements made on a statement's behalf.
func TestRecordIsAContext(t *testing.T) {
	type mine struct{}
	ses := session.New()
	ctx := session.NewContext(context.WithValue(context.Background(), mine{}, 7), ses)
	outer, inner := &Record{running: true}, &Record{}
	outer.open(ctx)
	inner.open(outer)
	if RecordOf(inner) != inner || RecordOf(context.WithValue(inner, mine{}, 8)) != inner || RecordOf(outer) != outer {
		t.Error("not the record that was opened")
	}
	if have, _ := session.FromContext(inner); have != ses || inner.Value(mine{}) != 7 {
		t.Error("what the context carries is gone")
	}
	if inner.parent != outer || !inner.inWrite() {
		t.Error("the outer statement is not known")
	}
	outer.running = false
	if inner.inWrite() {
		t.Error("in a write that has ended")
	}
	if ctxval.From(ctx).Record != nil {
		t.Error("the outer context has a record")
	}
}

func TestTokenOfARecord(t *testing.T) {
	wrote := token.FromEntries(token.Entry{Key: here, Write: token.Position{Timeline: 1, LSN: 5}})
	for name, tc := range map[string]struct {
		record *Record
		want   token.Token
	}{
		"read of a replica": {
			&Record{key: here, decision: policy.Decision{Replica: &policy.Replica{}, Incarnation: 7}},
			token.FromEntries(token.Entry{Key: here, SeenNodes: []token.Incarnation{7}}),
		},
		"read of a replica that is not proven": {
			&Record{key: here, decision: policy.Decision{Replica: &policy.Replica{}}},
			token.FromEntries(token.Entry{Key: here, SeenPrimary: true}),
		},
		"read of the primary": {
			&Record{key: here},
			token.FromEntries(token.Entry{Key: here, SeenPrimary: true}),
		},
		"write":                  {&Record{key: here, unit: unit{own: &session.Session{}, observers: observers{few: [4]*session.Session{session.New(wrote)}}}}, wrote},
		"write that did nothing": {&Record{key: here, unit: unit{own: &session.Session{}}}, token.Token{}},
	} {
		if have := tc.record.Token(); !have.Equal(tc.want) {
			t.Errorf("%s: have %s, want %s", name, have, tc.want)
		}
	}
}

func TestObservers(t *testing.T) {
	a, b := session.New(), session.New()
	var o observers
	if o.others(nil) {
		t.Error("others of none")
	}
	o.add(a)
	o.add(a)
	if o.few != [4]*session.Session{a} || o.others(a) || !o.others(b) || !o.others(nil) {
		t.Errorf("one, added twice: have %v", o.few)
	}
	o.add(b)
	n := 0
	if o.each(func(*session.Session) { n++ }); n != 2 || !o.others(a) {
		t.Errorf("have %d observers, want 2", n)
	}
}

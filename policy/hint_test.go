package policy

import (
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/session"
)

func TestLevelsAreOrdered(t *testing.T) {
	if !(Unset < StaleOK && StaleOK < ReadYourWrites && ReadYourWrites < Strong) {
		t.Error("a stronger level is not larger")
	}
	for l, want := range map[Level]string{Unset: "unset", StaleOK: "stale ok", ReadYourWrites: "read your writes", Strong: "strong", 9: "unset"} {
		if have := l.String(); have != want {
			t.Errorf("level %d: have %q, want %q", l, have, want)
		}
	}
	for d, want := range map[Default]string{DefaultStrong: "Strong", DefaultStaleOK: "StaleOK", 7: "Default(7)"} {
		if have := d.String(); have != want {
			t.Errorf("default: have %q, want %q", have, want)
		}
	}
}

func TestHintsAddUp(t *testing.T) {
	err1, err2 := errors.New("1"), errors.New("2")
	for name, tc := range map[string]struct{ a, b, want Hint }{
		"stronger level":   {Hint{Level: StaleOK}, Hint{Level: Strong}, Hint{Level: Strong}},
		"tighter bound":    {Hint{MaxStaleness: 5}, Hint{MaxStaleness: 3}, Hint{MaxStaleness: 3}},
		"bound and none":   {Hint{MaxStaleness: 5}, Hint{}, Hint{MaxStaleness: 5}},
		"no bounds":        {Hint{Level: StaleOK}, Hint{}, Hint{Level: StaleOK}},
		"the only error":   {Hint{}, Hint{Err: err2}, Hint{Err: err2}},
		"level and bound":  {Hint{Level: ReadYourWrites}, Hint{Level: StaleOK, MaxStaleness: time.Second}, Hint{Level: ReadYourWrites, MaxStaleness: time.Second}},
		"error and strong": {Hint{Err: err1}, Hint{Level: Strong}, Hint{Err: err1, Level: Strong}},
	} {
		for order, have := range map[string]*Hint{"a and b": tc.a.And(&tc.b), "b and a": tc.b.And(&tc.a)} {
			if !reflect.DeepEqual(*have, tc.want) {
				t.Errorf("%s, %s: have %+v, want %+v", name, order, *have, tc.want)
			}
		}
	}
	if have := (&Hint{Err: err1}).And(&Hint{Err: err2}); !errors.Is(have.Err, err1) {
		t.Errorf("two errors: have %v, want the first", have.Err)
	}
}

func TestHintAndNothing(t *testing.T) {
	var none *Hint
	h := &Hint{Level: Strong}
	if none.And(h) != h || h.And(none) != h || h.And(h) != h || none.And(none) != nil {
		t.Error("nothing, or the same again, must not make another hint: its session would not learn of the read")
	}
}

// The tokens of all hints count, each hint's own session learns of the read, and
// a hint is not changed by another.
func TestHintsSessionsAddUp(t *testing.T) {
	sessionAt := func(lsn uint64) *Hint {
		return &Hint{Level: ReadYourWrites, Sessions: []*session.Session{wrote(lsn)}}
	}
	a, b, c := sessionAt(100), sessionAt(200), sessionAt(300)
	all := func(hs ...*Hint) (ss []*session.Session) {
		for _, h := range hs {
			ss = append(ss, h.Sessions...)
		}
		return ss
	}
	strong := &Hint{Level: Strong}
	for name, tc := range map[string]struct{ have, want []*session.Session }{
		"two":           {a.And(b).Sessions, all(a, b)},
		"three":         {a.And(b).And(c).Sessions, all(a, b, c)},
		"one twice":     {a.And(b).And(a).Sessions, all(a, b)},
		"strong behind": {a.And(strong).Sessions, all(a)},
		"strong before": {strong.And(a).Sessions, all(a)},
		"on one hint":   {[]*session.Session{a.And(b).Sessions[1], a.And(c).Sessions[1]}, all(b, c)},
		"itself":        {a.Sessions, a.Sessions[:1]},
	} {
		if !slices.Equal(tc.have, tc.want) {
			t.Errorf("%s: have %v, want %v", name, tc.have, tc.want)
		}
	}
}

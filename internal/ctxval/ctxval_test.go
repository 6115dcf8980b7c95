package ctxval

import (
	"context"
	"testing"
)

func TestValuesAreNotThere(t *testing.T) {
	if v := From(context.Background()); v != nil {
		t.Errorf("have %+v, want nil", v)
	}
}

// What a context says must not change under those who hold it.
func TestWithCopies(t *testing.T) {
	outer := With(context.Background(), func(v *Values) { v.Session, v.Hint = "s1", "h" })
	inner := With(outer, func(v *Values) { v.Session, v.Sink = "s2", "k" })
	if have, want := *From(outer), (Values{Session: "s1", Hint: "h"}); have != want {
		t.Errorf("outer: have %+v, want %+v", have, want)
	}
	if have, want := *From(inner), (Values{Session: "s2", Hint: "h", Sink: "k"}); have != want {
		t.Errorf("inner: have %+v, want %+v", have, want)
	}
}

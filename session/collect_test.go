package session

import (
	"context"
	"sync"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/internal/ctxval"
	"github.com/gorm-ryw/gorm-ryw/token"
)

func sinkOf(t *testing.T, ctx context.Context) *Session {
	t.Helper()
	s, ok := ctxval.From(ctx).Sink.(*Session)
	if !ok {
		t.Fatal("no collector in the context")
	}
	return s
}

func TestCollectShowsEveryChange(t *testing.T) {
	into := token.FromEntries(token.Entry{Key: there, Write: at(1, 5)})
	sink := sinkOf(t, Collect(context.Background(), &into))
	entry := func() token.Entry { e, _ := into.Entry(here); return e }
	for _, step := range []struct {
		name string
		do   func()
		ok   func() bool
	}{
		{"advance", func() { sink.Advance(here, at(1, 10), later(), true) }, func() bool { return entry().Write == at(1, 10) }},
		{"mark", func() { sink.MarkWrote(here) }, func() bool { return entry().Wrote }},
		{"saw primary", func() { sink.MarkSawPrimary(here) }, func() bool { return entry().SeenPrimary }},
		{"renew", func() { sink.Renew(here, at(1, 20), later()) }, func() bool { return !entry().Marked() && entry().Floor == at(1, 20) }},
		{"read", func() { sink.ReadNode(here, 7, later()) }, func() bool { return len(entry().SeenNodes) == 1 }},
		{"settle", func() { sink.SettleRead(here, 7, at(1, 30), later()) }, func() bool { return entry().Floor == at(1, 30) }},
		{"lose", func() { sink.ReadNode(here, 8, later()); sink.LoseNode(here, 8) }, func() bool { return entry().SeenPrimary }},
		{"observe", func() { sink.Observe(token.FromLSN(3)) }, func() bool { _, ok := into.Entry(nowhere); return ok }},
	} {
		step.do()
		if !step.ok() {
			t.Errorf("%s: have %+v", step.name, into.Entries())
		}
		if e, _ := into.Entry(there); e.Write != at(1, 5) {
			t.Errorf("%s: what was in it before is gone", step.name)
		}
	}
}

func TestCollectorIsReplacedWithinAndKeptOutside(t *testing.T) {
	var outer, inner token.Token
	ctx := Collect(context.Background(), &outer)
	sinkOf(t, Collect(ctx, &inner)).MarkWrote(here)
	if inner.IsZero() || !outer.IsZero() {
		t.Errorf("have outer %s, inner %s", outer, inner)
	}
	sinkOf(t, ctx).MarkWrote(here)
	if outer.IsZero() {
		t.Error("the outer collector is gone from its own context")
	}
}

func TestCollectConcurrently(t *testing.T) {
	var into token.Token
	sink := sinkOf(t, Collect(context.Background(), &into))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() { sink.Advance(here, at(1, uint64(10+i)), later(), true) })
	}
	wg.Wait()
	if e, _ := into.Entry(here); e.Write != at(1, 17) {
		t.Errorf("have %+v", e)
	}
}

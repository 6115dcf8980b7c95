package rywplugin

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/token"
	"gorm.io/gorm"
)

func TestPick(t *testing.T) {
	at := func(lsn token.LSN) token.Token {
		return token.FromEntries(token.Entry{Key: key(), Write: position(lsn)})
	}
	a := newApp(t, Config{}, 900, 1000)
	ctx := context.Background()
	for name, tc := range map[string]struct {
		tok  token.Token
		want int
	}{
		"covered by one":  {at(950), 1},
		"covered by none": {at(1001), -1},
		"a mark":          {token.FromEntries(token.Entry{Key: key(), Wrote: true}), 1},
	} {
		conn, err := a.ryw.Pick(ctx, tc.tok)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		have := a.sentTo("select 4", func(*gorm.DB) { _, _ = conn.ExecContext(ctx, "select 4") })
		if err := conn.Close(); err != nil || have != tc.want {
			t.Errorf("%s: have server %d, %v, want %d", name, have, err, tc.want)
		}
	}
	for _, r := range a.replicas {
		r.Refuse(true)
		r.Drop()
	}
	conn, err := a.ryw.Pick(ctx, at(900))
	if err != nil {
		t.Fatal(err)
	}
	if have := a.sentTo("select 5", func(*gorm.DB) { _, _ = conn.ExecContext(ctx, "select 5") }); have != -1 {
		t.Errorf("replicas down: have server %d", have)
	}
	_ = conn.Close()
	stale := token.FromEntries(token.Entry{Key: key(), Write: on(7, 1)})
	if _, err := a.ryw.Pick(ctx, stale); !errors.Is(err, ErrStalePrimary) {
		t.Errorf("have %v, want %v", err, ErrStalePrimary)
	}
}

func TestWaitReplicated(t *testing.T) {
	a := newApp(t, Config{}, 1000, 1000, 1000)
	a.replicas[2].Refuse(true)
	a.replicas[2].Drop()
	if _, err := a.ryw.home.Replicas()[2].Sample(context.Background()); err == nil {
		t.Fatal("the third replica was not lost")
	}
	ctx, cancel := context.WithTimeoutCause(context.Background(), 50*time.Millisecond, errors.New("enough"))
	defer cancel()
	tok := Token(a.write(a.db))
	if err := a.ryw.WaitReplicated(ctx, tok); err != nil {
		t.Errorf("have it: %v", err)
	}
	a.primary.Advance(100)
	tok = Token(a.write(a.db))
	a.replicas[0].Set(func(st *fakepg.State) { st.LSN = 1100 })
	err := a.ryw.WaitReplicated(ctx, tok)
	if err == nil || !strings.Contains(err.Error(), "at 1:0/3E8, want 1:0/44C: enough") {
		t.Errorf("one is behind: have %v", err)
	}
	done := make(chan error, 1)
	go func() { done <- a.ryw.WaitReplicated(context.Background(), tok) }()
	a.replicas[1].Set(func(st *fakepg.State) { st.LSN = 1100 })
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("not woken")
	}
}

func TestPickBeforeUse(t *testing.T) {
	p := New(Config{})
	if _, err := p.Pick(context.Background(), token.Token{}); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("have %v", err)
	}
	if err := p.WaitReplicated(context.Background(), token.Token{}); !errors.Is(err, ErrNotInstalled) {
		t.Errorf("have %v", err)
	}
}

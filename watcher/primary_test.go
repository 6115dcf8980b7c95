package watcher

import (
	"context"
	"errors"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/internal/fakepg"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
)

// A connection to a primary that was left behind is not opened, and not used again
// once another was promoted.
func TestPrimaryThatWasLeftBehind(t *testing.T) {
	c := newCluster(t, quiet)
	old := c.primary.Connect()
	s, err := NewProbe(old).Take(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.group.Primary.Meet(old, s); err != nil || !c.group.Primary.Met(old) {
		t.Fatalf("the only primary: have %v", err)
	}
	other := fakepg.New(t, fakepg.PrimaryAt(1000))
	other.Set(func(st *fakepg.State) { st.Timeline, st.Start = 2, 9 })
	promoted := other.Connect()
	s2, err := NewProbe(promoted).Take(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.group.Primary.Meet(promoted, s2); err != nil || !c.group.Primary.Met(promoted) {
		t.Fatalf("the promoted one: have %v", err)
	}
	if have := c.group.Timeline(); have != 2 {
		t.Errorf("timeline: have %d, want that of the later primary", have)
	}
	if c.group.Primary.Met(old) {
		t.Error("a connection to the old one is used again")
	}
	if err := c.group.Primary.Meet(old, s); !errors.Is(err, ErrNotAdmitted) {
		t.Errorf("a new connection to the old one: have %v", err)
	}
}

// A connection that the server has closed is found out before it is used again, once
// another one has turned out to be dead.
func TestConnectionsAreLookedAtOnceThePrimaryIsSuspected(t *testing.T) {
	c := newCluster(t, quiet)
	p := c.group.Primary
	dead := c.primary.Connect()
	s, err := NewProbe(dead).Take(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Meet(dead, s); err != nil {
		t.Fatal(err)
	}
	p.Suspect()
	if !p.Met(dead) {
		t.Fatal("a connection that is alive is not used again")
	}
	c.primary.Drop()
	c.primary.WaitConns(0)
	p.Suspect()
	if p.Met(dead) {
		t.Error("a connection that is dead is used again")
	}
	alive := c.primary.Connect()
	if err := p.Meet(alive, s); err != nil || !p.Met(alive) {
		t.Errorf("a new one: have %v", err)
	}
}

// While the question to the promoted server is under way, the old one may answer a
// later one: it does not hide the promotion.
func TestPromotionIsNotHiddenByALaterAnswerOfTheOldPrimary(t *testing.T) {
	c := newCluster(t, quiet)
	p := c.group.Primary
	old := c.sample(p)
	promoted := old
	promoted.Position = at(2, 2000)
	promoted.Incarnation++
	promoted.Begun, promoted.Received = mono.Now(), mono.Now()
	late := old
	for late.Begun = mono.Now(); late.Begun <= promoted.Begun; {
		late.Begun = mono.Now()
	}
	p.Publish(late)
	p.publish(promoted)
	if have := c.group.Timeline(); have != 2 {
		t.Errorf("timeline: have %d, want that of the promoted server", have)
	}
	if have := p.State().Position; have != at(2, 2000) {
		t.Errorf("position: have %s, want that of the promoted server", have)
	}
}

func TestParseLineage(t *testing.T) {
	ends, err := parseLineage("1\t0/3000060\tno recovery target specified\n\n# x\n2\tA2C/FE118820\tbefore 2000-01-01\n")
	if err != nil || len(ends) != 2 || ends[1] != 0x3000060 || ends[2] != 0xA2C_FE118820 {
		t.Errorf("have %v, %v", ends, err)
	}
	for _, text := range []string{"what", "1", "1\tx", "1\t0-3\ty"} {
		if _, err := parseLineage(text); !errors.Is(err, errBadAnswer) {
			t.Errorf("%q: have %v", text, err)
		}
	}
}

// An address that led to a standby may lead to the primary the next time.
func TestPrimaryThatAnswersAsAStandby(t *testing.T) {
	c := newCluster(t, quiet)
	c.primary.Set(func(st *fakepg.State) { st.Standby = true })
	if _, err := c.group.Primary.Sample(context.Background()); !errors.Is(err, ErrWrongRole) {
		t.Fatalf("have %v, want %v", err, ErrWrongRole)
	}
	before := c.primary.Dials()
	_, _ = c.group.Primary.Sample(context.Background())
	if have := c.primary.Dials(); have == before {
		t.Error("asked again on the connection to the standby")
	}
}

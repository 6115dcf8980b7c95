package mono

import (
	"testing"
	"time"
)

func TestNowIsAfterNeverAndNeverBack(t *testing.T) {
	last := Instant(0)
	for i := range 1000 {
		now := Now()
		if now < last || now == 0 {
			t.Fatalf("reading %d: have %d after %d", i, now, last)
		}
		last = now
	}
}

func TestArithmetic(t *testing.T) {
	now := Now()
	if have := now.Add(time.Second).Sub(now); have != time.Second {
		t.Errorf("have %s, want 1s", have)
	}
}

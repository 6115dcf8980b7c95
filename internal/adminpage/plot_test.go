package adminpage

import (
	"slices"
	"testing"
	"time"
)

func TestPlot(t *testing.T) {
	sec := func(n float64) Seconds { return Seconds(n * float64(time.Second)) }
	s := Series{Node: "r", Points: []Reading{
		{Ago: sec(100), Known: true, Gap: 0, Lag: 0},
		{Ago: sec(75), Known: true, Gap: 1000, Lag: sec(2)},
		{Ago: sec(50)},
		{Ago: sec(40)},
		{Ago: sec(25), Known: true, Gap: 500, Lag: sec(1)},
		{Ago: sec(10)},
	}}
	p := plotOf(s, "r", 100*time.Second)
	gap := p.Charts[1]
	if want := []string{"0.0,98.0 150.0,2.0", "450.0,50.0 450.0,50.0"}; !slices.Equal(gap.Lines, want) {
		t.Errorf("lines: have %q, want %q", gap.Lines, want)
	}
	if want := []hole{{300, 450}, {540, 600}}; !slices.Equal(gap.Holes, want) {
		t.Errorf("holes: have %v, want %v", gap.Holes, want)
	}
	if gap.Now != "" || gap.Summary != "not known now; at most 1.0 kB" {
		t.Errorf("words: have %q, %q", gap.Now, gap.Summary)
	}
	s.Points = s.Points[:2]
	if lag := plotOf(s, "r", 100*time.Second).Charts[0]; lag.Now != "2.0 s" || lag.Summary != "at most 2.0 s" {
		t.Errorf("words: have %q, %q", lag.Now, lag.Summary)
	}
	if none := plotOf(Series{}, "r", time.Minute).Charts[0]; none.Summary != "not known yet" || len(none.Lines)+len(none.Holes) != 0 {
		t.Errorf("nothing yet: have %+v", none)
	}
}

func TestWords(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 1: "1 µs", 999 * time.Microsecond: "999 µs", 12 * time.Millisecond: "12 ms", 1500 * time.Millisecond: "1.5 s", 61 * time.Second: "1 min 1 s",
	} {
		if have := duration(d); have != want {
			t.Errorf("%d: have %q, want %q", d, have, want)
		}
	}
	for d, want := range map[time.Duration]string{59 * time.Second: "59 s", 3 * time.Minute: "3 min", 3 * time.Hour: "3 h", 50 * time.Hour: "2 days"} {
		if have := roughly(d); have != want {
			t.Errorf("%d: have %q, want %q", d, have, want)
		}
	}
	for n, want := range map[uint64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 999_999: "1.0 MB", 123_456_789: "123.5 MB", 1 << 63: "9.2 EB"} {
		if have := size(n); have != want {
			t.Errorf("%d: have %q, want %q", n, have, want)
		}
	}
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1\u202f000", 1234567: "1\u202f234\u202f567"} {
		if have := count(n); have != want {
			t.Errorf("%d: have %q, want %q", n, have, want)
		}
	}
}

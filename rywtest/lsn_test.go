package rywtest

import "testing"

func TestLSNString(t *testing.T) {
	for lsn, want := range map[LSN]string{0: "0/0", 0xA2CFE118820: "A2C/FE118820", 1 << 32: "1/0"} {
		if have := lsn.String(); have != want {
			t.Errorf("have %s, want %s", have, want)
		}
	}
}

func TestRound(t *testing.T) {
	const page, segment = 8192, 16 << 20
	g := geometry{block: page, segment: segment}
	for have, want := range map[LSN]LSN{
		5*page + 24:    5 * page,
		5*page + 40:    5*page + 40, // only the first page of a segment has a long header
		segment + 40:   segment,
		segment + 24:   segment,
		segment + 48:   segment + 48,
		segment - 8:    segment - 8,
		5 * page:       5 * page,
		3*segment + 40: 3 * segment,
	} {
		if got := g.round(have); got != want {
			t.Errorf("%v: have %v, want %v", have, got, want)
		}
	}
}

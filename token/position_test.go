package token

import "testing"

func TestPositionOrder(t *testing.T) {
	ascending := []Position{{}, at(0, 1), at(0, 9), at(1, 1), at(1, 5), at(2, 1), at(3, 1)}
	for i, p := range ascending {
		for j, q := range ascending {
			want := min(max(i-j, -1), 1)
			if got := p.Compare(q); got != want {
				t.Errorf("%v compared with %v: have %d, want %d", p, q, got, want)
			}
			if got := p.Max(q); got != ascending[max(i, j)] {
				t.Errorf("max of %v and %v: %v", p, q, got)
			}
		}
	}
}

func TestPositionText(t *testing.T) {
	for _, c := range []struct {
		p          Position
		want       string
		zero, bare bool
	}{
		{p: Position{}, want: "none", zero: true},
		{p: at(7, 0), want: "none", zero: true},
		{p: at(0, 0x3000060), want: "0/3000060", bare: true},
		{p: at(2, 0x3000060), want: "2:0/3000060"},
	} {
		if c.p.String() != c.want || c.p.IsZero() != c.zero || c.p.IsBare() != c.bare {
			t.Errorf("%#v: %q zero %v bare %v, want %+v", c.p, c.p, c.p.IsZero(), c.p.IsBare(), c)
		}
	}
}

package history

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func decodeFile(t *testing.T, name string) History {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := Decode(f)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func golden(t *testing.T, name, have string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(have), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if have != string(want) {
		t.Errorf("%s: have\n%s\nwant\n%s", name, have, want)
	}
}

func TestLegalTimeline(t *testing.T) {
	h := decodeFile(t, "legal.jsonl")
	if r := Check(h, Options{}); !r.Ok() {
		t.Fatal(r.String())
	}
	golden(t, "legal.txt", Render(h.Ops))
}

func TestIllegalTimeline(t *testing.T) {
	h := decodeFile(t, "illegal.jsonl")
	r := Check(h, Options{})
	if got := verdict(r); got != "ryw bob@2" {
		t.Fatalf("have %q", got)
	}
	golden(t, "illegal.txt", r.ReadYourWrites[0].String())
}

func TestViolationTellsThePathOfTheToken(t *testing.T) {
	r := Check(parse(t, `
		a w k=5 0-1000000
		b recv a@1 1500000
		b w x=1 1600000-1700000
		d recv a@0 1700000
		c r x=0 0-10
		c recv d@1 1750000
		c recv b@2 1800000
		c r k=0 2000000-3000000`), Options{})
	want := `read your writes, broken: c@4: k: have absent, want at least 5 (a@1 wrote it)
  ms              a                    b                c
  0.000 - 1.000   @1 write k = 5, ok
  1.500                                @1 receive a@1
  1.800                                                 @3 receive b@2
  2.000 - 3.000                                         @4 read k = absent
`
	if len(r.ReadYourWrites) != 1 || r.ReadYourWrites[0].String() != want {
		t.Errorf("have\n%s\nwant\n%s", r.String(), want)
	}
}

func TestExcusesTellWhy(t *testing.T) {
	r := Check(parse(t, `
		promotion 1500000 1>2 0/90
		w w k=5 0-9000000 pos=1:0/80
		a w x=1 0-1000000 pos=1:0/A0
		a r k=5 2000000-3000000 replica
		a r k=0 4000000-5000000 primary
		a r x=0 6000000-7000000 primary lost`), Options{})
	blind := `blind spot, excused: a@3: k: have absent, want at least 5 (a@2 read it)
  ms              w                  a
  0.000           @1 write k = 5 …
  2.000 - 3.000                      @2 read k = 5 from replica r1
  4.000 - 5.000                      @3 read k = absent from primary p
  9.000           @1 … ok
`
	lost := `lost write, excused: a@4: x: have absent, want at least 1 (a@1 wrote it), written at 0/A0 on timeline 1, lost by the promotion from timeline 1 to 2 at 0/90
  ms              a
  0.000 - 1.000   @1 write x = 1, ok
  6.000 - 7.000   @4 read x = absent from primary p
`
	if !r.Ok() || len(r.BlindSpots) != 1 || len(r.LostWrites) != 1 {
		t.Fatal(r.String())
	}
	if have := r.BlindSpots[0].String() + r.LostWrites[0].String(); have != blind+lost {
		t.Errorf("have\n%s\nwant\n%s%s", have, blind, lost)
	}
	if have := r.String(); !strings.HasPrefix(have, "legal: ") || !strings.HasSuffix(have, blind+"\n"+lost) {
		t.Errorf("the result does not print its excuses:\n%s", have)
	}
}

func TestRender(t *testing.T) {
	for _, tc := range []struct{ name, ops, want string }{
		{"nothing", ``, ""},
		{"all forms", `
			a w k=? 0- unknown
			b w k=2 1000000-4000000 failed
			c r k=2 2000000-5000000 replica
			d recv c@0 6000000
			d r k=1 7000000-8000000 failed`, `
ms              a                                 b                  c                            d
0.000           @1 write k = ? … never answered
1.000                                             @1 write k = 2 …
2.000                                                                @1 read k …
4.000                                             @1 … failed
5.000                                                                @1 … k = 2 from replica r1
6.000                                                                                             @1 receive c@0
7.000 - 8.000                                                                                     @2 read k, failed
`},
		{"two clocks", `
			a w k=2 5000000-6000000 clock=x
			b r k=2 1000000-1000000 clock=y`, `
ms              a                               b
0.000 - 1.000   @1 write k = 2, ok  [clock x]
0.000                                           @1 read k = 2  [clock y]
`},
		{"a receive that takes time", `
			a recv b@1 0-2000000
			b r k=2 1000000-3000000`, `
ms      a                  b
0.000   @1 receive b@1 …
1.000                      @1 read k …
2.000   @1 … received
3.000                      @1 … k = 2
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if have, want := Render(parse(t, tc.ops).Ops), strings.TrimPrefix(tc.want, "\n"); have != want {
				t.Errorf("have\n%s\nwant\n%s", have, want)
			}
		})
	}
}

func TestResultSaysWhatItThinks(t *testing.T) {
	for want, ops := range map[string]string{
		"legal: ": `a r k=0 0-1`,
		"ILLEGAL: ": `
			a r k=7 0-1
			a r k=8 2-3
			a r k=9 4-5
			a r k=10 6-7
			a r k=11 8-9`,
		"UNDECIDED: ": `a w k=1 0-1`,
	} {
		r := Check(parse(t, ops), Options{})
		if have := r.String(); !strings.HasPrefix(have, want) {
			t.Errorf("have %q, want it to begin with %q", have, want)
		}
		if want == "ILLEGAL: " && !strings.HasSuffix(r.String(), "\n… and 2 more: invented value\n") {
			t.Errorf("have %q, want the rest counted", r.String())
		}
	}
}

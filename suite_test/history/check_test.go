package history

import "testing"

// judged is a history and what Check has to say about it, empty if legal.
type judged struct {
	name, ops, want string
}

func runJudged(t *testing.T, cases []judged, o Options) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := Check(parse(t, tc.ops), o)
			if got := verdict(r); got != tc.want {
				t.Errorf("have %q, want %q\n%s", got, tc.want, r.String())
			}
			excused := len(r.BlindSpots) + len(r.LostWrites)
			if r.Ok() != (tc.want == "" || excused > 0 && r.Violations()+len(r.Unknown) == 0) {
				t.Errorf("Ok: have %v beside %q", r.Ok(), tc.want)
			}
		})
	}
}

func TestReadYourWrites(t *testing.T) {
	runJudged(t, []judged{
		{"own write read back", `
			a w k=5 0-10
			a r k=5 20-30`, ""},
		{"newer than the own write", `
			a w k=5 0-10
			b w k=6 11-12
			a r k=6 20-30`, ""},
		{"own write not seen", `
			a w k=4 0-2
			a w k=5 3-10
			a r k=4 20-30`, "ryw a@3"},
		{"own first write not seen", `
			a w k=1 0-10
			a r k=0 20-30`, "ryw a@2"},
		{"another session without a token is not bound", `
			a w k=5 0-10
			b r k=0 20-30`, ""},
		{"the token binds", `
			a w k=5 0-10
			b recv a@1 15
			b r k=0 20-30`, "ryw b@2"},
		{"a read before the token is not bound", `
			a w k=5 0-10
			b r k=0 11-12
			b recv a@1 15
			b r k=5 20-30`, ""},
		{"the token binds to its state, not to what came later", `
			a w k=5 0-10
			a w k=6 12-14
			b recv a@1 15
			b r k=5 20-30`, ""},
		{"the state before the first operation binds nothing", `
			a w k=5 0-10
			b recv a@0 15
			b r k=0 20-30`, ""},
		{"tokens bind transitively", `
			a w k=5 0-10
			b recv a@1 15
			b w x=1 16-17
			c recv b@2 18
			c r k=0 20-30`, "ryw c@2"},
		{"what the middle session received after its mark does not bind", `
			a w k=5 0-10
			b w x=1 11-12
			b recv a@1 15
			c recv b@1 18
			c r k=0 20-30`, ""},
		{"a later, older token lowers nothing", `
			a w k=5 0-10
			b w x=1 0-10
			a r x=0 11-12
			c recv a@2 15
			c recv b@1 16
			c r k=0 20-30`, "ryw c@3"},
		{"tokens of two sessions add up", `
			a w k=5 0-10
			b w x=1 0-10
			c recv a@1 15
			c recv b@1 16
			c r k=0 20-30
			c r x=0 31-32`, "ryw c@3 c@4"},
		{"other keys do not bind", `
			a w k=5 0-10
			a r x=0 20-30`, ""},
		{"order of the records does not matter", `
			b@2 r k=0 20-30
			a@1 w k=5 0-10
			b@1 recv a@1 15`, "ryw b@2"},
		{"failed reads are not judged", `
			a w k=5 0-10
			a r k=0 20-30 failed
			a r k=0 31-32 unknown
			a r k=5 40-50`, ""},
		{"read again and again", `
			a w k=5 0-10
			a r k=0 20-30
			a r k=0 40-50`, "ryw a@2 a@3"},
	}, Options{})
}

func TestMonotonicReads(t *testing.T) {
	writes := `
		w w k=4 0-2
		w w k=5 3-10`
	runJudged(t, []judged{
		{"rising", writes + `
			a r k=4 20-30 replica
			a r k=5 40-50 replica`, ""},
		{"falling", writes + `
			a r k=5 20-30 replica
			a r k=4 40-50 replica`, "mono a@2"},
		{"falling between sessions without a token", writes + `
			a r k=5 20-30
			b r k=4 40-50`, ""},
		{"falling behind a token", writes + `
			a r k=5 20-30
			b recv a@1 35
			b r k=4 40-50`, "mono b@2"},
		{"back to absent", writes + `
			a r k=4 20-30
			a r k=0 40-50`, "mono a@2"},
		{"a stale read lowers nothing", writes + `
			a r k=5 20-30
			a r k=4 40-50
			a r k=4 60-70`, "mono a@2 a@3"},
		{"own write and earlier read both missed", `
			w w k=4 0-2
			a w k=5 3-10
			a r k=5 20-30
			a r k=4 40-50`, "ryw a@3; mono a@3"},
	}, Options{})
}

func TestOrigins(t *testing.T) {
	runJudged(t, []judged{
		{"never written", `
			a w k=5 0-10
			b r k=7 20-30`, "invented b@1"},
		{"written later", `
			b r k=5 0-10
			a w k=5 10-20`, "invented b@1"},
		{"being written", `
			a w k=5 9-20
			b r k=5 0-10`, ""},
		{"rolled back", `
			a w k=5 0-10 failed
			b r k=5 20-30`, "dirty b@1"},
		{"rolled back later than read", `
			b r k=5 0-10
			a w k=5 20-30 failed`, "invented b@1"},
		{"rolled back, then written by another", `
			a w k=5 0-10 failed
			c w k=5 11-20
			b r k=5 21-30`, ""},
		{"rolled back, read, then written by another", `
			a w k=5 0-10 failed
			b r k=5 11-15
			c w k=5 20-30`, "dirty b@1"},
		{"initial version", `
			initial k=3
			a r k=3 0-10`, ""},
		{"absent though an initial version was declared", `
			initial k=3
			a r k=0 0-10`, "invented a@1"},
		{"below the initial version", `
			initial k=3
			a r k=2 0-10`, "invented a@1"},
	}, Options{})
}

func TestUnknownOutcomes(t *testing.T) {
	runJudged(t, []judged{
		{"never appears", `
			a w k=5 0-10 unknown
			a r k=0 20-30`, ""},
		{"appears late", `
			a w k=5 0-10 unknown
			a r k=0 20-30
			a r k=5 900-910`, ""},
		{"binds once it was read", `
			a w k=5 0-10 unknown
			a r k=5 20-30 replica
			a r k=0 40-50 replica`, "mono a@3"},
		{"read by another does not bind the writer", `
			a w k=5 0-10 unknown
			b r k=5 20-30
			a r k=0 40-50`, ""},
		{"never ended", `
			a w k=5 0- unknown
			b r k=5 20-30`, ""},
		{"version never learnt", `
			a w k=? 0-10 unknown
			b r k=1 20-30`, ""},
		{"version never learnt, begun after the read", `
			a w k=? 30-40 unknown
			b r k=1 20-30`, "invented b@1"},
		{"accounts for one version only", `
			a w k=? 0-10 unknown
			b r k=1 20-30
			b r k=1 31-32
			b r k=2 40-50`, "invented b@3"},
		{"two of them account for two versions, each in time", `
			a w k=? 0-10 unknown
			c w k=? 35-36 unknown
			b r k=1 20-30
			b r k=2 40-50`, ""},
		{"the second came too late", `
			a w k=? 0-10 unknown
			c w k=? 50-60 unknown
			b r k=1 20-30
			b r k=2 40-50`, "invented b@2"},
		{"rolled back as well as unknown", `
			a w k=1 0-10 failed
			c w k=? 50-60 unknown
			b r k=1 20-30`, "dirty b@1"},
		{"rolled back later than read, beside an unknown one", `
			b r k=1 20-30
			a w k=1 40-50 failed
			c w k=? 50-60 unknown`, "invented b@1"},
		{"every read of what nothing explains", `
			b r k=1 20-30
			c w k=? 50-60 unknown
			b r k=1 70-80`, "invented b@1 b@2"},
		{"a failed write that never learnt its version accounts for none", `
			a w k=? 0-10 failed
			b r k=1 20-30`, "invented b@1"},
	}, Options{})
}

func TestCounts(t *testing.T) {
	r := Check(parse(t, `
		a w k=1 0-1
		a w k=2 2-3 failed
		a w k=2 4-5 unknown
		a w k=? 6-7 unknown
		b recv a@1 10
		b r k=1 20-21 replica
		b r k=1 22-23 primary
		b r k=0 24-25 failed`), Options{})
	want := Result{
		Ops: 8, Sessions: 2, Writes: 4, UnknownWrites: 2, FailedWrites: 1,
		Reads: 2, ReplicaReads: 1, NoAnswer: 1, Receives: 1,
	}
	if have, want := r.String(), want.String(); have != want {
		t.Errorf("have %swant %s", have, want)
	}
}

// The headline names the most that was missed, not the first thing found.
func TestWantIsTheHighest(t *testing.T) {
	for name, ops := range map[string]string{
		"in one session": `
			w w k=8 0-1
			a r k=9 20-30
			a r k=8 31-32
			a r k=0 40-50
			x w k=9 0-100`,
		"of several sessions": `
			w w k=8 0-1
			b r k=8 20-30
			a r k=9 20-30
			c r k=8 20-30
			a recv b@1 31
			a recv c@1 32
			a r k=0 40-50
			x w k=9 0-100`,
	} {
		r := Check(parse(t, ops), Options{})
		if n := len(r.Monotonic); n == 0 || r.Monotonic[n-1].Want.Version != 9 {
			t.Errorf("%s: want 9 in\n%s", name, r.String())
		}
	}
}

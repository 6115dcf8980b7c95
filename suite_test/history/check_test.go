package history

import (
	"strings"
	"testing"
)

// judged is a history and what Check has to say about it, empty if legal.
type judged struct {
	name, ops, want string
}

func runJudged(t *testing.T, cases []judged, o Options) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			r := Check(parse(t, tc.ops), o)
			if got := verdict(&r); got != tc.want {
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
		{"a failed write that never learnt its version accounts for none", `
			a w k=? 0-10 failed
			b r k=1 20-30`, "invented b@1"},
	}, Options{})
}

func TestBlindSpot(t *testing.T) {
	runJudged(t, blindSpots, Options{})
}

var blindSpots = []judged{
	{"excused", `
		w w k=5 0-100
		a r k=5 20-30 replica
		a r k=0 40-50 primary`, "blind a@2"},
	{"excused when the writer never learnt", `
		w w k=5 0-10 unknown
		a r k=5 20-30 replica
		a r k=0 40-50 primary`, "blind a@2"},
	{"excused behind a token", `
		w w k=5 0-100
		a r k=5 20-30 replica
		b recv a@1 35
		b r k=0 40-50 primary`, "blind b@2"},
	{"acknowledged before the older read began", `
		w w k=5 0-39
		a r k=5 20-30 replica
		a r k=0 40-50 primary`, "mono a@2"},
	{"acknowledged as the older read began", `
		w w k=5 0-40
		a r k=5 20-30 replica
		a r k=0 40-50 primary`, "mono a@2"},
	{"acknowledged while the older read ran", `
		w w k=5 0-41
		a r k=5 20-30 replica
		a r k=0 40-50 primary`, "blind a@2"},
	{"older one on a replica", `
		w w k=5 0-100
		a r k=5 20-30 replica
		a r k=0 40-50 replica`, "mono a@2"},
	{"newer one on the primary", `
		w w k=5 0-100
		a r k=5 20-30 primary
		a r k=0 40-50 primary`, "mono a@2"},
	{"older one's role not recorded", `
		w w k=5 0-100
		a r k=5 20-30 replica
		a r k=0 40-50`, "mono a@2"},
	{"newer one's role not recorded", `
		w w k=5 0-100
		a r k=5 20-30
		a r k=0 40-50 primary`, "mono a@2"},
	{"newer one read on the primary too", `
		w w k=5 0-100
		a r k=5 20-30 replica
		a r k=5 31-32 primary
		a r k=0 40-50 primary`, "mono a@3"},
	{"newer one read on the primary too, before", `
		w w k=5 0-100
		a r k=5 10-12 primary
		a r k=5 20-30 replica
		a r k=0 40-50 primary`, "mono a@3"},
	{"newer one read on the primary by the sender of a token", `
		w w k=5 0-100
		b r k=5 20-30 primary
		a r k=5 20-30 replica
		a recv b@1 31
		a r k=0 40-50 primary`, "mono a@3"},
	{"one of two newer ones acknowledged", `
		w w k=5 0-25
		w w k=6 26-100
		a r k=5 27-28 replica
		a r k=6 29-30 replica
		a r k=0 40-50 primary`, "mono a@3"},
	{"an acknowledged one read after, below the highest", `
		w w k=5 0-25
		w w k=6 26-100
		a r k=6 27-28 replica
		a r k=5 29-30 primary
		a r k=0 40-50 primary`, "mono a@3; blind a@2"},
	{"both newer ones unacknowledged", `
		w w k=5 0-100
		v w k=6 0-100
		a r k=5 27-28 replica
		a r k=6 29-30 replica
		a r k=0 40-50 primary`, "blind a@3"},
	{"an own acknowledged write is no blind spot", `
		w w k=5 0-100
		a w k=4 0-10
		a r k=5 20-30 replica
		a r k=0 40-50 primary`, "ryw a@3; blind a@3"},
	{"mode Strict of that read", `
		w w k=5 0-100
		a r k=5 20-30 replica
		a r k=0 40-50 primary strict`, "mono a@2"},
	{"another clock proves nothing", `
		w w k=5 0-1000 clock=other
		b recv w@1 150
		b r k=5 160-170 replica
		b r k=0 180-190 primary`, "ryw b@3; mono b@3"},
	{"the initial version is no blind spot", `
		initial k=3
		a r k=3 0-10 replica
		a r k=2 20-30 primary`, "mono a@2; invented a@2"},
}

func TestStrictRunHasNoBlindSpots(t *testing.T) {
	var strict []judged
	for _, tc := range blindSpots {
		if op, ok := strings.CutPrefix(tc.want, "blind "); ok {
			strict = append(strict, judged{tc.name, tc.ops, "mono " + op})
		}
	}
	if len(strict) < 4 {
		t.Fatalf("have %d excused cases, want some to turn around", len(strict))
	}
	runJudged(t, strict, Options{Strict: true})
}

func TestLostWrite(t *testing.T) {
	runJudged(t, []judged{
		{"excused", `
			promotion 15 1>2 0/90
			a w k=5 0-10 pos=1:0/100
			a r k=0 20-30 lost`, "lost a@2"},
		{"also when it had been read", `
			promotion 15 1>2 0/90
			a w k=5 0-10 pos=1:0/100
			a r k=5 11-12
			a r k=0 20-30 lost`, "lost a@3"},
		{"read by another session", `
			promotion 15 1>2 0/90
			w w k=5 0-10 pos=1:0/100
			a r k=5 11-12
			a r k=0 20-30 lost`, "lost a@2"},
		{"not reported", `
			promotion 15 1>2 0/90
			a w k=5 0-10 pos=1:0/100
			a r k=0 20-30`, "ryw a@2"},
		{"no promotion", `
			a w k=5 0-10 pos=1:0/100
			a r k=0 20-30 lost`, "ryw a@2"},
		{"at the switch point", `
			promotion 15 1>2 0/100
			a w k=5 0-10 pos=1:0/100
			a r k=0 20-30 lost`, "ryw a@2"},
		{"on the new timeline", `
			promotion 15 1>2 0/90
			a w k=5 0-10 pos=2:0/100
			a r k=0 20-30 lost`, "ryw a@2"},
		{"position not recorded", `
			promotion 15 1>2 0/90
			a w k=5 0-10
			a r k=0 20-30 lost`, "ryw a@2"},
		{"read ended before the promotion", `
			promotion 35 1>2 0/90
			a w k=5 0-10 pos=1:0/100
			a r k=0 20-30 lost`, "ryw a@2"},
		{"on a timeline that was left out", `
			promotion 12 1>2 0/90
			promotion 15 1>3 0/80
			a w k=5 0-10 pos=2:0/100
			a r k=0 20-30 lost`, "lost a@2"},
		{"survived the first promotion, not the second", `
			promotion 12 1>2 0/90
			promotion 15 1>3 0/80
			a w k=5 0-10 pos=1:0/85
			a r k=0 20-30 lost`, "lost a@2"},
		{"timeline not recorded", `
			promotion 15 1>2 0/90
			a w k=5 0-10 pos=0:0/100
			a r k=0 20-30 lost`, "ryw a@2"},
		{"promotion on another clock", `
			promotion 15 1>2 0/90
			a w k=5 0-10 pos=1:0/100
			a r k=0 20-30 lost clock=other`, "ryw a@2"},
		{"lost by the second promotion", `
			promotion 12 1>2 0/90
			promotion 15 2>3 0/200
			a w k=5 0-10 pos=2:0/300
			a r k=0 20-30 lost`, "lost a@2"},
		{"an earlier write before the switch point is missing too", `
			promotion 15 1>2 0/90
			a w k=4 0-2 pos=1:0/80
			a w k=5 3-10 pos=1:0/100
			a r k=0 20-30 lost`, "ryw a@3"},
		{"the earlier write is there", `
			promotion 15 1>2 0/90
			a w k=4 0-2 pos=1:0/80
			a w k=5 3-10 pos=1:0/100
			a r k=4 20-30 lost`, "lost a@3"},
		{"an unknown write that was read is not an acknowledged one", `
			promotion 15 1>2 0/90
			a w k=5 0-10 pos=1:0/100 unknown
			a r k=5 11-12 primary
			a r k=0 20-30 primary lost`, "mono a@3"},
		{"reported, but nothing is missing", `
			promotion 15 1>2 0/90
			a w k=5 0-10 pos=1:0/100
			a r k=5 20-30 lost`, ""},
		{"lost and blind spot in one read", `
			promotion 15 1>2 0/90
			a w k=5 0-10 pos=1:0/100
			w w k=6 0-100
			a r k=6 16-17 replica
			a r k=0 20-30 primary lost`, "blind a@3; lost a@3"},
	}, Options{})
}

func TestNotJudged(t *testing.T) {
	runJudged(t, []judged{
		{"no reads", `a w k=5 0-10`, "unknown history"},
		{"sender not in the history", `
			b recv a@1 15
			b r k=0 20-30`, "unknown b@1"},
		{"sender's operation not in the history", `
			a w k=5 0-10
			b recv a@2 15
			b r k=5 20-30`, "unknown b@1"},
		{"what there is of the sender binds all the same", `
			a w k=5 0-10
			b recv a@2 15
			b r k=0 20-30`, "ryw b@2; unknown b@1"},
		{"the sender's first operation not in the history", `
			a@2 w k=5 0-10
			b recv a@1 15
			b r k=0 20-30`, "unknown a@2 b@1"},
		{"gap in a session", `
			a@1 w k=5 0-10
			a@3 r k=5 20-30`, "unknown a@3"},
		{"session recorded twice", `
			a@1 w k=5 0-10
			a@1 w x=5 0-10
			a@2 r k=5 20-30`, "unknown a@1"},
		{"received from its own future", `
			a recv b@1 1
			a r k=0 2-3
			b recv a@1 1
			b r k=0 2-3`, "unknown b@1"},
		{"received from itself, later", `
			a recv a@2 1
			a r k=0 2-3`, "unknown a@1"},
		{"received before the operation had ended", `
			a w k=5 0-20
			b recv a@1 15
			b r k=5 25-30`, "unknown b@1"},
		{"received the state after an operation without an end", `
			a w k=5 0- unknown
			b recv a@1 15
			b r k=5 25-30`, "unknown b@1"},
		{"overlapping operations do not bind each other", `
			a w k=5 0-20
			a r k=0 10-30
			a r k=5 31-32`, "unknown a@2"},
		{"but the next one", `
			a w k=5 0-20
			a r k=5 10-30
			a r k=0 31-32`, "ryw a@3; mono a@3; unknown a@2"},
		{"nothing follows an operation without an end", `
			a w k=5 0- unknown
			a r k=0 10-30`, "unknown a@2"},
		{"two acknowledged writes of one version", `
			a w k=5 0-10
			b w k=5 20-30
			a r k=5 40-50`, "unknown b@1"},
		{"acknowledged below a known version", `
			a w k=5 0-10
			a w k=4 20-30
			a r k=5 40-50`, "unknown a@2"},
		{"acknowledged below a version read", `
			a w k=5 0-10
			b r k=5 11-12
			b w k=4 20-30
			b r k=5 40-50`, "unknown b@2"},
		{"a write not above the initial version", `
			initial k=5
			a w k=5 0-10
			a r k=5 40-50`, "unknown a@1"},
		{"written on another clock", `
			a w k=5 0-10 clock=other
			b r k=5 40-50`, "unknown b@1"},
		{"written on another clock in the causal past", `
			a w k=5 90-99 clock=other
			b recv a@1 30
			b r k=5 40-50`, ""},
		{"unknown write on another clock", `
			a w k=? 0-10 unknown clock=other
			b r k=5 40-50`, "unknown b@1"},
		{"ends before it starts", `
			a r k=0 0-10
			a r k=0 30-20`, "unknown a@2"},
		{"acknowledged without a version", `
			a r k=0 0-10
			b w k=? 30-40`, "unknown b@1"},
	}, Options{})
}

func TestMalformedOpsAreNotJudged(t *testing.T) {
	good := Op{Kind: Read, Session: "a", Seq: 1, Key: "k", Start: 1, End: 2, Answer: Answer{Outcome: OK}}
	for name, spoil := range map[string]func(*Op){
		"kind":           func(o *Op) { o.Kind = 0 },
		"initial kind":   func(o *Op) { o.Kind = kindInitial },
		"session":        func(o *Op) { o.Session = "" },
		"sequence":       func(o *Op) { o.Seq = 0 },
		"key":            func(o *Op) { o.Key = "" },
		"no outcome":     func(o *Op) { o.Outcome = 0 },
		"outcome":        func(o *Op) { o.Outcome = 9 },
		"read version":   func(o *Op) { o.Version = -1 },
		"write absent":   func(o *Op) { o.Kind = Write },
		"receive":        func(o *Op) { o.Kind = Receive },
		"receive before": func(o *Op) { o.Kind, o.From, o.End = Receive, Mark{"b", 0}, 0 },
	} {
		t.Run(name, func(t *testing.T) {
			bad := good
			bad.Session, bad.Seq = "b", 1
			spoil(&bad)
			r := Check(History{Ops: []Op{good, bad}}, Options{})
			if r.Ok() || len(r.Unknown) != 1 || !strings.Contains(r.Unknown[0].Why, "malformed") {
				t.Errorf("have Ok %v and %v, want one malformed record", r.Ok(), r.Unknown)
			}
		})
	}
	if r := Check(History{Ops: []Op{good}}, Options{}); !r.Ok() {
		t.Errorf("the good operation alone: %s", r.String())
	}
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

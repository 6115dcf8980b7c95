package history

import (
	"strings"
	"testing"
)

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

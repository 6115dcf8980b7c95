package main

import "testing"

const ms = 1_000_000

// beatOf returns a beat with one answer every 50 ms in each of the given spells.
func beatOf(endpoint string, standby bool, timeline uint32, lsn uint64, spells ...[2]int64) *beat {
	b := &beat{endpoint: endpoint}
	for _, s := range spells {
		for at := s[0]; at <= s[1]; at += 50 {
			b.note(answer{from: at * ms, to: (at + 1) * ms, standby: standby, timeline: timeline, lsn: lsn})
		}
		b.broken()
	}
	return b
}

// Who could have served a read?
func TestWitness(t *testing.T) {
	primary := beatOf("", false, 0, 0, [2]int64{0, 10_000})
	standby := beatOf("", true, 2, 100, [2]int64{0, 10_000})
	standby.server = "replica1"
	gone := beatOf("", false, 0, 0, [2]int64{0, 4900}) // a primary, until shortly before the read
	short := beatOf("", false, 0, 0, [2]int64{0, 1900}, [2]int64{3100, 4900})
	late := beatOf("", true, 2, 99, [2]int64{0, 3500}) // a standby that has it only then
	for at := int64(3550); at <= 10_000; at += 50 {
		late.note(answer{from: at * ms, to: (at + 1) * ms, standby: true, timeline: 2, lsn: 100})
	}
	moving := beatOf(endpointMoving, false, 0, 0, [2]int64{0, 4000}, [2]int64{6000, 10_000})
	read := wanted{from: 5000 * ms, to: 5100 * ms, endpoint: endpointHosts, lsn: 100, timeline: 2}
	for name, tc := range map[string]struct {
		beats  []*beat
		change func(*wanted)
		want   string
	}{
		"nobody is there":                {nil, func(*wanted) {}, ""},
		"the primary":                    {[]*beat{primary}, func(*wanted) {}, "the primary"},
		"the primary, for strong":        {[]*beat{primary}, func(r *wanted) { r.strong = true }, "the primary"},
		"moving endpoint, away":          {[]*beat{primary, moving}, func(r *wanted) { r.endpoint = endpointMoving }, ""},
		"moving endpoint, there":         {[]*beat{moving}, func(r *wanted) { r.endpoint, r.from, r.to = endpointMoving, 7000*ms, 7001*ms }, "the primary"},
		"moving is not for hosts":        {[]*beat{moving}, func(r *wanted) { r.from, r.to = 7000*ms, 7001*ms }, ""},
		"away in between":                {[]*beat{moving}, func(r *wanted) { r.endpoint, r.from, r.to = endpointMoving, 3000*ms, 7000*ms }, ""},
		"before it was there":            {[]*beat{primary}, func(r *wanted) { r.from = -1 }, ""},
		"no answer since":                {[]*beat{primary}, func(r *wanted) { r.to = 10_001 * ms }, ""},
		"no answer for long since":       {[]*beat{primary}, func(r *wanted) { r.to = 9900 * ms }, ""},
		"a standby":                      {[]*beat{gone, standby}, func(*wanted) {}, "a standby"},
		"a standby, strong":              {[]*beat{gone, standby}, func(r *wanted) { r.strong = true }, ""},
		"a standby, behind":              {[]*beat{gone, standby}, func(r *wanted) { r.lsn = 101 }, ""},
		"a standby, too late to prove":   {[]*beat{gone, late}, func(*wanted) {}, ""},
		"a standby, no time to prove it": {[]*beat{short, standby}, func(*wanted) {}, ""},
		"a standby, nobody to prove it":  {[]*beat{{}, standby}, func(*wanted) {}, ""},
		"a standby, other timeline":      {[]*beat{gone, standby}, func(r *wanted) { r.timeline = 3 }, ""},
		"a standby, any timeline":        {[]*beat{gone, standby}, func(r *wanted) { r.timeline = 0 }, "a standby"},
		"a standby, not there long":      {[]*beat{gone, standby}, func(r *wanted) { r.from = 1000 * ms }, ""},
		"the standby that was read":      {[]*beat{gone, standby}, func(r *wanted) { r.seen = sight{"replica1", 4999 * ms} }, "a standby"},
		"another one was read":           {[]*beat{gone, standby}, func(r *wanted) { r.seen = sight{"replica2", 4999 * ms} }, ""},
		"in an earlier life":             {[]*beat{gone, standby}, func(r *wanted) { r.seen = sight{"replica1", -1} }, ""},
		"the standby is not the primary": {[]*beat{gone, standby}, func(r *wanted) { r.strong, r.lsn = true, 0 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := read
			tc.change(&r)
			if have := (&witness{beats: tc.beats}).server(r, (&Options{}).noticed()); have != tc.want {
				t.Errorf("have %q, want %q", have, tc.want)
			}
		})
	}
	r := read
	r.from = 1000 * ms
	if have := (&witness{beats: []*beat{gone, standby}}).server(r, 0); have != "a standby" {
		t.Errorf("a standby that need not have been noticed: have %q", have)
	}
}

// A pause of the witness, and a change of role, end a spell.
func TestSpellsEnd(t *testing.T) {
	b := &beat{}
	for _, a := range []answer{
		{from: 0, to: 1 * ms},
		{from: 200 * ms, to: 201 * ms},
		{from: 500 * ms, to: 501 * ms},
		{from: 550 * ms, to: 551 * ms, standby: true},
	} {
		b.note(a)
	}
	var sizes []int
	for _, s := range b.spells {
		sizes = append(sizes, len(s.answers))
	}
	if len(sizes) != 3 || sizes[0] != 2 || sizes[1] != 1 || sizes[2] != 1 {
		t.Errorf("have spells of %v answers, want 2, 1 and 1", sizes)
	}
}

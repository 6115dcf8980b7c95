package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
	"github.com/gorm-ryw/gorm-ryw/token"
	"github.com/jackc/pgx/v5/pgconn"
)

func TestLastSwitch(t *testing.T) {
	var p history.Promotion
	err := lastSwitch("1\t0/5000060\tno recovery target specified\n\n2\t1/A0\tno recovery target specified\n", &p)
	if err != nil || p.OldTimeline != 2 || p.SwitchPoint.String() != "1/A0" {
		t.Errorf("have %+v and %v", p, err)
	}
	for _, text := range []string{"", "2", "x 0/1 y", "2 nowhere"} {
		if lastSwitch(text, &p) == nil {
			t.Errorf("%q: want an error", text)
		}
	}
}

// Only what is certainly lost, and has no position of its own, gets one.
func TestPlace(t *testing.T) {
	op := func(kind history.Kind, end, version int64, lsn history.LSN, outcome history.Outcome) history.Op {
		o := history.Op{Kind: kind, End: end, Key: keyName(5)}
		o.Outcome, o.Position, o.Version = outcome, lsn, version
		return o
	}
	ops := []history.Op{
		op(history.Write, 99, 11, 0, history.OK),
		op(history.Write, 99, 10, 0, history.OK),
		op(history.Write, 101, 11, 0, history.OK),
		op(history.Write, 99, 11, 7, history.OK),
		op(history.Write, 99, 11, 0, history.Unknown),
		op(history.Read, 99, 11, 0, history.OK),
	}
	place(ops, []survivors{{
		promotion: history.Promotion{At: 100, OldTimeline: 3, NewTimeline: 4, SwitchPoint: 50},
		versions:  map[string]int64{"5": 10},
	}})
	want := []history.LSN{51, 0, 0, 7, 0, 0}
	for i := range ops {
		if ops[i].Position != want[i] || (ops[i].Timeline == 3) != (want[i] == 51) {
			t.Errorf("operation %d: have %d/%d, want %d", i, ops[i].Timeline, ops[i].Position, want[i])
		}
	}
}

func TestClassOf(t *testing.T) {
	killed := &pgconn.PgError{Code: "57P01"}
	for want, err := range map[string]error{
		"SQLSTATE 57P01":  fmt.Errorf("read: %w", killed),
		"timeout":         fmt.Errorf("read: %w", context.DeadlineExceeded),
		"connection lost": fmt.Errorf("read: %w", io.ErrUnexpectedEOF),
		"row missing":     fmt.Errorf("read: %w", errNoItem),
		"other":           errors.New("strange"),
	} {
		if have := classOf(err); have != want {
			t.Errorf("%v: have %q, want %q", err, have, want)
		}
	}
	if outcomeOf(killed) != history.Unknown || outcomeOf(&pgconn.PgError{Code: "25006"}) != history.Failed {
		t.Error("only a read-only server certainly did nothing")
	}
	if text := textOf(errors.New(strings.Repeat("x", 10*mostText))); len(text) > 2*mostText {
		t.Errorf("have a text of %d bytes", len(text))
	}
}

func TestNeedOf(t *testing.T) {
	key := token.Key{System: 1}
	old, now := token.Position{Timeline: 1, LSN: 900}, token.Position{Timeline: 2, LSN: 100}
	for name, tc := range map[string]struct {
		entry token.Entry
		want  need
	}{
		"the later timeline": {token.Entry{Key: key, Write: old, Floor: now}, need{lsn: 100, timeline: 2}},
		"a write":            {token.Entry{Key: key, Write: now}, need{lsn: 100, timeline: 2}},
		"a mark":             {token.Entry{Key: key, Wrote: true}, need{primary: needWrote}},
		"a standby":          {token.Entry{Key: key, Floor: now, SeenNodes: []token.Incarnation{9}}, need{lsn: 100, timeline: 2, nodes: 1}},
	} {
		if have := needOf(token.FromEntries(tc.entry)); have != tc.want {
			t.Errorf("%s: have %+v, want %+v", name, have, tc.want)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"-duration 0s", "-duration"},
		{"-procs 2", "-procs"},
		{"-mode x", "-mode"},
		{"-road x", "-road"},
		{"-endpoint x", "-endpoint"},
		{"-only 99", "-only"},
		{"-only 3 -crashes 5", "-only"},
		{"-crashes -1", "-crashes"},
		{"-probe -1s", "-probe"},
		{"-strict -mode cached", "-strict"},
	} {
		_, err := parseOptions(strings.Fields(tc.args), io.Discard)
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: have %v, want an error that begins with %s", tc.args, err, tc.want)
		}
	}
	o, err := parseOptions(strings.Fields("-duration 2m -seed 9 -mode cached -road rywpgx"), io.Discard)
	if err != nil || o.Seed != 9 || !o.control() || o.Only >= 0 {
		t.Errorf("have %+v and %v", o, err)
	}
}

// Every role has both roads and both ways to the primary, and no key two writers.
func TestAssign(t *testing.T) {
	list := assign(&Options{Procs: 6, Mode: modeRYW, Road: roadBoth, Endpoint: endpointBoth})
	seen, keys := map[string]bool{}, map[int64]bool{}
	for _, o := range list {
		seen[o.Role+o.Road], seen[o.Role+o.Endpoint] = true, true
		for k := range int64(threads * keysPerThread) {
			if key := o.FirstKey + k; keys[key] || key < 1 || key > o.AllKeys {
				t.Errorf("%s writes key %d", o.Name, key)
			}
			keys[o.FirstKey+k] = true
		}
	}
	if len(seen) != 4*len(roles) {
		t.Errorf("have %v", seen)
	}
	for _, o := range assign(&Options{Procs: 3, Road: roadRYWPGX, Endpoint: endpointHosts}) {
		if o.Road != roadRYWPGX || o.Endpoint != endpointHosts {
			t.Errorf("have %s and %s", o.Road, o.Endpoint)
		}
	}
}

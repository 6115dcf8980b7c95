package main

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// envParent makes this test program one that starts a process, stops it, says its
// number, and waits.
const envParent = "RYW_TORTURE_TEST_PARENT"

// The workers are this test program started again.
func TestMain(m *testing.M) {
	if os.Getenv(envWorker) != "" {
		os.Exit(workerMain(os.Stdin, os.Stdout))
	}
	if os.Getenv(envParent) != "" {
		os.Exit(parentMain())
	}
	os.Exit(m.Run())
}

const lastLine = `^torture: ops=\d+ faults=\d+ ryw_violations=\d+ monotonic_violations=\d+ blind_spot=\d+ lost=\d+ caller_errors=\d+ replica_share=\d+\.\d%$`

// short runs the whole thing for some seconds.
func short(t *testing.T, o *Options) (*outcome, string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts servers and kills them")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	r, err := torture(ctx, o, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	var report bytes.Buffer
	r.report(&report)
	lines := strings.Split(strings.TrimSpace(report.String()), "\n")
	if last := lines[len(lines)-1]; !regexp.MustCompile(lastLine).MatchString(last) {
		t.Errorf("the last line is %q", last)
	}
	return r, report.String()
}

// A few faults of each sort, a failover among them. The reads that fail although
// a node could serve are the long run's affair: here they are only printed.
func TestTheLibraryKeepsItsGuarantees(t *testing.T) {
	r, report := short(t, &Options{
		Duration: 12 * time.Second, Seed: 2, Procs: 4, Mode: modeRYW,
		Road: roadBoth, Endpoint: endpointBoth, Lossless: true, Only: -1,
	})
	t.Log(report)
	if !r.result.Ok() {
		t.Error("a guarantee was broken")
	}
	if n := len(r.tally.Overdue); n > 0 {
		t.Errorf("%d operations outlived their deadlines", n)
	}
	if r.faults[Promote] == 0 || r.result.ReplicaReads < 100 || r.result.Receives < 100 || r.result.Writes < 100 {
		t.Errorf("hardly anything happened: %d failovers, %s", r.faults[Promote], r.result.String())
	}
}

func TestAControlIsSeenToBreakThem(t *testing.T) {
	r, report := short(t, &Options{
		Duration: 4 * time.Second, Seed: 1, Procs: 3, Mode: modeDBResolver,
		Road: roadBoth, Endpoint: endpointBoth, Lossless: true, Only: int(PauseReplay),
	})
	if len(r.result.ReadYourWrites) == 0 || len(r.result.Monotonic) == 0 || !r.ok() {
		t.Error(report)
	}
}

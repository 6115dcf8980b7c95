package leakcheck

import (
	"fmt"
	"strings"
	"testing"
)

// recorder is a test that only notes what happens to it.
type recorder struct {
	cleanups []func()
	errors   []string
	failed   bool
}

func (*recorder) Helper()            {}
func (r *recorder) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Failed() bool     { return r.failed }
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func leak(stop chan struct{}) { <-stop }

func TestCheckFindsAGoroutineLeftBehind(t *testing.T) {
	r, stop := &recorder{}, make(chan struct{})
	defer close(stop)
	Check(r)
	go leak(stop)
	r.cleanups[0]()
	if len(r.errors) != 1 || !strings.Contains(r.errors[0], "leakcheck.leak") {
		t.Errorf("have errors %q, want one that names the goroutine", r.errors)
	}
}

func TestCheckIgnoresWhatItIsTold(t *testing.T) {
	r, stop := &recorder{}, make(chan struct{})
	defer close(stop)
	Check(r, "leakcheck.leak")
	go leak(stop)
	r.cleanups[0]()
	if len(r.errors) != 0 {
		t.Errorf("have errors %q, want none", r.errors)
	}
}

func TestCheckWaitsForGoroutinesThatAreEnding(t *testing.T) {
	r, stop := &recorder{}, make(chan struct{})
	Check(r)
	go leak(stop)
	go func() { close(stop) }()
	r.cleanups[0]()
	if len(r.errors) != 0 {
		t.Errorf("have errors %q, want none", r.errors)
	}
}

func TestCheckIsSilentAboutAFailedTest(t *testing.T) {
	r, stop := &recorder{failed: true}, make(chan struct{})
	defer close(stop)
	Check(r)
	go leak(stop)
	r.cleanups[0]()
	if len(r.errors) != 0 {
		t.Errorf("have errors %q, want none", r.errors)
	}
}

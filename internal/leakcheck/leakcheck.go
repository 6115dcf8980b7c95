// Package leakcheck finds goroutines that a test left behind. It has no
// dependency, so that using it in the tests of the root module adds nothing to
// the module graph of those who import that module.
package leakcheck

import (
	"bytes"
	"runtime"
	"strings"
	"time"
)

// T is what is needed of a *testing.T, so that nothing but tests depends on
// package testing.
type T interface {
	Helper()
	Cleanup(func())
	Errorf(format string, args ...any)
	Failed() bool
}

// patience is how long goroutines that were joined may take to be gone: the
// scheduler removes them only after whoever waited for them goes on.
const patience = 2 * time.Second

// Check makes t fail at its end, after the cleanups registered later, if
// goroutines are running then that are not running now. Tests that use it must
// not run in parallel with others. A goroutine with one of the ignored texts in
// its stack does not count; state the reason beside each.
func Check(t T, ignored ...string) {
	t.Helper()
	before := map[string]bool{}
	for id := range stacks() {
		before[id] = true
	}
	t.Cleanup(func() {
		if t.Failed() {
			return // a test that stopped half-way has not cleaned up
		}
		if left := waitGone(before, ignored); len(left) > 0 {
			t.Errorf("%d goroutines left behind:\n%s", len(left), strings.Join(left, "\n\n"))
		}
	})
}

// waitGone waits until no goroutines run but those known and ignored, and returns
// the stacks of those that still do when patience is at its end.
func waitGone(known map[string]bool, ignored []string) []string {
	deadline := time.Now().Add(patience)
	pause := time.NewTicker(time.Millisecond)
	defer pause.Stop()
	for {
		left := unknown(known, ignored)
		if len(left) == 0 || time.Now().After(deadline) {
			return left
		}
		<-pause.C
	}
}

func unknown(known map[string]bool, ignored []string) []string {
	var left []string
	for id, stack := range stacks() {
		if !known[id] && !containsAny(stack, ignored) {
			left = append(left, stack)
		}
	}
	return left
}

func containsAny(stack string, texts []string) bool {
	for _, text := range texts {
		if strings.Contains(stack, text) {
			return true
		}
	}
	return false
}

// stacks returns the stacks of all goroutines but the caller's by their ids.
func stacks() map[string]string {
	buf := make([]byte, 1<<16)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	all := map[string]string{}
	for i, one := range bytes.Split(buf, []byte("\n\n")) {
		// "goroutine 7 [running]:"; the first is the caller's.
		if f := bytes.Fields(one); i > 0 && len(f) > 1 {
			all[string(f[1])] = string(one)
		}
	}
	return all
}

//go:build unix

package watchdog

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/proc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newDog(t *testing.T) *Dog {
	t.Helper()
	d, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func identify(t *testing.T, pid int) proc.ID {
	t.Helper()
	p, err := proc.Get(pid)
	must(t, err)
	return p.ID
}

// guarded starts a command under the watchdog, in a process group of its own,
// and waits for it in the background.
func guarded(t *testing.T, d *Dog, script string) (proc.ID, <-chan struct{}) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	id, err := d.Start(cmd)
	must(t, err)
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-done })
	return id, done
}

func TestReleaseEndsProcessesAndRemovesDirectories(t *testing.T) {
	d := newDog(t)
	dir := filepath.Join(t.TempDir(), "with two  blanks")
	must(t, os.MkdirAll(filepath.Join(dir, "sub"), 0o700))
	note := filepath.Join(t.TempDir(), "note")
	must(t, d.GuardDir(dir))
	must(t, d.GuardCommand(fmt.Sprintf("test -d '%s' && echo ran >'%s'", dir, note)))
	_, done := guarded(t, d, "exec sleep 60")
	stopped, stoppedDone := guarded(t, d, "exec sleep 60")
	must(t, proc.Signal(stopped, syscall.SIGSTOP))
	begin := time.Now()
	must(t, d.Release())
	<-done
	<-stoppedDone
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("took %v, want less than 2 s for processes that heed SIGQUIT", took)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	if text, _ := os.ReadFile(note); strings.TrimSpace(string(text)) != "ran" {
		t.Errorf("the command left %q, want \"ran\", before the directory went", text)
	}
}

func TestStubbornProcessesAndTheirChildrenEnd(t *testing.T) {
	d := newDog(t)
	pids := filepath.Join(t.TempDir(), "pids")
	stubborn, done := guarded(t, d, fmt.Sprintf("trap '' QUIT; sleep 60 & echo $! >'%s'; wait", pids))
	child := identify(t, readPID(t, pids))
	must(t, d.Release())
	<-done
	for what, id := range map[string]proc.ID{"process": stubborn, "child": child} {
		if proc.Alive(id) {
			t.Errorf("%s %v that ignores SIGQUIT is alive", what, id)
		}
	}
}

func readPID(t *testing.T, path string) int {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); <-tick.C {
		var pid int
		text, _ := os.ReadFile(path)
		if n, _ := fmt.Sscanln(string(text), &pid); n == 1 {
			return pid
		}
	}
	t.Fatalf("no process id in %s after 5 s", path)
	return 0
}

func TestReusedProcessIDIsSpared(t *testing.T) {
	d := newDog(t)
	other := newDog(t) // guards the sleeper for real, dismissed at the end
	id, _ := guarded(t, other, "exec sleep 60")
	must(t, d.tell("pid", fmt.Sprintf("%d %s", id.PID, id.Start+"9")))
	must(t, d.Release())
	if !proc.Alive(id) {
		t.Error("a process was ended whose start time did not match")
	}
	must(t, other.Dismiss())
}

func TestDismissTouchesNothing(t *testing.T) {
	d := newDog(t)
	dir := t.TempDir()
	must(t, d.GuardDir(dir))
	id, _ := guarded(t, d, "exec sleep 60")
	must(t, d.Dismiss())
	if !proc.Alive(id) {
		t.Error("the process was ended")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Error(err)
	}
}

func TestWatchdogOutlivesTerminalSignals(t *testing.T) {
	d := newDog(t)
	dir := filepath.Join(t.TempDir(), "guarded")
	must(t, os.Mkdir(dir, 0o700))
	must(t, d.GuardDir(dir))
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		must(t, d.cmd.Process.Signal(sig))
	}
	must(t, d.Release())
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
}

func TestHeldWatchdogWaitsForTheCommand(t *testing.T) {
	d := newDog(t)
	dir := filepath.Join(t.TempDir(), "guarded")
	note := filepath.Join(t.TempDir(), "note")
	must(t, os.Mkdir(dir, 0o700))
	must(t, d.GuardDir(dir))
	cmd := exec.Command("/bin/sh", "-c", fmt.Sprintf("sleep 0.5; test -d '%s' && echo there >'%s'", dir, note))
	d.Hold(cmd)
	must(t, cmd.Start())
	must(t, d.Release())
	if text, _ := os.ReadFile(note); string(text) != "there\n" {
		t.Errorf("the command left %q, want \"there\", before the directory went", text)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is still there: %v", dir, err)
	}
	must(t, cmd.Wait())
}

func TestLineBreaksAreRefused(t *testing.T) {
	d := newDog(t)
	if err := d.GuardDir("/tmp/a\ndir /"); err == nil {
		t.Error("a path with a line break was accepted")
	}
	must(t, d.Dismiss())
}

func TestCommandDoesNotRunWhenItCannotBeGuarded(t *testing.T) {
	d := newDog(t)
	must(t, d.Dismiss())
	note := filepath.Join(t.TempDir(), "note")
	if _, err := d.Start(exec.Command("/bin/sh", "-c", "echo ran >"+note)); err == nil {
		t.Error("a command was started under a watchdog that is gone")
	}
	if _, err := os.Stat(note); !os.IsNotExist(err) {
		t.Error("the command ran")
	}
}

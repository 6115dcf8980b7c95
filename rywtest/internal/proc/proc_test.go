//go:build unix

package proc

import (
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"
)

func start(t *testing.T) (*exec.Cmd, ID) {
	t.Helper()
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	p, err := Get(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, p.ID
}

func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(5 * time.Second); !f(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("not reached in 5 s: %s", what)
		}
	}
}

func TestChildIsListedAndAlive(t *testing.T) {
	_, id := start(t)
	ids, err := Children(os.Getpid())
	if err != nil || !slices.Contains(ids, id) {
		t.Errorf("have children %v (%v), want %v among them", ids, err, id)
	}
	if !Alive(id) {
		t.Errorf("process %v is not alive", id)
	}
	if other := (ID{PID: id.PID, Start: id.Start + "1"}); Alive(other) {
		t.Errorf("a process with another start time counts as %v", other)
	}
}

func TestEndedChildIsNotAliveBeforeItIsWaitedFor(t *testing.T) {
	cmd, id := start(t)
	if err := Signal(id, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "killed process counts as gone", func() bool { return !Alive(id) })
	_ = cmd.Wait()
	if err := Signal(id, syscall.SIGKILL); err != nil {
		t.Errorf("signal to a process that is gone: have %v, want no error", err)
	}
}

func TestSignalSparesAnotherProcessWithTheSameID(t *testing.T) {
	_, id := start(t)
	if err := Signal(ID{PID: id.PID, Start: "0"}, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !Alive(id) {
		t.Error("a process was killed whose start time did not match")
	}
}

func TestStopped(t *testing.T) {
	_, id := start(t)
	if Stopped(id) {
		t.Error("a running process counts as stopped")
	}
	if err := Signal(id, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "process is stopped", func() bool { return Stopped(id) })
	if !Alive(id) {
		t.Error("a stopped process counts as gone")
	}
}

//go:build linux || darwin

package rywtest_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/rywtest"
)

// tidyLimit is how long what a dead process has left may stay.
const tidyLimit = 10 * time.Second

// child is what the test binary does when childVar is set: it starts a cluster,
// freezes a part of it, says so, and ends as its parent wants.
func child() {
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // ends with the parent
		os.Exit(4)
	}()
	mode := os.Getenv(childVar)
	signals := make(chan os.Signal, 2)
	if mode == "swallow" {
		signal.Notify(signals, syscall.SIGTERM)
	}
	fmt.Println("starting")
	c, err := rywtest.Start(context.Background(), rywtest.Options{})
	if err != nil {
		fmt.Println("failed:", err)
		select {} // killed by the signal that made Start fail
	}
	if err := c.Replica(0).Freeze(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println("ready")
	switch mode {
	case "panic":
		panic("on purpose")
	case "exit":
		os.Exit(3)
	case "swallow":
		swallow(c, signals)
	default:
		time.Sleep(time.Minute) // a child is killed long before
	}
}

// swallow is a program that handles the signal itself and goes on.
func swallow(c *rywtest.Cluster, signals chan os.Signal) {
	twice := func(c *rywtest.Cluster) {
		<-signals // as it came
		<-signals // as it was sent again, when clusters were closed
		fmt.Println("running:", c.Primary().Running())
	}
	twice(c)
	again, err := rywtest.Start(context.Background(), rywtest.Options{Replicas: rywtest.NoReplicas})
	fmt.Println("again:", err)
	twice(again)
	fmt.Println("closed:", c.Close(), again.Close())
}

// startChild runs this binary again, with its clusters below dir, and returns
// when it has said word.
func startChild(t *testing.T, mode, dir, word string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+mode, rywtest.EnvDir+"="+dir)
	out, err := cmd.StdoutPipe()
	must(t, err)
	_, err = cmd.StdinPipe()
	must(t, err)
	must(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if lines.Text() == word {
			return cmd, lines
		}
	}
	t.Fatalf("the child ended without saying %q", word)
	return nil, nil
}

// remains lists what a process with its clusters below dir has left: processes
// that work there and files in it, or containers and networks.
func remains(t *testing.T, dir string, pid int) []string {
	t.Helper()
	left := files(t, dir)
	if onDocker() {
		return append(left, engineRemains(t, pid)...)
	}
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	must(t, err)
	for _, link := range links {
		if cwd, err := os.Readlink(link); err == nil && strings.HasPrefix(cwd, dir) {
			left = append(left, link+" -> "+cwd)
		}
	}
	return left
}

func wantNoRemains(t *testing.T, dir string, pid int, limit time.Duration) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	begin := time.Now()
	for left := remains(t, dir, pid); len(left) > 0; left = remains(t, dir, pid) {
		if time.Since(begin) > limit {
			t.Errorf("left behind after %v:\n%s", limit, strings.Join(left, "\n"))
			return
		}
		<-tick.C
	}
	t.Logf("nothing left after %v", time.Since(begin).Round(time.Millisecond))
}

func TestSignalsLeaveNothingBehind(t *testing.T) {
	for _, test := range []struct {
		sig   syscall.Signal
		limit time.Duration
	}{{syscall.SIGINT, 0}, {syscall.SIGTERM, 0}, {syscall.SIGKILL, tidyLimit}, {syscall.SIGHUP, tidyLimit}} {
		t.Run(test.sig.String(), func(t *testing.T) {
			if signal.Ignored(test.sig) {
				t.Skip("the signal is ignored here, as hangup is under nohup, and a child inherits that")
			}
			dir := privateTemp(t)
			cmd, _ := startChild(t, "wait", dir, "ready")
			if len(remains(t, dir, cmd.Process.Pid)) < 3 {
				t.Fatalf("have %v, want servers", remains(t, dir, cmd.Process.Pid))
			}
			storage := volumes(t, cmd.Process.Pid)
			must(t, cmd.Process.Signal(test.sig))
			_ = cmd.Wait()
			if have := cmd.ProcessState.Sys().(syscall.WaitStatus); !have.Signaled() || have.Signal() != test.sig {
				t.Errorf("the child ended with %v, want by %v", cmd.ProcessState, test.sig)
			}
			wantNoRemains(t, dir, cmd.Process.Pid, test.limit)
			wantNoVolumes(t, storage)
		})
	}
}

func TestPanicAndExitLeaveNothingBehind(t *testing.T) {
	for _, mode := range []string{"panic", "exit"} {
		t.Run(mode, func(t *testing.T) {
			dir := privateTemp(t)
			cmd, _ := startChild(t, mode, dir, "ready")
			_ = cmd.Wait()
			wantNoRemains(t, dir, cmd.Process.Pid, tidyLimit)
		})
	}
}

func TestSignalsDuringStartLeaveNothingBehind(t *testing.T) {
	for i, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, after := range []time.Duration{0, 50, 100, 200, 300, 400} {
			t.Run(fmt.Sprintf("%v after %d ms", sig, after), func(t *testing.T) {
				dir := privateTemp(t)
				cmd, _ := startChild(t, "wait", dir, "starting")
				timer := time.NewTimer(after * time.Millisecond)
				<-timer.C
				must(t, cmd.Process.Signal(sig))
				_ = cmd.Wait()
				wantNoRemains(t, dir, cmd.Process.Pid, time.Duration(i)*tidyLimit)
			})
		}
	}
}

// A program with a handler of its own gets the signal, and can go on.
func TestSwallowedSignalClosesClustersAndLetsNewOnesStart(t *testing.T) {
	dir := privateTemp(t)
	cmd, lines := startChild(t, "swallow", dir, "ready")
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("have %q, want %q", lines.Text(), want)
		}
	}
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	expect("running: false")
	expect("again: <nil>")
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	expect("running: false")
	expect("closed: <nil> <nil>")
	must(t, cmd.Wait())
	wantNoRemains(t, dir, cmd.Process.Pid, 0)
}

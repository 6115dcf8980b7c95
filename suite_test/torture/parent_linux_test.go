package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

func parentMain() int {
	cmd := exec.Command("sleep", "60")
	endWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return 1
	}
	if err := cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return 1
	}
	fmt.Println(cmd.Process.Pid)
	time.Sleep(time.Minute) // until it is killed
	return 0
}

// A worker that is frozen ends with its parent, too, however that ends.
func TestFrozenWorkerEndsWithItsParent(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.CommandContext(t.Context(), self)
	parent.Env = append(os.Environ(), envParent+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // says that it was killed
	for deadline := time.Now().Add(10 * time.Second); alive(t, child); {
		if time.Now().After(deadline) {
			_ = syscall.Kill(child, syscall.SIGKILL)
			t.Fatal("it goes on")
		}
	}
}

// alive reports whether a process exists that is more than a number to be collected.
func alive(t *testing.T, pid int) bool {
	path := fmt.Sprintf("/proc/%d/stat", pid)
	if _, err := os.Stat(path); err != nil {
		return false
	}
	return state(t, path) != "Z"
}

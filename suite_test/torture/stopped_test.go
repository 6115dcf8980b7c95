package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// stopped reports whether a process is, giving a signal some time to arrive.
func stopped(t *testing.T, m *member) bool {
	t.Helper()
	path := fmt.Sprintf("/proc/%d/stat", m.cmd.Process.Pid)
	if _, err := os.Stat(path); err != nil {
		t.Skip("needs /proc")
	}
	was := state(t, path)
	for deadline := time.Now().Add(200 * time.Millisecond); time.Now().Before(deadline); {
		was = state(t, path)
	}
	return was == "T"
}

// state is the letter behind the program's name, which is in parentheses.
func state(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, behind, _ := strings.Cut(string(text), ") ")
	return behind[:1]
}

//go:build unix

package rywtest_test

import (
	"syscall"
	"testing"
)

func killProcess(t *testing.T, pid int) {
	t.Helper()
	must(t, syscall.Kill(pid, syscall.SIGKILL))
}

package main

import (
	"os/exec"
	"runtime"
	"syscall"
)

// endWithParent has the system kill a process when the thread that starts it ends,
// and with it its parent: one that is stopped does not see that its standard input
// has ended. The calling goroutine keeps the thread until it ends itself.
func endWithParent(cmd *exec.Cmd) {
	runtime.LockOSThread()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

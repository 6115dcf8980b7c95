//go:build unix

package rywtest

import (
	"os"
	"syscall"
)

// raise sends this process a signal.
func raise(sig os.Signal) {
	if sig, ok := sig.(syscall.Signal); ok {
		_ = syscall.Kill(os.Getpid(), sig) // cannot fail for one's own process
	}
}

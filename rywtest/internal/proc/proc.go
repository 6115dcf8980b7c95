//go:build unix

// Package proc reads the process table: who is whose child, and whether a
// process is still the one it was. Process ids are reused, so a process is
// named by its id and the time it started.
package proc

import (
	"fmt"
	"strings"
	"syscall"
)

// ID names one process for good.
type ID struct {
	PID int
	// Start is the start time in the system's own text, free of spaces.
	Start string
}

// String returns "pid start", the form the watchdog reads.
func (id ID) String() string { return fmt.Sprintf("%d %s", id.PID, id.Start) }

// Info is what the process table says about a process.
type Info struct {
	ID
	Parent int
	// State is the letter that ps shows first: T for stopped, Z for ended but
	// not yet waited for.
	State byte
}

// Children returns the children of a process.
func Children(pid int) ([]ID, error) {
	all, err := List()
	if err != nil {
		return nil, err
	}
	var ids []ID
	for _, p := range all {
		if p.Parent == pid {
			ids = append(ids, p.ID)
		}
	}
	return ids, nil
}

// Alive reports whether the process still runs. One that ended and waits for
// its parent to notice does not.
func Alive(id ID) bool {
	p, err := Get(id.PID)
	return err == nil && p.ID == id && p.State != 'Z' && p.State != 'X'
}

// Stopped reports whether the process is stopped by a signal, or gone.
func Stopped(id ID) bool {
	p, err := Get(id.PID)
	return err != nil || p.ID != id || strings.IndexByte("TtZX", p.State) >= 0
}

// Signal sends a signal unless the process is gone.
func Signal(id ID, sig syscall.Signal) error {
	if !Alive(id) {
		return nil
	}
	if err := syscall.Kill(id.PID, sig); err != nil && err != syscall.ESRCH {
		return fmt.Errorf("send signal %d to process %d: %w", sig, id.PID, err)
	}
	return nil
}

package history

import (
	"os"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// clockMonotonic is CLOCK_MONOTONIC of linux/time.h.
const clockMonotonic = 1

// newClock returns a clock on CLOCK_MONOTONIC, which all processes of a host
// share (within one boot and one time namespace).
func newClock(process string) clock {
	domain, ok := hostDomain()
	best := time.Duration(1<<63 - 1)
	var c clock
	for range 5 { // the tightest of a few readings: the scheduler may get between
		before := time.Now()
		reading, err := monotonic()
		width := time.Since(before)
		if ok = ok && err == nil; ok && width < best {
			best = width
			c = clock{domain: domain, origin: before, base: reading - int64(width/2)}
		}
	}
	if !ok {
		return localClock(process)
	}
	return c
}

// hostDomain names this boot and time namespace.
func hostDomain() (string, bool) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", false
	}
	domain, _, _ := strings.Cut(string(boot), "-")
	if ns, err := os.Readlink("/proc/self/ns/time"); err == nil {
		domain += "-" + strings.Trim(ns, "time:[]")
	}
	return domain, true
}

// monotonic reads the clock. Go's own monotonic reading has an origin that
// differs between processes.
func monotonic() (int64, error) {
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0, errno
	}
	return ts.Nano(), nil
}

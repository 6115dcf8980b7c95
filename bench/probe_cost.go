package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// costOfProbe is the replica's processor time of one position query, in seconds, and
// the memory of the server process behind a connection that asks them, in bytes, what
// it shares with others counted by its part.
func (g *growth) costOfProbe(ctx context.Context) (seconds, memory float64, err error) {
	conn, err := g.site.Replica(0).Conn(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	p, pid := watcher.NewProbe(conn), int(conn.PgConn().PID())
	const warm, probes = 100, 20_000
	for range warm {
		if _, err := p.Take(ctx); err != nil {
			return 0, 0, err
		}
	}
	before, err := processorTime(pid)
	if err != nil {
		return 0, 0, err
	}
	for range probes {
		if _, err := p.Take(ctx); err != nil {
			return 0, 0, err
		}
	}
	after, err := processorTime(pid)
	if err != nil {
		return 0, 0, err
	}
	memory, err = memoryOf(pid)
	return (after - before).Seconds() / probes, memory, err
}

// processorTime is what a process has used, by /proc (proc(5)): user and system time in
// hundredths of a second, the 14th and 15th field.
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name, the 2nd field
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("process %d: have %d fields, want 13", pid, len(fields))
	}
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// memoryOf is a process's proportional set size.
func memoryOf(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kb, err := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb * 1024, err
		}
	}
	return 0, fmt.Errorf("process %d: no Pss", pid)
}

//go:build unix && !linux

package proc

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
)

// columns are the ones that ps has on every system: id, parent, state, and the
// start time, which is five words long.
const columns = "pid=,ppid=,stat=,lstart="

// Get returns what ps says about one process.
func Get(pid int) (Info, error) {
	all, err := ps("-p", strconv.Itoa(pid))
	if err != nil {
		return Info{}, err
	}
	if len(all) != 1 {
		return Info{}, fmt.Errorf("process %d: ps shows %d lines, want 1", pid, len(all))
	}
	return all[0], nil
}

// List returns all processes.
func List() ([]Info, error) { return ps("-A") }

func ps(which ...string) ([]Info, error) {
	cmd := exec.Command("ps", append(which, "-o", columns)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C") // times are printed as the locale has them
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ps: %w", err)
	}
	var all []Info
	for line := range strings.Lines(string(out)) {
		if p, ok := parseLine(strings.Fields(line)); ok {
			all = append(all, p)
		}
	}
	return all, nil
}

func parseLine(fields []string) (Info, bool) {
	if len(fields) < 8 {
		return Info{}, false
	}
	pid, err := strconv.Atoi(fields[0])
	if err != nil {
		return Info{}, false
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return Info{}, false
	}
	start := strings.Join(fields[3:8], "_")
	return Info{ID: ID{PID: pid, Start: start}, Parent: parent, State: fields[2][0]}, true
}

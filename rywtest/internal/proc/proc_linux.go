package proc

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Get returns what /proc says about one process.
func Get(pid int) (Info, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return Info{}, err
	}
	return parseStat(pid, string(text))
}

// parseStat reads the fields that follow the program's name, which stands in
// parentheses and may hold anything: state (3), parent (4), start time (22); see
// proc_pid_stat(5).
func parseStat(pid int, text string) (Info, error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 {
		return Info{}, fmt.Errorf("stat of process %d: have %d fields, want 20 or more", pid, len(fields))
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return Info{}, fmt.Errorf("stat of process %d: parent: %w", pid, err)
	}
	return Info{ID: ID{PID: pid, Start: fields[19]}, Parent: parent, State: fields[0][0]}, nil
}

// List returns all processes. Those that end meanwhile are left out.
func List() ([]Info, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var all []Info
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if p, err := Get(pid); err == nil {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

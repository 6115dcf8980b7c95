//go:build linux || darwin

package docker

import (
	"bytes"
	"sync"
)

// logSize is how much of a log is kept.
const logSize = 16 << 10

// tail keeps the end of what is written to it.
type tail struct {
	mu    sync.Mutex // protects the fields below
	text  []byte
	total int // bytes ever written
}

func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += len(data)
	t.text = append(t.text, data...)
	if len(t.text) > 2*logSize {
		t.text = append(t.text[:0], t.text[len(t.text)-logSize:]...)
	}
	return len(data), nil
}

func (t *tail) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total
}

// since returns the end of what was written after the first size bytes.
func (t *tail) since(size int) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	length := min(t.total-size, len(t.text), logSize)
	return string(t.text[len(t.text)-length:])
}

func (t *tail) String() string { return t.since(0) }

// firstLine keeps the first line that is written to it.
type firstLine struct {
	mu       sync.Mutex // protects the fields below
	text     []byte
	complete bool
}

func (f *firstLine) Write(data []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.complete {
		var line []byte
		line, _, f.complete = bytes.Cut(data, []byte("\n"))
		f.text = append(f.text, line...)
	}
	return len(data), nil
}

// String returns the line, empty until it is complete.
func (f *firstLine) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.complete {
		return ""
	}
	return string(f.text)
}

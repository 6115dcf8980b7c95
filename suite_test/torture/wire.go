package main

import (
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/gorm-ryw/gorm-ryw/policy"
)

// Roles of workers.
const (
	roleWriter = "writer"
	roleReader = "reader"
	roleJob    = "job"
)

var roles = []string{roleWriter, roleReader, roleJob}

// Orders is what a worker is told first: who it is and what it works on.
type Orders struct {
	Name     string   `json:"name"`
	Index    int      `json:"index"`
	Role     string   `json:"role"`
	Mode     string   `json:"mode"`
	Road     string   `json:"road"`
	Prepare  bool     `json:"prepare"` // GORM's prepared statements
	Strict   bool     `json:"strict"`
	Endpoint string   `json:"endpoint"`
	Primary  string   `json:"primary"`
	Replicas []string `json:"replicas"`
	// Probe is the plugin's ProbeInterval; 0 is its default.
	Probe time.Duration `json:"probe,omitempty"`
	// Eager threads do not pause between operations.
	Eager bool `json:"eager,omitempty"`
	// Tell has the worker say now and then how many reads replicas have answered.
	Tell bool `json:"tell,omitempty"`
	// Connections is how many a pool may have open; 0 is no bound.
	Connections int `json:"connections,omitempty"`

	Seed     uint64 `json:"seed"`
	FirstKey int64  `json:"first_key"` // of the keys that this worker writes
	AllKeys  int64  `json:"all_keys"`  // keys are numbered from 1 to this
	Writers  []int  `json:"writers"`   // indexes of workers by role
	Readers  []int  `json:"readers"`
	Jobs     []int  `json:"jobs"`
}

// Hand is a token on its way to another process, as text, with the mark that it
// stands for in the history and the key that its holder touched last.
type Hand struct {
	To    int    `json:"to"`
	Token string `json:"token"`
	Mark  string `json:"mark"`
	Key   int64  `json:"key"`
	Seen  sight  `json:"seen,omitzero"`
}

// toWorker is a line on a worker's standard input.
type toWorker struct {
	Orders *Orders `json:"orders,omitempty"`
	Hand   *Hand   `json:"hand,omitempty"`
	Stop   bool    `json:"stop,omitempty"`
}

// fromWorker is a line on a worker's standard output. Behind the line with Done
// follow operations as package history encodes them.
type fromWorker struct {
	Ready bool   `json:"ready,omitempty"`
	Fatal string `json:"fatal,omitempty"`
	Hand  *Hand  `json:"hand,omitempty"`
	Reads int64  `json:"reads,omitempty"` // judged ones that replicas have answered so far
	Done  *Tally `json:"done,omitempty"`
}

// Tally is what a worker counted.
type Tally struct {
	Ops          int64 // reads and writes, unjudged reads among them
	StaleReads   int64 // reads that ask for nothing: they are not judged
	Receives     int64
	Dropped      int64                   // tokens that arrived and were not taken up in time
	Reasons      map[policy.Reason]int64 // of judged reads, as Explain says
	Failures     []Failure
	SlowestRead  Slow
	SlowestWrite Slow
	Overdue      []Failure // operations that went on long after their deadline, failed or not
	CloseTook    int64     // nanoseconds
}

// Slow is the slowest operation of its kind.
type Slow struct {
	Nanos int64
	Mark  string
}

// Failure is an error that a caller saw, or an operation that took too long.
type Failure struct {
	Mark       string
	Write      bool
	Key        int64
	Start, End int64 // of the history's clock
	Class      string
	Text       string
	// Primary is why only a primary could serve a read; empty if a standby could.
	Primary string
	// Begun says that a row had come: the library must not try again then.
	Begun    bool
	LSN      uint64 // what the token asked for
	Timeline uint32
	Seen     sight  // the one standby that could tell what else; zero for none
	Endpoint string // how the worker reaches the primary
	Why      string // the read's explanation
	server   string // who could have served the read, found out by the parent
	worker   string // whose failure it is, the same
}

// lines writes JSON lines. Safe for concurrent use.
type lines struct {
	mu sync.Mutex // protects w
	w  io.Writer
}

func (l *lines) send(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode a message: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.w.Write(append(text, '\n'))
	return err
}

// what says what the operation was.
func (f *Failure) what() string {
	if f.Write {
		return "write"
	}
	return "read"
}

package workload

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

// register is a target that has everything at once.
type register struct {
	mu sync.Mutex // protects v
	v  map[int64]int64
}

func (r *register) Write(_ context.Context, token string, key int64) (Answer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.v[key]++
	return Answer{Version: r.v[key] + 1, Token: token + "w", Detail: "written"}, nil
}

func (r *register) Read(_ context.Context, token string, key int64) (Answer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return Answer{Version: r.v[key] + 1, Token: token, Replica: true, Server: "r"}, nil
}

// load runs options and returns all operations by session.
func load(t *testing.T, o Options) (ops [][]Done) {
	t.Helper()
	o.Seed = 1
	ops = make([][]Done, o.Sessions)
	o.Each = func(d Done) { ops[d.Session] = append(ops[d.Session], d) }
	h, stats, err := Run(t.Context(), &register{v: map[int64]int64{}}, o)
	if err != nil {
		t.Fatal(err)
	}
	n := int64(0)
	for _, s := range ops {
		n += int64(len(s))
	}
	if n != stats.Reads+stats.Writes {
		t.Errorf("told of %d operations, want %d", n, stats.Reads+stats.Writes)
	}
	if r := history.Check(h, history.Options{}); stats.Reads > 0 && !r.Ok() {
		t.Error(r)
	}
	return ops
}

func TestOwnReadsAreOfTheRowJustWritten(t *testing.T) {
	for i, ops := range load(t, Options{Sessions: 3, Operations: 3000, Keys: 5, FirstKey: 10, Writes: 0.2, JustWritten: true}) {
		last := int64(-1)
		for _, d := range ops {
			if own := 10 + int64(i)*5; d.Key < own || d.Key >= own+5 {
				t.Fatalf("session %d: key %d is another's", i, d.Key)
			}
			if d.Write {
				last = d.Key
				continue
			}
			if last >= 0 && d.Key != last {
				t.Fatalf("have a read of %d, want %d", d.Key, last)
			}
		}
	}
}

func TestEachIsTold(t *testing.T) {
	for _, ops := range load(t, Options{Sessions: 2, Operations: 100, Keys: 1, Writes: 0.5}) {
		for _, d := range ops {
			if d.Began.IsZero() || d.Ended.Before(d.Began) || d.Err != nil || d.Write != (d.Answer.Detail == "written") || d.Answer.Version == 0 {
				t.Fatalf("have %+v", d)
			}
		}
	}
}

func TestWritesByTheClock(t *testing.T) {
	const every = 5 * time.Millisecond
	began := time.Now()
	writes := 0
	for _, ops := range load(t, Options{Sessions: 4, Operations: 1 << 40, Keys: 1, Writes: 1, WriteEvery: every, Lasting: 50 * time.Millisecond, Think: time.Millisecond}) {
		for _, d := range ops {
			if d.Write {
				writes++
			}
		}
	}
	if most := int(time.Since(began) / every); writes == 0 || writes > most {
		t.Errorf("have %d writes, want 1 to %d", writes, most)
	}
}

func TestRunLastsAsLongAsIsSaid(t *testing.T) {
	began := time.Now()
	load(t, Options{Sessions: 2, Operations: 1 << 40, Keys: 1, Writes: 0.1, Lasting: 30 * time.Millisecond, Think: time.Millisecond})
	if took := time.Since(began); took < 30*time.Millisecond {
		t.Errorf("ended after %s", took)
	}
}

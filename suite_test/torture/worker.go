package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

const (
	// threads is how many threads of work a worker has. The second half of them
	// takes its time, as people do.
	threads = 12
	// keysPerThread is how many keys each of them writes.
	keysPerThread = 4
	// opTimeout is the deadline of an operation: longer than any fault lasts,
	// except that of the primary in a failover.
	opTimeout = 5 * time.Second
	// overdue is how much later than its deadline an operation may return, on a
	// machine that has too much to do.
	overdue = 5 * time.Second
)

// worker is one process of the application.
type worker struct {
	orders Orders
	app    app
	rec    *history.Recorder
	out    *lines
	inbox  chan Hand
	reads  atomic.Int64 // judged ones that replicas have answered

	mu    sync.Mutex // protects tally
	tally Tally
}

// workerMain is main in a worker process. It ends when it is told to, and at once
// when its standard input does, because the parent has gone then.
func workerMain(stdin io.Reader, stdout io.Writer) int {
	signal.Ignore(os.Interrupt) // of a terminal; the parent decides
	w := &worker{out: &lines{w: stdout}, inbox: make(chan Hand, 64)}
	w.tally.Reasons = map[policy.Reason]int64{}
	in := json.NewDecoder(bufio.NewReader(stdin))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if err := w.open(in, cancel); err != nil {
		_ = w.out.send(fromWorker{Fatal: err.Error()}) // nobody else to tell
		return 1
	}
	w.work(ctx)
	if err := w.finish(stdout); err != nil {
		fmt.Fprintln(os.Stderr, w.orders.Name+":", err)
		return 1
	}
	return 0
}

// open takes the orders, listens from then on, which ends with the process, and
// connects.
func (w *worker) open(in *json.Decoder, stop context.CancelFunc) error {
	var first toWorker
	if err := in.Decode(&first); err != nil {
		return fmt.Errorf("orders: %w", err)
	}
	if first.Orders == nil {
		return fmt.Errorf("orders: have %+v", first)
	}
	w.orders = *first.Orders
	w.rec = history.NewRecorder(w.orders.Name)
	go w.listen(in, stop)
	if err := w.connect(); err != nil {
		return err
	}
	return w.out.send(fromWorker{Ready: true})
}

// connectFor is for how long a worker tries to connect: on a machine that is busy
// starting all of them the first attempts may time out.
const connectFor = 20 * time.Second

func (w *worker) connect() (err error) {
	for deadline := time.Now().Add(connectFor); ; {
		w.app, err = openApp(&w.orders)
		if err == nil || time.Now().After(deadline) {
			return err
		}
		pause(context.Background(), 100*time.Millisecond)
	}
}

// listen takes up what the parent says.
func (w *worker) listen(in *json.Decoder, stop context.CancelFunc) {
	for {
		var msg toWorker
		if err := in.Decode(&msg); err != nil {
			os.Exit(3)
		}
		switch {
		case msg.Stop:
			stop()
		case msg.Hand != nil:
			w.deliver(*msg.Hand)
		}
	}
}

// deliver drops the token if the threads are busy: a newer one will come.
func (w *worker) deliver(h Hand) {
	select {
	case w.inbox <- h:
	default:
		w.count(func(t *Tally) { t.Dropped++ })
	}
}

// work runs the threads until ctx ends.
func (w *worker) work(ctx context.Context) {
	var wg sync.WaitGroup
	for i := range threads {
		wg.Go(func() { newThread(w, i).run(ctx) })
	}
	if w.orders.Tell {
		wg.Go(func() { w.tell(ctx) })
	}
	wg.Wait()
}

// tellEvery is how often a worker says how many reads there were.
const tellEvery = 100 * time.Millisecond

func (w *worker) tell(ctx context.Context) {
	for ctx.Err() == nil {
		pause(ctx, tellEvery)
		_ = w.out.send(fromWorker{Reads: w.reads.Load()}) // fails if the parent has gone, which ends the process
	}
}

// finish sends what was counted and recorded.
func (w *worker) finish(stdout io.Writer) error {
	began := time.Now()
	err := w.app.close()
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	w.mu.Lock()
	tally := w.tally
	tally.Reasons = maps.Clone(tally.Reasons)
	w.mu.Unlock()
	tally.CloseTook = int64(time.Since(began))
	if err := w.out.send(fromWorker{Done: &tally}); err != nil {
		return err
	}
	return history.Encode(stdout, w.rec.History())
}

func (w *worker) count(f func(*Tally)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f(&w.tally)
}

// hand sends a token to a worker of some role.
func (w *worker) hand(h Hand) {
	_ = w.out.send(fromWorker{Hand: &h}) // fails if the parent has gone, which ends the process
}

package rywtest

import (
	"maps"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"

	"github.com/gorm-ryw/gorm-ryw/rywtest/internal/backend"
)

// living are the clusters of this process that are not closed.
var living registry

// registry keeps the clusters and, as long as there are any, a goroutine that
// waits for SIGINT and SIGTERM. It closes all clusters and sends the signal again,
// which by then has whatever effect it would have had without us.
type registry struct {
	mu       sync.Mutex // protects the fields below
	clusters map[*Cluster]struct{}
	signals  chan os.Signal
	stop     chan struct{} // closed to end the goroutine
	done     chan struct{} // closed when it has ended
}

func (r *registry) add(c *Cluster) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.clusters) == 0 {
		r.clusters = map[*Cluster]struct{}{}
		r.listen()
	}
	r.clusters[c] = struct{}{}
}

// listen starts the goroutine; r.mu is held. A signal that the process ignores
// stays ignored.
func (r *registry) listen() {
	r.signals, r.stop, r.done = make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		if !signal.Ignored(sig) {
			signal.Notify(r.signals, sig)
		}
	}
	go r.wait(r.signals, r.stop, r.done)
}

func (r *registry) wait(signals chan os.Signal, stop, done chan struct{}) {
	defer close(done)
	defer signal.Stop(signals)
	select {
	case sig := <-signals:
		_ = backend.Each(r.take(), (*Cluster).close) // an error has nowhere to go: the watchdog tries again
		signal.Stop(signals)
		raise(sig)
	case <-stop:
	}
}

// take returns all clusters and forgets them: this goroutine is about to end, and
// for a cluster that is added from now on a new one begins.
func (r *registry) take() []*Cluster {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Collect(maps.Keys(r.clusters))
	r.clusters = nil
	return all
}

// remove forgets a cluster and, with the last one, ends the goroutine.
func (r *registry) remove(c *Cluster) {
	if done := r.drop(c); done != nil {
		<-done
	}
}

// drop returns what to wait for, nil if the goroutine goes on.
func (r *registry) drop(c *Cluster) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.clusters[c]; !ok {
		return nil
	}
	delete(r.clusters, c)
	if len(r.clusters) > 0 {
		return nil
	}
	close(r.stop)
	return r.done
}

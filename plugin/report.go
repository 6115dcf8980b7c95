package rywplugin

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/gorm-ryw/gorm-ryw/callbacks"
	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// reporter logs what happens to servers. Whoever tells it does not wait for the log;
// what comes faster than it is written is counted.
type reporter struct {
	log  *slog.Logger
	news chan news
	once sync.Once // starts it, or finds that it need not be
	end  sync.Once
	stop chan struct{} // closed when it is to end
	done chan struct{} // closed when it has
}

// newsRoom is how much news may wait for the log. What comes on top is not logged:
// the counters have it.
const newsRoom = 256

var (
	ofWatcher   = [...]newsKind{watcher.StateChanged: stateChanged, watcher.Promoted: promoted, watcher.Refused: refused}
	ofCallbacks = [...]newsKind{callbacks.CaptureFailed: captureFailed, callbacks.NoPosition: noPosition, callbacks.PossiblyLost: possiblyLost, callbacks.Shed: shed}
)

// newReporter returns one that runs from its first news on.
func newReporter(log *slog.Logger) *reporter {
	return &reporter{log: log, news: make(chan news, newsRoom), stop: make(chan struct{}), done: make(chan struct{})}
}

// notify is told by the watcher, which is locked meanwhile.
func (r *reporter) notify(e watcher.Event) {
	r.put(news{kind: ofWatcher[e.Kind], node: e.Node.Name(), event: e})
}

// tell is told by the callbacks, in the middle of a statement.
func (r *reporter) tell(e callbacks.Event) {
	r.put(news{kind: ofCallbacks[e.Kind], node: e.Node, err: e.Err})
}

// turned is told by the rotator.
func (r *reporter) turned(t policy.Turn) {
	kind := leftRotation
	switch {
	case t.Stuck:
		kind = stuckOut
	case t.Out > 0:
		kind = backInRotation
	}
	r.put(news{kind: kind, node: t.Replica.Node.Name(), turn: t})
}

func (r *reporter) put(n news) {
	r.once.Do(func() { go r.run() })
	select {
	case r.news <- n:
	default:
	}
}

// close ends the reporter and waits for it. Idempotent.
func (r *reporter) close() {
	r.end.Do(func() { close(r.stop) })
	r.once.Do(func() { close(r.done) }) // it never ran
	<-r.done
}

func (r *reporter) run() {
	defer close(r.done)
	var p press
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-r.stop:
			return
		case n := <-r.news:
			p.take(n, mono.Now())
		case <-timer.C:
		}
		now := mono.Now()
		for _, l := range p.due(now) {
			r.write(l)
		}
		timer.Reset(p.next(now))
	}
}

func (r *reporter) write(l *line) {
	level, text, attrs := l.text()
	r.log.LogAttrs(context.Background(), level, "gorm-ryw: "+text, attrs...)
}

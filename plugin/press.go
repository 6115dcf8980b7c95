package rywplugin

import (
	"cmp"
	"log/slog"
	"slices"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/watcher"
)

// newsKind is what news is about.
type newsKind uint8

const (
	stateChanged newsKind = iota
	promoted
	refused
	captureFailed
	noPosition
	possiblyLost
	shed
	leftRotation
	backInRotation
	stuckOut
)

// news is something that happened to a node.
type news struct {
	kind  newsKind
	node  string
	event watcher.Event // of the watcher's kinds
	turn  policy.Turn   // of rotation's
	err   error
}

const (
	// newsInterval is the least time between two lines of a kind about a node.
	newsInterval = 10 * time.Second
	// newsSettle is how long a changed state has to stay that way to be written as
	// it is: at the start, and in a failover, one follows another.
	newsSettle = 100 * time.Millisecond
)

// line is the news of a kind about a node.
type line struct {
	last    news
	from    watcher.Condition // in the line before
	count   int               // what happened since then
	ready   mono.Instant      // not to be written before; zero: nothing is to be written
	written mono.Instant
}

type lineKey struct {
	kind newsKind
	node string
}

// press collects news into lines, few enough to be read: a node that changes back and
// forth makes one each newsInterval. The zero value is empty.
type press struct{ lines map[lineKey]*line }

func (p *press) take(n news, now mono.Instant) {
	if p.lines == nil {
		p.lines = map[lineKey]*line{}
	}
	key := lineKey{n.kind, n.node}
	l := p.lines[key]
	if l == nil {
		l = &line{from: n.event.From}
		p.lines[key] = l
	}
	l.last = n
	l.count++
	if n.kind == stateChanged {
		now = now.Add(newsSettle)
	}
	if l.written != 0 {
		now = max(now, l.written.Add(newsInterval))
	}
	if l.ready == 0 {
		l.ready = now
	}
}

// due returns the lines that are to be written now.
func (p *press) due(now mono.Instant) (lines []*line) {
	for _, l := range p.lines {
		if l.ready == 0 || l.ready > now {
			continue
		}
		ready := *l
		lines = append(lines, &ready)
		l.from, l.count, l.ready, l.written = l.last.event.To, 0, 0, now
	}
	slices.SortFunc(lines, func(a, b *line) int { return cmp.Compare(a.ready, b.ready) })
	return lines
}

// next is how long there is nothing to be written.
func (p *press) next(now mono.Instant) time.Duration {
	next := time.Hour
	for _, l := range p.lines {
		if l.ready != 0 {
			next = min(next, max(0, l.ready.Sub(now)))
		}
	}
	return next
}

// text is what a line says.
func (l *line) text() (slog.Level, string, []slog.Attr) {
	node, times := slog.String("node", l.last.node), slog.Int("times", l.count)
	e := &l.last.event
	switch l.last.kind {
	case stateChanged:
		level, text := conditionText(e)
		attrs := []slog.Attr{node, slog.String("from", l.from.String()), slog.String("to", e.To.String()), slog.Int("changes", l.count)}
		if e.Reason != "" {
			attrs = append(attrs, slog.String("reason", e.Reason))
		}
		return level, text, attrs
	case promoted:
		return slog.LevelWarn, "another server was promoted", []slog.Attr{
			node, slog.Uint64("from_timeline", uint64(e.OldTimeline)), slog.Uint64("to_timeline", uint64(e.NewTimeline)),
		}
	case refused:
		return slog.LevelWarn, "replica's pool is refused for token reads", []slog.Attr{node, slog.String("reason", e.Reason)}
	case captureFailed:
		return slog.LevelWarn, "position of a write not captured, marked instead", []slog.Attr{node, slog.Any("error", l.last.err), times}
	case noPosition:
		return slog.LevelWarn, "a connection to the primary gives no position, its writes are marked", []slog.Attr{node, slog.Any("error", l.last.err), times}
	case shed:
		return l.shedText()
	case leftRotation, backInRotation, stuckOut:
		return l.turnText()
	}
	return slog.LevelError, "a session has written or read what may have been lost in a failover", []slog.Attr{node, times}
}

func (l *line) shedText() (slog.Level, string, []slog.Attr) {
	attrs := []slog.Attr{slog.String("node", l.last.node), slog.Int("times", l.count)}
	if l.last.err == nil {
		return slog.LevelWarn, "too many reads fall back to the primary, some are served stale", attrs
	}
	return slog.LevelWarn, "too many reads fall back to the primary, some fail", append(attrs, slog.Any("error", l.last.err))
}

func (l *line) turnText() (slog.Level, string, []slog.Attr) {
	t := &l.last.turn
	attrs := []slog.Attr{slog.String("node", l.last.node), slog.Duration("lag", t.Lag)}
	if t.Out > 0 {
		attrs = append(attrs, slog.Duration("out_for", t.Out))
	}
	switch l.last.kind {
	case stuckOut:
		return slog.LevelWarn, "replica is stuck out of rotation", attrs
	case backInRotation:
		return slog.LevelInfo, "replica is back in rotation", attrs
	}
	return slog.LevelInfo, "slow replica leaves rotation", attrs
}

func conditionText(e *watcher.Event) (slog.Level, string) {
	primary := e.Node.IsPrimary()
	switch {
	case e.To == watcher.Proven && primary:
		return slog.LevelInfo, "primary answers"
	case e.To == watcher.Proven:
		return slog.LevelInfo, "replica serves token reads"
	case primary && e.To == watcher.Down:
		return slog.LevelWarn, "primary does not answer the watcher"
	case primary:
		return slog.LevelWarn, "primary does not answer as one"
	case e.To == watcher.Healthy:
		return slog.LevelWarn, "replica serves no token reads"
	case e.To == watcher.Ineligible:
		return slog.LevelWarn, "replica serves no reads"
	}
	return slog.LevelWarn, "replica does not answer"
}

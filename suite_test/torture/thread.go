package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

// thread is one causal thread of work after another: after some hundred
// operations it begins anew as somebody who has seen nothing.
//
// What it does by itself it draws from rng, what a token that arrives makes it do
// from react, so that the former does not depend on the latter.
type thread struct {
	w          *worker
	index      int
	rng, react *rand.Rand

	ses    *history.Session
	bearer *bearer
	number int   // of the session
	left   int   // operations until the next one
	last   int64 // key that was read or written last

	versions map[int64]int64 // last version given to each key of its own
}

// think is the mean pause between two operations of a quick thread, slowThink of a
// slow one. What a quick thread asks for is always recent; what a slow one asks for
// all servers have had for long, and must not have lost.
const (
	think     = 20 * time.Millisecond
	slowThink = 300 * time.Millisecond
)

func newThread(w *worker, index int) *thread {
	stream := uint64(w.orders.Index*threads + index)
	return &thread{
		w: w, index: index, versions: map[int64]int64{},
		rng:   rand.New(rand.NewPCG(w.orders.Seed, 2*stream)),
		react: rand.New(rand.NewPCG(w.orders.Seed, 2*stream+1)),
	}
}

func (t *thread) run(ctx context.Context) {
	mean, inbox := think, t.w.inbox
	switch {
	case t.slow():
		mean, inbox = slowThink, nil
	case t.w.orders.Eager:
		mean = 0
	}
	for ctx.Err() == nil {
		if t.left--; t.left < 0 {
			t.renew()
		}
		t.own()
		select {
		case <-ctx.Done():
		case h := <-inbox:
			t.take(h)
		case <-time.After(time.Duration(t.rng.ExpFloat64() * float64(mean))):
		}
	}
}

func (t *thread) slow() bool { return t.index >= threads/2 }

// renew begins a session.
func (t *thread) renew() {
	t.number++
	t.ses = t.w.rec.Session(fmt.Sprintf("%s/%d.%d", t.w.orders.Name, t.index, t.number))
	how := t.rng.IntN(carries)
	if t.w.orders.Mode != modeRYW {
		how = carryText
	}
	t.bearer = newBearer(how)
	t.left = 300 + t.rng.IntN(1500)
	if t.slow() {
		t.left /= 10
	}
}

// own does what the thread does by itself.
func (t *thread) own() {
	p, way, key, elsewhere := t.rng.Float64(), t.rng.IntN(ways), t.rng.IntN(keysPerThread), t.rng.Int64N(t.w.orders.AllKeys)
	r := read{key: t.ownKey(key), raw: way == 0}
	again := t.rng.IntN(2) == 0
	writes := map[string]float64{roleWriter: 0.35, roleReader: 0.02, roleJob: 0.1}[t.w.orders.Role]
	if t.slow() {
		writes = 0.3
	}
	switch {
	case p < writes:
		t.write(t.ownKey(key), way)
		t.handOn(t.rng, t.ownKey(key), 0.7)
	case again && t.last > 0:
		r.key = t.last // reloads the page
		t.read(r)
	case p < 0.55:
		t.read(r)
	case p < 0.92:
		r.key = 1 + elsewhere
		t.read(r)
	case p < 0.95:
		r.strong = true
		t.read(r)
	default:
		r.key, r.stale = 1+elsewhere, true
		t.stale(r)
	}
}

func (t *thread) ownKey(n int) int64 {
	return t.w.orders.FirstKey + int64(t.index*keysPerThread+n)
}

// take goes on with what another process did: it reads what that touched last,
// and a job writes its own result and answers.
func (t *thread) take(h Hand) {
	p, way, key := t.react.Float64(), t.react.IntN(ways), t.ownKey(t.react.IntN(keysPerThread))
	if err := t.w.app.observe(t.bearer, h.Token); err != nil {
		t.failed(Failure{Mark: h.Mark, Key: h.Key}, err)
		return
	}
	if h.Seen.At > t.bearer.seen.At {
		t.bearer.seen = h.Seen
	}
	if err := t.ses.Receive(h.Mark); err != nil {
		t.failed(Failure{Mark: h.Mark, Key: h.Key}, err)
		return
	}
	t.w.count(func(tally *Tally) { tally.Receives++ })
	t.read(read{key: h.Key, raw: way == 0})
	if t.w.orders.Role == roleJob && p < 0.5 {
		t.write(key, way)
		t.handOn(t.react, key, 1)
	} else if p > 0.9 {
		t.handOn(t.react, h.Key, 1)
	}
}

// handOn gives the thread's token to somebody else: a writer's to readers and
// jobs, a job's to anybody, a reader's to readers.
func (t *thread) handOn(rng *rand.Rand, key int64, share float64) {
	o := &t.w.orders
	p, to := rng.Float64(), o.Readers
	switch {
	case o.Role == roleWriter && p < share/2:
		to = o.Jobs
	case o.Role == roleJob && p < share/2:
		to = o.Writers
	}
	target := to[rng.IntN(len(to))]
	if p < share {
		t.w.hand(Hand{To: target, Token: t.bearer.token(), Mark: t.ses.Mark().String(), Key: key, Seen: t.bearer.seen})
	}
}

// keyPrefix stands before the number of a key in the history.
const keyPrefix = "item:"

func keyName(key int64) string { return fmt.Sprint(keyPrefix, key) }

func (t *thread) write(key int64, way int) {
	t.last = key
	t.versions[key]++
	version := t.versions[key]
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	op, began := t.ses.Write(keyName(key), version), t.w.rec.Now()
	a, err := t.w.app.write(ctx, t.bearer, key, version, way)
	if err == nil {
		op.End(history.Answer{Outcome: history.OK, Version: version, Timeline: a.timeline, Position: history.LSN(a.lsn)})
	} else {
		op.End(history.Answer{Outcome: outcomeOf(err), Version: version})
	}
	t.ended(Failure{Mark: t.ses.Mark().String(), Write: true, Key: key}, began, err)
}

func (t *thread) read(r read) {
	t.last = r.key
	asked, seen := t.asked(), sight{}
	if asked.nodes == 1 {
		seen = t.bearer.seen
	}
	if r.strong {
		asked.primary = needStrong
	}
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	op, began := t.ses.Read(keyName(r.key)), t.w.rec.Now()
	f, err := t.w.app.read(ctx, t.bearer, r)
	if err == nil {
		op.End(t.answer(&f))
	} else {
		op.End(history.Answer{Outcome: history.Unknown})
	}
	t.ended(Failure{
		Mark: t.ses.Mark().String(), Key: r.key, Primary: asked.primary, Begun: f.begun,
		LSN: asked.lsn, Timeline: asked.timeline, Seen: seen, Why: f.why,
	}, began, err)
}

// answer is what a judged read came back with, for the history.
func (t *thread) answer(f *found) history.Answer {
	t.w.count(func(tally *Tally) { tally.Reasons[f.reason]++ })
	role := history.Primary
	if f.item.Replica {
		role = history.Replica
		t.w.reads.Add(1)
		t.bearer.seen = sight{Server: f.item.Server, At: t.w.rec.Now()}
	}
	return history.Answer{
		Outcome: history.OK, Version: f.item.V, Role: role, LostReported: f.lost, Strict: t.w.orders.Strict,
		Node: f.item.Server + " (" + f.why + ")",
	}
}

// stale reads outside of any session: it is not judged, but must not fail.
func (t *thread) stale(r read) {
	ctx, cancel := context.WithTimeout(context.Background(), opTimeout)
	defer cancel()
	began := t.w.rec.Now()
	f, err := t.w.app.read(ctx, t.bearer, r)
	t.w.count(func(tally *Tally) { tally.StaleReads++ })
	t.ended(Failure{Mark: t.w.orders.Name + ", any state", Key: r.key, Begun: f.begun, Why: f.why}, began, err)
}

// asked is what the next read asks for.
func (t *thread) asked() need {
	if t.w.orders.Mode != modeRYW {
		return need{}
	}
	s, err := t.bearer.session()
	if err != nil {
		return need{}
	}
	return needOf(s.Token())
}

// ended counts an operation that is over. The failure says what it was, also if it
// did not fail.
func (t *thread) ended(f Failure, began int64, err error) {
	f.Start, f.End, f.Endpoint = began, t.w.rec.Now(), t.w.orders.Endpoint
	t.w.count(func(tally *Tally) {
		tally.Ops++
		slowest := &tally.SlowestRead
		if f.Write {
			slowest = &tally.SlowestWrite
		}
		took := f.End - f.Start
		if took > slowest.Nanos {
			*slowest = Slow{Nanos: took, Mark: f.Mark}
		}
		if err != nil {
			f.Class, f.Text = classOf(err), textOf(err)
			tally.Failures = append(tally.Failures, f)
		}
		if took > int64(opTimeout+overdue) {
			tally.Overdue = append(tally.Overdue, f)
		}
	})
}

// failed notes an error that is none of an operation.
func (t *thread) failed(f Failure, err error) {
	f.Start = t.w.rec.Now()
	f.End, f.Class, f.Text = f.Start, classOf(err), textOf(err)
	t.w.count(func(tally *Tally) { tally.Failures = append(tally.Failures, f) })
}

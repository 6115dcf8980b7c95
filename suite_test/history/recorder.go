package history

import "sync"

// Recorder collects the history of one process. It is safe for concurrent use;
// each session has a buffer of its own, so that sessions do not wait for one
// another.
type Recorder struct {
	process string
	clock   clock

	// mu protects what follows, not the sessions' buffers.
	mu       sync.Mutex
	sessions map[string]*Session
	order    []*Session
	rest     History // promotions and initial versions
}

// NewRecorder returns an empty recorder for the named process. On Linux its
// times are those of CLOCK_MONOTONIC, comparable between the processes of one
// host (to within the microsecond it takes to read the clock once); elsewhere
// they are comparable within the process only, and the clock's name says so.
func NewRecorder(process string) *Recorder {
	return &Recorder{process: process, clock: newClock(process), sessions: make(map[string]*Session)}
}

// Now returns the recorder's time in nanoseconds, for [Promotion].At.
func (r *Recorder) Now() int64 { return r.clock.now() }

// Session returns the session of that name, a new one at first use. Names must
// be unique among all processes whose histories are merged.
func (r *Recorder) Session(name string) *Session {
	r.mu.Lock()
	defer r.mu.Unlock()
	s, ok := r.sessions[name]
	if !ok {
		s = &Session{name: name, recorder: r}
		r.sessions[name] = s
		r.order = append(r.order, s)
	}
	return s
}

// Promotion records a failover. Its Clock is filled in, and At, if it is 0,
// becomes now: take Now before the promotion is asked for instead.
func (r *Recorder) Promotion(p Promotion) {
	p.Clock = r.clock.domain
	if p.At == 0 {
		p.At = r.clock.now()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.rest.Promotions = append(r.rest.Promotions, p)
}

// Initial declares a version that is stored, and visible on every node, before
// the run begins. A second, different version for a key is an error.
func (r *Recorder) Initial(key string, version int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.rest.declare(key, version)
}

// History returns a copy of everything recorded up to now. Operations that
// have not ended are in it as unknown ones without an end.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.rest.clone()
	for _, s := range r.order {
		s.mu.Lock()
		h.Ops = append(h.Ops, s.ops...)
		s.mu.Unlock()
	}
	return h
}

// Session records one causal thread of work. Its operations must follow one
// another: overlapping ones are safe to record but cannot be judged. Work that
// runs beside it is another session that receives this one's mark.
type Session struct {
	name     string
	recorder *Recorder

	// mu protects ops.
	mu  sync.Mutex
	ops []Op
}

// Write begins a write. The version is the one that the key's only writer
// chose, or VersionUnknown if the row assigns it.
func (s *Session) Write(key string, version int64) Pending {
	return s.begin(Op{Kind: Write, Key: key, Answer: Answer{Outcome: Unknown, Version: version}})
}

// Read begins a read.
func (s *Session) Read(key string) Pending {
	return s.begin(Op{Kind: Read, Key: key, Answer: Answer{Outcome: Unknown}})
}

// Receive records that the token belonging to that mark was taken over: from
// here on the sender's causal past binds this session. The mark is the text of
// [Session.Mark]; one that does not parse is an error and records nothing.
func (s *Session) Receive(mark string) error {
	from, err := ParseMark(mark)
	if err != nil {
		return err
	}
	s.begin(Op{Kind: Receive, From: from}).End(Answer{})
	return nil
}

// Mark returns the state after the last operation begun.
func (s *Session) Mark() Mark {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Mark{Session: s.name, Seq: len(s.ops)}
}

func (s *Session) begin(op Op) Pending {
	op.Process, op.Session, op.Clock = s.recorder.process, s.name, s.recorder.clock.domain
	s.mu.Lock()
	defer s.mu.Unlock()
	op.Seq = len(s.ops) + 1
	op.Start = s.recorder.clock.now()
	s.ops = append(s.ops, op)
	return Pending{session: s, index: len(s.ops) - 1}
}

// Pending is an operation that has begun. Its zero value is unusable.
type Pending struct {
	session *Session
	index   int
}

// End records the answer. A version 0 in a write's answer keeps the version the
// write began with. Ending an operation twice is a mistake of the caller and
// panics.
func (p Pending) End(a Answer) {
	end := p.session.recorder.clock.now()
	p.session.mu.Lock()
	defer p.session.mu.Unlock()
	op := &p.session.ops[p.index]
	if op.End != 0 {
		panic("history: operation " + op.Mark().String() + " ended twice")
	}
	if op.Kind == Write && a.Version == 0 {
		a.Version = op.Version
	}
	op.End, op.Answer = end, a
}

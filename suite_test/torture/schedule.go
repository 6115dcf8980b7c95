package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Kind is a kind of fault.
type Kind uint8

// The kinds. Those up to CutLinks are of one standby, FreezeWorkers is of the
// application, the others are of the primary.
const (
	KillReplica Kind = iota
	KillReplicaBackend
	StopReplica
	RestartReplica
	FreezeReplica
	PauseReplay
	DelayReplay
	PartitionReplica
	PartitionReplication
	SlowLinks
	CutLinks
	KillPrimary
	KillPrimaryBackend
	FreezePrimary
	PartitionPrimary
	Promote
	SplitBrain
	OldReturns
	Diverge
	FreezeWorkers
	kinds
)

var kindNames = [kinds]string{
	KillReplica:          "replica: SIGKILL, start",
	KillReplicaBackend:   "replica: SIGKILL of one backend",
	StopReplica:          "replica: immediate stop, start",
	RestartReplica:       "replica: restart",
	FreezeReplica:        "replica: SIGSTOP, SIGCONT",
	PauseReplay:          "replica: replay paused",
	DelayReplay:          "replica: replay delayed",
	PartitionReplica:     "replica: partitioned from clients",
	PartitionReplication: "replica: partitioned from primary",
	SlowLinks:            "replica: slow network",
	CutLinks:             "replica: connections cut",
	KillPrimary:          "primary: SIGKILL, start",
	KillPrimaryBackend:   "primary: SIGKILL of one backend",
	FreezePrimary:        "primary: SIGSTOP, SIGCONT",
	PartitionPrimary:     "primary: partitioned from clients",
	Promote:              "failover",
	SplitBrain:           "failover: the old primary lives on for a while",
	OldReturns:           "failover: the old primary comes back as one for a while",
	Diverge:              "failover: a standby stays behind, with what is lost",
	FreezeWorkers:        "application: SIGSTOP, SIGCONT",
}

// String returns the kind in words.
func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("fault %d", k)
}

func (k Kind) ofReplica() bool { return k <= CutLinks }

// failsOver reports whether another server is promoted.
func (k Kind) failsOver() bool { return k >= Promote && k <= Diverge }

// crashes reports whether the server replays local WAL again when it is back.
func (k Kind) crashes() bool {
	return k == KillReplica || k == KillReplicaBackend || k == StopReplica
}

// Step is one fault, or two at the same time. Its zero value kills a replica and
// starts it again at once.
type Step struct {
	Kind Kind
	// Standby chooses among the standbys there are, in the order of the
	// servers, modulo their number.
	Standby int
	// Hold is for how long the fault lasts, Gap the pause behind it.
	Hold, Gap time.Duration
	// Drop has what a partition held back thrown away instead of delivered.
	Drop bool
	// Ballast is how many MB of WAL are written first, so that a server that
	// crashes has something to replay again.
	Ballast int
	// Behind is how many MB of WAL a standby that crashes must have to replay
	// again after it has opened for reads; 0 is any number.
	Behind int
	// Frozen worker processes, beginning with that number, modulo how many there
	// are, are stopped: for as long as the fault lasts, or before a server crashes
	// and until that long after it answers again.
	Frozen, Worker int
	Thaw           time.Duration
	// Lossy lets a failover lose writes that were acknowledged: the standbys
	// are cut off from the primary for a moment before it dies, or the old primary
	// takes writes when there is a new one.
	Lossy bool
	// With begins at the same time on another standby, or in the application; nil
	// for none. In a failover it is a standby's state, or the workers', when the
	// primary dies.
	With *Step
}

// String returns the step in one line.
func (s *Step) String() string {
	text := fmt.Sprintf("%s for %s", s.Kind, s.Hold)
	if s.Kind.ofReplica() || s.Kind == Diverge {
		text += fmt.Sprintf(", standby %d", s.Standby)
	}
	if s.Drop {
		text += ", dropping what was held back"
	}
	if s.Ballast > 0 {
		text += fmt.Sprintf(", behind %d MB of WAL", s.Ballast)
	}
	if s.Behind > 0 {
		text += fmt.Sprintf(", at least %d MB behind its last restartpoint", s.Behind)
	}
	if s.Frozen > 0 {
		text += fmt.Sprintf(", %d workers from %d on frozen", s.Frozen, s.Worker)
	}
	if s.Thaw > 0 {
		text += fmt.Sprintf(" until %s after it", s.Thaw)
	}
	if s.Lossy {
		text += ", losing writes"
	}
	if s.With != nil {
		text += "; with: " + s.With.String()
	}
	return text
}

// Schedule is an endless sequence of steps that depends on nothing but its seed.
type Schedule struct {
	rng  *rand.Rand
	deck []Kind
	// lossless makes no failover lose writes.
	lossless bool
	// crashes are of standbys, in turn, and nothing else.
	crashes bool
	turn    int
}

// NewSchedule returns the schedule of a seed.
func NewSchedule(seed uint64, lossless bool) *Schedule {
	return &Schedule{rng: rand.New(rand.NewPCG(seed, 0x70727475)), lossless: lossless}
}

// Next returns the next step. The kinds are dealt like cards, one or two to a step,
// and a new deck is begun when the last one is used up.
func (s *Schedule) Next() Step {
	if s.crashes {
		return s.nextCrash()
	}
	if len(s.deck) == 0 {
		s.shuffle()
	}
	kind := s.deck[0]
	s.deck = s.deck[1:]
	st := s.step(kind)
	if other, ok := s.rider(kind); ok && s.rng.Float64() < 0.6 {
		s.deck = slices.DeleteFunc(s.deck, func(k Kind) bool { return k == other })
		with := s.step(other)
		with.Ballast = 0
		st.With = &with
	}
	return st
}

// shuffle makes a new deck, with the failovers far from one another: the next one has
// to wait until the server that was the primary is back.
func (s *Schedule) shuffle() {
	var failovers, others []Kind
	for _, k := range s.rng.Perm(int(kinds)) {
		if Kind(k).failsOver() {
			failovers = append(failovers, Kind(k))
		} else {
			others = append(others, Kind(k))
		}
	}
	n := len(failovers)
	for i, k := range failovers {
		s.deck = append(s.deck, others[i*len(others)/n:(i+1)*len(others)/n]...)
		s.deck = append(s.deck, k)
	}
}

// riders are the kinds that may go along with another fault.
var riders = []Kind{
	KillReplica, StopReplica, RestartReplica, FreezeReplica, PauseReplay, DelayReplay,
	PartitionReplica, PartitionReplication, SlowLinks, FreezeWorkers,
}

// rider is the next kind of the deck that may go along with another.
func (s *Schedule) rider(with Kind) (Kind, bool) {
	may := riders
	switch {
	case with.failsOver():
		may = []Kind{PauseReplay, FreezeWorkers}
	case with == FreezeWorkers:
		return 0, false
	}
	i := slices.IndexFunc(s.deck, func(k Kind) bool { return slices.Contains(may, k) })
	if i < 0 {
		return 0, false
	}
	return s.deck[i], true
}

// step draws the same number of values whatever the kind is.
func (s *Schedule) step(k Kind) Step {
	st := Step{
		Kind: k, Standby: s.rng.IntN(6),
		Hold: s.millis(100, 800), Gap: s.millis(50, 250), Drop: s.rng.IntN(2) == 0,
	}
	ballast, lossy := s.rng.IntN(2) == 0, s.rng.IntN(2) == 0
	frozen, worker := 1+s.rng.IntN(3), s.rng.IntN(6)
	if ballast && k.crashes() {
		st.Ballast = 32
	}
	if k == FreezeWorkers {
		st.Frozen, st.Worker = frozen, worker
	}
	st.Lossy = k.failsOver() && (lossy || k != Promote) && !s.lossless
	return st
}

func (s *Schedule) millis(from, to int) time.Duration {
	return time.Duration(from+s.rng.IntN(to-from)) * time.Millisecond
}

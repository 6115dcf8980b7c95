package rywplugin

import (
	"context"
	"slices"
	"time"

	"github.com/gorm-ryw/gorm-ryw/internal/mono"
	"github.com/gorm-ryw/gorm-ryw/policy"
)

// rotateEvery is how often replicas are looked at whether they are too slow.
const rotateEvery = 250 * time.Millisecond

// rotator looks after the rotation of replicas until it is stopped.
type rotator struct {
	ctx    context.Context // ends when it is stopped
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended; nil if it was not started
}

func (p *Plugin) startRotator() {
	p.turns.ctx, p.turns.cancel = context.WithCancel(context.Background())
	p.turns.done = make(chan struct{})
	go p.rotate()
}

// stopRotator waits for its end. Idempotent.
func (p *Plugin) stopRotator() {
	if p.turns.done != nil {
		p.turns.cancel()
		<-p.turns.done
	}
}

func (p *Plugin) rotate() {
	defer close(p.turns.done)
	ticker := time.NewTicker(rotateEvery)
	defer ticker.Stop()
	for {
		select {
		case <-p.turns.ctx.Done():
			return
		case <-ticker.C:
			for _, t := range p.router.Rotate(mono.Now()) {
				p.reporter.turned(t)
			}
		}
	}
}

// replicas returns the replicas that are known.
func (p *Plugin) replicas() (all []*policy.Replica) {
	for _, k := range p.router.Pools.All() {
		if k.Replica != nil && !slices.Contains(all, k.Replica) {
			all = append(all, k.Replica)
		}
	}
	return all
}

package rywplugin

import (
	"context"
	"slices"
	"sync"

	"github.com/gorm-ryw/gorm-ryw/callbacks"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"gorm.io/gorm"
)

// ExplainInto returns a context whose statements are explained in *into by the time the
// call that ran them returns: for generics, Row and Rows, which return no *gorm.DB. Of
// several statements it is the last one, without those that run on another's behalf,
// such as preloads. It must not be read while such a call is under way, and the context
// not be used by several goroutines at a time.
func ExplainInto(ctx context.Context, into *Explanation) context.Context {
	return callbacks.Explained(ctx, func(tx *gorm.DB) { *into = Explain(tx) })
}

// onlookers are told of reads. The zero value is nobody.
type onlookers struct {
	hook callbacks.Hook

	mu  sync.Mutex // protects all
	all []*onlooker
}

type onlooker struct {
	see func(context.Context, Explanation)
}

// OnRead has f called for each read that is routed, once it was answered: by the
// goroutine that sent it, with the statement's context, which still has the span of
// whoever traces it. It must not send statements with that context. Its Explanation is
// without Token and with what was known by then: what may have been lost in a failover
// may show a little later. Nothing is called for statements in a transaction, or for
// writes. Undo has it called no more.
func (p *Plugin) OnRead(f func(context.Context, Explanation)) (undo func()) {
	o := &onlooker{f}
	p.onlookers.change(func(all []*onlooker) []*onlooker { return append(slices.Clip(all), o) })
	return func() {
		p.onlookers.change(func(all []*onlooker) []*onlooker {
			return slices.DeleteFunc(slices.Clone(all), func(have *onlooker) bool { return have == o })
		})
	}
}

func (o *onlookers) change(change func([]*onlooker) []*onlooker) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = change(o.all)
	all := o.all
	if len(all) == 0 {
		o.hook.Set(nil)
		return
	}
	o.hook.Set(func(ctx context.Context, d *policy.Decision) {
		e := explanation(*d)
		for _, one := range all {
			one.see(ctx, e)
		}
	})
}

package callbacks

import (
	"context"
	"database/sql"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"gorm.io/gorm"
)

// plain reports whether reads are to be left where dbresolver sends them.
func (l *Layer) plain() bool {
	return l.cfg.Router.Settings().Mode == policy.PlainResolver
}

// leave leaves a statement where dbresolver sent it. The sessions learn of it.
func (c *call) leave() {
	rep := c.known.Replica
	if rep == nil {
		c.toPrimary(policy.ByResolver)
		return
	}
	c.decision = byResolver(rep, c.request.Level)
	c.target, c.pure = c.base, true // if it writes, the replica refuses it
	rep.Begin()
}

// beginPlain begins a transaction on the replica that dbresolver chose.
func (p *Pool) beginPlain(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	tx, err := p.DB.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return p.layer.pinned(ctx, tx, byResolver(p.known.Replica, policy.Unset)), nil
}

// byResolver is the decision for a replica that dbresolver chose.
func byResolver(rep *policy.Replica, level policy.Level) policy.Decision {
	d := policy.Decision{Replica: rep, Reason: policy.ByResolver, Level: level, Stale: level != policy.StaleOK}
	if st := rep.Node.State(); st.Proven {
		d.Incarnation = st.Incarnation
	}
	return d
}

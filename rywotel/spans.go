package rywotel

import (
	"context"
	"errors"

	rywplugin "github.com/gorm-ryw/gorm-ryw/plugin"
	"github.com/gorm-ryw/gorm-ryw/policy"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"gorm.io/gorm"
)

// The attributes of spans.
const (
	NodeKey         = attribute.Key("ryw.node")
	RoleKey         = attribute.Key("ryw.role")
	ReasonKey       = attribute.Key("ryw.reason")
	HintKey         = attribute.Key("ryw.hint")
	WaitKey         = attribute.Key("ryw.wait.duration") // seconds
	GapKey          = attribute.Key("ryw.gap")           // bytes
	RetriesKey      = attribute.Key("ryw.retries")
	PossiblyLostKey = attribute.Key("ryw.possibly_lost")
)

func roleOf(e rywplugin.Explanation) attribute.KeyValue {
	if e.Replica {
		return RoleKey.String("replica")
	}
	return RoleKey.String("primary")
}

// onSpan explains a statement on the active span.
func onSpan(ctx context.Context, e rywplugin.Explanation) {
	span := trace.SpanFromContext(ctx)
	if e.Reason == policy.Undecided || !span.IsRecording() {
		return
	}
	all := []attribute.KeyValue{NodeKey.String(e.Node), roleOf(e), ReasonKey.String(e.Reason.Label())}
	if e.Level != policy.Unset {
		all = append(all, HintKey.String(e.Level.Label()))
	}
	if e.Waited > 0 {
		all = append(all, WaitKey.Float64(e.Waited.Seconds()))
	}
	if e.Gap > 0 {
		all = append(all, GapKey.Int64(int64(e.Gap)))
	}
	if e.Retries > 0 {
		all = append(all, RetriesKey.Int(e.Retries))
	}
	if e.PossiblyLost {
		all = append(all, PossiblyLostKey.Bool(true))
	}
	span.SetAttributes(all...)
}

const (
	beforeName = "gorm-ryw:otel_before"
	afterName  = "gorm-ryw:otel_after"
)

// registerSpans explains what OnRead is not told of: writes, and reads in transactions.
// A tracing plugin's span is there between two callbacks around the one that sends. In
// which order theirs and ours run depends on who came first; one of two of ours is
// always in between.
func registerSpans(db *gorm.DB) error {
	cb := db.Callback()
	if cb.Create().Get(beforeName) != nil {
		return nil
	}
	c, u, d, q, row, raw := cb.Create(), cb.Update(), cb.Delete(), cb.Query(), cb.Row(), cb.Raw()
	return errors.Join(
		c.Before("gorm:create").Register(beforeName, explainStatement), c.After("gorm:create").Register(afterName, explainStatement),
		u.Before("gorm:update").Register(beforeName, explainStatement), u.After("gorm:update").Register(afterName, explainStatement),
		d.Before("gorm:delete").Register(beforeName, explainStatement), d.After("gorm:delete").Register(afterName, explainStatement),
		raw.Before("gorm:raw").Register(beforeName, explainStatement), raw.After("gorm:raw").Register(afterName, explainStatement),
		q.Before("gorm:query").Register(beforeName, explainWithin), q.After("gorm:query").Register(afterName, explainWithin),
		row.Before("gorm:row").Register(beforeName, explainWithin), row.After("gorm:row").Register(afterName, explainWithin),
	)
}

// explainStatement is for what goes to the primary, as is known before it is sent.
func explainStatement(db *gorm.DB) {
	if !db.DryRun {
		onSpan(db.Statement.Context, rywplugin.ExplainContext(db.Statement.Context))
	}
}

// explainWithin is for a read in a transaction.
func explainWithin(db *gorm.DB) {
	if _, ok := db.Statement.ConnPool.(gorm.TxCommitter); ok {
		explainStatement(db)
	}
}

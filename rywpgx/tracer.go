package rywpgx

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgproto3"
)

// A link follows pgx as a tracer, so that a connection stays pgx's own: also what
// is done past database/sql, with the *pgx.Conn that sql.Conn.Raw leads to, is
// seen.
var (
	_ pgx.QueryTracer    = (*link)(nil)
	_ pgx.BatchTracer    = (*link)(nil)
	_ pgx.CopyFromTracer = (*link)(nil)
	_ pgx.PrepareTracer  = (*link)(nil)
)

// install puts the tap and the tracer, behind the application's, into what a
// connection is opened with. Several addresses may be tried: the last tap counts.
func (l *link) install(cfg *pgx.ConnConfig) {
	build := cfg.BuildFrontend
	cfg.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
		if l.sealed.Load() {
			return build(r, w) // another connection, with a copy of the configuration
		}
		l.tap = newTap(r, w)
		return build(l.tap, l.tap)
	}
	if cfg.Tracer == nil {
		cfg.Tracer = l
	} else {
		cfg.Tracer = multitracer.New(cfg.Tracer, l)
	}
}

// admit ends the opening of a connection.
func (l *link) admit(ctx context.Context, b *binding) (err error) {
	defer l.sealed.Store(true)
	if b == nil {
		return nil
	}
	l.binding, l.timeout = b, b.timeout
	if l.probe, err = b.hooks.Admit(ctx, l.conn); err != nil {
		return err
	}
	l.hooks = b.hooks
	return nil
}

// follows reports whether it is this connection that is traced. Connections that
// an application opens with a copy of the configuration have the same tracer.
func (l *link) follows(conn *pgx.Conn) bool {
	return l.sealed.Load() && l.hooks != nil && l.conn == conn
}

// TraceQueryStart implements pgx.QueryTracer.
func (l *link) TraceQueryStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	if l.follows(conn) {
		l.begin(ctx, data.SQL, l.hooks.Pure(data.SQL) && !rewritten(data.Args))
	}
	return ctx
}

// rewritten reports whether another text than the one that is known will be sent.
func rewritten(args []any) bool {
	for _, a := range args {
		switch a.(type) {
		case pgx.QueryRewriter:
			return true
		case pgx.QueryResultFormats, pgx.QueryResultFormatsByOID, pgx.QueryExecMode:
		default:
			return false
		}
	}
	return false
}

// TraceQueryEnd implements pgx.QueryTracer.
func (l *link) TraceQueryEnd(_ context.Context, conn *pgx.Conn, data pgx.TraceQueryEndData) {
	if l.follows(conn) {
		l.end(data.CommandTag, data.Err)
	}
}

// TraceBatchStart implements pgx.BatchTracer.
func (l *link) TraceBatchStart(ctx context.Context, conn *pgx.Conn, data pgx.TraceBatchStartData) context.Context {
	if l.follows(conn) {
		l.start(ctx, mixedText, l.pureBatch(data.Batch))
	}
	return ctx
}

func (l *link) pureBatch(b *pgx.Batch) bool {
	for _, q := range b.QueuedQueries {
		if !l.hooks.Pure(q.SQL) || rewritten(q.Arguments) {
			return false
		}
	}
	return true
}

// TraceBatchQuery implements pgx.BatchTracer.
func (l *link) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}

// TraceBatchEnd implements pgx.BatchTracer.
func (l *link) TraceBatchEnd(_ context.Context, conn *pgx.Conn, data pgx.TraceBatchEndData) {
	if l.follows(conn) {
		l.end(noTag, data.Err)
	}
}

// TraceCopyFromStart implements pgx.CopyFromTracer.
func (l *link) TraceCopyFromStart(ctx context.Context, conn *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	if l.follows(conn) {
		l.start(ctx, mixedText, false)
	}
	return ctx
}

// TraceCopyFromEnd implements pgx.CopyFromTracer.
func (l *link) TraceCopyFromEnd(_ context.Context, conn *pgx.Conn, data pgx.TraceCopyFromEndData) {
	if l.follows(conn) {
		l.end(data.CommandTag, data.Err)
	}
}

// TracePrepareStart implements pgx.PrepareTracer. Preparing may fail for what a
// server has not replayed yet: it is part of a checked read.
func (l *link) TracePrepareStart(ctx context.Context, conn *pgx.Conn, _ pgx.TracePrepareStartData) context.Context {
	if l.follows(conn) && !l.op.active && l.probe != nil && !l.inTx() {
		if c := checkOf(ctx); c != nil {
			l.check(c)
		}
	}
	return ctx
}

// TracePrepareEnd implements pgx.PrepareTracer.
func (l *link) TracePrepareEnd(_ context.Context, conn *pgx.Conn, _ pgx.TracePrepareEndData) {
	if l.follows(conn) && !l.op.active {
		l.tap.ask.Store(nil) // it was prepared already
	}
}

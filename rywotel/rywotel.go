// Package rywotel carries tokens with OpenTelemetry's propagation: whatever carries
// the trace carries the token.
//
//	otel.SetTextMapPropagator(propagation.NewCompositeTextMapPropagator(
//		propagation.TraceContext{}, propagation.Baggage{}, rywotel.Propagator{}))
//
// From then on every instrumented client and producer (otelhttp, otelgrpc, Kafka,
// …) sends the token of the session in its context, and every instrumented server and
// consumer has a session in the context of its work.
//
// # One way only
//
// A trace goes down the line and nothing of it comes back, so a caller does not learn
// what a service wrote for it. Where that matters use rywhttp or rywgrpc, which work
// beside this: a session that is in the context already is gone on with.
//
// Instrumentation sends headers to everybody it calls. A token is no secret; where it
// should not go, neither should the trace.
//
// # Metrics and spans
//
// [Instrument] exports what the plugin counts, and says on each statement's span where
// it went and why:
//
//	tel, err := rywotel.Instrument(db, ryw, rywotel.Options{})
//	defer tel.Close()
//
// The names are in docs/metrics.md.
package rywotel

import (
	"context"
	"slices"
	"strings"

	"github.com/gorm-ryw/gorm-ryw/carrier"
	"github.com/gorm-ryw/gorm-ryw/session"
	"github.com/gorm-ryw/gorm-ryw/token"
	"go.opentelemetry.io/otel/propagation"
)

// Propagator is a propagation.TextMapPropagator for tokens. The zero value works. Safe
// for concurrent use.
type Propagator struct {
	// Carrier has the keys for signing and says what becomes of work without a
	// token. MissingRefused is MissingStrong here, as nothing can be refused, and so
	// is a text that is no token; its Counts tell. Nil: the zero Carrier.
	Carrier *carrier.Carrier
}

var _ propagation.TextMapPropagator = Propagator{}

var zero carrier.Carrier

// field is the header in the form that carriers of all kinds take.
var field = strings.ToLower(carrier.Header)

// Fields implements propagation.TextMapPropagator.
func (Propagator) Fields() []string { return []string{field} }

// Inject implements propagation.TextMapPropagator. A context without a session and
// without a collector injects nothing, so that its receiver counts it.
func (p Propagator) Inject(ctx context.Context, out propagation.TextMapCarrier) {
	if _, ok := session.FromContext(ctx); !ok && carrier.Token(ctx).IsZero() {
		return
	}
	p.carrier().InjectHeaders(ctx, headers{out})
}

// Extract implements propagation.TextMapPropagator. The returned context has a
// session: ctx's own, if there is one, or one that begins with the token.
func (p Propagator) Extract(ctx context.Context, in propagation.TextMapCarrier) context.Context {
	next, err := p.carrier().ExtractHeaders(ctx, headers{in})
	if err != nil {
		next = carrier.Resume(ctx, unknown)
	}
	own, ok := session.FromContext(ctx)
	if !ok {
		return next
	}
	got, _ := session.FromContext(next)
	own.Observe(got.Token())
	return ctx
}

// unknown has the work read nothing older than its own beginning.
var unknown = token.FromEntries(token.Entry{SeenPrimary: true})

func (p Propagator) carrier() *carrier.Carrier {
	if p.Carrier != nil {
		return p.Carrier
	}
	return &zero
}

// headers is a TextMapCarrier as a carrier wants it.
type headers struct{ propagation.TextMapCarrier }

// Get returns the value of a key.
func (h headers) Get(string) string { return h.TextMapCarrier.Get(field) }

// Set replaces the value of a key.
func (h headers) Set(_, value string) { h.TextMapCarrier.Set(field, value) }

// Values tells an empty value from none.
func (h headers) Values(string) []string {
	if !slices.ContainsFunc(h.Keys(), func(key string) bool { return strings.EqualFold(key, field) }) {
		return nil
	}
	return []string{h.Get(field)}
}

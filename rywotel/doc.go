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
package rywotel

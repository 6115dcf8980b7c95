// Package carrier carries tokens in messages: job payloads, outbox rows, event
// envelopes, headers of a broker, claims of a JWT.
//
//	payload, err := carrier.InjectJSON(ctx, payload)        // where it is sent
//	ctx, err := carrier.ExtractJSON(ctx, payload)           // where it is worked on
//
//	carrier.InjectHeaders(ctx, msg.Header)                  // NATS, net/http, anything with Set
//	ctx, err := carrier.ExtractHeaders(ctx, msg.Header)
//
//	carrier.InjectMap(ctx, claims)                          // a JWT's claims, a table of RabbitMQ
//	ctx, err := carrier.ExtractMap(ctx, claims)
//
// A struct of its own has a field of type token.Token, which marshals itself:
//
//	type ShipOrder struct {
//		OrderID int64       `json:"order_id"`
//		Token   token.Token `json:"consistency_token,omitzero"`
//	}
//	job := ShipOrder{7, carrier.Token(ctx)}
//	ctx = carrier.Resume(ctx, job.Token)
//
// Such a field cannot tell a token that is missing from one that is empty: read it with
// ExtractJSON where that matters. With omitzero, one that nobody set is missing there.
//
// # What is sent
//
// The token of the session in the context, and of a collector (rywplugin.Into), if
// there are such. Put it into the message after the write: what is written later
// is not covered. In a transaction there is no position yet, so a message enqueued
// in the same transaction as the write takes the transaction's own token, a mark
// that is right for whoever can learn of the message only after the commit:
//
//	db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
//		…
//		job.Token = rywplugin.Token(tx)
//
// # A message without a token
//
// Somebody has dropped it, or it was sent before tokens were. What it should cover
// is not known. A Carrier says what is done about that: read what is current (the
// zero value), fail with ErrMissing, or let any replica answer. A text that is no
// token is an error always: token.ErrInvalid.
//
// A session begins with each message: what one message's worker saw does not hold
// up the next one's.
package carrier

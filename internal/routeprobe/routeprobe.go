// Package routeprobe is how this repository's benchmarks look at a routing
// decision without a statement being sent. Applications have no way to it.
package routeprobe

import (
	"context"

	"gorm.io/gorm"
)

// Call is what the route callback of the query and row processors gives a
// statement for its pool: it decides when it gets the statement's text.
type Call interface {
	gorm.ConnPool

	// Choose decides as for sending query and returns the pool that it would be
	// sent to; nil for a query that fails instead.
	Choose(ctx context.Context, query string) gorm.ConnPool

	// Forget ends the call as if nothing had been sent: no session learns of it
	// and no counter moves. The call must not be used afterwards, nor may the
	// statement be executed.
	Forget()
}

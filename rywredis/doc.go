// Package rywredis keeps tokens in Redis, for one user's several devices and for
// clients that drop cookies.
//
//	store, err := rywredis.New(client, rywredis.Config{})
//	ryw, err := rywhttp.New(rywhttp.Config{
//		Store:    store,
//		StoreKey: func(r *http.Request) string { return userOf(r) }, // authenticated
//	})
//
// Under each key is a Redis set of texts. A Put adds one and removes those that its
// request has seen, in one transaction: whatever runs at the same time, nothing is
// lost and nothing grows. So it costs one round trip, as Load does.
//
// # When Redis is down or has lost a key
//
// A Load that fails, and a key that is not there (expired, evicted, lost in a
// failover, flushed), is a missing token: with rywhttp.MissingStrong, the default, the
// request reads what is current. Loss costs reads on the primary, never a stale read.
// What no reader can know of is the loss of a Put alone: one that failed, or that
// Redis acknowledged and then lost in a failover, while what was under the key before
// is still there. Clients that keep their header or cookies are covered all the same.
package rywredis

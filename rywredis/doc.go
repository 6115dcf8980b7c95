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
// A Put that failed is owed: the process of that request knows of it, and puts it when
// Redis is back. What nobody can know of is a Put that Redis acknowledged and then lost
// in a failover while what was under the key before is still there, and one that is
// owed by a process that ended, or alone cannot reach Redis. Clients that keep their
// header or cookies are covered all the same.
package rywredis

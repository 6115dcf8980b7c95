// Package policy decides which server a read goes to.
//
// Its input is what the caller asked for (a [Hint]), what the session must see (a
// [session.Need]) and what the watcher knows of the servers; its output is a
// [Decision] that says where and why. It executes nothing and knows nothing of
// GORM's statements or of HTTP.
//
// First match wins:
//
//  1. Strong: the primary.
//  2. Nothing to be seen: any healthy replica, chosen by the [Balancer].
//  3. Something to be seen: the replicas whose proven position covers it; the
//     node read last first, while that read's position is unknown.
//  4. None of those: wait for one within the budget, then the primary.
//
// What cannot be proved is not relied on: unknown always means the primary.
//
// What reaches the primary for the lack of a replica is counted and can be capped, see
// [Fallback]; slow replicas leave the choice in 2, see [Rotation]; [Mode] switches all
// of this off. A Router's settings may be changed at any time, see [Router.Use].
//
// # As a dbresolver policy
//
// [Router.Policy] is a dbresolver.Policy. Such a policy sees neither context nor
// statement, and dbresolver does not ask it when there is one replica, so on its
// own it only balances over healthy replicas and promises nothing. Together with
// the plugin's callbacks it is how a set of replicas becomes known.
package policy

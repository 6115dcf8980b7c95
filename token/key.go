package token

import (
	"cmp"
	"fmt"
)

// Key says which clusters an entry is about. A field that is zero is a
// wildcard: whoever wrote the entry did not know it. The zero Key is about every
// cluster.
type Key struct {
	// System is the cluster's system identifier
	// (pg_control_system().system_identifier). It is the same on all servers of
	// a cluster, and on clones of one base backup.
	System uint64
	// Name is the NameHash of the name that the application gave the cluster; it
	// tells clones apart.
	Name uint64
}

// Compare orders keys by System, then by Name. Every key comes after the keys
// that are broader than it.
func (k Key) Compare(other Key) int {
	if c := cmp.Compare(k.System, other.System); c != 0 {
		return c
	}
	return cmp.Compare(k.Name, other.Name)
}

// Constrains reports whether an entry with key k is about the given cluster. A
// field that is zero in k matches any cluster. A field that is zero in cluster
// is one that this process does not know: it may be the entry's, so it matches
// too.
func (k Key) Constrains(cluster Key) bool {
	return mayBe(k.System, cluster.System) && mayBe(k.Name, cluster.Name)
}

func mayBe(a, b uint64) bool { return a == 0 || b == 0 || a == b }

// String returns the key for logs, an asterisk for each wildcard.
func (k Key) String() string {
	return hexOrStar(k.System) + "." + hexOrStar(k.Name)
}

func hexOrStar(n uint64) string {
	if n == 0 {
		return "*"
	}
	return fmt.Sprintf("%x", n)
}

// broaderThan reports whether k is n with one or more fields left open.
func (k Key) broaderThan(n Key) bool {
	return k != n &&
		(k.System == 0 || k.System == n.System) &&
		(k.Name == 0 || k.Name == n.Name)
}

// last returns the highest key that can constrain the cluster k.
func (k Key) last() Key {
	if k.System == 0 {
		k.System = ^uint64(0)
	}
	if k.Name == 0 {
		k.Name = ^uint64(0)
	}
	return k
}

// NameHash returns the Name of a cluster with the given configured name: 64-bit
// FNV-1a, so that every process computes the same. It is zero for the empty name
// and for no other.
func NameHash(cluster string) uint64 {
	if cluster == "" {
		return 0
	}
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for i := range len(cluster) {
		h = (h ^ uint64(cluster[i])) * prime
	}
	return max(h, 1)
}

// Incarnation names one life of one server: an opaque hash that the watcher
// makes and that ends when the server restarts, crashes, or is reinitialised.
// Zero means unknown.
type Incarnation uint64

package token

// broadStatus is the state, for one key, of the marks of all entries with a
// broader key. Merging takes the larger one.
type broadStatus int

const (
	broadNone     broadStatus = iota // there are no such marks
	broadResolved                    // the key's own entry covers them
	broadPending                     // somebody has yet to resolve them
)

// statusOf needs only look at entries before the key's own: broader keys are
// smaller. So a listed key has all its broader entries beside it, whatever was
// dropped from the end of the list.
func statusOf(entries []Entry, k Key) broadStatus {
	if !broadMarked(entries, k) {
		return broadNone
	}
	if e := find(entries, k); e != nil && e.BroadCovered {
		return broadResolved
	}
	return broadPending
}

func broadMarked(entries []Entry, k Key) bool {
	for i := range entries {
		e := &entries[i]
		if e.Key.Compare(k) >= 0 {
			return false
		}
		if e.Key.broaderThan(k) && e.Marked() {
			return true
		}
	}
	return false
}

// anyBroadMarked reports whether an entry has marks that may be about more than
// one key; without, every status is broadNone.
func anyBroadMarked(entries []Entry) bool {
	for i := range entries {
		if e := &entries[i]; (e.Key.System == 0 || e.Key.Name == 0) && e.Marked() {
			return true
		}
	}
	return false
}

// uncover makes the marks of the entry of key k pending for all narrower keys.
func uncover(entries []Entry, k Key) {
	for i := range entries {
		if k.broaderThan(entries[i].Key) {
			entries[i].BroadCovered = false
		}
	}
}

// anyCovered reports whether some narrower entry covers the marks of key k.
func anyCovered(entries []Entry, k Key) bool {
	for i := range entries {
		if entries[i].BroadCovered && k.broaderThan(entries[i].Key) {
			return true
		}
	}
	return false
}

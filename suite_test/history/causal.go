package history

import "sort"

// upTo returns how many of a session's operations are numbered n or less.
func (c *checker) upTo(t *thread, n int) int {
	if 0 < n && n <= len(t.ops) && c.ops[t.ops[n-1]].Seq == n {
		return n // nothing is missing: the common case
	}
	return sort.Search(len(t.ops), func(i int) bool { return c.ops[t.ops[i]].Seq > n })
}

// sender returns the session a receive names, nil if it is not in the history.
func (c *checker) sender(op *Op) *thread {
	id, ok := c.threadIDs[op.From.Session]
	if !ok {
		return nil
	}
	return c.threads[id]
}

// arrived reports whether the state a receive names was replayed, or never
// will be.
func (c *checker) arrived(op *Op) bool {
	from := c.sender(op)
	return from == nil || from.next >= c.upTo(from, op.From.Seq)
}

// receive joins the sender's causal past to the receiver's. What the history
// lacks of it is reported; what it has binds all the same.
func (c *checker) receive(t *thread, op *Op) {
	from := c.sender(op)
	if op.From.Seq == 0 {
		return
	}
	if from == nil {
		c.doubt(op, "received from a session that is not in the history")
		return
	}
	n := c.upTo(from, op.From.Seq)
	if n == 0 || c.ops[from.ops[n-1]].Seq != op.From.Seq {
		c.doubt(op, "received the state after an operation that is not in the history")
	}
	if n == 0 {
		return
	}
	c.checkOrder(op, &c.ops[from.ops[n-1]])
	t.join(from.past(int32(n)), from.id, int32(n))
}

// checkOrder reports a state that was received before it existed.
func (c *checker) checkOrder(op, last *Op) {
	if last.Clock == op.Clock && (last.End > op.End || last.open()) {
		c.doubt(op, "received a state before the operation that made it had ended", last)
	}
}

// join raises the causal past to past and to the first n operations of from.
// A past that holds all of it already stays as it is.
func (t *thread) join(past []int32, from, n int32) {
	var now []int32
	if k := len(t.epochs); k > 0 {
		now = t.epochs[k-1].seen
	}
	if covers(now, past) && int(from) < len(now) && now[from] >= n {
		return
	}
	next := make([]int32, max(len(now), len(past), int(from)+1))
	copy(next, now)
	for i, m := range past {
		next[i] = max(next[i], m)
	}
	next[from] = max(next[from], n)
	t.epochs = append(t.epochs, epoch{at: int32(t.next) + 1, seen: next})
}

func covers(a, b []int32) bool {
	for i, n := range b {
		if n > 0 && (i >= len(a) || a[i] < n) {
			return false
		}
	}
	return true
}

// knows reports whether an operation is in the causal past of the one being
// replayed in t.
func (c *checker) knows(t *thread, i int32) bool {
	return c.position[i] <= t.horizon(c.threadOf[i])
}

// knownOf returns the part of a track that is in the causal past of the
// operation being replayed.
func (t *thread) knownOf(tr *track) []sighting {
	return tr.seen[:tr.upTo(t.horizon(tr.session))]
}

// path returns the receives that brought operation i into the causal past of
// t's first n operations, the earliest first.
func (c *checker) path(t *thread, n, i int32) []*Op {
	var hops []*Op
	owner, at := c.threadOf[i], c.position[i]
	for t.id != owner {
		k := sort.Search(len(t.epochs), func(k int) bool {
			seen := t.epochs[k].seen
			return int(owner) < len(seen) && seen[owner] >= at
		})
		if k == len(t.epochs) || t.epochs[k].at > n {
			break
		}
		op := &c.ops[t.ops[t.epochs[k].at-1]]
		hops = append([]*Op{op}, hops...)
		t = c.sender(op)
		n = int32(c.upTo(t, op.From.Seq))
	}
	return hops
}

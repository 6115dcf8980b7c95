package token

// contradiction says in what an entry that was read differs from every entry in
// normal form that can follow the ones before it in a token of n entries; it is
// empty if there is no such difference.
func contradiction(before []Entry, e *Entry, n int, others bool) string {
	switch {
	case len(before) > 0 && before[len(before)-1].Key.Compare(e.Key) >= 0:
		return "key is not above the one before"
	case e.isEmpty() && (!others || !e.Minted.IsZero()):
		return "nothing but a key"
	case !e.Former.IsZero() && e.Former.Timeline >= e.Write.Timeline:
		return "former is not on an older timeline than write"
	case e.SeenPrimary && len(e.SeenNodes) > 0:
		return "seen nodes beside seen primary"
	case n > roomy && (!e.Former.IsZero() || len(e.SeenNodes) > 0):
		return "no room for former or seen nodes"
	case e.BroadCovered && (!e.hasPosition() || !broadMarked(before, e.Key)):
		return "no broad marks to cover, or nothing that covers them"
	default:
		return ""
	}
}

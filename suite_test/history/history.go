package history

import (
	"fmt"
	"maps"
)

// History is what happened in a run, in any order. The zero value is an empty
// history.
type History struct {
	Ops        []Op
	Promotions []Promotion
	// Initial holds versions that were stored before the run and were
	// visible on every node when it began. A key that is not listed began
	// absent, as version 0.
	Initial map[string]int64
}

// Merge joins the histories of several processes into a new one. A key whose
// initial version two of them declare differently is an error.
func Merge(parts ...History) (History, error) {
	var all History
	for i := range parts {
		all.Ops = append(all.Ops, parts[i].Ops...)
		all.Promotions = append(all.Promotions, parts[i].Promotions...)
		for key, version := range parts[i].Initial {
			if err := all.declare(key, version); err != nil {
				return History{}, err
			}
		}
	}
	return all, nil
}

func (h *History) declare(key string, version int64) error {
	if version < 0 {
		return fmt.Errorf("history: initial version of %q: have %d, want 0 or more", key, version)
	}
	if old, ok := h.Initial[key]; ok && old != version {
		return fmt.Errorf("history: initial version of %q: declared as %d and as %d", key, old, version)
	}
	if h.Initial == nil {
		h.Initial = make(map[string]int64)
	}
	h.Initial[key] = version
	return nil
}

// clone returns a copy that shares nothing with h.
func (h *History) clone() History {
	return History{
		Ops:        append([]Op(nil), h.Ops...),
		Promotions: append([]Promotion(nil), h.Promotions...),
		Initial:    maps.Clone(h.Initial),
	}
}

package main

import "runtime"

// allocations returns how many allocations a call of f makes: the least of a few
// measurements, because the watcher's goroutines allocate meanwhile, now and then.
func allocations(calls int, f func() error) (float64, error) {
	least := -1.0
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range calls {
			if err := f(); err != nil {
				return 0, err
			}
		}
		runtime.ReadMemStats(&after)
		if n := float64(after.Mallocs-before.Mallocs) / float64(calls); least < 0 || n < least {
			least = n
		}
	}
	return least, nil
}

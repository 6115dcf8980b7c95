package main

import (
	"slices"
	"time"
)

// alternate times contenders by turns: in each round each of them once, n calls
// at a time, another one first each time. So whatever else the machine does
// meets all of them alike. Many short rounds are better than few long ones: a
// round in which another process got the core is then an exception, which the
// median does not see. It returns nanoseconds per call, by contender and round.
func alternate(rounds, n int, contenders ...func() error) ([][]float64, error) {
	times := make([][]float64, len(contenders))
	for round := range rounds {
		for k := range contenders {
			i := (round + k) % len(contenders)
			began := time.Now()
			for range n {
				if err := contenders[i](); err != nil {
					return nil, err
				}
			}
			times[i] = append(times[i], float64(time.Since(began))/float64(n))
		}
	}
	return times, nil
}

func median(v []float64) float64 {
	s := slices.Sorted(slices.Values(v))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// ratio is the median of a's times divided by b's of the same round.
func ratio(a, b []float64) float64 {
	r := make([]float64, len(a))
	for i := range r {
		r[i] = a[i] / b[i]
	}
	return median(r)
}

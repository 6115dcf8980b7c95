package main

import (
	"fmt"
	"io"
	"math"
	"strconv"
)

// report prints figures.
type report struct{ w io.Writer }

func (r *report) heading(title string) { fmt.Fprintf(r.w, "# %s\n", title) }

// figure prints one figure, with at most three decimals.
func (r *report) figure(name string, value float64, unit string) {
	rounded := strconv.FormatFloat(math.Round(value*1000)/1000, 'f', -1, 64)
	fmt.Fprintf(r.w, "figure %s %s %s\n", name, rounded, unit)
}

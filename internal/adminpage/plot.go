package adminpage

import (
	"strconv"
	"strings"
	"time"
)

// plot is a replica's last minutes: its lag above its gap.
type plot struct {
	Label  string
	Charts []chart
}

// chart is one line over time, in a box of 600 by 100, that is missing where nothing
// is known.
type chart struct {
	Name, Of, Class string
	Now, Summary    string
	Lines           []string // points of polylines
	Holes           []hole
}

// hole is a time of which nothing is known.
type hole struct{ From, To float64 }

// X and Width are what SVG wants.
func (h hole) X() string     { return decimal(h.From) }
func (h hole) Width() string { return decimal(h.To - h.From) }

const chartWidth, chartHeight = 600.0, 100.0

func plotOf(s Series, label string, span time.Duration) plot {
	lag := drawn(s, span, func(r Reading) float64 { return float64(r.Lag) })
	lag.Name, lag.Class = "Lag", "lag"
	gap := drawn(s, span, func(r Reading) float64 { return float64(r.Gap) })
	gap.Name, gap.Class = "Gap", "gap"
	lag.Of, gap.Of = label, label
	lag.Now, lag.Summary = s.words(func(r Reading) string { return duration(time.Duration(r.Lag)) }, largest(s, func(r Reading) uint64 { return uint64(r.Lag) }))
	gap.Now, gap.Summary = s.words(func(r Reading) string { return size(r.Gap) }, largest(s, func(r Reading) uint64 { return r.Gap }))
	return plot{label, []chart{lag, gap}}
}

func largest(s Series, value func(Reading) uint64) Reading {
	var top Reading
	for _, r := range s.Points {
		if r.Known && (!top.Known || value(r) > value(top)) {
			top = r
		}
	}
	return top
}

// words are the last value and what else there is to say, for those who see no line.
func (s Series) words(text func(Reading) string, top Reading) (now, summary string) {
	if len(s.Points) > 0 && s.Points[len(s.Points)-1].Known {
		now = text(s.Points[len(s.Points)-1])
	}
	if !top.Known {
		return now, "not known yet"
	}
	summary = "at most " + text(top)
	if now == "" {
		summary = "not known now; " + summary
	}
	return now, summary
}

func drawn(s Series, span time.Duration, value func(Reading) float64) chart {
	var c chart
	top := 0.0
	for _, r := range s.Points {
		if r.Known {
			top = max(top, value(r))
		}
	}
	var line []string
	flush := func() {
		if len(line) == 1 {
			line = append(line, line[0]) // a dot
		}
		if len(line) > 0 {
			c.Lines = append(c.Lines, strings.Join(line, " "))
		}
		line = nil
	}
	for i, r := range s.Points {
		x := across(r.Ago, span)
		if !r.Known {
			flush()
			end := chartWidth
			if i+1 < len(s.Points) {
				end = across(s.Points[i+1].Ago, span)
			}
			c.dig(x, end)
			continue
		}
		y := chartHeight - 2
		if top > 0 {
			y = 2 + (chartHeight-4)*(1-value(r)/top)
		}
		line = append(line, decimal(x)+","+decimal(y))
	}
	flush()
	return c
}

// dig adds a hole, or makes the last one longer.
func (c *chart) dig(from, to float64) {
	if n := len(c.Holes); n > 0 && c.Holes[n-1].To == from {
		c.Holes[n-1].To = to
		return
	}
	c.Holes = append(c.Holes, hole{from, to})
}

func across(ago Seconds, span time.Duration) float64 {
	return max(0, chartWidth*(1-float64(ago)/float64(span)))
}

func decimal(f float64) string { return strconv.FormatFloat(f, 'f', 1, 64) }

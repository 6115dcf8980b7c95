package main

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// panel is a diagram with logarithmic axes.
type panel struct {
	title, across, up string
	curves            []curve
}

// curve is points from left to right.
type curve struct {
	name   string
	model  bool // dashed: worked out, not measured
	points []point
}

type point struct{ x, y float64 }

func (c *curve) add(x, y float64) { c.points = append(c.points, point{x, y}) }

// Sizes in pixels.
const (
	panelWidth, panelHeight = 520.0, 360.0
	left, right             = 64.0, 26.0
	top, bottom             = 40.0, 48.0
)

var colours = []string{"#0b62a4", "#c2410c", "#15803d", "#7e22ce"}

// draw returns the panels one below the other as SVG.
func draw(panels []panel) string {
	var b strings.Builder
	height := panelHeight * float64(len(panels))
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %g %g" font-family="sans-serif" font-size="12">`+"\n", panelWidth, height, panelWidth, height)
	fmt.Fprintf(&b, `<rect width="%g" height="%g" fill="white"/>`+"\n", panelWidth, height)
	for i, p := range panels {
		fmt.Fprintf(&b, `<g transform="translate(0 %g)">`+"\n", panelHeight*float64(i))
		p.draw(&b)
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// scale maps a logarithmic range to pixels.
type scale struct {
	low, high float64 // powers of ten
	from, to  float64
}

func (s scale) at(v float64) float64 {
	return s.from + (math.Log10(v)-s.low)/(s.high-s.low)*(s.to-s.from)
}

// least is what values of zero and below are drawn as.
const least = 0.01

func scaleOf(values []float64, from, to float64) scale {
	s := scale{low: math.Inf(1), high: math.Inf(-1), from: from, to: to}
	for _, v := range values {
		s.low = min(s.low, math.Floor(math.Log10(v)))
		s.high = max(s.high, math.Ceil(math.Log10(v)))
	}
	if s.high <= s.low {
		s.high = s.low + 1
	}
	return s
}

func (p panel) scales() (x, y scale) {
	var xs, ys []float64
	for _, c := range p.curves {
		for _, at := range c.points {
			xs, ys = append(xs, max(at.x, least)), append(ys, max(at.y, least))
		}
	}
	return scaleOf(xs, left, panelWidth-right), scaleOf(ys, panelHeight-bottom, top)
}

func (p panel) draw(b *strings.Builder) {
	x, y := p.scales()
	text := func(atX, atY float64, more, what string) {
		fmt.Fprintf(b, `<text x="%.1f" y="%.1f" %s>%s</text>`+"\n", atX, atY, more, html.EscapeString(what))
	}
	line := func(x1, y1, x2, y2 float64) {
		fmt.Fprintf(b, `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ddd"/>`+"\n", x1, y1, x2, y2)
	}
	text(left, 20, `font-size="14" font-weight="bold"`, p.title)
	text((left+panelWidth-right)/2, panelHeight-12, `text-anchor="middle"`, p.across)
	text(14, (top+panelHeight-bottom)/2, fmt.Sprintf(`text-anchor="middle" transform="rotate(-90 14 %.1f)"`, (top+panelHeight-bottom)/2), p.up)
	for e := x.low; e <= x.high; e++ {
		at := x.at(math.Pow(10, e))
		line(at, top, at, panelHeight-bottom)
		text(at, panelHeight-bottom+16, `text-anchor="middle"`, decade(e))
	}
	for e := y.low; e <= y.high; e++ {
		at := y.at(math.Pow(10, e))
		line(left, at, panelWidth-right, at)
		text(left-6, at+4, `text-anchor="end"`, decade(e))
	}
	for i, c := range p.curves {
		c.draw(b, x, y, colours[i%len(colours)])
		text(left+10, top+16+float64(i)*16, fmt.Sprintf(`fill="%s"`, colours[i%len(colours)]), c.name)
	}
}

func decade(e float64) string { return fmt.Sprintf("%g", math.Pow(10, e)) }

func (c curve) draw(b *strings.Builder, x, y scale, colour string) {
	var path []string
	for _, p := range c.points {
		path = append(path, fmt.Sprintf("%.1f,%.1f", x.at(max(p.x, least)), y.at(max(p.y, least))))
	}
	dashes := ""
	if c.model {
		dashes = ` stroke-dasharray="6 4"`
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"%s/>`+"\n", strings.Join(path, " "), colour, dashes)
	if c.model {
		return
	}
	for _, p := range path {
		at := strings.Split(p, ",")
		fmt.Fprintf(b, `<circle cx="%s" cy="%s" r="3" fill="%s"/>`+"\n", at[0], at[1], colour)
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"
)

// scenarioOptions say what is run.
type scenarioOptions struct {
	only    []string // scenarios; all if empty
	routers []string // all if empty
	lasting time.Duration
	rounds  int // of the routers that the goals compare
}

func chosen(name string, among []string) bool {
	if len(among) == 0 {
		return true
	}
	for _, n := range among {
		if n == name {
			return true
		}
	}
	return false
}

// repeated are the contenders whose runs alternate.
func repeated(name string) bool {
	return name == nameDBResolver || name == nameOracle || strings.HasPrefix(name, nameOurs)
}

// runScenarios runs every contender through every scenario.
func runScenarios(ctx context.Context, r *report, o scenarioOptions) (err error) {
	s, err := openSite(ctx, 2)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	for _, sc := range scenarios {
		if !chosen(sc.name, o.only) {
			continue
		}
		r.heading(fmt.Sprintf("%s: %d sessions, %s of network each way, %s", sc.title, sessions, network, sc.lasting(o.lasting)))
		if err := s.runScenario(ctx, r, sc, o); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) runScenario(ctx context.Context, r *report, sc scenario, o scenarioOptions) error {
	all := map[string][]*outcome{}
	for round := range o.rounds {
		for _, c := range contenders {
			if !chosen(c.name, o.routers) || round > 0 && !repeated(c.name) {
				continue
			}
			out, err := s.try(ctx, sc, c, o.lasting)
			if err != nil {
				return err
			}
			all[c.name] = append(all[c.name], out)
			fmt.Fprintf(os.Stderr, "%s %s: %.2f %% of %d reads\n", sc.name, c.name, 100*out.share(), out.reads)
		}
	}
	r.table(all)
	for _, c := range contenders {
		if outs := all[c.name]; len(outs) > 0 {
			r.outcomes("scenario."+sc.name+"."+c.name, outs)
		}
	}
	r.compare("scenario."+sc.name, all)
	return nil
}

// table is for the eye: the first run of each.
func (r *report) table(all map[string][]*outcome) {
	t := tabwriter.NewWriter(r.w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "#\trouter\tshare %\tcould %\textra/read\twith captures\tprimary asked/write\tp50 ms\tp99 ms\tbusier\treads\twrites\terrors\tRYW\tmono\tblind\t")
	for _, c := range contenders {
		if len(all[c.name]) == 0 {
			continue
		}
		o := all[c.name][0]
		fmt.Fprintf(t, "#\t%s\t%.2f\t%.2f\t%.3f\t%.3f\t%.3f\t%.2f\t%.2f\t%.3f\t%d\t%d\t%d\t%d\t%d\t%d\t\n", c.name,
			100*o.share(), 100*o.could(), o.extra(), o.extraAll(), o.questionsOfPrimary(), ms(o.percentile(0.5)), ms(o.percentile(0.99)), o.balance(),
			o.reads, o.writes, o.errors, len(o.verdict.ReadYourWrites), len(o.verdict.Monotonic), len(o.verdict.BlindSpots))
	}
	t.Flush()
	for _, c := range contenders {
		if strings.HasPrefix(c.name, nameOurs) || c.name == nameOracle {
			for _, o := range all[c.name] {
				o.printServed(r.w, c.name)
				o.missed.print(r.w, o.reads)
			}
		}
	}
	for name, outs := range all {
		for _, o := range outs {
			if repeated(name) && name != nameDBResolver && !o.verdict.Ok() {
				fmt.Fprintf(r.w, "%s\n", "# "+name+": "+strings.ReplaceAll(o.verdict.String(), "\n", "\n#   "))
			}
		}
	}
}

// outcomes prints the figures of a router's runs: medians of shares and times, sums
// of what must be 0.
func (r *report) outcomes(name string, outs []*outcome) {
	mid := func(f func(*outcome) float64) float64 {
		var v []float64
		for _, o := range outs {
			v = append(v, f(o))
		}
		return median(v)
	}
	sum := func(f func(*outcome) int) (n float64) {
		for _, o := range outs {
			n += float64(f(o))
		}
		return n
	}
	r.figure(name+".share", 100*mid((*outcome).share), "%")
	r.figure(name+".could", 100*mid((*outcome).could), "%")
	r.figure(name+".extra_per_read", mid((*outcome).extra), "statements")
	r.figure(name+".extra_per_read.with_captures", mid((*outcome).extraAll), "statements")
	r.figure(name+".primary_asked_per_write", mid((*outcome).questionsOfPrimary), "statements")
	r.figure(name+".p50", mid(func(o *outcome) float64 { return ms(o.percentile(0.5)) }), "ms")
	r.figure(name+".p99", mid(func(o *outcome) float64 { return ms(o.percentile(0.99)) }), "ms")
	r.figure(name+".busier_replica", mid((*outcome).balance), "ratio")
	r.figure(name+".reads", sum(func(o *outcome) int { return o.reads }), "reads")
	r.figure(name+".errors", sum(func(o *outcome) int { return o.errors }), "operations")
	r.figure(name+".read_your_writes_broken", sum(func(o *outcome) int { return len(o.verdict.ReadYourWrites) }), "reads")
	r.figure(name+".monotonic_broken", sum(func(o *outcome) int { return len(o.verdict.Monotonic) }), "reads")
	r.figure(name+".blind_spots", sum(func(o *outcome) int { return len(o.verdict.BlindSpots) }), "reads")
	r.figure(name+".not_judged", sum(func(o *outcome) int { return len(o.verdict.Unknown) }), "entries")
}

// compare prints what the goals are about: ours against the oracle's share and
// dbresolver's times, of the same round each.
func (r *report) compare(name string, all map[string][]*outcome) {
	for _, our := range []string{nameOurs, nameOursPgx} {
		against := func(other string, f func(a, b *outcome) float64) (float64, bool) {
			var v []float64
			for i, o := range all[our] {
				if i < len(all[other]) {
					v = append(v, f(o, all[other][i]))
				}
			}
			if len(v) == 0 {
				return 0, false
			}
			return median(v), true
		}
		if v, ok := against(nameOracle, func(a, b *outcome) float64 { return a.share() / b.share() }); ok {
			r.figure(name+"."+our+".share_vs_oracle", 100*v, "%")
		}
		if v, ok := against(nameDBResolver, func(a, b *outcome) float64 {
			return float64(a.percentile(0.5)) / float64(b.percentile(0.5))
		}); ok {
			r.figure(name+"."+our+".p50_vs_dbresolver", v, "ratio")
		}
		if v, ok := against(nameDBResolver, func(a, b *outcome) float64 { return ms(a.percentile(0.99) - b.percentile(0.99)) }); ok {
			r.figure(name+"."+our+".p99_above_dbresolver", v, "ms")
		}
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

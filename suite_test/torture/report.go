package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/gorm-ryw/gorm-ryw/policy"
	"github.com/gorm-ryw/gorm-ryw/suite_test/history"
)

// report prints everything, the line that programs read last.
func (r *outcome) report(w io.Writer) {
	fmt.Fprintln(w, r.result.String())
	r.reportSpans(w)
	r.reportUnexcused(w)
	r.reportFaults(w)
	r.reportReasons(w)
	r.reportErrors(w)
	r.reportRest(w)
	r.reportCrashes(w)
	fmt.Fprintln(w, r.line())
}

func (r *outcome) line() string {
	faults := 0
	for _, n := range r.faults {
		faults += n
	}
	return fmt.Sprintf("torture: ops=%d faults=%d ryw_violations=%d monotonic_violations=%d blind_spot=%d lost=%d caller_errors=%d replica_share=%.1f%%",
		r.tally.Ops, faults, len(r.result.ReadYourWrites), len(r.result.Monotonic),
		len(r.result.BlindSpots), len(r.result.LostWrites), len(r.tally.Failures), r.share())
}

// reportSpans says which faults were near the first violations.
func (r *outcome) reportSpans(w io.Writer) {
	for _, list := range [][]history.Violation{r.result.ReadYourWrites, r.result.Monotonic, r.result.Dirty, r.result.Invented} {
		for i := range list[:min(3, len(list))] {
			op := list[i].Op
			fmt.Fprintf(w, "faults near %s:\n", op.Mark())
			r.reportNear(w, op.Start, op.End)
		}
	}
}

// mostLines bounds how many violations are listed in a line each.
const mostLines = 20

// reportUnexcused says which violations would have been excused if the read had
// reported a possibly lost write, and which have nothing to do with one.
func (r *outcome) reportUnexcused(w io.Writer) {
	for i := range r.promotions {
		fmt.Fprintln(w, r.promotions[i].String())
	}
	remain := map[string]bool{}
	for _, list := range [][]history.Violation{r.reported.ReadYourWrites, r.reported.Monotonic} {
		for i := range list {
			remain[list[i].Rule.String()+list[i].Op.Mark().String()] = true
		}
	}
	var unreported, other []string
	shown := map[string]bool{}
	for _, list := range [][]history.Violation{r.result.ReadYourWrites, r.result.Monotonic} {
		for i := range list {
			v := &list[i]
			line := fmt.Sprintf("%s: %s lacks %d of %s%s", v.Rule, v.Op.Mark(), v.Want.Version, v.Want.Mark(), writers(v))
			if remain[v.Rule.String()+v.Op.Mark().String()] {
				if want := v.Want.Mark().String(); !shown[want] && len(shown) < 10 {
					shown[want] = true
					fmt.Fprintf(w, "\n%sfaults near the write:\n", v)
					r.reportNear(w, v.Want.Start, v.Want.End)
				}
				other = append(other, line)
			} else {
				unreported = append(unreported, line)
			}
		}
	}
	listSome(w, "no lost write: ", other)
	listSome(w, "a lost write that was not reported: ", unreported)
}

func listSome(w io.Writer, head string, lines []string) {
	for _, line := range lines[:min(mostLines, len(lines))] {
		fmt.Fprintln(w, head+line)
	}
}

// writers says where the writes that explain a violation were captured.
func writers(v *history.Violation) (text string) {
	for _, op := range v.Timeline {
		if op.Kind == history.Write {
			text = fmt.Sprintf("; written by %s at %s on timeline %d, %s", op.Mark(), op.Position, op.Timeline, op.Outcome)
		}
	}
	return text
}

func (r *outcome) reportFaults(out io.Writer) {
	w := table(out, "fault\ttimes")
	for k, n := range r.faults {
		fmt.Fprintf(w, "%s\t%d\n", Kind(k), n)
	}
	w.Flush()
}

func (r *outcome) reportReasons(out io.Writer) {
	if r.options.control() {
		return
	}
	all := int64(0)
	for _, n := range r.tally.Reasons {
		all += n
	}
	w := table(out, "judged reads\ttimes\tshare")
	most := func(a, b policy.Reason) int { return cmp.Compare(r.tally.Reasons[b], r.tally.Reasons[a]) }
	for _, reason := range slices.SortedFunc(maps.Keys(r.tally.Reasons), most) {
		n := r.tally.Reasons[reason]
		fmt.Fprintf(w, "%s\t%d\t%.2f%%\n", reason, n, 100*float64(n)/float64(all))
	}
	w.Flush()
}

var oneLine = strings.NewReplacer("\n", " ", "\t", "")

// reportErrors prints the errors by kind, and the first of those that should not
// have been.
func (r *outcome) reportErrors(out io.Writer) {
	counts, examples := map[string]*[6]int{}, map[string]string{}
	for i, list := range [][]Failure{r.writes, r.unserved, r.slept, r.split, r.broken, r.served} {
		for _, f := range list {
			if counts[f.Class] == nil {
				counts[f.Class] = &[6]int{}
			}
			counts[f.Class][i]++
			examples[f.Class] = f.Text
		}
	}
	w := table(out, "error\twrites\treads, no node could serve\tfrozen past their deadline\trefused, two primaries\tbehind the first row\ta node could serve\tfor example")
	for _, class := range slices.Sorted(maps.Keys(counts)) {
		n := counts[class]
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.100s\n", class, n[0], n[1], n[2], n[3], n[4], n[5], oneLine.Replace(examples[class]))
	}
	fmt.Fprintf(w, "all\t%d\t%d\t%d\t%d\t%d\t%d\n", len(r.writes), len(r.unserved), len(r.slept), len(r.split), len(r.broken), len(r.served))
	w.Flush()
	for _, f := range slices.Concat(r.served[:min(10, len(r.served))], r.refused[:min(5, len(r.refused))]) {
		fmt.Fprintf(out, "%s: read of %s failed although %s could serve it, after %s (%s): %s\n",
			f.Mark, keyName(f.Key), f.server, time.Duration(f.End-f.Start).Round(time.Microsecond), f.Why, f.Text)
		r.reportNear(out, f.Start, f.End)
	}
	for _, f := range r.tally.Overdue[:min(10, len(r.tally.Overdue))] {
		fmt.Fprintf(out, "%s: %s of %s outlived its deadline, after %s (%s): %s\n", f.Mark, f.what(), keyName(f.Key),
			time.Duration(f.End-f.Start).Round(time.Millisecond), f.Why, oneLine.Replace(f.Text))
		r.reportNear(out, f.Start, f.End)
	}
}

func (r *outcome) reportNear(w io.Writer, from, to int64) {
	const near = int64(2 * time.Second)
	for _, s := range r.spans {
		if s.from < to && s.to > from-near {
			fmt.Fprintf(w, "  %.0f to %.0f ms before: %s\n", float64(to-s.from)/1e6, float64(to-s.to)/1e6, s.text)
		}
	}
}

func (r *outcome) reportRest(out io.Writer) {
	w := table(out, "beside\t")
	fmt.Fprintf(w, "reads that ask for nothing, not judged\t%d\n", r.tally.StaleReads)
	fmt.Fprintf(w, "tokens taken over from other threads\t%d\n", r.tally.Receives)
	fmt.Fprintf(w, "violations that reporting a lost write would excuse\t%d\n", r.result.Violations()-r.reported.Violations())
	fmt.Fprintf(w, "reads while no node could serve: those that mode Strict refused although a node was there\t%d\n", len(r.refused))
	r.reportSplits(w)
	for why, n := range onlyPrimary(r.unserved) {
		fmt.Fprintf(w, "reads while no node could serve: only a primary could, %s\t%d\n", why, n)
	}
	fmt.Fprintf(w, "reads while no node could serve: those that a standby could which had just come back\t%d\n", r.unnoticed)
	fmt.Fprintf(w, "slowest read\t%s\t%s\n", time.Duration(r.tally.SlowestRead.Nanos).Round(time.Millisecond), r.tally.SlowestRead.Mark)
	fmt.Fprintf(w, "slowest write\t%s\t%s\n", time.Duration(r.tally.SlowestWrite.Nanos).Round(time.Millisecond), r.tally.SlowestWrite.Mark)
	fmt.Fprintf(w, "operations that outlived their deadline\t%d\n", len(r.tally.Overdue))
	fmt.Fprintf(w, "longest Close of the plugin\t%s\n", time.Duration(r.tally.CloseTook).Round(time.Millisecond))
	w.Flush()
}

// onlyPrimary counts the reads that no standby could serve by why that was.
func onlyPrimary(reads []Failure) map[string]int {
	counts := map[string]int{}
	for _, f := range reads {
		if f.Primary != "" {
			counts[f.Primary]++
		}
	}
	return counts
}

func table(out io.Writer, head string) *tabwriter.Writer {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, head)
	return w
}

// reportCrashes prints what a run of crashes comes to, the line that programs read
// last.
func (r *outcome) reportCrashes(out io.Writer) {
	c := r.figures()
	if len(c.list) == 0 {
		return
	}
	w := table(out, "crashes of standbys\tleast\tmedian\tmost")
	for _, row := range []struct {
		name string
		of   func(*crash) int64
	}{
		{"MB of WAL since the last restartpoint", func(c *crash) int64 { return c.restartpoint / megabyte }},
		{"MB of them to replay after it opened for reads", func(c *crash) int64 { return c.open / megabyte }},
		{"MB that it was back when it had just answered again", func(c *crash) int64 { return c.back / megabyte }},
		{"ms until it answered again", func(c *crash) int64 { return (c.up - c.from) / int64(time.Millisecond) }},
	} {
		all := c.sorted(row.of)
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\n", row.name, all[0], all[len(all)/2], all[len(all)-1])
	}
	w.Flush()
	if err := c.missed(); err != nil {
		fmt.Fprintln(out, err)
	}
	across := 0
	for i := range c.list {
		across += min(c.list[i].frozen, 1)
	}
	fmt.Fprintf(out, "crashes: crashes=%d frozen_across=%d wal_min=%dMB replica_reads=%d per_crash=%d fewest_between=%d racing=%d stale=%d\n",
		len(c.list), across, c.sorted(func(c *crash) int64 { return min(c.restartpoint, c.open) })[0]/megabyte,
		c.reads, c.reads/len(c.list), c.fewest, c.racing, r.result.Violations())
}

func (c *crashes) sorted(of func(*crash) int64) []int64 {
	var all []int64
	for i := range c.list {
		all = append(all, of(&c.list[i]))
	}
	slices.Sort(all)
	return all
}

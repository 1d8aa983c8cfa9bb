package bench

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"golang.org/x/perf/benchmath"

	"github.com/mercer-go/mercer/internal/texttable"
)

// Verdict is the result of comparing a timing in two measurements.
type Verdict int

const (
	Same     Verdict = iota // the difference is no larger than noise
	Slower                  // the new timing is slower beyond noise
	Faster                  // the new timing is faster beyond noise
	Untested                // there are too few timings for a test
)

// Difference compares the timings of an implementation in a case. Both measurements have the case.
type Difference struct {
	Case           Case
	Implementation string
	Kind           string  // the kind of the implementation
	Old, New       Summary // times in seconds
	Ratio          float64
	P              float64 // p-value of the test of Mann and Whitney (1947): the probability of a difference of this size or larger by chance
	Verdict        Verdict
}

// Differences compares two measurements of the same kind.
type Differences struct {
	List    []Difference
	OnlyOld int // number of timings that only the first measurement has
	OnlyNew int
	// Drift is the geometric mean of Ratio over the timings of code that has not changed: other libraries,
	// and the loops that measure the peak of the processor. It is 0 if there are no such timings.
	Drift float64
	Notes []string // how the conditions of the two measurements differ
}

// significance is the probability that the test reports a difference where there is none.
const significance = 0.05

// DiffOf compares two measurements. A timing is slower or faster beyond noise if the medians differ by more than
// minChange (0.02 means 2 %) and the p-value of the Mann–Whitney test, of at least four timings each, is below
// significance.
func DiffOf(before, after *Result, minChange float64) (*Differences, error) {
	if before.Kind != after.Kind {
		return nil, fmt.Errorf("bench: compare: the first result was measured by bench %s, the second by bench %s", before.Kind, after.Kind)
	}
	d := &Differences{Notes: notesOf(before, after)}
	var drift float64
	others := 0
	for i := range after.Cells {
		c := &after.Cells[i]
		oldCell := before.cell(c.Case)
		for j := range c.Runs {
			run := &c.Runs[j]
			var oldRun *Run
			if oldCell != nil {
				oldRun = oldCell.Run(run.Implementation)
			}
			if !run.Timed() || !oldRun.Timed() {
				continue
			}
			x := difference(oldRun, run, minChange)
			x.Case, x.Kind = c.Case, after.Implementation(run.Implementation).Kind
			d.List = append(d.List, x)
			if x.Kind != OwnKind {
				drift += math.Log(x.Ratio)
				others++
			}
		}
	}
	d.OnlyOld, d.OnlyNew = before.timed()-len(d.List), after.timed()-len(d.List)
	if others > 0 {
		d.Drift = math.Exp(drift / float64(others))
	}
	return d, nil
}

func (r *Result) timed() (n int) {
	for _, c := range r.Cells {
		n += len(slices.DeleteFunc(slices.Clone(c.Runs), func(run Run) bool { return !run.Timed() }))
	}
	return n
}

func difference(oldRun, run *Run, minChange float64) Difference {
	sample := func(r *Run) *benchmath.Sample { // clone the timings, because NewSample sorts its argument
		return benchmath.NewSample(slices.Clone(r.Timings), &benchmath.Thresholds{CompareAlpha: significance})
	}
	x := Difference{Implementation: run.Implementation, Old: oldRun.Time, New: run.Time, Ratio: run.Time.Median / oldRun.Time.Median}
	test := benchmath.AssumeNothing.Compare(sample(oldRun), sample(run))
	x.P = test.P
	switch {
	case min(test.N1, test.N2) < fewestTimings:
		x.Verdict = Untested
	case test.P >= significance || math.Abs(x.Ratio-1) <= minChange:
		x.Verdict = Same
	case x.Ratio > 1:
		x.Verdict = Slower
	default:
		x.Verdict = Faster
	}
	return x
}

// fewestTimings is the number of timings that the test needs: for three each, the smallest p-value is 0.1.
const fewestTimings = 4

// notesOf describes the differences in the conditions of two measurements.
func notesOf(before, after *Result) []string {
	var list []string
	for _, x := range []struct{ name, old, new string }{
		{"processor", before.Machine.Processor, after.Machine.Processor},
		{"processors", fmt.Sprint(before.Machine.CPUs), fmt.Sprint(after.Machine.CPUs)},
		{"GOMAXPROCS", fmt.Sprint(before.Machine.MaxProcs), fmt.Sprint(after.Machine.MaxProcs)},
		{"Go", before.Machine.Go, after.Machine.Go},
		{"mercer", before.Machine.Mercer, after.Machine.Mercer},
	} {
		if x.old != x.new {
			list = append(list, fmt.Sprintf("%s: %s before, %s after", x.name, x.old, x.new))
		}
	}
	for _, e := range after.Implementations {
		if o := before.Implementation(e.Name); o != nil && e.Kind == PeerKind && o.Detail != e.Detail {
			list = append(list, fmt.Sprintf("%s: %s before, %s after", e.Name, o.About(), e.About()))
		}
	}
	for i, r := range []*Result{before, after} {
		if n := r.Machine.Noise; n != nil && n.Steal+n.Others > noisy {
			list = append(list, fmt.Sprintf("the %s was not measured on a quiet machine: the host and other processes took %.1f %% of the processors' time",
				[]string{"first", "second"}[i], n.Steal+n.Others))
		}
	}
	return list
}

// Text returns a text for a terminal with the drift of the machine and the differences beyond noise, or all
// differences if all is true, slower timings first.
func (d *Differences) Text(all bool) string {
	var b strings.Builder
	for _, line := range d.Notes {
		fmt.Fprintln(&b, line)
	}
	if d.Drift > 0 {
		fmt.Fprintf(&b, "ceilings and other libraries took %s × as long as before: this change is due to the machine\n", ratioText(d.Drift))
	}
	if b.Len() > 0 {
		b.WriteByte('\n')
	}
	rows := [][]string{{"", "case", "implementation", "before, s", "after, s", "difference"}} // an empty first column indents the table
	words := []string{Same: "~", Slower: "slower", Faster: "faster", Untested: "?"}
	counts := map[Verdict]int{}
	for _, v := range []Verdict{Slower, Faster, Same, Untested} {
		for _, x := range d.List {
			if x.Verdict != v {
				continue
			}
			if counts[v]++; !all && v != Slower && v != Faster {
				continue
			}
			rows = append(rows, []string{
				"", x.Case.Title(), x.Implementation, figures(x.Old.Median), figures(x.New.Median),
				fmt.Sprintf("%+.1f %%", 100*(x.Ratio-1)), words[v], fmt.Sprintf("p = %.3f", x.P),
			})
		}
	}
	if len(rows) > 1 {
		b.WriteString(texttable.Format("lllrrrll", rows) + "\n")
	}
	slower, faster, untested := counts[Slower], counts[Faster], counts[Untested]
	switch tested := len(d.List) - untested; {
	case tested == 0:
		fmt.Fprintf(&b, "nothing could be compared: a comparison needs %d timings of the same case and implementation in both results (--repeats)\n", fewestTimings)
	case slower == 0:
		fmt.Fprintf(&b, "nothing is slower beyond noise: %d timings compared, %d faster\n", tested, faster)
	default:
		fmt.Fprintf(&b, "%d of %d timings are slower beyond noise, %d faster", slower, tested, faster)
		if expected := significance * float64(tested); expected >= 1 {
			fmt.Fprintf(&b, "; about %.0f would appear to be slower by chance if nothing had changed", expected)
		}
		b.WriteByte('\n')
	}
	if untested > 0 {
		fmt.Fprintf(&b, "%d have fewer than %d timings and were not compared\n", untested, fewestTimings)
	}
	if d.OnlyOld+d.OnlyNew > 0 {
		fmt.Fprintf(&b, "%d timings are only in the first result, %d only in the second\n", d.OnlyOld, d.OnlyNew)
	}
	return b.String()
}

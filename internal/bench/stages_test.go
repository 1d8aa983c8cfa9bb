package bench

import (
	"context"
	"errors"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestStages: the phases of the runs of a timing are averaged, and their medians
// taken over the timings; what an implementation says its run took is what counts.
func TestStages(t *testing.T) {
	var log []string
	for _, test := range []struct {
		r    Runner
		want []Stage
	}{
		{ // a first run, which has warmed up, and three timings of one run
			Runner{Repeats: 3},
			[]Stage{{"gram", 7, Summary{Median: 0.003, Min: 0.002, Max: 0.004}}, {"solve", 0, Summary{Median: 0.001, Min: 0.001, Max: 0.001}}},
		},
		{ // the first run is the timing
			Runner{Repeats: 3, Budget: ms},
			[]Stage{{"gram", 7, Summary{Median: 0.001, Min: 0.001, Max: 0.001}}, {"solve", 0, Summary{Median: 0.001, Min: 0.001, Max: 0.001}}},
		},
	} {
		e := script{"a", of(60 * ms)}.entry(&log)
		runs := 0
		inner := e.Run
		e.Run = func() error { runs++; return inner() }
		e.Phases = func() []Phase {
			return []Phase{{"gram", 7, time.Duration(runs) * ms}, {"solve", 0, ms}}
		}
		e.Took = func() time.Duration { return 50 * ms }
		task := Task{Start: func(context.Context) ([]Entry, error) { return []Entry{e}, nil }}
		cells, _ := measureFake(t, test.r, task)
		run := cells[0].Run("a")
		near := cmpopts.EquateApprox(0x1p-50, 0)
		if d := cmp.Diff(test.want, run.Stages, near); d != "" {
			t.Errorf("stages (-want +got):\n%s", d)
		}
		if run.Time.Median != 0.05 || run.Stage("gram").Work != 7 || run.Stage("factor") != nil {
			t.Errorf("took %v", run.Time)
		}
	}
}

// TestOptionalEntryMayFail: an entry that may fail leaves the case with its reason, when it
// does so in its first run and later; the others are measured on.
func TestOptionalEntryMayFail(t *testing.T) {
	for _, good := range []int{0, 2} {
		var log []string
		a, b := script{"a", of(60 * ms)}.entry(&log), script{"b", of(60 * ms)}.entry(&log)
		runs := 0
		a.Run = func() error {
			if runs++; runs > good {
				return errors.New("no memory")
			}
			return nil
		}
		a.Optional = true
		a.Metrics = func() map[string]float64 { t.Error("asked for its metrics"); return nil }
		task := Task{Start: func(context.Context) ([]Entry, error) { return []Entry{a, b}, nil }}
		cells, _ := measureFake(t, Runner{Repeats: 3}, task)
		if d := cmp.Diff(Run{Implementation: "a", Reason: "no memory"}, *cells[0].Run("a")); d != "" {
			t.Error(d)
		}
		if n := len(cells[0].Run("b").Timings); n != 3 {
			t.Errorf("%d timings of the other", n)
		}
	}
}

// lawResult is a Result whose seconds are c·n^a·m^b, on a grid.
func lawResult(c, a, b float64) *Result {
	r := &Result{Implementations: []Implementation{{Name: "one"}}}
	for _, n := range []int{10, 30, 100} {
		for _, m := range []int{5, 50} {
			v := c * math.Pow(float64(n), a) * math.Pow(float64(m), b)
			r.Cells = append(r.Cells, Cell{
				Case: Case{{"precision", "float64"}, {"n", strconv.Itoa(n)}, {"m", strconv.Itoa(m)}},
				Runs: []Run{{Implementation: "one", Timings: []float64{v}, Time: Summary{Median: v, Min: v, Max: v}}},
			})
		}
	}
	return r
}

// TestGrowth: a law is found again, to the rounding of a well-conditioned least
// squares problem of logarithms below 30.
func TestGrowth(t *testing.T) {
	const tol = 1e3 * 30 * 0x1p-53
	g := lawResult(2e-9, 2.5, 1).fitGrowth("one", Case{{"precision", "float64"}}, secondsQuantity, []string{"n", "m"}, nil)
	if g == nil {
		t.Fatal("no law")
	}
	want := Growth{
		Implementation: "one", Case: Case{{"precision", "float64"}}, Quantity: "seconds", Over: []string{"n", "m"},
		Constant: 2e-9, Exponents: []float64{2.5, 1}, Cells: 6,
	}
	if d := cmp.Diff(want, *g, cmpopts.EquateApprox(tol, tol)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if s := g.String(); s != "2e-09·n^2.50·m^1.00" {
		t.Error(s)
	}
}

func TestNoGrowth(t *testing.T) {
	r := lawResult(1, 1, 1)
	wide := func(c *Cell) bool { return c.Case.Int("m") == 5 }
	for name, g := range map[string]*Growth{
		"three cells for three unknowns":   r.fitGrowth("one", nil, secondsQuantity, []string{"n", "m"}, wide),
		"a parameter that does not change": r.fitGrowth("one", nil, secondsQuantity, []string{"n", "n"}, nil),
		"nobody":                           r.fitGrowth("two", nil, secondsQuantity, []string{"n"}, nil),
		"another precision":                r.fitGrowth("one", Case{{"precision", "float32"}}, secondsQuantity, []string{"n"}, nil),
		"no number":                        r.fitGrowth("one", nil, secondsQuantity, []string{"precision"}, nil),
		"no such metric":                   r.fitGrowth("one", nil, metric(rmseMetric, ""), []string{"n"}, nil),
	} {
		if g != nil {
			t.Errorf("%s: %v", name, g)
		}
	}
}

package bench

import (
	"context"
	"errors"
	"math"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOptionalEntryMayFail checks that a failure of an optional entry removes it from the case, with the reason.
func TestOptionalEntryMayFail(t *testing.T) {
	for _, successes := range []int{0, 2} {
		var log []string
		a, b := script{"a", durations(60 * ms)}.entry(&log), script{"b", durations(60 * ms)}.entry(&log)
		runs := 0
		a.Run = func() error {
			if runs++; runs > successes {
				return errors.New("no memory")
			}
			return nil
		}
		a.Optional = true
		a.Metrics = func() map[string]float64 { t.Error("Metrics was called"); return nil }
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

// TestExponent checks that exponent finds a known exponent, and returns 0 for too few sizes.
func TestExponent(t *testing.T) {
	r := &Result{Implementations: []Implementation{{Name: "one"}}}
	for _, n := range []int{10, 30, 100, 300} {
		run := Run{Implementation: "one", Timings: []float64{2e-9 * math.Pow(float64(n), 2.5)}, Metrics: map[string]float64{}}
		if n < 100 {
			run.Metrics[bytesMetric] = 8
		}
		c := Cell{Case: Case{{sweep, "n"}, {"n", strconv.Itoa(n)}}, Runs: []Run{run}}
		c.summarize()
		r.Cells = append(r.Cells, c)
	}
	if got := r.exponent("one", "n", secondsQuantity); !(math.Abs(got-2.5) < 1e3*30*0x1p-53) {
		t.Errorf("n^%v, want n^2.5", got)
	}
	for name, got := range map[string]float64{
		"two sizes":     r.exponent("one", "n", metric(bytesMetric, "B")),
		"nobody":        r.exponent("two", "n", secondsQuantity),
		"another sweep": r.exponent("one", "m", secondsQuantity),
		"no metric":     r.exponent("one", "n", metric(rmseMetric, "")),
	} {
		if got != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}

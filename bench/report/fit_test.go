package report

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/bench"
)

// fitSample is a measurement of two fits: Mercer in two ways, a library, and one
// that is missing.
func fitSample() *bench.Result {
	r := &bench.Result{
		Schema: bench.Schema, Kind: "fit", Started: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Seconds: 12,
		Machine: bench.Machine{Processor: "Abacus", CPUs: 2, MaxProcs: 2, System: "linux/amd64", Go: "go1.26"},
		Entrants: []bench.Entrant{
			{Name: "mercer cpu", Kind: bench.OwnKind}, {Name: "mercer cpu direct", Kind: bench.OwnKind},
			{Name: "scikit-learn", Kind: bench.PeerKind}, {Name: "torch", Kind: bench.PeerKind, Missing: "not found"},
		},
		Notes: []string{"n = 2000: mercer cpu chose dual"},
	}
	for _, fit := range []string{"ridge", "nystrom"} {
		for _, n := range []int{500, 2000} {
			c := bench.Cell{Case: bench.Case{{Name: "fit", Value: fit}, {Name: "precision", Value: "float64"}, {Name: "threads", Value: "2"}, {Name: "n", Value: strconv.Itoa(n)}}}
			for i, e := range r.Entrants {
				run := bench.Run{Entrant: e.Name, Reason: e.Missing}
				if e.Missing == "" {
					v := float64(n*(i+2)) / 1e4
					run.Timings, run.Time = []float64{v}, bench.Spread{Median: v, Min: v, Max: v}
					run.Metrics = map[string]float64{bench.Residual: 1e-14 * float64(i+1), bench.RMSE: 0.25}
				}
				c.Runs = append(c.Runs, run)
			}
			r.Cells = append(r.Cells, c)
		}
	}
	return r
}

// TestFitPage: the first screen answers, and everyone's residual is told.
func TestFitPage(t *testing.T) {
	page := write(t, fitSample())
	parse(t, page)
	for _, want := range []string{
		// 2000·2/1e4 s, and 2000·4/1e4.
		"For kernel ridge in float64 at n = 2000 Mercer takes 0.400 s, 2.00 times as fast as the fastest other, scikit-learn.",
		"Mercer is the fastest in 2 of 2 comparisons",
		"× scikit-learn",
		`aria-label="ridge, float64, 2 threads"`,
		"Residual at n = 2000: mercer cpu 1.0e-14, mercer cpu direct 2.0e-14, scikit-learn 3.0e-14.",
		"Error on rows held out at n = 2000: mercer cpu 2.5e-01",
		`aria-label="error against time, n = 2000"`,
		"n = 2000: mercer cpu chose dual",
		"missing: not found",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	alone := fitSample()
	for i := range alone.Cells {
		alone.Cells[i].Runs = alone.Cells[i].Runs[:2]
	}
	alone.Entrants = alone.Entrants[:2]
	if page := write(t, alone); !strings.Contains(page, "There was no other library to compare with.") {
		t.Error("without libraries the lead says something else")
	}
}

package report

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/bench"
)

// scaleSample is a measurement of two solvers over n, of which the second ends
// early, and of one over m.
func scaleSample() *bench.Result {
	r := &bench.Result{
		Schema: bench.Schema, Kind: bench.ScaleKind, Started: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Seconds: 12,
		Machine:  bench.Machine{Processor: "Abacus", CPUs: 2, MaxProcs: 2, System: "linux/amd64", Go: "go1.26"},
		Entrants: []bench.Entrant{{Name: "dual", Kind: bench.OwnKind}, {Name: "normal", Kind: bench.OwnKind}},
	}
	cell := func(over string, n, m int, names ...string) {
		c := bench.Cell{Case: bench.Case{{Name: "sweep", Value: over}, {Name: "threads", Value: "2"}, {Name: "n", Value: strconv.Itoa(n)}, {Name: "m", Value: strconv.Itoa(m)}}}
		for _, name := range names {
			v := float64(n*n) / 1e6
			run := bench.Run{Entrant: name, Timings: []float64{v}, Time: bench.Spread{Median: v, Min: v, Max: v}, Work: v * 1e9}
			run.Metrics = map[string]float64{bench.Bytes: 9 * v * (1 << 20), bench.Planned: 10 * v * (1 << 20), bench.RMSE: 1 / float64(n), bench.Residual: 1e-9}
			if name == "dual" && n == 800 {
				run = bench.Run{Entrant: name, Reason: "would take about 99 s, the limit is 60 s"}
			}
			c.Runs = append(c.Runs, run)
		}
		r.Cells = append(r.Cells, c)
	}
	for _, n := range []int{100, 200, 400, 800} {
		cell("n", n, 10, "dual", "normal")
	}
	for _, m := range []int{10, 20} {
		cell("m", 800, m, "normal")
	}
	for _, e := range r.Entrants {
		for _, q := range []bench.Quantity{bench.Seconds, bench.Metric(bench.Bytes, "B")} {
			r.Growths = append(r.Growths, *r.FitGrowth(e.Name, bench.Case{{Name: "sweep", Value: "n"}}, q, []string{"n"}, nil))
		}
		flops := *r.FitGrowth(e.Name, bench.Case{{Name: "sweep", Value: "n"}}, bench.Seconds, []string{"n"}, nil)
		flops.Quantity, flops.Exponents = "flops", []float64{3}
		r.Growths = append(r.Growths, flops)
	}
	return r
}

func TestScalePage(t *testing.T) {
	page := write(t, scaleSample())
	parse(t, page)
	for _, want := range []string{
		"Time grows like: dual n^2.0 (operations n^3.0), normal n^2.0 (operations n^3.0).",
		"Nothing took more memory than its plan said (at most 90 % of it).",
		`aria-label="Time, s against n"`,
		`aria-label="Memory on the device, MiB against n"`,
		`aria-label="error against time, over n"`,
		"Against the number of functions M",
		"dual at n = 800: would take about 99 s, the limit is 60 s",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	over := scaleSample()
	over.Cells[0].Runs[0].Metrics[bench.Bytes] *= 2
	if page := write(t, over); !strings.Contains(page, "Memory exceeded a plan: 180 % of it.") {
		t.Error("more memory than planned is not told")
	}
	over.Growths = nil
	if page := write(t, over); !strings.Contains(page, "There were too few sizes") {
		t.Error("without laws the lead says something else")
	}
}

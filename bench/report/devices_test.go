package report

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/bench"
)

// devicesSample is a measurement of a processor, a GPU and a library, in which the
// GPU wins at n = 4000.
func devicesSample() *bench.Result {
	r := &bench.Result{
		Schema: bench.Schema, Kind: bench.DevicesKind, Started: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Seconds: 12,
		Machine: bench.Machine{Processor: "Abacus", CPUs: 2, MaxProcs: 2, System: "linux/amd64", Go: "go1.26"},
		Entrants: []bench.Entrant{
			{Name: "mercer cpu/fast", Kind: bench.OwnKind, Device: "cpu/fast"}, {Name: "mercer cuda/0", Kind: bench.OwnKind, Device: "cuda/0"},
			{Name: "torch", Kind: bench.PeerKind}, {Name: "cupy", Kind: bench.PeerKind, Missing: "not found"},
		},
	}
	for _, operation := range []string{"gram", "fit"} {
		for i, n := range []int{1000, 4000} {
			c := bench.Cell{Case: bench.Case{{Name: "operation", Value: operation}, {Name: "precision", Value: "float64"}, {Name: "threads", Value: "2"}, {Name: "n", Value: strconv.Itoa(n)}}}
			for j, e := range r.Entrants {
				run := bench.Run{Entrant: e.Name, Reason: e.Missing}
				if e.Missing == "" {
					v := [][]float64{{1, 2, 3}, {16, 4, 8}}[i][j]
					run.Timings, run.Time = []float64{v}, bench.Spread{Median: v, Min: v, Max: v}
				}
				c.Runs = append(c.Runs, run)
			}
			r.Cells = append(r.Cells, c)
		}
	}
	return r
}

func TestDevicesPage(t *testing.T) {
	page := write(t, devicesSample())
	parse(t, page)
	for _, want := range []string{
		"A whole fit, float64: mercer cuda/0 is faster than mercer cpu/fast from n = 4000 on, estimated 1587 (4.00 × as fast at n = 4000).",
		"16.0 (4.00 ×)",
		`<td class="good">4.00</td>`,
		"transfers are counted",
		`aria-label="fit, float64, 2 threads"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	alone := devicesSample()
	alone.Entrants[1].Device = "cpu/other"
	if page := write(t, alone); !strings.Contains(page, "No GPU was measured.") {
		t.Error("without a GPU the lead says something else")
	}
}

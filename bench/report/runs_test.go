package report

import (
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/bench"
)

// Three programs: one told its memory and grew in n, of the others there is one run each.
func TestRunsPage(t *testing.T) {
	r, err := bench.ReadRuns(strings.NewReader(`
{"program": "fit", "learner": "kernel-ridge", "solver": "cg", "kernel": "gaussian(sigma=2)", "n": 100, "residual": 2e-9, "peak_bytes": 1048576, "seconds": 1}
{"program": "fit", "learner": "kernel-ridge", "solver": "cg", "kernel": "gaussian(sigma=2)", "n": 400, "residual": 3e-9, "peak_bytes": 8388608, "seconds": 10}
{"program": "fit", "learner": "kernel-ridge", "solver": "cg", "kernel": "gaussian(sigma=2)", "n": 400, "peak_bytes": 8388608, "seconds": 14}
{"program": "fit", "learner": "ridge", "n": 100, "peak_bytes": 524288, "seconds": 0.5}
{"program": "tune", "n": 100, "peak_bytes": 524288, "seconds": 0.5}
{"program": "python-fit", "n": 50, "entrant": "other", "seconds": 0.5}
`), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC))
	if err != nil {
		t.Fatal(err)
	}
	page := write(t, r)
	// Memory against time, and time against n; none for a run alone.
	if figures := parse(t, page).find("figure"); len(figures) != 2 {
		t.Errorf("%d pictures, want 2", len(figures))
	}
	for _, want := range []string{
		"The most rows: fit, kernel-ridge, cg, n = 400 took 12.0 s and 8.00 MiB.",
		"<td>3e-09</td>",
		`aria-label="fit: memory against time"`,
		"kernel-ridge cg, n = 400",
		"python-fit, n = 50",
		"medians of up to 2 runs of whole programs, imported",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
}

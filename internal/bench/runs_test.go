package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestReadRuns checks that objects with equal cases become one Run, with its metrics and implementation.
func TestReadRuns(t *testing.T) {
	const text = `{"program": "fit", "learner": "nystrom-ridge", "kernel": "gaussian(sigma=3)", "lambda": 0.5, "n": 100, "d": 2,
	"device": "cpu/avx2", "solver": "falkon", "residual": 1e-7, "iterations": 9, "memory_bytes": 1000, "peak_bytes": 5000,
	"processor_seconds": 3, "facts": {"centers": 20, "passes": 9}, "test": {"n": 10, "rmse": 0.25},
	"seconds": {"read": 0.5, "gram": 0, "factor": 0.25, "solve": 1, "total": 2}}
{"program": "fit", "learner": "nystrom-ridge", "kernel": "gaussian(sigma=3)", "lambda": 0.5, "n": 100, "d": 2,
	"device": "cpu/avx2", "solver": "falkon", "residual": 3e-7, "peak_bytes": 4000, "facts": {"centers": 20},
	"seconds": {"read": 1.5, "gram": 0, "factor": 0.75, "solve": 2, "total": 4}}
{"program": "fit", "n": 100, "entrant": "scikit-learn", "detail": "1.2", "seconds": 8}
{"program": "mercer-beam", "learner": "ridge", "rows": 10000000, "features": 5, "functions": 5, "seconds": 11.5}
`
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	r, err := ReadRuns(strings.NewReader(text), day)
	if err != nil {
		t.Fatal(err)
	}
	if r.Kind != RunsKind || !r.Started.Equal(day) || r.Seconds != 2+4+8+11.5 || r.Settings.Repeats != 2 || r.Machine.Go == "" {
		t.Errorf("%+v", r)
	}
	cases := []string{}
	for _, c := range r.Cells {
		cases = append(cases, c.Case.String())
	}
	if d := cmp.Diff([]string{
		"program=fit/learner=nystrom-ridge/solver=falkon/kernel=gaussian(sigma=3)/lambda=0.5/n=100/d=2/functions=20",
		"program=fit/n=100",
		"program=mercer-beam/learner=ridge/rows=10000000/features=5/functions=5",
	}, cases); d != "" {
		t.Fatal(d)
	}
	want := Run{
		Implementation: "mercer cpu/avx2", Calls: 1, Timings: []float64{2, 4}, Time: Summary{Median: 3, Min: 2, Max: 4},
		Metrics: map[string]float64{residualMetric: 3e-7, itersMetric: 9, bytesMetric: 1000, peakMetric: 5000, processorMetric: 3, rmseMetric: 0.25},
	}
	if d := cmp.Diff(want, r.Cells[0].Runs[0]); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]Implementation{
		{Name: "mercer cpu/avx2", Kind: OwnKind, Device: "cpu/avx2"}, {Name: "scikit-learn", Kind: PeerKind, Detail: "1.2"}, {Name: "mercer", Kind: OwnKind},
	}, r.Implementations); d != "" {
		t.Error(d)
	}
	for text, want := range map[string]string{
		"":                               "bench: runs: the input has no object",
		`{"seconds": 1}`:                 `bench: runs: object 1: the field "program"`,
		`{"program": "a"}`:               `bench: runs: object 1: "seconds" must be a number > 0`,
		`{"program": "a", "seconds": 0}`: `bench: runs: object 1: "seconds" must be a number > 0`,
		`{"program": "a", "seconds": 1}{"program": "a", "seconds": {"read": 1}}`: `bench: runs: object 2: "seconds" must be`,
		`{"program": "a", "seconds": 1} x`:                                       "bench: runs: object 2: invalid character",
	} {
		if _, err := ReadRuns(strings.NewReader(text), day); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

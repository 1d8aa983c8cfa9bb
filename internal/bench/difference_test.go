package bench

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// resultOf returns a Result with one case, in which Mercer and a ceiling have the given timings.
func resultOf(mercer, ceiling []float64) *Result {
	r := &Result{
		Schema: Schema, Kind: "blas", Machine: Machine{Processor: "Abacus", CPUs: 2},
		Implementations: []Implementation{{Name: "mercer", Kind: OwnKind}, {Name: "ceiling", Kind: CeilingKind}},
		Cells: []Cell{{Case: Case{{"n", "7"}}, Runs: []Run{
			{Implementation: "mercer", Timings: mercer}, {Implementation: "ceiling", Timings: ceiling},
		}}},
	}
	r.Cells[0].summarize()
	return r
}

func TestDifference(t *testing.T) {
	ceiling := []float64{1, 1, 1, 1}
	for _, test := range []struct {
		name     string
		old, new []float64
		want     Verdict
	}{
		{"slower", []float64{1, 1.01, 1.02, 1.03}, []float64{1.2, 1.21, 1.22, 1.23}, Slower},
		{"faster", []float64{1.2, 1.21, 1.22, 1.23}, []float64{1, 1.01, 1.02, 1.03}, Faster},
		{"by less than 2 %", []float64{1, 1.001, 1.002, 1.003}, []float64{1.01, 1.011, 1.012, 1.013}, Same},
		{"within the spread", []float64{1, 1.1, 1.2, 1.3}, []float64{1.05, 1.15, 1.25, 1.35}, Same},
		{"the same", []float64{1, 1, 1, 1}, []float64{1, 1, 1, 1}, Same},
		{"three timings", []float64{1, 1, 1}, []float64{2, 2, 2, 2}, Untested},
	} {
		d, err := DiffOf(resultOf(test.old, ceiling), resultOf(test.new, ceiling), 0.02)
		if err != nil {
			t.Fatal(err)
		}
		if len(d.List) != 2 || d.List[0].Verdict != test.want || d.Drift != 1 {
			t.Errorf("%s: %+v", test.name, d)
		}
		// Of the 70 ways to divide eight values into two samples of four, 2 give samples without overlap.
		if test.want == Slower && math.Abs(d.List[0].P-2./70) > 0x1p-50 {
			t.Errorf("p = %v", d.List[0].P)
		}
	}
}

// TestNoDifference compares pairs of samples of the same distribution. At most the fraction significance of the
// pairs may differ; 12 % is exceeded with a probability of at most 3e-9 (Hoeffding).
func TestNoDifference(t *testing.T) {
	const seed, trials = 3, 2000
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	draw := func() []float64 {
		v := make([]float64, 7)
		for i := range v {
			v[i] = 1 + 0.2*rng.ExpFloat64()
		}
		return v
	}
	different := 0
	for range trials {
		x, y := &Run{Timings: draw()}, &Run{Timings: draw()}
		x.Time, y.Time = Summarize(x.Timings), Summarize(y.Timings)
		if v := difference(x, y, 0).Verdict; v == Slower || v == Faster {
			different++
		}
	}
	if different > trials*12/100 || different == 0 {
		t.Errorf("%d of %d differ", different, trials)
	}
}

func TestDifferenceText(t *testing.T) {
	oldResult, newResult := resultOf([]float64{1, 1.01, 1.02, 1.03}, []float64{1, 1, 1, 1}), resultOf([]float64{1.5, 1.51, 1.52, 1.53}, []float64{1.25, 1.25, 1.25, 1.25})
	newResult.Machine.Processor, newResult.Machine.Noise = "Sand", &Noise{Steal: 10}
	newResult.Cells = append(newResult.Cells, Cell{Case: Case{{"n", "8"}}, Runs: newResult.Cells[0].Runs})
	d, err := DiffOf(oldResult, newResult, 0.02)
	if err != nil {
		t.Fatal(err)
	}
	text := d.Text(false)
	for _, want := range []string{
		"processor: Abacus before, Sand after\n",
		"the second was not measured on a quiet machine: the host and other processes took 10.0 %",
		"ceilings and other libraries took 1.25 × as long as before",
		"n = 7  mercer               1.02      1.52     +49.3 %  slower  p = 0.029\n",
		"n = 7  ceiling              1.00      1.25     +25.0 %  slower  p = 0.029\n",
		"2 of 2 timings are slower beyond noise, 0 faster\n",
		"0 timings are only in the first result, 2 only in the second\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if _, err := DiffOf(oldResult, &Result{Kind: "fit"}, 0); err == nil || err.Error() != "bench: compare: the first result was measured by bench blas, the second by bench fit" {
		t.Errorf("got %v", err)
	}
	if d, err := DiffOf(oldResult, resultOf([]float64{1}, nil), 0); err != nil || !strings.Contains(d.Text(true), "nothing could be compared") || !strings.Contains(d.Text(true), "?  p = ") {
		t.Errorf("%v %s", err, d.Text(true))
	}
}

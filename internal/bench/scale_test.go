package bench

import (
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/solvers"
)

// TestScale runs every solver at three sizes. It checks the memory against the plan, and the residual.
func TestScale(t *testing.T) {
	s := Benchmark{Kind: ScaleKind, Sizes: []int{60, 120, 240}, Widths: []int{10, 20, 40}, Features: 4, Devices: []string{"cpu"}}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := textOf(t, r)
	t.Log(text)
	if len(r.Cells) != 6 || len(r.filter(sweep, "n").Cells) != 3 || len(r.filter(sweep, "m").Cells) != 3 {
		t.Fatalf("%d cells", len(r.Cells))
	}
	for _, c := range r.Cells {
		want := len(scaledNames())
		if c.Case.Get(sweep) == "m" {
			want = 3
		}
		if len(c.Runs) != want {
			t.Errorf("%v: %d solvers, want %d", c.Case, len(c.Runs), want)
		}
		for _, run := range c.Runs {
			if run.Implementation == "outofcore" && strings.Contains(run.Reason, "uses the memory of the host") {
				continue
			}
			if !run.Timed() || run.Check != nil {
				t.Errorf("%v: %+v", c.Case, run)
				continue
			}
			limit := scaleTol + ridgeLimit(240, 4, "float64", fitLambda)
			used, planned := run.Metrics[bytesMetric], run.Metrics[plannedMetric]
			if !(run.Metrics[residualMetric] <= limit) || !(run.Metrics[rmseMetric] < 1) || used <= 0 || used > planned || run.Work <= 0 {
				t.Errorf("%v: %s: %v", c.Case, run.Implementation, run.Metrics)
			}
		}
	}
	for parameter, solvers := range map[string]int{"n": 6, "m": 3} {
		timed := 0
		for _, e := range r.Implementations {
			flops := r.exponent(e.Name, parameter, operations)
			if flops == 0 {
				continue
			}
			timed++
			// The operations of cg may grow faster than n³, because the rank of its preconditioner also grows.
			if flops < 0.5 || flops > 3 && e.Name != "cg" || r.exponent(e.Name, parameter, secondsQuantity) == 0 || r.exponent(e.Name, parameter, metric(bytesMetric, "")) <= 0 || r.exponent(e.Name, parameter, metric(plannedMetric, "")) <= 0 {
				t.Errorf("%s over %s: operations %g", e.Name, parameter, flops)
			}
			if used := r.planUsed(e.Name); !(used > 0 && used <= 1) {
				t.Errorf("%s took %g of its plan", e.Name, used)
			}
		}
		if timed != solvers {
			t.Errorf("%d solvers have exponents over %s, want %d", timed, parameter, solvers)
		}
	}
	// The dual solution stores half of K: n²/2 elements plus a part that is linear in n.
	if e := r.exponent("dual", "n", metric(plannedMetric, "")); e < 1.5 || e > 2 {
		t.Errorf("the memory of dual grows as n^%v", e)
	}
	for _, want := range []string{"Exponents of n\n", "planned memory, MiB", "n = 240: time, s"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text has no %q", want)
		}
	}
}

// TestScaleOmitsWhatDoesNotFit checks that a solver that exceeds memory or time is skipped, with the reason.
func TestScaleOmitsWhatDoesNotFit(t *testing.T) {
	s := Benchmark{Kind: ScaleKind, Names: []string{"dual", "normal"}, Sizes: []int{50, 100, 700}, Widths: []int{10}, Features: 2, Devices: []string{"ref"}, Memory: 1 << 20}
	r, err := s.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last := r.filter(sweep, "n").Cells[2]
	if run := last.Run("dual"); run.Timed() || !strings.Contains(run.Reason, "1.0 MiB may be used") {
		t.Errorf("got %+v", run)
	}
	if run := last.Run("normal"); !run.Timed() {
		t.Errorf("got %+v", run)
	}
	if text := textOf(t, r); !strings.Contains(text, "dual at n = 700: needs ") {
		t.Errorf("the text does not say why dual is omitted:\n%s", text)
	}

	s = Benchmark{Kind: ScaleKind, Names: []string{"dual"}, Sizes: []int{20, 40, 80}, Features: 2, Devices: []string{"ref"}, Limit: time.Nanosecond}
	if r, err = s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, c := range r.Cells {
		if run := c.Run("dual"); run.Timed() != (i == 0) || i > 0 && !strings.Contains(run.Reason, "the limit is 0.00000000100 s") {
			t.Errorf("%d: %+v", i, run)
		}
	}
}

func TestScaleRefusals(t *testing.T) {
	for _, test := range []struct {
		s    Benchmark
		want string
	}{
		{Benchmark{Kind: ScaleKind, Names: []string{"gauss"}}, `solver: "gauss" is not known; the choices are: dual, `},
		{Benchmark{Kind: ScaleKind, Sizes: []int{0}}, "must be ≥ 1, got 0"},
		{Benchmark{Kind: ScaleKind, Widths: []int{-3}}, "must be ≥ 1, got -3"},
		{Benchmark{Kind: ScaleKind, Limit: -1}, "must be ≥ 0"},
		{Benchmark{Kind: ScaleKind, Devices: []string{"abacus"}}, `no device is called "abacus"`},
	} {
		if _, err := test.s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v", test.s, err)
		}
	}
}

// TestScaledSolvers checks that every method of package solvers for general kernels is measured.
func TestScaledSolvers(t *testing.T) {
	for _, m := range []solvers.Method{solvers.Dual, solvers.Mixed, solvers.OutOfCore, solvers.CG} {
		if !slices.Contains(scaledNames(), string(m)) {
			t.Errorf("%s is not measured", m)
		}
	}
}

// TestResident checks that watchResident counts memory that is allocated and written to.
func TestResident(t *testing.T) {
	const size = 64 << 20
	watch := watchResident()
	block := make([]byte, size)
	for i := range block {
		block[i] = 1
	}
	grown := watch()
	if grown == 0 {
		if runtime.GOOS == "linux" {
			t.Fatal("no bytes were counted, on Linux")
		}
		t.Skip("this system does not count the bytes of a process")
	}
	// The process also grows by a page table and memory of the Go runtime, and may have had free memory before.
	if grown < 0.75*size || grown > 2*size {
		t.Errorf("%.0f bytes for %d", grown, len(block))
	}
	runtime.KeepAlive(block)
}

// BenchmarkFit measures Mercer's entries of `mercer bench fit` and `mercer bench scale`.
func BenchmarkFit(b *testing.B) {
	dev, err := backend.Open("", backend.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	w := &scaling{&setup{Benchmark: Benchmark{Features: 50}, ctx: b.Context()}, dev}
	for _, solver := range scaleds {
		for _, n := range sizes {
			m := int(10 * math.Sqrt(float64(n)))
			c := Case{{"solver", solver.name}, {"n", strconv.Itoa(n)}}
			if solver.m {
				c = append(c, Param{"m", strconv.Itoa(m)})
			}
			b.Run(c.String(), func(b *testing.B) {
				f := w.prepare(solver, newSynthetic(n, 50, fitLambda), m)
				if f.err != nil && solver.name == "outofcore" {
					b.Skip(f.err) // the method needs a device with its own memory
				}
				if f.err != nil {
					b.Fatal(f.err)
				}
				var residual float64
				for b.Loop() {
					last, err := f.fit()
					if err != nil {
						b.Fatal(err)
					}
					residual = last.res.Residual
				}
				b.ReportMetric(residual, "residual")
			})
		}
	}
}

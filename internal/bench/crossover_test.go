package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
)

// TestCrossover checks the operations, the residuals and the page of a small grid, on every device.
func TestCrossover(t *testing.T) {
	c := Benchmark{Kind: CrossoverKind, Sizes: []int{1, 40, 7}, Widths: []int{9, 40, 1}, Devices: usable(), Threads: []int{1}, Runner: Runner{Repeats: 2}}
	r, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Cells) != 3*3 {
		t.Fatalf("%d cells", len(r.Cells))
	}
	if first := r.Cells[0].Case.String(); first != "n=1/m=1" {
		t.Errorf("the first case is %s", first)
	}
	for _, cell := range r.Cells {
		for _, e := range r.Implementations {
			run := cell.Run(e.Name)
			if run.Work <= 0 || len(run.Timings) != 2 {
				t.Errorf("%v: %s: %+v", cell.Case, e.Name, run)
			}
			if p := newRidge(cell.Case.Int("n"), cell.Case.Int("m")); !(run.Metrics[residualMetric] <= p.limit()) {
				t.Errorf("%v: %s: residual %v", cell.Case, e.Name, run.Metrics[residualMetric])
			}
		}
	}
	if text := textOf(t, r); !strings.Contains(text, "the slower form takes up to") || !strings.Contains(text, "n \\ m") {
		t.Error(text)
	}
}

// TestRidgeResidual checks that the residual of w from gonum's Cholesky is within the limit, and that a relative
// error of 10⁻⁶ in w is not.
func TestRidgeResidual(t *testing.T) {
	for _, size := range [][2]int{{30, 12}, {12, 30}, {20, 20}, {1, 1}} {
		p := newRidge(size[0], size[1])
		x, m := matrixOf(p.x), size[1]
		a := mat.NewSymDense(m, nil)
		a.SymOuterK(1, x.T())
		for j := range m {
			a.SetSym(j, j, a.At(j, j)+p.lambda)
		}
		var b, w mat.VecDense
		b.MulVec(x.T(), mat.NewVecDense(size[0], p.y.Data))
		var chol mat.Cholesky
		if !chol.Factorize(a) {
			t.Fatal("not positive definite")
		}
		if err := chol.SolveVecTo(&w, &b); err != nil {
			t.Fatal(err)
		}
		if got := p.residual(w.RawVector().Data); !(got <= p.limit()) {
			t.Errorf("%v: a residual of %v, the limit is %v", size, got, p.limit())
		}
		w.ScaleVec(1+1e-6, &w)
		if got := p.residual(w.RawVector().Data); got <= p.limit() {
			t.Errorf("%v: a residual of %v passes", size, got)
		}
	}
}

func TestCrossoverRefuses(t *testing.T) {
	for _, test := range []struct {
		c    Benchmark
		want string
	}{
		{Benchmark{Kind: CrossoverKind, Sizes: []int{0}}, "bench: crossover: n: must be ≥ 1, got 0"},
		{Benchmark{Kind: CrossoverKind, Sizes: []int{1}, Widths: []int{1}, Precisions: []string{"float32"}}, "bench: crossover: precision: is not an option of this benchmark"},
	} {
		if _, err := test.c.Run(t.Context()); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
	if _, err := (Benchmark{Kind: CrossoverKind, Devices: []string{"abacus"}}).Run(t.Context()); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := (Benchmark{Kind: CrossoverKind, Sizes: []int{4}, Widths: []int{4}, Devices: []string{"ref"}}).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// TestEqualTimes checks equalAt if the times are equal at an n within, below and above the grid.
func TestEqualTimes(t *testing.T) {
	r := &Result{Kind: CrossoverKind, Implementations: []Implementation{
		{Name: "p", Kind: OwnKind, Device: "one", Method: primal}, {Name: "d", Kind: OwnKind, Device: "one", Method: dual},
	}}
	// dual time / primal time for m = 1, 2, 3, 4, each at n = 10, 100, 1000
	ratios := map[int][3]float64{1: {2, 3, 4}, 2: {0.1, 10, 100}, 3: {0.1, 0.2, 0.5}, 4: {2, 0.5, 2}}
	for m := 1; m <= 4; m++ {
		for i, n := range []int{10, 100, 1000} {
			c := Cell{Case: Case{{"precision", "float64"}, {"n", fmt.Sprint(n)}, {"m", fmt.Sprint(m)}}, Runs: []Run{
				{Implementation: "p", Timings: []float64{1}}, {Implementation: "d", Timings: []float64{ratios[m][i]}},
			}}
			c.summarize()
			r.Cells = append(r.Cells, c)
		}
	}
	g := r.grids()[0]
	// For m = 2 and 4, the ratios at two adjacent n are 1/q and q: the expected n is the geometric mean of these two n.
	for m, want := range map[int]float64{1: 0, 2: math.Sqrt(10 * 100), 3: math.Inf(1), 4: math.Sqrt(100 * 1000)} {
		if got := g.equalAt(m); got != want && !(math.Abs(got/want-1) < 0x1p-45) {
			t.Errorf("m = %d: equal at %v, want %v", m, got, want)
		}
	}
	p, err := r.Report()
	if err != nil {
		t.Fatal(err)
	}
	want := "n samples, m features: the slower form takes up to 100 times as long as the other. " +
		"Both take the same time at n = 15.81 to 79.06 m on one, float64; for larger n the primal form is faster."
	if p.Answer != want {
		t.Errorf("got %q, want %q", p.Answer, want)
	}
	table := p.Tables[0]
	if row := table.Rows[0]; row[2] != (Field{Text: "dual 10.0", Class: dual}) {
		t.Errorf("n = 10, m = 2: %+v", row[2])
	}
	last := table.Rows[len(table.Rows)-1]
	if d := cmp.Diff([]Field{{Text: "equal at n"}, {Text: "< 10"}, {Text: "32"}, {Text: "> 1000"}, {Text: "316"}}, last); d != "" {
		t.Error(d)
	}
	if len(table.Chart.Curves[0].Points) != 2 {
		t.Errorf("the chart has %+v", table.Chart.Curves[0])
	}
}

// TestCrossoverWithoutMemory checks that a form that exceeds the memory is skipped, with the reason.
func TestCrossoverWithoutMemory(t *testing.T) {
	r, err := Benchmark{Kind: CrossoverKind, Sizes: []int{100}, Widths: []int{4}, Devices: []string{"ref"}, Memory: 20000}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if run := r.Cells[0].Run("mercer ref dual"); run.Timed() || run.Reason != "needs 41 KiB of memory, but only 20 KiB may be used" {
		t.Errorf("%+v", run)
	}
	if run := r.Cells[0].Run("mercer ref primal"); !run.Timed() {
		t.Errorf("%+v", run)
	}
}

// BenchmarkRidge measures Mercer's entries of `mercer bench crossover`, for square, tall and wide problems.
func BenchmarkRidge(b *testing.B) {
	dev, err := backend.Open("", backend.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	l := &setup{ctx: b.Context()}
	for _, size := range sizes {
		for _, shape := range [][2]int{{size, size}, {size, (size + 3) / 4}, {(size + 3) / 4, size}} {
			for _, form := range forms {
				c := Case{{"form", string(form)}, {"n", strconv.Itoa(shape[0])}, {"m", strconv.Itoa(shape[1])}}
				b.Run(c.String(), func(b *testing.B) {
					f := newRidge(shape[0], shape[1]).planned(l, dev, form)
					if f.err != nil {
						b.Fatal(f.err)
					}
					for b.Loop() {
						if _, err := f.fit(); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(f.plan.Flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	}
}

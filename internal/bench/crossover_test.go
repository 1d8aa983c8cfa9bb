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

// TestCrossover measures a small grid on every device: the answers of both forms
// agree, the stages are reported, and the page of it has its parts.
func TestCrossover(t *testing.T) {
	c := Benchmark{Kind: CrossoverKind, Sizes: []int{1, 40, 7}, Widths: []int{9, 40, 1}, Devices: usable(), Threads: []int{1}, Runner: Runner{Repeats: 2}}
	r, err := c.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Cells) != 2*3*3 {
		t.Fatalf("%d cells", len(r.Cells))
	}
	if first := r.Cells[0].Case.String(); first != "precision=float64/n=1/m=1" {
		t.Errorf("the first case is %s", first)
	}
	for _, cell := range r.Cells {
		n, m := cell.Case.Int("n"), cell.Case.Int("m")
		for i, e := range r.Implementations {
			run := cell.Run(e.Name)
			if e.Kind == CeilingKind {
				continue
			}
			var names []string
			work := 0.0
			for _, s := range run.Stages {
				names, work = append(names, s.Name), work+s.Work
			}
			if d := cmp.Diff([]string{"gram", "factor", "solve"}, names); d != "" {
				t.Errorf("%v: %s: %s", cell.Case, e.Name, d)
			}
			if want := ridgeFlops(e.Method, n, m); run.Work != want || work != want || len(run.Timings) != 2 {
				t.Errorf("%v: %s: %+v, want %v operations", cell.Case, e.Name, run, want)
			}
			if (run.Check == nil) != (i == 0) {
				t.Errorf("%v: %s: compared: %v; the first is the reference", cell.Case, e.Name, run.Check != nil)
			}
			// Rounding of either precision explains far less than a wrong sign.
			if most := map[string]float64{"float64": 1e-11, "float32": 1e-2}[cell.Case.Get("precision")]; run.Check != nil && run.Check.Limit > most {
				t.Errorf("%v: %s: a difference of %v would pass", cell.Case, e.Name, run.Check.Limit)
			}
		}
	}
	if text := textOf(t, r); !strings.Contains(text, "the slower form takes up to") || !strings.Contains(text, "n \\ m") {
		t.Error(text)
	}
}

// TestRidgeAnswer: both forms give the w of the normal equations, solved by
// gonum's Cholesky, to the bound on the rounding of two implementations.
func TestRidgeAnswer(t *testing.T) {
	dev, err := backend.Open("ref", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, size := range [][2]int{{30, 12}, {12, 30}, {20, 20}} {
		p := newRidge[float64](size[0], size[1])
		x := mat.NewDense(p.n, p.m, p.x.Data)
		a := mat.NewSymDense(p.m, nil)
		a.SymOuterK(1, x.T())
		for j := range p.m {
			a.SetSym(j, j, a.At(j, j)+p.lambda)
		}
		var b, w mat.VecDense
		b.MulVec(x.T(), mat.NewVecDense(p.n, p.y.Data))
		var chol mat.Cholesky
		if !chol.Factorize(a) {
			t.Fatal("not positive definite")
		}
		if err := chol.SolveVecTo(&w, &b); err != nil {
			t.Fatal(err)
		}
		copy(p.w.Data, w.RawVector().Data)
		if p.check() != nil {
			t.Fatal("the reference was compared with something")
		}
		for _, form := range []string{primal, dual} {
			e, err := p.entry(dev.F64(), form)
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Run(); err != nil {
				t.Fatal(err)
			}
			if c := e.Check(); c == nil || !(c.Difference <= c.Limit) {
				t.Errorf("%v: %s: %+v", size, form, c)
			}
			e.Close()
		}
		// An answer that is off by ten times the bound does not pass.
		for j := range p.w.Data {
			p.w.Data[j] *= 1 + 10*p.limit
		}
		if c := p.check(); c.Difference <= c.Limit {
			t.Errorf("%v: a difference of %v passes", size, c.Difference)
		}
	}
	if n, _ := dev.InUse(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

func TestCrossoverRefuses(t *testing.T) {
	for _, test := range []struct {
		c    Benchmark
		want string
	}{
		{Benchmark{Kind: CrossoverKind, Sizes: []int{0}}, "bench: crossover: n: must be ≥ 1, got 0"},
		{Benchmark{Kind: CrossoverKind, Sizes: []int{1}, Widths: []int{1}, Precisions: []string{"half"}}, `bench: crossover: precision: "half" is not known; there are: float64, float32`},
		{Benchmark{Kind: CrossoverKind, Sizes: []int{100}, Widths: []int{50}, Devices: []string{"ref"}, Memory: 100000},
			"bench: crossover: n, m ≤ 100 takes 180000 bytes for both forms on ref, there are 100000: n, m ≤ 61 would fit"},
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

// TestEqualTimes reads from a grid where both forms take the same time: within
// the grid, below and above.
func TestEqualTimes(t *testing.T) {
	r := &Result{Kind: CrossoverKind, Implementations: []Implementation{
		{Name: "p", Kind: OwnKind, Device: "one", Method: primal}, {Name: "d", Kind: OwnKind, Device: "one", Method: dual},
	}}
	// Ratios dual/primal for n = 10, 100, 1000 at m = 1, 2, 3, 4.
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
	// The ratio is 1 half way between the logarithms of 10 and 100, and of 100 and 1000.
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
		"Both take the same time at n = 15.81 to 79.06 m on one, float64; above, the primal is the faster."
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

// BenchmarkRidge is Mercer's side of `mercer bench crossover`: both forms for
// square problems, and for four times as many samples or features.
func BenchmarkRidge(b *testing.B) {
	dev, err := backend.Open("", backend.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	for _, size := range sizes {
		for _, shape := range [][2]int{{size, size}, {size, (size + 3) / 4}, {(size + 3) / 4, size}} {
			for _, form := range []string{primal, dual} {
				ridgeBenchmark(b, dev.F64(), form, "float64", shape[0], shape[1])
				ridgeBenchmark(b, dev.F32(), form, "float32", shape[0], shape[1])
			}
		}
	}
}

// ridgeBenchmark is one case of BenchmarkRidge.
func ridgeBenchmark[T backend.Float](b *testing.B, q backend.Backend[T], form, precision string, n, m int) {
	c := Case{{"form", form}, {"precision", precision}, {"n", strconv.Itoa(n)}, {"m", strconv.Itoa(m)}}
	b.Run(c.String(), func(b *testing.B) {
		e, err := newRidge[T](n, m).entry(q, form)
		if err != nil {
			b.Fatal(err)
		}
		defer e.Close()
		for b.Loop() {
			if err := e.Run(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(e.Work*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	})
}

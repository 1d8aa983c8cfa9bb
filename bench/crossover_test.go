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
	"github.com/google/go-cmp/cmp/cmpopts"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/solvers"
)

// TestCrossover measures a small grid on every device: the answers of both forms
// agree, the stages are told, and the page of it has its parts.
func TestCrossover(t *testing.T) {
	c := Crossover{N: []int{1, 40, 7}, M: []int{9, 40, 1}, Devices: usable(), Threads: 1, Runner: Runner{Repeats: 2}}
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
		for i, e := range r.Entrants {
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
	if text := r.CrossoverText(); !strings.Contains(text, "The rule “primal when") || !strings.Contains(text, "n \\ m") {
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
		for _, form := range []string{Primal, Dual} {
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
		c    Crossover
		want string
	}{
		{Crossover{N: []int{0}}, "bench: crossover: numbers of samples and features must be ≥ 1, got 0"},
		{Crossover{N: []int{1}, M: []int{1}, Precisions: []string{"half"}}, `bench: crossover: no precision is called "half"; there are: float64, float32`},
		{Crossover{N: []int{100}, M: []int{50}, Devices: []string{"ref"}, Memory: 100000},
			"bench: crossover: n = 100 and m = 50 take 180000 bytes on ref, there are 100000: 50 at most for both would fit"},
	} {
		if _, err := test.c.Run(t.Context()); err == nil || err.Error() != test.want {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
	if _, err := (Crossover{Devices: []string{"abacus"}}).Run(t.Context()); !errors.Is(err, backend.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := (Crossover{N: []int{4}, M: []int{4}, Devices: []string{"ref"}}).Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// modelled is a crossover whose stages take what a cost model says.
func modelled(costs solvers.Costs, sizes []int) *Result {
	r := &Result{Schema: Schema, Kind: CrossoverKind, Entrants: []Entrant{
		{Name: "mercer one primal", Kind: OwnKind, Device: "one", Processor: "Abacus", Threads: 2, Method: Primal},
		{Name: "mercer one dual", Kind: OwnKind, Device: "one", Processor: "Abacus", Threads: 2, Method: Dual},
	}}
	for _, n := range sizes {
		for _, m := range sizes {
			cell := Cell{Case: Case{{"precision", "float64"}, {"n", strconv.Itoa(n)}, {"m", strconv.Itoa(m)}}}
			for _, e := range r.Entrants {
				work := ridgeStages(e.Method, n, m)
				cost := [3]float64{costs.GramCost(n, m), costs.FactorCost(n), costs.ThinCost(work[2])}
				if e.Method == Primal {
					cost[0], cost[1] = costs.CovarianceCost(n, m, 1), costs.FactorCost(m)
				}
				run := Run{Entrant: e.Name, Work: ridgeFlops(e.Method, n, m)}
				total := 0.0
				for i, name := range []string{GramStage, FactorStage, SolveStage} {
					s := cost[i] / costs.Rate
					total += s
					run.Stages = append(run.Stages, Stage{Name: name, Work: work[i], Time: Spread{Median: s, Min: s, Max: s}})
				}
				run.Timings = []float64{total}
				cell.Runs = append(cell.Runs, run)
			}
			cell.sumUp()
			r.Cells = append(r.Cells, cell)
		}
	}
	return r
}

// TestFittedCosts: the constants are found again from what they would give, and
// predict where the times cross. The columns of the problem are scaled to length
// 1 and are then independent enough for a condition below 1e4; what a constant
// differs by is 1e4·2⁻⁵³ for each of up to a hundred rows.
func TestFittedCosts(t *testing.T) {
	const tol = 1e4 * 100 * 0x1p-53
	want := solvers.Costs{Rate: 1e9, Input: 300, Covariance: 20, Gram: 60, Potrf: 0.7, Panel: 150, Thin: 0.05}
	r := modelled(want, []int{64, 128, 256, 512, 1024})
	p := r.Planes()[0]
	if d := cmp.Diff(want, p.Costs, cmpopts.EquateApprox(tol, 0)); d != "" || !p.Fitted {
		t.Errorf("(-want +got):\n%s", d)
	}
	judged := p.Judge()
	if j := judged[2]; j.Rule != "fitted costs" || j.Right != 25 || j.Of != 25 || j.Extra > tol || j.Worst != 1 {
		t.Errorf("%+v", j)
	}
	for _, c := range p.Crossings() {
		// Interpolation between powers of two of a ratio that is smooth in the
		// logarithm misses by a few per cent of n.
		if n := float64(p.Predicted(c.M)); c.N > 0 && math.Abs(c.N/n-1) > 0.05 {
			t.Errorf("m = %d: measured at %.1f, predicted at %v", c.M, c.N, n)
		}
	}
	list := r.MachineCosts()
	if len(list) != 1 || list[0].Device != "one" || list[0].Processor != "Abacus" || list[0].Threads != 2 || list[0].Costs != p.Costs {
		t.Errorf("%+v", list)
	}
	// A term that does not show comes out as 0, never below.
	want.Covariance, want.Panel = 0, 0
	if got := modelled(want, []int{64, 128, 256, 512, 1024}).Planes()[0].Costs; math.Abs(got.Covariance) > 1e-3 || got.Covariance < 0 || got.Panel < 0 {
		t.Errorf("%+v", got)
	}
	if tiny := modelled(want, []int{2, 4}).Planes()[0]; tiny.Fitted {
		t.Errorf("fitted to microseconds: %+v", tiny.Costs)
	}
}

// TestCrossings reads the crossing off a plane: within the grid, below and above.
func TestCrossings(t *testing.T) {
	r := &Result{Entrants: []Entrant{
		{Name: "p", Kind: OwnKind, Device: "one", Method: Primal}, {Name: "d", Kind: OwnKind, Device: "one", Method: Dual},
	}}
	// Ratios dual/primal for n = 10, 100, 1000 at m = 1, 2, 3, 4.
	ratios := map[int][3]float64{1: {2, 3, 4}, 2: {0.1, 10, 100}, 3: {0.1, 0.2, 0.5}, 4: {2, 0.5, 2}}
	for m := 1; m <= 4; m++ {
		for i, n := range []int{10, 100, 1000} {
			c := Cell{Case: Case{{"precision", "float64"}, {"n", fmt.Sprint(n)}, {"m", fmt.Sprint(m)}}, Runs: []Run{
				{Entrant: "p", Timings: []float64{1}}, {Entrant: "d", Timings: []float64{ratios[m][i]}},
			}}
			c.sumUp()
			r.Cells = append(r.Cells, c)
		}
	}
	p := r.Planes()[0]
	got := p.Crossings()
	half := math.Sqrt(10. * 100)
	want := []Crossing{{M: 1, Beyond: -1}, {M: 2, N: half}, {M: 3, Beyond: 1}, {M: 4, N: math.Sqrt(100. * 1000)}}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0x1p-45, 0)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if low, high, ok := p.Ratios(); !ok || math.Abs(low/(half/2)-1) > 0x1p-45 || math.Abs(high/(math.Sqrt(1e5)/4)-1) > 0x1p-45 {
		t.Errorf("%v %v %v", low, high, ok)
	}
	if text := got[0].Text(p) + ", " + got[1].Text(p) + ", " + got[2].Text(p); text != "below 10, 31.6, above 1000" {
		t.Error(text)
	}
	j := p.Judge()[0] // primal when n ≥ m: always here
	if j.Right != 7 || j.Of != 12 || j.Worst != 10 || j.WorstN != 10 || j.WorstM != 2 {
		t.Errorf("%+v", j)
	}
	form, times, mark := p.At(10, 2).Winner()
	if form != Dual || times != 10 || mark != "" {
		t.Errorf("%s %v %q", form, times, mark)
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
			for _, form := range []string{Primal, Dual} {
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

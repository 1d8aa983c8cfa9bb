package krylov_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/krylov"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// diagonal is the operator diag(d).
type diagonal[T backend.Float] struct {
	b backend.Backend[T]
	d []float64
}

func (a diagonal[T]) Free() {}

func (a diagonal[T]) Apply(q, p, _ backend.Matrix[T]) error {
	n, c := p.Dims()
	h := backend.NewHost[T](n, c)
	if err := a.b.Download(h, p); err != nil {
		return err
	}
	for i := range n {
		for j := range c {
			h.Row(i)[j] *= T(a.d[i])
		}
	}
	return a.b.Upload(q, h)
}

// problem is a system diag(d) X = B with the arguments of a solve.
type problem struct {
	frame run.Frame
	d     []float64
	b     backend.Host[float64]
	goal  []float64
}

func newProblem(t *testing.T, dev backend.Device, d []float64, columns int) *problem {
	p := &problem{frame: run.New(t.Context(), dev, nil), d: d, b: backend.NewHost[float64](len(d), columns), goal: make([]float64, columns)}
	r := rand.New(rand.NewPCG(uint64(columns), 1))
	for i := range p.b.Data {
		p.b.Data[i] = r.NormFloat64()
	}
	for j := range p.goal {
		p.goal[j] = 1e-9 * math.Sqrt(float64(len(d)))
	}
	return p
}

// solve returns the solution and the solver, whose memory has been freed.
func solve[T backend.Float](t *testing.T, p *problem, b backend.Backend[T], par krylov.Params, from *krylov.State) (backend.Host[float64], string, error) {
	t.Helper()
	n, c := p.b.Rows, p.b.Cols
	products := 0
	par.Order, par.Columns = n, c
	if par.Products == nil {
		par.Products = &products
	}
	if par.MaxProducts == 0 {
		par.MaxProducts = 1000
	}
	par.Patience = 500
	defer p.frame.Mem.FreeAll()
	s, err := krylov.New(&p.frame, b, krylov.Operator[T](diagonal[T]{b, p.d}), nil, par)
	if err != nil {
		t.Fatal(err)
	}
	m, err := p.frame.Mem.New(n, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.frame.B.Upload(m, p.b); err != nil {
		t.Fatal(err)
	}
	if from != nil {
		if err := p.frame.B.Upload(m, from.RHS); err != nil {
			t.Fatal(err)
		}
	}
	err = s.Solve(m, append([]float64(nil), p.goal...), from)
	x := backend.NewHost[float64](n, c)
	if e := p.frame.B.Download(x, m); e != nil {
		t.Fatal(e)
	}
	return x, s.Stopped, err
}

// residual returns the largest ‖b − diag(d)x‖ over the columns.
func (p *problem) residual(x backend.Host[float64]) float64 {
	maxNorm := 0.0
	for j := range x.Cols {
		sum := 0.0
		for i, d := range p.d {
			r := p.b.Row(i)[j] - d*x.Row(i)[j]
			sum += r * r
		}
		maxNorm = max(maxNorm, math.Sqrt(sum))
	}
	return maxNorm
}

// TestSolverReachesGoal checks that a solve with a matrix of 9 distinct eigenvalues takes at most 9 products for
// each block, for one column, several columns, linearly dependent columns, and more columns than a block has.
func TestSolverReachesGoal(t *testing.T) {
	for _, name := range backendtest.Devices(t) {
		dev := backendtest.Device(t, name)
		d := make([]float64, 70)
		for i := range d {
			d[i] = 1 + float64(i%9)
		}
		for _, columns := range []int{1, 3, krylov.BlockWidth + 2} {
			p, products := newProblem(t, dev, d, columns), 0
			for i := range d {
				if columns == 3 {
					p.b.Row(i)[2] = p.b.Row(i)[0] - p.b.Row(i)[1]
				}
			}
			x, reason, err := solve(t, p, dev.F64().With(t.Context(), nil), krylov.Params{Products: &products}, nil)
			if err != nil || reason != "" {
				t.Fatalf("%s, %d columns: %q, %v", name, columns, reason, err)
			}
			if r := p.residual(x); !(r <= 1.01*p.goal[0]) {
				t.Errorf("%s, %d columns: the residual is %g, the goal %g", name, columns, r, p.goal[0])
			}
			if blocks := 1 + columns/krylov.BlockWidth; products > 9*blocks {
				t.Errorf("%s, %d columns: %d products", name, columns, products)
			}
		}
	}
}

// TestSolverStops checks that a solve reports why its residual exceeds the goal, also for an infinite right-hand side.
func TestSolverStops(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	d := make([]float64, 40)
	for i := range d {
		d[i] = math.Exp(float64(i) / 3)
	}
	for _, c := range []struct {
		par  krylov.Params
		last float64 // last element of d
		want string
	}{
		{krylov.Params{MaxSteps: 3}, 1, "no convergence within 3 iterations"},
		{krylov.Params{MaxProducts: 4}, 1, "the limit of 4 iterations is reached"},
		{krylov.Params{}, -1, "K + λI is not positive definite in float64"},
	} {
		d[0] = c.last
		p := newProblem(t, dev, d, 1)
		if _, reason, err := solve(t, p, dev.F64().With(t.Context(), nil), c.par, nil); err != nil || reason != c.want {
			t.Errorf("got %q and %v, want %q", reason, err, c.want)
		}
	}
	p := newProblem(t, dev, d, 1)
	p.b.Data[3] = math.Inf(1)
	if _, reason, err := solve(t, p, dev.F64().With(t.Context(), nil), krylov.Params{}, nil); err == nil && reason == "" {
		t.Error("an infinite right-hand side is solved for")
	}
}

// TestSolverGoesOn checks that a solve that resumes from the state of any step gives the same bits
// as an uninterrupted solve, in both precisions.
func TestSolverGoesOn(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	d := make([]float64, 50)
	for i := range d {
		d[i] = 1 + float64(i)*float64(i)
	}
	checkResume(t, dev, dev.F64().With(t.Context(), nil), d, 1e-9)
	checkResume(t, dev, dev.F32().With(t.Context(), nil), d, 1e-3)
}

func checkResume[T backend.Float](t *testing.T, dev backend.Device, b backend.Backend[T], d []float64, goal float64) {
	p := newProblem(t, dev, d, 2)
	for j := range p.goal {
		p.goal[j] = goal
	}
	var states []krylov.State
	par := krylov.Params{Due: func() bool { return true }, Save: func(s krylov.State) error { states = append(states, s); return nil }}
	want, reason, err := solve(t, p, b, par, nil)
	if err != nil || reason != "" || len(states) < 5 {
		t.Fatalf("%d states, %q, %v", len(states), reason, err)
	}
	for i, s := range states {
		got, _, err := solve(t, p, b, krylov.Params{}, &s)
		if err != nil {
			t.Fatal(err)
		}
		for k, v := range got.Data {
			if v != want.Data[k] {
				t.Fatalf("from state %d: element %d is %v, want %v", i, k, v, want.Data[k])
			}
		}
	}
	saveErr := errors.New("the disk is full")
	par.Save = func(krylov.State) error { return saveErr }
	if _, _, err := solve(t, p, b, par, nil); !errors.Is(err, saveErr) {
		t.Errorf("a state that is not kept: %v", err)
	}
}

// TestOperators compares A p with its definition for K stored, for K not stored, and for an affine kernel.
func TestOperators(t *testing.T) {
	for _, name := range backendtest.Devices(t) {
		dev := backendtest.Device(t, name)
		const n, dims, columns = 30, 4, 2
		r := rand.New(rand.NewPCG(3, 3))
		host := func(rows, cols int) backend.Host[float64] {
			h := backend.NewHost[float64](rows, cols)
			for i := range h.Data {
				h.Data[i] = r.NormFloat64()
			}
			return h
		}
		x, v, shift := host(n, dims), host(n, columns), make([]float64, n)
		for i := range shift {
			shift[i] = 1 / float64(1+i)
		}
		for _, k := range []kernels.Kernel{kernels.Gaussian{Sigma: 2}, kernels.Sum{kernels.Scaled{Weight: 2, Kernel: kernels.Linear{}}, kernels.Constant{Value: 3}}} {
			for _, stored := range []bool{false, true} {
				b := dev.F64()
				mem := run.NewArena(dev, b)
				var m [4]backend.Matrix[float64]
				for i, h := range []backend.Host[float64]{x, v, v, v} {
					var err error
					if m[i], err = mem.New(h.Rows, h.Cols); err != nil {
						t.Fatal(err)
					}
					if err := b.Upload(m[i], h); err != nil {
						t.Fatal(err)
					}
				}
				o, err := krylov.NewOperator(mem, b, m[0], krylov.OperatorParams{Kernel: k, Shift: shift, Columns: columns, Stored: stored})
				if err != nil {
					t.Fatal(err)
				}
				if err := o.Apply(m[2], m[1], m[3]); err != nil {
					t.Fatal(err)
				}
				got := backend.NewHost[float64](n, columns)
				if err := b.Download(got, m[2]); err != nil {
					t.Fatal(err)
				}
				for i := range n {
					for j := range columns {
						want, size := shift[i]*v.Row(i)[j], 0.0
						for l := range n {
							term := kernels.Eval(k, x.Row(i), x.Row(l)) * v.Row(l)[j]
							want, size = want+term, size+math.Abs(term)
						}
						// The tolerance allows 100 roundings for a kernel value and n for the sum.
						if !(math.Abs(got.Row(i)[j]-want) <= (100+n)*0x1p-52*size) {
							t.Errorf("%s, %v, stored %v: element (%d, %d) is %v, want %v", name, k, stored, i, j, got.Row(i)[j], want)
						}
					}
				}
				if (krylov.StoredBy(o) != nil) != stored {
					t.Errorf("stored: %v", krylov.StoredBy(o))
				}
				o.Free()
				mem.FreeAll()
			}
		}
	}
}

// TestReview checks that a solve calls Review after ten iterations, with an estimate of the remaining iterations
// that is wrong by at most the factor 1.5 for evenly spread eigenvalues. If Review returns a text, the solve must
// end with a solution whose residual is at most that of X = 0.
func TestReview(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	d := make([]float64, 1000)
	for i := range d {
		d[i] = 1 + 100*float64(i)/float64(len(d)-1)
	}
	p, products, calls, guess := newProblem(t, dev, d, 1), 0, 0, 0.0
	par := krylov.Params{Products: &products, Review: func(iterations int, remaining float64) string {
		calls++
		if guess = remaining; iterations != 10 {
			t.Errorf("called after %d iterations", iterations)
		}
		return ""
	}}
	_, reason, err := solve(t, p, dev.F64(), par, nil)
	if err != nil || reason != "" || calls != 1 {
		t.Fatalf("stopped %q, %d calls, error %v", reason, calls, err)
	}
	if actual := float64(products - 10); !(guess > actual/1.5 && guess < 1.5*actual) {
		t.Errorf("%g more iterations are announced, and %g follow", guess, actual)
	}
	products = 0
	par.Review = func(int, float64) string { return "too slow" }
	x, reason, err := solve(t, p, dev.F64(), par, nil)
	if err != nil || reason != "too slow" || products != 10 {
		t.Errorf("stopped %q after %d products, error %v", reason, products, err)
	}
	if zero := backend.NewHost[float64](len(d), 1); !(p.residual(x) <= p.residual(zero)) {
		t.Errorf("the residual is %g, and %g for 0", p.residual(x), p.residual(zero))
	}
}

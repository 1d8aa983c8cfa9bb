package solvers_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/solvers/solvertest"
)

// kernelMatrix computes k(X, X) + λI element by element with kernels.Eval.
func kernelMatrix(k kernels.Kernel, x [][]float64, lambda float64) *mat.SymDense {
	a := mat.NewSymDense(len(x), nil)
	for i := range x {
		for j := range i + 1 {
			a.SetSym(i, j, kernels.Eval(k, x[i], x[j]))
		}
		a.SetSym(i, i, a.At(i, i)+lambda)
	}
	return a
}

// residual checks the residual of a solution of A x = b against the backward error of a Cholesky solution. Each Append
// and Remove adds a relative backward error of a multiple of n·2⁻⁵³.
func residual(t *testing.T, f *solvers.Cholesky, a *mat.SymDense, changes int, rng *rand.Rand) {
	t.Helper()
	n := a.SymmetricDim()
	if f.Order() != n {
		t.Fatalf("order %d, want %d", f.Order(), n)
	}
	b, x := backend.NewHost[float64](n, 3), backend.NewHost[float64](n, 3)
	for i := range b.Data {
		b.Data[i] = rng.NormFloat64()
	}
	if err := f.Solve(t.Context(), x, b); err != nil {
		t.Fatal(err)
	}
	var r mat.Dense
	r.Mul(a, mat.NewDense(n, 3, x.Data))
	r.Sub(&r, mat.NewDense(n, 3, b.Data))
	size := mat.Norm(a, 2) * mat.Norm(mat.NewDense(n, 3, x.Data), 2)
	if bound := 0x1p-53 * float64(8*n*(changes+2)+64) * size; !(mat.Norm(&r, 2) <= bound) {
		t.Errorf("order %d after %d changes: residual %g, bound %g", n, changes, mat.Norm(&r, 2), bound)
	}
	var c mat.Cholesky
	if !c.Factorize(a) {
		t.Fatal("the oracle's factor failed")
	}
	got, err := f.LogDet()
	if err != nil {
		t.Fatal(err)
	}
	// The backward error bounds the absolute error of each eigenvalue, and log det adds n relative errors.
	if bound := 0x1p-53 * float64(16*n*(changes+2)+64) * float64(n) * c.Cond(); !(math.Abs(got-c.LogDet()) <= bound) {
		t.Errorf("log det %v, want %v, bound %g", got, c.LogDet(), bound)
	}
}

// TestCholeskyUpdates adds and removes samples at random, and compares with gonum's factor of the changed matrix.
func TestCholeskyUpdates(t *testing.T) {
	t.Run("dense", func(t *testing.T) { testCholeskyUpdates(t, false) })
	t.Run("sparse", func(t *testing.T) { testCholeskyUpdates(t, true) })
}

func testCholeskyUpdates(t *testing.T, sparse bool) {
	solvertest.EachDevice(t, func(t *testing.T, open solvertest.Open) {
		const seed = 5
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 1))
		dev := open(t, backend.Config{})
		const d, lambda = 4, 0.05
		kernel := kernels.Gaussian{Sigma: 1.5}
		point := func() []float64 {
			x := make([]float64, d)
			for i := range x {
				if x[i] = rng.NormFloat64(); sparse && rng.IntN(3) > 0 {
					x[i] = 0
				}
			}
			return x
		}
		var points [][]float64
		x := backend.NewHost[float64](20, d)
		for i := range 20 {
			points = append(points, point())
			copy(x.Row(i), points[i])
		}
		var samples backend.Points = x
		if sparse {
			samples = x.CSR()
		}
		f, err := solvers.NewKernelCholesky(t.Context(), dev, kernel, samples, lambda)
		if err != nil {
			t.Fatal(err)
		}
		clear(x.Data) // f stores a copy of the samples
		if s, ok := samples.(backend.CSR[float64]); ok {
			clear(s.Data)
		}
		changes := 0
		residual(t, f, kernelMatrix(kernel, points, lambda), changes, rng)
		for step := range 60 {
			if len(points) > 1 && rng.IntN(5) < 2 {
				i := rng.IntN(len(points))
				if step%7 == 0 {
					i = 0
				}
				if err := f.Remove(t.Context(), i); err != nil {
					t.Fatal(err)
				}
				points = slices.Delete(points, i, i+1)
			} else {
				points = append(points, point())
				if step%9 == 0 { // insert a sample twice
					points[len(points)-1] = slices.Clone(points[0])
				}
				if err := f.AppendPoint(t.Context(), points[len(points)-1]); err != nil {
					t.Fatal(err)
				}
			}
			changes++
			if step%5 == 0 {
				residual(t, f, kernelMatrix(kernel, points, lambda), changes, rng)
			}
		}
		got := f.Points()
		if _, ok := got.(backend.CSR[float64]); ok != sparse {
			t.Fatalf("Points: a %T", got)
		}
		for i, p := range points {
			if row := mat.Row(nil, i, got.(mat.Matrix)); !slices.Equal(row, p) {
				t.Fatalf("Points: row %d is %v, want %v", i, row, p)
			}
		}
		for len(points) > 0 {
			if err := f.Remove(t.Context(), len(points)-1); err != nil {
				t.Fatal(err)
			}
			points = points[:len(points)-1]
		}
		if got, err := f.LogDet(); got != 0 || err != nil {
			t.Errorf("log det of nothing: %v, %v", got, err)
		}
		f.Close()
		if now, _ := dev.InUse(); now != 0 {
			t.Errorf("%d bytes are left on the device", now)
		}
	})
}

// TestCholeskyOfMatrix grows a factor of a given matrix from order 0 beyond moveRows, and removes samples.
func TestCholeskyOfMatrix(t *testing.T) {
	solvertest.EachDevice(t, func(t *testing.T, open solvertest.Open) {
		rng := rand.New(rand.NewPCG(6, 1))
		dev := open(t, backend.Config{})
		n := 300
		if testing.Short() {
			n = 60
		}
		var all mat.SymDense
		g := mat.NewDense(n, n, nil)
		for i := range n {
			for j := range n {
				g.Set(i, j, rng.NormFloat64()/math.Sqrt(float64(n)))
			}
		}
		all.SymOuterK(1, g)
		const lambda = 0.5
		f, err := solvers.NewCholesky(t.Context(), dev, 0, nil, lambda)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for i := range n {
			if err := f.Append(t.Context(), mat.Row(nil, i, all.SliceSym(0, i+1))); err != nil {
				t.Fatal(err)
			}
		}
		shifted := mat.NewSymDense(n, nil)
		shifted.CopySym(&all)
		for i := range n {
			shifted.SetSym(i, i, all.At(i, i)+lambda)
		}
		residual(t, f, shifted, 1, rng) // each element of L is computed only once
		refactored, err := solvers.NewCholesky(t.Context(), dev, n, func(i int, dst []float64) { mat.Row(dst, i, all.SliceSym(0, i+1)) }, lambda)
		if err != nil {
			t.Fatal(err)
		}
		residual(t, refactored, shifted, 0, rng)
		refactored.Close()
		for range 3 {
			if err := f.Remove(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
		}
		residual(t, f, shifted.SliceSym(3, n).(*mat.SymDense), 3, rng)
	})
}

func TestCholeskyRefuses(t *testing.T) {
	dev, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dev.Close() }()
	ctx := t.Context()
	ones := func(_ int, dst []float64) {
		for j := range dst {
			dst[j] = 1
		}
	}
	if _, err := solvers.NewCholesky(ctx, dev, 3, ones, 0); !errors.Is(err, backend.ErrNotPosDef) || !strings.Contains(err.Error(), "raise lambda") {
		t.Errorf("a singular matrix: %v", err)
	}
	f, err := solvers.NewKernelCholesky(ctx, dev, kernels.Gaussian{Sigma: 1}, backend.Host[float64]{Rows: 3, Cols: 1, Stride: 1, Data: []float64{0, 1, 2}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.AppendPoint(ctx, []float64{1}); !errors.Is(err, backend.ErrNotPosDef) {
		t.Errorf("a repeated sample, lambda = 0: %v", err)
	}
	canceled, cancel := context.WithCancelCause(ctx)
	cause := errors.New("reason")
	cancel(cause)
	x := backend.NewHost[float64](3, 1)
	for name, err := range map[string]error{
		"has 2 features, but the samples of the factor have 1": f.AppendPoint(ctx, []float64{1, 2}),
		"column 1 is NaN":                      f.AppendPoint(ctx, []float64{math.NaN()}),
		"call AppendPoint with the new sample": f.Append(ctx, []float64{1, 2, 3, 4}),
		"no sample has index 3:":               f.Remove(ctx, 3),
		"no sample has index -1:":              f.Remove(ctx, -1),
		"the shapes do not match":              f.Solve(ctx, x, backend.NewHost[float64](2, 1)),
		"reason":                               f.Solve(canceled, x, x),
	} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got the error %v, want %q in it", err, name)
		}
	}
	if rows, _ := f.Points().Dims(); f.Order() != 3 || rows != 3 {
		t.Errorf("after errors: order %d, %d points", f.Order(), rows)
	}
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 50 {
				b := backend.NewHost[float64](3, 1)
				b.Data[0] = 1
				if err := f.Solve(ctx, b, b); err != nil || math.IsNaN(b.Data[0]) {
					t.Errorf("several solutions at once: %v, %v", b.Data, err)
				}
			}
		})
	}
	group.Wait()
	g, err := solvers.NewCholesky(ctx, dev, 0, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	for name, err := range map[string]error{
		"AppendPoint": g.AppendPoint(ctx, []float64{1}),
		"must have 1": g.Append(ctx, []float64{1, 2}),
		"is +Inf":     g.Append(ctx, []float64{math.Inf(1)}),
	} {
		if err == nil || !strings.Contains(err.Error(), name) && name != "AppendPoint" {
			t.Errorf("got the error %v, want %q in it", err, name)
		}
	}
	if _, err := solvers.NewCholesky(ctx, dev, 2, func(i int, dst []float64) { dst[i] = math.NaN() }, 1); err == nil || !strings.Contains(err.Error(), "row 1, column 1 is NaN") {
		t.Errorf("a NaN in the matrix: %v", err)
	}
	tight, err := backend.Open("cpu", backend.Config{Memory: 1000})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tight.Close() }()
	big := backend.NewHost[float64](100, 1)
	for i := range big.Data {
		big.Data[i] = float64(i)
	}
	if _, err := solvers.NewKernelCholesky(ctx, tight, kernels.Gaussian{Sigma: 1}, big, 1); !errors.Is(err, backend.ErrMemory) {
		t.Errorf("a factor that does not fit: %v", err)
	}
}

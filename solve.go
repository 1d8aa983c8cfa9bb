package mercer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// tolerance is the maximum relative residual ‖(K + λI)α − y‖/‖y‖ of a solution for a given K.
const tolerance = 1e-8

// Solve returns α, n×t, with (K + λI)α = y for a symmetric n×n matrix K and n×t right-hand sides, without changing
// K. It computes a Cholesky factor in n³/3 operations, in half as much memory as K takes, and refines the solution
// once. If the relative residual of a column stays above 1e-8, because K + λI is close to singular, it returns an
// error. Only o.Device is used. For weights w, pass K with λ/w_i − λ added to its diagonal.
func Solve(ctx context.Context, k mat.Symmetric, lambda float64, y mat.Matrix, o Options) (*mat.Dense, error) {
	if err := o.checkUnused("solve"); err != nil {
		return nil, err
	}
	f, err := NewFactor(ctx, k, lambda, o)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	hy, err := gonum.Host("y", y)
	if err != nil {
		return nil, fmt.Errorf("mercer: solve: %w", err)
	}
	n, t := f.Order(), hy.Cols
	if hy.Rows != n {
		return nil, fmt.Errorf("mercer: solve: y has %s, K is %d×%d", count.Of(hy.Rows, "row"), n, n)
	}
	alpha, residual := mat.NewDense(n, t, nil), mat.NewDense(n, t, nil)
	target := mat.NewDense(hy.Rows, t, nil)
	for i := range n {
		for j, v := range hy.Row(i) {
			if v-v != 0 {
				return nil, fmt.Errorf("mercer: solve: y: row %d, column %d is %v", i+1, j+1, v)
			}
		}
		target.SetRow(i, hy.Row(i))
	}
	s := symmetricOf(k)
	maxRatio := math.Inf(1)
	for range 3 {
		// residual holds y − (K + λI)α.
		residual.Copy(target)
		a, l := alpha.RawMatrix(), residual.RawMatrix()
		cpu.BLAS{}.Dsymm(blas.Left, blas.Upper, n, t, -1, s.Data, s.Stride, a.Data, a.Stride, 1, l.Data, l.Stride)
		cpu.BLAS{}.Daxpy(n*t, -lambda, a.Data, 1, l.Data, 1)
		if maxRatio = relative(residual, target); maxRatio <= tolerance/1e4 || math.IsNaN(maxRatio) {
			break
		}
		if err := f.SolveTo(ctx, residual, residual); err != nil {
			return nil, err
		}
		alpha.Add(alpha, residual)
	}
	if !(maxRatio <= tolerance) {
		return nil, fmt.Errorf("mercer: solve: the relative residual stays at %.1e, above %.0e: K + λI is close to singular: raise lambda, which is %v", maxRatio, tolerance, lambda)
	}
	return alpha, nil
}

// relative returns the largest ‖r_j‖/‖y_j‖ over the columns j with y_j ≠ 0, or 0 if y = 0.
func relative(r, y *mat.Dense) float64 {
	_, t := r.Dims()
	maxRatio := 0.0
	for j := range t {
		if size := mat.Norm(y.ColView(j), 2); size > 0 {
			maxRatio = max(maxRatio, mat.Norm(r.ColView(j), 2)/size)
		}
	}
	return maxRatio
}

// symmetricOf returns the upper triangle of k. It does not copy a *mat.SymDense.
func symmetricOf(k mat.Symmetric) blas64.Symmetric {
	if d, ok := k.(*mat.SymDense); ok {
		return d.RawSymmetric()
	}
	dense := mat.NewSymDense(k.SymmetricDim(), nil)
	dense.CopySym(k)
	return dense.RawSymmetric()
}

// SolveKernel solves (K + λI)α = y with K = k(X, X) for n×d samples, to a relative residual of
// 1e-8. It selects the cheapest method that fits in memory; some methods do not store K. The result
// holds α, the residual and the method. With o.Weights the equation is (K + λW⁻¹)α = y, where W is
// the diagonal matrix of the weights. For several λ, or another tolerance, see package solvers.
func SolveKernel(ctx context.Context, k kernels.Kernel, lambda float64, x, y mat.Matrix, o Options) (*solvers.Result, error) {
	if err := o.checkUnused("solve", "Weights", "Memory", "Progress", "Checkpoint"); err != nil {
		return nil, err
	}
	dev, err := o.device()
	if err != nil {
		return nil, err
	}
	points, hy, err := samples("solve", x, y)
	if err != nil {
		return nil, err
	}
	return solvers.Solve(ctx, dev, solvers.Problem{Kernel: k, Lambda: lambda, X: points.Dense, Sparse: points.Sparse, Y: hy, Weights: o.Weights},
		solvers.Params{Memory: o.Memory, Progress: o.Progress, Checkpoint: o.Checkpoint})
}

// Factor is a Cholesky factor of K + λI for repeated solves, updated in O(n²) when a sample is
// added or removed. It has the methods of solvers.Cholesky, and SolveTo and SolveVecTo for gonum
// matrices. After Close each method that can fail returns ErrClosed.
type Factor struct {
	*solvers.Cholesky
	cleanup runtime.Cleanup
}

// NewFactor factors K + λI for a symmetric matrix K, which it does not change. It takes n³/3 operations and memory for
// n²/2 elements. The memory is released by Close or when the factor is garbage collected. Only o.Device is used.
func NewFactor(ctx context.Context, k mat.Symmetric, lambda float64, o Options) (*Factor, error) {
	if err := o.checkUnused("factor"); err != nil {
		return nil, err
	}
	if d, ok := k.(*mat.SymDense); k == nil || ok && d == nil {
		return nil, errors.New("mercer: factor: k is missing")
	}
	dev, err := o.device()
	if err != nil {
		return nil, err
	}
	row := func(i int, dst []float64) {
		for j := range dst {
			dst[j] = k.At(i, j)
		}
	}
	if d, ok := k.(*mat.SymDense); ok && d.SymmetricDim() > 0 {
		s := d.RawSymmetric()
		row = func(i int, dst []float64) {
			for j := range dst {
				dst[j] = s.Data[j*s.Stride+i]
			}
		}
	}
	return newFactor(solvers.NewCholesky(ctx, dev, k.SymmetricDim(), row, lambda))
}

// NewKernelFactor factors k(X, X) + λI for n×d samples in n²d + n³/3 operations, and keeps a copy of the samples. A
// backend.CSR stays sparse, so that the n² kernel values take fewer operations. Only o.Device is used.
func NewKernelFactor(ctx context.Context, k kernels.Kernel, lambda float64, x mat.Matrix, o Options) (*Factor, error) {
	if err := o.checkUnused("factor"); err != nil {
		return nil, err
	}
	dev, err := o.device()
	if err != nil {
		return nil, err
	}
	points, err := pointsOf("x", x)
	if err != nil {
		return nil, fmt.Errorf("mercer: factor: %w", err)
	}
	return newFactor(solvers.NewKernelCholesky(ctx, dev, k, points.Matrix(), lambda))
}

func newFactor(c *solvers.Cholesky, err error) (*Factor, error) {
	if err != nil {
		return nil, err
	}
	f := &Factor{Cholesky: c}
	f.cleanup = runtime.AddCleanup(f, func(c *solvers.Cholesky) { c.Close() }, c)
	return f, nil
}

// Close waits for running methods and releases the device memory.
func (f *Factor) Close() {
	if f == nil {
		return
	}
	f.cleanup.Stop()
	f.Cholesky.Close()
}

// SolveTo sets dst to (K + λI)⁻¹b. An empty dst gets the shape of b; dst may be b.
func (f *Factor) SolveTo(ctx context.Context, dst *mat.Dense, b mat.Matrix) error {
	h, err := gonum.Host("b", b)
	if err != nil {
		return fmt.Errorf("mercer: solve: %w", err)
	}
	if dst == nil {
		return errors.New("mercer: solve: dst is missing")
	}
	if dst.IsEmpty() {
		dst.ReuseAs(h.Rows, h.Cols)
	}
	if f == nil {
		f = &Factor{} // Solve of a zero Factor returns an error
	}
	r := dst.RawMatrix()
	return f.Solve(ctx, backend.Host[float64]{Rows: r.Rows, Cols: r.Cols, Stride: r.Stride, Data: r.Data}, h)
}

// SolveVecTo sets dst to (K + λI)⁻¹b for a vector b, as SolveTo does for a matrix.
func (f *Factor) SolveVecTo(ctx context.Context, dst *mat.VecDense, b mat.Vector) error {
	h, err := gonum.Host("b", b)
	if err != nil {
		return fmt.Errorf("mercer: solve: %w", err)
	}
	if dst == nil {
		return errors.New("mercer: solve: dst is missing")
	}
	if dst.IsEmpty() {
		dst.ReuseAsVec(h.Rows)
	}
	if f == nil {
		f = &Factor{}
	}
	r := dst.RawVector()
	return f.Solve(ctx, backend.Host[float64]{Rows: r.N, Cols: 1, Stride: r.Inc, Data: r.Data}, h)
}

package lsq

import (
	"context"
	"errors"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
)

// choleskyCondition is the maximum condition number κ of the triangular factor for which the normal equations are
// solved by Cholesky. With one step of refinement the relative error is about εκ²·εκ, below the error εκ of QR.
const choleskyCondition = 1e4

// Solution is the solution of a least-squares problem.
type Solution struct {
	Method       string
	Coef         backend.Host[float64] // the weights, d×t
	Intercept    []float64
	Condition    float64   // condition number of X with columns scaled to norm 1
	Rank         int       // rank of X with columns scaled to norm 1
	Squares      []float64 // ‖y − Xw‖² of each output
	ForwardError float64   // bound on the relative rounding error of w, over all outputs
	Iters        int       // iterations of LSQR, the largest number over the outputs
	Warning      string    // the warning for an output for which LSQR has not converged, or ""
}

// LeastSquaresBytes returns the memory of LeastSquares for n rows, in bytes. With fewer rows than columns it
// counts the memory of QR only.
func (c *Samples) LeastSquaresBytes(n int) int64 {
	if c.sparse != nil {
		return c.sparseBytes(n)
	}
	if c.n < c.d {
		return max(c.qrBytes(n), 8*int64(min(n, c.blockRows()))*int64(c.d+c.t)) + 24*int64(c.d)*int64(c.t)
	}
	return max(c.qrBytes(n), c.momentBytes(n)+24*int64(c.d)*int64(c.t))
}

// LeastSquares minimizes Σ w_i (y_i − wᵀx_i − b)² by Cholesky with a step of refinement, or by QR if the normal
// equations are too ill-conditioned. If the minimum is not unique, it returns the solution of minimum norm. For
// sparse samples it uses LSQR, and Condition, Rank, Squares and ForwardError are not set.
func (c *Samples) LeastSquares(t *run.Task) (*Solution, error) {
	if c.sparse != nil {
		return c.lsqr(t)
	}
	s := &Solution{Method: "Cholesky of the normal equations", Rank: c.d}
	solved, err := false, error(nil)
	if c.n >= c.d {
		if solved, err = c.cholesky(t, s); err != nil {
			return nil, err
		}
	}
	if !solved {
		s.Method = "QR"
		if err := c.qr(t, s); err != nil {
			return nil, err
		}
	}
	if s.Squares, _, err = c.residual(t, s.Coef); err != nil {
		return nil, err
	}
	s.Intercept = c.intercepts(s.Coef)
	s.ForwardError, err = c.forwardError(t.Ctx, s, s.Squares)
	return s, err
}

// cholesky solves the normal equations with columns scaled to norm 1. It returns false if the
// equations are too ill-conditioned or overflow.
func (c *Samples) cholesky(t *run.Task, s *Solution) (bool, error) {
	m, err := c.moments(t)
	if errors.Is(err, errOverflow) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	scale := make([]float64, c.d)
	for p := range scale {
		v := m.g.Row(p)[p]
		if v < math.SmallestNonzeroFloat64/epsilon { // the column is constant, or its square underflows
			return false, nil
		}
		scale[p] = 1 / math.Sqrt(v)
	}
	for p := range scale {
		for q, v := range m.g.Row(p) {
			m.g.Row(p)[q] = v * scale[p] * scale[q]
		}
	}
	a, err := backend.Copy(t.B, m.g)
	if err != nil {
		return false, err
	}
	defer a.Free()
	if err := t.B.Potrf(backend.Lower, a); err != nil {
		if errors.Is(err, backend.ErrNotPosDef) {
			err = nil
		}
		return false, err
	}
	if err := t.B.Download(m.g, a); err != nil {
		return false, err
	}
	s.Condition = condition(m.g)
	if !(s.Condition <= choleskyCondition) {
		return false, nil
	}
	s.Coef = backend.NewHost[float64](c.d, c.t)
	rhs := backend.NewHost[float64](c.d, c.t)
	for p := range c.d {
		for j := range c.t {
			rhs.Row(p)[j] = m.c.Row(j)[p]
		}
	}
	for range 2 { // the second pass refines w with the residual computed from X
		for p, v := range scale {
			for j := range c.t {
				rhs.Row(p)[j] *= v
			}
		}
		step, err := backend.Copy(t.B, rhs)
		if err != nil {
			return false, err
		}
		t.B.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, a, step)
		t.B.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, a, step)
		err = t.B.Download(rhs, step)
		step.Free()
		if err != nil {
			return false, err
		}
		for p, v := range scale {
			for j := range c.t {
				s.Coef.Row(p)[j] += v * rhs.Row(p)[j]
			}
		}
		if _, rhs, err = c.residual(t, s.Coef); err != nil {
			return false, err
		}
	}
	return true, nil
}

// residual returns ‖y − Xw‖² of each output and Xᵀ(y − Xw).
func (c *Samples) residual(t *run.Task, coef backend.Host[float64]) (squares []float64, gradient backend.Host[float64], err error) {
	gradient = backend.NewHost[float64](c.d, c.t)
	w, err := backend.Copy(t.B, coef)
	if err != nil {
		return nil, gradient, err
	}
	defer w.Free()
	g, err := t.B.New(c.d, c.t)
	if err != nil {
		return nil, gradient, err
	}
	defer g.Free()
	squares = make([]float64, c.t)
	blockSquares := make([]float64, c.t)
	err = c.eachBlock(t.Ctx, t.B, true, func(x, y backend.Matrix[float64], _ int) error {
		t.B.Gemm(backend.NoTrans, backend.NoTrans, -1, x, w, 1, y)
		t.B.Gemm(backend.Transpose, backend.NoTrans, 1, x, y, 1, g)
		if err := t.B.ColDot(blockSquares, y, y); err != nil {
			return err
		}
		for j, v := range blockSquares {
			squares[j] += v
		}
		return nil
	})
	if err == nil {
		err = t.B.Download(gradient, g)
	}
	return squares, gradient, err
}

// forwardError returns the largest bound over the outputs on the relative rounding error of w. It
// computes ‖Xw‖² as ‖y‖² − ‖y − Xw‖², since the residual is orthogonal to Xw.
func (c *Samples) forwardError(ctx context.Context, s *Solution, squares []float64) (float64, error) {
	norms, err := c.norms(ctx, c.t, c.fillY)
	if err != nil {
		return 0, err
	}
	largest := 0.0
	for j, total := range norms {
		residual := math.Sqrt(squares[j])
		fitted := math.Sqrt(max((total-residual)*(total+residual), 0))
		if total == 0 || s.Rank == 0 {
			continue // w = 0 has no rounding error
		}
		largest = max(largest, epsilon*(2*s.Condition+s.Condition*s.Condition*residual/fitted)*total/fitted)
	}
	return largest, nil
}

package adjoint

import (
	"context"
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/run"
)

// Factor sets dst to the Cholesky factor L of K + λI = LLᵀ, with zeros above its diagonal, in n³/3 operations. It
// reads only the lower triangle of the symmetric n×n matrix K. dst may be K itself. If K + λI is not positive
// definite, it returns an error that matches backend.ErrNotPosDef and suggests a larger λ.
func Factor(ctx context.Context, dev backend.Device, k host, lambda float64, dst host) error {
	return wrapError("factor", factor(ctx, dev, k, lambda, dst))
}

func factor(ctx context.Context, dev backend.Device, k host, lambda float64, dst host) error {
	if err := checkMatrix("k", k); err != nil {
		return err
	}
	if k.Rows != k.Cols || dst.Rows != k.Rows || dst.Cols != k.Rows {
		return fmt.Errorf("k is %d×%d and dst is %d×%d: both must be square and have the same size", k.Rows, k.Cols, dst.Rows, dst.Cols)
	}
	if err := checkLambda(lambda); err != nil {
		return err
	}
	w, err := newWork(ctx, dev)
	if err != nil {
		return err
	}
	defer w.Mem.FreeAll()
	for i := range k.Rows {
		row := dst.Row(i)
		copy(row[:i+1], k.Row(i)[:i+1])
		clear(row[i+1:])
	}
	out, err := w.buffer(dst)
	if err != nil {
		return err
	}
	if err := out.upload(); err != nil {
		return err
	}
	w.B.AddDiag([]float64{lambda}, out.m)
	if err := w.B.Potrf(backend.Lower, out.m); err != nil {
		return explain(err, lambda)
	}
	return out.download()
}

// explain adds advice to the error for a matrix that is not positive definite.
func explain(err error, lambda float64) error {
	if errors.Is(err, backend.ErrNotPosDef) {
		return message.Errorf("the matrix K + λI is not positive definite for lambda = %v: {raise $lambda|give a positive definite kernel}: %w", lambda, err)
	}
	return err
}

// Solve sets dst to (LLᵀ)⁻¹y for an n×n lower triangular L and n×t right-hand sides y, in 2n²t
// operations. dst may be y itself.
func Solve(ctx context.Context, dev backend.Device, l, y, dst host) error {
	return wrapError("solve", solve(ctx, dev, l, y, dst))
}

func solve(ctx context.Context, dev backend.Device, l, y, dst host) error {
	if err := checkRows("y", y, l.Rows, "the factor"); err != nil {
		return err
	}
	if l.Rows != l.Cols || dst.Rows != y.Rows || dst.Cols != y.Cols {
		return fmt.Errorf("the factor is %d×%d, y is %d×%d and dst is %d×%d: the factor must be square, and y and dst must have the same shape", l.Rows, l.Cols, y.Rows, y.Cols, dst.Rows, dst.Cols)
	}
	w, err := newWork(ctx, dev)
	if err != nil {
		return err
	}
	defer w.Mem.FreeAll()
	ml, err := w.Mem.Place(l)
	if err != nil {
		return err
	}
	return w.solve(ml, y, dst)
}

// solve implements Solve for a factor l that is on the device.
func (w *work) solve(l matrix, y, dst host) error {
	for i := range y.Rows {
		copy(dst.Row(i), y.Row(i))
	}
	out, err := w.buffer(dst)
	if err != nil {
		return err
	}
	if err := out.upload(); err != nil {
		return err
	}
	w.B.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, l, out.m)
	w.B.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, l, out.m)
	return out.download()
}

// SolveGradient returns the gradients of a loss with respect to K and λ, given α = (K + λI)⁻¹y and
// u = (K + λI)⁻¹∂loss/∂α, both n×t; u is also the gradient with respect to y. The gradient with
// respect to the symmetric K is −½(uαᵀ + αuᵀ).
func SolveGradient(alpha, u host) (byK host, byLambda float64, err error) {
	if err := checkRows("u", u, alpha.Rows, "alpha"); err != nil {
		return host{}, 0, wrapError("gradient of a solve", err)
	}
	if u.Cols != alpha.Cols {
		return host{}, 0, wrapError("gradient of a solve", fmt.Errorf("u has %s, alpha has %d", count.Of(u.Cols, "column"), alpha.Cols))
	}
	n := alpha.Rows
	byK = backend.NewHost[float64](n, n)
	run.Parallel(n, func(first, last int) {
		for i := first; i < last; i++ {
			row, ui, ai := byK.Row(i), u.Row(i), alpha.Row(i)
			for j := range row {
				uj, aj := u.Row(j), alpha.Row(j)
				for t, v := range ui {
					row[j] -= (v*aj[t] + ai[t]*uj[t]) / 2
				}
			}
		}
	})
	return byK, lambdaGradient(alpha, u), nil
}

func lambdaGradient(alpha, u host) float64 {
	sum := 0.0
	for i := range u.Rows {
		a := alpha.Row(i)
		for t, v := range u.Row(i) {
			sum -= v * a[t]
		}
	}
	return sum
}

package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Cholesky is the factor L of A = K + λI = LLᵀ, kept on a device in packed
// storage where it has that, for right-hand sides that come one after the other
// and for samples that come and go.
//
// Solve and the methods that only look may be called by several goroutines at
// once; Append, Remove and Close wait until those have ended. An error of Append or
// Remove leaves the factor as it was. After Close, and of the zero value, every method that
// can fail returns ErrClosed.
type Cholesky struct {
	dev    backend.Device
	lambda float64
	kernel kernels.Kernel // nil for a matrix that was given

	mu     sync.RWMutex
	l      numeric.Symmetric[float64] // capacity × capacity, of which the leading n rows are in use
	n, cap int
	points backend.Host[float64] // X, n×d, with a kernel
}

// ErrClosed is that of a Cholesky after Close.
var ErrClosed = run.ErrClosed

// check returns the error of a factor that has no L; f.mu is held.
func (f *Cholesky) check(what string) error {
	if f.l == nil {
		return fmt.Errorf("solvers: %s: the factor %w", what, ErrClosed)
	}
	return nil
}

// NewCholesky factors K + λI for a symmetric n×n matrix K of which row sets dst to
// the i+1 elements of row i up to the diagonal, i = 0, 1, …: n³/3 operations. n
// may be 0.
//
// A matrix that is not positive definite to working precision gives an error
// that wraps *backend.PivotError, one that does not fit *backend.MemoryError.
func NewCholesky(ctx context.Context, dev backend.Device, n int, row func(i int, dst []float64), lambda float64) (*Cholesky, error) {
	return newCholesky(ctx, dev, nil, lambda, n, func(a numeric.Symmetric[float64]) error {
		for first := 0; first < n; first += moveRows {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			h := backend.NewHost[float64](min(moveRows, n-first), min(first+moveRows, n))
			for r := range h.Rows {
				dst := h.Row(r)[:first+r+1]
				row(first+r, dst)
				for j, v := range dst {
					if v-v != 0 {
						return fmt.Errorf("row %d, column %d is %v", first+r+1, j+1, v)
					}
				}
			}
			if err := a.Upload(first, h); err != nil {
				return err
			}
		}
		return nil
	})
}

// NewKernelCholesky factors k(X, X) + λI for the rows of X, n×d with n > 0: n²d +
// n³/3 operations. It keeps a copy of X. Errors are those of NewCholesky.
func NewKernelCholesky(ctx context.Context, dev backend.Device, k kernels.Kernel, x backend.Host[float64], lambda float64) (*Cholesky, error) {
	p := Problem{Kernel: k, X: x, Y: x, Lambda: lambda}
	if err := p.checkShapes(); err != nil {
		return nil, err
	}
	if err := p.checkValues(ctx); err != nil {
		return nil, err
	}
	points := backend.Host[float64]{Rows: x.Rows, Cols: x.Cols, Stride: x.Cols, Data: make([]float64, 0, x.Rows*x.Cols)}
	for i := range x.Rows {
		points.Data = append(points.Data, x.Row(i)...)
	}
	f, err := newCholesky(ctx, dev, k, lambda, x.Rows, func(a numeric.Symmetric[float64]) error {
		place, err := backend.Place(dev.F64(), points)
		if err != nil {
			return err
		}
		defer place.Free()
		a.Gram(k, place)
		return dev.Sync()
	})
	if err != nil {
		return nil, err
	}
	f.points = points
	return f, nil
}

func newCholesky(ctx context.Context, dev backend.Device, k kernels.Kernel, lambda float64, n int, fill func(a numeric.Symmetric[float64]) error) (*Cholesky, error) {
	if !(lambda >= 0) || math.IsInf(lambda, 1) {
		return nil, fmt.Errorf("solvers: lambda must be a finite number ≥ 0, got %v", lambda)
	}
	if ctx.Err() != nil {
		return nil, fmt.Errorf("solvers: factor: %w", context.Cause(ctx))
	}
	f := &Cholesky{dev: dev, lambda: lambda, kernel: k, n: n, cap: n}
	l, err := numeric.NewSymmetric(run.NewArena(dev, nil), dev.F64().With(ctx, nil), n)
	if err != nil {
		return nil, fmt.Errorf("solvers: factor: %w", err)
	}
	largest := 0.0
	err = fill(l)
	if err == nil {
		l.AddDiag([]float64{lambda})
		largest, err = factorOf(l)
	}
	if err != nil {
		l.Free()
		return nil, f.failed("factor", err, largest)
	}
	f.l = l.On(dev.F64())
	return f, nil
}

// factorOf factors a, whose diagonal elements are ≤ largest, and refuses pivots
// that are rounding only.
func factorOf(a numeric.Symmetric[float64]) (largest float64, err error) {
	before, err := a.Diagonal()
	if err != nil {
		return 0, err
	}
	for _, v := range before {
		largest = max(largest, v)
	}
	if err := a.Factor(false); err != nil {
		return largest, err
	}
	after, err := a.Diagonal()
	if err != nil {
		return largest, err
	}
	return largest, numeric.RoundedPivot(after, before)
}

// failed says what helps against a matrix that is not positive definite, whose
// diagonal elements are ≤ largest.
func (f *Cholesky) failed(what string, err error, largest float64) error {
	var pivot *backend.PivotError
	switch {
	case errors.As(err, &pivot) && numeric.Overflowed(pivot):
		return fmt.Errorf("solvers: %s: K + λI is not finite: scale it down: %w", what, err)
	case errors.As(err, &pivot) && numeric.Indefinite(pivot.Value, largest):
		return fmt.Errorf("solvers: %s: K + λI is not positive definite for lambda = %v: %s: %w", what, f.lambda, numeric.IndefiniteAdvice(f.kernel), err)
	case pivot != nil:
		return message.Errorf("solvers: %s: K + λI is not positive definite to working precision for lambda = %v: {raise $lambda|remove samples that repeat others}: %w", what, f.lambda, err)
	}
	return fmt.Errorf("solvers: %s: %w", what, err)
}

// Order returns n.
func (f *Cholesky) Order() int {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.n
}

// Lambda returns λ.
func (f *Cholesky) Lambda() float64 { return f.lambda }

// Points returns a copy of X, n×d; it has no rows where a matrix was given.
func (f *Cholesky) Points() backend.Host[float64] {
	f.mu.RLock()
	defer f.mu.RUnlock()
	x := f.points
	x.Data = append([]float64(nil), x.Data...)
	return x
}

// LogDet returns log det(K + λI), 0 for n = 0.
func (f *Cholesky) LogDet() (float64, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if err := f.check("log determinant"); err != nil {
		return 0, err
	}
	if f.n == 0 {
		return 0, nil
	}
	d, err := f.l.Leading(f.n).Diagonal()
	if err != nil {
		return 0, fmt.Errorf("solvers: log determinant: %w", err)
	}
	sum := 0.0
	for _, v := range d {
		sum += math.Log(v)
	}
	return 2 * sum, nil
}

// Solve sets dst to (K + λI)⁻¹B for n×t right-hand sides: 2n²t operations. dst
// may be b. Its relative backward error is a small multiple of n·2⁻⁵³ (Higham
// 2002, theorem 10.4).
func (f *Cholesky) Solve(ctx context.Context, dst, b backend.Host[float64]) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if err := f.check("solve"); err != nil {
		return err
	}
	if b.Rows != f.n || dst.Rows != b.Rows || dst.Cols != b.Cols {
		return fmt.Errorf("solvers: solve: the factor has order %d, b is %d×%d and dst %d×%d: they do not fit", f.n, b.Rows, b.Cols, dst.Rows, dst.Cols)
	}
	if f.n == 0 || b.Cols == 0 {
		return nil
	}
	if err := f.solve(ctx, dst, b, func(l numeric.Symmetric[float64], m backend.Matrix[float64]) { l.Solve(m) }); err != nil {
		return fmt.Errorf("solvers: solve: %w", err)
	}
	return nil
}

// solve sets dst to what queue makes of b with the leading part of the factor.
func (f *Cholesky) solve(ctx context.Context, dst, b backend.Host[float64], queue func(l numeric.Symmetric[float64], m backend.Matrix[float64])) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	q := f.dev.F64().With(ctx, nil)
	m, err := q.New(b.Rows, b.Cols)
	if err != nil {
		return err
	}
	defer m.Free()
	if err := q.Upload(m, b); err != nil {
		return err
	}
	queue(f.l.On(q).Leading(f.n), m)
	return q.Download(dst, m)
}

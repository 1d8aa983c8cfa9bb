package handles

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// Factor is the Cholesky factor of K + λI in float64, stored on the device for many
// right-hand sides. It takes n²/2 elements if the device has packed storage and n²
// otherwise, plus a copy of the points or of the given K. Samples can be added and removed.
type Factor struct {
	*refCount
	device *Device
	kernel kernels.Kernel // nil if K was given
	lambda float64
	factor *solvers.Cholesky

	mu   sync.RWMutex // locked for writing while factor and gram change
	gram givenMatrix
}

// NewFactor factors K + λI, with K as in Solve. The cost is O(n²d + n³). If the matrix is not
// positive definite to working precision, the error matches backend.ErrNotPosDef.
func NewFactor(ctx context.Context, d *Device, kernel string, lambda float64, x Matrix) (*Factor, error) {
	f := &Factor{device: d, lambda: lambda}
	k, err := kernels.Kernel(kernels.Precomputed{}), error(nil)
	if kernel != "" {
		if k, err = kernels.Parse(kernel); err != nil {
			return nil, err
		}
	}
	isGram, err := kernels.IsPrecomputed(k)
	if err != nil {
		return nil, err
	}
	var points numeric.Points
	if isGram {
		var values backend.Host[float64]
		if values, err = x.host("x"); err == nil {
			f.gram, err = newGiven(values)
		}
	} else {
		f.kernel = k
		points, _, err = x.points(k)
	}
	if err != nil {
		return nil, err
	}
	if err := d.acquire(); err != nil { // the device stays open until the factor is freed
		return nil, err
	}
	if f.kernel == nil {
		f.factor, err = solvers.NewCholesky(ctx, d.dev, f.gram.n, f.gram.copyRow, lambda)
	} else {
		f.factor, err = solvers.NewKernelCholesky(ctx, d.dev, f.kernel, points.Matrix(), lambda)
	}
	if err != nil {
		d.release()
		return nil, err
	}
	f.refCount = newRefCount(func() {
		f.factor.Close()
		d.release()
	})
	return f, nil
}

// Free releases the memory when no call uses the factor.
func (f *Factor) Free() error { return f.free() }

// Solve writes α = (K + λI)⁻¹y, n×t, to out with 2n²t operations. If residual is true, it also
// evaluates the kernel again and returns the largest ‖(K + λI)α − y‖/‖y‖ over the columns.
func (f *Factor) Solve(ctx context.Context, y Matrix, out []float64, residual bool) (float64, error) {
	if err := f.acquire(); err != nil {
		return 0, err
	}
	defer f.release()
	f.mu.RLock()
	defer f.mu.RUnlock()
	h, err := y.host("y")
	if err != nil {
		return 0, err
	}
	if n := f.factor.Order(); h.Rows != n || h.Cols == 0 || len(out) != n*h.Cols {
		return 0, fmt.Errorf("libmercer: factor: y is %d×%d and the result has %s, but the factor has order %d", h.Rows, h.Cols, count.Of(len(out), "number"), n)
	}
	if err := checkFinite("y", h); err != nil {
		return 0, err
	}
	alpha := backend.Host[float64]{Rows: h.Rows, Cols: h.Cols, Stride: h.Cols, Data: out}
	if err := f.factor.Solve(ctx, alpha, h); err != nil || !residual {
		return 0, err
	}
	return f.residual(f.device.dev.F64().With(ctx, nil), alpha, h)
}

// Append adds a sample. If the factor has a kernel, values is the point, d numbers. Otherwise it is
// the new row of K, n+1 numbers with the diagonal element last. The cost is O(nd + n²).
func (f *Factor) Append(ctx context.Context, values []float64) error {
	if err := f.acquire(); err != nil {
		return err
	}
	defer f.release()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kernel != nil {
		return f.factor.AppendPoint(ctx, values)
	}
	err := f.factor.Append(ctx, values)
	if err == nil {
		f.gram.append(values)
	}
	return err
}

// Remove removes sample i, counted from 0; the indices of later samples decrease by one. The cost is O(n²).
func (f *Factor) Remove(ctx context.Context, i int) error {
	if err := f.acquire(); err != nil {
		return err
	}
	defer f.release()
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.factor.Remove(ctx, i)
	if err == nil && f.kernel == nil {
		f.gram.remove(i)
	}
	return err
}

// residual returns the largest ‖(K + λI)α − y‖/‖y‖ over the columns, where 0/0 counts as 0.
func (f *Factor) residual(b backend.Backend[float64], alpha, y backend.Host[float64]) (float64, error) {
	base := f.device.dev.F64()
	a, err := backend.Place(base, alpha)
	if err != nil {
		return 0, err
	}
	defer a.Free()
	x := numeric.DensePoints(f.gram.host())
	if f.kernel != nil {
		if x, err = numeric.PointsOf(f.factor.Points()); err != nil {
			return 0, err
		}
	}
	points, err := x.Place(base)
	if err != nil {
		return 0, err
	}
	defer points.Free()
	r, err := b.New(y.Rows, 2*y.Cols)
	if err != nil {
		return 0, err
	}
	defer r.Free()
	residual, want := r.View(0, 0, y.Rows, y.Cols), r.View(0, y.Cols, y.Rows, y.Cols)
	if f.kernel != nil {
		b.GramMul(residual, f.kernel, points, points, a)
	} else {
		b.Gemm(backend.NoTrans, backend.NoTrans, 1, points, a, 0, residual)
	}
	b.ColAxpy(repeated(f.lambda, y.Cols), a, residual)
	if err := b.Upload(want, y); err != nil {
		return 0, err
	}
	b.ColAxpy(repeated(-1, y.Cols), want, residual)
	residualSquares, size := make([]float64, y.Cols), make([]float64, y.Cols)
	if err := b.ColDot(residualSquares, residual, residual); err != nil {
		return 0, err
	}
	if err := b.ColDot(size, want, want); err != nil {
		return 0, err
	}
	largest := 0.0
	for j, s := range residualSquares {
		if s > 0 {
			largest = max(largest, math.Sqrt(s/size[j]))
		}
	}
	return largest, nil
}

func repeated(v float64, n int) []float64 {
	s := make([]float64, n)
	for j := range s {
		s[j] = v
	}
	return s
}

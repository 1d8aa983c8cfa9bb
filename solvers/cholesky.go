package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Cholesky is the factor L of A = K + λI = LLᵀ on a device, in packed storage if the device supports it. It solves
// for any number of right-hand sides. Append and Remove update it when a sample is added or removed.
//
// Several goroutines may call the methods at the same time; Append, Remove and Close wait for
// running methods. If Append or Remove returns an error, the factor is unchanged. After Close, and
// on the zero value or a nil pointer, every method that can fail returns ErrClosed.
type Cholesky struct {
	dev    backend.Device
	lambda float64
	kernel kernels.Kernel // nil if the matrix was given

	mu     sync.RWMutex
	l      numeric.Symmetric[float64] // capacity × capacity; the factor is the leading n×n part
	n, cap int
	points numeric.Points // X, n×d; empty for a factor of a given matrix
}

// ErrClosed is the error of the methods of a Cholesky, a Path or a learners.Predictor that is closed, nil or zero.
var ErrClosed = run.ErrClosed

// lock locks the factor for reading or writing and returns a function that unlocks it. A closed factor is an error.
func (f *Cholesky) lock(operation string, write bool) (unlock func(), err error) {
	errClosed := fmt.Errorf("solvers: %s: the factor %w", operation, ErrClosed)
	if f == nil {
		return nil, errClosed
	}
	mu := f.mu.RLocker()
	if write {
		mu = &f.mu
	}
	mu.Lock()
	if f.l == nil {
		mu.Unlock()
		return nil, errClosed
	}
	return mu.Unlock, nil
}

// NewCholesky factors K + λI for a symmetric n×n matrix K in n³/3 operations. row sets dst to the
// i+1 elements of row i up to the diagonal, for i = 0, 1, …; n may be 0.
//
// If the matrix is not positive definite to working precision, the error wraps *backend.PivotError;
// if the factor does not fit in memory, the error wraps *backend.MemoryError.
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

// NewKernelCholesky factors k(X, X) + λI for the rows of X, n×d with n > 0. It takes n²d + n³/3 operations for a
// dense X. It keeps a copy of X, which is sparse if X is a backend.CSR. Its errors are those of NewCholesky.
func NewKernelCholesky(ctx context.Context, dev backend.Device, k kernels.Kernel, x backend.Points, lambda float64) (*Cholesky, error) {
	points, err := numeric.PointsOf(x)
	if err != nil {
		return nil, fmt.Errorf("solvers: x: %w", err)
	}
	p := Problem{Kernel: k, X: points.Dense, Sparse: points.Sparse, Y: backend.NewHost[float64](points.Rows, 1), Lambda: lambda}
	if err := p.checkShapes(); err != nil {
		return nil, err
	}
	if err := p.checkValues(); err != nil {
		return nil, err
	}
	points = points.Without(-1)
	f, err := newCholesky(ctx, dev, k, lambda, points.Rows, func(a numeric.Symmetric[float64]) error {
		placed, err := points.Place(dev.F64())
		if err != nil {
			return err
		}
		defer placed.Free()
		a.Gram(k, placed)
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

// factorOf factors a and returns the largest diagonal element of the unfactored matrix. It returns an error if a
// pivot is no larger than its rounding error.
func factorOf(a numeric.Symmetric[float64]) (largest float64, err error) {
	diagonal, err := a.Diagonal()
	if err != nil {
		return 0, err
	}
	for _, v := range diagonal {
		largest = max(largest, v)
	}
	if err := a.Factor(false); err != nil {
		return largest, err
	}
	pivots, err := a.Diagonal()
	if err != nil {
		return largest, err
	}
	return largest, numeric.RoundedPivot(pivots, diagonal)
}

// failed adds advice to the error of a matrix that is not positive definite. largest is its largest diagonal element.
func (f *Cholesky) failed(operation string, err error, largest float64) error {
	var pivot *backend.PivotError
	switch {
	case errors.As(err, &pivot) && numeric.Overflowed(pivot):
		return fmt.Errorf("solvers: %s: K + λI is not finite: scale it down: %w", operation, err)
	case errors.As(err, &pivot) && numeric.Indefinite(pivot.Value, largest):
		return fmt.Errorf("solvers: %s: K + λI is not positive definite for lambda = %v: %s: %w", operation, f.lambda, numeric.IndefiniteAdvice(f.kernel), err)
	case pivot != nil:
		return message.Errorf("solvers: %s: K + λI is not positive definite to working precision for lambda = %v: {raise $lambda|remove samples that repeat others}: %w", operation, f.lambda, err)
	}
	return fmt.Errorf("solvers: %s: %w", operation, err)
}

// Order returns n. It returns 0 for a nil pointer.
func (f *Cholesky) Order() int {
	if f == nil {
		return 0
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.n
}

// Lambda returns λ. It returns 0 for a nil pointer.
func (f *Cholesky) Lambda() float64 {
	if f == nil {
		return 0
	}
	return f.lambda
}

// Points returns a copy of X, n×d: a backend.CSR for sparse samples, otherwise a backend.Host. For
// a factor of a given matrix, the backend.Host has no rows.
func (f *Cholesky) Points() backend.Points {
	if f == nil {
		return backend.Host[float64]{}
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.points.Without(-1).Matrix()
}

// LogDet returns log det(K + λI). It returns 0 for n = 0.
func (f *Cholesky) LogDet() (float64, error) {
	unlock, err := f.lock("log determinant", false)
	if err != nil {
		return 0, err
	}
	defer unlock()
	if f.n == 0 {
		return 0, nil
	}
	d, err := f.l.Leading(f.n).Diagonal()
	if err != nil {
		return 0, fmt.Errorf("solvers: log determinant: %w", err)
	}
	sum := 0.0
	for _, v := range d {
		sum += elementary.Log(v)
	}
	return 2 * sum, nil
}

// Solve sets dst to (K + λI)⁻¹B for n×t right-hand sides B in 2n²t operations. dst may be b. The relative backward
// error is a small multiple of n·2⁻⁵³ (Higham 2002, theorem 10.4).
func (f *Cholesky) Solve(ctx context.Context, dst, b backend.Host[float64]) error {
	unlock, err := f.lock("solve", false)
	if err != nil {
		return err
	}
	defer unlock()
	if b.Rows != f.n || dst.Rows != b.Rows || dst.Cols != b.Cols {
		return fmt.Errorf("solvers: solve: the factor has order %d, b is %d×%d and dst %d×%d: the shapes do not match", f.n, b.Rows, b.Cols, dst.Rows, dst.Cols)
	}
	if f.n == 0 || b.Cols == 0 {
		return nil
	}
	if err := f.solve(ctx, dst, b, func(l numeric.Symmetric[float64], m backend.Matrix[float64]) { l.Solve(m) }); err != nil {
		return fmt.Errorf("solvers: solve: %w", err)
	}
	return nil
}

// solve copies b to the device as m, calls queue, which overwrites m with the solution, and downloads m to dst.
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

// Append adds a sample to a factor of a given matrix in n² operations. row holds the n+1 elements of the new row of
// K, without λ, up to the diagonal. With a = row[:n] and α = row[n] + λ, the new factor has the row (lᵀ ρ):
//
//	⎡ A  a ⎤   ⎡ L    ⎤ ⎡ Lᵀ l ⎤
//	⎣ aᵀ α ⎦ = ⎣ lᵀ ρ ⎦ ⎣    ρ ⎦,  l = L⁻¹a,  ρ² = α − lᵀl
//
// If ρ² is not positive to working precision, the error wraps *backend.PivotError.
func (f *Cholesky) Append(ctx context.Context, row []float64) error {
	unlock, err := f.lock("append", true)
	if err != nil {
		return err
	}
	defer unlock()
	if f.kernel != nil {
		return fmt.Errorf("solvers: append: the factor stores samples and a kernel: call AppendPoint with the new sample")
	}
	return f.append(ctx, row)
}

// AppendPoint is Append for a factor of a kernel: it adds the sample x, of d features, in nd + n² operations.
func (f *Cholesky) AppendPoint(ctx context.Context, x []float64) error {
	unlock, err := f.lock("append", true)
	if err != nil {
		return err
	}
	defer unlock()
	if f.kernel == nil {
		return fmt.Errorf("solvers: append: the factor of a given matrix stores no samples: call Append with the new row of the matrix")
	}
	if len(x) != f.points.Cols {
		return fmt.Errorf("solvers: append: the sample has %s, but the samples of the factor have %d", count.Of(len(x), "feature"), f.points.Cols)
	}
	point := numeric.Row(x)
	if err := numeric.DensePoints(point).CheckFinite("x"); err != nil {
		return fmt.Errorf("solvers: %w", err)
	}
	if err := backend.CheckPoints(f.kernel, "x", point); err != nil {
		return fmt.Errorf("solvers: append: %w", err)
	}
	extended := f.points.With(x)
	row, err := f.lastRow(ctx, extended)
	if err != nil {
		return fmt.Errorf("solvers: append: %w", err)
	}
	if err := f.append(ctx, row); err != nil {
		return err
	}
	f.points = extended
	return nil
}

func (f *Cholesky) lastRow(ctx context.Context, points numeric.Points) ([]float64, error) {
	q := f.dev.F64().With(ctx, nil)
	z, err := points.Place(f.dev.F64())
	if err != nil {
		return nil, err
	}
	defer z.Free()
	result, err := q.New(1, points.Rows)
	if err != nil {
		return nil, err
	}
	defer result.Free()
	q.Gram(result, f.kernel, z.View(points.Rows-1, 0, 1, points.Cols), z)
	row := make([]float64, points.Rows)
	return row, q.Download(numeric.Row(row), result)
}

func (f *Cholesky) append(ctx context.Context, row []float64) error {
	n := f.n
	if len(row) != n+1 {
		return fmt.Errorf("solvers: append: the row has %s, but it must have %d, because the factor has order %d", count.Of(len(row), "element"), n+1, n)
	}
	for j, v := range row {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("solvers: append: element %d is %v", j+1, v)
		}
	}
	l := append([]float64(nil), row...)
	if n > 0 {
		column := numeric.Column(l[:n])
		if err := f.solve(ctx, column, column, func(g numeric.Symmetric[float64], m backend.Matrix[float64]) { g.Substitute(m) }); err != nil {
			return fmt.Errorf("solvers: append: %w", err)
		}
	}
	square := row[n] + f.lambda
	smallest := numeric.PivotTol(float64(n+1)) * square
	for _, v := range l[:n] {
		square -= v * v
	}
	if !(square > smallest) {
		return f.failed("append", &backend.PivotError{Index: n, Value: square}, row[n]+f.lambda)
	}
	l[n] = math.Sqrt(square)
	if err := f.reserve(n + 1); err != nil {
		return fmt.Errorf("solvers: append: %w", err)
	}
	if err := f.l.Leading(n+1).Upload(n, numeric.Row(l)); err != nil {
		return fmt.Errorf("solvers: append: %w", err)
	}
	f.n++
	return nil
}

// moveRows is the number of rows of a factor that are moved or changed at a time.
const moveRows = 256

func (f *Cholesky) reserve(n int) error {
	if n <= f.cap {
		return nil
	}
	size := max(n, f.cap+f.cap/2, 16)
	l, err := numeric.NewSymmetric(run.NewArena(f.dev, nil), f.dev.F64(), size)
	if err != nil && size > n {
		size = n
		l, err = numeric.NewSymmetric(run.NewArena(f.dev, nil), f.dev.F64(), size)
	}
	if err != nil {
		return err
	}
	for first := 0; first < f.n; first += moveRows {
		rows := min(moveRows, f.n-first)
		h := backend.NewHost[float64](rows, first+rows)
		err := f.l.Leading(f.n).Download(h, first)
		if err == nil {
			err = l.Leading(f.n).Upload(first, h)
		}
		if err != nil {
			l.Free()
			return err
		}
	}
	f.l.Free()
	f.l, f.cap = l, size
	return nil
}

// Remove removes sample i, counted from 0, and the indices of later samples decrease by 1. It takes 3(n−i)² operations
// on the processor, by plane rotations (Gill, Golub, Murray and Saunders 1974, method C1).
func (f *Cholesky) Remove(ctx context.Context, i int) error {
	unlock, err := f.lock("remove", true)
	if err != nil {
		return err
	}
	defer unlock()
	n := f.n
	if i < 0 || i >= n {
		return fmt.Errorf("solvers: remove: no sample has index %d: the factor has order %d", i, n)
	}
	cosines, sines := make([]float64, 0, n-i-1), make([]float64, 0, n-i-1)
	rotated := make([]backend.Host[float64], 0, (n-i)/moveRows+1)
	for first := i + 1; first < n; first += moveRows {
		if ctx.Err() != nil {
			return fmt.Errorf("solvers: remove: %w", context.Cause(ctx))
		}
		rows := min(moveRows, n-first)
		h := backend.NewHost[float64](rows, first+rows)
		if err := f.l.Leading(n).Download(h, first); err != nil {
			return fmt.Errorf("solvers: remove: %w", err)
		}
		for r := range rows {
			row := h.Row(r)[:first+r+1]
			v := row[i]
			copy(row[i:], row[i+1:])
			leading := row[i : len(row)-1] // a row of S up to its diagonal element
			for k, c := range cosines {
				leading[k], v = c*leading[k]+sines[k]*v, c*v-sines[k]*leading[k]
			}
			last := len(leading) - 1
			length := math.Hypot(leading[last], v)
			cosines, sines = append(cosines, leading[last]/length), append(sines, v/length)
			leading[last] = length
		}
		rotated = append(rotated, h)
	}
	// Up to here no element of the factor has changed.
	first := i
	for _, h := range rotated {
		h.Cols = first + h.Rows
		if err := f.l.Leading(n-1).Upload(first, h); err != nil {
			return fmt.Errorf("solvers: remove: %w", err)
		}
		first += h.Rows
	}
	if f.kernel != nil {
		f.points = f.points.Without(i)
	}
	f.n--
	return nil
}

// Close waits for running methods and frees the memory on the device.
func (f *Cholesky) Close() {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.l != nil {
		f.l.Free()
		f.l = nil
	}
}

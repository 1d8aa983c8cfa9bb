package solvers

import (
	"context"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// Append adds a sample to a factor of a matrix that was given: row holds the n+1
// elements of its row of K, the last on the diagonal, without λ. n²
// operations, and n²/2 elements are moved when the memory has to grow, which it
// does by half.
//
//	⎡ A  a ⎤   ⎡ L    ⎤ ⎡ Lᵀ l ⎤
//	⎣ aᵀ α ⎦ = ⎣ lᵀ ρ ⎦ ⎣    ρ ⎦,  l = L⁻¹a,  ρ² = α − lᵀl
//
// When ρ² is not positive to working precision the error wraps
// *backend.PivotError.
func (f *Cholesky) Append(ctx context.Context, row []float64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check("append"); err != nil {
		return err
	}
	if f.kernel != nil {
		return fmt.Errorf("solvers: append: the factor is of a kernel: AppendPoint takes a sample")
	}
	return f.append(ctx, row)
}

// AppendPoint adds the sample x, of d features, to a factor of a kernel: nd + n²
// operations, and otherwise like Append.
func (f *Cholesky) AppendPoint(ctx context.Context, x []float64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check("append"); err != nil {
		return err
	}
	if f.kernel == nil {
		return fmt.Errorf("solvers: append: the factor is of a matrix that was given: Append takes its row")
	}
	if len(x) != f.points.Cols {
		return fmt.Errorf("solvers: append: the sample has %s, the others have %d", count.Of(len(x), "feature"), f.points.Cols)
	}
	point := numeric.Row(x)
	if err := checkFinite(ctx, "x", point); err != nil {
		return err
	}
	if err := backend.CheckPoints(f.kernel, "x", point); err != nil {
		return fmt.Errorf("solvers: append: %w", err)
	}
	// The sample is the last row of X, and its kernel values the last row of a
	// Gram matrix of which nothing else is wanted.
	all := f.points
	all.Rows++
	all.Data = append(all.Data, x...)
	row, err := f.values(ctx, all)
	if err != nil {
		return fmt.Errorf("solvers: append: %w", err)
	}
	if err := f.append(ctx, row); err != nil {
		return err
	}
	f.points = all
	return nil
}

// values returns k(x, x_j) for the last row x of points and all of them.
func (f *Cholesky) values(ctx context.Context, points backend.Host[float64]) ([]float64, error) {
	q := f.dev.F64().With(ctx, nil)
	z, err := backend.Place(f.dev.F64(), points)
	if err != nil {
		return nil, err
	}
	defer z.Free()
	out, err := q.New(1, points.Rows)
	if err != nil {
		return nil, err
	}
	defer out.Free()
	q.Gram(out, f.kernel, z.View(points.Rows-1, 0, 1, points.Cols), z)
	row := make([]float64, points.Rows)
	return row, q.Download(numeric.Row(row), out)
}

func (f *Cholesky) append(ctx context.Context, row []float64) error {
	n := f.n
	if len(row) != n+1 {
		return fmt.Errorf("solvers: append: the row has %s, the factor has order %d: %d are needed", count.Of(len(row), "element"), n, n+1)
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

// moveRows is how many rows of a factor are moved or changed at a time.
const moveRows = 256

// reserve makes room for n rows.
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

// Remove takes sample i, from 0, out of the factor; those behind it move up.
// 3(n−i)² operations on the processor: with S the part of L below and right of
// row i and v what stood left of it in column i, the new part is that of SSᵀ +
// vvᵀ, made by plane rotations (Gill, Golub, Murray, Saunders 1974, method C1;
// they keep the backward error of L).
func (f *Cholesky) Remove(ctx context.Context, i int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.check("remove"); err != nil {
		return err
	}
	n := f.n
	if i < 0 || i >= n {
		return fmt.Errorf("solvers: remove: no sample has index %d: the factor has order %d", i, n)
	}
	cosines, sines := make([]float64, 0, n-i-1), make([]float64, 0, n-i-1)
	below := make([]backend.Host[float64], 0, (n-i)/moveRows+1)
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
			part := row[i : len(row)-1] // the row of S, its diagonal last
			for k, c := range cosines {
				part[k], v = c*part[k]+sines[k]*v, c*v-sines[k]*part[k]
			}
			last := len(part) - 1
			length := math.Hypot(part[last], v)
			cosines, sines = append(cosines, part[last]/length), append(sines, v/length)
			part[last] = length
		}
		below = append(below, h)
	}
	// Only now is anything written.
	first := i
	for _, h := range below {
		h.Cols = first + h.Rows
		if err := f.l.Leading(n-1).Upload(first, h); err != nil {
			return fmt.Errorf("solvers: remove: %w", err)
		}
		first += h.Rows
	}
	if f.kernel != nil {
		d := f.points.Cols
		f.points.Data = append(f.points.Data[:i*d], f.points.Data[(i+1)*d:]...)
		f.points.Rows--
	}
	f.n--
	return nil
}

// Close waits for the methods under way and gives the memory on the device back.
func (f *Cholesky) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.l != nil {
		f.l.Free()
		f.l = nil
	}
}

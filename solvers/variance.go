package solvers

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
)

// Variance returns what a Gaussian process with covariance K + λW⁻¹ does not
// know about its value at each row z of points after it has seen p's samples:
//
//	k(z, z) − k_zᵀ(K + λW⁻¹)⁻¹k_z,  k_z = k(X, z)
//
// without the noise λ of a new target (Rasmussen and Williams 2006, equation
// 2.26). It does not depend on p.Y. n³/3 operations for the factor, and n² for
// each point, block by block. Where rounding makes the difference negative,
// which it cannot be, it is 0: the error of each is about 2⁻⁵² k(z, z) times the
// condition number of K + λW⁻¹ at worst.
func Variance(ctx context.Context, dev backend.Device, p Problem, points backend.Host[float64], limit int64) ([]float64, error) {
	if err := p.checkPoints(points); err != nil {
		return nil, err
	}
	rows := min(points.Rows, evidenceBlock)
	f, err := newCovariance(ctx, dev, "variance", p, limit, func(n, d, _ int) int64 { return numeric.Elements(n+d, rows) }, nil)
	if err != nil {
		return nil, err
	}
	defer f.Mem.FreeAll()
	variance, err := f.variance(points, rows)
	if err != nil {
		return nil, fmt.Errorf("solvers: variance: %w", err)
	}
	return variance, nil
}

func (p Problem) checkPoints(points backend.Host[float64]) error {
	if points.Cols != p.X.Cols {
		return fmt.Errorf("solvers: variance: points have %s, x has %d", count.Of(points.Cols, "column"), p.X.Cols)
	}
	return nil
}

// Uncertainty is the factor of Variance, kept in the memory of the host: n²
// numbers, so that points asked for later cost n² operations each. Its methods may
// be called by several goroutines at once. It shares the samples of its Problem,
// which must not be changed.
type Uncertainty struct {
	s      *samples
	factor backend.Host[float64]
}

// UncertaintyBytes is what an Uncertainty of n samples keeps.
func UncertaintyBytes(n int) int64 { return numeric.Bytes(numeric.Elements(n, n)) }

// NewUncertainty factors K + λW⁻¹ on dev as Variance does, with the same errors,
// and gives all memory of dev back. On a device that works in Go memory the factor
// is made where it will stay.
func NewUncertainty(ctx context.Context, dev backend.Device, p Problem, limit int64) (*Uncertainty, error) {
	u := &Uncertainty{}
	f, err := newCovariance(ctx, dev, "variance", p, limit, func(_, _, _ int) int64 { return 0 }, &u.factor)
	if err != nil {
		return nil, err
	}
	defer f.Mem.FreeAll()
	u.s = f.s
	if numeric.Wrapper(dev) == nil {
		u.factor = backend.NewHost[float64](f.s.n, f.s.n)
		if err := f.B.Download(u.factor, f.l); err != nil {
			return nil, fmt.Errorf("solvers: variance: %w", err)
		}
	}
	return u, nil
}

// Variance is that of the package for the samples of u: n² operations for each
// point. Where the device has other memory than Go's the factor is copied to it
// once a call.
func (u *Uncertainty) Variance(ctx context.Context, dev backend.Device, points backend.Host[float64], limit int64) ([]float64, error) {
	s := u.s
	if err := s.checkPoints(points); err != nil {
		return nil, err
	}
	rows := min(points.Rows, evidenceBlock)
	f, err := u.on(ctx, dev, "variance", func(n, d, _ int) int64 { return numeric.Elements(n+d, rows) }, limit)
	if err != nil {
		return nil, fmt.Errorf("solvers: variance: %w", err)
	}
	defer f.Mem.FreeAll()
	variance, err := f.variance(points, rows)
	if err != nil {
		return nil, fmt.Errorf("solvers: variance: %w", err)
	}
	return variance, nil
}

func (f *covariance) variance(points backend.Host[float64], rows int) ([]float64, error) {
	known, variance := make([]float64, rows), numeric.KernelDiagonal(f.s.Kernel, points)
	err := f.cross(points, rows, func(first int, h backend.Host[float64], k backend.Matrix[float64]) error {
		f.B.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, f.l, k)
		if err := f.B.ColDot(known[:h.Rows], k, k); err != nil {
			return err
		}
		for i := range h.Rows {
			variance[first+i] = max(0, variance[first+i]-known[i])
		}
		return nil
	})
	return variance, err
}

// cross calls visit with the points and k = k(X, points), a block of rows of points
// at a time.
func (f *covariance) cross(points backend.Host[float64], rows int, visit func(first int, h backend.Host[float64], k backend.Matrix[float64]) error) error {
	s, b := f.s, f.B
	cross, err := f.Mem.New(s.n, rows)
	if err != nil {
		return err
	}
	z, err := f.Mem.New(rows, s.d)
	if err != nil {
		return err
	}
	for first := 0; first < points.Rows; first += rows {
		if f.Ctx.Err() != nil {
			return context.Cause(f.Ctx)
		}
		count := min(rows, points.Rows-first)
		h := points.View(first, 0, count, s.d)
		zs, k := z.View(0, 0, count, s.d), cross.View(0, 0, s.n, count)
		if err := b.Upload(zs, h); err != nil {
			return err
		}
		b.Gram(k, s.Kernel, f.x, zs)
		if err := visit(first, h, k); err != nil {
			return err
		}
	}
	return nil
}

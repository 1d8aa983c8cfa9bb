package held

import (
	"context"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// Factor is the Cholesky factor of K + λI in float64, kept on the device for many
// right-hand sides: n²/2 elements where the device has half storage, n² elsewhere,
// and copies of the points.
type Factor struct {
	*lease
	device *Device
	kernel kernels.Kernel
	lambda float64
	points backend.Host[float64]
	factor *solvers.Cholesky
}

// NewFactor factors K + λI, with K as in Solve: O(n²d + n³). A matrix that is not
// positive definite to working precision is an error that matches
// backend.ErrNotPosDef.
func NewFactor(ctx context.Context, d *Device, kernel string, lambda float64, x Matrix) (*Factor, error) {
	k, points, err := system(kernel, x)
	if err != nil {
		return nil, err
	}
	if err := d.take(); err != nil { // until the factor is freed
		return nil, err
	}
	c, err := solvers.NewKernelCholesky(ctx, d.dev, k, points, lambda)
	if err != nil {
		d.drop()
		return nil, err
	}
	f := &Factor{device: d, kernel: k, lambda: lambda, points: c.Points(), factor: c}
	f.lease = newLease(func() {
		c.Close()
		d.drop()
	})
	return f, nil
}

// Order returns n.
func (f *Factor) Order() int { return f.points.Rows }

// Free gives the memory back when the last Solve is over.
func (f *Factor) Free() error { return f.end() }

// Solve writes (K + λI)⁻¹y, n×t, to out: 2n²t operations. Where residual is
// asked for, it also returns ‖(K + λI)α − y‖/‖y‖, the largest over the columns,
// which evaluates K anew.
func (f *Factor) Solve(ctx context.Context, y Matrix, out []float64, residual bool) (float64, error) {
	if err := f.take(); err != nil {
		return 0, err
	}
	defer f.drop()
	h := y.host()
	if n := f.Order(); h.Rows != n || h.Cols == 0 || len(out) != n*h.Cols {
		return 0, fmt.Errorf("libmercer: factor: y is %d×%d with room for %d numbers, the factor is of order %d", h.Rows, h.Cols, len(out), n)
	}
	if err := finite("y", h); err != nil {
		return 0, err
	}
	alpha := backend.Host[float64]{Rows: h.Rows, Cols: h.Cols, Stride: h.Cols, Data: out}
	if err := f.factor.Solve(ctx, alpha, h); err != nil || !residual {
		return 0, err
	}
	return f.residual(f.device.dev.F64().With(ctx, nil), alpha, h)
}

// residual returns the largest ‖Ka + λa − y‖/‖y‖ of a column, 0/0 being 0.
func (f *Factor) residual(b backend.Backend[float64], alpha, y backend.Host[float64]) (float64, error) {
	a, err := backend.Place(f.device.dev.F64(), alpha)
	if err != nil {
		return 0, err
	}
	defer a.Free()
	points, err := backend.Place(f.device.dev.F64(), f.points)
	if err != nil {
		return 0, err
	}
	defer points.Free()
	r, err := b.New(y.Rows, 2*y.Cols)
	if err != nil {
		return 0, err
	}
	defer r.Free()
	left, want := r.View(0, 0, y.Rows, y.Cols), r.View(0, y.Cols, y.Rows, y.Cols)
	b.GramMul(left, f.kernel, points, points, a)
	scale := func(v float64) []float64 {
		s := make([]float64, y.Cols)
		for j := range s {
			s[j] = v
		}
		return s
	}
	b.ColAxpy(scale(f.lambda), a, left)
	if err := b.Upload(want, y); err != nil {
		return 0, err
	}
	b.ColAxpy(scale(-1), want, left)
	off, size := make([]float64, y.Cols), make([]float64, y.Cols)
	if err := b.ColDot(off, left, left); err != nil {
		return 0, err
	}
	if err := b.ColDot(size, want, want); err != nil {
		return 0, err
	}
	worst := 0.0
	for j, s := range off {
		if s > 0 {
			worst = max(worst, math.Sqrt(s/size[j]))
		}
	}
	return worst, nil
}

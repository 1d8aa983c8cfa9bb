package held

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// Factor is the Cholesky factor of K + λI in float64, kept on the device for many
// right-hand sides: n²/2 elements where the device has half storage, n² elsewhere,
// and a copy of the points.
type Factor struct {
	*lease
	device *Device
	kernel kernels.Kernel
	points backend.Host[float64]
	lambda float64
	half   backend.Half[float64] // one of these two
	square backend.Matrix[float64]
}

// NewFactor factors K + λI, with K as in Solve: O(n²d + n³). A matrix that is not
// positive definite to working precision is an error that matches
// backend.ErrNotPosDef. progress may be nil.
func NewFactor(ctx context.Context, d *Device, kernel string, lambda float64, x Matrix, progress func(solvers.Progress)) (*Factor, error) {
	if !(lambda >= 0) || math.IsInf(lambda, 1) {
		return nil, fmt.Errorf("libmercer: factor: lambda must be a finite number ≥ 0, got %v", lambda)
	}
	// Taken until the factor is freed.
	if err := d.take(); err != nil {
		return nil, err
	}
	f := &Factor{device: d, lambda: lambda}
	f.lease = newLease(func() {
		if f.half != nil {
			f.half.Free()
		}
		if f.square != nil {
			f.square.Free()
		}
		d.drop()
	})
	if err := f.make(ctx, kernel, x, progress); err != nil {
		_ = f.end() // the first end of a lease has no error
		return nil, err
	}
	return f, nil
}

func (f *Factor) make(ctx context.Context, kernel string, x Matrix, progress func(solvers.Progress)) error {
	k, h, err := system(kernel, x)
	if err != nil {
		return err
	}
	f.kernel, f.points = k, copyOf(h)
	base := f.device.dev.F64()
	points, err := backend.Place(base, f.points)
	if err != nil {
		return err
	}
	defer points.Free()
	n, shift := f.points.Rows, []float64{f.lambda}
	b := base.With(ctx, counter(progress, n, h.Cols))
	if hb, ok := b.(backend.HalfBackend[float64]); ok {
		if f.half, err = hb.NewHalf(n); err != nil {
			return err
		}
		hb.GramHalf(f.half, k, points)
		hb.AddDiagHalf(shift, f.half)
		err = hb.PotrfHalf(f.half)
	} else {
		if f.square, err = b.New(n, n); err != nil {
			return err
		}
		b.Gram(f.square, k, points, points)
		b.AddDiag(shift, f.square)
		err = b.Potrf(backend.Lower, f.square)
	}
	if errors.Is(err, backend.ErrNotPosDef) {
		return fmt.Errorf("libmercer: factor: K + %g I: %w; raise lambda", f.lambda, err)
	}
	return err
}

// counter turns counts of floating-point operations of a factorisation into
// progress. It is told by one goroutine at a time.
func counter(report func(solvers.Progress), n, d int) func(flops float64) {
	if report == nil {
		return nil
	}
	gram, done := backend.GramFlops(n, n, d, true), 0.0
	whole := gram + backend.PotrfFlops(n)
	return func(flops float64) {
		done += flops
		p := solvers.Progress{Stage: "gram", Fraction: min(done/whole, 1)}
		if done > gram {
			p.Stage = "factor"
		}
		report(p)
	}
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
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	b := f.device.dev.F64().With(ctx, nil)
	a, err := b.New(h.Rows, h.Cols)
	if err != nil {
		return 0, err
	}
	defer a.Free()
	if err := b.Upload(a, h); err != nil {
		return 0, err
	}
	f.substitute(b, a)
	if err := b.Download(backend.Host[float64]{Rows: h.Rows, Cols: h.Cols, Stride: h.Cols, Data: out}, a); err != nil || !residual {
		return 0, err
	}
	return f.residual(b, a, h)
}

// substitute queues a ← (LLᵀ)⁻¹a.
func (f *Factor) substitute(b backend.Backend[float64], a backend.Matrix[float64]) {
	if f.half != nil {
		hb := b.(backend.HalfBackend[float64]) // as when half was made
		hb.TrsmHalf(backend.NoTrans, f.half, a)
		hb.TrsmHalf(backend.Transpose, f.half, a)
		return
	}
	b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, f.square, a)
	b.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, f.square, a)
}

// residual returns the largest ‖Ka + λa − y‖/‖y‖ of a column, 0/0 being 0.
func (f *Factor) residual(b backend.Backend[float64], a backend.Matrix[float64], y backend.Host[float64]) (float64, error) {
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

// copyOf returns a copy of h without gaps.
func copyOf(h backend.Host[float64]) backend.Host[float64] {
	c := backend.NewHost[float64](h.Rows, h.Cols)
	for i := range h.Rows {
		copy(c.Row(i), h.Row(i))
	}
	return c
}

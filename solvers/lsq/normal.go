package lsq

import (
	"errors"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
)

// normal is w ↦ XᵀXw on the device, for iterative methods: with XᵀX where that
// is not much larger than X, by X and Xᵀ elsewhere.
type normal struct {
	t       *run.Task
	c       *Samples
	moments *moments                // XᵀX empty where X is used
	x       backend.Host[float64]   // n×d where X is used
	fixed   backend.Matrix[float64] // XᵀX or X
	v, r    backend.Matrix[float64] // d×1 and n×1
	out     backend.Host[float64]
}

// gramFeatures is up to how many features XᵀX is formed although there are fewer
// samples: 32 MiB.
const gramFeatures = 2048

// byGram reports whether XᵀX is formed.
func (c *Samples) byGram() bool { return c.d <= max(c.n, gramFeatures) }

// normalBytes is what normal takes on the device with n rows.
func (c *Samples) normalBytes(n int) int64 {
	if c.byGram() {
		return c.momentBytes(n) + 8*int64(c.d)*int64(c.d+2)
	}
	return 8 * (int64(n)*int64(c.d+c.t+1) + 2*int64(c.d)*int64(1+c.t))
}

func (c *Samples) normal(t *run.Task) (*normal, error) {
	a := &normal{t: t, c: c, out: backend.NewHost[float64](c.d, 1)}
	var err error
	if c.byGram() {
		if a.moments, err = c.moments(t); err == nil {
			a.fixed, err = backend.Copy(t.B, a.moments.g)
		}
	} else {
		err = a.whole()
	}
	if err == nil {
		a.v, err = t.B.New(c.d, 1)
	}
	if err != nil {
		a.free()
		return nil, err
	}
	return a, nil
}

// whole puts X itself on the device.
func (a *normal) whole() error {
	c, b := a.c, a.t.B
	a.x = backend.NewHost[float64](c.n, c.d)
	y := backend.NewHost[float64](c.n, c.t)
	c.fill(a.x, c.x, c.meanX, 0)
	c.fill(y, c.y, c.meanY, 0)
	var err error
	if a.fixed, err = backend.Place(b, a.x); err != nil {
		return err
	}
	if a.r, err = b.New(c.n, 1); err != nil {
		return err
	}
	a.moments = &moments{c: backend.NewHost[float64](c.t, c.d), s: make([]float64, c.t)}
	right, err := b.New(c.t, c.d)
	if err != nil {
		return err
	}
	defer right.Free()
	return run.Placed(b, y, a.moments.c, func(y, _ backend.Matrix[float64]) error {
		b.Gemm(backend.Transpose, backend.NoTrans, 1, y, a.fixed, 0, right)
		if err := b.ColDot(a.moments.s, y, y); err != nil {
			return err
		}
		for _, v := range a.moments.s {
			if v-v != 0 {
				return errors.New("values of x or y overflow: scale them down")
			}
		}
		return b.Download(a.moments.c, right)
	})
}

func (a *normal) free() {
	for _, m := range []backend.Matrix[float64]{a.fixed, a.v, a.r} {
		if m != nil {
			m.Free()
		}
	}
}

// apply sets dst to XᵀXw.
func (a *normal) apply(dst, w []float64) error {
	b, d := a.t.B, a.c.d
	if err := b.Upload(a.v, backend.Host[float64]{Rows: d, Cols: 1, Stride: 1, Data: w}); err != nil {
		return err
	}
	to, err := b.New(d, 1)
	if err != nil {
		return err
	}
	defer to.Free()
	if a.r == nil {
		b.Gemm(backend.NoTrans, backend.NoTrans, 1, a.fixed, a.v, 0, to)
	} else {
		b.Gemm(backend.NoTrans, backend.NoTrans, 1, a.fixed, a.v, 0, a.r)
		b.Gemm(backend.Transpose, backend.NoTrans, 1, a.fixed, a.r, 0, to)
	}
	return b.Download(backend.Host[float64]{Rows: d, Cols: 1, Stride: 1, Data: dst}, to)
}

// diagonal returns the squared norms of the columns of X.
func (a *normal) diagonal() []float64 {
	list := make([]float64, a.c.d)
	for p := range list {
		if a.r == nil {
			list[p] = a.moments.g.Row(p)[p]
		}
	}
	if a.r != nil {
		for i := range a.x.Rows {
			for p, v := range a.x.Row(i) {
				list[p] += v * v
			}
		}
	}
	return list
}

// gramOf returns XᵀX of the columns in list, the lower triangle.
func (a *normal) gramOf(list []int) (backend.Host[float64], error) {
	s := len(list)
	g := backend.NewHost[float64](s, s)
	if a.r == nil {
		for i, p := range list {
			for k, q := range list[:i+1] {
				g.Row(i)[k] = a.moments.g.Row(p)[q]
			}
		}
		return g, nil
	}
	x := backend.NewHost[float64](a.x.Rows, s)
	for i := range x.Rows {
		from, to := a.x.Row(i), x.Row(i)
		for k, p := range list {
			to[k] = from[p]
		}
	}
	m, err := a.t.B.New(s, s)
	if err != nil {
		return g, err
	}
	defer m.Free()
	return g, run.Placed(a.t.B, x, g, func(x, _ backend.Matrix[float64]) error {
		a.t.B.Syrk(backend.Lower, backend.Transpose, 1, x, 0, m)
		return a.t.B.Download(g, m)
	})
}

// largest estimates the largest eigenvalue of DXᵀXD, D diagonal (nil: I), from
// below, by the power method. It stops when a step changes it by less than a
// percent.
func (a *normal) largest(scale []float64) (float64, error) {
	d := a.c.d
	v, w := make([]float64, d), make([]float64, d)
	for p := range v {
		v[p] = 1 + float64(p%7)/7 // any that is not likely to be orthogonal
	}
	times := func(v []float64) {
		for p, s := range scale {
			v[p] *= s
		}
	}
	value := 0.0
	for range 100 {
		size := 0.0
		for _, x := range v {
			size = math.Hypot(size, x)
		}
		if size == 0 {
			return 0, nil
		}
		for p := range v {
			v[p] /= size
		}
		times(v)
		if err := a.apply(w, v); err != nil {
			return 0, err
		}
		times(w)
		last := value
		value = 0
		for _, x := range w {
			value = math.Hypot(value, x)
		}
		v, w = w, v
		if math.Abs(value-last) <= 0.01*value {
			break
		}
	}
	return value, nil
}

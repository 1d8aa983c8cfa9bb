package solvers

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
)

// powerSteps is how many products with A_BB its scale beside P is found from, as
// in the source.
const powerSteps = 10

// project returns d = P⁻¹(A_B z − r_B)/L for the samples in block, and adds the
// squares of A_B z − r_B to left, column by column.
func (k *sketch) project(block []int, r, z backend.Host[float64], left []float64) (backend.Host[float64], error) {
	s, b, c := k.w.s, len(block), r.Cols
	g := backend.NewHost[float64](b, c)
	points := backend.NewHost[float64](b, s.d)
	for q, i := range block {
		s.fill(points.View(q, 0, 1, s.d), s.X, s.meanX, i, false)
	}
	xb, onDevice := k.xb.View(0, 0, b, s.d), k.r.View(0, 0, b, c)
	if err := k.w.B.Upload(xb, points); err != nil {
		return g, err
	}
	all := k.z.View(0, 0, s.n, c) // one column less once the border is solved
	if err := k.w.B.Upload(all, z); err != nil {
		return g, err
	}
	k.w.B.GramMul(onDevice, s.Kernel, xb, k.x, all)
	if err := k.w.B.Download(g, onDevice); err != nil {
		return g, err
	}
	shift := k.shift
	if len(shift) > 1 {
		shift = make([]float64, b)
		for q, i := range block {
			shift[q] = k.shift[i]
		}
	}
	for q, i := range block {
		to, at, right := g.Row(q), z.Row(i), r.Row(i)
		for j := range to {
			to[j] += shift[q%len(shift)]*at[j] - right[j]
			left[j] += to[j] * to[j]
		}
	}
	if err := k.w.B.Upload(onDevice, g); err != nil {
		return g, err
	}
	if k.choice.Rank > 0 {
		return g, k.approximate(xb, onDevice, shift, g)
	}
	return g, k.exact(xb, onDevice, shift, g)
}

// exact sets d to A_BB⁻¹ r, by Cholesky. Where rounding leaves A_BB indefinite
// what is added to its diagonal makes the step a little shorter, and no solution
// wrong.
func (k *sketch) exact(xb, r backend.Matrix[float64], shift []float64, d backend.Host[float64]) error {
	b := d.Rows
	a := k.a.View(0, 0, b, b)
	j := newJitter(0, 0, epsilon)
	err := factor(j, k.w.B, a, func() error {
		k.w.B.Gram(a, k.w.s.Kernel, xb, xb)
		k.w.B.AddDiag(shift, a)
		before, err := diagonal(k.w.B, a)
		j.limit = traceOf(before)
		j.least = 4 * epsilon * j.limit
		return err
	})
	if err != nil {
		return err
	}
	k.w.res.Jitter = max(k.w.res.Jitter, j.added)
	cholesky(k.w.B, a, r)
	return k.w.B.Download(d, r)
}

// approximate sets d to P⁻¹r/L with P = FFᵀ + (λ + ρ)I, F from randomly pivoted
// Cholesky of K_BB. ρ is what F leaves of the trace, spread over as many
// directions as F has: the authors damp by the least eigenvalue of FFᵀ, which is
// of that size.
func (k *sketch) approximate(xb, r backend.Matrix[float64], shift []float64, d backend.Host[float64]) error {
	w, b, c := k.w, d.Rows, d.Cols
	f := k.f.View(0, 0, b, min(k.choice.Rank, b))
	a, err := rpCholesky(lowRankTask[float64]{ctx: w.Ctx, b: w.B, mem: w.Mem, kernel: w.s.Kernel, x: xb, seed: k.random.Uint64()}, f)
	if err != nil {
		return err
	}
	damped := make([]float64, len(shift))
	for i, v := range shift {
		damped[i] = v + a.trace/float64(max(a.rank, 1))
	}
	p, _, err := newLowRank(w.Mem, w.Dev, w.B, w.B, f, a.rank, damped, 0, c)
	if err != nil {
		return err
	}
	defer func() {
		for _, m := range p.made() {
			w.Mem.Free(m)
		}
	}()
	u, v := k.u.View(0, 0, b, 1), k.u.View(0, 1, b, 1)
	h := backend.NewHost[float64](b, 1)
	for i := range h.Data {
		h.Data[i] = k.random.NormFloat64()
	}
	largest := 0.0
	for range powerSteps {
		size := norm(b, func(i int) float64 { return h.Data[i] })
		if !(size > 0) || math.IsInf(size, 1) {
			return fmt.Errorf("the block's approximation is not finite")
		}
		for i := range h.Data {
			h.Data[i] /= size
		}
		if err := w.B.Upload(u, h); err != nil {
			return err
		}
		w.B.GramMul(v, w.s.Kernel, xb, xb, u)
		product := backend.NewHost[float64](b, 1)
		if err := w.B.Download(product, v); err != nil {
			return err
		}
		for i := range product.Data {
			product.Data[i] += shift[i%len(shift)] * h.Data[i]
		}
		if err := w.B.Upload(v, product); err != nil {
			return err
		}
		if err := p.apply(u, v); err != nil {
			return err
		}
		if err := w.B.Download(h, u); err != nil {
			return err
		}
		largest = norm(b, func(i int) float64 { return h.Data[i] })
	}
	z := k.s.View(0, 0, b, c)
	if err := p.apply(z, r); err != nil {
		return err
	}
	if err := w.B.Download(d, z); err != nil {
		return err
	}
	for i := range d.Data {
		d.Data[i] /= 1.05 * largest // the power method comes from below
	}
	return nil
}

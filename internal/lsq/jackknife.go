package lsq

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/run"
)

// Jackknife computes the leave-one-out fits f₋ᵢ, without sample i, from one fit f with the penalty λ:
//
//	y_i − f₋ᵢ(x_i) = c_i = e_i/(1 − h_i)
//	f₋ᵢ(x) = f(x) − c_i (√w_i z_iᵀL⁻¹(x − x̄) + w_i/Σw)
//
// for the residual e_i = y_i − f(x_i) and the leverage h_i = ‖z_i‖² + w_i/Σw, where z_i = √w_i L⁻¹(x_i − x̄). L is
// the Cholesky factor of XᵀX + λI, and X has the rows √w_i (x_i − x̄). Without an intercept, x̄ and w_i/Σw are 0.
type Jackknife struct {
	c         *Samples
	l, z      backend.Host[float64] // the lower triangle L, d×d, and the rows z_i, n×d
	oneMinusH []float64             // 1 − h_i of each sample
}

// Jackknife returns the Jackknife of the fit with the penalty lambda.
func (c *Samples) Jackknife(f *run.Task, lambda float64) (*Jackknife, error) {
	d, block := int64(c.d), int64(c.blockRows())
	run.ReportPlan(f.Ctx, f.Dev, 8*(d*(2*d+int64(c.n))+2*block*int64(c.d+c.t))) // memory of XᵀX, L, z, and blocks of rows
	moments, err := c.moments(f)
	if err != nil {
		return nil, err
	}
	a := &Jackknife{c: c, l: moments.g, z: backend.NewHost[float64](c.n, c.d), oneMinusH: make([]float64, c.n)}
	l, err := f.Mem.New(c.d, c.d)
	if err != nil {
		return nil, err
	}
	if err := f.B.Upload(l, a.l); err != nil {
		return nil, err
	}
	f.B.AddDiag(slices.Repeat([]float64{lambda}, c.d), l)
	if err := f.B.Potrf(backend.Lower, l); err != nil {
		if errors.Is(err, backend.ErrNotPosDef) {
			return nil, message.Errorf("%w: features depend on each other: {raise $lambda}", err)
		}
		return nil, err
	}
	if err := f.B.Download(a.l, l); err != nil {
		return nil, err
	}
	err = c.eachBlock(f.Ctx, f.B, true, func(x, _ backend.Matrix[float64], from int) error {
		f.B.Trsm(backend.Right, backend.Lower, backend.Transpose, 1, l, x)
		rows, _ := x.Dims()
		return f.B.Download(a.z.View(from, 0, rows, c.d), x)
	})
	if err != nil {
		return nil, err
	}
	for i := range a.oneMinusH {
		h := 0.0
		for _, v := range a.z.Row(i) {
			h += v * v
		}
		if c.intercept {
			h += c.positive.WeightOf(i) / c.weight
		}
		a.oneMinusH[i] = 1 - h
	}
	return a, nil
}

// Errors returns the n×t leave-one-out errors c_i for the fit with the d×t weights coef and the intercepts b.
func (a *Jackknife) Errors(coef backend.Host[float64], b []float64) (backend.Host[float64], error) {
	c := a.c
	errs := backend.NewHost[float64](c.n, c.t)
	for i := range c.n {
		x, y, row := c.x.Row(c.positive.Row(i)), c.y.Row(c.positive.Row(i)), errs.Row(i)
		copy(row, y)
		for j, v := range b {
			row[j] -= v
		}
		for p, v := range x {
			for j, w := range coef.Row(p) {
				row[j] -= v * w
			}
		}
		// If h_i = 1, the fit without sample i is not unique.
		if rounding := 0x1p-52 * float64(c.d+c.n); !(a.oneMinusH[i] > rounding) {
			return errs, message.Errorf("the fit without sample %d has no solution: {raise $lambda}", c.positive.Row(i)+1)
		}
		for j := range row {
			row[j] /= a.oneMinusH[i]
		}
	}
	return errs, nil
}

// Influence calls visit with one matrix b for each block of up to 256 rows of points, where first is the index of
// the block's first row. Element (i, j) of b is √w_i z_iᵀL⁻¹(x − x̄) + w_i/Σw for the j-th row x of the block.
func (a *Jackknife) Influence(f *run.Task, points backend.Host[float64], visit func(first int, b backend.Host[float64])) error {
	c := a.c
	rows := min(points.Rows, max(1, min(256, (64<<20)/(8*c.n))))
	run.ReportPlan(f.Ctx, f.Dev, 16*int64(rows)*int64(c.n+c.d)) // the operands and results of two products, on the host and on the device
	l, err := f.Mem.Place(a.l)
	if err != nil {
		return err
	}
	z, err := f.Mem.Place(a.z)
	if err != nil {
		return err
	}
	centered := backend.NewHost[float64](rows, c.d)
	b := backend.NewHost[float64](c.n, rows)
	x, err := f.Mem.New(rows, c.d)
	if err != nil {
		return err
	}
	product, err := f.Mem.New(c.n, rows)
	if err != nil {
		return err
	}
	for first := 0; first < points.Rows; first += rows {
		if f.Ctx.Err() != nil {
			return context.Cause(f.Ctx)
		}
		r := min(rows, points.Rows-first)
		for i := range r {
			c.center(centered.Row(i), points.Row(first+i))
		}
		block, products, influences := x.View(0, 0, r, c.d), product.View(0, 0, c.n, r), b.View(0, 0, c.n, r)
		if err := f.B.Upload(block, centered.View(0, 0, r, c.d)); err != nil {
			return err
		}
		f.B.Trsm(backend.Right, backend.Lower, backend.Transpose, 1, l, block)
		f.B.Gemm(backend.NoTrans, backend.Transpose, 1, z, block, 0, products)
		if err := f.B.Download(influences, products); err != nil {
			return err
		}
		for i := range c.n {
			root, weightFraction := c.root(i), 0.0
			if c.intercept {
				weightFraction = c.positive.WeightOf(i) / c.weight
			}
			for k, v := range influences.Row(i) {
				influences.Row(i)[k] = math.FMA(root, v, weightFraction)
			}
		}
		visit(first, influences)
	}
	return nil
}

// Package lsq fits linear models f(x) = Wᵀx + b by least squares: without regularization, with a bound on ‖w‖²,
// with a penalty on ‖w‖₁ or on the number of weights, and by evidence. All methods share centered samples, and XᵀX
// and QR in blocks of rows (samples.go).
package lsq

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/spread"
	"gonum.org/v1/gonum/blas/blas64"
)

// Samples represents the samples of a linear least-squares problem by the rows √w_i(x_i − x̄) and √w_i(y_i − ȳ),
// for the samples of weight w_i > 0 and their weighted means x̄ and ȳ. The problem in these rows has no intercept,
// and b = ȳ − wᵀx̄ is the unpenalized intercept of the original problem. Without an intercept x̄ and ȳ are 0.
type Samples struct {
	x, y         backend.Host[float64] // the samples before centering; x is empty if they are sparse
	sparse       *backend.CSR[float64] // nil if the samples are dense
	weights      []float64             // w_i of every row; nil if all are 1
	intercept    bool
	positive     numeric.Part // rows of weight > 0
	weight       float64      // sum of the weights w_i
	meanX, meanY numeric.Center
	constant     []int // columns of x that are constant up to rounding; centering sets them to 0
	n, d, t      int   // numbers of rows of weight > 0, of features, and of outputs
}

// New returns the Samples of x, n×d, and y, n×t, whose numbers must be finite. The weights must be
// ≥ 0. They are all 1 if weights is nil. Only Lasso and LeastSquares support sparse samples.
func New(ctx context.Context, x numeric.Points, y backend.Host[float64], weights []float64, intercept bool) (*Samples, error) {
	c := &Samples{x: x.Dense, sparse: x.Sparse, y: y, weights: weights, intercept: intercept, d: x.Cols, t: y.Cols}
	c.positive = numeric.PartOf(x.Rows, weights)
	c.n = c.positive.N
	for i := range c.n {
		c.weight += c.positive.WeightOf(i)
	}
	var err error
	if c.sparse != nil {
		c.meanX = numeric.Center{make([]float64, c.d), make([]float64, c.d)}
		for k := range c.n {
			columns, values := c.sparse.Row(c.positive.Row(k))
			for stored, p := range columns {
				if intercept {
					c.meanX[0][p] += c.positive.WeightOf(k) / c.weight * values[stored]
				}
			}
		}
	} else if c.meanX, err = c.mean(ctx, x.Dense); err != nil {
		return nil, err
	} else if intercept {
		c.findConstant()
	}
	c.meanY, err = c.mean(ctx, y)
	return c, err
}

// findConstant lists the columns of x whose values all differ from their mean by at most spread.Rounding. After
// centering, such a column would consist of rounding errors and could have a huge weight.
func (c *Samples) findConstant() {
	for j := range c.d {
		mean := c.meanX[0][j]
		bound := spread.Rounding(float64(c.n), mean)
		k := 0
		for k < c.n && math.Abs(c.x.Row(c.positive.Row(k))[j]-mean) <= bound {
			k++
		}
		if k == c.n {
			c.constant = append(c.constant, j)
		}
	}
}

// root returns √w_i of the i-th row of weight > 0.
func (c *Samples) root(i int) float64 { return math.Sqrt(c.positive.WeightOf(i)) }

// center sets dst to x, a row of X, minus the mean.
func (c *Samples) center(dst, x []float64) {
	for j, v := range x {
		dst[j] = v - c.meanX[0][j] - c.meanX[1][j]
	}
	for _, j := range c.constant {
		dst[j] = 0
	}
}

// Rows returns the number of rows of weight > 0.
func (c *Samples) Rows() int { return c.n }

// Features returns the number of features.
func (c *Samples) Features() int { return c.d }

// mean returns the weighted mean of each column, or zeros without an intercept.
func (c *Samples) mean(ctx context.Context, h backend.Host[float64]) (numeric.Center, error) {
	if !c.intercept {
		return numeric.Center{make([]float64, h.Cols), make([]float64, h.Cols)}, nil
	}
	return c.positive.Mean(ctx, h)
}

// fillX sets dst to centered and weighted rows of X, beginning with row from of the rows of weight > 0.
func (c *Samples) fillX(dst backend.Host[float64], from int) {
	c.positive.Fill(dst, c.x, c.meanX, from, true)
	for _, j := range c.constant {
		for k := range dst.Rows {
			dst.Row(k)[j] = 0
		}
	}
}

func (c *Samples) fillY(dst backend.Host[float64], from int) {
	c.positive.Fill(dst, c.y, c.meanY, from, true)
}

// columns returns the transposes of X and Y, d×n and t×n, so that each feature is contiguous.
func (c *Samples) columns() (x, y backend.Host[float64]) {
	transposed := func(width int, fill func(dst backend.Host[float64], from int)) backend.Host[float64] {
		h, row := backend.NewHost[float64](width, c.n), backend.NewHost[float64](1, width)
		for k := range c.n {
			fill(row, k)
			for j, v := range row.Data {
				h.Row(j)[k] = v
			}
		}
		return h
	}
	return transposed(c.d, c.fillX), transposed(c.t, c.fillY)
}

// blockRows returns the number of rows of a block in eachBlock. A block takes about 2 MiB.
func (c *Samples) blockRows() int { return min(c.n, max(256, 1<<18/(c.d+c.t))) }

// eachBlock calls f with successive blocks of rows of X and Y on the device, which are valid until f returns. f
// may overwrite them if writable is true; otherwise they may share the memory of the samples.
func (c *Samples) eachBlock(ctx context.Context, b backend.Backend[float64], writable bool, f func(x, y backend.Matrix[float64], from int) error) error {
	rows := c.blockRows()
	share := !writable && !c.intercept && c.weights == nil
	var hx, hy backend.Host[float64]
	if !share {
		hx, hy = backend.NewHost[float64](rows, c.d), backend.NewHost[float64](rows, c.t)
	}
	for i := 0; i < c.n; i += rows {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		r := min(rows, c.n-i)
		var bx, by backend.Host[float64]
		if share {
			bx, by = c.x.View(i, 0, r, c.d), c.y.View(i, 0, r, c.t)
		} else {
			bx, by = hx.View(0, 0, r, c.d), hy.View(0, 0, r, c.t)
			c.fillX(bx, i)
			c.fillY(by, i)
		}
		if err := run.Placed(b, bx, by, func(x, y backend.Matrix[float64]) error { return f(x, y, i) }); err != nil {
			return err
		}
	}
	return nil
}

// moments holds G, c and s of the quadratic loss ‖Xw − y‖² = wᵀGw − 2cᵀw + s, computed on the device.
type moments struct {
	g backend.Host[float64] // G = XᵀX, d×d, both triangles
	c backend.Host[float64] // c = Xᵀy, t×d: one row for each output
	s []float64             // s = yᵀy
}

// errOverflow is the error for moments whose sums overflow float64.
var errOverflow = errors.New("XᵀX overflows")

// momentBytes returns the device memory of moments for n rows, in bytes.
func (c *Samples) momentBytes(n int) int64 {
	r := int64(min(n, c.blockRows()))
	return 8 * (int64(c.d) + r) * int64(c.d+c.t)
}

func (c *Samples) moments(t *run.Task) (*moments, error) { return c.sums(t, true) }

// sums returns the moments. It computes yᵀy only if squares is true.
func (c *Samples) sums(t *run.Task, squares bool) (*moments, error) {
	g, err := t.B.New(c.d, c.d)
	if err != nil {
		return nil, err
	}
	defer g.Free()
	v, err := t.B.New(c.t, c.d)
	if err != nil {
		return nil, err
	}
	defer v.Free()
	m := &moments{g: backend.NewHost[float64](c.d, c.d), c: backend.NewHost[float64](c.t, c.d), s: make([]float64, c.t)}
	blockSquares := make([]float64, c.t)
	err = c.eachBlock(t.Ctx, t.B, false, func(x, y backend.Matrix[float64], _ int) error {
		t.B.Syrk(backend.Lower, backend.Transpose, 1, x, 1, g)
		t.B.Gemm(backend.Transpose, backend.NoTrans, 1, y, x, 1, v)
		if !squares {
			return nil
		}
		if err := t.B.ColDot(blockSquares, y, y); err != nil {
			return err
		}
		for j, p := range blockSquares {
			m.s[j] += p
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := t.B.Download(m.g, g); err != nil {
		return nil, err
	}
	if err := t.B.Download(m.c, v); err != nil {
		return nil, err
	}
	for i := range c.d {
		for j := range i {
			m.g.Data[j*m.g.Stride+i] = m.g.Data[i*m.g.Stride+j]
		}
	}
	for i := range c.d {
		if v := m.g.Row(i)[i]; v-v != 0 {
			return nil, fmt.Errorf("%w at column %d: scale the features down", errOverflow, i+1)
		}
	}
	return m, nil
}

// Moments returns XᵀX, d×d, and YᵀX, t×d, of dense samples, and the means x̄ and ȳ, which are 0 without an intercept.
func (c *Samples) Moments(t *run.Task) (gram, products backend.Host[float64], meanX, meanY []float64, err error) {
	m, err := c.sums(t, false)
	if err != nil {
		return gram, products, nil, nil, err
	}
	return m.g, m.c, c.meanX.Values(), c.meanY.Values(), nil
}

// MomentBytes returns the device memory that Moments takes for n rows, in bytes.
func (c *Samples) MomentBytes(n int) int64 { return c.momentBytes(n) }

// intercepts returns b = ȳ − x̄ᵀw for the d×t weights.
func (c *Samples) intercepts(coef backend.Host[float64]) []float64 {
	b := make([]float64, c.t)
	for j := range b {
		b[j] = c.meanY[0][j] + c.meanY[1][j]
	}
	for p := range c.d {
		for j, w := range coef.Row(p) {
			b[j] -= w * c.meanX[0][p]
			b[j] -= w * c.meanX[1][p]
		}
	}
	return b
}

const epsilon = 0x1p-52

// vector returns v as a vector of gonum's BLAS that shares its memory.
func vector(v []float64) blas64.Vector { return blas64.Vector{N: len(v), Inc: 1, Data: v} }

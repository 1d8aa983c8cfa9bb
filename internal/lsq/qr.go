package lsq

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	lapack "gonum.org/v1/gonum/lapack/gonum"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// qr solves the least-squares problem by Householder QR of (X Y). Columns are scaled to norm 1
// first, so that the rank does not depend on the units of the features. The rank is the number of
// singular values above max(n, d)·ε times the largest singular value, as in
// numpy.linalg.matrix_rank. If the rank is below d, the result is the solution of minimum norm.
func (c *Samples) qr(ctx context.Context, s *Solution) error {
	norms, err := c.scales(ctx)
	if err != nil {
		return err
	}
	ynorms, err := c.targetScales(ctx)
	if err != nil {
		return err
	}
	a, z, err := c.triangle(ctx, norms, ynorms)
	if err != nil {
		return err
	}
	s.Coef = backend.NewHost[float64](c.d, c.t)
	values, err := singularValues(ctx, a)
	if err != nil {
		return err
	}
	s.Rank = 0
	for s.Rank < len(values) && values[s.Rank] > float64(max(c.n, c.d))*epsilon*values[0] {
		s.Rank++
	}
	switch s.Rank {
	case 0:
		return nil
	case c.d:
		raw := a.RawMatrix()
		for p := range c.d {
			copy(s.Coef.Row(p), z.Data[p*z.Stride:p*z.Stride+c.t])
		}
		blas64.Trsm(blas.Left, blas.NoTrans, 1, blas64.Triangular{Uplo: blas.Upper, Diag: blas.NonUnit, N: c.d, Stride: raw.Stride, Data: raw.Data},
			blas64.General{Rows: c.d, Cols: c.t, Stride: s.Coef.Stride, Data: s.Coef.Data})
		for p, v := range norms {
			for j := range c.t {
				s.Coef.Row(p)[j] /= v
			}
		}
	default:
		if _, err := run.Detached(ctx, func() bool { minimumNorm(s.Coef, a, z, norms, s.Rank); return true }); err != nil {
			return err
		}
	}
	s.Condition = values[0] / values[s.Rank-1]
	for p := range c.d {
		for j, v := range ynorms {
			s.Coef.Row(p)[j] *= v
		}
	}
	for i := range c.d {
		for j, v := range s.Coef.Row(i) {
			if v-v != 0 {
				return fmt.Errorf("w: row %d, column %d is %v", i+1, j+1, v)
			}
		}
	}
	return nil
}

// qrRows returns the number of rows that triangle processes at a time.
func (c *Samples) qrRows(n int) int { return min(n, max(2*(c.d+c.t), 1<<17/(c.d+c.t))) }

// qrBytes returns the memory of qr for n rows, in bytes.
func (c *Samples) qrBytes(n int) int64 {
	width := int64(c.d + c.t)
	if n < c.d {
		return 8 * 3 * int64(n) * width
	}
	return 8 * (width + int64(c.qrRows(n)) + 2*int64(c.d)) * width
}

// triangle returns A and Z for which ‖Aw − Z‖² and ‖Xw − Y‖² differ by a constant, where the
// columns of X and Y are divided by their norms. If n < d they are X and Y, and otherwise R of X
// and the first d rows of QᵀY. QR processes some rows at a time, each time with the triangle of the
// previous rows above the next rows (Golub and Van Loan 2013, 5.3 and 6.5).
func (c *Samples) triangle(ctx context.Context, norms, ynorms []float64) (a *mat.Dense, z blas64.General, err error) {
	width := c.d + c.t
	fill := func(row []float64, i int) {
		c.fillX(numeric.Row(row[:c.d]), i)
		c.fillY(numeric.Row(row[c.d:]), i)
		for j, v := range norms {
			if v == 0 {
				row[j] = 0
			} else {
				row[j] /= v
			}
		}
		for j, v := range ynorms {
			row[c.d+j] /= v
		}
	}
	if c.n < c.d {
		all := mat.NewDense(c.n, width, nil)
		for i := range c.n {
			if i%1024 == 0 && ctx.Err() != nil {
				return nil, z, context.Cause(ctx)
			}
			fill(all.RawRowView(i), i)
		}
		return mat.DenseCopyOf(all.Slice(0, c.n, 0, c.d)), mat.DenseCopyOf(all.Slice(0, c.n, c.d, width)).RawMatrix(), nil
	}
	rows := c.qrRows(c.n)
	stack := blas64.General{Rows: width + rows, Cols: width, Stride: width, Data: make([]float64, (width+rows)*width)}
	tau := make([]float64, width)
	work := make([]float64, 1)
	lapack64.Geqrf(stack, tau, work, -1)
	work = make([]float64, int(work[0]))
	for i := 0; i < c.n; i += rows {
		if ctx.Err() != nil {
			return nil, z, context.Cause(ctx)
		}
		r := min(rows, c.n-i)
		for k := range width { // the reflectors are stored below the triangle
			clear(stack.Data[k*width : k*width+k])
		}
		for k := range r {
			fill(stack.Data[(width+k)*width:][:width], i+k)
		}
		part := blas64.General{Rows: width + r, Cols: width, Stride: width, Data: stack.Data}
		if _, err := run.Detached(ctx, func() bool { lapack64.Geqrf(part, tau, work, len(work)); return true }); err != nil {
			return nil, z, err
		}
	}
	a = mat.NewDense(c.d, c.d, nil)
	for p := range c.d {
		copy(a.RawRowView(p)[p:], stack.Data[p*width+p:p*width+c.d])
	}
	return a, blas64.General{Rows: c.d, Cols: c.t, Stride: width, Data: stack.Data[c.d:]}, nil
}

// norms returns the norms of cols columns. fill is fillX or fillY, which computes blocks of their rows.
func (c *Samples) norms(ctx context.Context, cols int, fill func(dst backend.Host[float64], from int)) ([]float64, error) {
	norms, row := make([]float64, cols), backend.NewHost[float64](1, cols)
	for i := range c.n {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		fill(row, i)
		for j, v := range row.Data {
			norms[j] = math.Hypot(norms[j], v)
		}
	}
	return norms, nil
}

// scales returns the norm of each column of X.
func (c *Samples) scales(ctx context.Context) ([]float64, error) {
	norms, err := c.norms(ctx, c.d, c.fillX)
	for _, v := range norms {
		if math.IsInf(v, 1) {
			return nil, errors.New("values of x overflow: scale the features down")
		}
	}
	return norms, err
}

// targetScales returns the norm of each column of Y, or 1 for a column of zeros.
func (c *Samples) targetScales(ctx context.Context) ([]float64, error) {
	norms, err := c.norms(ctx, c.t, c.fillY)
	for j, v := range norms {
		if math.IsInf(v, 1) {
			return nil, errors.New("values of y overflow: scale y down")
		}
		if v == 0 {
			norms[j] = 1
		}
	}
	return norms, err
}

// singularValues returns the singular values of a in descending order.
func singularValues(ctx context.Context, a *mat.Dense) ([]float64, error) {
	var svd mat.SVD
	if ok, err := run.Detached(ctx, func() bool { return svd.Factorize(a, mat.SVDNone) }); err != nil {
		return nil, err
	} else if !ok {
		return nil, errors.New("the singular values of x did not converge")
	}
	return svd.Values(nil), nil
}

// minimumNorm sets w to the solution of min ‖A·diag(norms)·w − z‖ with the smallest ‖w‖, for an A
// of the given rank. It uses the complete orthogonal factorization of LAPACK's xGELSY, with one
// step of refinement because the norms may differ by many orders of magnitude: A P = Q (R₁₁ R₁₂),
// and B = (R₁₁ R₁₂)Pᵀ·diag(norms) = L Z has full row rank, so that w = Zᵀ L⁻¹ (Qᵀz). It overwrites
// a and z.
func minimumNorm(w backend.Host[float64], a *mat.Dense, z blas64.General, norms []float64, rank int) {
	var impl lapack.Implementation
	k, d := a.Dims()
	raw := a.RawMatrix()
	order, tau, work := make([]int, d), make([]float64, min(k, d)), make([]float64, 1)
	for j := range order {
		order[j] = -1 // −1 allows LAPACK to move the column
	}
	impl.Dgeqp3(k, d, raw.Data, raw.Stride, order, tau, work, -1)
	work = make([]float64, int(work[0]))
	impl.Dgeqp3(k, d, raw.Data, raw.Stride, order, tau, work, len(work))
	reflectors := blas64.General{Rows: k, Cols: min(k, d), Stride: raw.Stride, Data: raw.Data}
	lapack64.Ormqr(blas.Left, blas.Trans, reflectors, tau, z, work[:1], -1)
	work = make([]float64, int(work[0]))
	lapack64.Ormqr(blas.Left, blas.Trans, reflectors, tau, z, work, len(work))

	most := 0.0
	for _, v := range norms {
		most = max(most, v)
	}
	b := mat.NewDense(rank, d, nil)
	for i := range rank {
		for j := i; j < d; j++ {
			b.Set(i, order[j], a.At(i, j)*(norms[order[j]]/most))
		}
	}
	var lq mat.LQ
	lq.Factorize(b)
	left := mat.NewDense(rank, z.Cols, nil)
	for i := range rank {
		copy(left.RawRowView(i), z.Data[i*z.Stride:i*z.Stride+z.Cols])
	}
	to := mat.NewDense(d, z.Cols, nil)
	for p := range d {
		to.SetRow(p, w.Row(p))
	}
	for range 2 {
		var step, product mat.Dense
		// The error only reports that L is ill-conditioned, which occurs if norms differ by orders of magnitude.
		_ = lq.SolveTo(&step, false, left)
		to.Add(to, &step)
		product.Mul(b, to)
		for i := range rank {
			for j := range z.Cols {
				left.Set(i, j, z.Data[i*z.Stride+j]-product.At(i, j))
			}
		}
	}
	for p := range d {
		for j := range z.Cols {
			w.Row(p)[j] = to.At(p, j) / most
		}
	}
}

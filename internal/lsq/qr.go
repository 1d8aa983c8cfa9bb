package lsq

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// qr solves the least-squares problem by Householder QR of (X Y). Columns are scaled to norm 1
// first, so that the rank does not depend on the units of the features. The rank is the number of
// singular values above max(n, d)·ε times the largest singular value, as in
// numpy.linalg.matrix_rank. If the rank is below d, the result is the solution of minimum norm.
func (c *Samples) qr(t *run.Task, s *Solution) error {
	ctx := t.Ctx
	norms, err := c.scales(ctx)
	if err != nil {
		return err
	}
	ynorms, err := c.targetScales(ctx)
	if err != nil {
		return err
	}
	a, z, err := c.triangle(t, norms, ynorms)
	if err != nil {
		return err
	}
	s.Coef = backend.NewHost[float64](c.d, c.t)
	values, err := singularValues(t, a)
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
		for j := range c.t {
			w := z.Row(j)
			solveUpper(a, w)
			for p, v := range norms {
				s.Coef.Row(p)[j] = w[p] / v
			}
		}
	default:
		if err := minimumNorm(t, s.Coef, a, z, norms, s.Rank); err != nil {
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
	width := c.d + c.t
	if n < c.d {
		return 8*int64(n)*(3*int64(width)+int64(n)) + reflectorBytes(c.d, n)
	}
	rows := width + c.qrRows(n)
	return 8*int64(width)*int64(rows+3*c.d) + reflectorBytes(rows, width)
}

// triangle reduces the least-squares problems for X and Y, whose columns are scaled to norm 1. It returns a matrix
// A, and a matrix Z with a row z_j for each output j, such that ‖Aw − z_j‖² − ‖Xw − y_j‖² does not depend on w. If
// n < d, A = X and Z = Yᵀ. Otherwise A is R of X = QR, and Z is YᵀQ, computed in blocks of rows (Golub and Van
// Loan 2013, 5.3, 6.5).
func (c *Samples) triangle(t *run.Task, norms, ynorms []float64) (a, z backend.Host[float64], err error) {
	width := c.d + c.t
	block := backend.NewHost[float64](c.qrRows(c.n), width)
	if c.n < c.d {
		block = backend.NewHost[float64](c.n, width)
	}
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
	var stack backend.Matrix[float64] // the triangle above a block of rows
	if c.n >= c.d {
		if stack, err = t.B.New(width+block.Rows, width); err != nil {
			return a, z, err
		}
		defer stack.Free()
		if err := t.B.Upload(stack.View(0, 0, width, width), backend.NewHost[float64](width, width)); err != nil {
			return a, z, err
		}
	}
	for i := 0; i < c.n; i += block.Rows {
		r := min(block.Rows, c.n-i)
		for k := range r {
			if k%1024 == 0 && t.Ctx.Err() != nil {
				return a, z, context.Cause(t.Ctx)
			}
			fill(block.Row(k), i+k)
		}
		if stack == nil {
			break
		}
		if err := t.B.Upload(stack.View(width, 0, r, width), block.View(0, 0, r, width)); err != nil {
			return a, z, err
		}
		if err := triangularize(t, stack.View(0, 0, width+r, width), width); err != nil {
			return a, z, err
		}
	}
	if stack != nil {
		block = backend.NewHost[float64](c.d, width)
		if err := t.B.Download(block, stack.View(0, 0, c.d, width)); err != nil {
			return a, z, err
		}
	}
	return block.View(0, 0, block.Rows, c.d), numeric.Transpose(block.View(0, c.d, block.Rows, c.t)), nil
}

// norms returns the norms of cols columns. fill computes their rows, and is fillX or fillY.
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

// singularValues returns the min(k, d) largest singular values of the k×d matrix a in descending order. a
// is square or has more columns than rows.
func singularValues(t *run.Task, a backend.Host[float64]) ([]float64, error) {
	k := a.Rows
	if k < a.Cols {
		var err error
		if a, err = triangular(t, numeric.Transpose(a), k, k); err != nil {
			return nil, err
		}
	}
	values := numeric.Small{Rows: k, Cols: k, Data: numeric.Clone(a).Data}.SingularValues(t.Ctx)
	return values, context.Cause(t.Ctx)
}

// minimumNorm sets column j of w to the solution of min ‖A·diag(norms)·w − z_j‖ with the smallest ‖w‖, for an A of
// the given rank. As in LAPACK's xGELSY, it first computes the QR factorization with column pivoting, AP = Q (R₁₁
// R₁₂). Then w = Bᵀ(BBᵀ)⁻¹(Qᵀz) for B = (R₁₁ R₁₂)Pᵀ·diag(norms), where the factor of BBᵀ comes from the QR
// factorization of Bᵀ (Paige 1973, An error analysis of a method for solving matrix equations). One step of
// refinement follows, because the norms may differ by many orders of magnitude.
func minimumNorm(t *run.Task, w, a, z backend.Host[float64], norms []float64, rank int) error {
	k, d := a.Rows, a.Cols
	order := make([]int, d)
	for j := range order {
		order[j] = j
	}
	if rank < min(k, d) {
		augmented := backend.NewHost[float64](k, d+z.Rows)
		for i := range k {
			copy(augmented.Row(i), a.Row(i))
			for j := range z.Rows {
				augmented.Row(i)[d+j] = z.Row(j)[i]
			}
		}
		v, work := make([]float64, k), make([]float64, d+z.Rows)
		for j := range rank {
			if t.Ctx.Err() != nil {
				return context.Cause(t.Ctx)
			}
			squares := make([]float64, d)
			for i := j; i < k; i++ {
				for p, x := range augmented.Row(i)[j:d] {
					squares[j+p] += x * x
				}
			}
			pivot := j
			for p, s := range squares {
				if s > squares[pivot] {
					pivot = p
				}
			}
			order[j], order[pivot] = order[pivot], order[j]
			for i := range k {
				row := augmented.Row(i)
				row[j], row[pivot] = row[pivot], row[j]
			}
			numeric.Reflect(augmented, j, v, work)
		}
		a, z = augmented.View(0, 0, rank, d), numeric.Transpose(augmented.View(0, d, rank, z.Rows))
	}
	maxNorm := slices.Max(norms)
	b := backend.NewHost[float64](d, rank) // b holds Bᵀ
	for i := range rank {
		for j, v := range a.Row(i) {
			b.Row(order[j])[i] = v * (norms[order[j]] / maxNorm)
		}
	}
	r, err := triangular(t, b, rank, rank)
	if err != nil {
		return err
	}
	l := numeric.Transpose(r)
	for j := range z.Rows {
		x, residual := make([]float64, d), slices.Clone(z.Row(j))
		for range 2 {
			solveLower(l, residual)
			solveUpper(r, residual)
			for p := range x {
				x[p] += numeric.Dot(b.Row(p), residual)
			}
			copy(residual, z.Row(j))
			for p, v := range x {
				numeric.Axpy(-v, b.Row(p), residual)
			}
		}
		if rank < min(k, d) { // a correction by R₁₁ is accurate for each element of x
			solveUpper(a.View(0, 0, rank, rank), residual)
			for p, v := range residual {
				x[order[p]] += v / (norms[order[p]] / maxNorm)
			}
		}
		for p, v := range x {
			w.Row(p)[j] = v / maxNorm
		}
	}
	return nil
}

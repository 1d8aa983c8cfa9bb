package lsq

import (
	"context"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// Unlike gonum's LAPACK, the functions of this file sum in an order that does not depend on the processor.

// reflectors is the number of Householder reflections that are applied together.
const reflectors = 32

// reflectorBytes returns the memory of triangularize for a rows×cols matrix, in bytes.
func reflectorBytes(rows, cols int) int64 { return 8 * reflectors * (3*int64(rows) + 2*int64(cols)) }

// triangularize reduces the first cols columns of m to an upper triangle by Householder reflections. It applies the
// reflections to all columns, several at a time as I − VTVᵀ (Schreiber and Van Loan 1989, A storage-efficient WY
// representation for products of Householder transformations).
func triangularize(t *run.Task, m backend.Matrix[float64], cols int) error {
	rows, width := m.Dims()
	steps := min(rows, cols)
	size := min(reflectors, steps)
	panel, vectors := backend.NewHost[float64](rows, size), backend.NewHost[float64](rows, size)
	x, w, dots := make([]float64, rows), make([]float64, size), make([]float64, size)
	var device [4]backend.Matrix[float64] // V, T, VᵀC and TᵀVᵀC for the later columns C
	for i, dims := range [...][2]int{{rows, size}, {size, size}, {size, width}, {size, width}} {
		var err error
		if device[i], err = t.B.New(dims[0], dims[1]); err != nil {
			return err
		}
		defer device[i].Free()
	}
	for first := 0; first < steps; first += size {
		if t.Ctx.Err() != nil {
			return context.Cause(t.Ctx)
		}
		k, height := min(size, steps-first), rows-first
		p, v, tri := panel.View(0, 0, height, k), vectors.View(0, 0, height, k), backend.NewHost[float64](k, k)
		if err := t.B.Download(p, m.View(first, first, height, k)); err != nil {
			return err
		}
		for j := range k {
			tau := numeric.Reflect(p, j, x, w)
			clear(dots)
			for i := range height {
				if v.Row(i)[j] = 0; i >= j {
					v.Row(i)[j] = x[i]
					numeric.Axpy(x[i], v.Row(i)[:j], dots)
				}
			}
			for i := range j {
				tri.Row(i)[j] = -tau * numeric.Dot(tri.Row(i)[i:j], dots[i:])
			}
			tri.Row(j)[j] = tau
		}
		if err := t.B.Upload(m.View(first, first, height, k), p); err != nil {
			return err
		}
		remaining := width - first - k
		if remaining == 0 {
			continue
		}
		c, dv, dt := m.View(first, first+k, height, remaining), device[0].View(0, 0, height, k), device[1].View(0, 0, k, k)
		product, scaled := device[2].View(0, 0, k, remaining), device[3].View(0, 0, k, remaining)
		if err := t.B.Upload(dv, v); err != nil {
			return err
		}
		if err := t.B.Upload(dt, tri); err != nil {
			return err
		}
		t.B.Gemm(backend.Transpose, backend.NoTrans, 1, dv, c, 0, product)
		t.B.Gemm(backend.Transpose, backend.NoTrans, 1, dt, product, 0, scaled)
		t.B.Gemm(backend.NoTrans, backend.NoTrans, -1, dv, scaled, 1, c)
	}
	return nil
}

// triangular copies h, reduces its first cols columns by triangularize, and returns the first rows of the result.
func triangular(t *run.Task, h backend.Host[float64], cols, rows int) (backend.Host[float64], error) {
	to := backend.NewHost[float64](rows, h.Cols)
	m, err := backend.Copy(t.B, h)
	if err != nil {
		return to, err
	}
	defer m.Free()
	if err := triangularize(t, m, cols); err != nil {
		return to, err
	}
	return to, t.B.Download(to, m.View(0, 0, rows, h.Cols))
}

// solveLower overwrites b with L⁻¹b, for L in the lower triangle of l.
func solveLower(l backend.Host[float64], b []float64) {
	for i := range b {
		row := l.Row(i)
		b[i] = (b[i] - numeric.Dot(row[:i], b)) / row[i]
	}
}

// solveLowerTransposed overwrites b with L⁻ᵀb, for L in the lower triangle of l.
func solveLowerTransposed(l backend.Host[float64], b []float64) {
	for i := len(b) - 1; i >= 0; i-- {
		row := l.Row(i)
		b[i] /= row[i]
		numeric.Axpy(-b[i], row[:i], b)
	}
}

// solveUpper overwrites b with R⁻¹b, for R in the upper triangle of r.
func solveUpper(r backend.Host[float64], b []float64) {
	n := len(b)
	for i := n - 1; i >= 0; i-- {
		row := r.Row(i)
		b[i] = (b[i] - numeric.Dot(row[i+1:n], b[i+1:])) / row[i]
	}
}

func sumAbs(v []float64) (sum float64) {
	for _, x := range v {
		sum += math.Abs(x)
	}
	return sum
}

// condition estimates ‖L‖₁‖L⁻¹‖₁ of a lower triangle, where the estimate of ‖L⁻¹‖₁ is a lower bound
// (Higham 2002, Accuracy and Stability of Numerical Algorithms, algorithm 15.4).
func condition(l backend.Host[float64]) float64 {
	n := l.Rows
	sums, x, y := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range n {
		for j, v := range l.Row(i)[:i+1] {
			sums[j] += math.Abs(v)
		}
		x[i] = 1 / float64(n)
	}
	norm, inverse := 0.0, 0.0
	for _, v := range sums {
		norm = max(norm, v)
	}
	for step := range 5 {
		copy(y, x)
		solveLower(l, y)
		now := sumAbs(y)
		if step > 0 && now <= inverse {
			break
		}
		inverse = now
		for i, v := range y {
			y[i] = math.Copysign(1, v)
		}
		solveLowerTransposed(l, y)
		next := 0
		for i, v := range y {
			if math.Abs(v) > math.Abs(y[next]) {
				next = i
			}
		}
		if step > 0 && x[next] == 1 {
			break
		}
		clear(x)
		x[next] = 1
	}
	for i := range x {
		x[i] = 1 - 2*float64(i%2)
		if n > 1 {
			x[i] *= 1 + float64(i)/float64(n-1)
		}
	}
	solveLower(l, x)
	return norm * max(inverse, 2*sumAbs(x)/float64(3*n))
}

// pivotedCholesky overwrites the lower triangle of g with the first rank columns of a Cholesky factor with
// complete pivoting, until no remaining diagonal element exceeds tol. Row i of the factor is row order[i] of g.
func pivotedCholesky(ctx context.Context, g backend.Host[float64], tol float64) (order []int, rank int, err error) {
	n := g.Rows
	order = make([]int, n)
	diagonal := make([]float64, n) // the diagonal of the remaining matrix
	for i := range n {
		order[i], diagonal[i] = i, g.Row(i)[i]
	}
	for ; rank < n; rank++ {
		if ctx.Err() != nil {
			return order, rank, context.Cause(ctx)
		}
		k, p := rank, rank
		for i := k + 1; i < n; i++ {
			if diagonal[i] > diagonal[p] {
				p = i
			}
		}
		if !(diagonal[p] > tol) {
			break
		}
		order[k], order[p] = order[p], order[k]
		diagonal[k], diagonal[p] = diagonal[p], diagonal[k]
		rowK, row := g.Row(k), g.Row(p)
		if p != k { // exchange rows and columns k and p of the lower triangle
			for j := range k {
				rowK[j], row[j] = row[j], rowK[j]
			}
			for i := k + 1; i < p; i++ {
				g.Row(i)[k], row[i] = row[i], g.Row(i)[k]
			}
			for i := p + 1; i < n; i++ {
				g.Row(i)[k], g.Row(i)[p] = g.Row(i)[p], g.Row(i)[k]
			}
			row[p] = rowK[k]
		}
		pivot := math.Sqrt(diagonal[k])
		rowK[k] = pivot
		for i := k + 1; i < n; i++ {
			row := g.Row(i)
			row[k] = (row[k] - numeric.Dot(row[:k], rowK)) / pivot
			diagonal[i] -= row[k] * row[k]
		}
	}
	return order, rank, nil
}

package numeric

import (
	"math"
)

// Small is a row-major matrix on the host with at most a few hundred rows.
type Small struct {
	Rows, Cols int
	Data       []float64
}

// NewSmall returns a matrix of zeros.
func NewSmall(rows, cols int) Small { return Small{rows, cols, make([]float64, rows*cols)} }

// At returns element (i, j).
func (s Small) At(i, j int) float64 { return s.Data[i*s.Cols+j] }

// Set sets element (i, j).
func (s Small) Set(i, j int, v float64) { s.Data[i*s.Cols+j] = v }

// Cholesky overwrites the lower triangle of s with its Cholesky factor, and reports whether all pivots are positive and
// finite. s must be symmetric up to rounding.
func (s Small) Cholesky() bool {
	n := s.Rows
	for j := range n {
		for i := j; i < n; i++ {
			v := (s.At(i, j) + s.At(j, i)) / 2
			for p := range j {
				v -= s.At(i, p) * s.At(j, p)
			}
			if i > j {
				s.Set(i, j, v/s.At(j, j))
				continue
			}
			if !(v > 0) || math.IsInf(v, 1) {
				return false
			}
			s.Set(j, j, math.Sqrt(v))
		}
	}
	return true
}

// Solve overwrites b with (L Lᵀ)⁻¹ b, where L is the result of Cholesky in s.
func (s Small) Solve(b Small) {
	for c := range b.Cols {
		for i := range s.Rows {
			v := b.At(i, c)
			for p := range i {
				v -= s.At(i, p) * b.At(p, c)
			}
			b.Set(i, c, v/s.At(i, i))
		}
		for i := s.Rows - 1; i >= 0; i-- {
			v := b.At(i, c)
			for p := i + 1; p < s.Rows; p++ {
				v -= s.At(p, i) * b.At(p, c)
			}
			b.Set(i, c, v/s.At(i, i))
		}
	}
}

// Basis returns a matrix T of n rows for the n×n Gram matrix s = ZᵀZ, computed by Cholesky factorization with
// complete pivoting of s. The columns of Z T are orthonormal and span the range of Z. A column of Z is omitted if
// at most the fraction tol of its squared norm is outside the span of the columns chosen before it.
func (s Small) Basis(tol float64) Small {
	n := s.Rows
	scale, residual := make([]float64, n), make([]float64, n)
	for i := range n {
		if v := s.At(i, i); v > 0 && !math.IsInf(v, 1) {
			scale[i], residual[i] = 1/math.Sqrt(v), 1
		}
	}
	l := NewSmall(n, n) // row i holds the entries of the factor for column i of Z
	var pivots []int
	for len(pivots) < n {
		next := -1
		for i, v := range residual {
			if v > tol && (next < 0 || v > residual[next]) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		k := len(pivots)
		d := math.Sqrt(residual[next])
		for i := range n {
			if residual[i] == 0 && i != next {
				continue // the column has been chosen, or is zero
			}
			v := (s.At(i, next) + s.At(next, i)) / 2 * scale[i] * scale[next]
			for p := range k {
				v -= l.At(i, p) * l.At(next, p)
			}
			l.Set(i, k, v/d)
			residual[i] = max(residual[i]-v/d*v/d, 0)
		}
		residual[next] = 0
		pivots = append(pivots, next)
	}
	// The rows of T whose indices are in pivots are L⁻ᵀ, scaled; the other rows are 0.
	t := NewSmall(n, len(pivots))
	for k := range pivots {
		column := make([]float64, len(pivots))
		column[k] = 1
		for i := k; i >= 0; i-- {
			v := column[i]
			for p := i + 1; p <= k; p++ {
				v -= l.At(pivots[p], i) * column[p]
			}
			column[i] = v / l.At(pivots[i], i)
		}
		for i := 0; i <= k; i++ {
			t.Set(pivots[i], k, column[i]*scale[pivots[i]])
		}
	}
	return t
}

package solvers

import "math"

// small is a matrix on the host, row by row, of at most some dozens of rows: what
// the columns of a block are to each other.
type small struct {
	rows, cols int
	data       []float64
}

func newSmall(rows, cols int) small { return small{rows, cols, make([]float64, rows*cols)} }

func (s small) at(i, j int) float64     { return s.data[i*s.cols+j] }
func (s small) set(i, j int, v float64) { s.data[i*s.cols+j] = v }

// cholesky overwrites the lower triangle of s, which is symmetric but for
// rounding, with its factor, and reports whether all pivots are positive and finite.
func (s small) cholesky() bool {
	n := s.rows
	for j := range n {
		for i := j; i < n; i++ {
			v := (s.at(i, j) + s.at(j, i)) / 2
			for p := range j {
				v -= s.at(i, p) * s.at(j, p)
			}
			if i > j {
				s.set(i, j, v/s.at(j, j))
				continue
			}
			if !(v > 0) || math.IsInf(v, 1) {
				return false
			}
			s.set(j, j, math.Sqrt(v))
		}
	}
	return true
}

// solve overwrites b with (L Lᵀ)⁻¹ b, L being what cholesky left in s.
func (s small) solve(b small) {
	for c := range b.cols {
		for i := range s.rows {
			v := b.at(i, c)
			for p := range i {
				v -= s.at(i, p) * b.at(p, c)
			}
			b.set(i, c, v/s.at(i, i))
		}
		for i := s.rows - 1; i >= 0; i-- {
			v := b.at(i, c)
			for p := i + 1; p < s.rows; p++ {
				v -= s.at(p, i) * b.at(p, c)
			}
			b.set(i, c, v/s.at(i, i))
		}
	}
}

// basis returns T, n×s, such that the columns of Z T are orthonormal and span
// those of Z, for the Gram matrix s = ZᵀZ. Columns of which less than tol, as
// squares, is left by those taken before are left out; it is greedy pivoted
// Cholesky of s scaled to a diagonal of ones.
func (s small) basis(tol float64) small {
	n := s.rows
	scale, left := make([]float64, n), make([]float64, n)
	for i := range n {
		if v := s.at(i, i); v > 0 && !math.IsInf(v, 1) {
			scale[i], left[i] = 1/math.Sqrt(v), 1
		}
	}
	l := newSmall(n, n) // row i: the factor's entries of column i of Z
	var pivots []int
	for len(pivots) < n {
		next := -1
		for i, v := range left {
			if v > tol && (next < 0 || v > left[next]) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		k := len(pivots)
		d := math.Sqrt(left[next])
		for i := range n {
			if left[i] == 0 && i != next {
				continue // taken, or nothing
			}
			v := (s.at(i, next) + s.at(next, i)) / 2 * scale[i] * scale[next]
			for p := range k {
				v -= l.at(i, p) * l.at(next, p)
			}
			l.set(i, k, v/d)
			left[i] = max(left[i]-v/d*v/d, 0)
		}
		left[next] = 0
		pivots = append(pivots, next)
	}
	// T holds L⁻ᵀ, its rows at the pivots.
	t := newSmall(n, len(pivots))
	for k := range pivots {
		column := make([]float64, len(pivots))
		column[k] = 1
		for i := k; i >= 0; i-- {
			v := column[i]
			for p := i + 1; p <= k; p++ {
				v -= l.at(pivots[p], i) * column[p]
			}
			column[i] = v / l.at(pivots[i], i)
		}
		for i := 0; i <= k; i++ {
			t.set(pivots[i], k, column[i]*scale[pivots[i]])
		}
	}
	return t
}

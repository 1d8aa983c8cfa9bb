package numeric

import (
	"context"
	"math"
)

// Eigenvalues returns the eigenvalues of the symmetric matrix s in no particular order. It uses
// Householder's reduction to a tridiagonal matrix and the implicit QL method (Golub and Van Loan
// 2013, section 8.3). It overwrites s. If ctx is done, the result is meaningless.
func (s Small) Eigenvalues(ctx context.Context) []float64 {
	n := s.Rows
	d, e := make([]float64, n), make([]float64, n)
	v, p := make([]float64, n), make([]float64, n)
	for k := range n - 1 {
		if ctx.Err() != nil {
			return d
		}
		// Column k below the diagonal is reflected onto its first element.
		scale := 0.0
		for i := k + 1; i < n; i++ {
			scale = math.Max(scale, math.Abs(s.At(i, k)))
		}
		if !(scale > 0) {
			continue
		}
		size := 0.0
		for i := k + 1; i < n; i++ {
			v[i] = s.At(i, k) / scale
			size += v[i] * v[i]
		}
		alpha := -math.Copysign(math.Sqrt(size), v[k+1])
		e[k] = alpha * scale
		size -= v[k+1] * alpha // half of ‖v‖² after the change of v
		v[k+1] -= alpha
		if !(size > 0) {
			continue
		}
		// Compute p = A v and A ← A − v wᵀ − w vᵀ on the lower triangle only.
		clear(p[k+1:])
		for i := k + 1; i < n; i++ {
			row, vi, sum := s.Data[i*n:][:i], v[i], 0.0
			for j := k + 1; j < i; j++ {
				sum += row[j] * v[j]
				p[j] += row[j] * vi
			}
			p[i] += sum + s.At(i, i)*vi
		}
		dot := 0.0
		for i := k + 1; i < n; i++ {
			p[i] /= size
			dot += p[i] * v[i]
		}
		half := dot / (2 * size)
		for i := k + 1; i < n; i++ {
			p[i] -= half * v[i]
		}
		for i := k + 1; i < n; i++ {
			row, vi, pi := s.Data[i*n:][:i+1], v[i], p[i]
			for j := k + 1; j <= i; j++ {
				row[j] -= vi*p[j] + pi*v[j]
			}
		}
	}
	for i := range n {
		d[i] = s.At(i, i)
	}
	tridiagonal(d, e)
	return d
}

// tridiagonal overwrites d with the eigenvalues of the symmetric tridiagonal matrix with the
// diagonal d and the subdiagonal e. The last element of e is 0.
func tridiagonal(d, e []float64) {
	n := len(d)
	for l := range n {
		for range 60 { // two are usual; after 60 only rounding error remains
			m := l
			for ; m < n-1; m++ {
				if math.Abs(e[m]) <= Epsilon*(math.Abs(d[m])+math.Abs(d[m+1])) {
					break
				}
			}
			if m == l {
				break
			}
			g := (d[l+1] - d[l]) / (2 * e[l])
			r := math.Hypot(g, 1)
			g = d[m] - d[l] + e[l]/(g+math.Copysign(r, g))
			s, c, p := 1.0, 1.0, 0.0
			i := m - 1
			for ; i >= l; i-- {
				f, b := s*e[i], c*e[i]
				r = math.Hypot(f, g)
				e[i+1] = r
				if r == 0 {
					d[i+1] -= p
					e[m] = 0
					break
				}
				s, c = f/r, g/r
				g = d[i+1] - p
				r = (d[i]-g)*s + 2*c*b
				p = s * r
				d[i+1] = g + p
				g = c*r - b
			}
			if r == 0 && i >= l {
				continue
			}
			d[l] -= p
			e[l] = g
			e[m] = 0
		}
	}
}

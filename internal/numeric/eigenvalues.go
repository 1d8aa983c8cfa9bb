package numeric

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
)

// Eigenvalues returns the eigenvalues of the symmetric matrix s in no particular order. It reads the lower
// triangle and overwrites s. If ctx is done, the result is meaningless.
func (s Small) Eigenvalues(ctx context.Context) []float64 {
	d, e, _ := s.tridiagonalize(ctx)
	tridiagonal(ctx, d, e, Small{})
	return d
}

// Eigen returns the eigenvalues of the symmetric matrix s in descending order, and a matrix whose row i is the unit
// eigenvector of value i. It reads the lower triangle and overwrites s. If ctx is done, the result is meaningless.
func (s Small) Eigen(ctx context.Context) (values []float64, vectors Small) {
	n := s.Rows
	d, e, sizes := s.tridiagonalize(ctx)
	// The tridiagonal matrix is QᵀsQ, where Q is the product of the reflections. Set q to Qᵀ.
	q := NewSmall(n, n)
	for k := n - 1; k >= 0 && ctx.Err() == nil; k-- {
		q.Set(k, k, 1)
		if k == n-1 || sizes[k] == 0 {
			continue
		}
		v := s.Data[k*n+k+1 : (k+1)*n]
		run.Parallel(n-k-1, func(first, last int) {
			for i := k + 1 + first; i < k+1+last; i++ {
				row := q.Data[i*n+k+1 : (i+1)*n]
				Axpy(-Dot(row, v)/sizes[k], v, row)
			}
		})
	}
	tridiagonal(ctx, d, e, q)
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(d[j], d[i]) })
	values, vectors = make([]float64, n), s // the memory of s can be reused
	for i, k := range order {
		values[i] = d[k]
		copy(vectors.Data[i*n:(i+1)*n], q.Data[k*n:])
	}
	return values, vectors
}

// SingularValues returns the singular values of the square matrix s in descending order. It overwrites s. If ctx is
// done, the result is meaningless.
//
// Householder reflections reduce s to a bidiagonal matrix B (Golub and Van Loan 2013, 5.4.8). The eigenvalues of (0 Bᵀ;
// B 0) are plus and minus the singular values, and a permutation makes this matrix tridiagonal.
func (s Small) SingularValues(ctx context.Context) []float64 {
	n := s.Rows
	h := backend.Host[float64]{Rows: n, Cols: n, Stride: n, Data: s.Data}
	v, w := make([]float64, n), make([]float64, n)
	d, e := make([]float64, 2*n), make([]float64, 2*n)
	for k := range n {
		if ctx.Err() != nil {
			return d[:n]
		}
		Reflect(h, k, v, w)
		e[2*k] = s.At(k, k)
		if k == n-1 {
			break
		}
		row := s.Data[k*n+k+1 : (k+1)*n]
		u := v[:len(row)]
		copy(u, row)
		tau, beta := reflection(u)
		e[2*k+1] = beta
		run.Parallel(n-k-1, func(first, last int) {
			for i := k + 1 + first; i < k+1+last; i++ {
				target := s.Data[i*n+k+1 : (i+1)*n]
				Axpy(-tau*Dot(target, u), u, target)
			}
		})
	}
	tridiagonal(ctx, d, e, Small{})
	slices.SortFunc(d, func(a, b float64) int { return cmp.Compare(b, a) })
	for i, v := range d[:n] {
		d[i] = max(v, 0)
	}
	return d[:n]
}

// Reflect applies a Householder reflection I − τvvᵀ to the columns of a from column j on, so that the elements of
// column j below row j become 0. It returns τ and stores the vector v in v[j:a.Rows], with v[j] = 1. The slice w is
// scratch memory for a.Cols numbers.
func Reflect(a backend.Host[float64], j int, v, w []float64) (tau float64) {
	v, w = v[j:a.Rows], w[j+1:a.Cols]
	for i := range v {
		v[i] = a.Row(j + i)[j]
	}
	tau, beta := reflection(v)
	clear(w)
	for i, x := range v {
		row := a.Row(j + i)
		row[j] = 0
		Axpy(x, row[j+1:], w)
	}
	a.Row(j)[j] = beta
	for i, x := range v {
		Axpy(-tau*x, w, a.Row(j + i)[j+1:])
	}
	return tau
}

// reflection overwrites x with the v of the Householder reflection I − τvvᵀ, v[0] = 1, for which
// (I − τvvᵀ)x = (β, 0, …, 0).
func reflection(x []float64) (tau, beta float64) {
	first, tail := x[0], x[1:]
	beta = -math.Copysign(Norm2(x), first)
	x[0] = 1
	if Norm2(tail) == 0 { // even tiny elements matter, because the rows may have very different scales
		clear(tail)
		return 0, first
	}
	for i := range tail {
		tail[i] /= first - beta
	}
	return (beta - first) / beta, beta
}

// tridiagonalize reduces s to a tridiagonal matrix by Householder reflections I − vvᵀ/size (Golub and Van Loan 2013,
// 8.3.1). The results are the diagonal d, the subdiagonal e with an additional last element of 0, and the sizes, which
// are 0 where there is no reflection. The vector v of reflection k is stored in row k of s, right of the diagonal.
func (s Small) tridiagonalize(ctx context.Context) (d, e, sizes []float64) {
	n := s.Rows
	d, e, sizes = make([]float64, n), make([]float64, n), make([]float64, n)
	p := make([]float64, n)
	for k := range n - 1 {
		if ctx.Err() != nil {
			return d, e, sizes
		}
		v := s.Data[k*n : (k+1)*n] // v[i] belongs to row i; only elements with i > k are used
		// Reflect the part of column k below the diagonal onto its first element.
		scale := 0.0
		for i := k + 1; i < n; i++ {
			v[i] = s.At(i, k)
			scale = math.Max(scale, math.Abs(v[i]))
		}
		if !(scale > 0) {
			continue
		}
		size := 0.0
		for i := k + 1; i < n; i++ {
			v[i] /= scale
			size += v[i] * v[i]
		}
		alpha := -math.Copysign(math.Sqrt(size), v[k+1])
		e[k] = alpha * scale
		size -= v[k+1] * alpha // half of ‖v‖² for the v that the next statement completes
		v[k+1] -= alpha
		if !(size > 0) {
			continue
		}
		sizes[k] = size
		// Compute p = A v and A ← A − v wᵀ − w vᵀ on the lower triangle only; w replaces p.
		clear(p[k+1:])
		for i := k + 1; i < n; i++ {
			row := s.Data[i*n:][:i]
			p[i] += Dot(row[k+1:], v[k+1:i]) + s.At(i, i)*v[i]
			Axpy(v[i], row[k+1:], p[k+1:i])
		}
		dot := 0.0
		for i := k + 1; i < n; i++ {
			p[i] /= size
			dot += p[i] * v[i]
		}
		coefficient := dot / (2 * size)
		for i := k + 1; i < n; i++ {
			p[i] -= coefficient * v[i]
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
	return d, e, sizes
}

// tridiagonal overwrites d with the eigenvalues of the symmetric tridiagonal matrix with the
// diagonal d and the subdiagonal e, by the implicit QL method (Golub and Van Loan 2013, 8.3.5). The
// last element of e is 0. It applies its rotations to the rows of q, if q has rows.
func tridiagonal(ctx context.Context, d, e []float64, q Small) {
	n := len(d)
	cos, sin := make([]float64, n), make([]float64, n)
	norm := 0.0
	for i, v := range e {
		norm = max(norm, math.Abs(d[i])+math.Abs(v))
	}
	for l := range n {
		for range 60 { // two iterations are usual; after 60 only rounding errors remain
			if ctx.Err() != nil {
				return
			}
			m := l
			for ; m < n-1; m++ {
				if math.Abs(e[m]) <= Epsilon*max(math.Abs(d[m])+math.Abs(d[m+1]), norm/8) {
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
				cos[i], sin[i] = c, s
				g = d[i+1] - p
				r = (d[i]-g)*s + 2*c*b
				p = s * r
				d[i+1] = g + p
				g = c*r - b
			}
			q.rotate(i+1, m, cos, sin)
			if r == 0 && i >= l {
				continue
			}
			d[l] -= p
			e[l] = g
			e[m] = 0
		}
	}
}

// rotate applies the rotations m−1, m−2, …, l to the rows of s. Rotation i changes rows i and i+1.
func (s Small) rotate(l, m int, cos, sin []float64) {
	const width = 64 // number of columns for which two rows fit in the L1 cache
	run.Parallel((s.Cols+width-1)/width, func(first, last int) {
		for low := first * width; low < min(last*width, s.Cols); low += width {
			high := min(low+width, s.Cols)
			for i := m - 1; i >= l; i-- {
				c, t := cos[i], sin[i]
				x, y := s.Data[i*s.Cols+low:i*s.Cols+high], s.Data[(i+1)*s.Cols+low:(i+1)*s.Cols+high]
				for k, v := range x {
					x[k], y[k] = c*v-t*y[k], t*v+c*y[k]
				}
			}
		}
	})
}

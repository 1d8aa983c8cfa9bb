package lsq

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/spread"
)

// sparseColumns represents the centered columns √w(x_p − x̄_p) of sparse samples, where √w is the vector of the √w_i,
// by the sparse vectors s_p = √w·x_p and the means x̄_p. A vector u and a number t represent the dense vector u + t√w,
// which is orthogonal to √w if there is an intercept. The product of column p and this vector is s_pᵀu + t Σw x̄_p.
type sparseColumns struct {
	x        backend.CSR[float64] // s_p, one row for each feature
	y        backend.Host[float64]
	mean     []float64 // x̄; zeros without intercept
	weight   float64   // sum of the weights w_i
	diagonal []float64 // squared norms of the columns; 0 for a column that is constant up to rounding
}

func (c *Samples) sparseColumns() *sparseColumns {
	s := &sparseColumns{mean: c.meanX[0], weight: c.weight, diagonal: make([]float64, c.d), y: backend.NewHost[float64](c.t, c.n)}
	points := numeric.SparsePoints(*c.sparse)
	if c.positive.Rows != nil {
		points = points.Take(c.positive.Rows)
	}
	x := *points.Sparse
	x.Data = slices.Clone(x.Data)
	for k := range c.n {
		root := c.root(k)
		_, values := x.Row(k)
		for i := range values {
			values[i] *= root
		}
		for j, v := range c.y.Row(c.positive.Row(k)) {
			s.y.Row(j)[k] = root * (v - c.meanY[0][j] - c.meanY[1][j])
		}
	}
	s.x = x.Transposed()
	for p, mean := range s.mean {
		rows, values := s.x.Row(p)
		sum, stored, varies := 0.0, 0.0, len(rows) < c.n
		bound := spread.Rounding(float64(c.n), mean)
		for k, i := range rows {
			root := c.root(int(i))
			stored += root * root
			v := values[k] - mean*root
			varies = varies || math.Abs(v) > bound*root
			sum += v * v
		}
		if varies || !c.intercept {
			s.diagonal[p] = sum + max(c.weight-stored, 0)*mean*mean
		}
	}
	return s
}

// sparseBytes returns the memory of sparseColumns and of the vectors of its methods for n rows, in bytes.
func (c *Samples) sparseBytes(n int) int64 {
	points := numeric.SparsePoints(*c.sparse)
	return 2*points.CopyBytes(n) + 8*int64(n)*int64(c.t+2) + 8*int64(c.d)*int64(8+c.t)
}

// product returns the product of column p and u + t√w, where w holds the weights of the samples.
func (s *sparseColumns) product(p int, u []float64, t float64) float64 {
	rows, values := s.x.Row(p)
	sum := t * s.weight * s.mean[p]
	for k, i := range rows {
		sum += values[k] * u[i]
	}
	return sum
}

// add adds a times column p to the vector u + t√w, where w holds the weights of the samples. It returns the new t.
func (s *sparseColumns) add(p int, a float64, u []float64, t float64) float64 {
	rows, values := s.x.Row(p)
	for k, i := range rows {
		u[i] += a * values[k]
	}
	return t - a*s.mean[p]
}

// addAll overwrites u and returns t so that the new u + t√weights is Xw plus the old u.
func (s *sparseColumns) addAll(w, u []float64) (t float64) {
	for p, v := range w {
		if v != 0 && s.diagonal[p] > 0 {
			t = s.add(p, v, u, t)
		}
	}
	return t
}

// moments returns the moments without XᵀX.
func (s *sparseColumns) moments() *moments {
	m := &moments{c: backend.NewHost[float64](s.y.Rows, s.x.Rows), s: make([]float64, s.y.Rows)}
	for j := range m.s {
		y := s.y.Row(j)
		m.s[j] = numeric.Dot(y, y)
		for p := range s.x.Rows {
			if s.diagonal[p] > 0 {
				m.c.Row(j)[p] = s.product(p, y, 0)
			}
		}
	}
	return m
}

func (s *sparseColumns) apply(dst, w []float64) {
	u := make([]float64, s.y.Cols)
	t := s.addAll(w, u)
	for p := range dst {
		if dst[p] = 0; s.diagonal[p] > 0 {
			dst[p] = s.product(p, u, t)
		}
	}
}

// gramOf returns the lower triangle of XᵀX of the columns in list.
func (s *sparseColumns) gramOf(list []int) backend.Host[float64] {
	g := backend.NewHost[float64](len(list), len(list))
	u := make([]float64, s.y.Cols)
	for i, p := range list {
		t := s.add(p, 1, u, 0)
		for k, q := range list[:i] {
			g.Row(i)[k] = s.product(q, u, t)
		}
		g.Row(i)[i] = s.diagonal[p]
		rows, _ := s.x.Row(p)
		for _, r := range rows {
			u[r] = 0
		}
	}
	return g
}

// lsqrTol is the relative tolerance of LSQR. It allows for rounding errors in products with long columns.
const lsqrTol = 1e-13

const lsqrIters = 10000

// lsqr solves the least-squares problem of each output by LSQR (Paige and Saunders 1982, with their stopping rules
// 1 and 2). From w = 0 it converges to the solution of minimum norm.
func (c *Samples) lsqr(t *run.Task) (*Solution, error) {
	a := c.sparseColumns()
	s := &Solution{Method: "LSQR", Coef: backend.NewHost[float64](c.d, c.t)}
	root := make([]float64, c.n)
	for i := range root {
		root[i] = c.root(i)
	}
	addTransposed := func(v, u []float64) { // v ← v + Xᵀu, for dense vectors v and u
		sum := numeric.Dot(root, u)
		run.Parallel(c.d, func(first, last int) {
			for p := first; p < last; p++ {
				if a.diagonal[p] > 0 {
					v[p] += a.product(p, u, 0) - a.mean[p]*sum
				}
			}
		})
	}
	for name, values := range map[string][]float64{"x": a.x.Data, "y": a.y.Data} {
		largest := 0.0
		for _, v := range values {
			largest = max(largest, math.Abs(v))
		}
		// The squares of norms, and the product of a norm of X and a norm of y, must not overflow.
		if limit := 0x1p450; largest > limit || largest > 0 && largest < 1/limit {
			return nil, fmt.Errorf("the largest number of %s is %.2g, too far from 1 for sparse samples: scale %s", name, largest, name)
		}
	}
	size := 0.0 // ‖X‖, the Frobenius norm
	for _, v := range a.diagonal {
		size += v
	}
	size = math.Sqrt(size)
	for j := range c.t {
		u, v, x := slices.Clone(a.y.Row(j)), make([]float64, c.d), make([]float64, c.d)
		phi := normalize(u)
		addTransposed(v, u)
		alpha := normalize(v)
		w, rho, total := slices.Clone(v), alpha, phi
		// For the iterate x, phi is ‖y − Xx‖, and slope is ‖Xᵀ(y − Xx)‖.
		iters, norm := 0, 0.0
		for slope := phi * alpha; slope > lsqrTol*size*phi && phi > lsqrTol*(total+size*norm); iters++ {
			if iters == lsqrIters {
				s.Warning = fmt.Sprintf("output %d has not converged: after %d iterations of LSQR, ‖Xᵀr‖ for the residual r is %.2g ‖X‖‖r‖: use ridge with a small lambda", j+1, iters, slope/(size*phi))
				break
			}
			if err := t.Step("solve", (float64(j)+float64(iters)/lsqrIters)/float64(c.t)); err != nil {
				return nil, err
			}
			scale(-alpha, u)
			numeric.Axpy(a.addAll(v, u), root, u)
			beta := normalize(u)
			scale(-beta, v)
			addTransposed(v, u)
			alpha = normalize(v)
			r := math.Hypot(rho, beta)
			cos, sin := rho/r, beta/r
			numeric.Axpy(cos*phi/r, w, x)
			scale(-sin*alpha/r, w)
			numeric.Axpy(1, v, w)
			rho, phi = -cos*alpha, sin*phi
			slope, norm = phi*alpha*math.Abs(cos), numeric.Norm2(x)
		}
		s.Iters = max(s.Iters, iters)
		for p, weight := range x {
			s.Coef.Row(p)[j] = weight
		}
	}
	s.Intercept = c.intercepts(s.Coef)
	return s, nil
}

// normalize divides v by its norm if the norm is not 0, and returns the norm.
func normalize(v []float64) float64 {
	norm := math.Sqrt(numeric.Dot(v, v))
	if norm > 0 {
		scale(1/norm, v)
	}
	return norm
}

func scale(a float64, v []float64) { blas64.Scal(a, vector(v)) }

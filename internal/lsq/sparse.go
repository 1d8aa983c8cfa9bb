package lsq

import (
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/spread"
)

// sparseColumns holds the columns √w(x_p − x̄_p) of sparse samples. It stores the sparse vectors
// √w·x_p and the means x̄_p. With an intercept every column and y are orthogonal to √w, so that a
// vector u + t√w in the span of the columns and y has the product x_pᵀu + t Σw x̄_p with column p,
// where x_p is the stored vector.
type sparseColumns struct {
	x        backend.CSR[float64] // the stored vectors, one row for each feature
	y        backend.Host[float64]
	mean     []float64 // x̄; zeros without intercept
	weight   float64   // Σ w
	diagonal []float64 // squared norms of the columns; 0 for a column that is constant up to rounding
}

func (c *Samples) sparseColumns() *sparseColumns {
	s := &sparseColumns{mean: c.meanX[0], weight: c.weight, diagonal: make([]float64, c.d), y: backend.NewHost[float64](c.t, c.n)}
	points := numeric.SparsePoints(*c.sparse)
	if c.part.Rows != nil {
		points = points.Take(c.part.Rows)
	}
	x := *points.Sparse
	x.Data = slices.Clone(x.Data)
	for k := range c.n {
		root := c.root(k)
		_, values := x.Row(k)
		for i := range values {
			values[i] *= root
		}
		for j, v := range c.y.Row(c.part.Row(k)) {
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

// sparseBytes returns the memory of sparseColumns for n rows and of the vectors that its methods
// compute, in bytes.
func (c *Samples) sparseBytes(n int) int64 {
	points := numeric.SparsePoints(*c.sparse)
	return 2*points.CopyBytes(n) + 8*int64(n)*int64(c.t+2) + 8*int64(c.d)*int64(8+c.t)
}

// product returns the product of column p and u + t√w.
func (s *sparseColumns) product(p int, u []float64, t float64) float64 {
	rows, values := s.x.Row(p)
	sum := t * s.weight * s.mean[p]
	for k, i := range rows {
		sum += values[k] * u[i]
	}
	return sum
}

// add adds a times column p to u + t√w, and returns the new t.
func (s *sparseColumns) add(p int, a float64, u []float64, t float64) float64 {
	rows, values := s.x.Row(p)
	for k, i := range rows {
		u[i] += a * values[k]
	}
	return t - a*s.mean[p]
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

// apply computes dst = XᵀXw.
func (s *sparseColumns) apply(dst, w []float64) {
	u, t := make([]float64, s.y.Cols), 0.0
	for p, v := range w {
		if v != 0 && s.diagonal[p] > 0 {
			t = s.add(p, v, u, t)
		}
	}
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

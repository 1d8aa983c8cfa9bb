package solvertest

import (
	"math"
	"math/rand/v2"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// problem returns n samples of d normal features, with t smooth targets plus noise, weights from 1/2 to 2, and a λ
// that makes the condition number about 1000.
func (c *cell) problem(r *rand.Rand, n, d, t int) solvers.Problem {
	p := solvers.Problem{
		Kernel:  c.kernel,
		X:       backend.NewHost[float64](n, d),
		Y:       backend.NewHost[float64](n, t),
		Weights: make([]float64, n),
	}
	for i := range n {
		sum := 0.0
		for j := range d {
			v := r.NormFloat64()
			if c.sparse && r.IntN(3) == 0 {
				v = 0
			}
			p.X.Row(i)[j] = v
			sum += float64(j+1) * v
		}
		for j := range t {
			p.Y.Row(i)[j] = math.Sin(sum+float64(j)) + 0.3*sum + 0.1*r.NormFloat64()
		}
		p.Weights[i] = math.Exp2(2*r.Float64() - 1)
	}
	trace := 0.0
	for i := range n {
		trace += kernels.Diag(c.kernel, p.X.Row(i))
	}
	p.Lambda = trace / 1000
	return p
}

// rowsOf returns the given rows of h, in the given order.
func rowsOf(h backend.Host[float64], rows []int) backend.Host[float64] {
	selected := backend.NewHost[float64](len(rows), h.Cols)
	for i, row := range rows {
		copy(selected.Row(i), h.Row(row))
	}
	return selected
}

// subset returns p with only the given rows; a row may occur several times.
func subset(p solvers.Problem, rows []int) solvers.Problem {
	q := p
	q.X, q.Y = rowsOf(p.X, rows), rowsOf(p.Y, rows)
	if p.Weights != nil {
		q.Weights = make([]float64, len(rows))
		for i, row := range rows {
			q.Weights[i] = p.Weights[row]
		}
	}
	return q
}

func upTo(n int) []int {
	rows := make([]int, n)
	for i := range rows {
		rows[i] = i
	}
	return rows
}

// column returns column j of h as a matrix.
func column(h backend.Host[float64], j int) backend.Host[float64] { return h.View(0, j, h.Rows, 1) }

// padded returns a copy of h with gaps of NaN between the rows.
func padded(h backend.Host[float64]) backend.Host[float64] {
	storage := backend.NewHost[float64](h.Rows, h.Cols+3)
	for i := range storage.Data {
		storage.Data[i] = math.NaN()
	}
	copied := storage.View(0, 1, h.Rows, h.Cols)
	for i := range h.Rows {
		copy(copied.Row(i), h.Row(i))
	}
	return copied
}

// values returns f(z) for the rows z, by res.Coef if it is set for a linear kernel, otherwise by res.Alpha.
func values(p solvers.Problem, res *solvers.Result, z backend.Host[float64]) backend.Host[float64] {
	f := backend.NewHost[float64](z.Rows, p.Y.Cols)
	for i := range z.Rows {
		for j, b := range res.Intercept {
			f.Row(i)[j] = b
			if len(res.Coef.Data) > 0 {
				for q, v := range z.Row(i) {
					f.Row(i)[j] += v * res.Coef.Row(q)[j]
				}
				continue
			}
			for q := range p.X.Rows {
				f.Row(i)[j] += res.Alpha.Row(q)[j] * kernels.Eval(p.Kernel, p.X.Row(q), z.Row(i))
			}
		}
	}
	return f
}

// points returns the samples and some other points, at which tests compare functions.
func points(r *rand.Rand, p solvers.Problem) backend.Host[float64] {
	z := backend.NewHost[float64](p.X.Rows+5, p.X.Cols)
	for i := range z.Rows {
		for j := range z.Cols {
			if i < p.X.Rows {
				z.Row(i)[j] = p.X.Row(i)[j]
			} else {
				z.Row(i)[j] = r.NormFloat64()
			}
		}
	}
	return z
}

// compare requires |got − want| ≤ bound(i, j) for row i and output j, and logs the largest quotient.
func (c *cell) compare(name string, got, want backend.Host[float64], bound func(i, j int) float64) {
	c.Helper()
	if got.Rows != want.Rows || got.Cols != want.Cols {
		c.Fatalf("%s: is %d×%d, want %d×%d", name, got.Rows, got.Cols, want.Rows, want.Cols)
	}
	largest, failures := 0.0, 0
	for i := range got.Rows {
		for j, g := range got.Row(i) {
			w, b := want.Row(i)[j], bound(i, j)
			if !(math.Abs(g-w) <= b) {
				if failures++; failures <= 3 {
					c.Errorf("%s: row %d, output %d: got %v, want %v: difference %.3g, allowed %.3g", name, i, j, g, w, math.Abs(g-w), b)
				}
			} else if b > 0 {
				largest = max(largest, math.Abs(g-w)/b)
			}
		}
	}
	c.Logf("%s: at most %.2g of the allowed difference", name, largest)
}

// sameBits requires equal results.
func (c *cell) sameBits(name string, got, want *solvers.Result) {
	c.Helper()
	exact := func(int, int) float64 { return 0 }
	c.compare(name+": alpha", got.Alpha, want.Alpha, exact)
	c.compare(name+": coef", got.Coef, want.Coef, exact)
	c.compare(name+": intercept", rowOf(got.Intercept), rowOf(want.Intercept), exact)
	if got.Residual != want.Residual {
		c.Errorf("%s: residual %v, want %v", name, got.Residual, want.Residual)
	}
}

func rowOf(v []float64) backend.Host[float64] {
	return backend.Host[float64]{Rows: 1, Cols: len(v), Stride: len(v), Data: v}
}

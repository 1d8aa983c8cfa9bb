package solvertest

import (
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/solvers"
)

// The tests of this file compare two solutions that are equal in exact arithmetic, each within the oracle's bound.

func testPermutedRows(c *cell) {
	c.forEach(func(c *cell, p solvers.Problem) {
		r := c.random()
		z := points(r, p)
		perm := r.Perm(p.X.Rows)
		q := subset(p, perm)
		o := newOracle(p)
		a, b := c.solve(p), c.solve(q)
		c.compare("values", values(q, b, z), values(p, a, z), func(i, j int) float64 { return 2 * o.valueBound(z.Row(i), j) })
		if len(a.Alpha.Data) > 0 {
			c.compare("alpha", b.Alpha, rowsOf(a.Alpha, perm), func(_, j int) float64 { return 2 * o.alphaBound(j) })
		}
	})
}

// testScaledTargets checks that scaling the targets by a power of two scales the solution without rounding.
func testScaledTargets(c *cell) {
	c.forEach(func(c *cell, p solvers.Problem) {
		const factor = 1 << 20
		want := c.solve(p)
		q := p
		q.Y = rowsOf(p.Y, upTo(p.Y.Rows))
		scale(q.Y, factor)
		got := c.solve(q)
		scale(want.Alpha, factor)
		scale(want.Coef, factor)
		scale(rowOf(want.Intercept), factor)
		c.sameBits("targets times 2^20", got, want)
	})
}

func scale(h backend.Host[float64], factor float64) {
	for i := range h.Data {
		h.Data[i] *= factor
	}
}

// offset is added to data that are rounded to multiples of 1/offset, so that the sums are exact.
const offset = 1 << 20

// shifted rounds h in place and returns the sum of h and offset.
func shifted(h backend.Host[float64]) backend.Host[float64] {
	s := backend.NewHost[float64](h.Rows, h.Cols)
	for i := range h.Data {
		h.Data[i] = math.Round(h.Data[i]*offset) / offset
		s.Data[i] = h.Data[i] + offset
	}
	return s
}

// testShiftedTargets adds a constant to the targets, which must only be added to the intercept.
func testShiftedTargets(c *cell) {
	r := c.random()
	p := c.problem(r, 24, c.features, 2)
	p.Intercept = true
	q := p
	q.Y = shifted(p.Y)
	o := newOracle(p)
	a, b := c.solve(p), c.solve(q)
	alpha := func(_, j int) float64 { return 2 * o.alphaBound(j) }
	c.compare("alpha", b.Alpha, a.Alpha, alpha)
	// w = Xᵀα
	c.compare("coef", b.Coef, a.Coef, func(_, j int) float64 { return norm(p.X) * alpha(0, j) })
	for j, v := range a.Intercept {
		// The last term bounds the error of rounding an intercept near offset.
		allowed := 2*o.interceptBound(j) + 2*norm(p.X)*norm(p.X)*o.alphaBound(j) + 4*epsilon*offset
		if d := math.Abs(b.Intercept[j] - v - offset); !(d <= allowed) {
			c.Errorf("intercept of output %d is wrong by %.3g, allowed %.3g", j, d, allowed)
		}
	}
}

// testShiftedFeatures adds a constant to the features of a linear kernel. Only the intercept may change.
func testShiftedFeatures(c *cell) {
	if !isLinear(c.kernel) || c.sparse {
		return // an offset changes the solution for other kernels, unless they are translation invariant; sparse samples are not centered
	}
	r := c.random()
	p := c.problem(r, 24, c.features, 2)
	p.Intercept = true
	q := p
	q.X = shifted(p.X)
	o := newOracle(p)
	a, b := c.solve(p), c.solve(q)
	c.compare("coef", b.Coef, a.Coef, func(_, j int) float64 { return 2 * norm(p.X) * o.alphaBound(j) })
}

func testWeightsAreRepetitions(c *cell) {
	for _, intercept := range []bool{false, true} {
		r := c.random()
		p := c.problem(r, 12, c.features, 2) // 24 samples when each is repeated by its weight
		p.Intercept = intercept
		var rows []int
		for i := range p.Weights {
			times := 1 + i%3
			p.Weights[i] = float64(times)
			rows = append(rows, slices.Repeat([]int{i}, times)...)
		}
		q := subset(p, rows)
		q.Weights = nil
		op, oq := newOracle(p), newOracle(q)
		z := points(r, p)
		c.compare("values", values(p, c.solve(p), z), values(q, c.solve(q), z), func(i, j int) float64 {
			return op.valueBound(z.Row(i), j) + oq.valueBound(z.Row(i), j)
		})
	}
}

func testZeroWeights(c *cell) {
	for _, intercept := range []bool{false, true} {
		r := c.random()
		p := c.problem(r, 24, c.features, 2)
		p.Intercept = intercept
		var rows []int
		for i := range p.Weights {
			if i%4 == 1 {
				p.Weights[i] = 0
			} else {
				rows = append(rows, i)
			}
		}
		q := subset(p, rows)
		o := newOracle(q)
		z := points(r, p)
		a, b := c.solve(p), c.solve(q)
		c.compare("values", values(p, a, z), values(q, b, z), func(i, j int) float64 { return 2 * o.valueBound(z.Row(i), j) })
		for i := range a.Alpha.Rows {
			for j, v := range a.Alpha.Row(i) {
				if p.Weights[i] == 0 && v != 0 {
					c.Errorf("alpha of row %d, output %d is %v with weight 0", i, j, v)
				}
			}
		}
	}
}

func testOutputs(c *cell) {
	c.forEach(func(c *cell, p solvers.Problem) {
		z := points(c.random(), p)
		o := newOracle(p)
		all := values(p, c.solve(p), z)
		for j := range p.Y.Cols {
			q := p
			q.Y = column(p.Y, j)
			c.compare("one output", values(q, c.solve(q), z), column(all, j), func(i, _ int) float64 { return 2 * o.valueBound(z.Row(i), j) })
		}
	})
}

// testSameBits checks that a second solve gives the same bits, also with gaps between the rows of the inputs.
func testSameBits(c *cell) {
	c.forEach(func(c *cell, p solvers.Problem) {
		want := c.solve(p)
		c.sameBits("again", c.solve(p), want)
		q := p
		q.X, q.Y = padded(p.X), padded(p.Y)
		c.sameBits("padded", c.solve(q), want)
		exact := func(int, int) float64 { return 0 }
		c.compare("x afterwards", q.X, p.X, exact)
		c.compare("y afterwards", q.Y, p.Y, exact)
		for i := range q.X.Rows - 1 {
			end := i*q.X.Stride + q.X.Cols
			for _, v := range q.X.Data[end : (i+1)*q.X.Stride] {
				if !math.IsNaN(v) {
					c.Fatal("memory between the rows of x was written")
				}
			}
		}
	})
}

package solvertest

import (
	"errors"
	"math"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// The tests of this file compare with the oracle and with closed-form solutions.

func isLinear(k kernels.Kernel) bool { return kernels.Equal(k, kernels.Linear{}) }

// againstOracle compares res with the exact solution.
func (c *cell) againstOracle(p solvers.Problem, res *solvers.Result, z backend.Host[float64]) {
	c.Helper()
	o := newOracle(p)
	c.compare("values", values(p, res, z), o.values(z), func(i, j int) float64 { return o.valueBound(z.Row(i), j) })
	if len(res.Alpha.Data) > 0 {
		c.compare("alpha", res.Alpha, o.coefficients(), func(_, j int) float64 { return o.alphaBound(j) })
	}
	if (isLinear(p.Kernel) && (!c.sparse || c.method == solvers.Primal)) != (len(res.Coef.Data) > 0) {
		c.Errorf("coef has %d entries with the kernel %v", len(res.Coef.Data), p.Kernel)
	}
	if !p.Intercept {
		for j, b := range res.Intercept {
			if b != 0 {
				c.Errorf("intercept of output %d is %v, but the problem has no intercept", j, b)
			}
		}
	}
}

func testOracle(c *cell) {
	c.forEach(func(c *cell, p solvers.Problem) {
		c.againstOracle(p, c.solve(p), points(c.random(), p))
	})
}

func testDuplicateRows(c *cell) {
	c.forEach(func(c *cell, p solvers.Problem) {
		n := p.X.Rows
		for i := n / 2; i < n; i++ {
			copy(p.X.Row(i), p.X.Row(i-n/2))
		}
		c.againstOracle(p, c.solve(p), points(c.random(), p))
	})
}

// testOneSample checks α = y/(k + λ/w), where k = k(x, x). With an intercept, b = y, and f = y everywhere.
func testOneSample(c *cell) {
	if c.kernel.Check(1) != nil {
		c.Skipf("%v is not a kernel of one feature", c.kernel)
	}
	one := func(v float64) backend.Host[float64] { return rowOf([]float64{v}) }
	p := solvers.Problem{Kernel: c.kernel, X: one(1.5), Y: one(3), Weights: []float64{2}, Lambda: 0.5}
	k := kernels.Diag(c.kernel, []float64{1.5})
	// The bound covers a few rounding errors and the tolerance of an iteration, relative to the target 3.
	bound := func(int, int) float64 { return (16*epsilon + c.par.Tol) * 3 }
	c.compare("value", values(p, c.solve(p), p.X), one(k*3/(k+0.25)), bound)
	p.Intercept = true
	c.compare("value with intercept", values(p, c.solve(p), p.X), one(3), bound)
	c.compare("intercept", rowOf(c.solve(p).Intercept), one(3), func(int, int) float64 {
		return (16*epsilon + c.par.Tol) * 3 * max(1, k) // α, which should be 0, is a rounding error; kα is k times as large
	})
}

// testLargeLambda checks that α approaches Wy/λ. The next term of the series is −WKWy/λ².
func testLargeLambda(c *cell) {
	r := c.random()
	p := c.problem(r, 24, c.features, 2)
	o := newOracle(p)
	p.Lambda = 1e6 * o.a
	z := points(r, p)
	want := backend.NewHost[float64](z.Rows, 2)
	wy, largest := backend.NewHost[float64](p.X.Rows, 2), 0.0
	for q, w := range p.Weights {
		largest = max(largest, w)
		for j, y := range p.Y.Row(q) {
			wy.Row(q)[j] = w * y
		}
	}
	sizes := make([]float64, z.Rows) // ‖k_z‖
	for i := range z.Rows {
		for q := range p.X.Rows {
			k := kernels.Eval(p.Kernel, p.X.Row(q), z.Row(i))
			sizes[i] = math.Hypot(sizes[i], k)
			for j := range want.Cols {
				want.Row(i)[j] += k * wy.Row(q)[j] / p.Lambda
			}
		}
	}
	c.compare("values", values(p, c.solve(p), z), want, func(i, j int) float64 {
		bound := sizes[i] * norm(column(wy, j)) / p.Lambda
		return bound * (largest*o.a/p.Lambda + o.unit()*largest)
	})
}

// testSmallLambda checks that for λ = 0 the function interpolates the targets, if that is possible.
func testSmallLambda(c *cell) {
	r := c.random()
	if c.method == solvers.Modes {
		p := c.problem(r, 4, c.features, 1)
		p.Lambda = 0
		if _, err := solvers.Solve(c.Context(), c.dev, p, c.par); err == nil || !strings.Contains(err.Error(), "lambda must be > 0") {
			c.Errorf("λ = 0 gives the error %v", err)
		}
		return
	}
	if c.method == solvers.Primal {
		c.linearTargets(c.problem(r, 24, c.features, 2))
		return
	}
	for _, intercept := range []bool{false, true} {
		// For four samples of four features, K has full rank for every kernel except the centered linear one.
		if p := c.problem(r, 4, c.features, 2); !(intercept && isLinear(c.kernel)) {
			p.Lambda, p.Intercept = 0, intercept
			o := newOracle(p)
			cond := o.a * norm(o.inverse)
			if cond > 1e10 {
				c.Fatalf("the problem of this test has condition %.3g: choose another seed", cond)
			}
			if single := c.par.Operator == solvers.Stored32 || c.par.Operator == solvers.Unstored32; single && cond > 1e5 || c.par.Operator == solvers.Fixed16 && cond > 1e3 {
				// Refinement needs an inner solution with a correct digit. With the condition number 10⁵ and rounding
				// errors of 10⁻⁷, or 10³ and 10⁻⁵, no digit may be correct.
				_, err := solvers.Solve(c.Context(), c.dev, c.form(p), c.par)
				if inaccurate := new(solvers.ConvergenceError); err != nil && !errors.As(err, &inaccurate) {
					c.Errorf("not a ConvergenceError: %v", err)
				}
				continue
			}
			c.compare("values", values(p, c.solve(p), p.X), p.Y, func(i, j int) float64 { return o.valueBound(p.X.Row(i), j) })
		}
	}
}

// linearTargets uses λ = 0 and targets that are linear in x. The fit must have the given coefficients.
func (c *cell) linearTargets(p solvers.Problem) {
	p.Lambda, p.Intercept = 0, true
	n, d := p.X.Rows, p.X.Cols
	augmented := zeros(n, d+1) // [X 1]
	for i := range n {
		for j, v := range p.X.Row(i) {
			augmented[i][j].SetFloat64(v)
			p.Y.Row(i)[0] = 3
			p.Y.Row(i)[1] = -1
		}
		augmented[i][d].SetInt64(1)
		for j, v := range p.X.Row(i) {
			p.Y.Row(i)[0] += float64(j+1) * v
			p.Y.Row(i)[1] -= v
		}
	}
	// The weights from 1/2 to 2 at most double the norms of XᵀWX and of its inverse.
	square := zeros(d+1, d+1)
	for i := range square {
		for j := range square {
			for q := range n {
				square[i][j].Add(square[i][j], real(0).Mul(augmented[q][i], augmented[q][j]))
			}
		}
	}
	condition := 4 * norm(rounded(square)) * norm(rounded(invert(square)))
	unit := 8 * epsilon * float64(n+d)
	res := c.solve(p)
	want := backend.NewHost[float64](d, 2)
	for j := range d {
		want.Row(j)[0], want.Row(j)[1] = float64(j+1), -1
	}
	bound := func(_, j int) float64 { return unit * condition * (norm(column(want, j)) + 3) }
	c.compare("coef", res.Coef, want, bound)
	c.compare("intercept", rowOf(res.Intercept), rowOf([]float64{3, -1}), bound)
}

// testResidual checks that the reported residual is small and agrees with a residual computed on the host, also
// with an inaccurate factor.
func testResidual(c *cell) {
	c.forEach(func(c *cell, p solvers.Problem) {
		o := newOracle(p)
		res := c.solve(p)
		want, noise := residual(p, res, o)
		if !(res.Residual <= noise) {
			c.Errorf("residual %.3g, a stable method stays below %.3g", res.Residual, noise)
		}
		if !(math.Abs(res.Residual-want) <= noise) {
			c.Errorf("the reported residual is %.3g, but the residual computed on the host is %.3g ± %.3g", res.Residual, want, noise)
		}

		if c.able {
			return
		}
		wrongFactor := &device{Device: c.dev, factor: 1e-2}
		res, err := solvers.Solve(c.Context(), wrongFactor, c.form(p), c.par)
		var inaccurate *solvers.ConvergenceError
		if errors.As(err, &inaccurate) {
			res, err = inaccurate.Result, nil
			if !(res.Residual > inaccurate.Tol) {
				c.Errorf("%v, but its residual is %.3g", inaccurate, res.Residual)
			}
		} else if c.method == solvers.Dual || c.method == solvers.Primal {
			c.Fatalf("the wrong factor is not reported: %v", err)
		}
		if err != nil {
			c.Fatal(err)
		}
		want, noise = residual(p, res, o)
		if !(math.Abs(res.Residual-want) <= noise) {
			c.Errorf("wrong factor: the reported residual is %.3g, but the residual computed on the host is %.3g ± %.3g", res.Residual, want, noise)
		}
	})
}

// residual computes Result.Residual on the host, and a bound of its rounding errors.
func residual(p solvers.Problem, res *solvers.Result, o *oracle) (largest, noise float64) {
	n, d := p.X.Rows, p.X.Cols
	weight := func(i int) float64 {
		if p.Weights == nil {
			return 1
		}
		return p.Weights[i]
	}
	f := values(p, res, p.X)
	for j := range p.Y.Cols {
		var r, size backend.Host[float64]
		var scale float64
		if res.Method == solvers.Primal {
			xbar, ybar := mean(p, p.X), mean(p, p.Y)
			r, size = backend.NewHost[float64](d, 1), backend.NewHost[float64](d, 1)
			for q := range d {
				for i := range n {
					x, y := weight(i)*(p.X.Row(i)[q]-xbar[q]), p.Y.Row(i)[j]
					r.Data[q] += x * (y - f.Row(i)[j])
					size.Data[q] += x * (y - ybar[j])
				}
				r.Data[q] -= p.Lambda * res.Coef.Row(q)[j]
			}
			scale = o.a*norm(column(res.Coef, j)) + norm(p.X)*o.y[j]*2
		} else {
			r, size = backend.NewHost[float64](n+1, 1), backend.NewHost[float64](n, 1)
			ybar := mean(p, p.Y)[j]
			for i := range n {
				size.Data[i] = p.Y.Row(i)[j] - ybar
				a := res.Alpha.Row(i)[j]
				r.Data[i] = f.Row(i)[j] + p.Lambda/weight(i)*a - p.Y.Row(i)[j]
				if p.Intercept {
					r.Data[n] += a
				}
			}
			scale = o.a*norm(column(res.Alpha, j)) + o.y[j]
		}
		largest = max(largest, norm(r)/norm(size))
		noise = max(noise, 2*o.unit()*scale/norm(size))
	}
	return largest, noise
}

// mean returns the weighted means of the columns of h, or zeros without an intercept.
func mean(p solvers.Problem, h backend.Host[float64]) []float64 {
	m, total := make([]float64, h.Cols), 0.0
	for i := range h.Rows {
		w := 1.0
		if p.Weights != nil {
			w = p.Weights[i]
		}
		total += w
		for j, v := range h.Row(i) {
			m[j] += w * v
		}
	}
	for j := range m {
		m[j] /= total
		if !p.Intercept {
			m[j] = 0
		}
	}
	return m
}

// testSingular checks that a system without a unique solution gives an error and no numbers.
func testSingular(c *cell) {
	if c.method == solvers.Modes {
		return // testSmallLambda covers λ = 0 for Modes
	}
	r := c.random()
	p := c.problem(r, 24, c.features, 1)
	p.Lambda, p.Weights = 0, nil
	refused := func(p solvers.Problem) {
		c.Helper()
		_, err := solvers.Solve(c.Context(), c.dev, c.form(p), c.par)
		if err == nil {
			c.Fatal("a singular system was solved")
		}
		var pivot *backend.PivotError
		var inaccurate *solvers.ConvergenceError
		switch {
		case errors.As(err, &inaccurate) && (c.method == solvers.CG || c.method == solvers.Mixed):
		case !errors.As(err, &pivot) || !errors.Is(err, backend.ErrNotPosDef):
			c.Errorf("not a PivotError: %v", err)
		}
		if !strings.Contains(err.Error(), "raise lambda") {
			c.Errorf("the error does not say what to do: %v", err)
		}
		c.nothingLeft()
	}
	if c.method != solvers.Primal {
		copy(p.X.Row(20), p.X.Row(3))
		refused(p)
		return
	}
	for _, intercept := range []bool{false, true} {
		p.Intercept = intercept
		q := p
		q.X = rowsOf(p.X, upTo(p.X.Rows))
		for i := range q.X.Rows {
			q.X.Row(i)[2] = q.X.Row(i)[0] - q.X.Row(i)[1]
		}
		refused(q)
		constant := 0.0
		if intercept {
			constant = 0.1
		}
		for i := range q.X.Rows {
			q.X.Row(i)[2] = constant
		}
		refused(q)
		refused(subset(p, upTo(3))) // fewer samples than features
	}
}

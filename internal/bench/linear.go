package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/bench/pypeer"
	"github.com/mercer-go/mercer/learners"
)

// linearLimit bounds the excess of a linear model's objective over its minimum, relative to the objective for zero
// weights. Each implementation uses the largest of its tolerances for which the excess is within this limit.
const linearLimit = 1e-6

// atEqualObjective returns w with another function Run. The first call of Run fits with decreasing tolerances, which
// it passes to set, until the residual is at most linearLimit. Later calls use the last of these tolerances.
func (w competitor) atEqualObjective(set func(tol float64), residual func(function) (float64, error)) competitor {
	fit, duration, result := w.Run, w.Took, w.result
	var last time.Duration
	accepted, tolerance := false, 0.0
	timedFit := func() error {
		start := time.Now()
		err := fit()
		if last = time.Since(start); duration != nil {
			last = duration()
		}
		return err
	}
	w.Took = func() time.Duration { return last }
	w.Run = func() error {
		if accepted {
			return timedFit()
		}
		for k := range 17 {
			tolerance = math.Pow(10, float64(1-k))
			set(tolerance)
			if err := timedFit(); err != nil {
				return err
			}
			f, err := result()
			if err != nil {
				return err
			}
			excess, err := residual(f)
			if accepted = excess <= linearLimit; accepted || err != nil {
				return err
			}
		}
		return fmt.Errorf("no tolerance leads to an objective within %.0e of its minimum", linearLimit)
	}
	w.result = func() (function, error) {
		f, err := result()
		f.tolerance = tolerance
		return f, err
	}
	return w
}

// newLinear generates the data of linear models as in Friedman, Hastie and Tibshirani (2010, section 5.1):
// standard normal features with pairwise correlation 0.1, coefficients (−1)^j exp(−j/10), j = 0, 1, …, and noise
// with a third of the variance of the linear function. For classification the target is 1 with the probability
// 1/(1 + e^−y), otherwise 0.
func newLinear(n, d int, classes bool) *synthetic {
	rng := rand.New(rand.NewPCG(5, 6))
	s := &synthetic{x: backend.NewHost[float64](n, d), y: backend.NewHost[float64](n, 1), lambda: 1}
	f := s.y.Data
	for i := range n {
		shared := rng.NormFloat64()
		row := s.x.Row(i)
		for j := range row {
			row[j] = math.Sqrt(0.1)*shared + math.Sqrt(0.9)*rng.NormFloat64()
			f[i] += row[j] * math.Exp(-float64(j)/10) * float64(1-2*(j%2))
		}
	}
	noise := floats.Norm(f, 2) / math.Sqrt(3*float64(n))
	for i := range f {
		f[i] += noise * rng.NormFloat64()
		if classes {
			p := 1 / (1 + math.Exp(-f[i]))
			if f[i] = 0; rng.Float64() < p {
				f[i] = 1
			}
		}
	}
	return s
}

// A linearProblem has one objective F for each column of W, the coefficients of a linear model.
type linearProblem struct {
	judge
	// objectives returns F for each column of W, and lower bounds on the minima.
	objectives func(w backend.Host[float64]) (values, lower []float64)
	lower      []float64
	zero       float64 // F(0)
}

// excess returns the largest (F − F*)/F(0) over the columns of W, where F* is a lower bound on the minimum.
func (p *linearProblem) excess(f function) (largest float64, err error) {
	if w := f.linear; w.Rows != p.x.Cols || w.Cols != len(p.lower) {
		return 0, fmt.Errorf("bench: fit: the matrix of the coefficients is %d × %d, want %d × %d", w.Rows, w.Cols, p.x.Cols, len(p.lower))
	}
	values, _ := p.objectives(f.linear)
	for i, v := range values {
		largest = max(largest, (v-p.lower[i])/p.zero)
	}
	return largest, nil
}

// lassoObjectives returns ½‖y − Xw‖² + μ‖w‖₁ for the μ of each column. The lower bound on the minimum is the dual
// objective ½‖y‖² − ½‖y − θ‖² at θ = s(y − Xw) with the largest s ≤ 1 for which ‖Xᵀθ‖∞ ≤ μ.
func (j judge) lassoObjectives(mus []float64) func(backend.Host[float64]) (values, lower []float64) {
	return func(w backend.Host[float64]) (values, lower []float64) {
		var r, g mat.Dense
		r.Mul(matrixOf(j.x), matrixOf(w))
		r.Apply(func(i, _ int, f float64) float64 { return j.y.Data[i] - f }, &r)
		g.Mul(matrixOf(j.x).T(), &r)
		for c, mu := range mus {
			residual := mat.Col(nil, c, &r)
			scale := min(1, mu/floats.Norm(mat.Col(nil, c, &g), math.Inf(1)))
			square := floats.Dot(residual, residual)
			values = append(values, square/2+mu*floats.Norm(mat.Col(nil, c, matrixOf(w)), 1))
			lower = append(lower, scale*floats.Dot(residual, j.y.Data)-scale*scale*square/2)
		}
		return values, lower
	}
}

// logisticObjectives returns F(w) = Σ ln(1 + e^−f) + (λ/2)‖w‖², where f is wᵀx for samples of class
// 1 and −wᵀx for class 0. The minimum of F is at least F(w) − ‖∇F(w)‖²/2λ.
func (j judge) logisticObjectives(w backend.Host[float64]) (values, lower []float64) {
	var r, g mat.VecDense
	r.MulVec(matrixOf(j.x), mat.NewVecDense(w.Rows, w.Data))
	value := j.lambda / 2 * floats.Dot(w.Data, w.Data)
	for i, y := range j.y.Data {
		f := r.AtVec(i)
		value += math.Log1p(math.Exp(-math.Abs(f))) + max(f, 0) - y*f
		r.SetVec(i, 1/(1+math.Exp(-f))-y)
	}
	g.MulVec(matrixOf(j.x).T(), &r)
	g.AddScaledVec(&g, j.lambda, mat.NewVecDense(w.Rows, w.Data))
	return []float64{value}, []float64{value - mat.Dot(&g, &g)/(2*j.lambda)}
}

// setLowerBounds sets the lower bounds from a fit with the tolerance linearLimit/10.
func (p *linearProblem) setLowerBounds(fit func(backend.Device, float64) (backend.Host[float64], error), dev backend.Device, columns int) error {
	zero, _ := p.objectives(backend.NewHost[float64](p.x.Cols, columns))
	p.zero = zero[0]
	w, err := fit(dev, linearLimit/10)
	if err == nil {
		_, p.lower = p.objectives(w)
	}
	return err
}

// linearContest returns a contest in which all implementations fit the linear model of p; fit is Mercer's fit.
func (c *fitBench) linearContest(p *linearProblem, fit func(backend.Device, float64) (backend.Host[float64], error)) contest {
	k := contest{parameters: map[string]any{"lambda": p.lambda}, sendData: putAll(p.x, p.y), residual: p.excess, limit: linearLimit, tolerant: true}
	k.result = func(process *pypeer.Process) (function, error) {
		w, err := process.Get("coef")
		return function{linear: w}, err
	}
	k.mercer = func(d backend.Device) []competitor {
		var tolerance float64
		mercer := newCompetitor(ownName(d), func() (backend.Host[float64], error) { return fit(d, tolerance) },
			func(w backend.Host[float64]) (function, error) { return function{linear: w}, nil })
		return []competitor{mercer.atEqualObjective(func(tol float64) { tolerance = tol }, p.excess)}
	}
	return k
}

// linearRidge returns the contest in which all implementations fit ridge regression with an intercept and λ = 1.
func (c *fitBench) linearRidge(n int) (contest, judge, error) {
	j := c.judge(newLinear(n, c.Features, false))
	var means mat.VecDense
	x, y := mat.DenseCopyOf(matrixOf(j.x)), mat.NewVecDense(n, slices.Clone(j.y.Data))
	means.MulVec(x.T(), mat.NewVecDense(n, slices.Repeat([]float64{1 / float64(n)}, n)))
	for i := range n {
		floats.Sub(x.RawRowView(i), means.RawVector().Data)
	}
	floats.AddConst(-floats.Sum(j.y.Data)/float64(n), y.RawVector().Data)
	var right mat.VecDense
	right.MulVec(x.T(), y)
	k := contest{task: "linear", peers: []string{sklearn}, parameters: map[string]any{"lambda": j.lambda}, sendData: putAll(j.x, j.y), limit: fitTol}
	k.residual = func(f function) (float64, error) {
		if f.linear.Rows != c.Features || f.linear.Cols != 1 {
			return 0, fmt.Errorf("bench: fit: the matrix of the coefficients is %d × %d, want %d × 1", f.linear.Rows, f.linear.Cols, c.Features)
		}
		var residual, r mat.VecDense
		w := mat.NewVecDense(c.Features, f.linear.Data)
		residual.MulVec(x, w)
		residual.SubVec(y, &residual)
		r.MulVec(x.T(), &residual)
		r.AddScaledVec(&r, -j.lambda, w)
		return mat.Norm(&r, 2) / mat.Norm(&right, 2), nil
	}
	k.result = func(process *pypeer.Process) (function, error) {
		w, err := process.Get("coef")
		return function{linear: w}, err
	}
	k.mercer = func(d backend.Device) []competitor {
		return []competitor{newCompetitor(ownName(d), func() (*learners.RidgeModel, error) {
			return learners.Ridge{Lambda: j.lambda}.Fit(c.ctx, d, matrixOf(j.x), matrixOf(j.y), learners.Options{Memory: c.Memory})
		}, func(m *learners.RidgeModel) (function, error) {
			return function{linear: backend.Host[float64]{Rows: c.Features, Cols: 1, Stride: 1, Data: mat.Col(nil, 0, m.Coef())}}, nil
		})}
	}
	return k, j, nil
}

// lasso returns the contest in which all implementations fit the lasso without intercept for 100 penalties: as in
// glmnet, from the smallest for which all weights are 0 down to a thousandth of it, or to a hundredth if n < d.
func (c *fitBench) lasso(n int) (contest, judge, error) {
	p := &linearProblem{judge: c.judge(newLinear(n, c.Features, false))}
	ratio := 1e-3
	if n < c.Features {
		ratio = 1e-2
	}
	var g mat.VecDense
	g.MulVec(matrixOf(p.x).T(), mat.NewVecDense(n, p.y.Data))
	maxMu := mat.Norm(&g, math.Inf(1))
	lambdas, mus := make([]float64, 100), make([]float64, 100)
	for i := range mus {
		mus[i] = maxMu * math.Pow(ratio, float64(i)/99)
		lambdas[i] = 2 * mus[i]
	}
	p.objectives = p.lassoObjectives(mus)
	fit := func(d backend.Device, tol float64) (backend.Host[float64], error) {
		w := backend.NewHost[float64](c.Features, len(lambdas))
		models, err := learners.Lasso{Tol: tol, NoIntercept: true, MaxIter: 1e6}.Path(c.ctx, d, matrixOf(p.x), matrixOf(p.y), lambdas, learners.Options{Memory: c.Memory})
		for k, m := range models {
			coef := m.Coef() // Coef copies: call it once for each model
			for i := range w.Rows {
				w.Row(i)[k] = coef.At(i, 0)
			}
		}
		return w, err
	}
	if err := p.setLowerBounds(fit, c.judges, len(mus)); err != nil {
		return contest{}, p.judge, err
	}
	k := c.linearContest(p, fit)
	k.task, k.peers = "lasso", []string{sklearn, "glmnet"}
	alphas := slices.Clone(mus) // penalties of (1/2n)‖y − Xw‖² + α‖w‖₁
	floats.Scale(1/float64(n), alphas)
	k.parameters["alphas"] = alphas
	return k, p.judge, nil
}

// logistic returns the contest in which all implementations fit logistic regression with λ = 1 and without intercept.
func (c *fitBench) logistic(n int) (contest, judge, error) {
	p := &linearProblem{judge: c.judge(newLinear(n, c.Features, true))}
	p.objectives = p.logisticObjectives
	solve := func(d backend.Device, solver learners.LogisticSolver, tol float64) (backend.Host[float64], error) {
		l := learners.Logistic{Lambda: p.lambda, NoIntercept: true, Solver: solver, Tol: tol}
		m, err := l.Fit(c.ctx, d, matrixOf(p.x), matrixOf(p.y), learners.Options{Memory: c.Memory})
		if err != nil {
			return backend.Host[float64]{}, err
		}
		w := mat.DenseCopyOf(m.Coef()).RawMatrix()
		return backend.Host[float64]{Rows: w.Rows, Cols: w.Cols, Stride: w.Stride, Data: w.Data}, nil
	}
	newton := func(d backend.Device, tol float64) (backend.Host[float64], error) {
		return solve(d, learners.LogisticNewton, tol)
	}
	if err := p.setLowerBounds(newton, c.judges, 1); err != nil {
		return contest{}, p.judge, err
	}
	k := c.linearContest(p, func(d backend.Device, tol float64) (backend.Host[float64], error) {
		return solve(d, "", tol)
	})
	k.task, k.peers = "logistic", []string{sklearn, "glmnet", "liblinear"}
	return k, p.judge, nil
}

package learners

import (
	"fmt"
	"slices"

	"github.com/mercer-go/mercer/internal/svm"
	"gonum.org/v1/gonum/mat"
)

// smoParameters returns the parameters of the solver SMO. r is the range of valid values of tol.
func smoParameters(tol *float64, r rule, maxIter *int, cache *int64) []Parameter {
	return []Parameter{
		number("tol", tol, "1e-3", r, "largest violation of the optimality conditions at the end, in units of the decision value, or of its initial range if that range is below 1"),
		intParam("iterations", maxIter, "0", atLeast(0), "maximum number of steps for a pair of classes; 0: 10 million, or 100 for each sample if more"),
		mebibytes("cache", cache, "512", "MiB of Go memory for the rows of K of one machine"),
	}
}

// costParameters returns the parameters C and λ. At most one of these may be given.
func costParameters(c, lambda *float64) []Parameter {
	return []Parameter{
		number("C", c, "1", positive, "penalty of a sample that violates the margin").onlyWithout("lambda"),
		number("lambda", lambda, "", positive, "λ of (1/n)Σ loss + λ‖f‖², instead of C: C = 1/(2n·lambda), n the sum of the weights"),
	}
}

// penaltyOf returns C, or 1/(2nλ) if λ is given instead of C, where n is the sum of the weights of the rows.
func penaltyOf(c, lambda float64, rows int, o Options) (float64, error) {
	if lambda == 0 {
		return c, nil
	}
	n := 0.0
	for i := range rows {
		n += weightOf(o, i)
	}
	if c = 1 / (2 * n * lambda); !positive.ok(c) {
		return 0, fmt.Errorf("lambda %v gives C = 1/(2n·lambda) = %v, which is not a finite number > 0: use another lambda", lambda, c)
	}
	return c, nil
}

// marginTol is the range of the tolerance for classification; f = 0 violates the optimality conditions by 2.
var marginTol = rule{"a number > 0 and < 2", func(v float64) bool { return v > 0 && v < 2 }}

// SupportModel is f(x) = Σ_i β_i k(x_i, x) + b over the support vectors x_i, the model of svr and one-class-svm. The
// entry "objective" of Facts is the minimum of the learner's objective; LIBSVM prints minus this number as obj.
type SupportModel struct {
	kernelExpansion
	smoTrace
}

// smoTrace describes the fit of a support vector machine; it is not part of a saved model.
type smoTrace struct{ support, steps []int }

// Trace returns the index of each support vector among the rows of the matrix x of the fit, and the
// number of SMO steps of each machine. Both are nil for a model that was read from a file.
func (t *smoTrace) Trace() (support, steps []int) {
	return slices.Clone(t.support), slices.Clone(t.steps)
}

// smo solves p and returns the model of the solution, and for a ν formulation the ε of the solution.
func (f *fitting) smo(p *svm.Problem, par svm.Params, nu bool) (m *SupportModel, epsilon float64, err error) {
	par, err = par.WithDefaults(f.points.Rows)
	if err != nil {
		return nil, 0, err
	}
	par.Cache = svm.CacheWithin(f.dev, f.o.Memory, par.Cache)
	t := f.task(f.points.Rows, func(n int) int64 { return svm.Bytes(f.dev, p.Kernel, f.points, n, par.Cache, nu) })
	if f.err != nil {
		return nil, 0, f.err
	}
	res, err := svm.SolveIn(t, p, par, 0, 1)
	if err != nil {
		return nil, 0, err
	}
	support, points, beta := res.Support(p.X)
	if f.o.Weights != nil { // p.X has only the rows of weight > 0
		var positiveRows []int
		for i, w := range f.o.Weights {
			if w > 0 {
				positiveRows = append(positiveRows, i)
			}
		}
		for j, i := range support {
			support[j] = positiveRows[i]
		}
	}
	facts := append([]Fact{{"support vectors", points.Rows}}, smoFacts(res)...)
	facts = append(facts, normFacts(res.Square)...)
	expansion := kernelExpansion{model{f.learner, warned(facts, svm.ConvergenceWarning(res))}, p.Kernel, points, beta, []float64{res.Intercept}}
	return &SupportModel{expansion, smoTrace{support, []int{res.Steps}}}, res.EquivalentParam, t.Step("solve", 1)
}

// smoFacts returns the sums of the steps, objectives, rows of K, passes and duality gaps of several machines.
func smoFacts(results ...*svm.Result) []Fact {
	var sum svm.Result
	for _, r := range results {
		sum.Steps += r.Steps
		sum.Objective += r.Objective
		sum.Rows += r.Rows
		sum.Passes += r.Passes
		sum.Duality += r.Duality
	}
	facts := []Fact{{"steps", sum.Steps}, {"objective", sum.Objective}, {"rows of K", sum.Rows}}
	if sum.Passes > 0 {
		facts = append(facts, Fact{"passes of coordinate descent", sum.Passes}, Fact{"duality gap", sum.Duality})
	}
	return facts
}

// Support returns a copy of the support vectors.
func (m *SupportModel) Support() *mat.Dense { return densePoints(m.points) }

// Beta returns a copy of the coefficients of the support vectors.
func (m *SupportModel) Beta() []float64 { return slices.Clone(m.coef.Data) }

// Intercept returns b, or 0 if the model is not fitted.
func (m *SupportModel) Intercept() float64 {
	if len(m.intercept) == 0 {
		return 0
	}
	return m.intercept[0]
}

// State implements Model. For m support vectors of d features its arrays are "points", m×d, "beta", m×1, and
// "intercept", 1×1.
func (m *SupportModel) State() State { return stateOf(m) }

func (m *SupportModel) fields() []field { return m.expansionFields("points", "beta", exactly(1)) }

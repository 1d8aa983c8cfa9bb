package learners

import (
	"context"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/svm"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

const svrName = "svr"

func init() {
	register(Description{
		Name:    svrName,
		Grid:    "C=0.1,1,10,100",
		Tasks:   []Task{Regression},
		Sparse:  true,
		Formula: "minimize ½‖f‖² + C Σ w_i max(|y_i − f(x_i) − b| − epsilon, 0)",
		Source:  "Vapnik (1995); Schölkopf, Smola, Williamson and Bartlett (2000) for nu; Smola and Schölkopf (2004); Fan, Chen and Lin (2005)",
	}, (*SVR).parameters, SVR.Fit)
}

func (l *SVR) parameters() []Parameter {
	return slices.Concat([]Parameter{scaleKernel(&l.Kernel)}, costParameters(&l.C, &l.Lambda), []Parameter{
		number("nu", &l.Nu, "", upToOne, "find epsilon such that at most this share of the samples has a larger error, and at least this share are support vectors"),
		number("epsilon", &l.Epsilon, "0.1", nonNegative, "largest error without a loss, in standard deviations of the target, or without standardize-target in units of the target").onlyWithout("nu"),
		inverted("standardize-target", &l.NoStandardize, "scale the target to mean 0 and variance 1 for the fit, so that C and epsilon suit any unit; predictions are in the units of the target"),
	}, smoParameters(&l.Tol, positive, &l.MaxIter, &l.Cache))
}

// SVR is ε-support vector regression: f(x) = Σ_i β_i k(x_i, x) + b with the f that minimizes
//
//	½‖f‖² + C Σ_i w_i max(|y_i − f(x_i)| − ε, 0)
//
// where ‖f‖ does not include b. Samples with |y_i − f(x_i)| < ε have β_i = 0. There is one target. SMO (sequential
// minimal optimization) solves the dual, with the result of LIBSVM and scikit-learn's SVR for the same C and ε. It
// computes O(ns) kernel values for n samples and s support vectors; the memory is the cached rows of the Gram matrix K.
// With NoStandardize, C and ε are in units of y, as in LIBSVM and scikit-learn.
//
// With Nu, SVR is ν-support vector regression (Schölkopf, Smola, Williamson and Bartlett 2000): f and ε minimize the
// sum above plus Cνε Σ_i w_i, so that at most a fraction ν of the samples, by weight, has an error above ε. The result
// is that of LIBSVM and of scikit-learn's NuSVR for the same C and ν. The Facts include ε.
type SVR struct {
	Kernel  kernels.Kernel // nil means the Gaussian with sigma = √(d·Var(X)/2), as scikit-learn's gamma="scale"
	C       float64        // 0 means 1/(2nλ), or 1 if Lambda is 0
	Lambda  float64        // λ of (1/n)Σ w_i max(|y_i − f(x_i)| − ε, 0) + λ‖f‖², n = Σw_i; 0 means that C is used
	Epsilon float64        // ≥ 0
	Nu      float64        // in (0, 1]: ε is fitted; 0 means that Epsilon is used
	// NoStandardize fits y itself. By default the fit is to (y − m)/s, where m is the weighted mean of the targets
	// and s their standard deviation, or 1 if the standard deviation is 0; β and b are then transformed back to
	// the units of y.
	NoStandardize bool
	Tol           float64 // largest violation of the optimality conditions; 0 means 1e-3
	MaxIter       int     // maximum number of steps; 0 means max(10 million, 100n)
	Cache         int64   // bytes for rows of K; 0 means 512 MiB
}

// Fit fits the n×d samples x to the n×1 targets y.
func (l SVR) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *SupportModel, err error) {
	defer wrapError(svrName, l.parameters(), &m, &err)
	defer remarkConstant(&m, &err, y, o)
	f := newFitting(ctx, dev, svrName, l.parameters(), x, y, o)
	f.oneTarget()
	k := f.scaleKernel(l.Kernel)
	if f.err != nil {
		return nil, f.err
	}
	if l.C, err = penaltyOf(l.C, l.Lambda, f.points.Rows, o); err != nil {
		return nil, err
	}
	t := svm.Tube{Y: f.keptRows(f.y), Weights: positiveWeights(o.Weights, f.points.Rows), C: l.C, Epsilon: l.Epsilon, Scale: 1, Nu: l.Nu}
	if !l.NoStandardize {
		if t.Mean, t.Scale, err = svm.Standardization(t.Y, t.Weights); err != nil {
			return nil, err
		}
	}
	p := svm.Regression(k, f.keptPoints(), t)
	m, epsilon, err := f.smo(p, svm.Params{Tol: l.Tol, MaxIter: l.MaxIter, Cache: l.Cache}, l.Nu > 0)
	if err == nil && l.Nu > 0 {
		m.facts = append(m.facts, Fact{"epsilon", epsilon * t.Scale})
	}
	if err == nil && !l.NoStandardize {
		for i := range m.coef.Data {
			m.coef.Data[i] *= t.Scale
		}
		m.intercept[0] = m.intercept[0]*t.Scale + t.Mean
		m.facts = append(m.facts, Fact{"target mean", t.Mean}, Fact{"target deviation", t.Scale})
	}
	return m, err
}

package learners

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers/svm"
	"gonum.org/v1/gonum/mat"
)

const svrName = "svr"

func init() {
	register(Description{
		Name:    svrName,
		Grid:    "C=0.1,1,10,100",
		Tasks:   []Task{Regression},
		Formula: "minimize ½‖f‖² + C Σ w_i max(|y_i − f(x_i) − b| − epsilon, 0)",
		Source:  "Vapnik (1995); Smola and Schölkopf (2004); Fan, Chen and Lin (2005)",
		restore: restoreAs[SupportModel],
	}, (*SVR).parameters, SVR.Fit)
}

func (l *SVR) parameters() []Parameter {
	return slices.Concat([]Parameter{scaleKernel(&l.Kernel)}, costParameters(&l.C, &l.Lambda), []Parameter{
		number("epsilon", &l.Epsilon, "0.1", nonNegative, "error that costs nothing, in standard deviations of the target, or without standardize-target in its units"),
		boolParam("standardize-target", &l.StandardizeTarget, "true", "bring the target to mean 0 and variance 1 for the fit, so that C and epsilon suit any unit; predictions are in the units of the target"),
	}, smoParameters(&l.Tol, positive, &l.MaxIter, &l.Cache))
}

// SVR is ε-support vector regression: f(x) = Σ_i β_i k(x_i, x) + b with the f
// that minimizes
//
//	½‖f‖² + C Σ_i w_i max(|y_i − f(x_i)| − ε, 0)
//
// so that most β are 0. One target. The dual is solved by SMO (package svm), as
// LIBSVM and scikit-learn's SVR do with the same C and ε: O(n·support) values of
// k, and memory for the rows of K that the cache may hold. Unlike kernel ridge
// it costs the more the noisier the targets are beyond ε. C and ε are in units of y,
// so that targets far from unit size need others, or StandardizeTarget.
type SVR struct {
	Kernel  kernels.Kernel // nil: the Gaussian with sigma = √(d·Var(X)/2), as scikit-learn's gamma="scale"
	C       float64        // 0 is 1/(2nλ), or 1 without λ
	Lambda  float64        // λ of (1/n)Σ w_i max(|y_i − f(x_i)| − ε, 0) + λ‖f‖², n = Σw_i; 0: C decides
	Epsilon float64        // ≥ 0
	// StandardizeTarget fits (y − m)/s, where m is the mean of the samples' targets by
	// their weights and s their standard deviation, or 1 where it is 0; β and b of the
	// model are those of y. It is the fit to y with s·ε for ε and s·C for C.
	StandardizeTarget bool
	Tol               float64 // 0 is 1e-3
	MaxIter           int     // 0 is 10 million steps, or 100n if that is more
	Cache             int64   // bytes for rows of K; 0 is 512 MiB
}

// Fit fits the n×d samples x to the n×1 targets y.
func (l SVR) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o Options) (m *SupportModel, err error) {
	defer named(svrName, &m, &err)
	f := newFitting(ctx, dev, svrName, l.parameters(), x, y, o)
	f.oneTarget()
	k := f.scaleKernel(l.Kernel)
	if f.err != nil {
		return nil, f.err
	}
	hx, hy := f.x, f.y
	if l.C, err = penaltyOf(l.C, l.Lambda, hx.Rows, o); err != nil {
		return nil, err
	}
	set, err := (svm.Params{Tol: l.Tol, MaxIter: l.MaxIter, Cache: l.Cache}).WithDefaults(hx.Rows)
	if err != nil {
		return nil, err
	}
	set.Cache = svm.CacheWithin(dev, o.Memory, set.Cache)
	t := f.task(hx.Rows, func(n int) int64 { return svm.Bytes(dev, n, hx.Cols, set.Cache) })
	if f.err != nil {
		return nil, f.err
	}
	mean, scale := 0.0, 1.0
	if l.StandardizeTarget {
		if mean, scale, err = targetScale(hy, o); err != nil {
			return nil, err
		}
	}
	p := &svm.Problem{Kernel: k, X: dropZeroWeight(hx, o.Weights)}
	// Variable i pulls f up to y − ε, variable n + i down to y + ε.
	for _, sign := range []float64{1, -1} {
		for i := range hx.Rows {
			if w := weightOf(o, i); w > 0 {
				p.Sign = append(p.Sign, sign)
				p.P = append(p.P, l.Epsilon-sign*(hy.Row(i)[0]/scale-mean/scale))
				p.C = append(p.C, l.C*w)
			}
		}
	}
	p.Alpha = make([]float64, len(p.C))
	res, err := svm.SolveIn(t, p, set, 0, 1)
	if err != nil {
		return nil, err
	}
	m = newSupportModel(svrName, p, res)
	if l.StandardizeTarget {
		for i := range m.coef.Data {
			m.coef.Data[i] *= scale
		}
		m.intercept[0] = m.intercept[0]*scale + mean
		m.facts = append(m.facts, Fact{"target mean", mean}, Fact{"target deviation", scale})
	}
	return m, t.Step("solve", 1)
}

// targetScale returns the mean of the one column of y by the weights and its standard
// deviation, 1 where all targets with a weight are equal.
func targetScale(y backend.Host[float64], o Options) (mean, scale float64, err error) {
	low, high, total := math.Inf(1), math.Inf(-1), 0.0
	for i := range y.Rows {
		if w := weightOf(o, i); w > 0 {
			low, high, total = min(low, y.Row(i)[0]), max(high, y.Row(i)[0]), total+w
		}
	}
	if low == high {
		return low, 1, nil
	}
	// Differences from the lowest in units of half the range: no square overflows.
	half := high/2 - low/2
	for i := range y.Rows {
		mean += weightOf(o, i) / total * ((y.Row(i)[0]/2 - low/2) / half)
	}
	square := 0.0
	for i := range y.Rows {
		d := (y.Row(i)[0]/2-low/2)/half - mean
		square += weightOf(o, i) / total * d * d
	}
	mean, scale = low+2*(half*mean), 2*half*math.Sqrt(square)
	if scale == 0 || math.IsInf(scale, 1) {
		return 0, 0, fmt.Errorf("the standard deviation of y is %v: scale y", scale)
	}
	return mean, scale, nil
}

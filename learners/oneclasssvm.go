package learners

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/svm"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

const oneClassSVMName = "one-class-svm"

func init() {
	register(Description{
		Name:    oneClassSVMName,
		Tasks:   []Task{Novelty},
		Sparse:  true,
		Formula: "minimize ½‖f‖² + Σ w_i max(−b − f(x_i), 0) + nu Σw b; x is like the samples when f(x) + b ≥ 0",
		Source:  "Schölkopf, Platt, Shawe-Taylor, Smola and Williamson (2001), Estimating the support of a high-dimensional distribution",
	}, (*OneClassSVM).parameters, OneClassSVM.Fit)
}

func (l *OneClassSVM) parameters() []Parameter {
	return append([]Parameter{
		scaleKernel(&l.Kernel),
		number("nu", &l.Nu, "0.5", upToOne, "maximum share of outliers, samples with f < 0; at least this share are support vectors"),
	}, smoParameters(&l.Tol, positive, &l.MaxIter, &l.Cache)...)
}

// OneClassSVM estimates the region in which samples lie: f(x) = g(x) + b, where g(x) = Σ_i β_i k(x_i, x) and b minimize
//
//	½‖g‖² + Σ_i w_i max(−b − g(x_i), 0) + ν Σw_i b
//
// Predict returns f; f ≥ 0 means that x is like the samples. At most a fraction ν of the samples, by weight, has f < 0;
// b is the largest of the values that are optimal within the tolerance.
//
// The scaling is that of LIBSVM and scikit-learn's OneClassSVM: 0 ≤ β_i ≤ w_i and Σβ_i = νΣw_i. SMO (sequential minimal
// optimization) computes O(ns) kernel values for n samples and s ≥ νn support vectors. Targets are ignored.
type OneClassSVM struct {
	Kernel  kernels.Kernel // nil means the Gaussian with sigma = √(d·Var(X)/2), as scikit-learn's gamma="scale"
	Nu      float64        // ν, in (0, 1]; 0 means 0.5
	Tol     float64        // tolerance, in units of f, or of the initial range of f if that range is below 1; 0 means 1e-3
	MaxIter int            // maximum number of steps; 0 means 10 million, or 100n if that is more; if a given number is too small, the Facts include a "warning"
	Cache   int64          // bytes for rows of K; 0 means 512 MiB
}

// Fit fits the n×d samples x; y is ignored.
func (l OneClassSVM) Fit(ctx context.Context, dev backend.Device, x, _ mat.Matrix, o Options) (m *SupportModel, err error) {
	defer wrapError(oneClassSVMName, l.parameters(), &m, &err)
	f := newFitting(ctx, dev, oneClassSVMName, l.parameters(), x, nil, o)
	k := f.scaleKernel(l.Kernel)
	if f.err != nil {
		return nil, f.err
	}
	p := svm.OneClass(k, f.keptPoints(), positiveWeights(o.Weights, f.points.Rows), l.Nu)
	m, _, err = f.smo(p, svm.Params{Tol: l.Tol, MaxIter: l.MaxIter, Cache: l.Cache}, false)
	return m, err
}

package mercer

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/tuning"
	"github.com/mercer-go/mercer/learners/validate"
	"github.com/mercer-go/mercer/solvers"
)

// LearnerFunc makes a Learner from a function, such as the method learners.KernelKNN{}.FitClasses,
// or the result of the method Make of a learners.Description.
type LearnerFunc[M learners.Model] func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o learners.Options) (M, error)

// Fit calls f.
func (f LearnerFunc[M]) Fit(ctx context.Context, dev backend.Device, x, y mat.Matrix, o learners.Options) (M, error) {
	if f == nil {
		var zero M
		return zero, errors.New("mercer: fit: the LearnerFunc is nil")
	}
	return f(ctx, dev, x, y, o)
}

// CrossValidate returns, for each row of x, the prediction of a model fitted to the rows of all other folds, n×t.
// fold[i] is the number of the fold of row i, counted from 0: see validate.Folds. validate.ScoreRegression and
// validate.ScoreClassification compare the predictions with y, for all rows or for one fold. The AUC of a fold is
// nil if a class is absent from its rows or from the rows that its model was fitted to; validate.NewSummary
// averages over the other folds. The options Objects, Centers and Checkpoint are not used.
//
// With kernels.Precomputed, x may be the Gram matrix, as for Fit. If l is a LearnerFunc, x must instead be the
// points that gram.TrainingPoints returns.
//
// For scores of each fold, repeated cross-validation and the bootstrap, and for tables, see package validate.
func CrossValidate[M learners.Model](ctx context.Context, l Learner[M], x, y mat.Matrix, fold []int, o Options) (*mat.Dense, error) {
	if l == nil {
		return nil, errors.New("mercer: cross-validate: the learner is missing")
	}
	if err := o.checkUnused("cross-validate", "Weights", "Classes", "Keys", "Memory", "Progress"); err != nil {
		return nil, err
	}
	dev, err := o.device()
	if err != nil {
		return nil, err
	}
	points, hy, err := samples("cross-validate", x, y)
	if err != nil {
		return nil, err
	}
	for _, argument := range []struct {
		name  string
		rows  int
		given bool
	}{{"y", hy.Rows, true}, {"fold", len(fold), true}, {"Options.Weights", len(o.Weights), o.Weights != nil}, {"Options.Keys", len(o.Keys), o.Keys != nil}} {
		if argument.given && argument.rows != points.Rows {
			return nil, fmt.Errorf("mercer: cross-validate: x has %s, but %s has %d", count.Of(points.Rows, "row"), argument.name, argument.rows)
		}
	}
	if v := reflect.Indirect(reflect.ValueOf(l)); v.Kind() == reflect.Struct { // the kernel of a LearnerFunc is not known
		if field := v.FieldByName("Kernel"); field.IsValid() {
			k, _ := field.Interface().(kernels.Kernel)
			if points, err = numeric.SamplePoints(k, points); err != nil {
				return nil, fmt.Errorf("mercer: cross-validate: %w", err)
			}
		}
	}
	splits, folds := validate.PredefinedSplits(fold)
	if folds < 2 {
		return nil, errors.New("mercer: cross-validate: all rows are in one fold: a model needs rows of another fold")
	}
	divisions := make([]int, folds)
	for k := range divisions {
		divisions[k] = k
	}
	var predictions *mat.Dense
	targets, err := gonum.Dense(hy)
	if err != nil {
		return nil, fmt.Errorf("mercer: cross-validate: y: %w", err)
	}
	r := validate.Runner{Data: validate.Samples{X: points.Matrix(), Y: targets, Weights: o.Weights, Keys: o.Keys}, Devices: []backend.Device{dev}, Options: o.Options}
	err = r.Each(ctx, splits, divisions, func(ctx context.Context, v validate.Fit) error {
		m, err := l.Fit(ctx, v.Device, v.Part.Train.X, v.Part.Train.Y, v.Options)
		if err != nil {
			return err
		}
		f, err := m.Predict(ctx, v.Device, v.Part.Test.X)
		if err != nil {
			return err
		}
		if predictions == nil {
			_, t := f.Dims()
			predictions = mat.NewDense(points.Rows, t, nil)
		}
		_, test := splits(v.Number)
		for r, i := range test {
			predictions.SetRow(i, f.RawRowView(r))
		}
		return nil
	})
	if fitErr := (*validate.FitError)(nil); errors.As(err, &fitErr) {
		return nil, fmt.Errorf("mercer: cross-validate: the fit without fold %d of %d: %w", fitErr.Fit+1, folds, fitErr.Err)
	}
	return predictions, err
}

// Tune returns l with the kernel and λ that have the best score, and all evaluated settings. The default score is
// the mean squared leave-one-out error: see tuning.Search. The search starts at l.Kernel or, if it is nil, at the
// Gaussian that Fit would use. Tune fits the result once. If rounding errors prevent this fit, Tune returns the
// kernel and λ with the next best score that can be fitted, and says so in the Warning of the Result. Only o.Device
// and o.Weights are used; p holds the memory limit and the progress callback.
func Tune(ctx context.Context, l learners.KernelRidge, x, y mat.Matrix, p tuning.Params, o Options) (learners.KernelRidge, *tuning.Result, error) {
	if err := o.checkUnused("tune", "Weights"); err != nil {
		return l, nil, err
	}
	if l.Lambdas != nil {
		return l, nil, errors.New("mercer: tune: Tune searches for one lambda, but the learner has Lambdas, one for each target: set Lambdas to nil")
	}
	dev, err := o.device()
	if err != nil {
		return l, nil, err
	}
	points, hy, err := samples("tune", x, y)
	if err != nil {
		return l, nil, err
	}
	if points, err = numeric.SamplePoints(l.Kernel, points); err != nil {
		return l, nil, fmt.Errorf("mercer: tune: %w", err)
	}
	if l.Kernel == nil {
		sigma, err := learners.MedianDistance(ctx, x, o.Weights, l.Seed)
		if err != nil {
			return l, nil, err
		}
		l.Kernel = kernels.Gaussian{Sigma: sigma}
	}
	result, err := tuning.Search(ctx, dev, solvers.Problem{Kernel: l.Kernel, X: points.Dense, Sparse: points.Sparse, Y: hy, Weights: o.Weights, Lambda: l.Lambda, Intercept: !l.NoIntercept}, p)
	if err != nil {
		return l, nil, err
	}
	err = result.FirstFit(func(k kernels.Kernel, lambda float64) error {
		l.Kernel, l.Lambda = k, lambda
		_, err := l.Fit(ctx, dev, x, y, learners.Options{Weights: o.Weights, Memory: p.Memory})
		return err
	})
	if err != nil {
		return l, nil, fmt.Errorf("mercer: tune: %w", err)
	}
	return l, result, nil
}

// LassoPath fits a model for each λ in lambdas; nil selects 100 values. LassoPath takes little more
// time than a fit for the smallest λ alone: see learners.Lasso.Path.
func LassoPath(ctx context.Context, l learners.Lasso, x, y mat.Matrix, lambdas []float64, o Options) ([]*Model[*learners.LinearModel], error) {
	if err := o.checkUnused("lasso path", "Weights", "Classes", "Keys", "Memory", "Progress", "Checkpoint"); err != nil {
		return nil, err
	}
	dev, err := o.device()
	if err != nil {
		return nil, err
	}
	fitted, err := l.Path(ctx, dev, x, y, lambdas, o.Options)
	if err != nil {
		return nil, err
	}
	models := make([]*Model[*learners.LinearModel], len(fitted))
	for i, m := range fitted {
		if models[i], err = newModel(dev, m, modelfile.Bundle{Model: m}); err != nil {
			return nil, err
		}
	}
	return models, nil
}

// Gram returns the matrix of k(x_i, z_j) for the rows of x and z; if z is nil, it uses x for z. A backend.CSR stays
// sparse. gonum.Dense converts the result to a *mat.Dense without a copy. Only o.Device is used.
func Gram(ctx context.Context, k kernels.Kernel, x, z mat.Matrix, o Options) (backend.Host[float64], error) {
	empty := backend.Host[float64]{}
	if err := o.checkUnused("gram"); err != nil {
		return empty, err
	}
	dev, err := o.device()
	if err != nil {
		return empty, err
	}
	px, err := pointsOf("x", x)
	if err != nil {
		return empty, fmt.Errorf("mercer: gram: %w", err)
	}
	if z == nil {
		return backend.GramMatrix(ctx, dev, k, px.Matrix())
	}
	pz, err := pointsOf("z", z)
	if err != nil {
		return empty, fmt.Errorf("mercer: gram: %w", err)
	}
	return backend.CrossGramMatrix(ctx, dev, k, px.Matrix(), pz.Matrix())
}

// pointsOf returns the rows of m; a backend.CSR stays sparse. Errors use name for the matrix m.
func pointsOf(name string, m mat.Matrix) (numeric.Points, error) {
	if c, ok := m.(backend.CSR[float64]); ok && c.Rows > 0 && c.Cols > 0 {
		points, err := numeric.PointsOf(c)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		}
		return points, err
	}
	h, err := gonum.Host(name, m)
	return numeric.DensePoints(h), err
}

// samples returns x and y as row-major matrices; an x of type backend.CSR stays sparse.
func samples(call string, x, y mat.Matrix) (points numeric.Points, hy backend.Host[float64], err error) {
	points, err = pointsOf("x", x)
	if err == nil {
		hy, err = gonum.Host("y", y)
	}
	if err != nil {
		err = fmt.Errorf("mercer: %s: %w", call, err)
	}
	return points, hy, err
}

package learners_test

import (
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// TestUpdate compares Append, Merge and Remove with fits to all samples and to the first samples, for two outputs
// and weights, with and without an intercept and a fitted scale.
func TestUpdate(t *testing.T) {
	const n, first, second = 90, 50, 60
	x, y1 := wave(21, n, 2)
	y := mat.NewDense(n, 2, nil)
	weights := make([]float64, n)
	for i := range n {
		y.SetRow(i, []float64{y1.At(i, 0), 100 - 2*x.At(i, 0)*x.At(i, 1)})
		weights[i] = float64(i%4) / 2
	}
	z, _ := wave(22, 10, 2)
	rowRange := func(a *mat.Dense, from, to int) *mat.Dense {
		_, c := a.Dims()
		return a.Slice(from, to, 0, c).(*mat.Dense)
	}
	k := kernels.Matern{Nu: 0.5, Sigma: 1}
	centers := rowRange(x, 0, 15)
	type updatable interface {
		learners.Uncertain
		Scale() []float64
		LogLikelihood() float64
	}
	// tol bounds the rounding errors: the condition number is at most 90·1.5/0.2, solving for 15 basis functions takes
	// 15² operations, and the targets are below 120.
	const tol = 0x1p-53 * (90 * 1.5 / 0.2) * 15 * 15 * 120
	checkEqual := func(t *testing.T, dev backend.Device, name string, got, want updatable) {
		t.Helper()
		f, err := got.Predict(t.Context(), dev, z)
		if err != nil {
			t.Fatal(err)
		}
		g, err := want.Predict(t.Context(), dev, z)
		if err != nil {
			t.Fatal(err)
		}
		v, err := got.Variance(t.Context(), dev, z)
		if err != nil {
			t.Fatal(err)
		}
		w, err := want.Variance(t.Context(), dev, z)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 10 {
			for j := range 2 {
				checkClose(t, name+": prediction", f.At(i, j), g.At(i, j), 1e-12*120) // well below tol
				checkClose(t, name+": variance", v.At(i, j), w.At(i, j), 120*tol*max(1, w.At(i, j)))
			}
		}
		checkClose(t, name+": log likelihood", got.LogLikelihood(), want.LogLikelihood(), 120*n*tol)
		if r, err := learners.Restore(got.State()); err != nil {
			t.Errorf("%s: %v", name, err)
		} else if a, err := r.(learners.Uncertain).Variance(t.Context(), dev, z); err != nil || !mat.Equal(a, v) {
			t.Errorf("%s: the restored model has other variances: %v", name, err)
		}
	}
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		for _, weighted := range []bool{false, true} {
			for _, noIntercept := range []bool{false, true} {
				options := func(from, to int) learners.Options {
					if weighted {
						return learners.Options{Weights: weights[from:to]}
					}
					return learners.Options{}
				}
				nystrom := func(from, to int) *learners.NystromRidgeModel {
					o := options(from, to)
					o.Centers = centers
					m, err := learners.NystromRidge{Kernel: k, Lambda: 0.2, Std: true, NoIntercept: noIntercept, UnitScale: noIntercept, Tol: 1e-13}.Fit(t.Context(), dev, rowRange(x, from, to), rowRange(y, from, to), o)
					if err != nil {
						t.Fatal(err)
					}
					return m
				}
				m := nystrom(0, first)
				for _, p := range [][2]int{{first, second}, {second, n}} {
					var err error
					if m, err = learners.Append(t.Context(), dev, m, rowRange(x, p[0], p[1]), rowRange(y, p[0], p[1]), options(p[0], p[1])); err != nil {
						t.Fatal(err)
					}
				}
				full := nystrom(0, n)
				checkEqual(t, dev, "nystrom-ridge, appended", m, full)
				checkClose(t, "bound", m.LikelihoodBound(), full.LikelihoodBound(), 120*n*tol)
				m, err := learners.Remove(t.Context(), dev, m, rowRange(x, first, n), rowRange(y, first, n), options(first, n))
				if err != nil {
					t.Fatal(err)
				}
				checkEqual(t, dev, "nystrom-ridge, removed", m, nystrom(0, first))

				merged, err := learners.Merge(t.Context(), dev, nystrom(0, second), nystrom(second, n))
				if err != nil {
					t.Fatal(err)
				}
				checkEqual(t, dev, "nystrom-ridge, merged", merged, full)
				checkClose(t, "merged bound", merged.LikelihoodBound(), full.LikelihoodBound(), 120*n*tol)

				ridge := func(from, to int) *learners.RidgeModel {
					m, err := learners.Ridge{Lambda: 0.2, Std: true, NoIntercept: noIntercept, UnitScale: noIntercept}.Fit(t.Context(), dev, rowRange(x, from, to), rowRange(y, from, to), options(from, to))
					if err != nil {
						t.Fatal(err)
					}
					return m
				}
				r, err := learners.Append(t.Context(), dev, ridge(0, first), rowRange(x, first, n), rowRange(y, first, n), options(first, n))
				if err != nil {
					t.Fatal(err)
				}
				checkEqual(t, dev, "ridge, appended", r, ridge(0, n))
				if r, err = learners.Remove(t.Context(), dev, r, rowRange(x, first, n), rowRange(y, first, n), options(first, n)); err != nil {
					t.Fatal(err)
				}
				checkEqual(t, dev, "ridge, removed", r, ridge(0, first))
				if r, err = learners.Merge(t.Context(), dev, r, ridge(first, n)); err != nil {
					t.Fatal(err)
				}
				checkEqual(t, dev, "ridge, merged", r, ridge(0, n))

				fourier := func(from, to int) *learners.FourierRidgeModel {
					m, err := learners.FourierRidge{Kernel: k, Lambda: 0.2, Features: 15, Seed: 3, Std: true, NoIntercept: noIntercept, UnitScale: noIntercept, Tol: 1e-13}.Fit(t.Context(), dev, rowRange(x, from, to), rowRange(y, from, to), options(from, to))
					if err != nil {
						t.Fatal(err)
					}
					return m
				}
				f, err := learners.Append(t.Context(), dev, fourier(0, first), rowRange(x, first, n), rowRange(y, first, n), options(first, n))
				if err != nil {
					t.Fatal(err)
				}
				checkEqual(t, dev, "fourier-ridge, appended", f, fourier(0, n))
				if f, err = learners.Remove(t.Context(), dev, f, rowRange(x, first, n), rowRange(y, first, n), options(first, n)); err != nil {
					t.Fatal(err)
				}
				checkEqual(t, dev, "fourier-ridge, removed", f, fourier(0, first))
				if f, err = learners.Merge(t.Context(), dev, f, fourier(first, n)); err != nil {
					t.Fatal(err)
				}
				checkEqual(t, dev, "fourier-ridge, merged", f, fourier(0, n))
			}
		}
		m, err := learners.NystromRidge{Kernel: k, Lambda: 0.2, Std: true}.Fit(t.Context(), dev, rowRange(x, 0, first), rowRange(y, 0, first), learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		mergeWith := func(l learners.NystromRidge, centers *mat.Dense, y mat.Matrix) func() error {
			return func() error {
				other, err := l.Fit(t.Context(), dev, rowRange(x, 0, second), y, learners.Options{Centers: centers})
				if err != nil {
					t.Fatal(err)
				}
				_, err = learners.Merge(t.Context(), dev, m, other)
				return err
			}
		}
		ys, fitCenters := rowRange(y, 0, second), m.Centers()
		for want, call := range map[string]func() error{
			"some removed samples were not in the fit": func() error {
				_, err := learners.Remove(t.Context(), dev, m, x, y, learners.Options{})
				return err
			},
			"or no sample of the fit is left": func() error {
				_, err := learners.Remove(t.Context(), dev, m, rowRange(x, 0, first), rowRange(y, 0, first), learners.Options{})
				return err
			},
			"the models differ in the kernel":                   mergeWith(learners.NystromRidge{Kernel: kernels.Matern{Nu: 0.5, Sigma: 1.25}, Lambda: 0.2, Std: true}, fitCenters, ys),
			"the models differ in lambda":                       mergeWith(learners.NystromRidge{Kernel: k, Lambda: 0.25, Std: true}, fitCenters, ys),
			"the models differ in the centers or":               mergeWith(learners.NystromRidge{Kernel: k, Lambda: 0.2, Std: true}, centers, ys),
			"differ in the intercept: one model has none":       mergeWith(learners.NystromRidge{Kernel: k, Lambda: 0.2, Std: true, NoIntercept: true}, fitCenters, ys),
			"differ in the scale: one model has the scale 1":    mergeWith(learners.NystromRidge{Kernel: k, Lambda: 0.2, Std: true, UnitScale: true}, fitCenters, ys),
			"the models differ in the number of outputs":        mergeWith(learners.NystromRidge{Kernel: k, Lambda: 0.2, Std: true}, fitCenters, rowRange(y1, 0, second)),
			"the other model: the model did not keep its poste": mergeWith(learners.NystromRidge{Kernel: k, Lambda: 0.2}, fitCenters, ys),
			"no other model was given": func() error {
				_, err := learners.Merge(t.Context(), dev, m, nil)
				return err
			},
			"the model is not fitted": func() error {
				_, err := learners.Merge(t.Context(), dev, &learners.FourierRidgeModel{}, &learners.FourierRidgeModel{})
				return err
			},
			"a model of least-squares cannot be updated": func() error {
				m, err := learners.LeastSquares{}.Fit(t.Context(), dev, x, y, learners.Options{})
				if err != nil {
					t.Fatal(err)
				}
				_, err = learners.Append(t.Context(), dev, m, x, y, learners.Options{})
				return err
			},
			"y has 1 column, but the model has 2 outputs": func() error {
				_, err := learners.Append(t.Context(), dev, m, x, y1, learners.Options{})
				return err
			},
			"y: row 1, column 1 is NaN": func() error {
				_, err := learners.Append(t.Context(), dev, m, rowRange(x, 0, 1), mat.NewDense(1, 2, []float64{math.NaN(), 1}), learners.Options{})
				return err
			},
			"x has 1 column": func() error {
				_, err := learners.Append(t.Context(), dev, m, y1, y, learners.Options{})
				return err
			},
		} {
			if err := call(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	})
}

// TestRidgePosterior compares the posterior of ridge with that of nystrom-ridge with the linear kernel and the
// unit vectors as centers. One feature and the targets have large means.
func TestRidgePosterior(t *testing.T) {
	const n, d = 40, 3
	x, y := wave(5, n, d)
	for i := range n {
		x.Set(i, 1, 100+x.At(i, 1))
		y.Set(i, 0, 100+y.At(i, 0))
	}
	z := x.Slice(0, 5, 0, d)
	unit := mat.NewDense(d, d, []float64{1, 0, 0, 0, 1, 0, 0, 0, 1})
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		r, err := learners.Ridge{Lambda: 0.5, Std: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := learners.NystromRidge{Kernel: kernels.Linear{}, Lambda: 0.5, Std: true, Tol: 1e-9}.Fit(t.Context(), dev, x, y, learners.Options{Centers: unit})
		if err != nil {
			t.Fatal(err)
		}
		v, err := r.Variance(t.Context(), dev, z)
		if err != nil {
			t.Fatal(err)
		}
		w, err := m.Variance(t.Context(), dev, z)
		if err != nil {
			t.Fatal(err)
		}
		// nystrom-ridge does not center its sums of n squares of up to 100². Their rounding errors are divided by λ.
		const tol = 0x1p-53 * n * 1e4 / 0.5 * d
		for i := range 5 {
			checkClose(t, "variance", v.At(i, 0), w.At(i, 0), tol*w.At(i, 0))
		}
		checkClose(t, "scale", r.Scale()[0], m.Scale()[0], tol*m.Scale()[0])
		checkClose(t, "log likelihood", r.LogLikelihood(), m.LogLikelihood(), n*tol)
		for want, l := range map[string]learners.Ridge{
			"lambda must be > 0": {Std: true},
			"one lambda for all": {Std: true, Lambdas: []float64{1}},
		} {
			if _, err := l.Fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	})
}

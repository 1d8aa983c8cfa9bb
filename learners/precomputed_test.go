package learners_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/gram"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// TestPrecomputedLearners checks that a precomputed Gram matrix gives the predictions of the kernel itself.
func TestPrecomputedLearners(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		const n, q = 80, 20
		k := kernels.Gaussian{Sigma: 0.7}
		x, y := rings(n+q, 0.2, 51)
		train, test := x.Slice(0, n, 0, 2).(*mat.Dense), x.Slice(n, n+q, 0, 2).(*mat.Dense)
		labels := y.Slice(0, n, 0, 1)
		values := func(rows *mat.Dense) backend.Host[float64] {
			r, _ := rows.Dims()
			h := backend.NewHost[float64](r, n)
			for i := range r {
				for j := range n {
					h.Row(i)[j] = kernels.Eval(k, rows.RawRowView(i), train.RawRowView(j))
				}
			}
			return h
		}
		trainPoints, err := gram.TrainingPoints(values(train))
		if err != nil {
			t.Fatal(err)
		}
		testPoints, err := gram.OtherPoints(values(test), slices.Repeat([]float64{1}, q))
		if err != nil {
			t.Fatal(err)
		}
		dense := func(h backend.Host[float64]) *mat.Dense { return mat.NewDense(h.Rows, h.Cols, h.Data) }
		for name, fit := range map[string]func(k kernels.Kernel) learners.Fitter{
			"svc": func(k kernels.Kernel) learners.Fitter { return fitter(learners.SVC{Kernel: k, C: 10, Tol: 1e-9}.Fit) },
			"svr": func(k kernels.Kernel) learners.Fitter {
				return fitter(learners.SVR{Kernel: k, Tol: 1e-9, NoStandardize: true}.Fit)
			},
			"one-class-svm": func(k kernels.Kernel) learners.Fitter { return fitter(learners.OneClassSVM{Kernel: k, Tol: 1e-9}.Fit) },
			"rvm":           func(k kernels.Kernel) learners.Fitter { return fitter(learners.RVM{Kernel: k, Tol: 1e-10}.Fit) },
			"rvc":           func(k kernels.Kernel) learners.Fitter { return fitter(learners.RVC{Kernel: k, Tol: 1e-10}.Fit) },
			"kernel-knn":    func(k kernels.Kernel) learners.Fitter { return fitter(learners.KernelKNN{Kernel: k}.Fit) },
			"nystrom-ridge": func(k kernels.Kernel) learners.Fitter { // both fits have the same centers, because the keys are given
				return func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o learners.Options) (learners.Model, error) {
					for i := range n {
						o.Keys = append(o.Keys, uint64(i)*0x9e3779b97f4a7c15)
					}
					return learners.NystromRidge{Kernel: k, Lambda: 0.1, Centers: 30, Tol: 1e-9, Std: true}.Fit(ctx, dev, x, y, o)
				}
			},
			"kernel-vote": func(k kernels.Kernel) learners.Fitter { return fitter(learners.KernelVote{Kernel: k}.Fit) },
		} {
			a, err := fit(k)(t.Context(), dev, train, labels, learners.Options{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			b, err := fit(kernels.Precomputed{})(t.Context(), dev, dense(trainPoints), labels, learners.Options{})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			f, err := a.Predict(t.Context(), dev, test)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			g, err := b.Predict(t.Context(), dev, dense(testPoints))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i := range q {
				// Each fit ends at its tolerance of 1e-9, so the solutions may differ slightly.
				checkClose(t, name, g.At(i, 0), f.At(i, 0), 1e-4)
			}
			if u, ok := learners.As[learners.Uncertain](b); ok && name == "nystrom-ridge" {
				v, err := u.Variance(t.Context(), dev, dense(testPoints))
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				w, err := a.(learners.Uncertain).Variance(t.Context(), dev, test)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				for i := range q {
					checkClose(t, name+": variance", v.At(i, 0), w.At(i, 0), 1e-4)
				}
			}
		}
		// Predict also returns an error for a point that the kernel does not accept.
		positive := mat.DenseCopyOf(train)
		positive.Apply(func(_, _ int, v float64) float64 { return v + 4 }, positive)
		m, err := learners.SVC{Kernel: kernels.ChiSquared{Gamma: 1}}.Fit(t.Context(), dev, positive, labels, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		positive.Set(7, 1, -1)
		if _, err := m.Predict(t.Context(), dev, positive); err == nil || !strings.Contains(err.Error(), "x: row 8") {
			t.Errorf("got %v", err)
		}
	})
}

// TestGramMatrixIsNoPoints checks that learners with a precomputed kernel refuse columns of the Gram matrix as points,
// also if the first column could be the indices of training objects.
func TestGramMatrixIsNoPoints(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n = 8
	valuesOnly, y := mat.NewDense(n, n-1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		y.Set(i, 0, float64(i%2))
		for j := range n - 1 {
			valuesOnly.Set(i, j, float64(i*j%5+i+j))
		}
	}
	for name, fit := range map[string]learners.Fitter{
		"svc":               fitter(learners.SVC{Kernel: kernels.Precomputed{}}.Fit),
		"svr":               fitter(learners.SVR{Kernel: kernels.Precomputed{}, NoStandardize: true}.Fit),
		"one-class-svm":     fitter(learners.OneClassSVM{Kernel: kernels.Precomputed{}}.Fit),
		"rvm":               fitter(learners.RVM{Kernel: kernels.Precomputed{}}.Fit),
		"rvc":               fitter(learners.RVC{Kernel: kernels.Precomputed{}}.Fit),
		"kernel-knn":        fitter(learners.KernelKNN{Kernel: kernels.Precomputed{}}.Fit),
		"kernel-vote":       fitter(learners.KernelVote{Kernel: kernels.Precomputed{}}.Fit),
		"kernel-logistic":   fitter(learners.KernelLogistic{Kernel: kernels.Precomputed{}, Lambda: 1}.Fit),
		"kernel-ridge":      fitter(learners.KernelRidge{Kernel: kernels.Precomputed{}, Lambda: 1, NoIntercept: true}.Fit),
		"gaussian-process":  fitter(learners.GaussianProcess{Kernel: kernels.Precomputed{}, Lambda: 1}.Fit),
		"nystrom-ridge":     fitter(learners.NystromRidge{Kernel: kernels.Precomputed{}, Lambda: 1}.Fit),
		"kernel-perceptron": fitter(learners.KernelPerceptron{Kernel: kernels.Precomputed{}, NoIntercept: true, NoShuffle: true}.Fit),
	} {
		if _, err := fit(t.Context(), dev, valuesOnly, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), "row 1: kernels: precomputed: k(a, a) of training object 1 must be equal in features 2 and 3, got 1 and 2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

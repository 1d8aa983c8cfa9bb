package learners_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/solvers/solvertest"
	"gonum.org/v1/gonum/mat"
)

// planned lists learners that plan how much memory they need on the device.
func planned() map[string]learners.Fitter {
	k := kernels.Gaussian{Sigma: 1}
	return map[string]learners.Fitter{
		"least-squares":     fitter(learners.LeastSquares{}.Fit),
		"ridge-constrained": fitter(learners.RidgeConstrained{Theta: 0.1}.Fit),
		"bayes-ridge":       fitter(learners.BayesRidge{}.Fit),
		"lasso":             fitter(learners.Lasso{}.Fit),
		"lasso fista":       fitter(learners.Lasso{Method: learners.FISTA}.Fit),
		"l0":                fitter(learners.L0{Lambda: 1e-6}.Fit),
		"l0 support":        fitter(learners.L0{Support: 3}.Fit),
		"svc":               fitter(learners.SVC{Kernel: k}.Fit),
		"svc probabilities": fitter(learners.SVC{Kernel: k, Probabilities: true}.Fit),
		"svr":               fitter(learners.SVR{Kernel: k, NoStandardize: true}.Fit),
		"one-class-svm":     fitter(learners.OneClassSVM{Kernel: k}.Fit),
		"rvm":               fitter(learners.RVM{Kernel: k}.Fit),
		"rvm fixed-point":   fitter(learners.RVM{Kernel: k, Method: learners.FixedPoint}.Fit),
		"rvc":               fitter(learners.RVC{Kernel: k}.Fit),
	}
}

// TestPlans checks that a fit takes at most as much memory on the device as it planned, for several shapes, two
// classes and three, and sparse samples.
func TestPlans(t *testing.T) {
	solvertest.EachDevice(t, func(t *testing.T, open solvertest.Open) {
		t.Log("seed 81")
		for _, shape := range required.Subset(2, [][3]int{{60, 4, 2}, {60, 4, 3}, {12, 300, 2}, {20, 40, 3}}) {
			r := rand.New(rand.NewPCG(81, 0))
			n, d := shape[0], shape[1]
			x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
			for i := range n {
				for j := range d {
					x.Set(i, j, r.NormFloat64())
				}
				y.Set(i, 0, float64(i%shape[2]))
			}
			sparse := backend.CSR[float64]{Rows: n, Cols: d, Indptr: []int{0}}
			for i := range n {
				for j := range d {
					if j%10 == i%10 {
						sparse.Indices, sparse.Data = append(sparse.Indices, int32(j)), append(sparse.Data, x.At(i, j))
					}
				}
				sparse.Indptr = append(sparse.Indptr, len(sparse.Data))
			}
			for name, fit := range planned() {
				d, err := learners.Find(strings.Fields(name)[0])
				if err != nil {
					t.Fatal(err)
				}
				for _, samples := range []mat.Matrix{x, sparse} {
					if _, sparse := samples.(backend.CSR[float64]); sparse && !d.Sparse {
						continue
					}
					dev := open(t, backend.Config{})
					_, err := fit(t.Context(), dev, samples, y, learners.Options{Memory: 1})
					var budget *solvers.BudgetError
					if !errors.As(err, &budget) {
						t.Fatalf("%s, %T: %v", name, samples, err)
					}
					if _, err := fit(t.Context(), dev, samples, y, learners.Options{Memory: budget.Needed}); err != nil {
						t.Fatalf("%s, %T: %v", name, samples, err)
					}
					if _, peak := dev.InUse(); peak > budget.Needed {
						t.Errorf("%s, %d×%d %T: took %d bytes, planned %d", name, n, x.RawMatrix().Cols, samples, peak, budget.Needed)
					}
				}
			}
		}
	})
}

// TestCanceledFits checks that long fits return soon after they are canceled, and logs the time
// that they take to return.
func TestCanceledFits(t *testing.T) {
	if testing.Short() {
		t.Skip("seconds of work: not under -short")
	}
	dev := backendtest.Device(t, "cpu")
	t.Log("seed 83")
	r := rand.New(rand.NewPCG(83, 0))
	const n, d = 4000, 20
	x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		for j := range d {
			x.Set(i, j, r.NormFloat64())
		}
		y.Set(i, 0, float64(r.IntN(2)))
	}
	for name, fit := range planned() {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		start := time.Now()
		_, err := fit(ctx, dev, x, y, learners.Options{})
		if elapsed := time.Since(start); err != nil {
			t.Logf("%s: %v after %v", name, err, elapsed-200*time.Millisecond)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
		}
		cancel()
		if inUse, _ := dev.InUse(); inUse != 0 {
			t.Errorf("%s: %d bytes are left", name, inUse)
		}
	}
}

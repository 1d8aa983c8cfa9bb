package learners_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
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

// TestPlans: a fit takes at most as much memory on the device as it planned, with more rows
// than features and with fewer, for two classes and three.
func TestPlans(t *testing.T) {
	solvertest.EachDevice(t, func(t *testing.T, open solvertest.Open) {
		t.Log("seed 81")
		for _, shape := range [][3]int{{60, 4, 2}, {60, 4, 3}, {20, 40, 3}, {12, 300, 2}} {
			r := rand.New(rand.NewPCG(81, 0))
			n, d := shape[0], shape[1]
			x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
			for i := range n {
				for j := range d {
					x.Set(i, j, r.NormFloat64())
				}
				y.Set(i, 0, float64(i%shape[2]))
			}
			for name, fit := range planned() {
				dev := open(t, backend.Config{})
				_, err := fit(t.Context(), dev, x, y, learners.Options{Memory: 1})
				var budget *solvers.BudgetError
				if !errors.As(err, &budget) {
					t.Fatalf("%s: %v", name, err)
				}
				if _, err := fit(t.Context(), dev, x, y, learners.Options{Memory: budget.Needed}); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if _, peak := dev.InUse(); peak > budget.Needed {
					t.Errorf("%s, %d×%d: took %d bytes, planned %d", name, n, d, peak, budget.Needed)
				}
			}
		}
	})
}

// TestCanceledFits checks that long fits return soon after they are canceled. The time is logged.
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
		if took := time.Since(start); err != nil {
			t.Logf("%s: %v after %v", name, err, took-200*time.Millisecond)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", name, err)
			}
		}
		cancel()
		if now, _ := dev.InUse(); now != 0 {
			t.Errorf("%s: %d bytes are left", name, now)
		}
	}
}

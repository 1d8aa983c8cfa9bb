package learners_test

import (
	"context"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// A kernel that is not made for a point says so, by row and feature, in a fit
// by any way and in a prediction.
func TestPointsOfTheKernel(t *testing.T) {
	dev, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	ctx := context.Background()
	good := mat.NewDense(4, 2, []float64{1, 0, 0, 2, 3, 1, 2, 2})
	bad := mat.NewDense(4, 2, []float64{1, 0, 0, 2, 3, -1, 2, 2})
	y := mat.NewDense(4, 1, []float64{1, -1, 1, -1})
	chi2 := kernels.ChiSquared{Gamma: 1}
	const rule = "x: row 3: kernels: chi2: feature 2 is -1: features must be finite numbers ≥ 0"
	_, err = learners.KernelRidge{Kernel: chi2, Lambda: 1}.Fit(ctx, dev, bad, y, learners.Options{})
	if want := "learners: kernel-ridge: solvers: " + rule; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = learners.SVR{Kernel: chi2}.Fit(ctx, dev, bad, y, learners.Options{})
	if want := "learners: svr: " + rule; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	m, err := learners.KernelRidge{Kernel: chi2, Lambda: 1}.Fit(ctx, dev, good, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Predict(ctx, dev, bad)
	if want := "learners: kernel-ridge: predict: " + rule; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

package learners_test

import (
	"context"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// TestPointsOfTheKernel checks that a point that the kernel does not accept gives an error that
// names the row and the feature, in a fit by each method and in a prediction with the model.
func TestPointsOfTheKernel(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	ctx := context.Background()
	good := mat.NewDense(4, 2, []float64{1, 0, 0, 2, 3, 1, 2, 2})
	bad := mat.NewDense(4, 2, []float64{1, 0, 0, 2, 3, -1, 2, 2})
	y := mat.NewDense(4, 1, []float64{1, -1, 1, -1})
	chi2 := kernels.ChiSquared{Gamma: 1}
	const rule = "x: row 3: kernels: chi2: feature 2 is -1: features must be finite numbers ≥ 0"
	_, err := learners.KernelRidge{Kernel: chi2, Lambda: 1, NoIntercept: true}.Fit(ctx, dev, bad, y, learners.Options{})
	if want := "learners: kernel-ridge: solvers: " + rule; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = learners.SVR{Kernel: chi2, NoStandardize: true}.Fit(ctx, dev, bad, y, learners.Options{})
	if want := "learners: svr: " + rule; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	m, err := learners.KernelRidge{Kernel: chi2, Lambda: 1, NoIntercept: true}.Fit(ctx, dev, good, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = m.Predict(ctx, dev, bad)
	if want := "learners: kernel-ridge: predict: " + rule; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestOverflowingDistancesAreRefused checks that every learner whose kernel, given or default,
// depends on distances refuses samples whose distances overflow.
func TestOverflowingDistancesAreRefused(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := mat.NewDense(6, 1, []float64{1e155, -1e155, 2e155, 3e155, -5e155, 0}), mat.NewDense(6, 1, []float64{0, 1, 0, 1, 1, 0})
	for _, d := range learners.Catalogue() {
		if _, ok := d.Parameter("kernel"); !ok || d.Name == "fourier-ridge" { // the features of fourier-ridge need no distances
			continue
		}
		for _, task := range d.Tasks {
			for _, kernel := range []string{"", "gaussian(sigma=1)", "gaussian(sigma=1e153)"} {
				settings := map[string]string{}
				if kernel != "" {
					settings["kernel"] = kernel
				} else if d.LinearByDefault() {
					continue // the kernel uses dot products, whose overflow is detected
				}
				fit, err := d.Make(task, settings)
				if err != nil {
					t.Fatalf("%s: %v", d.Name, err)
				}
				if _, err = fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), "scale the features down") {
					t.Errorf("%s, %s, kernel %q: %v", d.Name, task, kernel, err)
				}
			}
		}
	}
}

package validate_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
	"gonum.org/v1/gonum/mat"
)

// TestFolds checks that the sizes of the folds, and of each stratum in the folds, differ by at most
// one, and that the seed determines the folds.
func TestFolds(t *testing.T) {
	for _, n := range []int{10, 11, 97} {
		for _, k := range []int{2, 3, 10} {
			strata := make([]int, n)
			for i := range strata {
				strata[i] = i * i % 3
			}
			for _, s := range [][]int{nil, strata} {
				fold, err := validate.Folds(n, k, s, 4)
				if err != nil {
					t.Fatal(err)
				}
				sizes, strataSizes := make([]int, k), map[int][]int{}
				for i, f := range fold {
					sizes[f]++
					if strataSizes[strata[i]] == nil {
						strataSizes[strata[i]] = make([]int, k)
					}
					strataSizes[strata[i]][f]++
				}
				if slices.Max(sizes)-slices.Min(sizes) > 1 {
					t.Errorf("%d samples in %d parts: %v", n, k, sizes)
				}
				for stratum, sizes := range strataSizes {
					if s != nil && slices.Max(sizes)-slices.Min(sizes) > 1 {
						t.Errorf("stratum %d of %d samples in %d parts: %v", stratum, n, k, sizes)
					}
				}
				again, _ := validate.Folds(n, k, s, 4)
				other, _ := validate.Folds(n, k, s, 5)
				if !slices.Equal(fold, again) || slices.Equal(fold, other) {
					t.Error("equal seeds give different folds, or different seeds give equal folds")
				}
			}
		}
	}
	for _, k := range []int{-1, 0, 1, 11} {
		if _, err := validate.Folds(10, k, nil, 1); err == nil {
			t.Errorf("%d parts are not refused", k)
		}
	}
	if _, err := validate.Folds(10, 2, []int{1}, 1); err == nil {
		t.Error("one stratum for ten samples is not refused")
	}
}

// TestBootstrap checks that each round draws n samples, and omits a fraction of about 1/e of the samples.
func TestBootstrap(t *testing.T) {
	const n = 10000
	rounds := validate.Bootstrap(n, 3)
	train, test := rounds(7)
	// The limit is five standard deviations, each below √n/2, of the number of samples that are not drawn.
	if len(train) != n || math.Abs(float64(len(test))-n/math.E) > 5*math.Sqrt(n)/2 {
		t.Errorf("%d drawn, %d left out", len(train), len(test))
	}
	again, _ := rounds(7)
	if other, _ := rounds(8); slices.Equal(train, other) || !slices.Equal(train, again) {
		t.Error("equal rounds draw different samples, or different rounds draw equal samples")
	}
	s := validate.NewSummary([]float64{1, 2, math.NaN(), 6})
	checkClose(t, "mean", s.Mean, 3, 0)
	checkClose(t, "sd", s.SD, math.Sqrt(7), 4*0x1p-52)
	if s.N != 3 {
		t.Errorf("%d scores", s.N)
	}
}

// TestBiasVariance checks that least squares for a linear truth has no bias, and the variance σ²·mean h(x) for the
// leverage h. The bias² of a constant predictor must be the variance of the truth.
func TestBiasVariance(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n, fits, sigma = 40, 400, 0.5
	t.Log("seed 21")
	draw := func(round int) (x, y, truth *mat.Dense) {
		r := rand.New(rand.NewPCG(21, uint64(round)))
		x, y, truth = mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
		for i := range n {
			v := float64(i)/n - 0.5 // the same points in each round: a fixed design
			x.Set(i, 0, v)
			truth.Set(i, 0, 1+3*v)
			y.Set(i, 0, 1+3*v+sigma*r.NormFloat64())
		}
		return x, y, truth
	}
	v, err := validate.BiasVariance(t.Context(), dev, fitter(t, "ridge", map[string]string{"lambda": "0"}), fits, draw, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The mean leverage of a line is 2/n. The tolerance is five relative standard deviations, √(2/800), of the
	// estimate.
	want := sigma * sigma * 2 / n
	checkClose(t, "variance", v.Variance, want, 5*math.Sqrt(2.0/800)*want)
	checkClose(t, "bias²", v.Bias2, 0, 5*math.Sqrt2*want/fits)
	checkClose(t, "noise", v.Noise, sigma*sigma, 5*math.Sqrt(2.0/n)*sigma*sigma)
	t.Logf("%+v", v)

	constant := func(context.Context, backend.Device, mat.Matrix, mat.Matrix, learners.Options) (learners.Model, error) {
		return learners.Ridge{}.Fit(t.Context(), dev, mat.NewDense(2, 1, []float64{0, 1}), mat.NewDense(2, 1, []float64{1, 1}), learners.Options{})
	}
	if v, err = validate.BiasVariance(t.Context(), dev, constant, 2, draw, learners.Options{}); err != nil {
		t.Fatal(err)
	}
	spread := 0.0
	for i := range n {
		d := 3 * (float64(i)/n - 0.5)
		spread += d * d / n
	}
	checkClose(t, "bias² of a constant", v.Bias2, spread, 1e-12)
	checkClose(t, "variance of a constant", v.Variance, 0, 1e-20)
	if _, err := validate.BiasVariance(t.Context(), dev, constant, 1, draw, learners.Options{}); err == nil {
		t.Error("one fit is not refused")
	}
}

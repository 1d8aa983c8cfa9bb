package learners_test

import (
	"math"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// TestSquaredNorm checks that the fact "squared norm" is Σ_ij α_i α_j k(x_i, x_j) for the centers
// and coefficients of the model, and ‖w‖² for a linear model.
func TestSquaredNorm(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const sigma = 1.5
	k := kernels.Gaussian{Sigma: sigma}
	x, y := gaussians(t, 40, 3, 11)
	sign := mat.NewDense(40, 1, nil)
	sign.Apply(func(i, _ int, _ float64) float64 { return math.Copysign(1, y.At(i, 0)) }, y)
	weights := make([]float64, 40)
	for i := range weights {
		weights[i] = float64(i % 4) // some weights are 0
	}
	o := learners.Options{Weights: weights}
	for name, c := range map[string]struct {
		fit    learners.Fitter
		y      mat.Matrix
		linear bool
	}{
		"kernel-ridge":      {fitter(learners.KernelRidge{Kernel: k, Lambda: 0.1}.Fit), y, false},
		"gaussian-process":  {fitter(learners.GaussianProcess{Kernel: k, Lambda: 0.1, Fixed: true}.Fit), y, false},
		"svr":               {fitter(learners.SVR{Kernel: k, C: 1, Epsilon: 0.1, NoStandardize: true}.Fit), y, false},
		"kernel-logistic":   {fitter(learners.KernelLogistic{Kernel: k, Lambda: 1}.Fit), sign, false},
		"kernel-perceptron": {fitter(learners.KernelPerceptron{Kernel: k, NoIntercept: true, NoShuffle: true}.Fit), sign, false},
		"perceptron":        {fitter(learners.Perceptron{NoShuffle: true}.Fit), sign, true},
		"ridge":             {fitter(learners.Ridge{Lambda: 1}.Fit), y, true},
		"least-squares":     {fitter(learners.LeastSquares{}.Fit), y, true},
		"ridge-constrained": {fitter(learners.RidgeConstrained{Theta: 0.5}.Fit), y, true},
		"bayes-ridge":       {fitter(learners.BayesRidge{}.Fit), y, true},
		"logistic":          {fitter(learners.Logistic{Lambda: 1}.Fit), sign, true},
	} {
		m, err := c.fit(t.Context(), dev, x, c.y, o)
		if err != nil {
			t.Fatal(name, err)
		}
		want, size := 0.0, 0.0
		if c.linear {
			w := m.(interface{ Coef() *mat.Dense }).Coef()
			want = mat.Dot(w.ColView(0), w.ColView(0))
			size = want
		} else {
			s, alpha := m.State(), ""
			for _, name := range []string{"alpha", "beta"} {
				if _, ok := s.Arrays[name]; ok {
					alpha = name
				}
			}
			for _, name := range []string{"centers", "points"} {
				if h, ok := s.Arrays[name]; ok {
					want, size = norm(h, s.Arrays[alpha], sigma)
				}
			}
		}
		// The bound is the rounding error of a sum of n² terms.
		checkClose(t, name, fact(t, m, "squared norm").(float64), want, 1e4*0x1p-52*size)
		if want <= 0 {
			t.Errorf("%s: ‖f‖² = %v", name, want)
		}
	}
}

// norm returns Σ_ij α_i α_j exp(−‖x_i − x_j‖²/2σ²), and the sum of the absolute values of its terms.
func norm(x, alpha backend.Host[float64], sigma float64) (sum, size float64) {
	for i := range x.Rows {
		for j := range x.Rows {
			d := 0.0
			for p, v := range x.Row(i) {
				d += (v - x.Row(j)[p]) * (v - x.Row(j)[p])
			}
			v := alpha.Row(i)[0] * alpha.Row(j)[0] * math.Exp(-d/(2*sigma*sigma))
			sum += v
			size += math.Abs(v)
		}
	}
	return sum, size
}

// TestNoiseFacts compares the facts for four samples with values by hand: the slope 1.1, b = 0, ‖r‖² = 2.7 and σ²
// = 2.7/2. Ridge with λ = 0 has the same facts.
func TestNoiseFacts(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := mat.NewDense(4, 1, []float64{1, 2, 3, 4}), mat.NewDense(4, 1, []float64{1, 3, 2, 5})
	likelihood := 0.0
	for _, r := range []float64{-0.1, 0.8, -1.3, 0.6} {
		likelihood += distuv.Normal{Sigma: math.Sqrt(2.7 / 4)}.LogProb(r)
	}
	for name, fit := range map[string]learners.Fitter{"least-squares": fitter(learners.LeastSquares{}.Fit), "ridge": fitter(learners.Ridge{}.Fit)} {
		m, err := fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		const bound = 1e3 * 0x1p-52
		checkClose(t, name+": noise variance", fact(t, m, "noise variance").(float64), 1.35, bound)
		checkClose(t, name+": log likelihood", fact(t, m, "log likelihood").(float64), likelihood, bound)

		// The density with noise N(0, σ²/w_i) has the factor √w_i.
		weights := []float64{1, 2, 0, 4}
		m, err = fit(t.Context(), dev, x, y, learners.Options{Weights: weights})
		if err != nil {
			t.Fatal(err)
		}
		f, squares := labels(t, dev, m, x), 0.0
		for i, w := range weights {
			squares += w * math.Pow(y.At(i, 0)-f.At(i, 0), 2)
		}
		want := 0.0
		for i, w := range weights {
			if w > 0 {
				want += distuv.Normal{Sigma: math.Sqrt(squares / 3 / w)}.LogProb(y.At(i, 0) - f.At(i, 0))
			}
		}
		checkClose(t, name+": noise variance of weights", fact(t, m, "noise variance").(float64), squares, bound*squares)
		checkClose(t, name+": log likelihood of weights", fact(t, m, "log likelihood").(float64), want, bound)
	}
}

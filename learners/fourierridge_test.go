package learners_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"gonum.org/v1/gonum/mat"
)

func fourierTerms(model learners.Model, x []float64, j int) (float64, int) {
	m := model.(*learners.FourierRidgeModel)
	cosines, sines := m.Coef()
	n, _ := cosines.Dims()
	omega := m.Frequencies()
	sum := math.Abs(m.Intercept()[j])
	for i := range n {
		// The rounding error of ωᵀx is proportional to the size of the terms of this sum.
		size := 1.0
		for p, v := range x {
			size += math.Abs(v * omega.At(i, p))
		}
		sum += size * (math.Abs(cosines.At(i, j)) + math.Abs(sines.At(i, j)))
	}
	return sum, 2 * n
}

func TestFourierRidge(t *testing.T) {
	for name, l := range map[string]learners.FourierRidge{
		"gaussian":  {Kernel: kernels.Gaussian{Sigma: 3}, Lambda: 0.1, Features: 40, NoIntercept: true},
		"intercept": {Kernel: kernels.Laplacian{Sigma: 6}, Lambda: 0.1, Features: 41},
		"matern":    {Kernel: kernels.Matern{Nu: 2.5, Sigma: 4}, Lambda: 0.1, Features: 40, NoIntercept: true},
	} {
		t.Run(name, func(t *testing.T) {
			learnertest.Run(t, learnertest.Suite{
				Learner:   "fourier-ridge",
				Fit:       fitter(l.Fit),
				Unfitted:  []learners.Model{&learners.FourierRidgeModel{}},
				Terms:     fourierTerms,
				Condition: 60 / 0.1, // ‖W^½Φ‖²/λ, where ‖Φ‖² ≤ n = 30 and weights are at most 2
			})
		})
	}
}

// TestFourierRidgeApproaches checks that FourierRidge approaches kernel ridge regression as the
// number of frequencies grows.
func TestFourierRidgeApproaches(t *testing.T) {
	const seed = 8
	t.Log("seed", seed)
	x, y := wave(seed, 150, 2)
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		k := kernels.Gaussian{Sigma: 1}
		exact, err := learners.KernelRidge{Kernel: k, Lambda: 1, NoIntercept: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := exact.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		last := math.Inf(1)
		for _, features := range []int{50, 800} {
			m, err := learners.FourierRidge{Kernel: k, Lambda: 1, Features: features, Seed: seed, NoIntercept: true}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f, err := m.Predict(t.Context(), dev, x)
			if err != nil {
				t.Fatal(err)
			}
			f.Sub(f, want)
			rms := mat.Norm(f, 2) / math.Sqrt(150)
			t.Logf("%d features: the predictions differ by %.3g", features, rms)
			// With 16 times as many features, the expected error is a quarter. The test allows a half.
			if rms > last/2 {
				t.Errorf("%d features: the predictions differ by %.3g, with fewer by %.3g", features, rms, last)
			}
			last = rms
		}
		if last > 0.1 {
			t.Errorf("the predictions differ by %.3g", last)
		}
	})
}

// TestFourierRidgeAgainstScikitLearn compares FourierRidge with scikit-learn's Ridge on the same
// features, which the script computes with numpy.
func TestFourierRidgeAgainstScikitLearn(t *testing.T) {
	x, y := wave(5, 300, 3)
	var want struct{ F []float64 }
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		m, err := learners.FourierRidge{Kernel: kernels.Gaussian{Sigma: 2}, Lambda: 0.3, Features: 60, Seed: 2}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want.F == nil {
			scikit(t, map[string]any{"x": rowsOf(x), "y": mat.Col(nil, 0, y), "w": rowsOf(m.Frequencies())}, `
from sklearn.linear_model import Ridge
arg = a["x"] @ a["w"].T
z = np.hstack([np.cos(arg), np.sin(arg)]) / np.sqrt(len(a["w"]))
out["f"] = Ridge(alpha=0.3, solver="svd").fit(z, a["y"]).predict(z)
`, &want)
		}
		f, err := m.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		// The relative error is at most n·2⁻⁵³ times the condition number (n + λ)/λ, and ‖w‖ ≤ ‖y‖/(2√λ).
		const n, lambda = 300, 0.3
		tol := n * 0x1p-53 * (n + lambda) / lambda * mat.Norm(y, 2) / (2 * math.Sqrt(lambda))
		maxError := 0.0
		for i, v := range want.F {
			maxError = max(maxError, checkClose(t, "prediction", f.At(i, 0), v, tol))
		}
		t.Logf("differences up to %.2g", maxError)
	})
}

// TestFourierRidgeOfSparseSamples compares fits to sparse samples with fits to the same dense samples.
func TestFourierRidgeOfSparseSamples(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n, d = 90, 200
	r := rand.New(rand.NewPCG(91, 0))
	x, y, weights := mat.NewDense(n, d, nil), mat.NewDense(n, 2, nil), make([]float64, n)
	for i := range n {
		for range 12 {
			x.Set(i, r.IntN(d), r.NormFloat64())
		}
		y.SetRow(i, []float64{r.NormFloat64(), r.NormFloat64()})
		weights[i] = float64(i % 3)
	}
	raw := x.RawMatrix()
	sparse := backend.Host[float64]{Rows: n, Cols: d, Stride: raw.Stride, Data: raw.Data}.CSR()
	for _, o := range []learners.Options{{}, {Weights: weights}} {
		l := learners.FourierRidge{Kernel: kernels.Matern{Nu: 1.5, Sigma: 3}, Lambda: 1, Features: 60, Tol: 1e-13, Std: true}
		want, err := l.Fit(t.Context(), dev, x, y, o)
		if err != nil {
			t.Fatal(err)
		}
		got, err := l.Fit(t.Context(), dev, sparse, y, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, values := range []func(m *learners.FourierRidgeModel) (*mat.Dense, error){
			func(m *learners.FourierRidgeModel) (*mat.Dense, error) { return m.Predict(t.Context(), dev, x) },
			func(m *learners.FourierRidgeModel) (*mat.Dense, error) { return m.Variance(t.Context(), dev, x) },
		} {
			a, err := values(want)
			if err != nil {
				t.Fatal(err)
			}
			b, err := values(got)
			if err != nil {
				t.Fatal(err)
			}
			// The tolerance is the rounding error of the phases ωᵀx, times the condition number 1 + Σw/λ < 100.
			if !mat.EqualApprox(a, b, 100*100*d*0x1p-52*mat.Norm(a, math.Inf(1))) {
				t.Error("the fits to sparse and to dense samples differ")
			}
		}
	}
	for _, optimize := range []string{"false", "true"} { // checks which of the fits reports a dense copy
		d, err := learners.Find("fourier-ridge")
		if err != nil {
			t.Fatal(err)
		}
		s, err := d.Parse(map[string]string{"kernel": "gaussian(sigma=3)", "features": "20", "optimize": optimize})
		if err != nil {
			t.Fatal(err)
		}
		fit, err := s.Fitter(learners.Regression)
		if err != nil {
			t.Fatal(err)
		}
		m, err := fit(t.Context(), dev, sparse, y.Slice(0, n, 0, 1), learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		// Only a fit with the search, optimize=true, makes a dense copy.
		if warned := strings.Contains(fmt.Sprint(m.(learners.Describer).Facts()), "dense copy"); warned != (optimize == "true") {
			t.Errorf("optimize=%s: the facts of the model mention a dense copy: %t", optimize, warned)
		}
	}
}

package learners_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"
)

// TestGates checks that the perceptron learns AND, with the w, b and margins computed by hand, and OR, and not
// XOR.
func TestGates(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x := mat.NewDense(4, 2, []float64{0, 0, 0, 1, 1, 0, 1, 1})
	for name, c := range map[string]struct {
		y         []float64
		separable bool
	}{
		"and": {[]float64{-1, -1, -1, 1}, true},
		"or":  {[]float64{-1, 1, 1, 1}, true},
		"xor": {[]float64{-1, 1, 1, -1}, false},
	} {
		y := mat.NewDense(4, 1, c.y)
		fitted, err := learners.Perceptron{Epochs: 1000, NoShuffle: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := fitted.(*learners.PerceptronModel)
		if separated := fact(t, m, "last epoch without mistakes"); separated != c.separable || mat.Equal(labels(t, dev, m, x), y) != c.separable {
			t.Errorf("%s: the last epoch without mistakes %v, separable %t", name, separated, c.separable)
		}
		if name == "and" {
			if w := m.Coef(); w.At(0, 0) != 3 || w.At(1, 0) != 2 || m.Intercept()[0] != -4 {
				t.Errorf("w = %v, b = %v", mat.Formatted(w.T()), m.Intercept())
			}
			checkClose(t, "functional margin", fact(t, m, "functional margin").(float64), 1, 0)
			checkClose(t, "geometric margin", fact(t, m, "geometric margin").(float64), 1/math.Sqrt(13), 4*0x1p-52)
		}
	}
}

// gaussians returns n standard normal samples of d features, and targets that depend on two of the features.
func gaussians(t *testing.T, n, d int, seed uint64) (x, y *mat.Dense) {
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	x, y = mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		for p := range d {
			x.Set(i, p, r.NormFloat64())
		}
		y.Set(i, 0, x.At(i, 0)-2*x.At(i, 1)+0.5*r.NormFloat64())
	}
	return x, y
}

// TestRidgeIsMAP checks that the posterior mean of w under the prior N(0, σ_w²I) and noise of variance σ² equals
// the w of ridge with λ = σ²/σ_w², and that ridge has no smaller training error than least squares.
func TestRidgeIsMAP(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := gaussians(t, 40, 3, 29)
	bayes, err := learners.BayesRidge{}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ridge, err := learners.Ridge{Lambda: bayes.Noise()[0] / bayes.Prior()[0]}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// The condition number of x is below 4.
	bound := 16 * 40 * 0x1p-52 * mat.Norm(ridge.Coef(), 2)
	for p := range 3 {
		checkClose(t, "weight", bayes.Coef().At(p, 0), ridge.Coef().At(p, 0), bound)
	}
	squares := func(m learners.Model) float64 {
		var d mat.Dense
		d.Sub(labels(t, dev, m, x), y)
		return mat.Norm(&d, 2)
	}
	ols, err := learners.LeastSquares{}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if squares(ridge) <= squares(ols) {
		t.Errorf("training error %v of ridge, %v of least squares", squares(ridge), squares(ols))
	}
}

// TestKernelRidgeIsGaussianProcess checks that the mean of a Gaussian process with the noise λ
// equals the prediction of kernel ridge.
func TestKernelRidgeIsGaussianProcess(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := gaussians(t, 40, 3, 31)
	const lambda = 0.1
	k := kernels.Gaussian{Sigma: 1.5}
	gp, err := learners.GaussianProcess{Kernel: k, Lambda: lambda, Fixed: true, UnitScale: true, NoIntercept: true}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ridge, err := learners.KernelRidge{Kernel: k, Lambda: lambda, NoIntercept: true}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, g := labels(t, dev, gp, x), labels(t, dev, ridge, x)
	for i := range 40 {
		// The condition number of K + λI is at most n/λ + 1.
		checkClose(t, "mean", f.At(i, 0), g.At(i, 0), 40*(40/lambda+1)*0x1p-52*mat.Norm(y, 2))
	}
}

// TestSVCOfLambda checks that with C = 1/(2Nλ) the support vector machine minimizes the mean of the
// hinge losses plus λ‖w‖², that is, no random change of w and b gives a lower value.
func TestSVCOfLambda(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n, lambda = 40, 0.05
	x, y := gaussians(t, n, 2, 37)
	for i := range n {
		y.Set(i, 0, math.Copysign(1, y.At(i, 0)))
	}
	m, err := learners.SVC{Kernel: kernels.Linear{}, C: 1 / (2 * n * lambda), Tol: 1e-10}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := m.Decision(t.Context(), dev, mat.NewDense(3, 2, []float64{0, 0, 1, 0, 0, 1}))
	if err != nil {
		t.Fatal(err)
	}
	sum := func(b, w0, w1 float64) float64 {
		loss := 0.0
		for i := range n {
			loss += max(0, 1-y.At(i, 0)*(b+w0*x.At(i, 0)+w1*x.At(i, 1))) / n
		}
		return loss + lambda*(w0*w0+w1*w1)
	}
	b := f.At(0, 0)
	w0, w1 := f.At(1, 0)-b, f.At(2, 0)-b
	minimum := sum(b, w0, w1)
	r := rand.New(rand.NewPCG(41, 0))
	for k := range 9000 {
		size := math.Pow(10, -float64(k%6))
		// The solver stops at a violation of 1e-10.
		if s := sum(b+size*r.NormFloat64(), w0+size*r.NormFloat64(), w1+size*r.NormFloat64()); s < minimum-1e-8 {
			t.Fatalf("change %d: %v is below %v", k, s, minimum)
		}
	}
}

// TestCosineSeriesTendsToSinc compares the Riemann sum (2π/L)·Σ_l cos(2πlΔ/L) with its limit sin(2πΔ)/Δ, up to the
// error of the trapezoidal rule and of the end points.
func TestCosineSeriesTendsToSinc(t *testing.T) {
	for _, delta := range []float64{0, 0.1, 0.37, 1, 2.5} {
		for _, l := range []int{16, 256, 4096, 65536} {
			h := 2 * math.Pi / float64(l)
			series := h * kernels.Eval(kernels.CosineSeries{L: l}, []float64{delta}, []float64{0})
			limit := kernels.Eval(kernels.SincLimit{}, []float64{delta}, []float64{0})
			checkClose(t, "series", series, limit, h+2*math.Pi*h*h*delta*delta/12+float64(l)*h*0x1p-52)
		}
	}
}

// TestWidrowHoff checks that the Widrow-Hoff rule takes the steps of the textbook, converges to the least-squares
// solution if its residual is 0, and returns an error for a learning rate at which it diverges.
func TestWidrowHoff(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	// By hand, with η = 1/4: from w = b = 0, the sample x = 1, y = 2 gives w = b = 1/2. The error at x = 2 is then 1 −
	// 3/2.
	x, y := mat.NewDense(2, 1, []float64{1, 2}), mat.NewDense(2, 1, []float64{2, 1})
	m, err := learners.LeastSquares{LMS: true, Rate: 0.25, Epochs: 1}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	checkClose(t, "w", m.Coef().At(0, 0), 0.25, 0)
	checkClose(t, "b", m.Intercept()[0], 0.375, 0)
	x, _ = gaussians(t, 40, 3, 12)
	y = mat.NewDense(40, 1, nil)
	for i := range 40 {
		y.Set(i, 0, 2*x.At(i, 0)-x.At(i, 2)+3)
	}
	if m, err = (learners.LeastSquares{LMS: true, Epochs: 1000}).Fit(t.Context(), dev, x, y, learners.Options{}); err != nil {
		t.Fatal(err)
	}
	for p, want := range []float64{2, 0, -1} {
		checkClose(t, "w", m.Coef().At(p, 0), want, 1e-10)
	}
	checkClose(t, "b", m.Intercept()[0], 3, 1e-10)
	if _, err := (learners.LeastSquares{LMS: true, Rate: 10}).Fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), "diverge at rate 10") {
		t.Errorf("got %v", err)
	}
	if _, err := (learners.LeastSquares{Rate: 1}).Fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), "rate works only with method lms") {
		t.Errorf("got %v", err)
	}
}

// TestLassoIsLaplaceMAP compares the lasso solution at λ = 2σ²/τ with the mode of the posterior density, found by
// a search on a grid, for X = I and Laplace priors of scale τ = 1/2.
func TestLassoIsLaplaceMAP(t *testing.T) {
	y := []float64{3, 0.4}
	m, err := learners.Lasso{Lambda: 4, NoIntercept: true, Tol: 1e-12}.Fit(t.Context(), backendtest.Device(t, "cpu"), mat.NewDense(2, 2, []float64{1, 0, 0, 1}), mat.NewDense(2, 1, y), learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	prior := distuv.Laplace{Mu: 0, Scale: 0.5}
	for p, v := range y {
		maxDensity, mode := math.Inf(-1), 0.0
		for step := -4000; step <= 4000; step++ {
			w := float64(step) / 1000
			if density := prior.LogProb(w) + (distuv.Normal{Mu: w, Sigma: 1}).LogProb(v); density > maxDensity {
				maxDensity, mode = density, w
			}
		}
		checkClose(t, "w", m.Coef().At(p, 0), mode, 1e-3)
	}
}

// TestReferenceSign checks the textbook's formula Pr(c) = e^{−v_cᵀx − a_c}/(1 + Σ_j e^{−v_jᵀx − a_j}) for v = −w
// and a = −b.
func TestReferenceSign(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := gaussians(t, 60, 2, 13)
	y.Apply(func(i, _ int, v float64) float64 { return math.Max(0, math.Min(2, math.Round(v+1))) }, y)
	m, err := learners.Logistic{Lambda: 1, Reference: true}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := m.Proba(t.Context(), dev, x)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 60 {
		e, sum := [3]float64{2: 1}, 1.0
		for c := range 2 {
			f := -m.Intercept()[c]
			for q := range 2 {
				f -= m.Coef().At(q, c) * x.At(i, q)
			}
			e[c] = math.Exp(-f)
			sum += e[c]
		}
		for c := range e {
			checkClose(t, "Pr", p.At(i, c), e[c]/sum, 1e-14)
		}
	}
}

package learners_test

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"gonum.org/v1/gonum/mat"
)

func TestRVM(t *testing.T) {
	learnertest.Run(t, learnertest.Suite{
		Learner: "rvm", Single: true,
		Fit:      fitter(learners.RVM{Kernel: kernels.Gaussian{Sigma: 3}, Tol: 1e-12}.Fit),
		Unfitted: []learners.Model{&learners.RVMModel{}},
		// An error of 1e-6 in α increases the evidence by a fraction of 1e-12.
		Condition: 1e8,
	})
}

// sinc returns n noisy values of sin(x)/x on (−10, 10).
func sinc(n int, noise float64, seed uint64) (x, y *mat.Dense) {
	r := rand.New(rand.NewPCG(seed, 0))
	x, y = mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		v := 20*r.Float64() - 10
		x.Set(i, 0, v)
		y.Set(i, 0, math.Sin(v)/v+noise*r.NormFloat64())
	}
	return x, y
}

// TestRVMEvidence checks that the log evidence never decreases, that both methods reach nearly the
// same maximum, and that the error is close to the published error.
func TestRVMEvidence(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		const n = 100
		t.Log("seed 21")
		x, y := sinc(n, 0.1, 21)
		k := kernels.Gaussian{Sigma: 2}
		values := map[learners.RVMMethod]float64{}
		for _, method := range []learners.RVMMethod{learners.Sequential, learners.FixedPoint} {
			m, err := learners.RVM{Kernel: k, Method: method, Tol: 1e-6}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			trace := m.Trace()
			for i, v := range trace[1:] {
				// The tolerance allows for sums of n terms as large as the evidence, in an ill-conditioned system.
				if !(v >= trace[i]-1e-8*(1+math.Abs(v))) {
					t.Errorf("%s: step %d: the evidence falls from %v to %v", method, i+2, trace[i], v)
				}
			}
			value := trace[len(trace)-1]
			values[method] = value
			_, weights := m.Relevance()
			f, err := m.Predict(t.Context(), dev, x)
			if err != nil {
				t.Fatal(err)
			}
			meanSquare := 0.0
			for i := range n {
				v := x.At(i, 0)
				meanSquare += (f.At(i, 0) - math.Sin(v)/v) * (f.At(i, 0) - math.Sin(v)/v) / n
			}
			// Tipping (2001) reports, for 100 samples with this noise, a mean RMSE of 0.0277 and 6.7 relevance
			// vectors.
			if math.Sqrt(meanSquare) > 0.042 || len(weights) > 15 {
				t.Errorf("%s: RMSE %.3g with %d relevance vectors", method, math.Sqrt(meanSquare), len(weights))
			}
			checkClose(t, "noise deviation", math.Sqrt(m.Noise()), 0.1, 4*0.1/math.Sqrt(2*n)+0.01)
			t.Logf("%s: RMSE %.3g; %v", method, math.Sqrt(meanSquare), m.Facts())
		}
		// The two methods may end at different local maxima, whose values are close.
		checkClose(t, "log evidence", values[learners.FixedPoint], values[learners.Sequential], 2)
	})
}

// TestRVMByHand compares the fit with the closed form of the maximum for one basis function, the
// constant φ_0. The second basis function is 0 at each sample.
func TestRVMByHand(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		// The covariance matrix of the N = 4 targets, σ²I plus 1/α in every element, has the eigenvalues σ² (three
		// times) and λ = σ² + N/α. The targets have the mean m = 2. The evidence is largest for σ² = 4/3 and λ = Nm² =
		// 16.
		x, y := mat.NewDense(4, 1, nil), mat.NewDense(4, 1, []float64{1, 3, 1, 3})
		m, err := learners.RVM{Kernel: kernels.Linear{}, Tol: 1e-14}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		checkClose(t, "noise", m.Noise(), 4./3, 1e-6)
		trace := m.Trace()
		want := -(4*math.Log(2*math.Pi) + 3*math.Log(4./3) + math.Log(16) + 4/(4./3) + 16./16) / 2
		checkClose(t, "log evidence", trace[len(trace)-1], want, 1e-10)
		f, err := m.Predict(t.Context(), dev, x.Slice(0, 1, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		// At the maximum, the weight has the mean μ = (N/σ²)m/(N/σ² + α) with N/α = 16 − 4/3.
		alpha := 4 / (16 - 4./3)
		checkClose(t, "mean", f.At(0, 0), 2*3/(3+alpha), 1e-6)
		v, err := m.Variance(t.Context(), dev, x.Slice(0, 1, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		checkClose(t, "variance", v.At(0, 0), 4./3+1/(3+alpha), 1e-6)
	})
}

// TestRVMSettings checks that invalid settings give errors.
func TestRVMSettings(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := sinc(60, 0.1, 1)
	for want, l := range map[string]learners.RVM{
		`method: "slow" is not known`: {Method: "slow"},
		"tol must be":                 {Tol: -1},
		"iterations must be":          {MaxIter: -1},
	} {
		if _, err := l.Fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	for _, method := range []learners.RVMMethod{learners.Sequential, learners.FixedPoint} {
		m, err := learners.RVM{Method: method, MaxIter: 2}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if w := fact(t, m, "warning").(string); !strings.Contains(w, "after 2 steps a step still increases the log evidence by ") {
			t.Errorf("%s: got %q", method, w)
		}
		if f, err := m.Predict(t.Context(), dev, x); err != nil || f.At(0, 0) != f.At(0, 0) {
			t.Errorf("%s: the model of two steps: %v", method, err)
		}
	}
}

// TestRVMLarge fits 2000 samples and logs the time.
func TestRVMLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("2000 samples: not under -short")
	}
	dev := backendtest.Device(t, "cpu")
	t.Log("seed 23")
	r := rand.New(rand.NewPCG(23, 0))
	const n, d = 2000, 5
	x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
	for i := range n { // the targets are Friedman's first function plus noise
		for p := range d {
			x.Set(i, p, r.Float64())
		}
		v := x.RawRowView(i)
		y.Set(i, 0, 10*math.Sin(math.Pi*v[0]*v[1])+20*(v[2]-0.5)*(v[2]-0.5)+10*v[3]+5*v[4]+r.NormFloat64())
	}
	start := time.Now()
	m, err := learners.RVM{Kernel: kernels.Gaussian{Sigma: 0.5}}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%.2f s; %v", time.Since(start).Seconds(), m.Facts())
	trace := m.Trace()
	for i, v := range trace[1:] {
		if !(v >= trace[i]-1e-8*math.Abs(v)) {
			t.Errorf("step %d: the evidence falls from %v to %v", i+2, trace[i], v)
		}
	}
	checkClose(t, "noise deviation", math.Sqrt(m.Noise()), 1, 5/math.Sqrt(2*n)+0.03)
}

// TestRVMManyVectors checks that a fit that needs hundreds of relevance vectors with similar weights converges
// within the limit of steps, and that no step decreases the evidence.
func TestRVMManyVectors(t *testing.T) {
	if testing.Short() {
		t.Skip("1000 samples: not under -short")
	}
	dev := backendtest.Device(t, "cpu")
	t.Log("seed 29")
	r := rand.New(rand.NewPCG(29, 0))
	const n, d = 1000, 20
	x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		for p := range d {
			x.Set(i, p, r.NormFloat64())
		}
		y.Set(i, 0, math.Sin(x.At(i, 0))+x.At(i, 1)*x.At(i, 2)+0.1*r.NormFloat64())
	}
	m, err := learners.RVM{Kernel: kernels.Gaussian{Sigma: 4}}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Log(m.Facts())
	for _, f := range m.Facts() {
		if f.Name == "warning" {
			t.Error(f.Value)
		}
	}
	trace := m.Trace()
	for i, v := range trace[1:] {
		if !(v >= trace[i]-1e-8*(1+math.Abs(v))) {
			t.Errorf("step %d: the evidence falls from %v to %v", i+2, trace[i], v)
		}
	}
}

// TestFixedPointSettles checks that a coarse Tol gives the same number of relevance vectors and nearly the same
// evidence, because the fixed-point iteration ends only when α has converged.
func TestFixedPointSettles(t *testing.T) {
	x, y := sinc(100, 0.1, 21)
	var evidence []float64
	var vectors []any
	for _, tol := range []float64{1, 1e-6} {
		m, err := learners.RVM{Kernel: kernels.Gaussian{Sigma: 2}, Method: learners.FixedPoint, Tol: tol}.Fit(t.Context(), backendtest.Device(t, "cpu"), x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		evidence, vectors = append(evidence, fact(t, m, "log evidence").(float64)), append(vectors, fact(t, m, "relevance vectors"))
	}
	checkClose(t, "log evidence", evidence[0], evidence[1], 1e-3)
	if vectors[0] != vectors[1] {
		t.Errorf("%v relevance vectors", vectors)
	}
}

// TestRVMOfFeatures checks the conditions for a maximum of the evidence, for basis functions φ_j that are orthogonal
// features of squared length n. Let t be the targets, β = 1/σ², and Σ_jj the posterior variance of coefficient j, so
// that α_j = 1/Σ_jj − βn. Then
//
//	μ_j = βΣ_jj φ_jᵀt,  μ_j² = 1/α_j − Σ_jj,  σ² = ‖t − Φμ‖²/(n − Σ(1 − α_jΣ_jj))
//
// and (βφ_jᵀt)² ≤ βn for a function that is not in the model.
func TestRVMOfFeatures(t *testing.T) {
	const n, d = 32, 12
	t.Log("seed 52")
	r := rand.New(rand.NewPCG(52, 0))
	x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		for j := range d - 1 {
			// The features are Walsh functions: the parity of the number of bits that are 1 both in i and in j +
			// 1.
			x.Set(i, j, float64(1-2*(bits.OnesCount(uint(i&(j+1)))%2)))
		}
		y.Set(i, 0, 1+2*x.At(i, 2)-0.5*x.At(i, 6)+0.3*x.At(i, 9)+0.2*r.NormFloat64())
	}
	for _, method := range []learners.RVMMethod{learners.Sequential, learners.FixedPoint} {
		eachFastDevice(t, func(t *testing.T, dev backend.Device) {
			m, err := learners.RVM{Features: true, Method: method, Tol: 1e-13, MaxIter: 100000}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			queries := mat.NewDense(d+1, d, nil)
			for j := range d {
				queries.Set(j+1, j, 1)
			}
			f, err := m.Predict(t.Context(), dev, queries)
			if err != nil {
				t.Fatal(err)
			}
			v, err := m.Variance(t.Context(), dev, queries)
			if err != nil {
				t.Fatal(err)
			}
			// With β = 1/noise, the evidence is quadratic in ln α and ln β near its maximum, so their errors are about
			// √Tol. The fixed-point iteration ends when no ln α changes by more than 1e-3.
			tol := 100 * math.Sqrt(1e-13)
			if method == learners.FixedPoint {
				tol = 1e-2
			}
			beta, residual, gammas, numInside := 1/m.Noise(), 0.0, 0.0, 0
			fit := make([]float64, n)
			for j := range d + 1 {
				phi := func(i int) float64 {
					if j == 0 {
						return 1
					}
					return x.At(i, j-1)
				}
				mu, sigma, c := f.At(j, 0), v.At(j, 0)-m.Noise(), 0.0
				if j > 0 {
					mu, sigma = mu-f.At(0, 0), v.At(j, 0)-v.At(0, 0)
				}
				for i := range n {
					c += phi(i) * y.At(i, 0)
					fit[i] += mu * phi(i)
				}
				if mu == 0 {
					if beta*c*c > n*(1+tol) {
						t.Errorf("%s: function %d is left out with (βφᵀt)² = %v, βn = %v", method, j, beta*beta*c*c, beta*n)
					}
					continue
				}
				numInside++
				alpha := 1/sigma - beta*n
				checkClose(t, "μ", mu, beta*sigma*c, tol*math.Abs(mu))
				checkClose(t, "μ²", mu*mu, 1/alpha-sigma, tol*(mu*mu+sigma))
				gammas += 1 - alpha*sigma
			}
			for i := range n {
				residual += (y.At(i, 0) - fit[i]) * (y.At(i, 0) - fit[i])
			}
			checkClose(t, "σ²", m.Noise(), residual/(n-gammas), tol*m.Noise())
			if f.At(d, 0) != f.At(0, 0) || numInside < 4 {
				t.Errorf("%s: %d functions, the column of zeros has the weight %v", method, numInside, f.At(d, 0)-f.At(0, 0))
			}
		})
	}
	_, err := learners.RVM{Features: true, Kernel: kernels.Linear{}}.Fit(t.Context(), backendtest.Device(t, "cpu"), x, y, learners.Options{})
	if err == nil || !strings.Contains(err.Error(), "kernel works only with basis kernel") {
		t.Errorf("features and a kernel: %v", err)
	}
}

package learners_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// TestOneClassKeepsNu checks that at most a fraction ν of the training samples has f < 0 (Schölkopf et al. 2001,
// proposition 3), for small ν·n, a small range of kernel values, equal rows and weights (scikit-learn #4195).
func TestOneClassKeepsNu(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const seed = 5
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	sizes := []int{1, 5, 40, 500}
	if !testing.Short() {
		sizes = append(sizes, 2500) // from 2000 rows on, the solver shrinks the problem
	}
	for _, n := range sizes {
		uniform, copies, equal, gauss := mat.NewDense(n, 4, nil), mat.NewDense(n, 4, nil), mat.NewDense(n, 4, nil), mat.NewDense(n, 4, nil)
		for i := range n {
			for j := range 4 {
				uniform.Set(i, j, r.Float64())
				copies.Set(i, j, uniform.At(i%(1+n/3), j))
				equal.Set(i, j, 0.3)
				gauss.Set(i, j, 1e3+10*r.NormFloat64())
			}
		}
		weights := make([]float64, n)
		for i := range weights {
			weights[i] = []float64{0.5, 1, 3}[i%3]
		}
		for data, x := range map[string]*mat.Dense{"uniform": uniform, "copies": copies, "equal": equal, "normal": gauss} {
			for _, k := range []kernels.Kernel{
				nil, kernels.Gaussian{Sigma: 1.4}, kernels.Gaussian{Sigma: 0.05}, kernels.Gaussian{Sigma: 1e4}, kernels.Laplacian{Sigma: 2},
				kernels.Linear{}, kernels.Polynomial{Degree: 3, C: 1},
			} {
				if n > 1000 && k == (kernels.Polynomial{Degree: 3, C: 1}) {
					continue // the fit is slow, because the kernel has values as large as 1e18
				}
				if data == "equal" && k == nil {
					continue // for equal rows the default kernel has no sigma
				}
				for _, nu := range required.Subset(3, []float64{1e-6, 1e-3, 0.01, 0.05, 1. / 3, 0.5, 1}) {
					for _, w := range [][]float64{nil, weights} {
						name := fmt.Sprintf("%d %s rows, %v, nu %v, weights %v", n, data, k, nu, w != nil)
						m, err := learners.OneClassSVM{Kernel: k, Nu: nu}.Fit(t.Context(), dev, x, nil, learners.Options{Weights: w})
						if err != nil {
							t.Errorf("%s: %v", name, err)
							continue
						}
						f, err := m.Predict(t.Context(), dev, x)
						if err != nil {
							t.Fatal(err)
						}
						total, outsideWeight := 0.0, 0.0
						for i := range n {
							weight := 1.0
							if w != nil {
								weight = w[i]
							}
							total += weight
							minDecision := f.At(i, 0)
							if i%37 == 0 {
								single, err := m.Predict(t.Context(), dev, x.Slice(i, i+1, 0, 4))
								if err != nil {
									t.Fatal(err)
								}
								minDecision = min(minDecision, single.At(0, 0))
							}
							if minDecision < 0 {
								outsideWeight += weight
							}
						}
						// The sum νΣw has n roundings.
						if outsideWeight > nu*total*(1+float64(n)*0x1p-52) {
							t.Errorf("%s: %v of %v are outside", name, outsideWeight, total)
						}
					}
				}
			}
		}
	}
}

package learners_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// TestLassoCorrelated fits features with the correlation 0.9, some of them equal and one constant, with XᵀX and
// without. Coordinate descent must take at most 100 passes over the weights for each penalty, and the
// Karush–Kuhn–Tucker conditions must hold.
func TestLassoCorrelated(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		t.Log("seed 11")
		r := rand.New(rand.NewPCG(11, 0))
		const tol = 1e-10
		for _, c := range []struct {
			n, d  int
			ratio float64 // ratio of the smallest penalty to the largest
		}{{400, 150, 1e-3}, {100, 150, 1e-2}, {60, 2100, 0.1}} {
			n, d := c.n, c.d
			if d > 2048 && testing.Short() {
				continue
			}
			x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
			for i := range n {
				shared, f := math.Sqrt(0.9)*r.NormFloat64(), 0.0
				for p := range d {
					v := shared + math.Sqrt(0.1)*r.NormFloat64()
					switch {
					case p == 7:
						v = 3
					case p%10 == 9:
						v = x.At(i, p-5)
					}
					x.Set(i, p, v)
					f += v * math.Exp(-float64(p)/10) * float64(1-2*(p%2))
				}
				y.Set(i, 0, f+0.5*r.NormFloat64())
			}
			var maxProduct float64 // the largest element of |Xᵀ(y − ȳ)|
			mean := mat.Sum(y) / float64(n)
			for p := range d {
				maxProduct = max(maxProduct, math.Abs(mat.Dot(x.ColView(p), y.ColView(0))-mean*mat.Sum(x.ColView(p))))
			}
			var lambdas []float64
			for k := range 6 {
				lambdas = append(lambdas, 2*maxProduct*math.Pow(c.ratio, float64(k)/5))
			}
			path, err := learners.Lasso{Tol: tol}.Path(t.Context(), dev, x, y, lambdas, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for k, m := range path {
				t.Logf("%d×%d, λ = %.3g: %v", n, d, lambdas[k], m.Facts())
				if sweeps := fact(t, m, "iterations").(int); sweeps > 100 {
					t.Errorf("%d×%d, λ = %v: %d sweeps", n, d, lambdas[k], sweeps)
				}
				kkt(t, dev, m, x, y, lambdas[k], tol)
			}
		}
	})
}

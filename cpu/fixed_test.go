package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// TestErrorOf16BitsIsLikeNoise checks that the spectral norm of the matrix of rounding errors is near
// 2·step·√(n/12), the norm of independent errors with the variance step²/12 (Wigner 1958).
func TestErrorOf16BitsIsLikeNoise(t *testing.T) {
	const n, d, seed = 700, 6, 5
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	points := backend.NewHost[float64](n, d)
	for i := range points.Data {
		points.Data[i] = rng.NormFloat64()
	}
	dev, err := driver{}.Open(bestDevice().tier.Name, backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	q := dev.F64().(*queue[float64])
	x := q.Wrap(points)
	k := kernels.Gaussian{Sigma: 3}
	a, err := q.NewFixed(n)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Free()
	q.GramPacked(a, k, x)
	e := backend.NewHost[float64](n, n)
	if err := q.DownloadPacked(e, a, 0); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		for j := range i + 1 {
			v := e.Row(i)[j] - kernels.Eval(k, points.Row(i), points.Row(j))
			e.Row(i)[j], e.Row(j)[i] = v, v
		}
	}
	v, w := make([]float64, n), make([]float64, n)
	for i := range v {
		v[i] = rng.NormFloat64()
	}
	norm := 0.0
	for range 100 { // power iteration: gives a lower bound that is within a few percent of the norm
		sum := 0.0
		for i := range w {
			w[i] = 0
			for j, u := range v {
				w[i] += e.Row(i)[j] * u
			}
			sum += w[i] * w[i]
		}
		norm = math.Sqrt(sum)
		for i := range v {
			v[i] = w[i] / norm
		}
	}
	noise := 2.0 / 65535 * math.Sqrt(n/12.0)
	t.Logf("‖E‖ is %.3g, the norm of noise is %.3g", norm, noise)
	if !(norm > noise/2 && norm < 1.5*noise) {
		t.Errorf("‖E‖ is %.3g, the norm of noise is %.3g", norm, noise)
	}
}

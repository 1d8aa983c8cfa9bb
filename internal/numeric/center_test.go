package numeric

import (
	"context"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
)

// TestMean compares the weighted means with sums in 400-bit arithmetic, for several kinds of columns.
func TestMean(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 0))
	for _, n := range []int{1, 2, 255, 257, 40000} {
		h := backend.NewHost[float64](n, 4)
		p := Part{N: n, Weight: make([]float64, n)}
		for i := range n {
			p.Weight[i] = 0.5 + r.Float64()
			copy(h.Row(i), []float64{r.NormFloat64(), 1e9 + r.NormFloat64(), float64(i), r.NormFloat64()})
			if i == 0 {
				h.Row(i)[3] = 1e6
			}
		}
		c, err := p.Mean(t.Context(), h)
		if err != nil {
			t.Fatal(err)
		}
		big400 := func(v float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(v) }
		for j := range h.Cols {
			sum, total, largest := big400(0), big400(0), 0.0
			for i, w := range p.Weight {
				sum.Add(sum, big400(0).Mul(big400(w), big400(h.Row(i)[j])))
				total.Add(total, big400(w))
			}
			mean := sum.Quo(sum, total)
			m, _ := mean.Float64()
			for i := range n {
				largest = max(largest, math.Abs(h.Row(i)[j]-m))
			}
			remainder, _ := mean.Sub(mean, big400(c[0][j])).Float64()
			// The bound allows n roundings in the sum of the differences from an approximate mean, and one of c[1].
			if bound := 0x1p-52 * (float64(n)*0x1p-52*math.Abs(m) + 4*float64(n)*largest + 0x1p-52*math.Abs(m)); !(math.Abs(remainder-c[1][j]) <= bound) {
				t.Errorf("n = %d, column %d: the mean is %v and %v, off by %.3g; bound %.3g", n, j, c[0][j], c[1][j], remainder-c[1][j], bound)
			}
			if math.Abs(c[1][j]) > 0x1p-52*math.Abs(c[0][j])+0x1p-1000 {
				t.Errorf("n = %d, column %d: the second number %v is not a rounding error of the first %v", n, j, c[1][j], c[0][j])
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := (Part{N: 3}).Mean(ctx, backend.NewHost[float64](3, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("after the cancellation: %v", err)
	}
}

package neighbors_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/neighbors"
	"github.com/mercer-go/mercer/internal/numeric"
)

// TestMedianDistanceOfZeros compares the median with its definition, for rows with different fractions of zeros.
func TestMedianDistanceOfZeros(t *testing.T) {
	const n, d = 61, 300
	for _, fraction := range []float64{0.01, 0.06, 0.07, 0.5, 1} {
		r := rand.New(rand.NewPCG(n, d))
		x, weights := backend.NewHost[float64](n, d), make([]float64, n)
		for i := range n {
			weights[i] = float64(i % 3)
			for j := range d {
				if r.Float64() < fraction {
					x.Row(i)[j] = r.NormFloat64()
				}
			}
		}
		copy(x.Row(7), x.Row(4))
		var want []float64
		for i := range n {
			for j := range i {
				sum := 0.0
				for k, v := range x.Row(i) {
					sum += (v - x.Row(j)[k]) * (v - x.Row(j)[k])
				}
				if sum > 0 && weights[i] > 0 && weights[j] > 0 {
					want = append(want, math.Sqrt(sum))
				}
			}
		}
		slices.Sort(want)
		m := (want[(len(want)-1)/2] + want[len(want)/2]) / 2
		for name, points := range map[string]numeric.Points{"dense": numeric.DensePoints(x), "sparse": numeric.SparsePoints(x.CSR())} {
			got, err := neighbors.MedianDistance(t.Context(), points, weights, 1)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got-m) > (d+4)*0x1p-52*m {
				t.Errorf("%s, a fraction %v of nonzeros: the median is %v, not %v", name, fraction, got, m)
			}
		}
	}
}

package numeric

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestEigenvalues checks the eigenvalues of a diagonal matrix to which reflections were applied,
// which change the eigenvalues only by rounding errors.
func TestEigenvalues(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{1, 2, 3, 17, 60} {
		want := make([]float64, n)
		a := NewSmall(n, n)
		for i := range n {
			want[i] = math.Exp(4 * r.NormFloat64())
			if i%5 == 4 {
				want[i] = want[i-1] // a double eigenvalue
			}
			if i%7 == 6 {
				want[i] = 0
			}
			a.Set(i, i, want[i])
		}
		for range 3 { // A ← H A H, H = I − 2vvᵀ
			v, size := make([]float64, n), 0.0
			for i := range v {
				v[i] = r.NormFloat64()
				size += v[i] * v[i]
			}
			for _, transpose := range []bool{false, true} {
				for j := range n {
					dot := 0.0
					at := func(i int) *float64 {
						if transpose {
							return &a.Data[j*n+i]
						}
						return &a.Data[i*n+j]
					}
					for i := range n {
						dot += v[i] * *at(i)
					}
					for i := range n {
						*at(i) -= 2 * dot / size * v[i]
					}
				}
			}
		}
		got := a.Eigenvalues(t.Context())
		slices.Sort(got)
		slices.Sort(want)
		// Each of about n steps changes an eigenvalue by at most ε‖A‖ (Weyl).
		bound := 16 * float64(n) * Epsilon * want[n-1]
		for i := range n {
			if !(math.Abs(got[i]-want[i]) <= bound) {
				t.Errorf("n %d: eigenvalue %d is %v, want %v, allowed %.2g", n, i, got[i], want[i], bound)
			}
		}
	}
}

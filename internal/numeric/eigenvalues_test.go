package numeric

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestEigenvalues checks eigenvalues, eigenvectors and singular values of a diagonal matrix after reflections.
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
					element := func(i int) *float64 {
						if transpose {
							return &a.Data[j*n+i]
						}
						return &a.Data[i*n+j]
					}
					for i := range n {
						dot += v[i] * *element(i)
					}
					for i := range n {
						*element(i) -= 2 * dot / size * v[i]
					}
				}
			}
		}
		values, vectors := Small{n, n, slices.Clone(a.Data)}.Eigen(t.Context())
		singular := Small{n, n, slices.Clone(a.Data)}.SingularValues(t.Context())
		original := slices.Clone(a.Data)
		got := a.Eigenvalues(t.Context())
		slices.Sort(got)
		slices.Sort(want)
		// About n steps change an eigenvalue by at most ε‖A‖ each (Weyl).
		bound := 16 * float64(n) * Epsilon * want[n-1]
		for i := range n {
			for name, v := range map[string]float64{"Eigenvalues": got[i], "Eigen": values[n-1-i], "SingularValues": singular[n-1-i]} {
				if !(math.Abs(v-want[i]) <= bound) {
					t.Errorf("n %d: %s: value %d is %v, want %v, allowed %.2g", n, name, i, v, want[i], bound)
				}
			}
		}
		for i, value := range values {
			v := vectors.Data[i*n : (i+1)*n]
			for j := range n {
				if r := math.Abs(Dot(original[j*n:(j+1)*n], v) - value*v[j]); !(r <= bound) {
					t.Errorf("n %d: eigenvector %d: the residual of row %d is %.2g, allowed %.2g", n, i, j, r, bound)
				}
				product := Dot(v, vectors.Data[j*n:(j+1)*n])
				if i == j {
					product--
				}
				if !(math.Abs(product) <= 16*float64(n)*Epsilon) {
					t.Errorf("n %d: the product of eigenvectors %d and %d differs by %.2g from orthonormal vectors", n, i, j, product)
				}
			}
		}
	}
}

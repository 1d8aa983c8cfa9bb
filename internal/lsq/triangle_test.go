package lsq

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

func normal2(r *rand.Rand, rows, cols int) backend.Host[float64] {
	h := backend.NewHost[float64](rows, cols)
	for i := range h.Data {
		h.Data[i] = r.NormFloat64()
	}
	return h
}

// TestTriangular checks that R is upper triangular and that RᵀR = AᵀA, also with columns of zeros.
func TestTriangular(t *testing.T) {
	task := run.NewTask(t.Context(), backendtest.Device(t, "cpu"), nil)
	const seed = 30
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, dims := range [][2]int{{1, 1}, {1, 4}, {33, 32}, {40, 33}, {7, 70}, {100, 70}} {
		a := normal2(rng, dims[0], dims[1])
		for i := range a.Rows {
			a.Row(i)[a.Cols/2] = 0
		}
		r, err := triangular(task, a, a.Cols, a.Rows)
		if err != nil {
			t.Fatal(err)
		}
		aTransposed, rt := numeric.Transpose(a), numeric.Transpose(r)
		for p := range a.Cols {
			for i := p + 1; i < a.Rows; i++ {
				if r.Row(i)[p] != 0 {
					t.Errorf("%v: element (%d, %d) below the diagonal is %v", dims, i, p, r.Row(i)[p])
				}
			}
			for q := range p + 1 {
				// The bound is that of Higham 2002, theorem 19.4.
				bound := 4 * float64(a.Rows*min(a.Rows, a.Cols)) * epsilon * numeric.Norm2(aTransposed.Row(p)) * numeric.Norm2(aTransposed.Row(q))
				if d := numeric.Dot(aTransposed.Row(p), aTransposed.Row(q)) - numeric.Dot(rt.Row(p), rt.Row(q)); !(math.Abs(d) <= bound) {
					t.Errorf("%v: RᵀR and AᵀA differ by %.2g at (%d, %d), allowed %.2g", dims, d, p, q, bound)
				}
			}
		}
	}
}

// TestPivotedCholesky checks the rank and the product LLᵀ of the factor of a singular matrix.
func TestPivotedCholesky(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 0))
	for _, n := range []int{1, 5, 40} {
		for _, rank := range []int{0, 1, (n + 1) / 2, n} {
			x := normal2(rng, n, rank)
			g := backend.NewHost[float64](n, n)
			largest := 0.0
			for i := range n {
				for j := range i + 1 {
					g.Row(i)[j] = numeric.Dot(x.Row(i), x.Row(j))
				}
				largest = max(largest, g.Row(i)[i])
			}
			l := numeric.Clone(g)
			order, got, err := pivotedCholesky(t.Context(), l, 8*float64(n)*epsilon*largest)
			if err != nil || got != rank {
				t.Errorf("n %d: the rank is %d, want %d: %v", n, got, rank, err)
			}
			bound := 4 * float64(n+1) * epsilon * largest // the error bound of Higham 2002, theorem 10.14, for a well-conditioned L₁₁
			for i, p := range order {
				for j, q := range order[:i+1] {
					k := min(got, j+1)
					want := g.Row(max(p, q))[min(p, q)]
					if d := numeric.Dot(l.Row(i)[:k], l.Row(j)) - want; i < got || j < got {
						if !(math.Abs(d) <= bound) {
							t.Errorf("n %d, rank %d: LLᵀ differs by %.2g at (%d, %d), allowed %.2g", n, rank, d, i, j, bound)
						}
					}
				}
			}
		}
	}
}

// TestCondition compares the estimate with the exact ‖L‖₁‖L⁻¹‖₁. The estimate is a lower bound, and rarely less
// than a third of the exact value (Higham 2002, section 15.2).
func TestCondition(t *testing.T) {
	rng := rand.New(rand.NewPCG(32, 0))
	for _, n := range []int{1, 2, 3, 20, 60} {
		l := normal2(rng, n, n)
		for i := range n {
			l.Row(i)[i] += 4
		}
		norm, inverse := 0.0, 0.0
		for j := range n {
			column, e := 0.0, make([]float64, n)
			for i := j; i < n; i++ {
				column += math.Abs(l.Row(i)[j])
			}
			e[j] = 1
			solveLower(l, e)
			norm, inverse = max(norm, column), max(inverse, sumAbs(e))
		}
		exact, got := norm*inverse, condition(l)
		if rounding := 1 + 4*float64(n)*epsilon*exact; !(got <= exact*rounding && got >= exact/3) {
			t.Errorf("n %d: the estimate is %v, the condition number %v", n, got, exact)
		}
	}
}

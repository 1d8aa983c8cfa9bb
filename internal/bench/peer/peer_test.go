package peer

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
)

// TestLibraries checks the routines of every installed library, on matrices with padding.
func TestLibraries(t *testing.T) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			l, err := Open(name, nil)
			if errors.Is(err, ErrMissing) {
				required.SkipOrFail(t, name, err)
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Log(l.Detail, l.Path)
			for _, threads := range []int{1, 2} {
				restore := l.Threads(threads)
				t.Run(fmt.Sprintf("float64/threads=%d", threads), func(t *testing.T) { check(t, l.F64, 0x1p-53) })
				t.Run(fmt.Sprintf("float32/threads=%d", threads), func(t *testing.T) { check(t, l.F32, 0x1p-24) })
				restore()
			}
		})
	}
}

// check compares the results with sums in float64. All operands are of order 1, and the sums have at most 31
// terms, so that the error is at most 64 units in the last place of the largest partial sum.
func check[T backend.Float](t *testing.T, r Routines[T], unit float64) {
	const m, n, k, alpha, beta = 23, 17, 31, 1.5, -0.5
	const seed = 5
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	random := func(rows, cols int) backend.Host[T] {
		h := backend.Host[T]{Rows: rows, Cols: cols, Stride: cols + 3, Data: make([]T, rows*(cols+3))}
		for i := range h.Data {
			h.Data[i] = T(rng.Float64() - 0.5)
		}
		return h
	}
	element := func(h backend.Host[T], i, j int) float64 { return float64(h.Data[i*h.Stride+j]) }
	symmetric := func(h backend.Host[T], i, j int) float64 { return element(h, max(i, j), min(i, j)) }
	clone := func(h backend.Host[T]) backend.Host[T] {
		h.Data = append([]T(nil), h.Data...)
		return h
	}
	compare := func(name string, original, got backend.Host[T], lower bool, want func(i, j int) float64) {
		t.Helper()
		for i := range got.Rows {
			for j := range got.Stride {
				if i*got.Stride+j >= len(got.Data) {
					break
				}
				w := float64(original.Data[i*got.Stride+j])
				if j < got.Cols && (!lower || j <= i) {
					w = want(i, j)
				}
				if g := element(got, i, j); !(math.Abs(g-w) <= 64*unit*k) {
					t.Fatalf("%s: element (%d, %d) is %v, want %v", name, i, j, g, w)
				}
			}
		}
	}
	sum := func(n int, term func(p int) float64) (s float64) {
		for p := range n {
			s += term(p)
		}
		return s
	}

	a, b, c := random(m, k), random(k, n), random(m, n)
	if got := clone(c); r.Gemm != nil {
		r.Gemm(alpha, a, b, beta, got)
		compare("gemm", c, got, false, func(i, j int) float64 {
			return alpha*sum(k, func(p int) float64 { return element(a, i, p) * element(b, p, j) }) + beta*element(c, i, j)
		})
	}
	square, rectangular := random(m, m), random(m, n)
	if got := clone(c); r.Symm != nil {
		r.Symm(alpha, square, rectangular, beta, got)
		compare("symm", c, got, false, func(i, j int) float64 {
			return alpha*sum(m, func(p int) float64 { return symmetric(square, i, p) * element(rectangular, p, j) }) + beta*element(c, i, j)
		})
	}
	if got := clone(square); r.Syrk != nil {
		r.Syrk(alpha, a, beta, got)
		compare("syrk", square, got, true, func(i, j int) float64 {
			return alpha*sum(k, func(p int) float64 { return element(a, i, p) * element(a, j, p) }) + beta*element(square, i, j)
		})
	}
	if r.Symv != nil {
		x, y := random(m, 1).Data[:m], random(m, 1).Data[:m]
		got := append([]T(nil), y...)
		r.Symv(alpha, square, x, beta, got)
		for i := range m {
			w := alpha*sum(m, func(p int) float64 { return symmetric(square, i, p) * float64(x[p]) }) + beta*float64(y[i])
			if !(math.Abs(float64(got[i])-w) <= 64*unit*k) {
				t.Fatalf("symv: element %d is %v, want %v", i, got[i], w)
			}
		}
	}
	// The diagonal is 2, and the other elements of a row add up to at most 1: solving does not amplify errors.
	triangle := random(m, m)
	for i := range m {
		for j := range m {
			triangle.Data[i*triangle.Stride+j] *= 2. / m
		}
		triangle.Data[i*triangle.Stride+i] = 2
	}
	if got := clone(rectangular); r.Trsm != nil {
		r.Trsm(alpha, triangle, got)
		solution := clone(got)
		compare("trsm", rectangular, got, false, func(i, j int) float64 {
			s := alpha * element(rectangular, i, j)
			for p := range i {
				s -= element(triangle, i, p) * element(solution, p, j)
			}
			return s / element(triangle, i, i)
		})
	}
	if got := clone(triangle); r.Potrf != nil {
		if err := r.Potrf(got); err != nil {
			t.Fatal(err)
		}
		compare("potrf", triangle, got, true, func(i, j int) float64 {
			s := element(triangle, i, j) - sum(j, func(p int) float64 { return element(got, i, p) * element(got, j, p) })
			if i == j {
				return math.Sqrt(s)
			}
			return s / element(got, j, j)
		})
		triangle.Data[triangle.Stride*4+4] = -1
		if r.Potrf(triangle) == nil {
			t.Error("potrf accepts a matrix that is not positive definite")
		}
	}
}

func TestUnknown(t *testing.T) {
	if _, err := Open("atlas", nil); err == nil || !strings.Contains(err.Error(), "the libraries are: gonum, openblas, blis, mkl") {
		t.Errorf("got %v", err)
	}
}

package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// This file is the oracle of the BLAS tests: level 3 by its definition, in plain loops over small integers, for
// which every sum is exact in any order.

// level3 holds the routines of one precision.
type level3[T backend.Float] struct {
	gemm  func(tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)
	symm  func(s blas.Side, ul blas.Uplo, m, n int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)
	syrk  func(ul blas.Uplo, t blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T, ldc int)
	syr2k func(ul blas.Uplo, t blas.Transpose, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int)
	trmm  func(s blas.Side, ul blas.Uplo, t blas.Transpose, d blas.Diag, m, n int, alpha T, a []T, lda int, b []T, ldb int)
	trsm  func(s blas.Side, ul blas.Uplo, t blas.Transpose, d blas.Diag, m, n int, alpha T, a []T, lda int, b []T, ldb int)

	mr, nr, kc int
}

// forEachLevel3 runs f for every tier and precision, with blocks so small that small matrices span several.
func forEachLevel3(t *testing.T, f64 func(t *testing.T, l level3[float64]), f32 func(t *testing.T, l level3[float32])) {
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		impl := BLAS{bound: newDevice(tier, 0, cacheSizes{L2: 1, L3: 1})}
		t.Run("float64", func(t *testing.T) {
			e := impl.bound.f64
			f64(t, level3[float64]{impl.Dgemm, impl.Dsymm, impl.Dsyrk, impl.Dsyr2k, impl.Dtrmm, impl.Dtrsm, e.ukr.MR, e.ukr.NR, e.block.kc})
		})
		t.Run("float32", func(t *testing.T) {
			e := impl.bound.f32
			f32(t, level3[float32]{impl.Sgemm, impl.Ssymm, impl.Ssyrk, impl.Ssyr2k, impl.Strmm, impl.Strsm, e.ukr.MR, e.ukr.NR, e.block.kc})
		})
	})
}

// sizes lists dimensions around the edges of a register tile, at most limit.
func (l level3[T]) sizes(tile, limit int) []int {
	var list []int
	for _, n := range []int{1, 2, 3, 5, 8, tile - 1, tile, tile + 1, 2*tile + 3, 70} {
		if n <= limit && (len(list) == 0 || n > list[len(list)-1]) {
			list = append(list, n)
		}
	}
	return list
}

// padded is a row-major matrix with padding after each row.
type padded[T backend.Float] struct {
	rows, cols, ld int
	data           []T
}

// padding is the value of the elements between rows. No routine computes this value.
const padding = -12345.5

func newPadded[T backend.Float](rows, cols, pad int) padded[T] {
	s := padded[T]{rows: rows, cols: cols, ld: max(cols+pad, 1)}
	s.data = make([]T, rows*s.ld+pad)
	for i := range s.data {
		s.data[i] = padding
	}
	return s
}

// integers returns a matrix of integers from −3 to 3.
func integers[T backend.Float](r *rand.Rand, rows, cols, pad int) padded[T] {
	s := newPadded[T](rows, cols, pad)
	s.fill(func(i, j int) T { return T(r.IntN(7) - 3) })
	return s
}

// integersOp returns a matrix M such that op(M) is rows × cols.
func integersOp[T backend.Float](r *rand.Rand, t blas.Transpose, rows, cols, pad int) padded[T] {
	rows, cols = swapIf(t, rows, cols)
	return integers[T](r, rows, cols, pad)
}

// triangularOf returns a triangular matrix. The other triangle and a unit diagonal are NaN. Elements off the
// diagonal are mostly zero, and the other diagonal elements are 1, 2 or −1, so that solutions are exact.
func triangularOf[T backend.Float](r *rand.Rand, ul blas.Uplo, d blas.Diag, n, pad int) padded[T] {
	s := newPadded[T](n, n, pad)
	s.fill(func(i, j int) T {
		switch {
		case i == j && d == blas.Unit:
			return T(math.NaN())
		case i == j:
			return []T{1, 2, -1}[r.IntN(3)]
		case (ul == blas.Lower) != (i > j):
			return T(math.NaN())
		case r.IntN(max(n/2, 1)) == 0:
			return T(r.IntN(3) - 1)
		}
		return 0
	})
	return s
}

// symmetricOf returns a matrix of integers in the triangle ul and NaN in the other triangle.
func symmetricOf[T backend.Float](r *rand.Rand, ul blas.Uplo, n, pad int) padded[T] {
	s := integers[T](r, n, n, pad)
	s.fill(func(i, j int) T {
		if i != j && (ul == blas.Lower) != (i > j) {
			return T(math.NaN())
		}
		return s.at(i, j)
	})
	return s
}

func (s padded[T]) at(i, j int) T { return s.data[i*s.ld+j] }

func (s padded[T]) fill(f func(i, j int) T) {
	for i := range s.rows {
		for j := range s.cols {
			s.data[i*s.ld+j] = f(i, j)
		}
	}
}

func (s padded[T]) clone() padded[T] {
	s.data = append([]T(nil), s.data...)
	return s
}

// op returns the function that maps i and j to element (i, j) of op(S).
func (s padded[T]) op(t blas.Transpose) func(i, j int) T {
	if t == blas.NoTrans {
		return s.at
	}
	return func(i, j int) T { return s.at(j, i) }
}

// mirrored returns the function that maps i and j to element (i, j) of the symmetric matrix whose
// triangle ul is stored in s.
func (s padded[T]) mirrored(ul blas.Uplo) func(i, j int) T {
	return func(i, j int) T {
		if (ul == blas.Lower) == (i > j) {
			return s.at(i, j)
		}
		return s.at(j, i)
	}
}

// triangle returns the function that maps i and j to element (i, j) of op(S), for triangular S. ok
// is false for a zero that is not stored.
func (s padded[T]) triangle(ul blas.Uplo, t blas.Transpose, d blas.Diag) func(i, j int) (v T, ok bool) {
	return func(i, j int) (T, bool) {
		if t != blas.NoTrans {
			i, j = j, i
		}
		switch {
		case i == j && d == blas.Unit:
			return 1, true
		case i == j || (ul == blas.Lower) == (i > j):
			return s.at(i, j), true
		}
		return 0, false
	}
}

// multiplied returns α Σ_p a(i, p) b(p, j) + β c(i, j) as a function of i and j. It reads c
// only if β ≠ 0, and the sum only if α ≠ 0.
func multiplied[T backend.Float](k int, alpha T, a, b func(i, j int) T, beta T, c func(i, j int) T) func(i, j int) T {
	return func(i, j int) T {
		var v T
		if alpha != 0 {
			var sum T
			for p := range k {
				sum += a(i, p) * b(p, j)
			}
			v = alpha * sum
		}
		if beta != 0 {
			v += beta * c(i, j)
		}
		return v
	}
}

// inTriangle reports whether element (i, j) is in the triangle ul, or whether ul is blas.All.
func inTriangle(ul blas.Uplo, i, j int) bool {
	return ul == blas.All || i == j || (ul == blas.Lower) == (i > j)
}

// expect fails unless got equals want in the triangle ul, and equals initial everywhere else,
// including the padding. It treats NaN as equal to NaN.
func expect[T backend.Float](t *testing.T, name string, got, initial padded[T], ul blas.Uplo, want func(i, j int) T) {
	t.Helper()
	model := initial.clone()
	model.fill(func(i, j int) T {
		if inTriangle(ul, i, j) {
			return want(i, j)
		}
		return initial.at(i, j)
	})
	for x, v := range got.data {
		w := model.data[x]
		if v == w || v != v && w != w {
			continue
		}
		position := fmt.Sprintf("row %d, column %d", x/got.ld, x%got.ld)
		if x%got.ld >= got.cols || x/got.ld >= got.rows {
			position += ", which is padding"
		}
		t.Fatalf("%s: %s: got %v, want %v", name, position, v, w)
	}
}

// newSeed returns a random number generator for a test and logs the seed.
func newSeed(t *testing.T, seed uint64) *rand.Rand {
	t.Helper()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

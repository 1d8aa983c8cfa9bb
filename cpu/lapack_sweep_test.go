package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/required"
)

// TestCholeskyExact checks factors, solutions, inverses and products LᵀL exactly, on matrices for which all
// results are integers. The orders include all orders near the thresholds of the recursions.
func TestCholeskyExact(t *testing.T) {
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		d := newBLAS(tier).bound
		t.Run("float64", func(t *testing.T) { choleskyExact(t, &queue[float64]{engine: d.f64}) })
		t.Run("float32", func(t *testing.T) { choleskyExact(t, &queue[float32]{engine: d.f32}) })
	})
}

func choleskyExact[T backend.Float](t *testing.T, q *queue[T]) {
	r := newSeed(t, 10)
	var orders []int
	for n := range 35 {
		orders = append(orders, n)
	}
	orders = append(orders, 47, 48, 49, triangleBase-1, triangleBase, triangleBase+1, 97, 129, 150)
	for _, n := range required.Subset(15, orders) {
		for _, ul := range bothUplo {
			name := func(routine string) string { return fmt.Sprintf("%s(%c, %d)", routine, ul, n) }
			factor := integerFactor[T](r, ul, n)
			entry := factor.triangle(ul, blas.NoTrans, blas.NonUnit)
			l := func(i, j int) T { v, _ := entry(i, j); return v }
			if ul == blas.Upper {
				l = func(i, j int) T { v, _ := entry(j, i); return v }
			}

			// A = L Lᵀ.
			a := factor.clone()
			spd := newPadded[T](n, n, 0)
			spd.fill(multiplied(n, 1, l, func(p, j int) T { return l(j, p) }, 0, nil))
			a.fill(func(i, j int) T {
				if inTriangle(ul, i, j) {
					return spd.at(i, j)
				}
				return T(math.NaN())
			})
			got := a.clone()
			if err := q.potrf(triangle(ul), got.view()); err != nil {
				t.Fatalf("%s: %v", name("potrf"), err)
			}
			expect(t, name("potrf"), got, a, ul, factor.at)

			for _, nrhs := range []int{1, 2, 19} {
				x := integers[T](r, n, nrhs, 2)
				b := x.clone()
				b.fill(multiplied(n, 1, spd.at, x.at, 0, nil))
				solution := b.clone()
				lapackPotrs(q.engine, ul, n, nrhs, factor.data, factor.ld, solution.data, solution.ld)
				expect(t, name("potrs"), solution, b, blas.All, x.at)
			}

			squared := factor.clone()
			q.lauum(triangle(ul), squared.view())
			expect(t, name("lauum"), squared, factor, ul, multiplied(n, 1, func(i, p int) T { return l(p, i) }, l, 0, nil))

			for _, unit := range []bool{false, true} {
				inverse := factor.clone()
				if !q.trtri(triangle(ul), unit, inverse.view()) {
					t.Fatalf("%s: is reported as singular", name("trtri"))
				}
				d := blas.NonUnit
				if unit {
					d = blas.Unit
				}
				checkInverse(t, name("trtri"), ul, d, factor, inverse)
			}

			inverse := factor.clone()
			if !q.potri(triangle(ul), inverse.view()) {
				t.Fatalf("%s: is reported as singular", name("potri"))
			}
			fullInverse := inverse.mirrored(ul)
			identity := newPadded[T](n, n, 0)
			identity.fill(multiplied(n, 1, spd.at, fullInverse, 0, nil))
			expect(t, name("potri"), identity, identity, blas.All, func(i, j int) T { return delta[T](i, j) })
			expect(t, name("potri"), inverse, factor, ul, inverse.at)
		}
	}
}

// checkInverse fails unless the product of a triangle and its inverse is I, and nothing else has changed.
func checkInverse[T backend.Float](t *testing.T, name string, ul blas.Uplo, d blas.Diag, a, inverse padded[T]) {
	t.Helper()
	product := newPadded[T](a.rows, a.rows, 0)
	inverseEntry := inverse.triangle(ul, blas.NoTrans, d)
	product.fill(triangleTimes(blas.Left, a.triangle(ul, blas.NoTrans, d), a.rows, 1, func(i, j int) T { v, _ := inverseEntry(i, j); return v }))
	expect(t, name, product, product, blas.All, func(i, j int) T { return delta[T](i, j) })
	expect(t, name, inverse, a, ul, func(i, j int) T {
		if i == j && d == blas.Unit {
			return a.at(i, j)
		}
		return inverse.at(i, j)
	})
}

func delta[T backend.Float](i, j int) T {
	if i == j {
		return 1
	}
	return 0
}

// integerFactor returns a triangle of integers with ones on the diagonal, and so many zeros that its inverse has
// small elements. The elements of the other triangle are NaN.
func integerFactor[T backend.Float](r *rand.Rand, ul blas.Uplo, n int) padded[T] {
	s := newPadded[T](n, n, 3)
	s.fill(func(i, j int) T {
		switch {
		case i == j:
			return 1
		case (ul == blas.Lower) != (i > j):
			return T(math.NaN())
		case r.IntN(max(n, 4)) == 0:
			return T(r.IntN(3) - 1)
		}
		return 0
	})
	return s
}

func (s padded[T]) view() view[T] { return rowMajor(s.data, s.rows, s.cols, s.ld) }

// TestCholeskyRefuses checks that the routines report a matrix that has no Cholesky factor or no inverse.
func TestCholeskyRefuses(t *testing.T) {
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		impl := newLAPACK(tier)
		for _, n := range []int{1, 5, 40, unblockedOrder, unblockedOrder + 1, 200} {
			for _, ul := range bothUplo {
				for _, row := range []int{0, n / 2, n - 1} {
					diagonal := func(special float64) []float64 {
						a := make([]float64, n*n)
						for i := range n {
							a[i*n+i] = 1
						}
						a[row*n+row] = special
						return a
					}
					for _, pivot := range []float64{0, -1, math.NaN()} {
						if impl.Dpotrf(ul, n, diagonal(pivot), n) || impl.Spotrf(ul, n, narrowed(diagonal(pivot)), n) {
							t.Errorf("potrf(%c, %d) accepts %g as pivot %d", ul, n, pivot, row)
						}
					}
					singular := diagonal(0)
					if impl.Dpotri(ul, n, singular, n) || impl.Spotri(ul, n, narrowed(singular), n) ||
						impl.Dtrtri(ul, blas.NonUnit, n, singular, n) ||
						impl.Dtrtrs(ul, blas.Trans, blas.NonUnit, n, 1, singular, n, make([]float64, n), 1) {
						t.Errorf("potri, trtri or trtrs (%c, %d) accepts a zero on the diagonal in row %d", ul, n, row)
					}
					if !impl.Dtrtri(ul, blas.Unit, n, singular, n) {
						t.Errorf("trtri(%c, %d) reads a unit diagonal", ul, n)
					}
					for i, v := range diagonal(0) {
						if singular[i] != v {
							t.Fatalf("(%c, %d): a refused matrix was changed", ul, n)
						}
					}
				}
			}
		}
	})
}

// TestTriangleNotFinite sets an element of a triangle L to NaN. Exactly the elements of L⁻¹ and of
// LᵀL that depend on this element by definition must become NaN.
func TestTriangleNotFinite(t *testing.T) {
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		r := newSeed(t, 11)
		q := &queue[float64]{engine: newBLAS(tier).bound.f64}
		for _, n := range []int{5, 20, 40, 90} {
			for _, ul := range bothUplo {
				factor := integerFactor[float64](r, ul, n)
				i, j := r.IntN(n), r.IntN(n)
				if !inTriangle(ul, i, j) {
					i, j = j, i
				}
				factor.data[i*factor.ld+j] = math.NaN()
				entry := factor.triangle(ul, blas.NoTrans, blas.NonUnit)

				// Element (i, j) of a lower triangle affects rows ≥ i and columns ≤ j of the inverse.
				inverse := factor.clone()
				q.trtri(triangle(ul), false, inverse.view())
				first, last := max(i, j), min(i, j)
				inverse.fill(func(i, j int) float64 {
					v := inverse.at(i, j)
					if inTriangle(ul, i, j) && (v != v) != (max(i, j) >= first && min(i, j) <= last) {
						t.Fatalf("trtri(%c, %d): element (%d, %d) is %g with NaN at (%d, %d)", ul, n, max(i, j), min(i, j), v, first, last)
					}
					return v
				})

				squared := factor.clone()
				q.lauum(triangle(ul), squared.view())
				expect(t, fmt.Sprintf("lauum(%c, %d)", ul, n), squared, factor, ul, func(i, j int) float64 {
					sum := 0.0
					for p := range n {
						x, y := i, j
						v, ok := entry(p, x)
						w, ok2 := entry(p, y)
						if ul == blas.Upper {
							v, ok = entry(x, p)
							w, ok2 = entry(y, p)
						}
						if ok && ok2 {
							sum += v * w
						}
					}
					return sum
				})
			}
		}
	})
}

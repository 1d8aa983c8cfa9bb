package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// TestLevel2 compares the routines of levels 2 and 1 exactly with gonum's on small integers, for sizes around the
// limits between the algorithms, and with padding and increments. It fills y with NaN where y must not be read.
func TestLevel2(t *testing.T) {
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		const seed = 23
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		impl, want := newBLAS(tier), gonum.Implementation{}
		integers := func(n int) []float64 {
			x := make([]float64, n)
			for i := range x {
				x[i] = float64(rng.IntN(9) - 4)
			}
			return x
		}
		toFloat32 := func(x []float64) []float32 {
			y := make([]float32, len(x))
			for i, v := range x {
				y[i] = float32(v)
			}
			return y
		}
		requireEqual := func(routine string, m, n int, got, want []float64, got32, want32 []float32) {
			t.Helper()
			if !slices.Equal(got, want) || !slices.Equal(got32, want32) {
				t.Fatalf("%s: m=%d n=%d: differs from gonum", routine, m, n)
			}
		}
		for _, m := range []int{1, 3, 31, 51, 52, 53, 64, 83, 95, 96, 97, 127, 128, 129, 130, 255, 256, 257, 300, 513, 900} {
			for _, n := range []int{1, 2, 33, 100, 300, 514} {
				lda, inc := n+rng.IntN(3), 1+rng.IntN(2)*rng.IntN(2)
				a := integers(m * lda)
				beta := []float64{0, 1, -2}[rng.IntN(3)]
				for _, trans := range []blas.Transpose{blas.NoTrans, blas.Trans} {
					rows, cols := swapIf(trans, m, n)
					x, y := integers(cols*inc), integers(rows*inc)
					a32, x32, y32 := toFloat32(a), toFloat32(x), toFloat32(y)
					if beta == 0 && inc == 1 {
						for i := range y {
							y[i], y32[i] = math.NaN(), float32(math.NaN())
						}
					}
					wantY, wantY32 := slices.Clone(y), slices.Clone(y32)
					impl.Dgemv(trans, m, n, 2, a, lda, x, inc, beta, y, inc)
					want.Dgemv(trans, m, n, 2, a, lda, x, inc, beta, wantY, inc)
					impl.Sgemv(trans, m, n, 2, a32, lda, x32, inc, float32(beta), y32, inc)
					want.Sgemv(trans, m, n, 2, a32, lda, x32, inc, float32(beta), wantY32, inc)
					requireEqual("gemv", m, n, y, wantY, y32, wantY32)
				}
				x, y := integers(m*inc), integers(n*inc)
				a32, x32, y32 := toFloat32(a), toFloat32(x), toFloat32(y)
				wantA, wantA32 := slices.Clone(a), slices.Clone(a32)
				impl.Dger(m, n, -2, x, inc, y, inc, a, lda)
				want.Dger(m, n, -2, x, inc, y, inc, wantA, lda)
				impl.Sger(m, n, -2, x32, inc, y32, inc, a32, lda)
				want.Sger(m, n, -2, x32, inc, y32, inc, wantA32, lda)
				requireEqual("ger", m, n, a, wantA, a32, wantA32)
			}
			lda := m + rng.IntN(3)
			a, x, y := integers(m*lda), integers(m), integers(m)
			a32, x32, y32 := toFloat32(a), toFloat32(x), toFloat32(y)
			for _, ul := range []blas.Uplo{blas.Lower, blas.Upper} {
				// A routine that reads the other triangle computes NaN.
				triangle, triangle32 := slices.Clone(a), slices.Clone(a32)
				for i := range m {
					for j := range m {
						if ul == blas.Lower && j > i || ul == blas.Upper && j < i {
							triangle[i*lda+j], triangle32[i*lda+j] = math.NaN(), float32(math.NaN())
						}
					}
				}
				gotY, gotY32, wantY, wantY32 := slices.Clone(y), slices.Clone(y32), slices.Clone(y), slices.Clone(y32)
				impl.Dsymv(ul, m, -1, triangle, lda, x, 1, 3, gotY, 1)
				want.Dsymv(ul, m, -1, triangle, lda, x, 1, 3, wantY, 1)
				impl.Ssymv(ul, m, -1, triangle32, lda, x32, 1, 3, gotY32, 1)
				want.Ssymv(ul, m, -1, triangle32, lda, x32, 1, 3, wantY32, 1)
				requireEqual("symv", m, m, gotY, wantY, gotY32, wantY32)
			}
			if got, want := impl.Ddot(m, x, 1, y, 1), want.Ddot(m, x, 1, y, 1); got != want {
				t.Fatalf("Ddot: n=%d: %v, want %v", m, got, want)
			}
			if got, want := impl.Sdot(m, x32, 1, y32, 1), want.Sdot(m, x32, 1, y32, 1); got != want {
				t.Fatalf("Sdot: n=%d: %v, want %v", m, got, want)
			}
			gotY, gotY32, wantY, wantY32 := slices.Clone(y), slices.Clone(y32), slices.Clone(y), slices.Clone(y32)
			impl.Daxpy(m, 3, x, 1, gotY, 1)
			want.Daxpy(m, 3, x, 1, wantY, 1)
			impl.Saxpy(m, 3, x32, 1, gotY32, 1)
			want.Saxpy(m, 3, x32, 1, wantY32, 1)
			requireEqual("axpy", m, m, gotY, wantY, gotY32, wantY32)
			x[0], x32[0] = math.NaN(), float32(math.NaN())
			impl.Daxpy(m, 0, x, 1, gotY, 1) // with α = 0 Axpy must not read x
			impl.Saxpy(m, 0, x32, 1, gotY32, 1)
			requireEqual("axpy with alpha = 0", m, m, gotY, wantY, gotY32, wantY32)
		}
	})
}

// TestSymvRows compares Symv exactly with gonum's: for orders around the number of rows processed together, for
// row strides that map all rows to one set of the first-level cache, and for matrices divided among workers.
func TestSymvRows(t *testing.T) {
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		const seed = 37
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		impl, want := newBLAS(tier), gonum.Implementation{}
		for _, n := range []int{plainSymvOrder, plainSymvOrder + 5, 61, 83, 100, 131, 1043, 1100} {
			for _, lda := range []int{n, n + 3, (n + 1023) &^ 1023} {
				a, x, y := make([]float64, n*lda), make([]float64, n), make([]float64, n)
				a32, x32, y32 := make([]float32, n*lda), make([]float32, n), make([]float32, n)
				for i := range a {
					a[i] = float64(rng.IntN(9) - 4)
					a32[i] = float32(a[i])
				}
				for i := range x {
					x[i], y[i] = float64(rng.IntN(9)-4), float64(rng.IntN(9)-4)
					x32[i], y32[i] = float32(x[i]), float32(y[i])
				}
				for _, ul := range bothUplo {
					gotY, gotY32, wantY, wantY32 := slices.Clone(y), slices.Clone(y32), slices.Clone(y), slices.Clone(y32)
					impl.Dsymv(ul, n, 2, a, lda, x, 1, -1, gotY, 1)
					impl.Ssymv(ul, n, 2, a32, lda, x32, 1, -1, gotY32, 1)
					want.Dsymv(ul, n, 2, a, lda, x, 1, -1, wantY, 1)
					want.Ssymv(ul, n, 2, a32, lda, x32, 1, -1, wantY32, 1)
					if !slices.Equal(gotY, wantY) || !slices.Equal(gotY32, wantY32) {
						t.Fatalf("symv(%c): n=%d lda=%d: differs from gonum", ul, n, lda)
					}
				}
			}
		}
	})
}

// TestTrsv checks Trsv exactly: the right-hand side is the product of a known vector with a triangle of small
// integers and powers of two on its diagonal. The other triangle and a unit diagonal must not be read.
func TestTrsv(t *testing.T) {
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		const seed = 29
		t.Logf("seed %d", seed)
		rng := rand.New(rand.NewPCG(seed, 0))
		impl := newBLAS(tier)
		orders := []int{63, 64, 65, 96, 129, 255, 256, 257, 300, 513}
		for n := 1; n <= 40; n++ {
			orders = append(orders, n)
		}
		for _, n := range orders {
			for _, ul := range []blas.Uplo{blas.Lower, blas.Upper} {
				for _, trans := range []blas.Transpose{blas.NoTrans, blas.Trans, blas.ConjTrans} {
					for _, d := range []blas.Diag{blas.Unit, blas.NonUnit} {
						checkTrsv(t, impl, rng, ul, trans, d, n)
					}
				}
			}
		}
	})
}

func checkTrsv(t *testing.T, impl BLAS, rng *rand.Rand, ul blas.Uplo, trans blas.Transpose, d blas.Diag, n int) {
	t.Helper()
	lda := n + rng.IntN(3)
	a, want, b := make([]float64, n*lda), make([]float64, n), make([]float64, n)
	for i := range want {
		want[i] = float64(rng.IntN(9) - 4)
	}
	for i := range n {
		for j := range n {
			index, v := i*lda+j, float64(rng.IntN(9)-4)
			switch {
			case i == j && d == blas.Unit:
				a[index], v = math.NaN(), 1
			case i == j:
				v = []float64{1, -2, 4}[rng.IntN(3)]
				a[index] = v
			case (ul == blas.Lower) != (j < i):
				a[index] = math.NaN()
				continue
			default:
				a[index] = v
			}
			row, col := swapIf(trans, i, j)
			b[row] += v * want[col]
		}
	}
	x, x32, a32 := slices.Clone(b), make([]float32, n), make([]float32, len(a))
	for i, v := range b {
		x32[i] = float32(v)
	}
	for i, v := range a {
		a32[i] = float32(v)
	}
	impl.Dtrsv(ul, trans, d, n, a, lda, x, 1)
	impl.Strsv(ul, trans, d, n, a32, lda, x32, 1)
	for i, v := range want {
		if x[i] != v || x32[i] != float32(v) {
			t.Fatalf("Trsv %c %c %c: n=%d: element %d is %v and %v, want %v", ul, trans, d, n, i, x[i], x32[i], v)
		}
	}
}

// TestSharedVectors compares Dot, Axpy and Nrm2 exactly with gonum's for vectors divided among the workers.
func TestSharedVectors(t *testing.T) {
	const n = sharedVector + 3*vectorPiece + 5
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		impl, want := newBLAS(tier), gonum.Implementation{}
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], y[i] = float64(i%7-3), float64(i%5-2)
		}
		if got, want := impl.Ddot(n, x, 1, y, 1), want.Ddot(n, x, 1, y, 1); got != want {
			t.Errorf("Ddot: %v, want %v", got, want)
		}
		if got, want := impl.Dnrm2(n, x, 1), math.Sqrt(want.Ddot(n, x, 1, x, 1)); got != want {
			t.Errorf("Dnrm2: %v, want %v", got, want)
		}
		wantY := slices.Clone(y)
		impl.Daxpy(n, 3, x, 1, y, 1)
		want.Daxpy(n, 3, x, 1, wantY, 1)
		if !slices.Equal(y, wantY) {
			t.Error("Daxpy differs from gonum")
		}
	})
}

// TestNrm2Range tests the norm near the ends of the range, where squares overflow or underflow.
func TestNrm2Range(t *testing.T) {
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		impl := newBLAS(tier)
		for _, scale := range []float64{1, 1e-200, 1e200, 0x1p-1060} {
			x := make([]float64, 400)
			for i := range x {
				x[i] = 3 * scale
			}
			// The norm of 400 equal elements is 20 times one element, which is exact.
			if got, want := impl.Dnrm2(len(x), x, 1), 20*3*scale; math.Abs(got-want) > 4*0x1p-53*want {
				t.Errorf("Dnrm2 of 400 times %v is %v, want %v", 3*scale, got, want)
			}
		}
		x := []float32{1e30, 1e-30}
		for len(x) < 400 {
			x = append(x, x...)
		}
		x = x[:400]
		if got, want := impl.Snrm2(400, x, 1), float32(math.Sqrt(200)*1e30); math.Abs(float64(got-want)) > 400*0x1p-24*float64(want) {
			t.Errorf("Snrm2 is %v, want %v", got, want)
		}
	})
}

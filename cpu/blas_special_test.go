package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"

	"gonum.org/v1/gonum/blas"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/required"
)

// TestLevel3NotFinite checks that NaN and Inf among the integers change exactly the elements that depend on them.
func TestLevel3NotFinite(t *testing.T) {
	forEachLevel3(t, notFiniteLevel3[float64], notFiniteLevel3[float32])
}

func notFiniteLevel3[T backend.Float](t *testing.T, l level3[T]) {
	r := newSeed(t, 5)
	rounds := 6
	if required.FewCases() {
		rounds = 3
	}
	for _, n := range []int{3, 9, 30, 70, 2*l.mr + 65} {
		for round := range rounds {
			k := n + round
			a, b := integers[T](r, n, k, 1), integers[T](r, k, n, 2)
			a.fill(func(i, j int) T { return a.at(i, j) * T(r.IntN(2)) }) // sets about half of the elements to 0
			spoil(r, b)
			c := integers[T](r, n, n, 3)
			got := c.clone()
			l.gemm(blas.NoTrans, blas.NoTrans, n, n, k, 1, a.data, a.ld, b.data, b.ld, 1, got.data, got.ld)
			expect(t, fmt.Sprintf("gemm %d×%d×%d", n, n, k), got, c, blas.All, multiplied(k, 1, a.at, b.at, 1, c.at))

			ul, tr, s, d := bothUplo[round&1], bothTrans[round>>1&1], bothSide[r.IntN(2)], bothDiag[r.IntN(2)]
			rect := integers[T](r, n, k, 1)
			spoil(r, rect)
			got = c.clone()
			l.syrk(ul, blas.NoTrans, n, k, 1, rect.data, rect.ld, 0, got.data, got.ld)
			expect(t, fmt.Sprintf("syrk %c %d×%d", ul, n, k), got, c, ul,
				multiplied(k, 1, rect.at, func(i, j int) T { return rect.at(j, i) }, 0, c.at))

			tri := triangularOf[T](r, ul, d, n, 2)
			x := integers[T](r, n, n, 2)
			spoil(r, x)
			name := fmt.Sprintf("(%c, %c, %c, %c, %d)", s, ul, tr, d, n)
			got = x.clone()
			l.trmm(s, ul, tr, d, n, n, 2, tri.data, tri.ld, got.data, got.ld)
			expect(t, "trmm"+name, got, x, blas.All, triangleTimes(s, tri.triangle(ul, tr, d), n, 2, x.at))
			got = x.clone()
			l.trsm(s, ul, tr, d, n, n, 2, tri.data, tri.ld, got.data, got.ld)
			expect(t, "trsm"+name, got, x, blas.All, solveBySubstitution(s, ul, tr, tri.triangle(ul, tr, d), x, 2).at)
		}
	}
}

// spoil sets a random element to NaN or Inf.
func spoil[T backend.Float](r *rand.Rand, s padded[T]) {
	special := []float64{math.NaN(), math.Inf(1), math.Inf(-1)}[r.IntN(3)]
	s.data[r.IntN(s.rows)*s.ld+r.IntN(s.cols)] = T(special)
}

// solveBySubstitution returns α op(A)⁻¹ B or α B op(A)⁻¹ by substitution.
func solveBySubstitution[T backend.Float](s blas.Side, ul blas.Uplo, t blas.Transpose, a func(i, j int) (T, bool), b padded[T], alpha T) padded[T] {
	x := b.clone()
	isLower := (ul == blas.Lower) == (t == blas.NoTrans)
	n := b.rows
	element := func(i, j int) *T { return &x.data[i*x.ld+j] }
	entry := a
	nrhs := b.cols
	if s == blas.Right {
		// X op(A) = B is solved as op(A)ᵀXᵀ = Bᵀ.
		n, nrhs, isLower = b.cols, b.rows, !isLower
		element = func(i, j int) *T { return &x.data[j*x.ld+i] }
		entry = func(i, j int) (T, bool) { return a(j, i) }
	}
	for j := range nrhs {
		for step := range n {
			i := step
			if !isLower {
				i = n - 1 - step
			}
			sum := alpha * *element(i, j)
			for p := range n {
				if v, ok := entry(i, p); ok && p != i {
					sum -= v * *element(p, j)
				}
			}
			d, _ := entry(i, i)
			*element(i, j) = sum / d
		}
	}
	return x
}

// TestLevel3Aliasing checks that one slice can be passed as both A and B, which are only read.
func TestLevel3Aliasing(t *testing.T) {
	forEachLevel3(t, aliasLevel3[float64], aliasLevel3[float32])
}

func aliasLevel3[T backend.Float](t *testing.T, l level3[T]) {
	r := newSeed(t, 6)
	for _, n := range []int{4, 20, 66, 130} {
		a, c := integers[T](r, n, n, 2), integers[T](r, n, n, 1)
		transA := a.op(blas.Trans)
		got := c.clone()
		l.gemm(blas.NoTrans, blas.NoTrans, n, n, n, 1, a.data, a.ld, a.data, a.ld, 2, got.data, got.ld)
		expect(t, "gemm(A, A)", got, c, blas.All, multiplied(n, 1, a.at, a.at, 2, c.at))
		got = c.clone()
		l.gemm(blas.NoTrans, blas.Trans, n, n, n, 1, a.data, a.ld, a.data, a.ld, 0, got.data, got.ld)
		expect(t, "gemm(A, Aᵀ)", got, c, blas.All, multiplied(n, 1, a.at, transA, 0, c.at))
		got = c.clone()
		l.symm(blas.Left, blas.Lower, n, n, 1, a.data, a.ld, a.data, a.ld, 0, got.data, got.ld)
		expect(t, "symm(A, A)", got, c, blas.All, multiplied(n, 1, a.mirrored(blas.Lower), a.at, 0, c.at))
		got = c.clone()
		l.syr2k(blas.Lower, blas.NoTrans, n, n, 1, a.data, a.ld, a.data, a.ld, 0, got.data, got.ld)
		expect(t, "syr2k(A, A)", got, c, blas.Lower, multiplied(n, 2, a.at, transA, 0, c.at))
	}
}

// TestBLASFollowsGOMAXPROCS checks that the number of workers changes with GOMAXPROCS and that the results do not.
func TestBLASFollowsGOMAXPROCS(t *testing.T) {
	procs := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(procs)
	r := newSeed(t, 7)
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		const n = 260
		impl, lapack := newBLAS(tier), newLAPACK(tier)
		random := func() []float64 {
			s := make([]float64, n*n)
			for i := range s {
				s[i] = r.NormFloat64()
			}
			return s
		}
		a, b := random(), random()
		for i := range n {
			a[i*n+i] += 4 * n // positive definite in either triangle
		}
		run := func(threads int) [][]float64 {
			runtime.GOMAXPROCS(threads)
			if got := impl.device().Info().Threads; got != threads {
				t.Fatalf("GOMAXPROCS is %d, but %d workers are used", threads, got)
			}
			c, x, y, l := make([]float64, n*n), slices.Clone(b), slices.Clone(b), slices.Clone(a)
			impl.Dgemm(blas.NoTrans, blas.NoTrans, n, n, n, 1, a, n, b, n, 0, c, n)
			impl.Dtrmm(blas.Left, blas.Upper, blas.NoTrans, blas.NonUnit, n, n, 1, a, n, x, n)
			impl.Dtrsm(blas.Right, blas.Lower, blas.Trans, blas.NonUnit, n, n, 1, a, n, y, n)
			if !lapack.Dpotrf(blas.Lower, n, l, n) || !lapack.Dpotri(blas.Lower, n, l, n) {
				t.Fatal("A is positive definite, but Dpotrf or Dpotri failed")
			}
			v := slices.Clone(b[:n])
			lapack.Dtrtrs(blas.Upper, blas.Trans, blas.NonUnit, n, 1, a, n, v, 1)
			return [][]float64{c, x, y, l, v}
		}
		one, four := run(1), run(4)
		for i, name := range []string{"gemm", "trmm", "trsm", "potri", "trtrs"} {
			if !slices.Equal(one[i], four[i]) {
				t.Errorf("%s: 1 and 4 workers differ", name)
			}
		}
	})
}

// TestBLASConcurrently checks that several goroutines can use one BLAS at the same time.
func TestBLASConcurrently(t *testing.T) {
	const n = 90
	r := newSeed(t, 8)
	a, b := integers[float64](r, n, n, 0), integers[float64](r, n, n, 0)
	c := newPadded[float64](n, n, 0)
	results := make([]padded[float64], 4)
	var wg sync.WaitGroup
	for i := range results {
		results[i] = c.clone()
		wg.Go(func() {
			BLAS{}.Dgemm(blas.NoTrans, blas.NoTrans, n, n, n, 1, a.data, n, b.data, n, 0, results[i].data, n)
		})
	}
	wg.Wait()
	for _, got := range results {
		expect(t, "gemm", got, c, blas.All, multiplied(n, 1, a.at, b.at, 0, c.at))
	}
}

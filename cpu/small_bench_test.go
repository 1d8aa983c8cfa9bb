package cpu

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gonum.org/v1/gonum/blas"
	blasgonum "gonum.org/v1/gonum/blas/gonum"
	lapackgonum "gonum.org/v1/gonum/lapack/gonum"

	"github.com/mercer-go/mercer/backend"
)

// smallOrders returns the orders at which small problems are measured.
func smallOrders() []int {
	if testing.Short() {
		return []int{4, 8, 12, 16, 20, 24, 28, 32, 128}
	}
	var orders []int
	for n := 4; n <= 32; n++ {
		orders = append(orders, n)
	}
	return append(orders, 40, 48, 64, 96, 128)
}

// BenchmarkSmall measures what a user of gonum gains by registering Mercer in small problems, where
// calling the micro-kernels costs as much as running them:
//
//	go test -run '^$' -bench 'Small/.*/library=' -count 10 ./cpu > small.txt
//	benchstat -col /library small.txt
func BenchmarkSmall(b *testing.B) {
	for _, n := range smallOrders() {
		for _, c := range smallCases(n) {
			for _, library := range []string{"mercer", "gonum"} {
				run := c.mercer
				if library == "gonum" {
					run = c.gonum
				}
				b.Run(fmt.Sprintf("routine=%s/n=%d/library=%s", c.routine, n, library), func(b *testing.B) {
					for b.Loop() {
						run()
					}
				})
			}
		}
	}
}

// BenchmarkSmallInTurns alternates between both libraries every few microseconds, so that disturbances of the
// machine affect both, and reports the median ratio of gonum's time to Mercer's:
//
//	go test -run '^$' -bench SmallInTurns -benchtime 2000x -cpu 1 ./cpu
func BenchmarkSmallInTurns(b *testing.B) {
	for _, n := range smallOrders() {
		for _, c := range smallCases(n) {
			b.Run(fmt.Sprintf("routine=%s/n=%d", c.routine, n), func(b *testing.B) {
				timed(c.gonum, 100)
				timed(c.mercer, 100)
				calls := 1
				for timed(c.gonum, calls) < 10*time.Microsecond {
					calls *= 2
				}
				var ratios []float64
				for b.Loop() {
					// The order of the libraries alternates.
					var mercer, gonum time.Duration
					if len(ratios)%2 == 0 {
						mercer, gonum = timed(c.mercer, calls), timed(c.gonum, calls)
					} else {
						gonum, mercer = timed(c.gonum, calls), timed(c.mercer, calls)
					}
					ratios = append(ratios, gonum.Seconds()/mercer.Seconds())
				}
				slices.Sort(ratios)
				b.ReportMetric(ratios[len(ratios)/2], "gonum/mercer")
			})
		}
	}
}

// timed returns the time of running f the given number of times.
func timed(f func(), times int) time.Duration {
	start := time.Now()
	for range times {
		f()
	}
	return time.Since(start)
}

// TestSmallCases runs every case of BenchmarkSmall once.
func TestSmallCases(t *testing.T) {
	for _, c := range smallCases(7) {
		c.mercer()
		c.gonum()
	}
}

// smallCase is one routine at one order, with its implementations by Mercer and by gonum.
type smallCase struct {
	routine       string
	mercer, gonum func()
}

// smallCases lists every routine with the sides, triangles and transpositions that have separate code.
func smallCases(n int) []smallCase {
	list := levels[float64](n, "D", doubles(BLAS{}), doubles(blasgonum.Implementation{}))
	list = append(list, levels[float32](n, "S", singles(BLAS{}), singles(blasgonum.Implementation{}))...)
	return append(list, factorizations(n)...)
}

// routinesOf holds the BLAS routines of one precision.
type routinesOf[T backend.Float] struct {
	level3[T]
	gemv func(t blas.Transpose, m, n int, alpha T, a []T, lda int, x []T, incX int, beta T, y []T, incY int)
	symv func(ul blas.Uplo, n int, alpha T, a []T, lda int, x []T, incX int, beta T, y []T, incY int)
	ger  func(m, n int, alpha T, x []T, incX int, y []T, incY int, a []T, lda int)
	dot  func(n int, x []T, incX int, y []T, incY int) T
	axpy func(n int, alpha T, x []T, incX int, y []T, incY int)
	nrm2 func(n int, x []T, incX int) T
	trsv func(ul blas.Uplo, t blas.Transpose, d blas.Diag, n int, a []T, lda int, x []T, incX int)
}

func doubles(impl blas.Float64) routinesOf[float64] {
	return routinesOf[float64]{
		level3: level3[float64]{gemm: impl.Dgemm, symm: impl.Dsymm, syrk: impl.Dsyrk, syr2k: impl.Dsyr2k, trmm: impl.Dtrmm, trsm: impl.Dtrsm},
		gemv:   impl.Dgemv, symv: impl.Dsymv, ger: impl.Dger, trsv: impl.Dtrsv,
		dot: impl.Ddot, axpy: impl.Daxpy, nrm2: impl.Dnrm2,
	}
}

func singles(impl blas.Float32) routinesOf[float32] {
	return routinesOf[float32]{
		level3: level3[float32]{gemm: impl.Sgemm, symm: impl.Ssymm, syrk: impl.Ssyrk, syr2k: impl.Ssyr2k, trmm: impl.Strmm, trsm: impl.Strsm},
		gemv:   impl.Sgemv, symv: impl.Ssymv, ger: impl.Sger, trsv: impl.Strsv,
		dot: impl.Sdot, axpy: impl.Saxpy, nrm2: impl.Snrm2,
	}
}

// levels returns the cases of levels 3, 2 and 1. Triangles are close to the identity, so that
// repeated solves in place do not change the magnitude of the numbers.
func levels[T backend.Float](n int, letter string, mercer, gonum routinesOf[T]) []smallCase {
	r := rand.New(rand.NewPCG(uint64(n), 1))
	random := func(size int) []T {
		x := make([]T, size)
		for i := range x {
			x[i] = T(r.NormFloat64())
		}
		return x
	}
	a, b, c, nearIdentity := random(n*n), random(n*n), random(n*n), random(n*n)
	for i := range nearIdentity {
		nearIdentity[i] *= 1e-9
		if i%(n+1) == 0 {
			nearIdentity[i]++
		}
	}
	x, y := random(n), random(n)
	var list []smallCase
	add := func(routine string, run func(l routinesOf[T])) {
		list = append(list, smallCase{letter + routine, func() { run(mercer) }, func() { run(gonum) }})
	}
	for _, tA := range bothTrans {
		for _, tB := range bothTrans {
			add(fmt.Sprintf("gemm%c%c", tA, tB), func(l routinesOf[T]) { l.gemm(tA, tB, n, n, n, 1, a, n, b, n, 0, c, n) })
		}
	}
	for _, ul := range bothUplo {
		for _, s := range bothSide {
			add(fmt.Sprintf("symm%c%c", s, ul), func(l routinesOf[T]) { l.symm(s, ul, n, n, 1, a, n, b, n, 0, c, n) })
		}
		for _, t := range bothTrans {
			add(fmt.Sprintf("syrk%c%c", ul, t), func(l routinesOf[T]) { l.syrk(ul, t, n, n, 1, a, n, 0, c, n) })
			add(fmt.Sprintf("syr2k%c%c", ul, t), func(l routinesOf[T]) { l.syr2k(ul, t, n, n, 1, a, n, b, n, 0, c, n) })
			for _, s := range bothSide {
				add(fmt.Sprintf("trsm%c%c%c", s, ul, t), func(l routinesOf[T]) { l.trsm(s, ul, t, blas.NonUnit, n, n, 1, nearIdentity, n, b, n) })
				add(fmt.Sprintf("trmm%c%c%c", s, ul, t), func(l routinesOf[T]) { l.trmm(s, ul, t, blas.NonUnit, n, n, 1, nearIdentity, n, b, n) })
			}
			add(fmt.Sprintf("trsv%c%c", ul, t), func(l routinesOf[T]) { l.trsv(ul, t, blas.NonUnit, n, nearIdentity, n, x, 1) })
		}
		add(fmt.Sprintf("symv%c", ul), func(l routinesOf[T]) { l.symv(ul, n, 1, a, n, x, 1, 0, y, 1) })
	}
	for _, t := range bothTrans {
		add(fmt.Sprintf("gemv%c", t), func(l routinesOf[T]) { l.gemv(t, n, n, 1, a, n, x, 1, 0, y, 1) })
	}
	add("ger", func(l routinesOf[T]) { l.ger(n, n, 1e-9, x, 1, y, 1, c, n) })
	add("dot", func(l routinesOf[T]) { l.dot(n, x, 1, y, 1) })
	add("axpy", func(l routinesOf[T]) { l.axpy(n, 1e-9, x, 1, y, 1) })
	add("nrm2", func(l routinesOf[T]) { l.nrm2(n, x, 1) })
	return list
}

// factorizations returns the cases of LAPACK in float64. Operations in place begin with a copy.
func factorizations(n int) []smallCase {
	r := rand.New(rand.NewPCG(uint64(n), 2))
	a := make([]float64, n*n)
	for i := range a {
		a[i] = r.NormFloat64()
		if i%(n+1) == 0 {
			a[i] += 4 * float64(n)
		}
	}
	b := slices.Clone(a)
	work := make([]float64, n*n)
	type library interface {
		Dpotrf(ul blas.Uplo, n int, a []float64, lda int) bool
		Dpotrs(ul blas.Uplo, n, nrhs int, a []float64, lda int, b []float64, ldb int)
		Dpotri(ul blas.Uplo, n int, a []float64, lda int) bool
	}
	var list []smallCase
	add := func(routine string, run func(l library)) {
		list = append(list, smallCase{routine, func() { run(LAPACK{}) }, func() { run(lapackgonum.Implementation{}) }})
	}
	for _, ul := range bothUplo {
		factor := slices.Clone(a)
		lapackgonum.Implementation{}.Dpotrf(ul, n, factor, n)
		add(fmt.Sprintf("Dpotrf%c", ul), func(l library) {
			copy(work, a)
			l.Dpotrf(ul, n, work, n)
		})
		add(fmt.Sprintf("Dpotri%c", ul), func(l library) {
			copy(work, factor)
			l.Dpotri(ul, n, work, n)
		})
		add(fmt.Sprintf("Dpotrs%c", ul), func(l library) {
			copy(work, b)
			l.Dpotrs(ul, n, n, factor, n, work, n)
		})
		add(fmt.Sprintf("Dpotrs1%c", ul), func(l library) {
			copy(work[:n], b)
			l.Dpotrs(ul, n, 1, factor, n, work, 1)
		})
	}
	return list
}

package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/blas"
	blasgonum "gonum.org/v1/gonum/blas/gonum"
	lapackgonum "gonum.org/v1/gonum/lapack/gonum"

	"github.com/mercer-go/mercer/backend"
)

// A call is a routine with its integer arguments, the last of which are the lengths of its slices.
type call[T backend.Float] struct {
	name  string
	exact bool // whether the two results must have the same bits
	valid []int
	run   func(args []int, a, b, c []T) bool // calls the routine; the last elements of args are the lengths of the slices
}

// TestPanicsAsGonum changes every argument and every pair of arguments of a valid call to values around the limits
// of their ranges. Mercer must panic as gonum does, without changing anything, or return the same result.
func TestPanicsAsGonum(t *testing.T) {
	g := blasgonum.Implementation{}
	reference64 := level3[float64]{gemm: g.Dgemm, symm: g.Dsymm, syrk: g.Dsyrk, syr2k: g.Dsyr2k, trmm: g.Dtrmm, trsm: g.Dtrsm}
	reference32 := level3[float32]{gemm: g.Sgemm, symm: g.Ssymm, syrk: g.Ssyrk, syr2k: g.Ssyr2k, trmm: g.Strmm, trsm: g.Strsm}
	impl, lapack := BLAS{}, LAPACK{}
	e := impl.device()
	mercer64 := level3[float64]{impl.Dgemm, impl.Dsymm, impl.Dsyrk, impl.Dsyr2k, impl.Dtrmm, impl.Dtrsm, e.f64.ukr.MR, e.f64.ukr.NR, 0}
	mercer32 := level3[float32]{impl.Sgemm, impl.Ssymm, impl.Ssyrk, impl.Ssyr2k, impl.Strmm, impl.Strsm, e.f32.ukr.MR, e.f32.ukr.NR, 0}
	comparePanics(t, mercer64.calls(), reference64.calls())
	comparePanics(t, mercer32.calls(), reference32.calls())

	// Mercer calls gonum's routines for small orders. These orders are below and above the limits.
	for _, n := range []int{minPotrfOrder - 1, minPotrfOrder + 1, unblockedOrder + 1} {
		comparePanics(t, lapackCalls(n, lapack), lapackCalls(n, lapackgonum.Implementation{}))
	}
	comparePanics(t, lapackCalls(3, float32LAPACK{lapack}), lapackCalls(3, lapackgonum.Implementation{}))
}

func comparePanics[T backend.Float](t *testing.T, mercer, gonum []call[T]) {
	for x, routine := range mercer {
		t.Run(fmt.Sprintf("%s/%T", routine.name, *new(T)), func(t *testing.T) {
			values := func(arg int) []int {
				valid := routine.valid[arg]
				return []int{valid, valid - 1, valid + 1, -1, 0, 1, 'N', 'T', 'C', 'U', 'L', 'R', 'A'}
			}
			for i := range routine.valid {
				for j := range i + 1 {
					if testing.Short() && j != i {
						continue // with -short, only one argument is invalid at a time
					}
					for _, vi := range values(i) {
						for _, vj := range values(j) {
							args := append([]int(nil), routine.valid...)
							args[i], args[j] = vi, vj
							compareCall(t, routine, gonum[x], args)
						}
					}
				}
			}
		})
	}
}

// compareCall runs one call on both implementations.
func compareCall[T backend.Float](t *testing.T, mercer, gonum call[T], args []int) {
	t.Helper()
	for _, length := range args[len(args)-3:] {
		if length < 0 {
			return
		}
	}
	got, gotEnd := outcome(mercer, args)
	want, wantEnd := outcome(gonum, args)
	if gotEnd != wantEnd {
		t.Fatalf("%s%v: got %q, gonum %q", mercer.name, args, gotEnd, wantEnd)
	}
	if !mercer.exact && (gotEnd == "true" || gotEnd == "false") {
		return
	}
	for k := range got {
		for i, v := range got[k] {
			if w := want[k][i]; v != w && (v == v || w == w) {
				t.Fatalf("%s%v: element %d of %c: got %v, gonum %v", mercer.name, args, i, 'a'+k, v, w)
			}
		}
	}
}

// outcome returns the contents of the slices after a call, and the text of its panic or its result.
func outcome[T backend.Float](routine call[T], args []int) (slices [3][]T, end string) {
	r := rand.New(rand.NewPCG(9, 0))
	for k, length := range args[len(args)-3:] {
		slices[k] = make([]T, length)
		for i := range slices[k] {
			slices[k][i] = T(int(1) << r.IntN(2)) // 1 or 2; not 0, because gonum skips terms with the factor 0
		}
	}
	defer func() {
		if p := recover(); p != nil {
			end = fmt.Sprint(p)
		}
	}()
	ok := routine.run(args, slices[0], slices[1], slices[2])
	return slices, fmt.Sprint(ok)
}

// calls lists the calls of level 3. m, n and k are 3, 4 and 5, and the strides include padding.
func (l level3[T]) calls() []call[T] {
	return []call[T]{
		{"gemm", true, []int{'N', 'T', 3, 4, 5, 6, 6, 6, 17, 23, 16}, func(x []int, a, b, c []T) bool {
			l.gemm(blas.Transpose(x[0]), blas.Transpose(x[1]), x[2], x[3], x[4], 2, a, x[5], b, x[6], 1, c, x[7])
			return true
		}},
		{"symm", true, []int{'L', 'U', 3, 4, 5, 6, 6, 13, 16, 16}, func(x []int, a, b, c []T) bool {
			l.symm(blas.Side(x[0]), blas.Uplo(x[1]), x[2], x[3], 2, a, x[4], b, x[5], 1, c, x[6])
			return true
		}},
		{"syrk", true, []int{'U', 'N', 3, 5, 6, 4, 17, 0, 11}, func(x []int, a, b, c []T) bool {
			l.syrk(blas.Uplo(x[0]), blas.Transpose(x[1]), x[2], x[3], 2, a, x[4], 1, c, x[5])
			return true
		}},
		{"syr2k", true, []int{'U', 'N', 3, 5, 6, 6, 4, 17, 17, 11}, func(x []int, a, b, c []T) bool {
			l.syr2k(blas.Uplo(x[0]), blas.Transpose(x[1]), x[2], x[3], 2, a, x[4], b, x[5], 1, c, x[6])
			return true
		}},
		{"trmm", true, []int{'L', 'U', 'N', 'N', 3, 4, 5, 6, 13, 16, 0}, func(x []int, a, b, c []T) bool {
			l.trmm(blas.Side(x[0]), blas.Uplo(x[1]), blas.Transpose(x[2]), blas.Diag(x[3]), x[4], x[5], 2, a, x[6], b, x[7])
			return true
		}},
		{"trsm", true, []int{'L', 'U', 'N', 'N', 3, 4, 5, 6, 13, 16, 0}, func(x []int, a, b, c []T) bool {
			l.trsm(blas.Side(x[0]), blas.Uplo(x[1]), blas.Transpose(x[2]), blas.Diag(x[3]), x[4], x[5], 2, a, x[6], b, x[7])
			return true
		}},
	}
}

// cholesky lists the LAPACK routines that Mercer implements.
type cholesky interface {
	Dpotrf(ul blas.Uplo, n int, a []float64, lda int) bool
	Dpotrs(ul blas.Uplo, n, nrhs int, a []float64, lda int, b []float64, ldb int)
	Dpotri(ul blas.Uplo, n int, a []float64, lda int) bool
	Dtrtri(ul blas.Uplo, d blas.Diag, n int, a []float64, lda int) bool
	Dlauum(ul blas.Uplo, n int, a []float64, lda int)
	Dtrtrs(ul blas.Uplo, t blas.Transpose, d blas.Diag, n, nrhs int, a []float64, lda int, b []float64, ldb int) bool
}

func lapackCalls(n int, impl cholesky) []call[float64] {
	ld, length := n+2, (n-1)*(n+2)+n
	return []call[float64]{
		{"potrf", false, []int{'U', n, ld, length, 0, 0}, func(x []int, a, b, c []float64) bool {
			return impl.Dpotrf(blas.Uplo(x[0]), x[1], a, x[2])
		}},
		{"potrs", false, []int{'L', n, 2, ld, 3, length, 3*(n-1) + 2, 0}, func(x []int, a, b, c []float64) bool {
			impl.Dpotrs(blas.Uplo(x[0]), x[1], x[2], a, x[3], b, x[4])
			return true
		}},
		{"potri", false, []int{'U', n, ld, length, 0, 0}, func(x []int, a, b, c []float64) bool {
			return impl.Dpotri(blas.Uplo(x[0]), x[1], a, x[2])
		}},
		{"trtri", false, []int{'L', 'N', n, ld, length, 0, 0}, func(x []int, a, b, c []float64) bool {
			return impl.Dtrtri(blas.Uplo(x[0]), blas.Diag(x[1]), x[2], a, x[3])
		}},
		{"lauum", false, []int{'L', n, ld, length, 0, 0}, func(x []int, a, b, c []float64) bool {
			impl.Dlauum(blas.Uplo(x[0]), x[1], a, x[2])
			return true
		}},
		{"trtrs", false, []int{'L', 'T', 'N', n, 2, ld, 3, length, 3*(n-1) + 2, 0}, func(x []int, a, b, c []float64) bool {
			return impl.Dtrtrs(blas.Uplo(x[0]), blas.Transpose(x[1]), blas.Diag(x[2]), x[3], x[4], a, x[5], b, x[6])
		}},
	}
}

// float32LAPACK offers the float32 routines of LAPACK under the names of the float64 routines.
type float32LAPACK struct{ LAPACK }

func (l float32LAPACK) Dpotrf(ul blas.Uplo, n int, a []float64, lda int) bool {
	s := narrowed(a)
	defer widen(a, s)
	return l.Spotrf(ul, n, s, lda)
}

func (l float32LAPACK) Dpotrs(ul blas.Uplo, n, nrhs int, a []float64, lda int, b []float64, ldb int) {
	x := narrowed(b)
	defer widen(b, x)
	l.Spotrs(ul, n, nrhs, narrowed(a), lda, x, ldb)
}

func (l float32LAPACK) Dpotri(ul blas.Uplo, n int, a []float64, lda int) bool {
	s := narrowed(a)
	defer widen(a, s)
	return l.Spotri(ul, n, s, lda)
}

func narrowed(x []float64) []float32 {
	s := make([]float32, len(x))
	for i, v := range x {
		s[i] = float32(v)
	}
	return s
}

func widen(x []float64, s []float32) {
	for i, v := range s {
		x[i] = float64(v)
	}
}

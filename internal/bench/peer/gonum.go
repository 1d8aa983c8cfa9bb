package peer

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/blas/gonum"
	lapack "gonum.org/v1/gonum/lapack/gonum"

	"github.com/mercer-go/mercer/backend"
)

// gonumLibrary returns gonum's own BLAS and LAPACK, where LAPACK lacks float32.
func gonumLibrary() (*Library, error) {
	if i := blas64.Implementation(); i != blas.Float64(gonum.Implementation{}) {
		return nil, fmt.Errorf("bench: gonum: its LAPACK calls %T, which is registered in place of gonum's BLAS", i)
	}
	var g gonum.Implementation
	library := &Library{
		Name:   "gonum",
		Detail: "gonum " + moduleVersion("gonum.org/v1/gonum"),
		F64:    gonumRoutines(g.Dgemm, g.Dsymm, g.Dsyrk, g.Dtrsm, g.Dsymv),
		F32:    gonumRoutines(g.Sgemm, g.Ssymm, g.Ssyrk, g.Strsm, g.Ssymv),
		// gonum uses GOMAXPROCS goroutines for a product.
		Threads: func(n int) func() {
			previous := runtime.GOMAXPROCS(n)
			return func() { runtime.GOMAXPROCS(previous) }
		},
	}
	library.F64.Potrf = func(a backend.Host[float64]) error {
		if !(lapack.Implementation{}).Dpotrf(blas.Lower, a.Rows, a.Data, a.Stride) {
			return fmt.Errorf("bench: gonum: potrf failed")
		}
		return nil
	}
	return library, nil
}

// gonumRoutines returns the Routines that call the given methods of gonum's BLAS.
func gonumRoutines[T backend.Float](
	gemm func(tA, tB blas.Transpose, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int),
	symm func(s blas.Side, ul blas.Uplo, m, n int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int),
	syrk func(ul blas.Uplo, tA blas.Transpose, n, k int, alpha T, a []T, lda int, beta T, c []T, ldc int),
	trsm func(s blas.Side, ul blas.Uplo, tA blas.Transpose, d blas.Diag, m, n int, alpha T, a []T, lda int, b []T, ldb int),
	symv func(ul blas.Uplo, n int, alpha T, a []T, lda int, x []T, incX int, beta T, y []T, incY int),
) Routines[T] {
	const lower, noTrans = blas.Lower, blas.NoTrans
	return Routines[T]{
		Gemm: func(alpha T, a, b backend.Host[T], beta T, c backend.Host[T]) {
			gemm(noTrans, noTrans, c.Rows, c.Cols, a.Cols, alpha, a.Data, a.Stride, b.Data, b.Stride, beta, c.Data, c.Stride)
		},
		Symm: func(alpha T, a, b backend.Host[T], beta T, c backend.Host[T]) {
			symm(blas.Left, lower, c.Rows, c.Cols, alpha, a.Data, a.Stride, b.Data, b.Stride, beta, c.Data, c.Stride)
		},
		Syrk: func(alpha T, a backend.Host[T], beta T, c backend.Host[T]) {
			syrk(lower, noTrans, a.Rows, a.Cols, alpha, a.Data, a.Stride, beta, c.Data, c.Stride)
		},
		Trsm: func(alpha T, a, b backend.Host[T]) {
			trsm(blas.Left, lower, noTrans, blas.NonUnit, b.Rows, b.Cols, alpha, a.Data, a.Stride, b.Data, b.Stride)
		},
		Symv: func(alpha T, a backend.Host[T], x []T, beta T, y []T) {
			symv(lower, a.Rows, alpha, a.Data, a.Stride, x, 1, beta, y, 1)
		},
	}
}

// moduleVersion returns the version of a module that is linked into this program.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, m := range info.Deps {
		if m.Path == path {
			return m.Version
		}
	}
	return ""
}

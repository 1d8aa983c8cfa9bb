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

// gonumLibrary is gonum's own BLAS and LAPACK. It has no LAPACK in float32.
func gonumLibrary() (*Library, error) {
	if i := blas64.Implementation(); i != blas.Float64(gonum.Implementation{}) {
		return nil, fmt.Errorf("bench: gonum: its LAPACK calls %T, which somebody has registered in its place", i)
	}
	var g gonum.Implementation
	const lower, no, yes = blas.Lower, blas.NoTrans, blas.Trans
	return &Library{
		Name:   "gonum",
		Detail: "gonum " + moduleVersion("gonum.org/v1/gonum"),
		F64: Routines[float64]{
			Gemm: func(alpha float64, a, b backend.Host[float64], beta float64, c backend.Host[float64]) {
				g.Dgemm(no, no, c.Rows, c.Cols, a.Cols, alpha, a.Data, a.Stride, b.Data, b.Stride, beta, c.Data, c.Stride)
			},
			Symm: func(alpha float64, a, b backend.Host[float64], beta float64, c backend.Host[float64]) {
				g.Dsymm(blas.Left, lower, c.Rows, c.Cols, alpha, a.Data, a.Stride, b.Data, b.Stride, beta, c.Data, c.Stride)
			},
			Syrk: func(alpha float64, a backend.Host[float64], beta float64, c backend.Host[float64]) {
				g.Dsyrk(lower, no, a.Rows, a.Cols, alpha, a.Data, a.Stride, beta, c.Data, c.Stride)
			},
			Trsm: func(alpha float64, a, b backend.Host[float64]) {
				g.Dtrsm(blas.Left, lower, no, blas.NonUnit, b.Rows, b.Cols, alpha, a.Data, a.Stride, b.Data, b.Stride)
			},
			Potrf: func(a backend.Host[float64]) error {
				if !(lapack.Implementation{}).Dpotrf(lower, a.Rows, a.Data, a.Stride) {
					return fmt.Errorf("bench: gonum: potrf failed")
				}
				return nil
			},
			Symv: func(alpha float64, a backend.Host[float64], x []float64, beta float64, y []float64) {
				g.Dsymv(lower, a.Rows, alpha, a.Data, a.Stride, x, 1, beta, y, 1)
			},
		},
		F32: Routines[float32]{
			Gemm: func(alpha float32, a, b backend.Host[float32], beta float32, c backend.Host[float32]) {
				g.Sgemm(no, no, c.Rows, c.Cols, a.Cols, alpha, a.Data, a.Stride, b.Data, b.Stride, beta, c.Data, c.Stride)
			},
			Symm: func(alpha float32, a, b backend.Host[float32], beta float32, c backend.Host[float32]) {
				g.Ssymm(blas.Left, lower, c.Rows, c.Cols, alpha, a.Data, a.Stride, b.Data, b.Stride, beta, c.Data, c.Stride)
			},
			Syrk: func(alpha float32, a backend.Host[float32], beta float32, c backend.Host[float32]) {
				g.Ssyrk(lower, no, a.Rows, a.Cols, alpha, a.Data, a.Stride, beta, c.Data, c.Stride)
			},
			Trsm: func(alpha float32, a, b backend.Host[float32]) {
				g.Strsm(blas.Left, lower, no, blas.NonUnit, b.Rows, b.Cols, alpha, a.Data, a.Stride, b.Data, b.Stride)
			},
			Symv: func(alpha float32, a backend.Host[float32], x []float32, beta float32, y []float32) {
				g.Ssymv(lower, a.Rows, alpha, a.Data, a.Stride, x, 1, beta, y, 1)
			},
		},
		// gonum divides a product among GOMAXPROCS goroutines.
		Threads: func(n int) func() {
			before := runtime.GOMAXPROCS(n)
			return func() { runtime.GOMAXPROCS(before) }
		},
	}, nil
}

// moduleVersion is the version of a module that is linked in.
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

// Package peer calls the libraries with which Mercer is compared. gonum is part of the program. OpenBLAS, BLIS and
// MKL are shared libraries that are opened at run time if the machine has them.
package peer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/mercer-go/mercer/backend"
)

// ErrMissing is the error (errors.Is) of Open if the library is not on this machine.
var ErrMissing = errors.New("not found")

// Routines are the BLAS routines of level 2 and 3, and potrf, of a library in one precision. Matrices are
// row-major. Triangles are lower triangles; the routines neither read nor write the upper triangle.
type Routines[T backend.Float] struct {
	Gemm  func(alpha T, a, b backend.Host[T], beta T, c backend.Host[T]) // C ← α A B + β C
	Symm  func(alpha T, a, b backend.Host[T], beta T, c backend.Host[T]) // C ← α A B + β C, A symmetric
	Syrk  func(alpha T, a backend.Host[T], beta T, c backend.Host[T])    // C ← α A Aᵀ + β C
	Trsm  func(alpha T, a, b backend.Host[T])                            // B ← α A⁻¹ B, A triangular
	Potrf func(a backend.Host[T]) error                                  // A = L Lᵀ, L overwrites A; Potrf is nil for a library without LAPACK
	Symv  func(alpha T, a backend.Host[T], x []T, beta T, y []T)         // y ← α A x + β y, A symmetric
}

// Library is an opened library. Only one goroutine may use it at a time.
type Library struct {
	Name   string // "gonum", "openblas", "blis" or "mkl"
	Detail string // the version and the configuration that the library reports
	Path   string // the file that was opened; empty for gonum
	F64    Routines[float64]
	F32    Routines[float32]
	// Threads sets the number of threads of the library. restore undoes the changes to the Go runtime.
	Threads func(n int) (restore func())
	// Spin bounds the time for which the library's threads occupy processors after a call.
	Spin time.Duration
}

// Names lists the libraries that Open can open.
func Names() []string { return []string{"gonum", "openblas", "blis", "mkl"} }

// EnvLibDir is the environment variable that lists the files and folders to search for libraries, separated as in PATH.
const EnvLibDir = "MERCER_PEER_LIBDIR"

// Open opens a library. It searches the folders and files in locations, the folders and files in
// MERCER_PEER_LIBDIR, and the folders of the system's loader, in this order. Open MKL last: it
// makes its symbols visible to every library that is loaded after it.
func Open(name string, locations []string) (*Library, error) {
	locations = append(slices.Clip(locations), filepath.SplitList(os.Getenv(EnvLibDir))...)
	switch name {
	case "gonum":
		return gonumLibrary()
	case "openblas":
		return openBLAS(locations)
	case "blis":
		return blis(locations)
	case "mkl":
		return mkl(locations)
	}
	return nil, fmt.Errorf("bench: no library is called %q; the libraries are: %s", name, strings.Join(Names(), ", "))
}

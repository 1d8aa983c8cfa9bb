// Package peer reaches the libraries that Mercer is measured against: gonum,
// which is linked in, and OpenBLAS, BLIS and MKL, which are opened at run time
// where the machine has them. Nothing here is linked or needed at build time.
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

// ErrMissing is what the error of Open matches when the library is not on this
// machine.
var ErrMissing = errors.New("not found")

// Routines are a library's level 2 and 3 in one precision, on row-major
// matrices as they are, so that every library does the same work on the same
// memory. Triangles are lower ones; the other is neither read nor written.
type Routines[T backend.Float] struct {
	Gemm  func(alpha T, a, b backend.Host[T], beta T, c backend.Host[T]) // C ← α A B + β C
	Symm  func(alpha T, a, b backend.Host[T], beta T, c backend.Host[T]) // C ← α A B + β C, A symmetric
	Syrk  func(alpha T, a backend.Host[T], beta T, c backend.Host[T])    // C ← α A Aᵀ + β C
	Trsm  func(alpha T, a, b backend.Host[T])                            // B ← α A⁻¹ B, A triangular
	Potrf func(a backend.Host[T]) error                                  // A = L Lᵀ, L in place of A; nil without LAPACK
	Symv  func(alpha T, a backend.Host[T], x []T, beta T, y []T)         // y ← α A x + β y, A symmetric
}

// Library is a library that is ready to be called, by one goroutine at a time.
type Library struct {
	Name   string // "gonum", "openblas", "blis" or "mkl"
	Detail string // version and what it says of itself
	Path   string // the file that was opened; empty for gonum
	F64    Routines[float64]
	F32    Routines[float32]
	// Threads makes the library use n threads from now on; restore takes back
	// what that did to the Go runtime.
	Threads func(n int) (restore func())
	// Spin bounds how long its threads spin after a call: they take processors
	// from whoever is measured next.
	Spin time.Duration
}

// Names lists the libraries that Open knows.
func Names() []string { return []string{"gonum", "openblas", "blis", "mkl"} }

// EnvPlaces is the environment variable with places to look in for libraries,
// separated as in PATH.
const EnvPlaces = "MERCER_PEER_LIBDIR"

// Open opens a library. It is looked for in places, folders or the file itself,
// then in those of MERCER_PEER_LIBDIR, then where the system's loader looks.
// MKL is to be opened last: it makes its names known to all that is loaded after
// it.
func Open(name string, places []string) (*Library, error) {
	places = append(slices.Clip(places), filepath.SplitList(os.Getenv(EnvPlaces))...)
	switch name {
	case "gonum":
		return gonumLibrary()
	case "openblas":
		return openBLAS(places)
	case "blis":
		return blis(places)
	case "mkl":
		return mkl(places)
	}
	return nil, fmt.Errorf("bench: no library is called %q; there are: %s", name, strings.Join(Names(), ", "))
}

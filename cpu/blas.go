package cpu

import (
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// BLAS implements gonum's blas.Float64 and blas.Float32 on the best tier of this machine:
//
//	blas64.Use(cpu.BLAS{})
//	blas32.Use(cpu.BLAS{})
//
// Mercer implements level 3 (Gemm, Symm, Syrk, Syr2k, Trmm, Trsm) and, for contiguous vectors, Gemv, Symv, Ger,
// Trsv, Dot, Axpy and Nrm2, in both precisions, on runtime.GOMAXPROCS(0) workers. All other calls go to gonum.
// Arguments are checked as gonum checks them, with the same panics. In Mercer's routines NaN and Inf follow IEEE
// arithmetic: no term is skipped because a factor is zero, except that with alpha = 0, A and B are not read, and
// with beta = 0, C is not read. The results do not depend on the number of workers.
//
// The zero value is ready to use, and several goroutines may use it at the same time. BLAS reads no
// environment variables. To choose a device, use package backend.
type BLAS struct {
	gonum.Implementation
	bound *device // nil means the best device
}

var (
	_ blas.Float64 = BLAS{}
	_ blas.Float32 = BLAS{}
)

// newBLAS returns a BLAS bound to a tier, which the machine must support.
func newBLAS(t *ukr.Tier) BLAS { return BLAS{bound: newDevice(t, 0, cacheSizes{})} }

// bestTier returns the first tier that this machine can run. Every machine can run the generic tier.
var bestTier = func() *ukr.Tier {
	for _, t := range ukr.Tiers() {
		if t.Missing() == "" {
			return t
		}
	}
	panic("unreachable")
}()

// bestDevice returns the device of the best tier.
var bestDevice = sync.OnceValue(func() *device { return newDevice(bestTier, 0, cacheSizes{}) })

// device returns the device of b, which is the best device if b is not bound to a tier.
func (b BLAS) device() *device {
	if b.bound != nil {
		return b.bound
	}
	return bestDevice()
}

// tier returns the tier of device() without creating the device.
func (b BLAS) tier() *ukr.Tier {
	if b.bound != nil {
		return b.bound.tier
	}
	return bestTier
}

// rowMajor returns a view of a slice as a matrix with row stride ld.
func rowMajor[T backend.Float](data []T, rows, cols, ld int) view[T] {
	return view[T]{data: data, rows: rows, cols: cols, rs: ld, cs: 1}
}

// The following functions convert valid constants of package blas to constants of package backend.

func transposed(t blas.Transpose) backend.Trans {
	if t == blas.NoTrans {
		return backend.NoTrans
	}
	return backend.Transpose // ConjTrans equals Trans for real matrices
}

func triangle(ul blas.Uplo) backend.Uplo {
	if ul == blas.Upper {
		return backend.Upper
	}
	return backend.Lower
}

func sideOf(s blas.Side) backend.Side {
	if s == blas.Right {
		return backend.Right
	}
	return backend.Left
}

package cpu

import (
	"sync"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/gonum"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// BLAS implements gonum's blas.Float64 and blas.Float32 on the best tier of
// this machine:
//
//	blas64.Use(cpu.BLAS{})
//	blas32.Use(cpu.BLAS{})
//
// Mercer does level 3 (Gemm, Symm, Syrk, Syr2k, Trmm, Trsm) and, for vectors in
// one piece, Gemv, Symv, Ger, Trsv, Dot, Axpy and Nrm2, in both precisions, on
// runtime.GOMAXPROCS(0) workers; everything else is gonum's.
// Arguments are checked as gonum checks them, with its panics. In what Mercer
// does, NaN and Inf follow IEEE arithmetic: nothing is skipped because a factor
// is zero; only alpha = 0 means that A and B are not read, and beta = 0 that C
// is not. The results do not depend on the number of workers.
//
// The zero value is ready to use, from several goroutines. It never reads the
// environment: to choose another device, use package backend.
type BLAS struct {
	gonum.Implementation
	bound *device // nil: the best one
}

var (
	_ blas.Float64 = BLAS{}
	_ blas.Float32 = BLAS{}
)

// newBLAS is a BLAS that is bound to a tier, which the machine must have.
func newBLAS(t *ukr.Tier) BLAS { return BLAS{bound: newDevice(t, 0, Caches{})} }

// bestTier is the first tier that this machine can run; the generic one needs
// nothing.
var bestTier = func() *ukr.Tier {
	for _, t := range ukr.Tiers() {
		if t.Missing() == "" {
			return t
		}
	}
	panic("unreachable")
}()

// bestDevice is the device of the best tier.
var bestDevice = sync.OnceValue(func() *device { return newDevice(bestTier, 0, Caches{}) })

// device is the device that b is bound to.
func (b BLAS) device() *device {
	if b.bound != nil {
		return b.bound
	}
	return bestDevice()
}

// tier is the tier of that device, which takes less to find.
func (b BLAS) tier() *ukr.Tier {
	if b.bound != nil {
		return b.bound.tier
	}
	return bestTier
}

// rowMajor is a slice as a matrix of rows ld elements apart.
func rowMajor[T backend.Float](data []T, rows, cols, ld int) view[T] {
	return view[T]{data: data, rows: rows, cols: cols, rs: ld, cs: 1}
}

// The values of package blas as those of package backend; they have been
// checked.

func transposed(t blas.Transpose) backend.Trans {
	if t == blas.NoTrans {
		return backend.NoTrans
	}
	return backend.Transpose // of real matrices, ConjTrans is the same
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

package cpu

import (
	"testing"

	"gonum.org/v1/gonum/blas/testblas"
	"gonum.org/v1/gonum/lapack/testlapack"

	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/required"
)

// TestGonumBLAS runs gonum's conformance suite of BLAS.
func TestGonumBLAS(t *testing.T) {
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		impl := newBLAS(tier)
		run := func(name string, f func(t *testing.T)) { t.Run(name, f) }

		run("Dgemm", func(t *testing.T) { testblas.TestDgemm(t, impl) })
		run("Dsymm", func(t *testing.T) { testblas.DsymmTest(t, impl) })
		run("Dsyrk", func(t *testing.T) { testblas.DsyrkTest(t, impl) })
		run("Dsyr2k", func(t *testing.T) { testblas.Dsyr2kTest(t, impl) })
		run("Dtrmm", func(t *testing.T) { testblas.DtrmmTest(t, impl) })
		run("Dtrsm", func(t *testing.T) { testblas.DtrsmTest(t, impl) })

		run("Dgemv", func(t *testing.T) { testblas.DgemvTest(t, impl) })
		run("Dger", func(t *testing.T) { testblas.DgerTest(t, impl) })
		run("Dsymv", func(t *testing.T) { testblas.DsymvTest(t, impl) })
		run("Dsyr", func(t *testing.T) { testblas.DsyrTest(t, impl) })
		run("Dsyr2", func(t *testing.T) { testblas.Dsyr2Test(t, impl) })
		run("Dtrmv", func(t *testing.T) { testblas.DtrmvTest(t, impl) })
		run("Dtrsv", func(t *testing.T) { testblas.DtrsvTest(t, impl) })
		run("Dtxmv", func(t *testing.T) { testblas.DtxmvTest(t, impl) })

		run("Ddot", func(t *testing.T) { testblas.DdotTest(t, impl) })
		run("Daxpy", func(t *testing.T) { testblas.DaxpyTest(t, impl) })
		run("Dnrm2", func(t *testing.T) { testblas.Dnrm2Test(t, impl) })
		run("Dscal", func(t *testing.T) { testblas.DscalTest(t, impl) })
		run("Dasum", func(t *testing.T) { testblas.DasumTest(t, impl) })
		run("Dcopy", func(t *testing.T) { testblas.DcopyTest(t, impl) })
		run("Dswap", func(t *testing.T) { testblas.DswapTest(t, impl) })
		run("Idamax", func(t *testing.T) { testblas.IdamaxTest(t, impl) })
	})
}

// TestGonumLAPACK runs gonum's conformance suite of LAPACK for Mercer's routines and the routines that call them.
func TestGonumLAPACK(t *testing.T) {
	forTiers := forEachTier
	if required.FewCases() {
		forTiers = forEachAssembledTier
	}
	forTiers(t, func(t *testing.T, tier *ukr.Tier) {
		impl := newLAPACK(tier)
		run := func(name string, f func(t *testing.T)) { t.Run(name, f) }

		run("Dpotrf", func(t *testing.T) { testlapack.DpotrfTest(t, impl) })
		run("Dpotrs", func(t *testing.T) { testlapack.DpotrsTest(t, impl) })
		run("Dpotri", func(t *testing.T) { testlapack.DpotriTest(t, impl) })
		run("Dpocon", func(t *testing.T) { testlapack.DpoconTest(t, impl) })
		run("Dtrtri", func(t *testing.T) { testlapack.DtrtriTest(t, impl) })
		run("Dtrtrs", func(t *testing.T) { testlapack.DtrtrsTest(t, impl) })
		run("Dlauum", func(t *testing.T) { testlapack.DlauumTest(t, impl) })
	})
}

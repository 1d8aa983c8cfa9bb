package cpu

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/kernels"
)

// TestProgramOperations runs every function that a program may have, alone and fused with an affine
// operation before it, and compares the results with those of Program.Run.
func TestProgramOperations(t *testing.T) {
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		t.Run("float64", func(t *testing.T) { testProgramOperations(t, &tier.F64) })
		t.Run("float32", func(t *testing.T) { testProgramOperations(t, &tier.F32) })
	})
}

func testProgramOperations[T backend.Float](t *testing.T, k *ukr.Kernels[T]) {
	const seed = 4
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	u := 0x1p-53
	if unsafe.Sizeof(T(0)) == 4 {
		u = 0x1p-24
	}
	// All operands are exact in T.
	affine := func(a, b float64) kernels.Instr { return kernels.Instr{Op: kernels.Affine, A: a, B: b} }
	load := kernels.Instr{Op: kernels.Load}
	for _, f := range []kernels.Instr{
		{Op: kernels.Exp},
		{Op: kernels.Pow, A: -1.5},
		{Op: kernels.Pow, A: 2.25},
		{Op: kernels.Tanh},
		{Op: kernels.Cos},
		{Op: kernels.Sin},
		{Op: kernels.Sqrt},
		{Op: kernels.Log},
	} {
		for _, code := range [][]kernels.Instr{
			{load, f},
			{load, affine(0.5, 1), f},
			{load, affine(0.5, 0), f},
			{load, affine(0.5, 1), f, affine(2, 0.5)},
			{load, affine(0.5, 1)},
			{load, f, load, affine(0.25, 1), f, {Op: kernels.Mul}},
		} {
			p := &kernels.Program{Stats: []kernels.Stat{{}}, Code: code, Depth: 2}
			g := &gram[T]{q: &queue[T]{engine: &engine[T]{ukr: k}}, prog: p}
			n := 3 * k.NR
			stats, stack := make([]T, n), make([]T, 2*n)
			for i := range stats {
				stats[i] = T(4 * rng.Float64())
			}
			x := append([]T{}, stats...)
			for i, got := range g.run(&scratch[T]{}, stack, stats, 0, n, n) {
				want := p.Run([]float64{float64(x[i])})
				// Rounding ½x + 1 ≤ 3 changes each function by at most 3u·max(1, |value|). There are at most two
				// functions, one product and one affine operation, and each has a small number of roundings.
				if tol := u * (2*3 + 16) * max(1, math.Abs(want)); !(math.Abs(float64(got)-want) <= tol) {
					t.Errorf("%+v of %v is %v, want %v: off by %g, allowed %g", code, x[i], got, want, math.Abs(float64(got)-want), tol)
				}
			}
		}
	}
}

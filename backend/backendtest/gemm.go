package backendtest

import (
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
)

// gemmCase describes one call C ← α op(A) op(B) + β C.
type gemmCase struct {
	tA, tB      backend.Trans
	m, n, k     int
	alpha, beta float64
}

func (g gemmCase) String() string {
	return fmt.Sprintf("Gemm %v %v m=%d n=%d k=%d alpha=%v beta=%v", g.tA, g.tB, g.m, g.n, g.k, g.alpha, g.beta)
}

func gemmCall[T backend.Float](g gemmCase) call[T] {
	return func(b backend.Backend[T], m []backend.Matrix[T]) error {
		b.Gemm(g.tA, g.tB, T(g.alpha), m[0], m[1], T(g.beta), m[2])
		return nil
	}
}

// gemmExact fills op(A), op(B) and C with integers of absolute value ≤ 8, and requires the exact result, below 2²⁴
// for k ≤ 4100. If beta is 0, C is filled with NaN, because it must not be read.
func (r *rig[T]) gemmExact(g gemmCase) {
	r.Helper()
	a, b, c := r.integers(g.m, g.k, 8), r.integers(g.k, g.n, 8), r.integers(g.m, g.n, 8)
	if g.beta == 0 {
		c = filled(g.m, g.n, sentinel)
	}
	got := r.mustCall(g.String(), gemmCall[T](g), op(g.tA, a), op(g.tB, b), c)
	r.requireEqual(g.String(), got, combine(g.alpha, mul(a, b), g.beta, c))
}

// testGemmExact tests all small m and n, which cover every edge of a micro-kernel of up to 33 rows or columns,
// sizes near the block sizes, and one long dimension at a time.
func testGemmExact[T backend.Float](r *rig[T]) {
	edge := 33
	if short() {
		edge = 13
	}
	ks, longs := []int{0, 1, 2, 3, 4, 5, 8, 9, 17}, []int{383, 384, 385, 511, 512, 513, 769, 1025, 2049, 4097}
	for m := range edge + 1 {
		for n := range edge + 1 {
			for _, tA := range bothTrans {
				for _, tB := range bothTrans {
					k := pick(r, ks)
					if m < 9 && n < 9 {
						for _, k := range required.Subset(2, ks) {
							r.gemmExact(gemmCase{tA, tB, m, n, k, pick(r, alphas), pick(r, betas)})
						}
					}
					r.gemmExact(gemmCase{tA, tB, m, n, k, 1, 0})
					r.gemmExact(gemmCase{tA, tB, m, n, k, pick(r, alphas), pick(r, betas)})
				}
			}
		}
	}
	for range r.reduced(48) {
		m, n, k := r.block(), r.block(), r.block()
		r.gemmExact(gemmCase{pick(r, bothTrans), pick(r, bothTrans), m, n, k, pick(r, alphas), pick(r, betas)})
	}
	for _, long := range required.Subset(4, longs) {
		for _, tA := range bothTrans {
			for _, tB := range bothTrans {
				small1, small2 := 1+r.rng.IntN(20), 1+r.rng.IntN(20)
				r.gemmExact(gemmCase{tA, tB, long, small1, small2, 1, pick(r, betas)})
				r.gemmExact(gemmCase{tA, tB, small1, long, small2, 1, pick(r, betas)})
				r.gemmExact(gemmCase{tA, tB, small1, small2, long, 1, pick(r, betas)})
			}
		}
	}
}

func testGemmRounding[T backend.Float](r *rig[T]) {
	for range r.reduced(100) {
		g := gemmCase{
			pick(r, bothTrans), pick(r, bothTrans),
			1 + r.rng.IntN(100), 1 + r.rng.IntN(100), 1 + r.rng.IntN(400),
			float64(T(r.rng.NormFloat64())), pick(r, []float64{0, 1, float64(T(r.rng.NormFloat64()))}),
		}
		a, b, c := r.normals(g.m, g.k), r.normals(g.k, g.n), r.normals(g.m, g.n)
		in := []host{op(g.tA, a), op(g.tB, b), c}
		got, want := r.mustCall(g.String(), gemmCall[T](g), in...), r.callOracle(g.String(), gemmCall[T](g), in...)
		size := combine(abs1(g.alpha), mul(abs(a), abs(b)), abs1(g.beta), abs(c))
		r.requireNear(g.String(), got, want, combine(g.alpha, mul(a, b), g.beta, c), scale(product[T](g.k), size))
	}
	r.report()
}

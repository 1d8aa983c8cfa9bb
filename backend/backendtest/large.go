package backendtest

import (
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// In these tests, every loop over blocks runs several times and all workers are busy. A product is checked by
// multiplying both sides by a vector without zeros, in n² operations (Freivalds, 1977). With integers both sides
// are exact.

// vector returns n nonzero integers of absolute value ≤ 512. Their products with integers < 2²⁴ have exact sums.
func (r *rig[T]) vector(n int) host {
	return fromFunc(n, 1, func(int, int) float64 {
		v := float64(1 + r.rng.IntN(512))
		if r.rng.IntN(2) == 0 {
			return -v
		}
		return v
	})
}

func testLargeProducts[T backend.Float](r *rig[T]) {
	n := r.LargeN
	for _, tA := range bothTrans {
		for _, tB := range bothTrans {
			g := gemmCase{tA, tB, n + 1, n - 1, n + 3, pick(r, []float64{1, -2}), pick(r, []float64{0, 1})}
			a, b, c := r.integers(g.m, g.k, 2), r.integers(g.k, g.n, 2), r.integers(g.m, g.n, 2)
			got := r.mustCall(g.String(), gemmCall[T](g), op(tA, a), op(tB, b), c)
			v := r.vector(g.n)
			r.requireEqual(g.String()+", times a vector", mul(got, v), combine(g.alpha, mul(a, mul(b, v)), g.beta, mul(c, v)))
		}
	}
	for _, ul := range bothUplos {
		for _, t := range bothTrans {
			s := syrkCase{ul, t, n + 1, n/2 + 1, -1, 1}
			a, c := r.integers(s.n, s.k, 2), r.integers(s.n, s.n, 2)
			got := r.mustCall(s.String(), syrkCall[T](s), op(t, a), triangle(ul, c))
			for i := range s.n {
				for j := range s.n {
					if !inTriangle(ul, i, j) && bits(got.Row(i)[j]) != bits(sentinel) {
						r.Fatalf("%v: wrote the other triangle at (%d, %d)", s, i, j)
					}
				}
			}
			v := r.vector(s.n)
			want := combine(s.alpha, mul(a, mul(transpose(a), v)), s.beta, mul(mirror(ul, c), v))
			r.requireEqual(s.String()+", times a vector", mul(mirror(ul, got), v), want)
		}
		for _, cols := range []int{2, 11, n/2 + 1} {
			s := symmCase{ul, n + 1, cols, 2, 0}
			a, b := r.integers(s.m, s.m, 2), r.integers(s.m, s.n, 2)
			got := r.mustCall(s.String(), symmCall[T](s), triangle(ul, a), b, filled(s.m, s.n, sentinel))
			v := r.vector(s.n)
			r.requireEqual(s.String()+", times a vector", mul(got, v), scale(s.alpha, mul(mirror(ul, a), mul(b, v))))
		}
	}
}

func testLargeSolves[T backend.Float](r *rig[T]) {
	n := r.LargeN + 1
	low := r.exactTriangle(n, 12, false)
	everyTrsm(func(c trsmCase) {
		c.order, c.rhs, c.alpha = n, n/2, 1
		m, cols := c.dims()
		a, x := c.operand(low), r.integers(m, cols, 3)
		r.requireEqual(c.String(), r.mustCall(c.String(), trsmCall[T](c), triangle(c.ul, a), c.multiply(a, x)), x)
	})
}

// testLargePotrf factors a matrix whose factor is exact, and a dense random matrix A. For A it compares LLᵀv with Av,
// where v is a vector of ±1. They may differ by γ_{n+2}|L||Lᵀ||v| (see gamma) plus 3n roundings in float64.
func testLargePotrf[T backend.Float](r *rig[T]) {
	n := r.LargeN - 1
	low := r.exactTriangle(n, 12, true)
	exact := mulSparse(low, transpose(low))
	// The dense matrix is GGᵀ + nI, where G has only 8 columns to save time.
	g := r.normals(n, 8)
	dense := mul(g, transpose(g))
	for i := range n {
		for j := range n {
			v := dense.Row(i)[j]
			if i == j {
				v += float64(n)
			}
			dense.Row(i)[j] = float64(T(v))
		}
	}
	for _, ul := range bothUplos {
		label := fmt.Sprintf("Potrf %v n=%d", ul, n)
		r.requireEqual(label, r.mustCall(label, potrfCall[T](ul), potrfOperand(ul, exact)), potrfOperand(ul, low))

		factor := r.mustCall(label, potrfCall[T](ul), potrfOperand(ul, dense))
		if ul == backend.Upper {
			factor = transpose(factor)
		}
		for i := range n {
			clear(factor.Row(i)[i+1:])
		}
		v := fromFunc(n, 1, func(int, int) float64 { return float64(2*r.rng.IntN(2) - 1) })
		size := mul(abs(factor), mul(transpose(abs(factor)), filled(n, 1, 1)))
		relative := gamma[T](n+2) + gamma[float64](3*n)
		r.requireWithin(label, mul(factor, mul(transpose(factor), v)), mul(dense, v), scale(relative, size))
	}
	r.report()
}

// testLargeGram compares random elements of a Gram matrix with kernels.Eval.
func testLargeGram[T backend.Float](r *rig[T]) {
	n, m := r.LargeN+1, r.LargeN-1
	for _, d := range []int{3, 33} {
		x, z := r.normals(n, d), r.normals(m, d)
		for _, k := range append(distanceKernels(d, 1), kernels.Polynomial{Degree: 3, C: 1}) {
			label := fmt.Sprintf("Gram %v n=%d m=%d d=%d", k, n, m, d)
			got := r.mustCall(label, gramCall[T](k), x, z, filled(n, m, sentinel))
			r.sample(label, k, got, x, z, func(i, j int) bool { return true })
			label += ", z == x"
			got = r.mustCall(label, symmetricCall[T](k, false), x, filled(n, n, sentinel))
			r.sample(label, k, got, x, x, func(i, j int) bool { return j <= i })
			r.requireUntouched(label, got)
		}
	}
}

// sample draws 2000 pairs (i, j). If written(i, j) is true, it compares element (i, j) with kernels.Eval.
func (r *rig[T]) sample(label string, k kernels.Kernel, got, x, z host, written func(i, j int) bool) {
	r.Helper()
	bound := newKernelBound[T](k, x, z, false)
	for range 2000 {
		i, j := r.rng.IntN(got.Rows), r.rng.IntN(got.Cols)
		if !written(i, j) {
			continue
		}
		limit := bound.at(i, j)
		if e := math.Abs(got.Row(i)[j] - kernels.Eval(k, x.Row(i), z.Row(j))); !(e <= limit) {
			r.Fatalf("%s: element (%d, %d) is %v: error %.3g, bound %.3g", label, i, j, got.Row(i)[j], e, limit)
		}
	}
}

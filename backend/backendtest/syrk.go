package backendtest

import (
	"fmt"

	"github.com/mercer-go/mercer/backend"
)

// syrkCase describes one call C ← α op(A) op(A)ᵀ + β C, where op(A) is n × k.
type syrkCase struct {
	ul          backend.Uplo
	t           backend.Trans
	n, k        int
	alpha, beta float64
}

func (s syrkCase) String() string {
	return fmt.Sprintf("Syrk %v %v n=%d k=%d alpha=%v beta=%v", s.ul, s.t, s.n, s.k, s.alpha, s.beta)
}

func syrkCall[T backend.Float](s syrkCase) call[T] {
	return func(b backend.Backend[T], m []backend.Matrix[T]) error {
		b.Syrk(s.ul, s.t, T(s.alpha), m[0], T(s.beta), m[1])
		return nil
	}
}

func (r *rig[T]) syrkExact(s syrkCase) {
	r.Helper()
	a, c := r.integers(s.n, s.k, 8), r.integers(s.n, s.n, 8)
	if s.beta == 0 {
		c = filled(s.n, s.n, sentinel)
	}
	got := r.mustCall(s.String(), syrkCall[T](s), op(s.t, a), triangle(s.ul, c))
	r.requireEqual(s.String(), got, triangle(s.ul, combine(s.alpha, mul(a, transpose(a)), s.beta, c)))
}

// symmCase describes one call C ← α A B + β C with a symmetric m × m matrix A.
type symmCase struct {
	ul          backend.Uplo
	m, n        int
	alpha, beta float64
}

func (s symmCase) String() string {
	return fmt.Sprintf("Symm %v m=%d n=%d alpha=%v beta=%v", s.ul, s.m, s.n, s.alpha, s.beta)
}

func symmCall[T backend.Float](s symmCase) call[T] {
	return func(b backend.Backend[T], m []backend.Matrix[T]) error {
		b.Symm(s.ul, T(s.alpha), m[0], m[1], T(s.beta), m[2])
		return nil
	}
}

func (r *rig[T]) symmExact(s symmCase) {
	r.Helper()
	a, b, c := r.integers(s.m, s.m, 8), r.integers(s.m, s.n, 8), r.integers(s.m, s.n, 8)
	if s.beta == 0 {
		c = filled(s.m, s.n, sentinel)
	}
	got := r.mustCall(s.String(), symmCall[T](s), triangle(s.ul, a), b, c)
	r.requireEqual(s.String(), got, combine(s.alpha, mul(mirror(s.ul, a), b), s.beta, c))
}

func testSyrkExact[T backend.Float](r *rig[T]) {
	for n := range 34 {
		for _, k := range []int{0, 1, 2, 3, 5, 8, 17} {
			for _, ul := range bothUplos {
				for _, t := range bothTrans {
					if r.included() {
						r.syrkExact(syrkCase{ul, t, n, k, pick(r, alphas), pick(r, betas)})
					}
				}
			}
		}
	}
	for range r.reduced(60) {
		n, k := r.block(), r.block()
		r.syrkExact(syrkCase{pick(r, bothUplos), pick(r, bothTrans), n, k, pick(r, alphas), pick(r, betas)})
	}
	for _, long := range []int{385, 513, 1025, 2049} {
		for _, ul := range bothUplos {
			for _, t := range bothTrans {
				r.syrkExact(syrkCase{ul, t, 1 + r.rng.IntN(20), long, 1, pick(r, betas)})
				if n := min(long, 1025); !short() && n <= r.LargeN {
					r.syrkExact(syrkCase{ul, t, n, 1 + r.rng.IntN(4), 1, pick(r, betas)})
				}
			}
		}
	}
}

func testSyrkRounding[T backend.Float](r *rig[T]) {
	for range r.reduced(60) {
		s := syrkCase{
			pick(r, bothUplos), pick(r, bothTrans),
			1 + r.rng.IntN(150), 1 + r.rng.IntN(300),
			float64(T(r.rng.NormFloat64())), pick(r, []float64{0, 1, float64(T(r.rng.NormFloat64()))}),
		}
		a, c := r.normals(s.n, s.k), r.normals(s.n, s.n)
		in := []host{op(s.t, a), triangle(s.ul, c)}
		got, want := r.mustCall(s.String(), syrkCall[T](s), in...), r.callOracle(s.String(), syrkCall[T](s), in...)
		size := combine(abs1(s.alpha), mul(abs(a), abs(transpose(a))), abs1(s.beta), abs(c))
		reference := triangle(s.ul, combine(s.alpha, mul(a, transpose(a)), s.beta, c))
		r.requireNear(s.String(), got, want, reference, scale(product[T](s.k), size))
	}
	r.report()
}

func testSymmExact[T backend.Float](r *rig[T]) {
	for m := range 34 {
		for _, n := range []int{0, 1, 2, 3, 8, 17} {
			for _, ul := range bothUplos {
				if r.included() {
					r.symmExact(symmCase{ul, m, n, pick(r, alphas), pick(r, betas)})
				}
			}
		}
	}
	for range r.reduced(60) {
		m, n := r.block(), pick(r, []int{1, 2, 3, r.block(), r.block(), r.block()})
		r.symmExact(symmCase{pick(r, bothUplos), m, n, pick(r, alphas), pick(r, betas)})
	}
	for _, ul := range bothUplos {
		r.symmExact(symmCase{ul, 7, 2049, 1, pick(r, betas)})
		r.symmExact(symmCase{ul, 771, 3, 1, pick(r, betas)})
	}
}

func testSymmRounding[T backend.Float](r *rig[T]) {
	for range r.reduced(40) {
		s := symmCase{
			pick(r, bothUplos), 1 + r.rng.IntN(200), 1 + r.rng.IntN(100),
			float64(T(r.rng.NormFloat64())), pick(r, []float64{0, 1, float64(T(r.rng.NormFloat64()))}),
		}
		a, b, c := r.normals(s.m, s.m), r.normals(s.m, s.n), r.normals(s.m, s.n)
		in := []host{triangle(s.ul, a), b, c}
		got, want := r.mustCall(s.String(), symmCall[T](s), in...), r.callOracle(s.String(), symmCall[T](s), in...)
		size := combine(abs1(s.alpha), mul(abs(mirror(s.ul, a)), abs(b)), abs1(s.beta), abs(c))
		reference := combine(s.alpha, mul(mirror(s.ul, a), b), s.beta, c)
		r.requireNear(s.String(), got, want, reference, scale(product[T](s.m), size))
	}
	r.report()
}

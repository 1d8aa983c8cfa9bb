package backendtest

import (
	"fmt"

	"github.com/mercer-go/mercer/backend"
)

// trsmCase describes one call B ← α op(A)⁻¹ B (Left) or α B op(A)⁻¹ (Right).
type trsmCase struct {
	s          backend.Side
	ul         backend.Uplo
	t          backend.Trans
	order, rhs int
	alpha      float64
}

func (c trsmCase) String() string {
	return fmt.Sprintf("Trsm %v %v %v order=%d rhs=%d alpha=%v", c.s, c.ul, c.t, c.order, c.rhs, c.alpha)
}

func trsmCall[T backend.Float](c trsmCase) call[T] {
	return func(b backend.Backend[T], m []backend.Matrix[T]) error {
		b.Trsm(c.s, c.ul, c.t, T(c.alpha), m[0], m[1])
		return nil
	}
}

// operand returns the operand A of the case: the lower triangle low, or its transpose.
func (c trsmCase) operand(low host) host {
	if c.ul == backend.Upper {
		return transpose(low)
	}
	return low
}

// multiply returns op(A) X if c.s is Left, or X op(A) if c.s is Right.
func (c trsmCase) multiply(a, x host) host {
	if c.s == backend.Left {
		return mulSparse(op(c.t, a), x)
	}
	return transpose(mulSparse(transpose(op(c.t, a)), transpose(x)))
}

func (c trsmCase) dims() (m, n int) {
	if c.s == backend.Left {
		return c.order, c.rhs
	}
	return c.rhs, c.order
}

// trsmExact chooses X, computes B = op(A) X / α exactly, and requires that Trsm returns X exactly, or 0 for α = 0.
func (r *rig[T]) trsmExact(c trsmCase) {
	r.Helper()
	a := c.operand(r.exactTriangle(c.order, 12, false))
	m, n := c.dims()
	x := r.integers(m, n, 3)
	b := c.multiply(a, x)
	if c.alpha != 0 {
		b = scale(1/c.alpha, b)
	} else {
		x = filled(m, n, 0)
	}
	r.requireEqual(c.String(), r.mustCall(c.String(), trsmCall[T](c), triangle(c.ul, a), b), x)
}

// everyTrsm calls f for the eight combinations of side, triangle and transposition.
func everyTrsm(f func(trsmCase)) {
	for _, s := range bothSides {
		for _, ul := range bothUplos {
			for _, t := range bothTrans {
				f(trsmCase{s: s, ul: ul, t: t})
			}
		}
	}
}

var trsmAlphas = []float64{1, -1, 2, 0.5, 0}

func testTrsmExact[T backend.Float](r *rig[T]) {
	everyTrsm(func(c trsmCase) {
		for c.order = range 34 {
			for _, c.rhs = range []int{0, 1, 2, 3, 5, 8, 17, 33} {
				if r.included() {
					c.alpha = pick(r, trsmAlphas)
					r.trsmExact(c)
				}
			}
		}
		for range r.reduced(12) {
			c.order, c.rhs, c.alpha = r.block(), r.block(), pick(r, trsmAlphas)
			r.trsmExact(c)
		}
		for _, long := range []int{385, 513, 1025} {
			c.alpha = 1
			c.order, c.rhs = 1+r.rng.IntN(70), long
			r.trsmExact(c)
			if !short() && long <= r.LargeN {
				c.order, c.rhs = long, 1+r.rng.IntN(4)
				r.trsmExact(c)
			}
		}
	})
}

// testTrsmResidual bounds the residual. The computed X solves (op(A) + ΔA) X = αB with |ΔA| ≤ γ_n|A| (Higham,
// theorem 8.5). Two more roundings allow for a reciprocal of the diagonal and for αB.
func testTrsmResidual[T backend.Float](r *rig[T]) {
	everyTrsm(func(c trsmCase) {
		for range r.reduced(8) {
			c.order, c.rhs = 1+r.rng.IntN(150), 1+r.rng.IntN(60)
			c.alpha = pick(r, []float64{1, float64(T(r.rng.NormFloat64()))})
			// The diagonal elements are as large as the sums of their rows, so that A is well conditioned.
			low := r.normals(c.order, c.order)
			for i := range c.order {
				for j := range low.Row(i) {
					if j > i {
						low.Row(i)[j] = 0
					}
				}
				low.Row(i)[i] = float64(T(float64(c.order)/4 + 1 + r.rng.Float64()))
			}
			a := c.operand(low)
			m, n := c.dims()
			b := r.normals(m, n)
			x := r.mustCall(c.String(), trsmCall[T](c), triangle(c.ul, a), b)
			size := combine(1, c.multiply(abs(a), abs(x)), abs1(c.alpha), abs(b))
			relative := gamma[T](c.order+2) + gamma[float64](c.order+2)
			r.requireWithin(c.String(), c.multiply(a, x), scale(c.alpha, b), scale(relative, size))
		}
	})
	r.report()
}

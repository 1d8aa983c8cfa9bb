package ukr

import (
	"math"

	"github.com/mercer-go/mercer/internal/elementary"
)

// This file has the portable logarithm, power and hyperbolic tangent. They repeat the algorithms of the assembly,
// explained in tools/asmgen/log.go, operation by operation, so that results in float64 have the same bits on every
// tier. Results in float32 are computed in float64. The explicit conversions of products to float64 prevent a
// compiler from fusing a product with the following addition.

func logGeneric[T Float](s *Span[T]) {
	x := s.x()
	for i, v := range x {
		high, _ := elementary.Logarithm(float64(v), 0, math.Inf(1))
		x[i] = T(high)
	}
}

func powGeneric[T Float](s *Span[T]) {
	x := s.x()
	a := elementary.Limited(float64(s.A))
	for i, v := range x {
		base, baseLow := elementary.AffineSum(float64(v), float64(s.B), float64(s.C))
		high, low := elementary.Logarithm(base, baseLow, 0x1p1023)
		y := float64(high * a)
		x[i] = T(elementary.Exponential(y, math.FMA(low, a, math.FMA(high, a, -y))))
	}
}

func tanhGeneric[T Float](s *Span[T]) {
	x := s.x()
	a, b := float64(s.A), float64(s.B)
	for i, v := range x {
		x[i] = T(elementary.Tanh(math.FMA(float64(v), a, b)))
	}
}

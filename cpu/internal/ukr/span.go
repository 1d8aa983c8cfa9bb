package ukr

import "math"

// The portable functions on spans.

func (s *Span[T]) x() []T { return at(s.X, 0, s.N) }
func (s *Span[T]) y() []T { return at(s.Y, 0, s.N) }

func affineGeneric[T Float](s *Span[T]) {
	x := s.x()
	for i, v := range x {
		x[i] = s.A*v + s.B
	}
}

func addGeneric[T Float](s *Span[T]) {
	x, y := s.x(), s.y()
	for i, v := range y {
		x[i] += v
	}
}

func mulGeneric[T Float](s *Span[T]) {
	x, y := s.x(), s.y()
	for i, v := range y {
		x[i] *= v
	}
}

func sqrtGeneric[T Float](s *Span[T]) {
	x := s.x()
	for i, v := range x {
		x[i] = T(math.Sqrt(float64(max(v, 0))))
	}
}

// expGeneric computes float32 in float64.
func expGeneric[T Float](s *Span[T]) {
	x := s.x()
	for i, v := range x {
		x[i] = T(exp(float64(s.A*v + s.B)))
	}
}

// exp is the algorithm of the AVX2 assembly, with fused multiply-adds. The exponential of
// package math is off by 1.5 ulp on amd64, and Inf from 709.65 on, where the result is
// still finite.
func exp(x float64) float64 {
	switch {
	case x > 710:
		return math.Inf(1)
	case x < -746:
		return 0
	case x != x:
		return x
	}
	n := math.RoundToEven(x * math.Log2E)
	high := math.FMA(-n, ln2Hi, x)
	r := math.FMA(-n, ln2Lo, high)
	tail := math.FMA(-n, ln2Lo, high-r)
	q := polynomial(r, expCoefficients[:])
	y := 1 + (r + math.FMA(r*r, q, tail))
	// 2ⁿ is applied in two factors: it may be out of range although the result is not.
	half := math.RoundToEven(n / 2)
	return y * power2(half) * power2(n-half)
}

// power2 is 2ⁿ for |n| < 1022.
func power2(n float64) float64 { return math.Float64frombits(uint64(1023+int(n)) << 52) }

func distanceGeneric[T Float](s *Span[T]) {
	x, y := s.x(), s.y()
	s.Flag = 0
	for i, v := range y {
		sum := s.A + v
		x[i] = sum - 2*x[i]
		if !(x[i] >= s.B*sum) {
			s.Flag = 1
		}
	}
}

func distanceExpGeneric[T Float](s *Span[T]) { distanceExpInto(s, s.x()) }

func distanceExpToGeneric[T Float](s *Span[T]) { distanceExpInto(s, at(s.Z, 0, s.N)) }

func distanceExpInto[T Float](s *Span[T], to []T) {
	x, y := s.x(), s.y()
	s.Flag = 0
	for i, v := range y {
		sum := s.A + v
		sq := sum - 2*x[i]
		to[i] = T(exp(float64(s.C * sq)))
		if !(sq >= s.B*sum) {
			to[i], s.Flag = -1, 1
		}
	}
}

func maternExpGeneric[T Float](s *Span[T]) {
	const most = 800 // from here on the exponential is 0
	x := s.x()
	for i, v := range x {
		t := min(float64(s.A)*math.Sqrt(float64(max(v, 0))), most)
		x[i] = T((1 + t*(float64(s.B)+t*float64(s.C))) * exp(-t))
	}
}

func dotAxpyGeneric[T Float](s *Span[T]) {
	x, y := s.x(), s.y()
	var sum T
	for i, v := range at(s.Z, 0, s.N) {
		sum += v * y[i]
		x[i] += s.A * v
	}
	s.B = sum
}

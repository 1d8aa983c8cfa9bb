package ukr

import (
	"math"

	"github.com/mercer-go/mercer/internal/elementary"
)

// The functions below are the portable functions on spans.

func (s *Span[T]) x() []T { return sliceAt(s.X, 0, s.N) }
func (s *Span[T]) y() []T { return sliceAt(s.Y, 0, s.N) }

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

// expGeneric computes the exponentials of float32 numbers in float64.
func expGeneric[T Float](s *Span[T]) {
	x := s.x()
	for i, v := range x {
		x[i] = T(elementary.Exp(float64(s.A*v + s.B)))
	}
}

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

func distanceExpToGeneric[T Float](s *Span[T]) { distanceExpInto(s, sliceAt(s.Z, 0, s.N)) }

func distanceExpInto[T Float](s *Span[T], to []T) {
	x, y := s.x(), s.y()
	s.Flag = 0
	for i, v := range y {
		sum := s.A + v
		sq := sum - 2*x[i]
		to[i] = T(elementary.Exp(float64(s.C * sq)))
		if !(sq >= s.B*sum) {
			to[i], s.Flag = -1, 1
		}
	}
}

func maternExpGeneric[T Float](s *Span[T]) {
	const limit = 800 // exp(−t) is 0 for t ≥ limit
	x := s.x()
	for i, v := range x {
		t := min(float64(s.A)*math.Sqrt(float64(max(v, 0))), limit)
		x[i] = T((1 + t*(float64(s.B)+t*float64(s.C))) * elementary.Exp(-t))
	}
}

func dotAxpyGeneric[T Float](s *Span[T]) {
	x, y := s.x(), s.y()
	var sum T
	for i, v := range sliceAt(s.Z, 0, s.N) {
		sum += v * y[i]
		x[i] += s.A * v
	}
	s.B = sum
}

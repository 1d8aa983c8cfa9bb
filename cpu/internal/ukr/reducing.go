//go:build (amd64 || arm64) && !purego

package ukr

// reducing returns a function on spans that runs vector and, for each step of nr elements
// at which vector stops, scalar.
func reducing[T Float](nr int, vector, scalar func(*Span[T])) func(*Span[T]) {
	return func(s *Span[T]) {
		x, n := s.X, s.N
		for vector(s); s.Flag != 0; vector(s) {
			left := s.N - nr
			s.X, s.N = &at(x, n-s.N, 1)[0], nr
			scalar(s)
			if left == 0 {
				break
			}
			s.X, s.N = &at(x, n-left, 1)[0], left
		}
		s.X, s.N, s.Flag = x, n, 0
	}
}

//go:build (amd64 || arm64) && !purego

package ukr

// reducing returns a function that applies the function vector to a span. Whenever vector stops early, with
// Flag ≠ 0, it applies the function scalar to the next nr elements and then continues with vector.
func reducing[T Float](nr int, vector, scalar func(*Span[T])) func(*Span[T]) {
	return func(s *Span[T]) {
		x, n := s.X, s.N
		for vector(s); s.Flag != 0; vector(s) {
			remaining := s.N - nr
			s.X, s.N = &sliceAt(x, n-s.N, 1)[0], nr
			scalar(s)
			if remaining == 0 {
				break
			}
			s.X, s.N = &sliceAt(x, n-remaining, 1)[0], remaining
		}
		s.X, s.N, s.Flag = x, n, 0
	}
}

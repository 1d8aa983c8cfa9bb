//go:build (amd64 || arm64) && !purego

package ukr

// reducing returns a function on spans that calls vector. If vector stops early, it sets Flag. The
// function then calls scalar for the next nr elements and continues with vector.
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

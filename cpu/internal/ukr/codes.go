package ukr

import (
	"math"
	"unsafe"
)

const (
	CodeRows = 8  // rows of a panel of codes
	CodeSpan = 32 // columns of a chunk of a panel: its rows are a cache line each
)

// Codes is the argument of the functions on a panel of numbers of 16 bits: N chunks of
// CodeSpan columns one after the other, each with its CodeRows rows one after the
// other. z_ri is row r and column i of the panel; columns c of X, Y and A are Ld elements
// apart.
//
// The field order is known to tools/asmgen.
type Codes[T Float] struct {
	Z          *uint16
	X, Y, A, B *T
	N, Ld      int
}

// The portable functions on codes. Their sums have one lane.

func codes1Generic[T Float](s *Codes[T]) { s.multiply(1) }
func codes2Generic[T Float](s *Codes[T]) { s.multiply(2) }

func (s *Codes[T]) multiply(cols int) {
	z := unsafe.Slice(s.Z, s.N*CodeRows*CodeSpan)
	b := at(s.B, 0, cols*CodeRows)
	for c := range cols {
		x, y := at(s.X, c*s.Ld, s.N*CodeSpan), at(s.Y, c*s.Ld, s.N*CodeSpan)
		a := at(s.A, c*s.Ld, CodeRows)
		for k := range s.N {
			xk, yk := x[k*CodeSpan:][:CodeSpan], y[k*CodeSpan:][:CodeSpan]
			for r, ar := range a {
				row := z[(k*CodeRows+r)*CodeSpan:][:CodeSpan]
				var sum T
				for i, code := range row {
					v := T(code)
					sum += v * yk[i]
					xk[i] += ar * v
				}
				b[c*CodeRows+r] += sum
			}
		}
	}
}

func encodeGeneric[T Float](s *Span[T]) {
	s.Flag = 0
	z := unsafe.Slice((*uint16)(unsafe.Pointer(s.Z)), max(0, s.N-CodeSpan)*CodeRows+CodeSpan)
	for i, v := range s.x() {
		t := float64(s.A*v + s.B)
		code := min(max(t, 0), math.MaxUint16)
		if !(math.Abs(t-code) <= 0.5) {
			s.Flag, code = 1, 0
		}
		z[i/CodeSpan*CodeRows*CodeSpan+i%CodeSpan] = uint16(math.RoundToEven(code))
	}
}

package ukr

import (
	"math"
	"unsafe"
)

const (
	CodeRows = 8  // number of rows of a panel of codes
	CodeSpan = 32 // number of columns of a chunk of a panel; each row of a chunk is a cache line
)

// Codes is the argument of the functions on a panel of 16-bit numbers. The panel is stored in N
// chunks. Each chunk has CodeRows consecutive rows of CodeSpan numbers. z_ri denotes the number in
// row r and column i of the panel. The columns of X, of Y and of A are Ld elements apart.
//
// tools/asmgen relies on the field order.
type Codes[T Float] struct {
	Z          *uint16
	X, Y, A, B *T
	N, Ld      int
}

// The functions below are the portable functions on codes, with one sum for each row (CodeLanes is 1). The
// conversions of products to T force rounding, so that compilers do not fuse them with additions.

func codes1Generic[T Float](s *Codes[T]) { s.multiply(1) }
func codes2Generic[T Float](s *Codes[T]) { s.multiply(2) }

func (s *Codes[T]) multiply(cols int) {
	z := unsafe.Slice(s.Z, s.N*CodeRows*CodeSpan)
	b := sliceAt(s.B, 0, cols*CodeRows)
	for c := range cols {
		x, y := sliceAt(s.X, c*s.Ld, s.N*CodeSpan), sliceAt(s.Y, c*s.Ld, s.N*CodeSpan)
		a := sliceAt(s.A, c*s.Ld, CodeRows)
		for k := range s.N {
			xk, yk := x[k*CodeSpan:][:CodeSpan], y[k*CodeSpan:][:CodeSpan]
			for r, ar := range a {
				row := z[(k*CodeRows+r)*CodeSpan:][:CodeSpan]
				var sum T
				for i, code := range row {
					v := T(code)
					sum += T(v * yk[i])
					xk[i] += T(ar * v)
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
		t := float64(T(s.A*v) + s.B)
		code := min(max(t, 0), math.MaxUint16)
		if !(math.Abs(t-code) <= 0.5) {
			s.Flag, code = 1, 0
		}
		z[i/CodeSpan*CodeRows*CodeSpan+i%CodeSpan] = uint16(math.RoundToEven(code))
	}
}

// Scaled is a Tile in which an element of A or B is a pair of int16, which takes 32 bits; Lda counts pairs. The
// product of the pairs (a₁, a₂) and (b₁, b₂) is a₁b₁ + a₂b₂, in int32. Element (i, j) of the result is multiplied by
// α·R_i·S_j. R has an element for each row of the panels of A, and S for each row of the panel of B.
//
// tools/asmgen relies on the field order.
type Scaled[T Float] struct {
	Tile[T]
	R, S *T
}

func gemm16Generic[T Float](t *Scaled[T]) {
	integers := func(panel *T, offset, width int) []int16 {
		return unsafe.Slice((*int16)(unsafe.Add(unsafe.Pointer(panel), 4*offset)), 2*t.K*width)
	}
	b, s := integers(t.B, 0, genericNR), sliceAt(t.S, 0, genericNR)
	for i := range t.M {
		a := integers(t.A, i/genericMR*t.Lda, genericMR)
		c, r := sliceAt(t.C, i*t.Ldc, t.N), sliceAt(t.R, i, 1)[0]
		for j := range c {
			var sum int32
			for p := range t.K {
				x, y := a[2*(p*genericMR+i%genericMR):][:2], b[2*(p*genericNR+j):][:2]
				sum += int32(x[0])*int32(y[0]) + int32(x[1])*int32(y[1])
			}
			v := T(sum) * (t.Alpha * s[j] * r)
			if t.Beta != 0 {
				v += t.Beta * c[j]
			}
			c[j] = v
		}
	}
}

func round16Generic[T Float](s *Span[T]) {
	z := unsafe.Slice((*int16)(unsafe.Pointer(s.Z)), s.N)
	for i, v := range s.x() {
		z[i] = int16(math.RoundToEven(float64(s.A * v)))
		s.x()[i] = T(z[i]) * s.B
	}
}

package ukr

// The portable micro-kernels use 4×4 tiles. On most machines the compiler keeps such a tile in
// registers if the sums are named variables, but not if they are an array.
const genericMR, genericNR = 4, 4

// A statistic is the function s in the documentation of Tile.
type statistic[T Float] interface{ eval(a, b T) T }

type product[T Float] struct{}
type squaredDifference[T Float] struct{}
type absoluteDifference[T Float] struct{}
type chiSquare[T Float] struct{}

func (product[T]) eval(a, b T) T            { return a * b }
func (squaredDifference[T]) eval(a, b T) T  { return (a - b) * (a - b) }
func (absoluteDifference[T]) eval(a, b T) T { return max(a-b, b-a) }

func (chiSquare[T]) eval(a, b T) T {
	if a == 0 && b == 0 {
		return 0
	}
	diff := a - b
	return diff / (a + b) * diff
}

// tileGeneric is the portable micro-kernel for the statistic S.
func tileGeneric[T Float, S statistic[T]](t *Tile[T]) {
	for i0 := 0; i0 < t.M; i0 += genericMR {
		sum := sumGeneric[T, S](t, i0/genericMR*t.Lda)
		for i := 0; i < min(genericMR, t.M-i0); i++ {
			c := sliceAt(t.C, (i0+i)*t.Ldc, t.N)
			for j := range c {
				v := t.Alpha * sum[i*genericNR+j]
				if t.Beta != 0 {
					v += t.Beta * c[j]
				}
				c[j] = v
			}
		}
	}
}

// sumGeneric returns the sums S_ij of a register tile (see Tile). The panel of A begins at offset.
func sumGeneric[T Float, S statistic[T]](t *Tile[T], offset int) (sum [genericMR * genericNR]T) {
	if t.K == 0 {
		return sum
	}
	var s S
	var c00, c01, c02, c03, c10, c11, c12, c13, c20, c21, c22, c23, c30, c31, c32, c33 T
	a, b := sliceAt(t.A, offset, t.K*genericMR), sliceAt(t.B, 0, t.K*genericNR)
	for len(a) >= genericMR && len(b) >= genericNR {
		a0, a1, a2, a3 := a[0], a[1], a[2], a[3]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		c00 += s.eval(a0, b0)
		c01 += s.eval(a0, b1)
		c02 += s.eval(a0, b2)
		c03 += s.eval(a0, b3)
		c10 += s.eval(a1, b0)
		c11 += s.eval(a1, b1)
		c12 += s.eval(a1, b2)
		c13 += s.eval(a1, b3)
		c20 += s.eval(a2, b0)
		c21 += s.eval(a2, b1)
		c22 += s.eval(a2, b2)
		c23 += s.eval(a2, b3)
		c30 += s.eval(a3, b0)
		c31 += s.eval(a3, b1)
		c32 += s.eval(a3, b2)
		c33 += s.eval(a3, b3)
		a, b = a[genericMR:], b[genericNR:]
	}
	return [...]T{c00, c01, c02, c03, c10, c11, c12, c13, c20, c21, c22, c23, c30, c31, c32, c33}
}

// trsmGeneric is the portable Kernels.Trsm.
func trsmGeneric[T Float](t *Tile[T]) {
	sum := sumGeneric[T, product[T]](t, 0)
	l := sliceAt(t.A, t.K*genericMR, genericMR*genericMR)
	b := sliceAt(t.B, t.K*genericNR, genericMR*genericNR)
	for p := range genericMR {
		for j := range genericNR {
			x := (b[p*genericNR+j] - sum[p*genericNR+j]) * l[p*genericMR+p]
			b[p*genericNR+j] = x
			for i := p + 1; i < genericMR; i++ {
				sum[i*genericNR+j] += l[p*genericMR+i] * x
			}
		}
	}
}

// peakGeneric is the portable Kernels.Peak. It stores a result in A so that the loop is not optimized away.
func peakGeneric[T Float](s *Span[T]) {
	var c00, c01, c02, c03, c10, c11, c12, c13, c20, c21, c22, c23, c30, c31, c32, c33 T
	a, b := s.A, s.B
	for range s.N {
		c00 += a * b
		c01 += a * b
		c02 += a * b
		c03 += a * b
		c10 += a * b
		c11 += a * b
		c12 += a * b
		c13 += a * b
		c20 += a * b
		c21 += a * b
		c22 += a * b
		c23 += a * b
		c30 += a * b
		c31 += a * b
		c32 += a * b
		c33 += a * b
	}
	s.A = (c00 + c01 + c02 + c03) + (c10 + c11 + c12 + c13) + (c20 + c21 + c22 + c23) + (c30 + c31 + c32 + c33)
}

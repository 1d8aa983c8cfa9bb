package ukr

import "math"

// Direct is the argument of the micro-kernels that work on unpacked matrices, for problems so small
// that packing would take more time than it saves. Element (i, p) of A is at offset Ars·i + Acs·p
// from the address in A. Rows of B and C are contiguous, with strides Ldb and Ldc. Any stride may
// be negative. Memory outside the matrices is neither read nor written.
//
// tools/asmgen relies on the field order.
type Direct[T Float] struct {
	A, B, C  *T
	M, N, K  int
	Ars, Acs int
	Ldb, Ldc int
	Part     Part
	Flag     int
	Alpha    T
	Beta     T
}

// Part is a part of a matrix.
type Part int

// Whole is the entire matrix; Lower and Upper are triangles that include the diagonal.
const (
	Whole Part = iota
	Lower
	Upper
)

// columns returns the range of columns, within 0 … n−1, of row i in the part p.
func (p Part) columns(i, n int) (from, to int) {
	switch p {
	case Lower:
		return 0, min(i+1, n)
	case Upper:
		return min(i, n), n
	}
	return 0, n
}

// The functions below are the portable micro-kernels.

func gemmDirectGeneric[T Float](d *Direct[T]) {
	for i := range d.M {
		from, to := d.Part.columns(i, d.N)
		if from == to {
			continue
		}
		c := sliceAt(d.C, i*d.Ldc+from, to-from)
		// Four products at a time are added in one pass over C.
		for j := range c {
			if d.Beta == 0 {
				c[j] = 0
			} else {
				c[j] *= d.Beta
			}
		}
		p := 0
		for ; p+4 <= d.K; p += 4 {
			a0, a1 := d.Alpha*d.a(i, p), d.Alpha*d.a(i, p+1)
			a2, a3 := d.Alpha*d.a(i, p+2), d.Alpha*d.a(i, p+3)
			b0, b1 := sliceAt(d.B, p*d.Ldb+from, len(c)), sliceAt(d.B, (p+1)*d.Ldb+from, len(c))
			b2, b3 := sliceAt(d.B, (p+2)*d.Ldb+from, len(c)), sliceAt(d.B, (p+3)*d.Ldb+from, len(c))
			for j := range c {
				c[j] += a0*b0[j] + a1*b1[j] + (a2*b2[j] + a3*b3[j])
			}
		}
		for ; p < d.K; p++ {
			addMultiple(c, d.Alpha*d.a(i, p), sliceAt(d.B, p*d.Ldb+from, len(c)))
		}
	}
}

func trsmDirectGeneric[T Float](d *Direct[T]) {
	for i := range d.M {
		x := sliceAt(d.C, i*d.Ldc, d.N)
		if d.Alpha != 1 {
			for j := range x {
				x[j] *= d.Alpha
			}
		}
		for p := range i {
			addMultiple(x, -d.a(i, p), sliceAt(d.C, p*d.Ldc, d.N))
		}
		if d.Flag != 0 {
			continue
		}
		pivot := d.a(i, i)
		inverse := 1 / pivot
		divide := math.IsInf(float64(inverse), 0)
		for j := range x {
			if divide {
				x[j] /= pivot
			} else {
				x[j] *= inverse
			}
		}
	}
}

func trmmDirectGeneric[T Float](d *Direct[T]) {
	for i := d.M - 1; i >= 0; i-- {
		x := sliceAt(d.C, i*d.Ldc, d.N)
		factor := d.Alpha
		if d.Flag == 0 {
			factor *= d.a(i, i)
		}
		for j := range x {
			x[j] *= factor
		}
		for p := range i {
			addMultiple(x, d.Alpha*d.a(i, p), sliceAt(d.C, p*d.Ldc, d.N))
		}
	}
}

func potrfDirectGeneric[T Float](d *Direct[T]) {
	d.Flag = 0
	for i := range d.M {
		u := sliceAt(d.C, i*d.Ldc+i, d.M-i)
		for p := range i {
			rowP := sliceAt(d.C, p*d.Ldc+i, d.M-i)
			addMultiple(u, -rowP[0], rowP)
		}
		if !(u[0] > 0) || math.IsInf(float64(u[0]), 1) {
			d.Flag = i + 1
			return
		}
		pivot := T(math.Sqrt(float64(u[0])))
		u[0] = pivot
		inverse := 1 / pivot
		for j := range u[1:] {
			u[j+1] *= inverse
		}
	}
}

func transposeDirectGeneric[T Float](d *Direct[T]) {
	for j := range d.N { // rows of C
		from, to := d.Part.columns(j, d.M)
		if from == to {
			continue
		}
		c := sliceAt(d.C, j*d.Ldc+from, to-from)
		for i := range c {
			c[i] = sliceAt(d.A, (from+i)*d.Ars+j, 1)[0]
		}
	}
}

// a returns element (i, p) of A.
func (d *Direct[T]) a(i, p int) T { return sliceAt(d.A, i*d.Ars+p*d.Acs, 1)[0] }

// addMultiple computes y ← y + a·x.
func addMultiple[T Float](y []T, a T, x []T) {
	for j, v := range x {
		y[j] += a * v
	}
}

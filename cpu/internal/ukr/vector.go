package ukr

// This file has the portable functions of levels 1 and 2.

func dotGeneric[T Float](n int, first, second *T) T {
	var s0, s1, s2, s3 T
	x, y := sliceAt(first, 0, n), sliceAt(second, 0, n)
	for ; len(x) >= 4 && len(y) >= 4; x, y = x[4:], y[4:] {
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for i, v := range x {
		s0 += v * y[i]
	}
	return (s0 + s1) + (s2 + s3)
}

func axpyGeneric[T Float](n int, a T, x, y *T) { addMultiple(sliceAt(y, 0, n), a, sliceAt(x, 0, n)) }

func belowGeneric[T Float](n int, bound T, x *T) int {
	for i, v := range sliceAt(x, 0, n) {
		if !(v < bound) {
			return i / genericNR * genericNR
		}
	}
	return n
}

func gemvGeneric[T Float](m, n int, alpha T, a *T, lda int, x *T, beta T, y *T) {
	xs, to := sliceAt(x, 0, n), sliceAt(y, 0, m)
	i := 0
	for ; i+4 <= m; i += 4 {
		row0, row1 := sliceAt(a, i*lda, n), sliceAt(a, (i+1)*lda, n)
		row2, row3 := sliceAt(a, (i+2)*lda, n), sliceAt(a, (i+3)*lda, n)
		var s0, s1, s2, s3 T
		for j, v := range xs {
			s0 += row0[j] * v
			s1 += row1[j] * v
			s2 += row2[j] * v
			s3 += row3[j] * v
		}
		for r, s := range [4]T{s0, s1, s2, s3} {
			accumulate(&to[i+r], alpha*s, beta)
		}
	}
	for ; i < m; i++ {
		row := sliceAt(a, i*lda, n)
		var s T
		for j, v := range xs {
			s += row[j] * v
		}
		accumulate(&to[i], alpha*s, beta)
	}
}

// accumulate computes y ← v + β y.
func accumulate[T Float](y *T, v, beta T) {
	if beta != 0 {
		v += beta * *y
	}
	*y = v
}

func gemvTGeneric[T Float](m, n int, alpha T, a *T, lda int, x *T, beta T, y *T) {
	xs, to := sliceAt(x, 0, m), sliceAt(y, 0, n)
	for j := range to {
		if beta == 0 {
			to[j] = 0
		} else {
			to[j] *= beta
		}
	}
	i := 0
	for ; i+4 <= m; i += 4 {
		row0, row1 := sliceAt(a, i*lda, n), sliceAt(a, (i+1)*lda, n)
		row2, row3 := sliceAt(a, (i+2)*lda, n), sliceAt(a, (i+3)*lda, n)
		x0, x1, x2, x3 := alpha*xs[i], alpha*xs[i+1], alpha*xs[i+2], alpha*xs[i+3]
		for j := range to {
			to[j] += row0[j]*x0 + row1[j]*x1 + (row2[j]*x2 + row3[j]*x3)
		}
	}
	for ; i < m; i++ {
		addMultiple(to, alpha*xs[i], sliceAt(a, i*lda, n))
	}
}

func gerGeneric[T Float](m, n int, alpha T, x, y, a *T, lda int) {
	for i, v := range sliceAt(x, 0, m) {
		addMultiple(sliceAt(a, i*lda, n), alpha*v, sliceAt(y, 0, n))
	}
}

func trsvGeneric[T Float](n int, unit bool, a *T, ars, acs int, x *T, incX int) {
	element := func(i, p int) T { return sliceAt(a, i*ars+p*acs, 1)[0] }
	for i := range n {
		v := sliceAt(x, i*incX, 1)
		var sum T
		for p := range i {
			sum += element(i, p) * sliceAt(x, p*incX, 1)[0]
		}
		v[0] -= sum
		if !unit {
			v[0] /= element(i, i)
		}
	}
}

func syr2kGeneric[T Float](lower bool, n, k int, alpha T, a *T, lda int, b *T, ldb int, beta T, c *T, ldc int) {
	part := Upper
	if lower {
		part = Lower
	}
	for i := range n {
		ai, bi := sliceAt(a, i*lda, k), sliceAt(b, i*ldb, k)
		from, to := part.columns(i, n)
		for j := from; j < to; j++ {
			aj, bj := sliceAt(a, j*lda, k), sliceAt(b, j*ldb, k)
			var sum T
			for p, v := range ai {
				sum += v*bj[p] + bi[p]*aj[p]
			}
			accumulate(&sliceAt(c, i*ldc+j, 1)[0], alpha*sum, beta)
		}
	}
}

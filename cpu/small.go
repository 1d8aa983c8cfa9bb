package cpu

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// Small problems run on the caller's goroutine, because distributing tasks costs about a microsecond. The direct
// micro-kernels work on unpacked matrices; a matrix whose rows are not contiguous is transposed first.

// The limits were measured on an AMD EPYC of family 25 (Zen 4), November 2026.
const (
	// serialOps is the largest number of multiplications (order 64) for which one worker is as fast as several.
	serialOps = 1 << 18
	// directOrder is the order of the largest triangle that is not packed.
	directOrder = 128
	// rank2Order is the largest n for which Syr2k computes dot products of rows instead of transposing B.
	rank2Order = 32
)

// isSmall reports whether a product is small enough for the direct kernels.
func isSmall(m, n, k int) bool {
	return (m|n|k) < 1<<20 && m*n*k <= serialOps && m*n*k > 0 &&
		(n > thinColumns || m*k < thinElements) && (m > thinColumns || n*k < thinElements)
}

// directProduct computes C ← α op(A) op(B) + β C on a part of C, for a small product of matrices
// with row strides lda, ldb and ldc. A transposed B is copied.
func (e *engine[T]) directProduct(part ukr.Part, transA, transB bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	s := e.getScratch()
	d := &s.direct
	d.A, d.B, d.C = &a[0], &b[0], &c[0]
	d.M, d.N, d.K = m, n, k
	d.Ldb, d.Ldc = ldb, ldc
	d.Alpha, d.Beta, d.Part = alpha, beta, part
	if d.Ars, d.Acs = lda, 1; transA {
		d.Ars, d.Acs = 1, lda
	}
	if transB {
		work := s.grow(k * n)
		e.transposeRaw(s, d.B, n, k, ldb, &work[0], n)
		d.B, d.Ldb = &work[0], n
	}
	if part == ukr.Whole {
		e.ukr.GemmDirect(d)
	} else {
		e.ukr.SyrkDirect(d)
	}
	e.putScratch(s)
}

// directRank2 computes C ← α (op(A) op(B)ᵀ + op(B) op(A)ᵀ) + β C on a triangle.
func (e *engine[T]) directRank2(part ukr.Part, trans bool, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	s := e.getScratch()
	d := &s.direct
	d.A, d.B, d.C = &a[0], &b[0], &c[0]
	d.M, d.N, d.K = n, n, k
	d.Ldc = ldc
	d.Alpha, d.Beta, d.Part = alpha, beta, part
	if trans {
		d.Ars, d.Acs, d.Ldb = 1, lda, ldb
		e.ukr.SyrkDirect(d)
		d.A, d.B, d.Beta = d.B, d.A, 1
		d.Acs, d.Ldb = ldb, lda
	} else {
		work := s.grow(2 * k * n)
		second := &work[k*n]
		e.transposeRaw(s, d.B, n, k, ldb, &work[0], n)
		e.transposeRaw(s, d.A, n, k, lda, second, n)
		d.Ars, d.Acs = lda, 1
		d.B, d.Ldb = &work[0], n
		e.ukr.SyrkDirect(d)
		d.A, d.B, d.Beta = &b[0], second, 1
		d.Ars = ldb
	}
	e.ukr.SyrkDirect(d)
	e.putScratch(s)
}

// directTriangle calls a kernel with a triangle A of order k and an m × n matrix B. If right is true, it passes a copy
// of Bᵀ instead of B. If transposed is true, it passes Aᵀ instead of A. isLower reports whether the passed triangle is
// lower. An upper triangle is passed in reverse order and becomes lower.
func (e *engine[T]) directTriangle(kernel func(*ukr.Direct[T]), right, transposed, isLower, unit bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int) {
	s := e.getScratch()
	d := &s.direct
	d.Ars, d.Acs = lda, 1
	if transposed {
		d.Ars, d.Acs = 1, lda
	}
	d.Alpha, d.Flag = alpha, 0
	if unit {
		d.Flag = 1
	}
	x, ldx, cols := b, ldb, n
	if right {
		x, ldx, cols = s.grow(n*m), m, m
		e.transposeRaw(s, &b[0], m, n, ldb, &x[0], m)
	}
	d.A, d.C, d.M, d.N, d.Ldc = &a[0], &x[0], k, cols, ldx
	if !isLower {
		d.A, d.C = &a[(k-1)*(lda+1)], &x[(k-1)*ldx]
		d.Ars, d.Acs, d.Ldc = -d.Ars, -d.Acs, -ldx
	}
	kernel(d)
	if right {
		e.transposeRaw(s, &x[0], n, m, m, &b[0], ldb)
	}
	e.putScratch(s)
}

// A matrix of at most the order plainPotrfOrder is factored by plain loops.
const plainPotrfOrder = 7

// plainPotrf factors a small triangle, one row of L (or column of U) after the other. It returns
// false at the first pivot that is not positive and finite, and leaves this pivot on the diagonal.
func plainPotrf[T backend.Float](lower bool, n int, a []T, lda int) bool {
	rs, cs := lda, 1
	if !lower {
		rs, cs = 1, lda
	}
	var inverse [plainPotrfOrder]T
	for i := range n {
		pivot := a[i*(lda+1)]
		for j := range i {
			sum := a[i*rs+j*cs]
			for p := range j {
				sum -= a[i*rs+p*cs] * a[j*rs+p*cs]
			}
			sum *= inverse[j]
			a[i*rs+j*cs] = sum
			pivot -= sum * sum
		}
		if !(pivot > 0) || math.IsInf(float64(pivot), 1) {
			a[i*(lda+1)] = pivot
			return false
		}
		pivot = T(math.Sqrt(float64(pivot)))
		a[i*(lda+1)] = pivot
		inverse[i] = 1 / pivot
	}
	return true
}

// transposeRaw transposes the m × n matrix a into c. The row strides are lda and ldc.
func (e *engine[T]) transposeRaw(s *scratch[T], a *T, m, n, lda int, c *T, ldc int) {
	t := &s.transpose
	t.A, t.C, t.M, t.N, t.Ars, t.Ldc, t.Part = a, c, m, n, lda, ldc, ukr.Whole
	e.ukr.TransposeDirect(t)
}

// trySmall computes C ← α A B + β C, and returns true, if the product is small enough for the direct kernels.
func (q *queue[T]) trySmall(alpha T, a, b view[T], beta T, c view[T], region uplo) bool {
	bt := b.t()
	if !q.engine.trySmall(alpha, &a, &bt, beta, &c, region) {
		return false
	}
	if q.done != nil {
		q.count(2 * float64(region.count(c.rows, c.cols, 0)) * float64(a.cols))
	}
	return true
}

// trySmall implements queue.trySmall; bt is the transpose of B.
func (e *engine[T]) trySmall(alpha T, a, bt *view[T], beta T, c *view[T], region uplo) bool {
	ops := float64(c.rows) * float64(c.cols) * float64(a.cols)
	if ops > serialOps || ops == 0 {
		return false
	}
	s := e.getScratch()
	e.unpacked(s, alpha, a, bt, beta, c, region)
	e.putScratch(s)
	return true
}

// unpacked computes C ← α A B + β C on the given region of C, where bt is the transpose of B. The
// rows or the columns of B and of C are contiguous.
func (e *engine[T]) unpacked(s *scratch[T], alpha T, a, bt *view[T], beta T, c *view[T], region uplo) {
	if c.cs != 1 && c.cols > 1 {
		ct := c.t()
		a, bt, c, region = bt, a, &ct, region.transposed()
	}
	d := &s.direct
	*d = ukr.Direct[T]{
		A: a.at(0, 0), B: bt.at(0, 0), C: c.at(0, 0), M: c.rows, N: c.cols, K: a.cols,
		Ars: a.rs, Acs: a.cs, Ldb: bt.cs, Ldc: c.rs, Part: ukr.Part(region),
		Alpha: alpha, Beta: beta,
	}
	if bt.rs != 1 && d.N > 1 {
		d.B, d.Ldb = e.transposed(s, bt, s.grow(d.K*d.N)), d.N
	}
	if region == whole {
		e.ukr.GemmDirect(d)
	} else {
		e.ukr.SyrkDirect(d)
	}
}

// transposed writes vᵀ to dst without padding. Rows of v are contiguous.
func (e *engine[T]) transposed(s *scratch[T], v *view[T], dst []T) *T {
	e.transposeRaw(s, v.at(0, 0), v.rows, v.cols, v.rs, &dst[0], v.rows)
	return &dst[0]
}

// directSymm computes C ← α A B + β C, or α B A + β C, for a small product, from one triangle of A.
func (e *engine[T]) directSymm(right bool, part ukr.Part, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	s := e.getScratch()
	full := s.grow(k * k)
	completed(full, part, a, k, lda)
	d := &s.direct
	d.A, d.Ars, d.B, d.Ldb = &full[0], k, &b[0], ldb
	if right {
		d.A, d.Ars, d.B, d.Ldb = d.B, d.Ldb, d.A, d.Ars
	}
	d.C, d.M, d.N, d.K, d.Acs, d.Ldc = &c[0], m, n, k, 1, ldc
	d.Alpha, d.Beta = alpha, beta
	e.ukr.GemmDirect(d)
	e.putScratch(s)
}

// completed writes both triangles of a symmetric matrix of order n to the slice full. The slice a
// stores one of the triangles, with row stride lda.
func completed[T backend.Float](full []T, part ukr.Part, a []T, n, lda int) {
	for i := range n {
		from, to := 0, i+1
		if part == ukr.Upper {
			from, to = i, n
		}
		row := full[i*n:][:n]
		offset := from*n + i
		for j, x := range a[i*lda+from : i*lda+to] {
			row[from+j] = x
			full[offset] = x
			offset += n
		}
	}
}

// store computes c ← v + β c.
func store[T backend.Float](c *T, v, beta T) {
	if beta != 0 {
		v += beta * *c
	}
	*c = v
}

// direct reports whether a triangle of order n and cols columns are small enough for the direct kernels.
func direct(n, cols int) bool { return n <= directOrder && n*n*cols <= 2*serialOps }

// triangular computes X ← α A⁻¹ X or α A X for a small lower triangle A by the given kernel. If the
// rows of X are not contiguous, the kernel works on a copy with contiguous rows.
func (e *engine[T]) triangular(kernel func(*ukr.Direct[T]), s *scratch[T], unit bool, alpha T, a, x *view[T]) {
	n, cols := x.rows, x.cols
	d := &s.direct
	*d = ukr.Direct[T]{A: a.at(0, 0), C: x.at(0, 0), M: n, N: cols, Ars: a.rs, Acs: a.cs, Ldc: x.rs, Alpha: alpha}
	if unit {
		d.Flag = 1
	}
	if x.cs == 1 || cols == 1 {
		kernel(d)
		return
	}
	// If X is a reversed view, copy its memory in ascending order, and pass the copy in reverse order.
	columns := x.t()
	if x.rs < 0 {
		columns = x.reversed(false).t()
	}
	xCopy := s.grow(n * cols)
	d.C, d.Ldc = e.transposed(s, &columns, xCopy), cols
	if x.rs < 0 {
		d.C, d.Ldc = &xCopy[(n-1)*cols], -cols
	}
	kernel(d)
	e.transposeRaw(s, &xCopy[0], n, cols, cols, columns.at(0, 0), columns.rs)
}

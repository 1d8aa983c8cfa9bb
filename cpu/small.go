package cpu

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// Small problems stay on the caller's goroutine: handing out tasks costs about
// a microsecond, in which a core does 50,000 operations. The smallest are not
// even packed.

// Limits in multiplications, on an AMD EPYC of family 25 (Zen 4), November
// 2026.
const (
	// aloneOps is where tasks begin to pay: a product of order 64.
	aloneOps = 1 << 18
	// plainOps is where packing begins to pay in a product, plainTriangleOps in
	// one that writes a triangle: at orders 5 and 9.
	plainOps         = 5 * 5 * 5
	plainTriangleOps = 9 * 9 * 9
	// plainSolveOrder is where it does in a product or solution with a triangle.
	plainSolveOrder = 24
)

// small does a product that is small enough, and tells whether it was.
func (q *queue[T]) small(alpha T, a, b view[T], beta T, c view[T], part region) bool {
	bt := b.t()
	if !q.engine.small(alpha, &a, &bt, beta, &c, part) {
		return false
	}
	if q.done != nil {
		q.count(2 * float64(part.count(c.rows, c.cols, 0)) * float64(a.cols))
	}
	return true
}

// small takes B as its transpose.
func (e *engine[T]) small(alpha T, a, bt *view[T], beta T, c *view[T], part region) bool {
	ops := float64(c.rows) * float64(c.cols) * float64(a.cols)
	if ops > aloneOps || ops == 0 {
		return false
	}
	if ops <= plainOps || ops <= plainTriangleOps && part != whole {
		plain(alpha, a, bt, beta, c, part)
	} else {
		e.alone(alpha, a, bt, beta, c, part)
	}
	return true
}

// alone is product in one block, with a worker's own memory.
func (e *engine[T]) alone(alpha T, a, bt *view[T], beta T, c *view[T], part region) {
	if c.cs != 1 && c.rs == 1 {
		ct := c.t()
		a, bt, c, part = bt, a, &ct, part.transposed()
	}
	k, mr, nr := a.cols, e.ukr.MR, e.ukr.NR
	s := e.take()
	defer e.give(s)
	size := panels(c.rows, mr) * mr * k
	work := s.grow(size + panels(c.cols, nr)*nr*k)
	packedA, packedB := work[:size], work[size:]
	e.packerA(s).view(packedA, *a)
	e.packerB(s).view(packedB, *bt)
	for j := 0; j < c.cols; j += nr {
		n := min(nr, c.cols-j)
		if part == whole {
			s.tile = ukr.Tile[T]{
				A: &packedA[0], B: &packedB[j*k], C: c.at(0, j),
				K: k, M: c.rows, N: n, Ldc: c.rs, Lda: mr * k,
				Alpha: alpha, Beta: beta,
			}
			e.ukr.Gemm(&s.tile)
			continue
		}
		first, last := part.rows(c.rows, j, n, 0)
		for i := first / mr * mr; i < last; i += mr {
			m := min(mr, c.rows-i)
			s.tile = ukr.Tile[T]{
				A: &packedA[i*k], B: &packedB[j*k], C: &s.block[0],
				K: k, M: m, N: n, Ldc: nr, Lda: mr * k,
				Alpha: alpha,
			}
			e.ukr.Gemm(&s.tile)
			for r := range m {
				from, to := part.columns(i+r-j, n)
				if from < to {
					at := c.off + (i+r)*c.rs + j
					storeRow(c.data[at+from:at+to], s.block[r*nr+from:r*nr+to], beta)
				}
			}
		}
	}
}

// smallSymm is small for a symmetric factor, of which one triangle is read.
func (e *engine[T]) smallSymm(side backend.Side, ul backend.Uplo, alpha T, a, b view[T], beta T, c view[T]) bool {
	if float64(c.rows)*float64(c.cols)*float64(a.cols) > aloneOps {
		return false
	}
	if ul == backend.Upper {
		a = a.t()
	}
	s := e.take()
	defer e.give(s)
	full := a.completed(s.grow(a.rows * a.rows))
	if side == backend.Left {
		b = b.t()
		return e.small(alpha, &full, &b, beta, &c, whole)
	}
	return e.small(alpha, &b, &full, beta, &c, whole)
}

// completed is a copy of the symmetric matrix whose lower triangle is v's.
func (v view[T]) completed(data []T) view[T] {
	n := v.rows
	full := view[T]{data: data, rows: n, cols: n, rs: n, cs: 1}
	for i := range n {
		at := v.off + i*v.rs
		for j := range i + 1 {
			x := v.data[at]
			data[i*n+j], data[j*n+i] = x, x
			at += v.cs
		}
	}
	return full
}

// storeRow is C ← V + β C.
func storeRow[T backend.Float](c, v []T, beta T) {
	if beta == 0 {
		copy(c, v)
		return
	}
	for i, x := range v {
		c[i] = x + beta*c[i]
	}
}

// plain is product by the definition, in tiles of 2 × 2 sums. At an odd edge
// the last row or column is summed twice and stored once.
func plain[T backend.Float](alpha T, a, bt *view[T], beta T, c *view[T], part region) {
	k, inRows := a.cols, a.cs == 1 && bt.cs == 1
	for i := 0; i < c.rows; i += 2 {
		i1 := min(i+1, c.rows-1)
		from0, to0 := part.columns(i, c.cols)
		from1, to1 := part.columns(i1, c.cols)
		for j := min(from0, from1); j < max(to0, to1); j += 2 {
			j1 := min(j+1, c.cols-1)
			p0, p1 := a.off+i*a.rs, a.off+i1*a.rs
			q0, q1 := bt.off+j*bt.rs, bt.off+j1*bt.rs
			var s00, s01, s10, s11 T
			if inRows {
				x1, y0, y1 := a.data[p1:p1+k], bt.data[q0:q0+k], bt.data[q1:q1+k]
				for p, a0 := range a.data[p0 : p0+k] {
					a1, b0, b1 := x1[p], y0[p], y1[p]
					s00 += a0 * b0
					s01 += a0 * b1
					s10 += a1 * b0
					s11 += a1 * b1
				}
			} else {
				for range k {
					a0, a1, b0, b1 := a.data[p0], a.data[p1], bt.data[q0], bt.data[q1]
					s00 += a0 * b0
					s01 += a0 * b1
					s10 += a1 * b0
					s11 += a1 * b1
					p0, p1, q0, q1 = p0+a.cs, p1+a.cs, q0+bt.cs, q1+bt.cs
				}
			}
			if from0 <= j && j < to0 {
				store(c.at(i, j), alpha*s00, beta)
			}
			if from0 <= j1 && j1 < to0 && j1 > j {
				store(c.at(i, j1), alpha*s01, beta)
			}
			if i1 == i {
				continue
			}
			if from1 <= j && j < to1 {
				store(c.at(i1, j), alpha*s10, beta)
			}
			if from1 <= j1 && j1 < to1 && j1 > j {
				store(c.at(i1, j1), alpha*s11, beta)
			}
		}
	}
}

// store is c ← v + β c.
func store[T backend.Float](c *T, v, beta T) {
	if beta != 0 {
		v += beta * *c
	}
	*c = v
}

// plainPays tells whether a product or solution of so many columns with a
// triangle of order n is better done by the definition.
func plainPays(n, cols int) bool {
	const most = plainSolveOrder * plainSolveOrder * plainSolveOrder
	return n <= plainSolveOrder && n*n*cols <= most
}

// solvePlain is X ← α A⁻¹ X for a lower triangle by the definition.
func solvePlain[T backend.Float](unit bool, alpha T, a, x *view[T]) {
	for i := range a.rows {
		addMultiples(alpha, a, -1, x, i)
		if unit {
			continue
		}
		d := *a.at(i, i)
		inverse := 1 / d
		divide := math.IsInf(float64(inverse), 0) && d != 0
		at := x.off + i*x.rs
		for range x.cols {
			if divide {
				x.data[at] /= d
			} else {
				x.data[at] *= inverse
			}
			at += x.cs
		}
	}
}

// multiplyPlain is X ← α A X for a lower triangle by the definition.
func multiplyPlain[T backend.Float](unit bool, alpha T, a, x *view[T]) {
	for i := a.rows - 1; i >= 0; i-- {
		scale := alpha
		if !unit {
			scale *= *a.at(i, i)
		}
		addMultiples(scale, a, alpha, x, i)
	}
}

// addMultiples is x_i ← β x_i + α Σ_{p<i} a_ip x_p for the rows of X.
func addMultiples[T backend.Float](beta T, a *view[T], alpha T, x *view[T], i int) {
	if x.cs == 1 && x.cols > 1 {
		addRows(beta, a, alpha, x, i)
	} else {
		addColumns(beta, a, alpha, x, i)
	}
}

// addRows is addMultiples where rows lie in one piece, adding two at a time.
func addRows[T backend.Float](beta T, a *view[T], alpha T, x *view[T], i int) {
	data, rs := x.data, x.rs
	to := x.off + i*rs
	row := data[to : to+x.cols]
	if beta != 1 {
		for j := range row {
			row[j] *= beta
		}
	}
	at, above := a.off+i*a.rs, x.off
	p := 0
	for ; p+2 <= i; p += 2 {
		a0, a1 := alpha*a.data[at], alpha*a.data[at+a.cs]
		x0, x1 := data[above:][:len(row)], data[above+rs:][:len(row)]
		for j, v := range row {
			row[j] = v + a0*x0[j] + a1*x1[j]
		}
		at, above = at+2*a.cs, above+2*rs
	}
	if p < i {
		a0, x0 := alpha*a.data[at], data[above:][:len(row)]
		for j, v := range row {
			row[j] = v + a0*x0[j]
		}
	}
}

// addColumns is addMultiples where they do not, four columns at a time.
// At the edge the last column stands for the missing ones.
func addColumns[T backend.Float](beta T, a *view[T], alpha T, x *view[T], i int) {
	ad, xd, last := a.data, x.data, (x.cols-1)*x.cs
	for o0 := 0; o0 <= last; o0 += 4 * x.cs {
		o1, o2, o3 := min(o0+x.cs, last), min(o0+2*x.cs, last), min(o0+3*x.cs, last)
		var s0, s1, s2, s3 T
		at, above := a.off+i*a.rs, x.off
		for range i {
			v := ad[at]
			s0 += v * xd[above+o0]
			s1 += v * xd[above+o1]
			s2 += v * xd[above+o2]
			s3 += v * xd[above+o3]
			at, above = at+a.cs, above+x.rs
		}
		row := xd[x.off+i*x.rs:]
		s0, s1, s2, s3 = beta*row[o0]+alpha*s0, beta*row[o1]+alpha*s1, beta*row[o2]+alpha*s2, beta*row[o3]+alpha*s3
		row[o0], row[o1], row[o2], row[o3] = s0, s1, s2, s3
	}
}

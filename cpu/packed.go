package cpu

import (
	"errors"
	"math"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/kernels"
)

// packedMatrix is a symmetric matrix in rectangular full packed storage (Gustavson,
// Waśniewski, Dongarra and Langou, ACM TOMS 37, 2010): A is split in the middle, and the
// transpose of A₂₂ fills the part of a rectangle that the triangle A₁₁ does not use.
//
//	    ┌ 00             ┐         ┌ 33 43  · ┐   A₂₂ᵀ
//	    │ 10 11          │         │ 00 44  · │
//	A = │ 20 21 22       │    in   │ 10 11  · │   A₁₁
//	    │ 30 31 32 33    │         │ 20 21 22 │
//	    └ 40 41 42 43 44 ┘         │ 30 31 32 │   A₂₁
//	                               └ 40 41 42 ┘
//
// All three parts are views, so an operation on a packed matrix is two or three operations on full matrices.
type packedMatrix[T backend.Float] struct {
	rect   *matrix[T] // the rectangle, of n+1 rows and n₁ columns
	n1, n2 int        // orders of A₁₁ and A₂₂: n₁ is n₂ or n₂ + 1
}

func (p *packedMatrix[T]) Order() int { return p.n1 + p.n2 }
func (p *packedMatrix[T]) Free()      { p.rect.Free() }

// Leading returns the leading part of order n. It omits rows of A₂₂ or, if n < n₁, also rows of A₁₁.
func (p *packedMatrix[T]) Leading(n int) backend.Packed[T] {
	check.Leading(n, p.Order())
	n1 := min(n, p.n1)
	return &packedMatrix[T]{p.rect.window(0, 0, p.rect.rows, p.rect.cols), n1, n - n1}
}

// blocks returns A₁₁ (stored as its lower triangle), A₂₁, and A₂₂ᵀ (stored as its upper triangle).
func (p *packedMatrix[T]) blocks() (a11, a21, a22t *matrix[T]) {
	return p.rect.window(1, 0, p.n1, p.n1), p.rect.window(1+p.n1, 0, p.n2, p.n1), p.rect.window(0, 0, p.n2, p.n2)
}

func (m *matrix[T]) window(i, j, rows, cols int) *matrix[T] {
	return m.View(i, j, rows, cols).(*matrix[T])
}

// splitRows returns the rows of v that correspond to A₁₁, and the rows that correspond to A₂₂.
func (p *packedMatrix[T]) splitRows(v view[T]) (v1, v2 view[T]) {
	return v.block(0, 0, p.n1, v.cols), v.block(p.n1, 0, p.n2, v.cols)
}

// row returns row i of the lower triangle in two parts: left contains columns 0 … n₁−1, and right
// contains the other columns, which are stored as a column of A₂₂ᵀ.
func (p *packedMatrix[T]) row(i int) (left []T, right view[T]) {
	if i < p.n1 {
		return p.rect.row(1 + i)[:i+1], view[T]{}
	}
	k := i - p.n1
	return p.rect.row(1 + i), p.rect.view().block(0, k, k+1, 1)
}

// packedStride is the length of a row of the rectangle with padding: an odd number of cache lines, so that the
// rows of a tile are aligned to cache lines but do not map to the same cache sets.
func packedStride[T backend.Float](n int) int {
	line := cacheLine / int(unsafe.Sizeof(*new(T)))
	return (panels(n/2+n%2, line) | 1) * line
}

func (q *queue[T]) PackedBytes(n int) int64 {
	check.NewPacked(n)
	stride, size := packedStride[T](n), int64(unsafe.Sizeof(*new(T)))
	if (float64(n)+1)*float64(stride)*float64(size) >= math.MaxInt64 {
		return math.MaxInt64
	}
	return (int64(n) + 1) * int64(stride) * size
}

func (q *queue[T]) NewPacked(n int) (backend.Packed[T], error) {
	rect, err := q.allocate(n+1, n/2+n%2, packedStride[T](n), q.PackedBytes(n))
	if err != nil {
		return nil, err
	}
	return &packedMatrix[T]{rect, rect.cols, n - rect.cols}, nil
}

// asPacked returns a, and panics unless a is a packed matrix of this device that is not freed.
func (q *queue[T]) asPacked(op string, a backend.Packed[T]) *packedMatrix[T] {
	if q.asFixed(op, a) != nil {
		check.NoFixed(op)
	}
	p, ok := a.(*packedMatrix[T])
	if !ok || p.rect.device != q.engine.device {
		check.Foreign(op)
	}
	if p.rect.data == nil {
		check.Freed(op)
	}
	return p
}

func (q *queue[T]) UploadPacked(dst backend.Packed[T], first int, src backend.Host[T]) error {
	p := q.asPacked("UploadPacked", dst)
	check.TransferPacked("UploadPacked", dst, first, src)
	q.rows(src.Rows, src.Cols, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			left, right := p.row(first + i)
			values := src.Row(i)[copy(left, src.Row(i)):]
			for j := range right.rows {
				*right.at(j, 0) = values[j]
			}
		}
	})
	return q.wait()
}

func (q *queue[T]) DownloadPacked(dst backend.Host[T], src backend.Packed[T], first int) error {
	fixed := q.asFixed("DownloadPacked", src)
	check.TransferPacked("DownloadPacked", src, first, dst)
	if fixed != nil {
		q.rows(dst.Rows, dst.Cols, func(lo, hi int) {
			for i := lo; i < hi; i++ {
				for j := range first + i + 1 {
					dst.Row(i)[j] = fixed.value(first+i, j)
				}
			}
		})
		return q.wait()
	}
	p := q.asPacked("DownloadPacked", src)
	q.rows(dst.Rows, dst.Cols, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			left, right := p.row(first + i)
			values := dst.Row(i)[copy(dst.Row(i), left):]
			for j := range right.rows {
				values[j] = *right.at(j, 0)
			}
		}
	})
	return q.wait()
}

func (q *queue[T]) GramPacked(a backend.Packed[T], k kernels.Kernel, x backend.Matrix[T]) {
	n, d := check.GramPacked(a, k, x)
	sx, fixed := q.asSparse("GramPacked", x), q.asFixed("GramPacked", a)
	if sx != nil && n == 0 {
		return
	}
	switch {
	case sx != nil && fixed != nil:
		q.newSparseGram(k, sx, sx).evaluateToFixed(fixed, k)
		return
	case sx != nil:
		q.sparsePacked(q.asPacked("GramPacked", a), k, sx)
		return
	}
	mx := q.asMatrix("GramPacked", x)
	if fixed != nil {
		q.newGram(k, mx, mx).useIntegers().evaluateToFixed(fixed, k)
		return
	}
	p := q.asPacked("GramPacked", a)
	a11, a21, a22t := p.blocks()
	x1, x2 := mx.window(0, 0, p.n1, d), mx.window(p.n1, 0, p.n2, d)
	q.gram(a11, k, x1, x1, lower)
	q.gram(a21, k, x2, x1, whole)
	q.gram(a22t, k, x2, x2, upper)
}

func (q *queue[T]) AddDiagPacked(d []T, a backend.Packed[T]) {
	n := check.AddDiagPacked(d, a)
	diagonal := q.diagonalOf("AddDiagPacked", a)
	if q.stopped() {
		return
	}
	for i := range n {
		*diagonal(i) += d[min(i, len(d)-1)]
	}
}

func (q *queue[T]) DiagPacked(dst []T, a backend.Packed[T]) error {
	n := check.DiagPacked(dst, a)
	diagonal := q.diagonalOf("DiagPacked", a)
	for i := range n {
		dst[i] = *diagonal(i)
	}
	return q.wait()
}

// diagonalOf returns a function that gives the address of diagonal element i.
func (q *queue[T]) diagonalOf(op string, a backend.Packed[T]) func(i int) *T {
	if fixed := q.asFixed(op, a); fixed != nil {
		return func(i int) *T { return &fixed.diag[i] }
	}
	return q.asPacked(op, a).diagonal
}

// diagonal returns the address of element (i, i).
func (p *packedMatrix[T]) diagonal(i int) *T {
	if i < p.n1 {
		return &p.rect.row(1 + i)[i]
	}
	return &p.rect.row(i - p.n1)[i-p.n1]
}

func (q *queue[T]) SymmPacked(alpha T, a backend.Packed[T], b backend.Matrix[T], beta T, c backend.Matrix[T]) {
	check.SymmPacked(a, b, c)
	vb, vc := q.asMatrix("SymmPacked", b).view(), q.asMatrix("SymmPacked", c).view()
	if fixed := q.asFixed("SymmPacked", a); fixed != nil {
		q.symmFixed(alpha, fixed, vb, beta, vc)
		return
	}
	p := q.asPacked("SymmPacked", a)
	a11, a21, a22t := p.blocks()
	b1, b2 := p.splitRows(vb)
	c1, c2 := p.splitRows(vc)
	if vc.cols <= symvColumns(vc.rows) && vc.cols > 0 && vc.rows > 0 {
		// Multiply with A₁₁ and A₂₁ together, so that A₂₁ is read once.
		trapezoid := p.rect.window(1, 0, p.Order(), p.n1)
		q.symv(backend.Lower, alpha, trapezoid.view(), vb, beta, vc)
		if p.n2 > 0 {
			q.symv(backend.Upper, alpha, a22t.view(), b2, 1, c2)
		}
		return
	}
	q.symm(backend.Left, backend.Lower, alpha, a11.view(), b1, beta, c1)
	q.gemm(alpha, a21.view().t(), b2, 1, c1, whole)
	q.gemm(alpha, a21.view(), b1, beta, c2, whole)
	q.symm(backend.Left, backend.Upper, alpha, a22t.view(), b2, 1, c2)
}

func (q *queue[T]) PotrfPacked(a backend.Packed[T]) error {
	p := q.asPacked("PotrfPacked", a)
	if err := q.wait(); err != nil {
		return err
	}
	err := q.potrfPacked(p)
	if waitErr := q.wait(); waitErr != nil {
		return waitErr
	}
	return err
}

// potrfPacked computes the Cholesky factorization by 2 × 2 blocks.
func (q *queue[T]) potrfPacked(p *packedMatrix[T]) error {
	a11, a21, a22t := p.blocks()
	if err := q.potrf(backend.Lower, a11.view()); err != nil || p.n2 == 0 || q.stopped() {
		return err
	}
	q.trsm(backend.Right, backend.Lower, backend.Transpose, false, 1, a11.view(), a21.view())
	q.syrk(backend.Upper, -1, a21.view(), 1, a22t.view())
	if q.stopped() {
		return nil
	}
	err := q.potrf(backend.Upper, a22t.view())
	if pivot := new(backend.PivotError); errors.As(err, &pivot) {
		pivot.Index += p.n1
	}
	return err
}

func (q *queue[T]) TrsmPacked(t backend.Trans, a backend.Packed[T], b backend.Matrix[T]) {
	check.TrsmPacked(t, a, b)
	p := q.asPacked("TrsmPacked", a)
	a11, a21, a22t := p.blocks()
	b1, b2 := p.splitRows(q.asMatrix("TrsmPacked", b).view())
	if t == backend.NoTrans {
		q.trsm(backend.Left, backend.Lower, backend.NoTrans, false, 1, a11.view(), b1)
		q.gemm(-1, a21.view(), b1, 1, b2, whole)
		q.trsm(backend.Left, backend.Upper, backend.Transpose, false, 1, a22t.view(), b2)
	} else {
		q.trsm(backend.Left, backend.Upper, backend.NoTrans, false, 1, a22t.view(), b2)
		q.gemm(-1, a21.view().t(), b2, 1, b1, whole)
		q.trsm(backend.Left, backend.Lower, backend.Transpose, false, 1, a11.view(), b1)
	}
}

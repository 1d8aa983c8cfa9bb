package cuda

import (
	"errors"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/kernels"
)

// packedMatrix is a symmetric matrix in rectangular full packed storage (Gustavson, Waśniewski, Dongarra and
// Langou, ACM TOMS 37, 2010), as drawn in the documentation of package cpu. A matrix has the blocks A₁₁, A₂₁ and A₂₂.
// A rectangle of n+1 rows contains A₁₁ from the second row on, and A₂₁ below A₁₁. The upper triangle of the rectangle,
// which A₁₁ does not use, contains A₂₂ᵀ. Every operation consists of operations on these blocks as full matrices.
type packedMatrix[T backend.Float] struct {
	rect   *matrix[T] // the rectangle, of n+1 rows
	n1, n2 int        // orders of A₁₁ and A₂₂, where n1 is n2 or n2 + 1

	inverses *inverses[T]     // inverses of the diagonal blocks of a factor of reduced precision, or nil
	parent   *packedMatrix[T] // the matrix of which this is a leading part, or nil
}

func (h *packedMatrix[T]) Order() int { return h.n1 + h.n2 }

func (h *packedMatrix[T]) Free() {
	if h.parent != nil {
		return // a leading part owns no memory
	}
	h.rect.Free()
	if d := h.rect.device; !d.closed.Load() {
		d.exec.queue(func() { d.freed(h.freeInverses()) })
	}
}

// Leading returns the leading part of order n. It omits rows of A₂₂ or, if n < n1, also rows of A₁₁.
func (h *packedMatrix[T]) Leading(n int) backend.Packed[T] {
	check.Leading(n, h.Order())
	n1 := min(n, h.n1)
	return &packedMatrix[T]{rect: h.rect.window(0, 0, h.rect.rows, h.rect.cols), n1: n1, n2: n - n1, parent: h}
}

// blocks returns the blocks that packedMatrix defines: A₁₁ as a lower triangle, A₂₁, and A₂₂ᵀ as an upper triangle.
func (h *packedMatrix[T]) blocks() (a11, a21, a22t *matrix[T]) {
	return h.rect.window(1, 0, h.n1, h.n1), h.rect.window(1+h.n1, 0, h.n2, h.n1), h.rect.window(0, 0, h.n2, h.n2)
}

// splitRows returns the first n1 rows of m, which belong to A₁₁ (see packedMatrix), and the other rows.
func (h *packedMatrix[T]) splitRows(m *matrix[T]) (m1, m2 *matrix[T]) {
	return m.window(0, 0, h.n1, m.cols), m.window(h.n1, 0, h.n2, m.cols)
}

// packedStride returns the length of a row of the rectangle, in elements, a multiple of 128 bytes.
func packedStride[T backend.Float](n int) int {
	line := 128 / sizeOf[T]()
	return (n/2 + n%2 + line - 1) / line * line
}

func (q *queue[T]) PackedBytes(n int) int64 {
	check.NewPacked(n)
	stride := packedStride[T](n)
	if (float64(n)+1)*float64(stride)*float64(sizeOf[T]()) >= math.MaxInt64 {
		return math.MaxInt64
	}
	return (int64(n) + 1) * int64(stride) * int64(sizeOf[T]())
}

func (q *queue[T]) NewPacked(n int) (backend.Packed[T], error) {
	check.NewPacked(n)
	d, bytes := q.engine.device, q.PackedBytes(n)
	rect := &matrix[T]{device: d, rows: n + 1, cols: n/2 + n%2, stride: max(packedStride[T](n), 1), owner: true}
	if bytes > 0 {
		p, err := d.allocate(bytes)
		if err != nil {
			return nil, err
		}
		rect.ptr = p
	}
	return &packedMatrix[T]{rect: rect, n1: rect.cols, n2: n - rect.cols}, nil
}

// ownPacked returns a as a *packedMatrix of this device, and panics if it is anything else.
func (q *queue[T]) ownPacked(op string, a backend.Packed[T]) *packedMatrix[T] {
	if q.fixed(op, a) != nil {
		check.NoFixed(op)
	}
	if h, ok := a.(*packedMatrix[T]); ok && h.rect.device == q.engine.device {
		return h
	}
	check.Foreign(op)
	panic("unreachable")
}

// patch is a stored block of the lower triangle. Its first element is in row i, counted from the
// first requested row, and in column j.
type patch[T backend.Float] struct {
	block view[T]
	i, j  int
	part  region
}

// patches returns the stored blocks of rows first … first+rows−1 of the lower triangle. Either all
// these rows or none must be rows of A₁₁ (see packedMatrix).
func (h *packedMatrix[T]) patches(first, rows int) []patch[T] {
	a11, a21, a22t := h.blocks()
	if first < h.n1 {
		return []patch[T]{
			{a11.view().window(first, 0, rows, first), 0, 0, whole},
			{a11.view().window(first, first, rows, rows), 0, first, lower},
		}
	}
	k, a22 := first-h.n1, a22t.view().t()
	return []patch[T]{
		{a21.view().window(k, 0, rows, h.n1), 0, 0, whole},
		{a22.window(k, 0, rows, k), 0, h.n1, whole},
		{a22.window(k, k, rows, rows), 0, first, lower},
	}
}

// rangeBytes is the approximate size of the device matrix through which a packed matrix is copied.
const rangeBytes = 32 << 20

// forEachRange divides rows first … first+rows−1 of a triangle into ranges and calls f for each
// range, with an intermediate device matrix for the elements up to the diagonal. A range never
// contains both row boundary−1 and row boundary.
func (q *queue[T]) forEachRange(boundary, first, rows int, f func(start int, m *matrix[T]) error) error {
	if rows == 0 {
		return nil
	}
	width := first + rows
	maxRows := min(rows, max(1, rangeBytes/(width*sizeOf[T]())/tile)*tile)
	return q.scratch(int64(maxRows)*int64(width)*int64(sizeOf[T]()), func(p driver.DevicePtr) error {
		for start := first; start < first+rows; {
			count := min(maxRows, first+rows-start)
			if start < boundary {
				count = min(count, boundary-start)
			}
			m := &matrix[T]{device: q.engine.device, ptr: p, rows: count, cols: start + count, stride: start + count}
			if err := f(start, m); err != nil {
				return err
			}
			start += count
		}
		return nil
	})
}

func (q *queue[T]) UploadPacked(dst backend.Packed[T], first int, src backend.Host[T]) error {
	check.TransferPacked("UploadPacked", dst, first, src)
	if h := q.onHost("UploadPacked", dst); h != nil {
		return q.wait("upload", func() error {
			return h.hostRows(q, first, src.Rows, func(i, j int, v []T) { copy(v, src.Row(i - first)[j:]) })
		})
	}
	h := q.ownPacked("UploadPacked", dst)
	return q.wait("upload", func() error {
		if err := h.freeInverses(); err != nil {
			return err
		}
		return q.forEachRange(h.n1, first, src.Rows, func(start int, m *matrix[T]) error {
			if err := q.upload(m, src.View(start-first, 0, m.rows, m.cols), q.engine.device.stream); err != nil {
				return err
			}
			for _, p := range h.patches(start, m.rows) {
				if err := q.copy(m.view().window(p.i, p.j, p.block.rows, p.block.cols), p.block, p.part); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (q *queue[T]) DownloadPacked(dst backend.Host[T], src backend.Packed[T], first int) error {
	check.TransferPacked("DownloadPacked", src, first, dst)
	if h := q.onHost("DownloadPacked", src); h != nil {
		return q.wait("download", func() error {
			return h.hostRows(q, first, dst.Rows, func(i, j int, v []T) { copy(dst.Row(i - first)[j:], v) })
		})
	}
	boundary := 0
	var fill func(start int, m *matrix[T]) error
	if h := q.fixed("DownloadPacked", src); h != nil {
		coding := *h.coding
		fill = func(start int, m *matrix[T]) error {
			args := q.engine.device.args.Reset().Int(m.rows).Long(start)
			h.args(args, coding)
			args.Ptr(m.ptr).Long(m.stride)
			return q.engine.launch("decode", spread(m.rows, m.cols))
		}
	} else {
		h := q.ownPacked("DownloadPacked", src)
		boundary = h.n1
		fill = func(start int, m *matrix[T]) error {
			for _, p := range h.patches(start, m.rows) {
				if err := q.copy(p.block, m.view().window(p.i, p.j, p.block.rows, p.block.cols), p.part); err != nil {
					return err
				}
			}
			return nil
		}
	}
	return q.wait("download", func() error {
		return q.forEachRange(boundary, first, dst.Rows, func(start int, m *matrix[T]) error {
			if err := fill(start, m); err != nil {
				return err
			}
			return q.download(m, func(i, j int, from []T) {
				to := dst.Row(start - first + i)
				if end := start + i + 1; j < end { // omit the elements to the right of the diagonal
					copy(to[j:end], from)
				}
			})
		})
	})
}

func (q *queue[T]) GramPacked(dst backend.Packed[T], k kernels.Kernel, x backend.Matrix[T]) {
	_, d := check.GramPacked(dst, k, x)
	points := q.ownMatrix("GramPacked", x)
	if h := q.onHost("GramPacked", dst); h != nil {
		q.run("gram", func() error { return h.gram(q, k, points) })
		return
	}
	if h := q.fixed("GramPacked", dst); h != nil {
		coding := check.GramFixed(k, d)
		*h.coding = coding
		q.run("gram", func() error { return q.gramFixed(h, k, points, coding) })
		return
	}
	h := q.ownPacked("GramPacked", dst)
	a11, a21, a22t := h.blocks()
	x1, x2 := points.window(0, 0, h.n1, d), points.window(h.n1, 0, h.n2, d)
	q.run("gram", func() error {
		return firstOf(
			h.freeInverses,
			func() error { return q.gram(a11.view(), k, x1, x1, lower) },
			func() error { return q.gram(a21.view(), k, x2, x1, whole) },
			func() error { return q.gram(a22t.view(), k, x2, x2, upper) },
		)
	})
}

// firstOf calls the functions in order and stops at the first error, which it returns.
func firstOf(list ...func() error) error {
	for _, f := range list {
		if err := f(); err != nil {
			return err
		}
	}
	return nil
}

func (q *queue[T]) AddDiagPacked(d []T, a backend.Packed[T]) {
	n := check.AddDiagPacked(d, a)
	if h := q.onHost("AddDiagPacked", a); h != nil {
		values := append([]T(nil), d...)
		q.run("add diagonal", func() error {
			return h.diagonal(q, func(i int, v *T) { *v += values[min(i, len(values)-1)] })
		})
		return
	}
	diagonals := q.diagonals("AddDiagPacked", a)
	freeInverses := func() error { return nil }
	if h, ok := a.(*packedMatrix[T]); ok {
		freeInverses = h.freeInverses
	}
	var value T
	if len(d) == 1 {
		value = d[0]
	}
	q.run("add diagonal", q.withVector(d, func(p driver.DevicePtr) error {
		if len(d) == 1 {
			p = 0
		}
		if err := freeInverses(); err != nil {
			return err
		}
		for _, v := range diagonals {
			if err := q.addDiag(v, p, value); err != nil {
				return err
			}
			if p != 0 {
				p += driver.DevicePtr(v.rows * sizeOf[T]())
			}
		}
		return nil
	}, n))
}

// diagonals returns the diagonal of a packed matrix on the device, as one column or, from A₁₁ and A₂₂, as two columns.
func (q *queue[T]) diagonals(op string, a backend.Packed[T]) []view[T] {
	if h := q.fixed(op, a); h != nil {
		return []view[T]{h.diagonal()}
	}
	a11, _, a22t := q.ownPacked(op, a).blocks()
	return []view[T]{a11.diagonal(), a22t.diagonal()}
}

// addDiag adds a vector to a diagonal. If the address vector is 0, it adds value to each element.
func (q *queue[T]) addDiag(diagonal view[T], vector driver.DevicePtr, value T) error {
	if diagonal.rows == 0 {
		return nil
	}
	args := q.engine.device.args.Reset().Int(diagonal.rows).Ptr(diagonal.ptr).Long(diagonal.rs).Ptr(vector)
	scalarArg(args, value)
	return q.engine.launch("add_diag", line(diagonal.rows))
}

func (q *queue[T]) DiagPacked(dst []T, a backend.Packed[T]) error {
	check.DiagPacked(dst, a)
	diagonal := q.diagonalOf("DiagPacked", a)
	return q.wait("diagonal", func() error { return diagonal(dst) })
}

// diagonalOf returns a function that copies the diagonal of a packed matrix to the host.
func (q *queue[T]) diagonalOf(op string, a backend.Packed[T]) func(dst []T) error {
	if h := q.onHost(op, a); h != nil {
		return func(dst []T) error { return h.diagonal(q, func(i int, v *T) { dst[i] = *v }) }
	}
	diagonals := q.diagonals(op, a)
	return func(dst []T) error {
		if len(dst) == 0 {
			return nil
		}
		return q.scratch(int64(len(dst)*sizeOf[T]()), func(p driver.DevicePtr) error {
			vector, offset := view[T]{p, len(dst), 1, 1, 1}, 0
			for _, v := range diagonals {
				if err := q.copy(v, vector.window(offset, 0, v.rows, 1), whole); err != nil {
					return err
				}
				offset += v.rows
			}
			return q.engine.device.copyToHost(p, bytesOf(dst))
		})
	}
}

func (q *queue[T]) SymmPacked(alpha T, a backend.Packed[T], b backend.Matrix[T], beta T, c backend.Matrix[T]) {
	check.SymmPacked(a, b, c)
	B, C := q.ownMatrix("SymmPacked", b), q.ownMatrix("SymmPacked", c)
	if h := q.onHost("SymmPacked", a); h != nil {
		q.run("symm", func() error { return h.symm(q, alpha, B, beta, C) })
		return
	}
	if h := q.fixed("SymmPacked", a); h != nil {
		coding := *h.coding
		q.run("symm", func() error { return q.symmFixed(alpha, h, coding, B.view(), beta, C.view()) })
		return
	}
	h := q.ownPacked("SymmPacked", a)
	a11, a21, a22t := h.blocks()
	b1, b2 := h.splitRows(B)
	c1, c2 := h.splitRows(C)
	const noTrans, trans = backend.NoTrans, backend.Transpose
	q.run("symm", func() error {
		return firstOf(
			func() error { return q.symm(backend.Lower, alpha, a11, b1, beta, c1) },
			func() error { return q.gemm(trans, noTrans, alpha, a21, b2, 1, c1, rounding{}) },
			func() error { return q.gemm(noTrans, noTrans, alpha, a21, b1, beta, c2, rounding{}) },
			func() error { return q.symm(backend.Upper, alpha, a22t, b2, 1, c2) },
		)
	})
}

func (q *queue[T]) PotrfPacked(a backend.Packed[T]) error {
	return q.waitPotrfPacked("PotrfPacked", a, false)
}

func (q *queue[T]) waitPotrfPacked(op string, a backend.Packed[T], reduced bool) error {
	var factor func(r rounding) error
	if h := q.onHost(op, a); h != nil {
		factor = func(r rounding) error { return h.potrf(q, r) }
	} else {
		h := q.ownPacked(op, a)
		factor = func(r rounding) error { return firstOf(h.freeInverses, func() error { return q.potrfPacked(h, r) }) }
	}
	diagonal := q.diagonalOf(op, a)
	return q.wait("potrf", func() error {
		if !reduced {
			return factor(rounding{})
		}
		err := q.rounded(a.Order(), diagonal, factor)
		if h, ok := a.(*packedMatrix[T]); ok && err == nil {
			err = q.invert(h)
		}
		return err
	})
}

// potrfPacked factors the matrix by its 2 × 2 blocks.
func (q *queue[T]) potrfPacked(h *packedMatrix[T], r rounding) error {
	a11, a21, a22t := h.blocks()
	return firstOf(
		func() error { return q.potrf(backend.Lower, a11, r) },
		func() error {
			return q.trsm(backend.Right, backend.Lower, backend.Transpose, 1, a11, a21, r)
		},
		func() error { return q.syrk(backend.Upper, backend.NoTrans, -1, a21, 1, a22t, r) },
		func() error {
			err := q.potrf(backend.Upper, a22t, r)
			if pivot := new(backend.PivotError); errors.As(err, &pivot) {
				pivot.Index += h.n1
			}
			return err
		},
	)
}

func (q *queue[T]) TrsmPacked(t backend.Trans, a backend.Packed[T], b backend.Matrix[T]) {
	check.TrsmPacked(t, a, b)
	B := q.ownMatrix("TrsmPacked", b)
	if h := q.onHost("TrsmPacked", a); h != nil {
		q.run("trsm", func() error { return h.trsm(q, t, B) })
		return
	}
	h := q.ownPacked("TrsmPacked", a)
	a11, a21, a22t := h.blocks()
	b1, b2 := h.splitRows(B)
	const noTrans, trans = backend.NoTrans, backend.Transpose
	upperLeft := func() error { return h.solvePart(q, backend.Lower, t, a11, b1) }
	lowerRight := func() error { return h.solvePart(q, backend.Upper, 1-t, a22t, b2) }
	q.run("trsm", func() error {
		if t == noTrans {
			return firstOf(upperLeft, func() error { return q.gemm(noTrans, noTrans, -1, a21, b1, 1, b2, rounding{}) }, lowerRight)
		}
		return firstOf(lowerRight, func() error { return q.gemm(trans, noTrans, -1, a21, b2, 1, b1, rounding{}) }, upperLeft)
	})
}

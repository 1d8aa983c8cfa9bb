package cpu

import (
	"unsafe"

	"github.com/mercer-go/mercer/backend"
)

// matrix is a row-major matrix in Go memory.
type matrix[T backend.Float] struct {
	device             *device
	rows, cols, stride int
	data               []T
	bytes              int64 // counted for it; 0 for views and wrapped memory
}

func (m *matrix[T]) Dims() (rows, cols int) { return m.rows, m.cols }

func (m *matrix[T]) View(i, j, rows, cols int) backend.Matrix[T] {
	backend.CheckView(i, j, rows, cols, m.rows, m.cols)
	h := m.host().View(i, j, rows, cols)
	return &matrix[T]{device: m.device, rows: rows, cols: cols, stride: h.Stride, data: h.Data}
}

func (m *matrix[T]) Free() {
	m.device.memory.give(m.bytes)
	if m.bytes >= discarded {
		discard(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(m.data))), m.bytes))
	}
	if m.bytes > 0 {
		m.bytes, m.data = 0, nil
	}
}

// discarded is the least size in bytes of a matrix whose memory Free returns to
// the system itself: a call of the system for less would cost more than it gives.
const discarded = 1 << 20

func (m *matrix[T]) host() backend.Host[T] {
	return backend.Host[T]{Rows: m.rows, Cols: m.cols, Stride: m.stride, Data: m.data}
}

func (m *matrix[T]) row(i int) []T { return m.host().Row(i) }

// same reports whether a and b are the same matrix: the same memory and shape.
func (m *matrix[T]) same(b *matrix[T]) bool {
	if m == b {
		return true
	}
	return m.rows == b.rows && m.cols == b.cols && m.stride == b.stride &&
		len(m.data) > 0 && len(b.data) > 0 && &m.data[0] == &b.data[0]
}

// Alignment of a matrix's first element in bytes: a cache line, and for large
// ones a page of the kind that the address translation of a processor covers
// gigabytes with.
const (
	cacheLine = 64
	hugePage  = 2 << 20
)

// aligned is n zeros that begin at a cache line, or at a huge page when they
// take several.
func aligned[T backend.Float](n int) []T {
	size := int(unsafe.Sizeof(*new(T)))
	to := cacheLine
	if n*size >= 2*hugePage {
		to = hugePage
	}
	data := make([]T, n+to/size)
	off := (to - int(uintptr(unsafe.Pointer(unsafe.SliceData(data)))%uintptr(to))) % to / size
	data = data[off : off+n : off+n]
	if to == hugePage {
		adviseHuge(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(data))), n*size))
	}
	return data
}

// view is a matrix with any strides: element (i, j) is data[off + i·rs + j·cs].
// Operands are passed round as views, so that transposing or reversing one is
// a change of strides.
type view[T backend.Float] struct {
	data       []T
	off        int
	rows, cols int
	rs, cs     int
}

func (m *matrix[T]) view() view[T] {
	return view[T]{data: m.data, rows: m.rows, cols: m.cols, rs: m.stride, cs: 1}
}

// op is v or vᵀ.
func (v view[T]) op(t backend.Trans) view[T] {
	if t == backend.Transpose {
		return v.t()
	}
	return v
}

// t is vᵀ.
func (v view[T]) t() view[T] {
	v.rows, v.cols, v.rs, v.cs = v.cols, v.rows, v.cs, v.rs
	return v
}

// part is the rows × cols part that begins at (i, j).
func (v view[T]) part(i, j, rows, cols int) view[T] {
	v.off += i*v.rs + j*v.cs
	v.rows, v.cols = rows, cols
	return v
}

// reversed is v with the order of its rows and, if both, its columns reversed.
func (v view[T]) reversed(both bool) view[T] {
	if v.rows > 0 {
		v.off += (v.rows - 1) * v.rs
		v.rs = -v.rs
	}
	if both && v.cols > 0 {
		v.off += (v.cols - 1) * v.cs
		v.cs = -v.cs
	}
	return v
}

// inPieces reports whether the rows, or else the columns, of v lie in one piece.
func (v view[T]) inPieces() bool { return v.cs == 1 || v.rs == 1 }

// at is the address of element (i, j). By pointer, because a copy of v, which
// does not fit in registers, would take several times as long.
func (v *view[T]) at(i, j int) *T { return &v.data[v.off+i*v.rs+j*v.cs] }

package cpu

import (
	"fmt"
	"math"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/pages"
)

// matrix is a row-major matrix in Go memory.
type matrix[T backend.Float] struct {
	device             *device
	rows, cols, stride int
	data               []T
	bytes              int64 // size counted in the device's memory in use; 0 for views and wrapped memory
}

func (m *matrix[T]) Dims() (rows, cols int) { return m.rows, m.cols }

func (m *matrix[T]) View(i, j, rows, cols int) backend.Matrix[T] {
	check.View(i, j, rows, cols, m.rows, m.cols)
	h := m.host().View(i, j, rows, cols)
	return &matrix[T]{device: m.device, rows: rows, cols: cols, stride: h.Stride, data: h.Data}
}

func (m *matrix[T]) Free() {
	m.device.memory.release(m.bytes)
	if m.bytes >= discardBytes {
		discard(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(m.data))), m.bytes))
	}
	if m.bytes > 0 {
		m.bytes, m.data = 0, nil
	}
}

// discardBytes is the smallest size of a matrix whose memory Free returns to the system immediately.
const discardBytes = 1 << 20

func (m *matrix[T]) host() backend.Host[T] {
	return backend.Host[T]{Rows: m.rows, Cols: m.cols, Stride: m.stride, Data: m.data}
}

func (m *matrix[T]) row(i int) []T { return m.host().Row(i) }

// sameMatrix reports whether m and b have the same memory and shape.
func (m *matrix[T]) sameMatrix(b *matrix[T]) bool {
	if m == b {
		return true
	}
	return m.rows == b.rows && m.cols == b.cols && m.stride == b.stride &&
		len(m.data) > 0 && len(b.data) > 0 && &m.data[0] == &b.data[0]
}

const cacheLine = 64 // in bytes

// view is a matrix with any strides: element (i, j) is data[offset + i·rs + j·cs]. Operands are
// passed as views, so that transposing or reversing an operand changes only its offset and strides.
type view[T backend.Float] struct {
	data       []T
	offset     int
	rows, cols int
	rs, cs     int
}

func (m *matrix[T]) view() view[T] {
	return view[T]{data: m.data, rows: m.rows, cols: m.cols, rs: m.stride, cs: 1}
}

func (v view[T]) op(t backend.Trans) view[T] {
	if t == backend.Transpose {
		return v.t()
	}
	return v
}

func (v view[T]) t() view[T] {
	v.rows, v.cols, v.rs, v.cs = v.cols, v.rows, v.cs, v.rs
	return v
}

// block returns the rows × cols block that begins at (i, j).
func (v view[T]) block(i, j, rows, cols int) view[T] {
	v.offset += i*v.rs + j*v.cs
	v.rows, v.cols = rows, cols
	return v
}

// reversed returns v with its rows in reverse order and, if columns is true, its columns too.
func (v view[T]) reversed(columns bool) view[T] {
	if v.rows > 0 {
		v.offset += (v.rows - 1) * v.rs
		v.rs = -v.rs
	}
	if columns && v.cols > 0 {
		v.offset += (v.cols - 1) * v.cs
		v.cs = -v.cs
	}
	return v
}

// contiguous reports whether the rows of v, or its columns, are contiguous.
func (v view[T]) contiguous() bool { return v.cs == 1 || v.rs == 1 }

// at returns the address of element (i, j). The pointer receiver avoids copying v, which takes longer.
func (v *view[T]) at(i, j int) *T { return &v.data[v.offset+i*v.rs+j*v.cs] }

// asMatrix returns m as a matrix of this device, and panics if m belongs to another device.
func (e *engine[T]) asMatrix(op string, m backend.Matrix[T]) *matrix[T] {
	if dense, ok := m.(*matrix[T]); ok && dense.device == e.device {
		return dense
	}
	if sparse, ok := m.(*sparseMatrix[T]); ok && sparse.device == e.device {
		check.Sparse(op)
	}
	check.Foreign(op)
	panic("unreachable")
}

func (q *queue[T]) asMatrix(op string, m backend.Matrix[T]) *matrix[T] {
	return q.engine.asMatrix(op, m)
}

func (q *queue[T]) New(rows, cols int) (backend.Matrix[T], error) {
	check.New(rows, cols)
	bytes, size := int64(math.MaxInt64), int(unsafe.Sizeof(*new(T)))
	if cols == 0 || rows <= math.MaxInt/cols/size {
		bytes = int64(rows) * int64(cols) * int64(size)
	}
	m, err := q.allocate(rows, cols, cols, bytes)
	if err != nil {
		return nil, err
	}
	return m, nil
}

// allocate returns a matrix of zeros and adds bytes to the memory in use.
func (q *queue[T]) allocate(rows, cols, stride int, bytes int64) (*matrix[T], error) {
	d := q.engine.device
	if d.closed.Load() {
		return nil, fmt.Errorf("cpu: new matrix: the device has been closed")
	}
	if err := d.memory.reserve(bytes); err != nil {
		return nil, err
	}
	return &matrix[T]{device: d, rows: rows, cols: cols, stride: stride, data: pages.Zeros[T](rows * stride), bytes: bytes}, nil
}

// Wrap returns a matrix that shares h's memory.
func (q *queue[T]) Wrap(h backend.Host[T]) backend.Matrix[T] {
	check.Host("Wrap", h)
	return &matrix[T]{device: q.engine.device, rows: h.Rows, cols: h.Cols, stride: h.Stride, data: h.Data}
}

func (q *queue[T]) Upload(dst backend.Matrix[T], src backend.Host[T]) error {
	to := q.asMatrix("Upload", dst)
	check.Transfer("Upload", dst, src)
	q.copy(to.host(), src)
	return q.wait()
}

func (q *queue[T]) Download(dst backend.Host[T], src backend.Matrix[T]) error {
	from := q.asMatrix("Download", src)
	check.Transfer("Download", src, dst)
	q.copy(dst, from.host())
	return q.wait()
}

func (q *queue[T]) copy(to, from backend.Host[T]) {
	q.rows(from.Rows, from.Cols, func(lo, hi int) {
		for i := lo; i < hi; i++ {
			copy(to.Row(i), from.Row(i))
		}
	})
}

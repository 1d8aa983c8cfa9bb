package ref

import (
	"sync/atomic"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/check"
)

// allocation is the memory that a matrix and its views share.
type allocation struct {
	dev   *device
	bytes int64 // 0 for memory passed to Wrap
	freed atomic.Bool
}

// matrix implements backend.Matrix with row-major elements in Go memory.
type matrix[T backend.Float] struct {
	host   backend.Host[T]
	memory *allocation
	view   bool
}

func (m *matrix[T]) Dims() (rows, cols int) { return m.host.Rows, m.host.Cols }

func (m *matrix[T]) View(i, j, rows, cols int) backend.Matrix[T] {
	check.View(i, j, rows, cols, m.host.Rows, m.host.Cols)
	return &matrix[T]{host: m.host.View(i, j, rows, cols), memory: m.memory, view: true}
}

// Free releases the memory; a second call does nothing.
func (m *matrix[T]) Free() {
	if m.view || m.memory.freed.Swap(true) {
		return
	}
	m.memory.dev.release(m.memory.bytes)
	m.host.Data = nil
}

// New returns a matrix of zeros without padding.
func (q *queue[T]) New(rows, cols int) (backend.Matrix[T], error) {
	check.New(rows, cols)
	bytes, err := q.dev.reserve(rows, cols, sizeof[T]())
	if err != nil {
		return nil, err
	}
	return &matrix[T]{host: backend.NewHost[T](rows, cols), memory: &allocation{dev: q.dev, bytes: bytes}}, nil
}

// Wrap returns a matrix that shares h.Data. InUse does not count its bytes.
func (q *queue[T]) Wrap(h backend.Host[T]) backend.Matrix[T] {
	check.Host("Wrap", h)
	return &matrix[T]{host: h, memory: &allocation{dev: q.dev}}
}

func (q *queue[T]) Upload(dst backend.Matrix[T], src backend.Host[T]) error {
	check.Transfer("Upload", dst, src)
	to := gridOf(q.dev, "Upload", dst)
	if err := q.wait(); err != nil {
		return err
	}
	for i := range to.rows {
		for j := range to.cols {
			to.data[i*to.rs+j] = src.Data[i*src.Stride+j]
		}
	}
	return nil
}

func (q *queue[T]) Download(dst backend.Host[T], src backend.Matrix[T]) error {
	check.Transfer("Download", src, dst)
	from := gridOf(q.dev, "Download", src)
	if err := q.wait(); err != nil {
		return err
	}
	for i := range from.rows {
		for j := range from.cols {
			dst.Data[i*dst.Stride+j] = from.data[i*from.rs+j]
		}
	}
	return nil
}

// grid is a matrix for the loops: element (i, j) is data[i*rs+j*cs]. Swapping the strides transposes the grid.
type grid[T backend.Float] struct {
	rows, cols, rs, cs int
	data               []T
}

// gridOf returns the elements of m. It panics unless m is a matrix of d that is not freed.
func gridOf[T backend.Float](d *device, op string, m backend.Matrix[T]) grid[T] {
	r, ok := m.(*matrix[T])
	if !ok || r.memory.dev != d {
		check.Foreign(op)
	}
	if r.memory.freed.Load() {
		check.Freed(op)
	}
	return grid[T]{rows: r.host.Rows, cols: r.host.Cols, rs: r.host.Stride, cs: 1, data: r.host.Data}
}

func (g grid[T]) at(i, j int) float64     { return float64(g.data[i*g.rs+j*g.cs]) }
func (g grid[T]) set(i, j int, v float64) { g.data[i*g.rs+j*g.cs] = T(v) }

func (g grid[T]) transpose() grid[T] {
	g.rows, g.cols, g.rs, g.cs = g.cols, g.rows, g.cs, g.rs
	return g
}

func (g grid[T]) op(t backend.Trans) grid[T] {
	if t == backend.Transpose {
		return g.transpose()
	}
	return g
}

// update sets C_ij ← α s + β C_ij, without reading C_ij if beta is 0.
func (g grid[T]) update(i, j int, alpha, s, beta float64) {
	v := alpha * s
	if beta != 0 {
		v += beta * g.at(i, j)
	}
	g.set(i, j, v)
}

// sameMatrix reports whether two matrices have the same memory and shape.
func (g grid[T]) sameMatrix(h grid[T]) bool {
	if g.rows != h.rows || g.cols != h.cols || g.rs != h.rs {
		return false
	}
	return len(g.data) > 0 && len(h.data) > 0 && &g.data[0] == &h.data[0]
}

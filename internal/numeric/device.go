package numeric

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
)

// Zero queues m ← 0, as a product of an n×0 and a 0×c matrix.
func Zero[T backend.Float](b backend.Backend[T], m backend.Matrix[T]) {
	if n, c := m.Dims(); n > 0 && c > 0 {
		b.Gemm(backend.NoTrans, backend.NoTrans, 1, m.View(0, 0, n, 0), m.View(0, 0, 0, c), 0, m)
	}
}

// ClearLower queues zeros for the lower triangle of a, including its diagonal.
func ClearLower(b backend.Backend[float64], a backend.Matrix[float64]) {
	m, _ := a.Dims()
	b.Syrk(backend.Lower, backend.NoTrans, 0, a.View(0, 0, m, 0), 0, a)
}

// EachRow calls visit with each row of m. It reads the rows from the device in blocks.
func EachRow[T backend.Float](b backend.Backend[T], m backend.Matrix[T], visit func(i int, row []T)) error {
	_, c := m.Dims()
	return EachBlock(b, m, c, func(from int, h backend.Host[T]) error {
		for r := range h.Rows {
			visit(from+r, h.Row(r))
		}
		return nil
	})
}

// Copy queues dst ← src: an empty product clears dst, and src is added.
func Copy[T backend.Float](b backend.Backend[T], dst, src backend.Matrix[T]) {
	n, c := src.Dims()
	b.Gemm(backend.NoTrans, backend.NoTrans, 1, src.View(0, 0, n, 0), src.View(0, 0, 0, c), 0, dst)
	b.ColAxpy(Repeated[T](1, c), src, dst)
}

// ScaleRows sets row i of dst to s_i times row i of src, which may be dst. It transfers blocks of rows to the host
// and back, because no device has this operation.
func ScaleRows[T backend.Float](b backend.Backend[T], dst, src backend.Matrix[T], s []float64) error {
	_, c := src.Dims()
	return EachBlock(b, src, c, func(from int, h backend.Host[T]) error {
		run.Parallel(h.Rows, func(first, last int) {
			for i := first; i < last; i++ {
				factor := T(s[from+i])
				for j := range h.Row(i) {
					h.Row(i)[j] *= factor
				}
			}
		})
		return b.Upload(dst.View(from, 0, h.Rows, h.Cols), h)
	})
}

// EachBlock calls f with successive blocks of rows of m on the host, which f may modify, and with the number of
// the first row of each block. The blocks are so small that a cache holds width elements for each row.
func EachBlock[T backend.Float](b backend.Backend[T], m backend.Matrix[T], width int, f func(from int, h backend.Host[T]) error) error {
	n, c := m.Dims()
	rows := max(1, min(n, 1<<18/max(width, 1)))
	buffer := backend.NewHost[T](rows, c)
	for i := 0; i < n; i += rows {
		h := buffer.View(0, 0, min(rows, n-i), c)
		if err := b.Download(h, m.View(i, 0, h.Rows, c)); err != nil {
			return err
		}
		if err := f(i, h); err != nil {
			return err
		}
	}
	return nil
}

// Mirror copies the lower triangle of a to the upper triangle, by transfers to the host and back.
func Mirror(b backend.Backend[float64], a backend.Matrix[float64]) error {
	const blockSize = 256
	m, _ := a.Dims()
	for i := 0; i < m; i += blockSize {
		rows := min(blockSize, m-i)
		lower := backend.NewHost[float64](rows, i+rows)
		if err := b.Download(lower, a.View(i, 0, rows, i+rows)); err != nil {
			return err
		}
		upper := backend.NewHost[float64](i+rows, rows)
		for r := range rows {
			for c, v := range lower.Row(r)[:i+r+1] {
				upper.Row(c)[r] = v
				if c >= i {
					upper.Row(i + r)[c-i] = v
				}
			}
		}
		if err := b.Upload(a.View(0, i, i+rows, rows), upper); err != nil {
			return err
		}
	}
	return nil
}

// SolveCholesky queues b ← (LLᵀ)⁻¹ b.
func SolveCholesky[T backend.Float](q backend.Backend[T], l, b backend.Matrix[T]) {
	q.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, l, b)
	q.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, l, b)
}

// Diagonal returns the diagonal of a. It reads square blocks along the diagonal.
func Diagonal[T backend.Float](b backend.Backend[T], a backend.Matrix[T]) ([]T, error) {
	const blockSize = 64
	n, _ := a.Dims()
	d := make([]T, n)
	h := backend.NewHost[T](min(n, blockSize), min(n, blockSize))
	for i := 0; i < n; i += blockSize {
		r := min(blockSize, n-i)
		block := h.View(0, 0, r, r)
		if err := b.Download(block, a.View(i, i, r, r)); err != nil {
			return nil, err
		}
		for p := range r {
			d[i+p] = block.Row(p)[p]
		}
	}
	return d, nil
}

// Wrapper returns the backend.Wrapper of dev, or nil if dev cannot use Go memory without a copy.
func Wrapper(dev backend.Device) backend.Wrapper[float64] {
	w, _ := dev.F64().(backend.Wrapper[float64])
	return w
}

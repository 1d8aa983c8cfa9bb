package backend

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/kernels"
)

// CSR is a sparse matrix in Go memory, in compressed sparse rows.
type CSR[T Float] = host.CSR[T]

// Sparse is a sparse matrix as the device that made it works with it fastest.
type Sparse[T Float] interface {
	Dims() (rows, cols int)
	// SliceRows returns rows i … k−1. It shares memory with the matrix and must not be used
	// after its Free.
	SliceRows(i, k int) Sparse[T]
	// Free gives the memory back. On a slice it does nothing.
	Free()
}

// SparseBackend is a Backend with an optional ability, found by assertion: Gram matrices and
// products of sparse matrices, without dense copies of them. What With returns has it too.
// SparseOf gives it to every Backend.
//
// The results are those of the dense matrix within rounding: an element that is not stored is a 0
// in every respect, and 0·NaN is NaN. The work of a product xᵀz is the number of columns that
// both rows store. Distances are computed from norms and the columns in common, and again from the
// differences where more than ten bits cancel: their error is at most 2¹²γ‖x−z‖² and equal rows
// have distance 0, with γ that of a sum over the elements of both rows. The methods wait.
// Otherwise what Backend says holds here as well.
type SparseBackend[T Float] interface {
	Backend[T]
	// SparseBytes returns what NewSparse(x) takes, beside x itself.
	SparseBytes(x CSR[T]) int64
	// NewSparse returns x in the form in which the other methods take it, or a *MemoryError. x is
	// checked, and a fault of it is misuse. The result may share the memory of x, which must not
	// change before Free.
	NewSparse(x CSR[T]) (Sparse[T], error)
	// GramSparse is dst_ij ← k(x_i, z_j) for the rows of X, n × d, and Z, m × d. When z is x, the
	// strict upper triangle of dst is neither read nor written.
	GramSparse(dst Matrix[T], k kernels.Kernel, x, z Sparse[T]) error
	// GramPackedSparse is A ← k(X, X), for a backend with packed storage.
	GramPackedSparse(a Packed[T], k kernels.Kernel, x Sparse[T]) error
	// GramMulSparse is dst ← k(X, Z) V without storing k(X, Z): V is m × t.
	GramMulSparse(dst Matrix[T], k kernels.Kernel, x, z Sparse[T], v Matrix[T]) error
	// GemmSparse is C ← α op(A) B + β C. With beta = 0, C is not read.
	GemmSparse(t Trans, alpha T, a Sparse[T], b Matrix[T], beta T, c Matrix[T]) error
}

// ErrNoPacked is returned by GramPackedSparse of a backend without packed storage.
var ErrNoPacked = errors.New("backend: the device has no packed storage")

// SparseOf returns b where it is a SparseBackend. Otherwise it returns b with this ability added:
// rows are made dense, up to 64 MiB of them at a time, and uploaded. The work is then that of
// the dense matrix.
func SparseOf[T Float](b Backend[T]) SparseBackend[T] {
	if s, ok := b.(SparseBackend[T]); ok {
		return s
	}
	return densified[T]{b}
}

// densified is a SparseBackend over the dense methods.
type densified[T Float] struct{ Backend[T] }

// rowsOnHost is a Sparse that stays in Go memory.
type rowsOnHost[T Float] struct{ CSR[T] }

func (x rowsOnHost[T]) SliceRows(i, k int) Sparse[T] { return rowsOnHost[T]{x.CSR.SliceRows(i, k)} }
func (rowsOnHost[T]) Free()                          {}

// same reports whether x and z are the same rows.
func (x rowsOnHost[T]) same(z rowsOnHost[T]) bool {
	return x.Rows == z.Rows && x.Cols == z.Cols && unsafe.SliceData(x.Indptr) == unsafe.SliceData(z.Indptr)
}

func (d densified[T]) With(ctx context.Context, done func(flops float64)) Backend[T] {
	return densified[T]{d.Backend.With(ctx, done)}
}

func (densified[T]) SparseBytes(CSR[T]) int64 { return 0 }

func (densified[T]) NewSparse(x CSR[T]) (Sparse[T], error) {
	if err := x.Check(); err != nil {
		panic("backend: NewSparse: " + err.Error())
	}
	return rowsOnHost[T]{x}, nil
}

// rowsOf returns x as one of the matrices of NewSparse.
func rowsOf[T Float](op string, x Sparse[T]) rowsOnHost[T] {
	own, ok := x.(rowsOnHost[T])
	if !ok {
		panic("backend: " + op + ": a matrix belongs to another device")
	}
	return own
}

// mustHave panics unless m is rows × cols.
func mustHave[T Float](op, name string, m Matrix[T], rows, cols int) {
	if r, c := m.Dims(); r != rows || c != cols {
		panic(fmt.Sprintf("backend: %s: %s must be %d×%d, is %d×%d", op, name, rows, cols, r, c))
	}
}

// blocks calls f with the first row and the dense copy of blocks of rows of x, at least once; no
// row has more than width elements of other matrices beside it.
func (d densified[T]) blocks(x CSR[T], width int, f func(first int, block Matrix[T]) error) error {
	const bytes = 64 << 20
	rows := max(1, bytes/int(unsafe.Sizeof(T(0)))/max(x.Cols, width, 1))
	for first := 0; first == 0 || first < x.Rows; first += rows {
		part := x.SliceRows(first, min(first+rows, x.Rows))
		dense := NewHost[T](part.Rows, part.Cols)
		part.DenseTo(dense)
		if err := d.upload(dense, func(block Matrix[T]) error { return f(first, block) }); err != nil {
			return err
		}
	}
	return nil
}

// upload calls f with a copy of h on the device, which is freed also when f panics.
func (d densified[T]) upload(h Host[T], f func(m Matrix[T]) error) error {
	m, err := Copy(d.Backend, h)
	if err != nil {
		return err
	}
	defer m.Free()
	return f(m)
}

func (d densified[T]) GramSparse(dst Matrix[T], k kernels.Kernel, x, z Sparse[T]) error {
	a, b := rowsOf("GramSparse", x), rowsOf("GramSparse", z)
	mustHave("GramSparse", "dst", dst, a.Rows, b.Rows)
	return d.blocks(a.CSR, 0, func(i int, xi Matrix[T]) error {
		if a.same(b) {
			return d.lowerRows(dst, i, k, a.CSR, i, xi)
		}
		return d.blocks(b.CSR, 0, func(j int, zj Matrix[T]) error {
			rows, _ := xi.Dims()
			cols, _ := zj.Dims()
			d.Gram(dst.View(i, j, rows, cols), k, xi, zj)
			return d.Sync()
		})
	})
}

// lowerRows writes rows i … of the lower triangle of k(X, X), whose points are xi, to the rows of
// dst from row on.
func (d densified[T]) lowerRows(dst Matrix[T], row int, k kernels.Kernel, x CSR[T], i int, xi Matrix[T]) error {
	rows, _ := xi.Dims()
	d.Gram(dst.View(row, i, rows, rows), k, xi, xi)
	return d.blocks(x.SliceRows(0, i), 0, func(j int, zj Matrix[T]) error {
		cols, _ := zj.Dims()
		d.Gram(dst.View(row, j, rows, cols), k, xi, zj)
		return d.Sync()
	})
}

func (d densified[T]) GramPackedSparse(a Packed[T], k kernels.Kernel, x Sparse[T]) error {
	p, ok := d.Backend.(PackedBackend[T])
	if !ok {
		return ErrNoPacked
	}
	points := rowsOf("GramPackedSparse", x).CSR
	if a.Order() != points.Rows {
		panic(fmt.Sprintf("backend: GramPackedSparse: dst must have order %d, has %d", points.Rows, a.Order()))
	}
	return d.blocks(points, points.Rows, func(i int, xi Matrix[T]) error {
		rows, _ := xi.Dims()
		strip, err := d.New(rows, i+rows)
		if err != nil {
			return err
		}
		defer strip.Free()
		if err := d.lowerRows(strip, 0, k, points, i, xi); err != nil {
			return err
		}
		values := NewHost[T](rows, i+rows)
		if err := d.Download(values, strip); err != nil {
			return err
		}
		return p.UploadPacked(a, i, values)
	})
}

func (d densified[T]) GramMulSparse(dst Matrix[T], k kernels.Kernel, x, z Sparse[T], v Matrix[T]) error {
	a, b := rowsOf("GramMulSparse", x), rowsOf("GramMulSparse", z)
	_, t := dst.Dims()
	mustHave("GramMulSparse", "dst", dst, a.Rows, t)
	mustHave("GramMulSparse", "V", v, b.Rows, t)
	ones := make([]T, t)
	for c := range ones {
		ones[c] = 1
	}
	return d.blocks(a.CSR, 0, func(i int, xi Matrix[T]) error {
		rows, _ := xi.Dims()
		out := dst.View(i, 0, rows, t)
		part, err := d.New(rows, t)
		if err != nil {
			return err
		}
		defer part.Free()
		return d.blocks(b.CSR, 0, func(j int, zj Matrix[T]) error {
			cols, _ := zj.Dims()
			if j == 0 {
				d.GramMul(out, k, xi, zj, v.View(0, 0, cols, t))
			} else {
				d.GramMul(part, k, xi, zj, v.View(j, 0, cols, t))
				d.ColAxpy(ones, part, out)
			}
			return d.Sync()
		})
	})
}

func (d densified[T]) GemmSparse(t Trans, alpha T, a Sparse[T], b Matrix[T], beta T, c Matrix[T]) error {
	_, cols := c.Dims()
	rows := rowsOf("GemmSparse", a)
	if m, k := rows.Rows, rows.Cols; t == NoTrans {
		mustHave("GemmSparse", "B", b, k, cols)
		mustHave("GemmSparse", "C", c, m, cols)
	} else {
		mustHave("GemmSparse", "B", b, m, cols)
		mustHave("GemmSparse", "C", c, k, cols)
	}
	return d.blocks(rows.CSR, 0, func(i int, ai Matrix[T]) error {
		rows, _ := ai.Dims()
		if t == NoTrans {
			d.Gemm(NoTrans, NoTrans, alpha, ai, b, beta, c.View(i, 0, rows, cols))
		} else {
			d.Gemm(Transpose, NoTrans, alpha, ai, b.View(i, 0, rows, cols), beta, c)
			beta = 1
		}
		return d.Sync()
	})
}

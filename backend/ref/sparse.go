package ref

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/check"
	"github.com/mercer-go/mercer/kernels"
)

// sparse is the Sparse: the matrix with its zeros, so that every sum has all its terms.
type sparse[T backend.Float] struct{ dense backend.Matrix[T] }

func (x sparse[T]) Dims() (rows, cols int) { return x.dense.Dims() }
func (x sparse[T]) Free()                  { x.dense.Free() }

func (x sparse[T]) SliceRows(i, k int) backend.Sparse[T] {
	rows, cols := x.Dims()
	check.SliceRows(i, k, rows)
	return sparse[T]{x.dense.View(i, 0, k-i, cols)}
}

// ownSparse returns the dense matrix of x.
func ownSparse[T backend.Float](op string, x backend.Sparse[T]) backend.Matrix[T] {
	own, ok := x.(sparse[T])
	if !ok {
		check.Foreign(op)
	}
	return own.dense
}

func (q *queue[T]) SparseBytes(x backend.CSR[T]) int64 {
	return int64(x.Rows) * int64(x.Cols) * sizeof[T]()
}

func (q *queue[T]) NewSparse(x backend.CSR[T]) (backend.Sparse[T], error) {
	check.NewSparse(x)
	dense, err := q.New(x.Rows, x.Cols)
	if err != nil {
		return nil, err
	}
	x.DenseTo(dense.(*matrix[T]).host)
	return sparse[T]{dense}, nil
}

func (q *queue[T]) GramSparse(dst backend.Matrix[T], k kernels.Kernel, x, z backend.Sparse[T]) error {
	check.GramSparse(dst, k, x, z)
	q.Gram(dst, k, ownSparse("GramSparse", x), ownSparse("GramSparse", z))
	return q.wait()
}

func (q *queue[T]) GramPackedSparse(a backend.Packed[T], k kernels.Kernel, x backend.Sparse[T]) error {
	check.GramPackedSparse(a, k, x)
	q.GramPacked(a, k, ownSparse("GramPackedSparse", x))
	return q.wait()
}

func (q *queue[T]) GramMulSparse(dst backend.Matrix[T], k kernels.Kernel, x, z backend.Sparse[T], v backend.Matrix[T]) error {
	check.GramMulSparse(dst, k, x, z, v)
	q.GramMul(dst, k, ownSparse("GramMulSparse", x), ownSparse("GramMulSparse", z), v)
	return q.wait()
}

func (q *queue[T]) GemmSparse(t backend.Trans, alpha T, a backend.Sparse[T], b backend.Matrix[T], beta T, c backend.Matrix[T]) error {
	check.GemmSparse(t, a, b, c)
	q.Gemm(t, backend.NoTrans, alpha, ownSparse("GemmSparse", a), b, beta, c)
	return q.wait()
}

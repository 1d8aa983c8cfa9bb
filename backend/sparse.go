package backend

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/mercer-go/mercer/host"
)

// CSR is a sparse matrix in Go memory, in compressed sparse rows.
type CSR[T Float] = host.CSR[T]

// SparseBackend is a Backend that also has sparse matrices. A type assertion shows whether a Backend implements it.
// The Backend that the method With of a SparseBackend returns is a SparseBackend, too. PlaceSparse accepts any Backend.
//
// Gram and GramMul accept X and Z if both are sparse. GramPacked accepts a sparse X. Gemm accepts a sparse A if B and C
// are dense and B is not transposed. A View must have all columns. All other uses of a sparse matrix panic.
//
// The results equal those of the dense matrix up to rounding. An element that is not stored is 0; its product with NaN
// is NaN. The relative error of ‖x−z‖² is at most 2¹²ru/(1−ru), where r is the number of elements that the
// rows x and z store, and u is the unit roundoff of T. Equal rows have distance 0.
type SparseBackend[T Float] interface {
	Backend[T]
	// SparseBytes returns the number of bytes that NewSparse takes for a rows × cols matrix with nnz stored
	// elements, not including the CSR itself.
	SparseBytes(rows, cols, nnz int) int64
	// NewSparse returns the matrix x, which is a SparseMatrix, or a *MemoryError. x must be valid, and must not
	// change before the matrix is freed.
	NewSparse(x CSR[T]) (Matrix[T], error)
}

// SparseMatrix is a Matrix that NewSparse made, or a View of such a Matrix.
type SparseMatrix[T Float] interface {
	Matrix[T]
	CSR() CSR[T] // the elements, for reading only
}

// PlaceSparse returns a matrix on b's device with the elements of x, which must only be read. The matrix is sparse
// if b is a SparseBackend, otherwise a dense copy. The caller frees it.
func PlaceSparse[T Float](b Backend[T], x CSR[T]) (Matrix[T], error) {
	if s, ok := b.(SparseBackend[T]); ok {
		return s.NewSparse(x)
	}
	if err := x.Check(); err != nil {
		panic("backend: PlaceSparse: " + err.Error())
	}
	m, err := b.New(x.Rows, x.Cols)
	if err != nil {
		return nil, err
	}
	const bytes = 64 << 20
	rows := max(1, bytes/int(unsafe.Sizeof(T(0)))/max(x.Cols, 1))
	for first := 0; first < x.Rows; first += rows {
		part := x.SliceRows(first, min(first+rows, x.Rows))
		dense := NewHost[T](part.Rows, part.Cols)
		part.DenseTo(dense)
		if err := b.Upload(m.View(first, 0, part.Rows, part.Cols), dense); err != nil {
			m.Free()
			return nil, err
		}
	}
	return m, nil
}

// SparseBytes returns the device memory that PlaceSparse takes for a rows × cols matrix with nnz stored elements.
func SparseBytes[T Float](b Backend[T], rows, cols, nnz int) int64 {
	if s, ok := b.(SparseBackend[T]); ok {
		return s.SparseBytes(rows, cols, nnz)
	}
	hi, lo := bits.Mul64(uint64(rows)*uint64(unsafe.Sizeof(T(0))), uint64(cols))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

package backend

import (
	"math"
	"math/bits"
	"unsafe"

	"github.com/mercer-go/mercer/host"
)

// CSR is a sparse matrix in Go memory, in compressed sparse rows.
type CSR[T Float] = host.CSR[T]

// SparseBackend is a Backend with an optional ability, found by assertion: matrices of which only
// the elements that a CSR stores take memory and work. The Backend that With returns has the
// ability too. PlaceSparse gives every Backend the matrix of a CSR.
//
// A sparse matrix is an argument of Gram and GramMul, as X and Z together, of GramPacked, as X, and
// of Gemm, as A, where B and C are dense and op(B) is B. Its View has all columns. Anything else is
// misuse.
//
// The results are those of the dense matrix within rounding: an element that is not stored is a 0
// in every respect, and 0·NaN is NaN. The work of a product xᵀz is the number of columns that
// both rows store. Distances are computed from norms and the columns in common, and again from the
// differences where more than ten bits cancel: their error is at most 2¹²γ‖x−z‖² and equal rows
// have distance 0, with γ that of a sum over the elements of both rows.
type SparseBackend[T Float] interface {
	Backend[T]
	// SparseBytes returns the bytes that NewSparse takes, in addition to the CSR itself, for a
	// rows × cols matrix that stores nnz elements.
	SparseBytes(rows, cols, nnz int) int64
	// NewSparse returns the matrix x, or a *MemoryError. x is checked, and a fault of it is
	// misuse. The result, a SparseMatrix, may share the memory of x, which must not change before Free.
	NewSparse(x CSR[T]) (Matrix[T], error)
}

// SparseMatrix is a Matrix that NewSparse made, or a View of one.
type SparseMatrix[T Float] interface {
	Matrix[T]
	CSR() CSR[T] // the elements, for reading only
}

// PlaceSparse returns a matrix on b's device with the elements of x, for reading only. It is
// sparse if b is a SparseBackend and a dense copy otherwise. The caller frees it.
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

// SparseBytes returns the memory on the device that PlaceSparse takes for a rows × cols matrix that
// stores nnz elements.
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

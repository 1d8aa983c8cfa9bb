package ukr

import "unsafe"

// SparseRows is the largest number of rows of A in a Sparse product.
const SparseRows = 4

// Sparse is the argument of Kernels.Sparse: C ← A B, where A has M ≤ SparseRows rows and only K nonzero columns. A
// points to these columns, of SparseRows elements each. B points to N packed panels of NR columns, Ldb elements apart.
// Column p of A is multiplied by the row of each panel that begins at offset At[p]. Rows of C are Ldc elements apart.
//
// tools/asmgen relies on the field order.
type Sparse[T Float] struct {
	A, B, C  *T
	K, M, N  int
	Ldc, Ldb int
	At       *int32
}

func sparseGeneric[T Float](s *Sparse[T]) {
	a, offsets := sliceAt(s.A, 0, s.K*SparseRows), unsafe.Slice(s.At, s.K)
	for r := range s.M {
		for n := range s.N {
			c := sliceAt(s.C, r*s.Ldc+n*genericNR, genericNR)
			clear(c)
			for p, offset := range offsets {
				addMultiple(c, a[p*SparseRows+r], sliceAt(s.B, n*s.Ldb+int(offset), genericNR))
			}
		}
	}
}

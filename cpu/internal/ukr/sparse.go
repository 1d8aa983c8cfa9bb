package ukr

import "unsafe"

// SparseRows is how many rows of A a Sparse product has.
const SparseRows = 4

// Sparse is the argument of Kernels.Sparse: C ← A B, where A has M ≤ SparseRows rows
// that are 0 but in K columns. A points to those columns, SparseRows elements each;
// column p belongs to the row of B that begins At_p elements after the first, in each of
// N packed panels of NR columns, Ldb elements apart. Rows of C are Ldc elements apart.
//
// The field order is known to tools/asmgen.
type Sparse[T Float] struct {
	A, B, C  *T
	K, M, N  int
	Ldc, Ldb int
	At       *int32
}

func sparseGeneric[T Float](s *Sparse[T]) {
	a, places := at(s.A, 0, s.K*SparseRows), unsafe.Slice(s.At, s.K)
	for r := range s.M {
		for n := range s.N {
			c := at(s.C, r*s.Ldc+n*genericNR, genericNR)
			clear(c)
			for p, place := range places {
				addMultiple(c, a[p*SparseRows+r], at(s.B, n*s.Ldb+int(place), genericNR))
			}
		}
	}
}

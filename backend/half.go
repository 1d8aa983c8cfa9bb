package backend

import "github.com/mercer-go/mercer/kernels"

// Half is a symmetric matrix, or the lower triangle that it was factored into,
// in the memory of the device that made it: in half the memory of a Matrix of
// that order. How its elements lie there is the device's affair.
type Half[T Float] interface {
	// Order is the number of rows, and of columns.
	Order() int
	// Leading returns the part of the first n rows and columns. It shares
	// memory with the half and must not be used after its Free.
	Leading(n int) Half[T]
	// Free gives the memory back. On a leading part it does nothing.
	Free()
}

// HalfBackend is a Backend with an optional ability, found by assertion:
// symmetric matrices in half storage, factored in place at the speed of full
// storage. What With returns has it too. What Backend says of queueing, waiting,
// overlap, NaN and workers holds here as well.
type HalfBackend[T Float] interface {
	Backend[T]
	// HalfBytes returns what NewHalf(n) takes: n(n+1)/2 elements and at most
	// 64(n+1) more. It is math.MaxInt64 when that is no number of bytes.
	HalfBytes(n int) int64
	// NewHalf returns a matrix of zeros of order n, or a *MemoryError.
	NewHalf(n int) (Half[T], error)
	// UploadHalf waits: rows first, first+1, … of dst ← those of src, from
	// column 0 to the diagonal. src is r × (first + r); what stands right of
	// the diagonal is not read.
	UploadHalf(dst Half[T], first int, src Host[T]) error
	// DownloadHalf waits: dst ← rows first, first+1, … of src, from column 0
	// to the diagonal. dst is r × (first + r); what stands right of the
	// diagonal is not written.
	DownloadHalf(dst Host[T], src Half[T], first int) error
	// GramHalf queues dst ← k(X, X) for the rows of X, n × d. The diagonal is
	// k(x_i, x_i) with distances of exactly 0.
	GramHalf(dst Half[T], k kernels.Kernel, x Matrix[T])
	// AddDiagHalf queues A_ii ← A_ii + d_i; a d of length 1 is used for every
	// i. d may be changed once the call has returned.
	AddDiagHalf(d []T, a Half[T])
	// DiagHalf waits: dst_i ← A_ii.
	DiagHalf(dst []T, a Half[T]) error
	// SymmHalf queues C ← α A B + β C.
	SymmHalf(alpha T, a Half[T], b Matrix[T], beta T, c Matrix[T])
	// PotrfHalf waits: A = L Lᵀ, L in place of A. It returns a *PivotError
	// when a pivot is not a positive finite number; the leading part of the
	// factor is valid then.
	PotrfHalf(a Half[T]) error
	// TrsmHalf queues B ← op(L)⁻¹ B, L being the lower triangle of A. After
	// PotrfHalf, NoTrans and then Transpose solve A X = B. A zero on the
	// diagonal gives Inf or NaN.
	TrsmHalf(t Trans, a Half[T], b Matrix[T])
}

// CheckNewHalf panics unless n ≥ 0.
func CheckNewHalf(n int) {
	if n < 0 {
		misuse("NewHalf", "negative order: %d", n)
	}
}

// CheckLeading panics unless 0 ≤ n ≤ order.
func CheckLeading(n, order int) {
	if n < 0 || n > order {
		misuse("Half.Leading", "%d rows of a half of order %d", n, order)
	}
}

// CheckTransferHalf panics unless h is well formed and holds rows of a from
// first on.
func CheckTransferHalf[T Float](op string, a Half[T], first int, h Host[T]) {
	CheckHost(op, h)
	n := a.Order()
	if first < 0 || first > n || h.Rows > n-first || h.Cols != first+h.Rows {
		misuse(op, "host matrix %d×%d does not hold rows from %d on of a half of order %d", h.Rows, h.Cols, first, n)
	}
}

// CheckGramHalf panics unless X is n × d for dst of order n and the kernel's
// parameters obey their rules.
func CheckGramHalf[T Float](dst Half[T], k kernels.Kernel, x Matrix[T]) (n, d int) {
	n, _, d = checkPoints("GramHalf", k, x, x)
	if dst.Order() != n {
		misuse("GramHalf", "dst must have order %d, has %d", n, dst.Order())
	}
	return n, d
}

// CheckAddDiagHalf panics unless d has 1 or n elements for A of order n.
func CheckAddDiagHalf[T Float](d []T, a Half[T]) (n int) {
	n = a.Order()
	if len(d) != 1 && len(d) != n {
		misuse("AddDiagHalf", "d has %d elements for a half of order %d; it must have 1 or %d", len(d), n, n)
	}
	return n
}

// CheckDiagHalf panics unless dst has n elements for A of order n.
func CheckDiagHalf[T Float](dst []T, a Half[T]) (n int) {
	n = a.Order()
	if len(dst) != n {
		misuse("DiagHalf", "dst has %d elements for a half of order %d", len(dst), n)
	}
	return n
}

// CheckSymmHalf panics unless B and C are n × t for A of order n.
func CheckSymmHalf[T Float](a Half[T], b, c Matrix[T]) (n, t int) {
	n = a.Order()
	br, t := b.Dims()
	cr, cc := c.Dims()
	if br != n || cr != n || cc != t {
		misuse("SymmHalf", "shapes do not fit: A %d×%d, B %d×%d, C %d×%d", n, n, br, t, cr, cc)
	}
	return n, t
}

// CheckTrsmHalf panics unless B is n × m for A of order n.
func CheckTrsmHalf[T Float](t Trans, a Half[T], b Matrix[T]) (n, m int) {
	checkTrans("TrsmHalf", t)
	n = a.Order()
	br, m := b.Dims()
	if br != n {
		misuse("TrsmHalf", "shapes do not fit: A %d×%d on the Left of B %d×%d", n, n, br, m)
	}
	return n, m
}

// RoughBackend is a HalfBackend with a faster factorisation that is good enough
// to precondition with, found by assertion.
type RoughBackend[T Float] interface {
	HalfBackend[T]
	// RoughUnit is to what relative precision PotrfHalfRough rounds the factors
	// of products: 2⁻¹¹ for NVIDIA's TF32, whose sums are in float32. It is 0
	// where nothing is faster than PotrfHalf.
	RoughUnit() float64
	// PotrfHalfRough is PotrfHalf with those products for what lies off the
	// diagonal and its blocks; the triangles and the solves with them stay in T.
	// So LLᵀ differs from A by RoughUnit times some of |L||Lᵀ|.
	PotrfHalfRough(a Half[T]) error
}

// Rates are how fast a Device multiplies large matrices, relative to float64.
type Rates struct {
	Single float64 // float32
	Rough  float64 // float32 in PotrfHalfRough; 0: there is none
	Values float64 // evaluations of kernels in float32
}

// Rated is an optional ability of a Device: package solvers weighs its methods by
// the rates.
type Rated interface{ Rates() Rates }

// Keeper is an optional ability of a Backend, found by assertion.
type Keeper[T Float] interface {
	// PotrfKeep waits: A = UᵀU for a symmetric A that is given by its lower
	// triangle, U in its upper one; what is below the diagonal stays. A
	// *PivotError is that of Potrf.
	PotrfKeep(a Matrix[T]) error
}

// HostHalfBackend is a HalfBackend with the optional ability, found by assertion,
// to work on halves that are larger than its device: their elements are in the
// memory of the host, page-locked, and go through the device in panels. Every
// method takes such a Half as it takes others.
type HostHalfBackend[T Float] interface {
	HalfBackend[T]
	// NewHostHalf returns a matrix whose elements are undefined, or a
	// *MemoryError that says which memory is too small.
	NewHostHalf(n int) (Half[T], error)
	// HostHalfBytes returns what NewHostHalf(n) takes on the device, as InUse
	// counts it, and of the host.
	HostHalfBytes(n int) (device, host int64)
	// HostFree is how many bytes of the host halves may still take.
	HostFree() int64
}

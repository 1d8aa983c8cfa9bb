package backend

import (
	"math"

	"github.com/mercer-go/mercer/kernels"
)

// FixedBackend is a PackedBackend with the optional ability, found by assertion, to
// store Gram matrices with 16 bits for an element. Off the diagonal element (i, j) is
//
//	low + c_ij (high − low)/65535,  c_ij the nearest integer,
//
// low and high being the Bounds of the kernel, so that it is off by a half of the step
// at most, beside the error of k(x_i, x_j) in T. (A step has at least 2⁻²⁰ of the larger
// bound, which T can tell from it.) The diagonal is stored in T.
//
// GramPacked, AddDiagPacked, DiagPacked, SymmPacked and DownloadPacked take such a
// Packed as they take others. A kernel without Bounds is misuse. A value that is not a
// number within them, such as NaN of an infinite feature, has no code: then the next method that
// waits returns a *RangeError, and the matrix is of no use. A column of B that is not
// finite gives one of C that is not. The other methods panic.
type FixedBackend[T Float] interface {
	PackedBackend[T]
	// NewFixed returns a matrix of zeros of order n, or a *MemoryError.
	NewFixed(n int) (Packed[T], error)
	// FixedBytes returns what NewFixed(n) takes: 2 bytes for each element of a
	// triangle and at most 512(n+1) more. It is math.MaxInt64 when that is no number of
	// bytes.
	FixedBytes(n int) int64
}

// CheckGramFixed panics unless the kernel has bounds for d features.
func CheckGramFixed(k kernels.Kernel, d int) (c Coding) {
	low, high, ok := kernels.Bounds(k, d)
	if !ok {
		misuse("GramPacked", "the values of %v have no known bounds, which 16 bits need", k)
	}
	return Coding{Low: low, Step: max((high-low)/math.MaxUint16, 0x1p-20*max(-low, high))}
}

// A Coding is how values are stored in 16 bits: as c·Step + Low.
type Coding struct{ Low, Step float64 }

// Factors are a and b such that a·v + b, rounded, is the code of v.
func (c Coding) Factors() (a, b float64) {
	if c.Step == 0 {
		return 0, 0
	}
	return 1 / c.Step, -c.Low / c.Step
}

// Value is that of a code.
func (c Coding) Value(code uint16) float64 { return c.Low + float64(code)*c.Step }

// Check returns a *RangeError unless element (i, j) is within a half of the step of the
// bounds.
func (c Coding) Check(i, j int, value float64) error {
	low, high := c.Low, c.Value(math.MaxUint16)
	if value >= low-c.Step/2 && value <= high+c.Step/2 {
		return nil
	}
	return &RangeError{i, j, value, low, high}
}

// NoFixed panics: a method does not take a matrix of 16 bits.
func NoFixed(op string) { misuse(op, "the matrix has 16 bits for an element") }

// PackedNarrower is a Device with the optional ability, found by assertion, to round
// a packed matrix to float32: both are its own, of the same order, and no leading parts.
type PackedNarrower interface {
	// NarrowPacked queues dst ← src, rounded to nearest.
	NarrowPacked(dst Packed[float32], src Packed[float64])
}

// CheckNarrowPacked panics unless the orders are equal.
func CheckNarrowPacked(dst Packed[float32], src Packed[float64]) {
	if dst.Order() != src.Order() {
		misuse("NarrowPacked", "orders differ: %d and %d", dst.Order(), src.Order())
	}
}

// CheckNewPacked panics unless n ≥ 0.
func CheckNewPacked(n int) {
	if n < 0 {
		misuse("NewPacked", "negative order: %d", n)
	}
}

// CheckLeading panics unless 0 ≤ n ≤ order.
func CheckLeading(n, order int) {
	if n < 0 || n > order {
		misuse("Packed.Leading", "%d rows of a packed matrix of order %d", n, order)
	}
}

// CheckTransferPacked panics unless h is well formed and holds rows of a from
// first on.
func CheckTransferPacked[T Float](op string, a Packed[T], first int, h Host[T]) {
	CheckHost(op, h)
	n := a.Order()
	if first < 0 || first > n || h.Rows > n-first || h.Cols != first+h.Rows {
		misuse(op, "host matrix %d×%d does not hold rows from %d on of a packed matrix of order %d", h.Rows, h.Cols, first, n)
	}
}

// CheckGramPacked panics unless X is n × d for dst of order n and the kernel's
// parameters obey their rules.
func CheckGramPacked[T Float](dst Packed[T], k kernels.Kernel, x Matrix[T]) (n, d int) {
	n, _, d = checkPoints("GramPacked", k, x, x)
	if dst.Order() != n {
		misuse("GramPacked", "dst must have order %d, has %d", n, dst.Order())
	}
	return n, d
}

// CheckAddDiagPacked panics unless d has 1 or n elements for A of order n.
func CheckAddDiagPacked[T Float](d []T, a Packed[T]) (n int) {
	n = a.Order()
	if len(d) != 1 && len(d) != n {
		misuse("AddDiagPacked", "d has %d elements for a packed matrix of order %d; it must have 1 or %d", len(d), n, n)
	}
	return n
}

// CheckDiagPacked panics unless dst has n elements for A of order n.
func CheckDiagPacked[T Float](dst []T, a Packed[T]) (n int) {
	n = a.Order()
	if len(dst) != n {
		misuse("DiagPacked", "dst has %d elements for a packed matrix of order %d", len(dst), n)
	}
	return n
}

// CheckSymmPacked panics unless B and C are n × t for A of order n.
func CheckSymmPacked[T Float](a Packed[T], b, c Matrix[T]) (n, t int) {
	n = a.Order()
	br, t := b.Dims()
	cr, cc := c.Dims()
	if br != n || cr != n || cc != t {
		misuse("SymmPacked", "shapes do not fit: A %d×%d, B %d×%d, C %d×%d", n, n, br, t, cr, cc)
	}
	return n, t
}

// CheckTrsmPacked panics unless B is n × m for A of order n.
func CheckTrsmPacked[T Float](t Trans, a Packed[T], b Matrix[T]) (n, m int) {
	checkTrans("TrsmPacked", t)
	n = a.Order()
	br, m := b.Dims()
	if br != n {
		misuse("TrsmPacked", "shapes do not fit: A %d×%d on the Left of B %d×%d", n, n, br, m)
	}
	return n, m
}

// ReducedBackend is a PackedBackend with a faster factorization that is good enough
// to precondition with, found by assertion.
type ReducedBackend[T Float] interface {
	PackedBackend[T]
	// ReducedUnit is the relative precision of the products of PotrfPackedReduced: 2⁻¹¹
	// where their factors are rounded to FP16 or NVIDIA's TF32, and sums are in float32;
	// 2⁻¹⁹ as measured for the integers of the CPU. It is 0 where nothing is faster
	// than PotrfPacked.
	ReducedUnit() float64
	// PotrfPackedReduced is PotrfPacked with those products for what lies off the
	// diagonal and its blocks; the triangles and the solves with them stay in T.
	// So element (i, j) of LLᵀ differs from that of A by about ReducedUnit·‖l_i‖‖l_j‖, with
	// the norms of rows of L.
	PotrfPackedReduced(a Packed[T]) error
}

// Rates are how fast a Device is. The first three are relative to float64; the others,
// by which package solvers models the time of its methods, are 0 where they are not
// known, and then all of them are.
type Rates struct {
	Single  float64 // large products in float32
	Reduced float64 // float32 in PotrfPackedReduced; 0: there is none
	Values  float64 // evaluations of kernels in float32

	Products float64 // operations a second of a large product in float64
	Bytes    float64 // bytes a second of the device's memory
	Pairs    float64 // instructions a second for the values of a kernel in float64
	Step     float64 // seconds of a short operation that waits for the one before it
	Solve    float64 // seconds that a triangular solve with few columns takes for each row, beside the bytes of the triangle
}

// Rated is an optional ability of a Device: package solvers weighs its methods by
// the rates.
type Rated interface{ Rates() Rates }

// PreserveBackend is an optional ability of a Backend, found by assertion.
type PreserveBackend[T Float] interface {
	// PotrfPreserve waits: A = UᵀU for a symmetric A that is given by its lower
	// triangle, U in its upper one; what is below the diagonal stays. A
	// *PivotError is that of Potrf.
	PotrfPreserve(a Matrix[T]) error
}

// HostPackedBackend is a PackedBackend with the optional ability, found by assertion,
// to work on packed matrices that are larger than its device: their elements are in the
// memory of the host, page-locked, and go through the device in panels. Every
// method takes such a Packed as it takes others.
type HostPackedBackend[T Float] interface {
	PackedBackend[T]
	// NewHostPacked returns a matrix whose elements are undefined, or a
	// *MemoryError that says which memory is too small.
	NewHostPacked(n int) (Packed[T], error)
	// HostPackedBytes returns what NewHostPacked(n) takes on the device, as InUse
	// counts it, and of the host.
	HostPackedBytes(n int) (device, host int64)
	// HostFree is how many bytes of the host packed matrices may still take.
	HostFree() int64
}

package backend

import (
	"math"
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

// A Coding is how values are stored in 16 bits: as c·Step + Low.
type Coding struct{ Low, Step float64 }

// Factors are a and b such that a·v + b, rounded, is the code of v.
func (c Coding) Factors() (a, b float64) {
	if c.Step == 0 {
		return 0, 0
	}
	return 1 / c.Step, -c.Low / c.Step
}

// Value returns the value of a code.
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

// PackedNarrower is a Device with the optional ability, found by assertion, to round
// a packed matrix to float32: both are its own, of the same order, and no leading parts.
type PackedNarrower interface {
	// NarrowPacked queues dst ← src, rounded to nearest.
	NarrowPacked(dst Packed[float32], src Packed[float64])
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
	// PotrfPackedReduced is PotrfPacked with these products for the elements outside the diagonal
	// blocks; the triangles and the solves with them stay in T. Element (i, j) of LLᵀ differs from
	// element (i, j) of A by about ReducedUnit·‖l_i‖‖l_j‖, with the norms of rows of L.
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
	Step     float64 // seconds of a short operation that waits for the previous operation
	Solve    float64 // seconds that a triangular solve with few columns takes for each row, beside the bytes of the triangle
}

// Rated is an optional ability of a Device: package solvers weighs its methods by
// the rates.
type Rated interface{ Rates() Rates }

// PreserveBackend is an optional ability of a Backend, found by assertion.
type PreserveBackend[T Float] interface {
	// PotrfPreserve waits: A = UᵀU for a symmetric A that is given by its lower
	// triangle, U in its upper one; elements below the diagonal are not changed. It returns a
	// *PivotError as Potrf does.
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

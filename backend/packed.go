package backend

import (
	"math"
)

// FixedBackend is a PackedBackend with the optional ability, found by assertion, to
// store Gram matrices with 16 bits for an element. Off the diagonal element (i, j) is
//
//	low + c_ij (high − low)/65535,  c_ij the nearest integer,
//
// low and high are the Bounds of the kernel. So an element is off by at most half a step,
// besides the error of k(x_i, x_j) in T. (A step is at least 2⁻²⁰ of the larger bound,
// which T can resolve.) The diagonal is stored in T.
//
// GramPacked, AddDiagPacked, DiagPacked, SymmPacked and DownloadPacked accept such a Packed
// like any other; the remaining methods panic. A kernel without Bounds is misuse. A value
// that is NaN or outside the Bounds, for example because a feature is infinite, has no
// code: the next method that waits returns a *RangeError, and the contents of the matrix
// are undefined. If a column of B is not finite, neither is that column of C.
type FixedBackend[T Float] interface {
	PackedBackend[T]
	// NewFixed returns a matrix of zeros of order n, or a *MemoryError.
	NewFixed(n int) (Packed[T], error)
	// FixedBytes returns the bytes of NewFixed(n): 2 for each element of a triangle and
	// at most 512(n+1) more. It is math.MaxInt64 if the number of bytes overflows.
	FixedBytes(n int) int64
}

// A Coding is the mapping of values to codes of 16 bits: the value of code c is c·Step +
// Low.
type Coding struct{ Low, Step float64 }

// Factors returns a and b such that a·v + b, rounded, is the code of v.
func (c Coding) Factors() (a, b float64) {
	if c.Step == 0 {
		return 0, 0
	}
	return 1 / c.Step, -c.Low / c.Step
}

// Value returns the value of a code.
func (c Coding) Value(code uint16) float64 { return c.Low + float64(code)*c.Step }

// Check returns a *RangeError unless value, of element (i, j), is within the bounds or at
// most half a step outside.
func (c Coding) Check(i, j int, value float64) error {
	low, high := c.Low, c.Value(math.MaxUint16)
	if value >= low-c.Step/2 && value <= high+c.Step/2 {
		return nil
	}
	return &RangeError{i, j, value, low, high}
}

// PackedNarrower is a Device with the optional ability, found by assertion, to round a
// packed matrix to float32. Both matrices must belong to the device, have the same order,
// and not be leading parts.
type PackedNarrower interface {
	// NarrowPacked queues dst ← src, rounded to nearest.
	NarrowPacked(dst Packed[float32], src Packed[float64])
}

// ReducedBackend is a PackedBackend with an optional ability, found by assertion: a faster
// factorization that is accurate enough for a preconditioner.
type ReducedBackend[T Float] interface {
	PackedBackend[T]
	// ReducedUnit returns the relative precision of the products in PotrfPackedReduced:
	// 2⁻¹¹ if their factors are rounded to FP16 or NVIDIA's TF32 and summed in float32;
	// 2⁻¹⁹, as measured, for the integers of the CPU. It is 0 if nothing is faster than
	// PotrfPacked.
	ReducedUnit() float64
	// PotrfPackedReduced is PotrfPacked with products of reduced precision for the elements
	// outside the diagonal blocks. The factors of the diagonal blocks and the solves with
	// them are computed in T. Element (i, j) of LLᵀ differs from element (i, j) of A by
	// about ReducedUnit·‖l_i‖‖l_j‖, with the norms of rows of L.
	PotrfPackedReduced(a Packed[T]) error
}

// Rates are the speeds of a Device. The first three are relative to float64. From the
// others package solvers models the time of its methods; if one of them is unknown, all of
// them are 0.
type Rates struct {
	Single  float64 // large products in float32
	Reduced float64 // PotrfPackedReduced in float32; 0 if not supported
	Values  float64 // evaluations of kernels in float32

	Products float64 // operations a second of a large product in float64
	Bytes    float64 // bytes a second of the device's memory
	Pairs    float64 // instructions a second for the values of a kernel in float64
	Step     float64 // seconds of a short operation that waits for the previous operation
	Solve    float64 // seconds per row of a triangular solve with a small number of columns, in addition to the time of reading the triangle
	// ReducedSolve is Solve for a factor of PotrfPackedReduced; 0 means the same as Solve.
	ReducedSolve float64
}

// Rated is an optional ability of a Device: package solvers chooses its methods by the
// rates.
type Rated interface{ Rates() Rates }

// UploadBackend is a Backend with an optional ability, found by assertion: uploads that do not
// wait for all earlier work, so that a device works while the next samples are copied to it.
type UploadBackend[T Float] interface {
	Backend[T]
	// Mark queues a mark with the number 0 or 1, which replaces the earlier mark of this number.
	Mark(slot int)
	// UploadAfter is Upload, except that the copy waits only for the work that was queued before
	// the last Mark(slot). Work that is queued after UploadAfter waits for the copy. Work between
	// the mark and UploadAfter must not use dst; New, which clears the memory of dst, is such work.
	// Without a mark the copy waits for no work.
	UploadAfter(slot int, dst Matrix[T], src Host[T]) error
}

// PreserveBackend is an optional ability of a Backend, found by assertion.
type PreserveBackend[T Float] interface {
	// PotrfPreserve waits: it factors A = UᵀU for a symmetric A given by its lower
	// triangle, and stores U in the upper triangle. Elements below the diagonal are not
	// changed. It returns a *PivotError as Potrf does.
	PotrfPreserve(a Matrix[T]) error
}

// HostPackedBackend is a PackedBackend with an optional ability, found by assertion: packed
// matrices that are larger than the memory of the device. Their elements are stored in
// page-locked memory of the host and pass through the device in panels. Every method
// accepts such a Packed like any other.
type HostPackedBackend[T Float] interface {
	PackedBackend[T]
	// NewHostPacked returns a matrix whose elements are undefined, or a
	// *MemoryError that says which memory is too small.
	NewHostPacked(n int) (Packed[T], error)
	// HostPackedBytes returns the bytes that NewHostPacked(n) takes on the device, as InUse
	// counts them, and on the host.
	HostPackedBytes(n int) (device, host int64)
	// HostFree returns the bytes of host memory that packed matrices may still take.
	HostFree() int64
}

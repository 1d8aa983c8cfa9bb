package backend

// FixedBackend is a PackedBackend that can also store Gram matrices with 16 bits per element. A
// type assertion finds this optional ability. Off the diagonal, element (i, j) is
//
//	low + c_ij (high − low)/65535,  c_ij the nearest integer,
//
// where low and high are the Bounds of the kernel. A step is (high − low)/65535. The error of an
// element is at most half a step plus the error of k(x_i, x_j) in T. (A step is at least 2⁻²⁰ of
// the larger bound, which T can resolve.) The diagonal is stored in T.
//
// GramPacked, AddDiagPacked, DiagPacked, SymmPacked and DownloadPacked accept such a matrix; the
// other methods panic. GramPacked panics if the kernel has no Bounds. If a value is NaN or outside
// the Bounds, for example because a feature is infinite, the next method that waits returns a
// *RangeError, and the elements of the matrix are undefined. If a column of B in SymmPacked is not
// finite, the same column of C is not finite.
type FixedBackend[T Float] interface {
	PackedBackend[T]
	// NewFixed returns a matrix of zeros of order n, or a *MemoryError.
	NewFixed(n int) (Packed[T], error)
	// FixedBytes returns the number of bytes that NewFixed(n) takes: 2 for each element of a
	// triangle and at most 512(n+1) more. The result is math.MaxInt64 if the number overflows.
	FixedBytes(n int) int64
}

// PackedNarrower is an optional ability of a Device, found by type assertion, to round a packed
// matrix to float32. Both matrices must belong to the device, have the same order, and not be
// leading parts.
type PackedNarrower interface {
	// NarrowPacked queues dst ← src, rounded to nearest.
	NarrowPacked(dst Packed[float32], src Packed[float64])
}

// ReducedBackend is a PackedBackend that also has a faster factorization, accurate enough for a
// preconditioner. A type assertion finds this optional ability.
type ReducedBackend[T Float] interface {
	PackedBackend[T]
	// ReducedUnit returns the relative precision of the products in PotrfPackedReduced: 2⁻¹¹ on a
	// GPU that rounds factors to FP16 or TF32 and sums products in float32; 2⁻¹⁹, as measured, on a
	// CPU that multiplies 16-bit integers; 0 if PotrfPackedReduced is not faster than PotrfPacked.
	ReducedUnit() float64
	// PotrfPackedReduced is like PotrfPacked, but computes the elements outside the diagonal blocks
	// by products of reduced precision. The factors of the diagonal blocks and the solves with them
	// are computed in T. Element (i, j) of LLᵀ differs from that of A by about
	// ReducedUnit·‖l_i‖‖l_j‖, where l_i is row i of L.
	PotrfPackedReduced(a Packed[T]) error
}

// UploadBackend is an optional ability of a Backend, found by type assertion, to upload without
// waiting for all earlier work, so that a device works while the next samples are copied to it.
type UploadBackend[T Float] interface {
	Backend[T]
	// Mark queues a mark with the number slot, 0 or 1. The new mark replaces the earlier mark of
	// that number.
	Mark(slot int)
	// UploadAfter is like Upload, but the copy waits only for the work queued before the last
	// Mark(slot). Work that is queued after UploadAfter waits for the copy. dst must exist before
	// Mark, because New clears the memory of a matrix, and no work queued between Mark and
	// UploadAfter may use dst. Without a mark the copy waits for no work.
	UploadAfter(slot int, dst Matrix[T], src Host[T]) error
}

// PreserveBackend is an optional ability of a Backend, found by type assertion.
type PreserveBackend[T Float] interface {
	// PotrfPreserve factors A = UᵀU for a symmetric A given by its lower triangle, stores U in the
	// upper triangle and waits for U. Elements below the diagonal are not changed. It returns a
	// *PivotError in the same cases as Potrf.
	PotrfPreserve(a Matrix[T]) error
}

// HostPackedBackend is a PackedBackend that also has packed matrices larger than the memory of the
// device. Their elements are stored in page-locked memory of the host and are copied to the device
// in panels. All methods accept them. A type assertion finds this optional ability.
type HostPackedBackend[T Float] interface {
	PackedBackend[T]
	// NewHostPacked returns a matrix whose elements are undefined, or a *MemoryError that names the
	// memory, host or device, that is too small.
	NewHostPacked(n int) (Packed[T], error)
	// HostPackedBytes returns the bytes that NewHostPacked(n) takes on the device, as InUse
	// counts them, and on the host.
	HostPackedBytes(n int) (device, host int64)
	// HostFree returns the bytes of host memory that packed matrices may still take.
	HostFree() int64
}

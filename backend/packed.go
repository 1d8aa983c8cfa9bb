package backend

// FixedBackend is a PackedBackend that can also store Gram matrices with 16 bits per element. A
// type assertion finds this optional ability. An element (i, j) off the diagonal is
//
//	low + c_ij (high − low)/65535,  c_ij an integer from 0 to 65535,
//
// where low and high are the Bounds of the kernel, and c_ij gives the number nearest to k(x_i,
// x_j). The error of an element is at most half a step plus the error of k(x_i, x_j) in T, where a
// step is (high − low)/65535. A step is at least 2⁻²⁰ times the larger bound, which T can
// represent. The diagonal is stored in T.
//
// GramPacked, AddDiagPacked, DiagPacked, SymmPacked and DownloadPacked accept such a matrix; the
// other methods panic. GramPacked panics if the kernel has no Bounds. If a value is NaN or outside
// the Bounds, for example because a feature is infinite, the next method that waits returns a
// *RangeError, and the elements of the matrix are undefined. If B in SymmPacked has an element that
// is not finite, the corresponding column of C is not finite.
type FixedBackend[T Float] interface {
	PackedBackend[T]
	// NewFixed returns a matrix of zeros of order n, or a *MemoryError.
	NewFixed(n int) (Packed[T], error)
	// FixedBytes returns the number of bytes that NewFixed(n) takes: 2 for each element of a
	// triangle, and at most 512(n+1) further bytes. If the number overflows, the result is
	// math.MaxInt64.
	FixedBytes(n int) int64
}

// PackedNarrower is an optional ability of a Device, found by a type assertion: it rounds a packed
// matrix to float32. Both matrices must belong to the device and have the same order. Neither may
// be a leading part.
type PackedNarrower interface {
	// NarrowPacked queues dst ← src, rounded to nearest.
	NarrowPacked(dst Packed[float32], src Packed[float64])
}

// ReducedBackend is a PackedBackend that also has a faster factorization, accurate enough for a
// preconditioner. A type assertion finds this optional ability.
type ReducedBackend[T Float] interface {
	PackedBackend[T]
	// ReducedUnit returns the relative precision of the products in PotrfPackedReduced. It is 2⁻¹¹
	// on a GPU that rounds factors to FP16 or TF32 and sums products in float32. It is 2⁻¹⁹, as
	// measured, on a CPU that multiplies 16-bit integers. It is 0 if PotrfPackedReduced is not
	// faster than PotrfPacked.
	ReducedUnit() float64
	// PotrfPackedReduced is PotrfPacked with products of reduced precision outside the diagonal
	// blocks. It factors the diagonal blocks, and solves with their factors, in T. Element (i, j)
	// of LLᵀ − A is about ReducedUnit·‖l_i‖‖l_j‖, where l_i is row i of L.
	PotrfPackedReduced(a Packed[T]) error
}

// UploadBackend is an optional ability of a Backend, found by a type assertion: an upload need not
// wait for all earlier work. The device can compute while the next samples are copied to it.
type UploadBackend[T Float] interface {
	Backend[T]
	// Mark queues a mark with the number slot, 0 or 1. It replaces an earlier mark with the same
	// number.
	Mark(slot int)
	// UploadAfter is Upload, but the copy waits only for the work that was queued before the last
	// Mark(slot). If there is no such mark, it waits for no work. Work queued after UploadAfter
	// waits for the copy. dst must exist before Mark, because New clears the memory of a matrix. No
	// work that is queued between Mark and UploadAfter may use dst.
	UploadAfter(slot int, dst Matrix[T], src Host[T]) error
}

// PreserveBackend is an optional ability of a Backend, found by a type assertion: a factorization
// that preserves the matrix.
type PreserveBackend[T Float] interface {
	// PotrfPreserve factors A = UᵀU for a symmetric A given by its lower triangle, stores U in the
	// upper triangle and waits. The elements below the diagonal do not change. Errors are those of
	// Potrf.
	PotrfPreserve(a Matrix[T]) error
}

// HostPackedBackend is a PackedBackend that also has packed matrices larger than the memory of the
// device. Their elements are in page-locked memory of the host; all methods accept them and copy
// panels to the device. A type assertion finds this optional ability.
type HostPackedBackend[T Float] interface {
	PackedBackend[T]
	// NewHostPacked returns a matrix with undefined elements. If the memory of the host or of the
	// device is too small, it returns a *MemoryError that names this memory.
	NewHostPacked(n int) (Packed[T], error)
	// HostPackedBytes returns the numbers of bytes that NewHostPacked(n) takes on the device, as
	// InUse counts them, and on the host.
	HostPackedBytes(n int) (device, host int64)
	// HostFree returns the number of free bytes of host memory for packed matrices.
	HostFree() int64
}

package backend

// FixedBackend is a PackedBackend that can also store Gram matrices with 16 bits per element. It is an optional
// ability, found by a type assertion. An element (i, j) off the diagonal is the number nearest to k(x_i, x_j) of
//
//	low + c·step,  c = 0, 1, …, 65535,
//
// where low and high are the Bounds of the kernel, and step is the larger of (high − low)/65535 and
// 2⁻²⁰·max(−low, high). The error is at most step/2 plus the error of k(x_i, x_j) in T. The diagonal is stored in T.
//
// GramPacked, AddDiagPacked, DiagPacked, SymmPacked and DownloadPacked accept such a matrix; the other methods
// panic. GramPacked panics if the kernel has no Bounds. If a value is NaN or more than step/2 outside the range of
// these numbers, the next method that waits returns a *RangeError, and the elements of the matrix are undefined. If
// B in SymmPacked has an element that is not finite, no element in its column of C is finite.
type FixedBackend[T Float] interface {
	PackedBackend[T]
	// NewFixed returns a matrix of zeros of order n, or a *MemoryError.
	NewFixed(n int) (Packed[T], error)
	// FixedBytes returns the number of bytes that NewFixed(n) takes: 2 for each element of a triangle, and at most
	// 512(n+1) further bytes, or math.MaxInt64 if the number overflows.
	FixedBytes(n int) int64
}

// PackedNarrower is an optional ability of a Device, found by a type assertion: it rounds a packed matrix to
// float32. Both matrices must belong to the device and have the same order. Neither may be a leading part.
type PackedNarrower interface {
	// NarrowPacked queues dst ← src, rounded to nearest.
	NarrowPacked(dst Packed[float32], src Packed[float64])
}

// ReducedBackend is a PackedBackend that also has a faster factorization, accurate enough for a preconditioner. It
// is an optional ability, found by a type assertion.
type ReducedBackend[T Float] interface {
	PackedBackend[T]
	// ReducedUnit returns the relative precision of the products in PotrfPackedReduced: 2⁻¹¹ on a GPU that rounds
	// factors to FP16 or TF32, 2⁻¹⁹, as measured, on a CPU that multiplies 16-bit integers, or 0 if
	// PotrfPackedReduced is not faster than PotrfPacked.
	ReducedUnit() float64
	// PotrfPackedReduced is PotrfPacked with products of reduced precision outside the diagonal blocks. LLᵀ − A has
	// elements of about ReducedUnit·‖l_i‖‖l_j‖, where l_i is row i of L.
	PotrfPackedReduced(a Packed[T]) error
}

// UploadBackend is an optional ability of a Backend: an upload need not wait for all earlier work.
type UploadBackend[T Float] interface {
	Backend[T]
	// Mark queues a mark with the number slot, 0 or 1, which replaces an earlier mark with the same number.
	Mark(slot int)
	// UploadAfter is Upload, but the copy waits only for the work that was queued before the last Mark(slot). Without
	// such a mark it waits for no work. Work queued after UploadAfter waits for the copy. dst must exist before Mark,
	// and no work that is queued between Mark and UploadAfter may use dst.
	UploadAfter(slot int, dst Matrix[T], src Host[T]) error
}

// PreserveBackend is an optional ability of a Backend: a factorization that preserves the matrix.
type PreserveBackend[T Float] interface {
	// PotrfPreserve factors A = UᵀU for a symmetric A given by its lower triangle, stores U in the upper triangle
	// and waits. The elements below the diagonal do not change. Errors are those of Potrf.
	PotrfPreserve(a Matrix[T]) error
}

// HostPackedBackend is a PackedBackend that also has packed matrices larger than the memory of the device, in
// page-locked memory of the host. All methods accept them. It is an optional ability, found by a type assertion.
type HostPackedBackend[T Float] interface {
	PackedBackend[T]
	// NewHostPacked returns a matrix with undefined elements, or a *MemoryError for the device or the host.
	NewHostPacked(n int) (Packed[T], error)
	// HostPackedBytes returns the numbers of bytes that NewHostPacked(n) takes on the device and on the host.
	HostPackedBytes(n int) (device, host int64)
	// HostFree returns the number of free bytes of host memory for packed matrices.
	HostFree() int64
}

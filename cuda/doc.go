// Package cuda runs Mercer on NVIDIA GPUs. It registers the devices cuda/0, cuda/1, …, builds without CUDA and
// without cgo, and finds the driver and, if installed, cuBLAS and cuSOLVER at run time.
//
// Levels:
//
//	driver     the device functions of internal/ptx compute everything
//	+ cuBLAS   cuBLAS computes products and triangular solves; reduced precision is available
//	+ cuSOLVER cuSOLVER factors the triangles on the diagonal in a Cholesky factorization
//
// The files, in the order in which a call passes through them:
//
//	queue.go     the work of a method of backend.Backend is divided into steps
//	executor.go  one goroutine, locked to its thread, uses the context and runs
//	             the steps in order; the steps queue their work in one stream
//	device.go    context, stream, functions, libraries, and the rates of the device
//	check.go     the small system that a device must solve before it is opened
//	memory.go    allocation; transfer.go: copies through page-locked buffers
//	product.go   products; dense.go: operations on single elements
//	trsm.go      triangular solves; potrf.go: Cholesky; reduced.go: the same with products in FP16
//	packed.go    symmetric matrices in packed storage; hostpacked.go: the same in
//	             the memory of the host
//	gram.go      Gram matrices and K·V; program.go: the kernel as the device functions read it
//
// The package does not implement backend.SparseBackend, so that backend.PlaceSparse makes a dense
// copy of a sparse matrix.
//
// Matrices are row-major. cuBLAS and cuSOLVER, whose matrices are column-major, get the transposed problem.
//
// Work is divided into steps of at most about 50 ms, with at most two steps in flight, so that work
// stops soon after its context is done.
//
// MERCER_CUDA_LIBDIR names a folder that is searched first for libraries.
package cuda

// Package cuda runs Mercer on NVIDIA GPUs. It registers the devices cuda/0, cuda/1, …,
// builds without CUDA and without cgo, and finds the driver and, if installed, cuBLAS and
// cuSOLVER at run time.
//
// Levels:
//
//	driver     the device functions of folder ptx do everything
//	+ cuBLAS   products and triangular solves go there; reduced-precision factorizations
//	+ cuSOLVER the triangles on the diagonal of a Cholesky factorization go there
//
// How a call goes:
//
//	queue.go     a method of backend.Backend becomes one step of work
//	executor.go  one goroutine, locked to its thread, has the context and runs
//	             the steps in order; they queue in one stream
//	device.go    context, stream, functions, libraries; what it can do
//	check.go     the small system that a device must solve to be opened
//	memory.go    allocation; transfer.go copies by way of page-locked buffers
//	product.go   products; dense.go what is done element by element
//	trsm.go      triangular solves; potrf.go Cholesky; reduced.go the same with products in FP16
//	packed.go      symmetric matrices in packed storage; hostpacked.go those that are in
//	             the memory of the host
//	gram.go      Gram matrices and K·V; program.go passes the kernel
//
// There is no backend.SparseBackend here: backend.PlaceSparse makes a dense copy.
//
// Matrices are row-major. A library that wants columns is given the transposed
// problem.
//
// Work is divided into steps of at most about 50 ms, with at most two steps in flight, so
// that work stops soon after its context is done.
//
// MERCER_CUDA_LIBDIR names a folder that is searched first for libraries.
package cuda

// Package cuda runs Mercer on NVIDIA GPUs. It registers the devices cuda/0,
// cuda/1, …, builds without CUDA and without cgo, and finds the driver and, where
// they are installed, cuBLAS and cuSOLVER when the program runs.
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
//	trsm.go      triangular solves; potrf.go Cholesky; tf32.go that with TF32
//	packed.go      symmetric matrices in packed storage; hostpacked.go those that are in
//	             the memory of the host
//	gram.go      Gram matrices and K·V; program.go passes the kernel
//
// Matrices are row-major. A library that wants columns is given the transposed
// problem.
//
// Steps are cut so that none should take more than about 50 ms, and two are under
// way at most: so a context that is done ends the work soon.
//
// MERCER_CUDA_LIBDIR names a folder in which libraries are looked for first.
package cuda

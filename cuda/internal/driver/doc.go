// Package driver opens NVIDIA's libraries at run time: the driver API and, if they are installed, cuBLAS and
// cuSOLVER. Building needs neither CUDA nor cgo: libraries are opened by github.com/ebitengine/purego, which
// requires the system's dynamic loader. The build tag static removes this dependency, and with it GPU support.
//
//	symbols.go  every function that is called, with its C prototype
//	load.go     the folders in which libraries are searched
//	api.go      the driver API, with one method per function
//	blas.go     cuBLAS
//	solver.go   cuSOLVER
//	result.go   result codes as errors
//
// The prototypes are those of CUDA 11.8, which versions 12 and 13 did not change. A test compiles them against
// NVIDIA's headers if these are available.
//
// A context is current for a thread of the operating system. Every method here must be called on a thread with the
// right context.
package driver

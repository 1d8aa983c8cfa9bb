// Package driver binds NVIDIA's libraries at run time: the driver API, and,
// where they are installed, cuBLAS and cuSOLVER. Nothing of CUDA is needed to
// build it, and there is no cgo: libraries are opened by
// github.com/ebitengine/purego, which makes a program need the system's loader. The
// build tag static leaves that out, and with it every GPU.
//
//	symbols.go  every function that is called, with its C prototype
//	load.go     where libraries are looked for
//	api.go      the driver API, one method a function
//	blas.go     cuBLAS
//	solver.go   cuSOLVER
//	result.go   result codes as errors
//
// Prototypes are those of CUDA 11.8, which 12 and 13 have kept. A test compiles
// them against NVIDIA's headers where those are at hand.
//
// A context is current for a thread of the operating system. Every method here
// must be called on a thread that has the right one; package cuda keeps one
// goroutine locked to its thread for each device.
package driver

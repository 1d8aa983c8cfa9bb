// Package cuctx lets Mercer work in a CUDA context that a program already has by
// gorgonia.org/cu, and on the memory in it.
//
// It is empty without the build tag cuda, for gorgonia.org/cu needs cgo, and the
// headers and the libcuda of CUDA to be built.
package cuctx

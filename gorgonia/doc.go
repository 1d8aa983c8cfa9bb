// Package gorgonia puts Mercer into Gorgonia's graphs: nodes for Gram matrices,
// for solves with them, and for kernel ridge regression, with gradients by
// implicit differentiation, so that features, a metric or a kernel's parameters
// are trained under a kernel ridge head.
//
//	Gram         K = k(X, Z)
//	Solve        α = (K + λI)⁻¹y for a symmetric K of any origin
//	KernelRidge  f = k(Z, X)(k(X, X) + λI)⁻¹y
//
// All have gradients by all that goes in: points, targets, λ, and the kernel's
// parameters. They run in a TapeMachine after Grad, and in a LispMachine. Second
// derivatives are not there. Nodes are of Float64 or Float32; the arithmetic is
// float64, and results are rounded once.
//
// Gram and Solve pass whole matrices from node to node, in the memory of the
// processor. KernelRidge keeps K and its factor on its device, and what crosses is
// as large as X: on a GPU it is the one to take.
//
// A row-major tensor in the processor's memory is worked on where it is: HostOf
// and TensorOf turn tensors into Mercer's matrices and back without a copy.
//
// Give every input a name of its own: Gorgonia takes two inputs of one name and
// shape for the same node.
//
// The package is a Go module of its own, because of what Gorgonia depends on.
// Folder cuctx, with the build tag cuda, works in a CUDA context of gorgonia.org/cu.
package gorgonia

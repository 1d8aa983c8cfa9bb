// Package gorgonia has nodes for Gorgonia's graphs: Gram matrices, solves with them, and kernel
// ridge regression. Implicit differentiation computes the gradients. A program can thus train
// features, a metric or a kernel's parameters through a kernel ridge regression.
//
//	Gram         K = k(X, Z)
//	Solve        α = (K + λI)⁻¹y for a symmetric K of any origin
//	KernelRidge  f = k(Z, X)(k(X, X) + λI)⁻¹y
//
// All nodes have gradients with respect to all inputs: points, targets, λ, and the kernel's parameters. Nodes run
// in a TapeMachine after Grad, and in a LispMachine. Second derivatives are not supported. Nodes are of Float64 or
// Float32. The arithmetic is in float64, and results are rounded once.
//
// Gram and Solve pass entire matrices from node to node, in the memory of the processor. KernelRidge keeps K and
// its factor on its device, and transfers only data of the size of X. On a GPU, KernelRidge is preferable.
//
// A row-major tensor in the processor's memory is not copied: HostOf and TensorOf turn tensors into
// Mercer's matrices and back without a copy.
//
// Give every input a unique name: Gorgonia treats two inputs of the same name and shape as one node.
//
// The package is a separate Go module, because of Gorgonia's dependencies. With the build tag cuda,
// package cuctx works in a CUDA context of gorgonia.org/cu.
package gorgonia

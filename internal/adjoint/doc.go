// Package adjoint differentiates kernel machines in reverse: given the gradient of a loss with respect to the
// output of a Gram matrix, a solve or a kernel ridge regression, it computes the gradient with respect to the
// inputs: the points, the targets, λ and the kernel's parameters. Automatic differentiation systems, such as
// package gorgonia, call it for nodes of three kinds.
//
//	Gram, GramGradient            K = k(X, Z)
//	Factor, Solve, SolveGradient  α = (K + λI)⁻¹y for any symmetric K
//	Ridge                         f = k(Z, X)(k(X, X) + λI)⁻¹y, with one factor for both passes
//
// With u = (K + λI)⁻¹∂loss/∂α, the gradients of a solve are
//
//	∂loss/∂y = u   ∂loss/∂K = −½(uαᵀ + αuᵀ)   ∂loss/∂λ = −Σ u∘α
//
// (Giles 2008, Collected matrix derivative results for forward and reverse mode algorithmic differentiation,
// section 2.2.3). The backward pass takes two triangular solves with the same factor. The gradients with respect
// to points and parameters follow from ∂loss/∂K: see GramGradient.
//
// The matrices are in the memory of the caller, and the package does not modify them. The caller owns the results.
package adjoint

// Package krylov solves A X = R for a symmetric positive definite A by preconditioned block
// conjugate gradients.
//
//	solver.go    the solver of up to BlockWidth right-hand sides together, and of more in turn
//	block.go     the iteration, with rank detection and replacement of residuals
//	state.go     what a solve needs to go on where an earlier one was ended
//	operator.go  K + λW⁻¹ as an operator: K stored, evaluated for every product, or a·XXᵀ + c·11ᵀ
package krylov

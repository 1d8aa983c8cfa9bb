// Package krylov solves A X = R for positive definite A by preconditioned block conjugate gradients.
//
//	solver.go    the solver, which divides the right-hand sides into blocks of up to BlockWidth columns
//	block.go     the iteration, with rank detection and replacement of residuals
//	state.go     the state of an interrupted solve, from which another solve continues
//	operator.go  K + λW⁻¹ as an operator, with K stored, evaluated for every product, or equal to a·XXᵀ + c·11ᵀ
package krylov

// Package gonum joins Mercer and gonum's matrices.
//
//	Host      any mat.Matrix as Mercer's row-major matrix, without a copy where it is one
//	Dense     the way back, without a copy
//	Cholesky  mat.Cholesky, factored and solved on a device of Mercer's
//
// Package cpu has what makes gonum itself faster, and knows nothing of
// Mercer's devices: its BLAS and LAPACK in place of gonum's own. The page
// docs/gonum.md tells which of the two a program wants.
package gonum

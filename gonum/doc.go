// Package gonum joins Mercer and gonum's matrices.
//
//	Host      any mat.Matrix as Mercer's row-major matrix, without a copy if possible
//	Dense     the reverse conversion, without a copy
//	Cholesky  mat.Cholesky, with the work done on a Mercer device
//
// To make gonum itself faster, without Mercer's devices, use package cpu: its BLAS and
// LAPACK replace gonum's own. The page docs/gonum.md helps to choose between the two.
package gonum

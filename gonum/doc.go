// Package gonum converts matrices between gonum and Mercer, and factors them on Mercer's devices.
//
//	Host      converts any mat.Matrix to Mercer's row-major matrix, without a copy if possible
//	Dense     is the reverse conversion, without a copy
//	Cholesky  is a mat.Cholesky that works on a Mercer device
//
// To make gonum itself faster, without Mercer's devices, use package cpu: its BLAS and LAPACK
// replace gonum's own. The page docs/gonum.md helps to choose between the two.
package gonum

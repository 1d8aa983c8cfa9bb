// Package numeric contains small numerical routines that the solvers share.
//
//	small.go        a small matrix on the host: Cholesky, solves, independent columns
//	eigenvalues.go  the eigenvalues of a symmetric small matrix
//	vector.go       dot products and sums of slices
//	norm.go         norms, relative residuals, and bounds on rounding errors
//	host.go         slices as matrices, copies and transposes
//	size.go         sizes of matrices without overflow
//	device.go       operations on matrices of a device, composed of the methods of backend.Backend
//	symmetric.go    a symmetric matrix on a device, and its Cholesky factor in the same memory
//	pivot.go        pivots of a factor that are rounding errors, and the resulting advice
//	jitter.go       factors of matrices that are positive definite up to rounding errors
package numeric

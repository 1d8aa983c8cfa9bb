// Package numeric has the small numerics that the solvers share.
//
//	small.go        a small matrix on the host: Cholesky, solves, independent columns
//	eigenvalues.go  the eigenvalues of such a matrix
//	vector.go       dot products and sums of slices
//	norm.go         norms, relative residuals, and bounds of rounding
//	host.go         slices as matrices, copies and transposes
//	size.go         sizes of matrices without overflow
//	device.go       operations on matrices of a device, composed of the methods of backend.Backend
//	symmetric.go    a symmetric matrix on a device, and its Cholesky factor in its place
//	pivot.go        which pivots of a factor are rounding, and what to do about them
//	jitter.go       a factor of a matrix that is positive definite but for rounding
package numeric

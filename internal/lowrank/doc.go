// Package lowrank approximates Gram matrices by low rank, K ≈ FFᵀ, to precondition K + λW⁻¹.
//
//	preconditioner.go  the inverse of FFᵀ + D, applied by the Woodbury identity
//	pivoting.go        F by partial Cholesky factorization of K, which is never stored
//	pivots.go          the choice of the pivots: at random, or the largest diagonal element first
//	taylor.go          F from the first powers of the power series of the kernel
//
// It also computes estimates from a sample of the rows, before an approximation is made:
//
//	spectrum.go        the eigenvalues of K, and the number of iterations with a preconditioner of given rank
//	taylorestimate.go  the number of iterations with the powers of the series, and whether they save time
package lowrank

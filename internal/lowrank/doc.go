// Package lowrank approximates Gram matrices by low rank, K ≈ FFᵀ, to precondition K + λW⁻¹.
//
//	preconditioner.go  the inverse of FFᵀ + D, applied by the Woodbury identity
//	pivoting.go        F by partial Cholesky factorization of K, which is never stored
//	pivots.go          the choice of its pivots: at random, or the largest first
//	taylor.go          F by the first powers of the power series of the kernel
//
// and estimates, made beforehand from a sample of the rows:
//
//	spectrum.go        the eigenvalues of K, and the iterations with a preconditioner of a rank
//	taylorestimate.go  the iterations with the powers of the series, and when they pay
package lowrank

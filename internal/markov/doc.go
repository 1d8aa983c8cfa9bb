// Package markov implements linear algebra in O(n) operations with the matrices K + D of n points on a line, for a
// diagonal D and kernels whose Gaussian process is Markov: the exponential, Matérn 3/2 and Matérn 5/2, constants,
// and multiples and sums of these (Hartikainen and Särkkä 2010, Kalman filtering and smoothing solutions to
// temporal Gaussian process regression models).
//
// The process and its derivatives are the state of a linear stochastic differential equation. For points in
// ascending order, let Δ be the distance of a point from the preceding point, and s = √(2ν)Δ/σ:
//
//	state at the point = A(s) state at the preceding point + noise,  cov(noise) = Q(s),  value = hᵀ state
//
// The derivative of order i is measured in units of (√(2ν)/σ)ⁱ, so that A and Q depend on s alone.
//
//	model.go      kernels as sums of terms, their A and Q
//	line.go       points in order, the Kalman filter of K + D, and products and solves with it
//	gradient.go   the derivatives of the likelihood
//	posterior.go  the values of the process between the points, and their variances
package markov

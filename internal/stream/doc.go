// Package stream solves regularized least squares for M functions of the samples. It reads the samples in passes,
// and they need not fit into memory.
//
//	feed.go       the samples of weight > 0, in pieces of a fixed number of rows
//	sampler.go    a random sample of the samples, drawn by keys or by positions
//	basis.go      functions k(x, c) of centers c
//	fourier.go    functions for random Fourier features, with frequencies from spectral.go
//	equations.go  the normal equations, and their products and residuals, computed piece by piece
//	normal.go     the sum and the factor of the matrix H of the normal equations
//	falkon.go     a preconditioner of H from a sample
//	posterior.go  the Gaussian process whose mean is the solution: variances and the likelihood
//	update.go     the posterior after adding or removing samples
//	iterate.go    refinement and conjugate gradients, with the residual from the samples
package stream

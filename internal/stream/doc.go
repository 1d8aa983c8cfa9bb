// Package stream solves regularized least squares for M functions of the samples, which are
// read in passes and need not fit into memory.
//
//	feed.go       the samples of weight > 0, cut into pieces of a fixed number of rows
//	sampler.go    a random sample of them, drawn by keys or by positions
//	basis.go      the functions: k(x, c) of centers c
//	fourier.go    or random Fourier features, whose frequencies spectral.go draws
//	equations.go  the normal equations, their products and residuals, piece by piece
//	normal.go     their matrix, summed and factored
//	falkon.go     or a preconditioner made from a sample
//	iterate.go    refinement and conjugate gradients, with the residual from the samples
package stream

// Package kernels represents kernel functions k(x, z) on ℝᵈ as values.
//
// A kernel is a value such as Gaussian{Sigma: 2} or Sum{Linear{}, Scaled{0.5, Polynomial{Degree: 3, C: 1}}}. It
// has a text form (String, Parse), rules for its parameters (Check), and a Program: a list of statistics of a pair
// of points, such as xᵀz and ‖x−z‖², with short postfix code that maps the statistics to k(x, z).
//
//	Gaussian{Sigma: 2}     statistics: ‖x−z‖²      code: load 0; affine −1/8, 0; exp
//
// A backend evaluates the statistics for a tile of pairs at once, by a matrix product or a direct
// loop, and runs the code on the tile while it is in cache or in registers. A kernel contains no Go
// function, so that a backend can fuse the code of every kernel, including composed kernels.
//
// Parse reads a kernel from its text, and Catalogue lists the kernels that it knows. Canonical
// returns a normal form in which equivalent kernels that were composed differently are equal.
//
// Eval and Program.Run are slow and simple scalar reference implementations for tests of the backends.
//
// Params and Gradient return the parameters that can be fitted and the derivatives with respect to them. Each
// derivative is itself a kernel, so that a backend evaluates ∂K/∂θ in the same way as K. StatDerivatives returns
// the derivatives with respect to the statistics, from which EvalGrad computes the derivatives with respect to the
// points. NewFeatureMap returns φ with k(x, z) = φ(x)ᵀφ(z) if the feature space has finite dimension.
//
// Kernels over strings and trees, and kernels defined by user functions, have no Program. Packages objects,
// strings, trees and gram compute their Gram matrices, whose rows are the points of the kernel Precomputed.
package kernels

// Package kernels holds kernel functions k(x, z) on ℝᵈ as data.
//
// A kernel is a value such as Gaussian{Sigma: 2} or
// Sum{Linear{}, Scaled{0.5, Polynomial{Degree: 3, C: 1}}}. It knows its own
// text (String, Parse), its rules (Check), and how to become a Program: a few
// statistics of a pair of points, such as xᵀz and ‖x−z‖², and a short postfix
// code that maps them to k(x, z).
//
//	Gaussian{Sigma: 2}     statistics: ‖x−z‖²      code: load 0; affine −1/8, 0; exp
//
// A backend evaluates the statistics for a tile of pairs at once, by a matrix
// product or a direct loop, and runs the code on the tile while it is in cache
// or in registers. No closure crosses that border, so every backend can fuse
// every kernel, composed ones included.
//
// Parse reads a kernel from its text, and Catalogue lists what it knows;
// Canonical is the form in which kernels that were put together differently
// but mean the same are equal.
//
// Eval and Program.Run are the scalar meaning of all this: slow, obvious, and
// what the tests of the backends compare with.
//
// Params and Gradient give the parameters that can be fitted and the derivatives
// by them, each a kernel of its own, so that a backend evaluates ∂K/∂θ as it
// evaluates K. StatDerivatives gives those by the statistics, of which EvalGrad makes the
// derivatives by the points. NewFeatureMap gives φ where feature space is finite.
//
// Kernels over strings, trees or user functions have no such program; they
// make a Gram matrix (packages objects, strings, trees and gram), whose rows are
// the points of the kernel Precomputed.
package kernels

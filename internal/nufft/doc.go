// Package nufft computes Fourier sums of real data at points that are not on a grid, in one to three
// dimensions, to a given accuracy:
//
//	F_k = Σ_j c_j exp(−2πi k·x_j)    (type 1, Plan.Modes)
//	c_j = Σ_k F_k exp(2πi k·x_j)     (type 2, Plan.Values)
//
// for integer vectors k, |k_a| ≤ M_a. For type 1, each c_j is spread over a fine grid by a kernel
// of w cells in each dimension, the grid is transformed, and the result is divided by the transform
// of the kernel (Dutt and Rokhlin 1993); the kernel is the exponential of a semicircle (Barnett,
// Magland and af Klinteberg 2019). Grid and Dense are the discrete transforms of the grid. The results do not depend on the number of workers.
package nufft

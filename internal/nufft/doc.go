// Package nufft computes Fourier sums of real data at points that are not on a grid, in one to three dimensions,
// to a given accuracy:
//
//	F_k = Σ_j c_j exp(−2πi k·x_j)    (type 1, Plan.Modes)
//	c_j = Σ_k F_k exp(2πi k·x_j)     (type 2, Plan.Values)
//
// for integer vectors k, |k_a| ≤ M_a. For type 1, a kernel spreads each c_j over w cells of a fine grid in each
// dimension. The values on the grid are Fourier transformed, and the result is divided by the transform of the
// kernel (Dutt and Rokhlin 1993). Type 2 takes the adjoint steps in reverse order. The kernel is the exponential
// of a semicircle (Barnett, Magland and af Klinteberg 2019). The results do not depend on the number of workers.
package nufft

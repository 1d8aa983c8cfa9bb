// Package sums accumulates the normal equations of kernel ridge regression in parts that any worker
// may compute and that may be merged in any order. Its types are the state of a worker, the data
// sent between workers, and the equations that are solved at the end. It does not depend on Beam.
//
//	twofloat.go  numbers of two float64, added with an error of 2⁻¹⁰⁴
//	sums.go      Sums: a triangle of such numbers, merged and encoded
//	basis.go     Basis: the functions φ of a sample: linear, centers, Fourier
//	panel.go     Gatherer: rows buffered into panels of 512, a Syrk for each
//	solve.go     Solve: the equations of Sums, with penalty and intercept
//	residual.go  ΦᵀW(y − Φβ): what a second pass over the samples measures
//
// # How far sums may differ
//
// The rows of a panel are multiplied by a Syrk in float64, and plain additions
// join at most PlainRows rows of it. The error of an entry of ΦᵀΦ over r ≤ PlainRows rows, summed
// in any order, satisfies
//
//	|δ| ≤ γ_r Σ_i |φ_p(x_i) φ_q(x_i)|,  γ_r = ru / (1 − ru),  u = 2⁻⁵³
//
// (Higham 2002, Accuracy and Stability of Numerical Algorithms, § 3.1). Beyond that, sums are pairs
// of float64, and each addition contributes an error of at most 2⁻¹⁰⁴ of the result: for N parts
// with entries of one sign (N−1)·2⁻¹⁰⁴. So for n samples in any number of shards, read in any
// order,
//
//	|ΦᵀΦ computed − ΦᵀΦ| ≤ (γ_4096 + n 2⁻¹⁰⁴) |Φ|ᵀ|Φ| < 4.6e-13 |Φ|ᵀ|Φ|
//
// and typically √4096·u = 7e-15 of it: the bound does not grow with n, whereas the γ_n of plain
// sums does. The condition number bounds the effect on the solution of Hβ = z: ‖δβ‖/‖β‖ ≤
// 2κ(H)‖δH‖/‖H‖ to first order, so that 1e-10 holds to κ(H) ≈ 1e4 in typical sums, and to 100 in
// the worst case.
//
// The part of given rows has the same bits on every worker. If only the order of the merges
// changes, the pairs of float64 agree to N·2⁻¹⁰⁴. Rounded to one float64, an entry then differs
// with a probability of about N·2⁻⁵¹, so a lost and replaced worker, or another number of workers,
// gives the same model to the bit.
package sums

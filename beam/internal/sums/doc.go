// Package sums accumulates the normal equations of kernel ridge regression in parts that any worker
// may compute and that may be merged in any order. Its types hold a worker's state, the data sent
// between workers, and the equations that are solved at the end. It does not depend on Beam.
//
//	twofloat.go  numbers of two float64, added with an error of 2⁻¹⁰⁴
//	sums.go      Sums: a triangle of such numbers, merged and encoded
//	basis.go     Basis: the functions φ of a sample: linear, centers, Fourier
//	panel.go     Gatherer: the sums over rows, by a Syrk for each panel of 512 rows
//	solve.go     Solve: the equations of Sums, with penalty and intercept; Posterior
//	residual.go  Measurer: Φᵀ(y − Φβ − b), computed in a second pass over the samples
//
// # How far sums may differ
//
// A Syrk in float64 computes the sums over a panel. Up to PlainRows rows are added in float64. The
// error of an entry of ΦᵀΦ over r ≤ PlainRows rows, summed in any order, satisfies
//
//	|δ| ≤ γ_r Σ_i |φ_p(x_i) φ_q(x_i)|,  γ_r = ru / (1 − ru),  u = 2⁻⁵³
//
// (Higham 2002, Accuracy and Stability of Numerical Algorithms, § 3.1). Sums of more rows are pairs of float64,
// whose additions have a relative error of at most 2⁻¹⁰⁴. For n samples in any number of shards, read in any order,
//
//	|ΦᵀΦ computed − ΦᵀΦ| ≤ (γ_4096 + n 2⁻¹⁰⁴) |Φ|ᵀ|Φ| < 4.6e-13 |Φ|ᵀ|Φ|
//
// and the error is typically √4096·u = 7e-15 of |Φ|ᵀ|Φ|. With the condition number κ, the solution of Hβ = z
// satisfies ‖δβ‖/‖β‖ ≤ 2κ(H)‖δH‖/‖H‖ to first order. The relative error of β is thus at most 1e-10 up to κ(H) ≈ 1e4
// for typical sums, and up to κ(H) = 100 in the worst case.
//
// The sums over given rows have the same bits on every worker. If only the order of N merges changes, an entry
// rounded to float64 differs with a probability of about N·2⁻⁵¹. The model therefore has the same bits for any
// number of workers, and also if a worker is lost and replaced.
package sums

// Package sums adds up the normal equations of kernel ridge regression in parts
// that may be made anywhere and put together in any order: what a worker keeps,
// what travels between workers, and what is solved in the end. It knows nothing
// of Beam.
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
// join at most PlainRows rows of it. An entry of ΦᵀΦ over r ≤ PlainRows rows,
// summed in whatever order, is wrong by
//
//	|δ| ≤ γ_r Σ_i |φ_p(x_i) φ_q(x_i)|,  γ_r = ru / (1 − ru),  u = 2⁻⁵³
//
// (Higham 2002, Accuracy and Stability of Numerical Algorithms, § 3.1). From there
// on sums are numbers of two float64, and each addition adds 2⁻¹⁰⁴ of the result
// at most: for N parts with entries of one sign (N−1)·2⁻¹⁰⁴. So for n samples in
// any number of shards, read in any order,
//
//	|ΦᵀΦ computed − ΦᵀΦ| ≤ (γ_4096 + n 2⁻¹⁰⁴) |Φ|ᵀ|Φ| < 4.6e-13 |Φ|ᵀ|Φ|
//
// and typically √4096·u = 7e-15 of it: the bound does not grow with n, which the
// γ_n of plain sums does. What that does to the solution of Hβ = z is bounded by
// its condition number: ‖δβ‖/‖β‖ ≤ 2κ(H)‖δH‖/‖H‖ to first order, so that 1e-10
// holds to κ(H) ≈ 1e4 in typical sums, and to 100 in the worst case.
//
// A part that is made of the same rows has the same bits whoever makes it. When
// only the order in which parts are merged changes, the pairs of float64 agree
// to N·2⁻¹⁰⁴, and rounded to one float64 they are the same but for a chance of
// about N·2⁻⁵¹ an entry: a worker that is lost and replaced, or another number of
// workers, gives the same model to the bit.
package sums

// Package band solves systems with A + λI for one symmetric matrix A and many λ.
//
// A is reduced to Q B Qᵀ with Q orthogonal and B block tridiagonal with blocks of a few dozen rows (form.go). This
// is the first stage of a two-stage reduction to tridiagonal form. Then B + λI = LLᵀ costs O(n·width²) for each λ
// (factor.go), and (A + λI)⁻¹ = Q (B + λI)⁻¹ Qᵀ (band.go).
//
// A one-stage reduction to tridiagonal form takes more time, because the memory bandwidth limits it. At order
// 4,000 it takes 17 times as long as a Cholesky factorization on two cores (15 GB/s, November 2026). The second
// stage of a two-stage reduction adds 2n³ operations to every use of Q (Ballard, Demmel and Knight 2012). Here all
// O(n³) operations are products of matrices: 4n³/3 operations for B, and as many for Q if it is formed.
//
// Columns are reduced in panels, as in Dongarra, Hammarling and Sorensen (1989) for the tridiagonal form: the
// panel of width b below the diagonal block is QR-factored,
//
//	H = I − V T Vᵀ,  Y = A V T,  W = Y − ½ V Tᵀ VᵀY,  HᵀAH = A − V Wᵀ − W Vᵀ
//
// where T is the upper triangular matrix of Schreiber and Van Loan (1989), computed from VᵀV and the factors τ of
// the reflectors as in Puglisi (1992).
package band

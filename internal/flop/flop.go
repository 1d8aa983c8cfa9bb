// Package flop counts the floating-point operations of each method of a backend, for progress
// and for rates. A multiplication and an addition count as two operations. The transcendental
// function of a kernel is not counted; its time lowers the rate. A method counts the same for
// sparse matrices as for dense ones.
package flop

// Gemm is 2mnk.
func Gemm(m, n, k int) float64 { return 2 * float64(m) * float64(n) * float64(k) }

// Syrk is n(n+1)k: one triangle.
func Syrk(n, k int) float64 { return float64(n) * float64(n+1) * float64(k) }

// Symm is 2m²n: Symm counts as a Gemm of the same shape.
func Symm(m, n int) float64 { return Gemm(m, n, m) }

// Trsm is n²·m for an n × n triangle and m right-hand sides.
func Trsm(n, m int) float64 { return float64(n) * float64(n) * float64(m) }

// Potrf is n(n+1)(2n+1)/6, about n³/3.
func Potrf(n int) float64 {
	x := float64(n)
	return x * (x + 1) * (2*x + 1) / 6
}

// Gram is 2nmd, or half of that if Z is X (symmetric).
func Gram(n, m, d int, symmetric bool) float64 {
	if symmetric {
		return Syrk(n, d)
	}
	return Gemm(n, m, d)
}

// GramMul is 2nm(d+t): an unsymmetric Gram, also if Z is X, and a Gemm.
func GramMul(n, m, d, t int) float64 { return Gemm(n, m, d) + Gemm(n, t, m) }

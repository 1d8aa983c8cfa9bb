// Package flop counts the floating-point operations of each method of a backend. A multiplication and an addition
// count as two operations. Transcendental functions of kernels are not counted. The count is the same for sparse
// and dense matrices. Rates holds the speeds of a device.
package flop

// Gemm returns 2mnk.
func Gemm(m, n, k int) float64 { return 2 * float64(m) * float64(n) * float64(k) }

// Syrk returns n(n+1)k, because only one triangle is computed.
func Syrk(n, k int) float64 { return float64(n) * float64(n+1) * float64(k) }

// Symm returns 2m²n, the count of a Gemm of the same shape.
func Symm(m, n int) float64 { return Gemm(m, n, m) }

// Trsm returns n²·m for an n × n triangle and m right-hand sides.
func Trsm(n, m int) float64 { return float64(n) * float64(n) * float64(m) }

// Potrf returns n(n+1)(2n+1)/6, about n³/3.
func Potrf(n int) float64 {
	x := float64(n)
	return x * (x + 1) * (2*x + 1) / 6
}

// Gram returns 2nmd, or n(n+1)d if symmetric is set, which means that Z is X.
func Gram(n, m, d int, symmetric bool) float64 {
	if symmetric {
		return Syrk(n, d)
	}
	return Gemm(n, m, d)
}

// GramMul returns 2nm(d+t): 2nmd for the values of all pairs, even if Z is X, and 2nmt for a product.
func GramMul(n, m, d, t int) float64 { return Gemm(n, m, d) + Gemm(n, t, m) }

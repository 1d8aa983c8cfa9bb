package backend

// Floating-point operations of each method, as counted for progress and for rates. A
// multiplication and an addition count as two operations. The transcendental function of a
// kernel is not counted; its time lowers the rate. A method counts the same for
// sparse matrices as for dense ones.

// GemmFlops is 2mnk.
func GemmFlops(m, n, k int) float64 { return 2 * float64(m) * float64(n) * float64(k) }

// SyrkFlops is n(n+1)k: one triangle.
func SyrkFlops(n, k int) float64 { return float64(n) * float64(n+1) * float64(k) }

// SymmFlops is 2m²n: Symm counts as a Gemm of the same shape.
func SymmFlops(m, n int) float64 { return GemmFlops(m, n, m) }

// TrsmFlops is n²·m for an n × n triangle and m right-hand sides.
func TrsmFlops(n, m int) float64 { return float64(n) * float64(n) * float64(m) }

// PotrfFlops is n(n+1)(2n+1)/6, about n³/3.
func PotrfFlops(n int) float64 {
	x := float64(n)
	return x * (x + 1) * (2*x + 1) / 6
}

// GramFlops is 2nmd, or half of that if Z is X (symmetric).
func GramFlops(n, m, d int, symmetric bool) float64 {
	if symmetric {
		return SyrkFlops(n, d)
	}
	return GemmFlops(n, m, d)
}

// GramMulFlops is 2nm(d+t): an unsymmetric Gram, also if Z is X, and a Gemm.
func GramMulFlops(n, m, d, t int) float64 { return GemmFlops(n, m, d) + GemmFlops(n, t, m) }

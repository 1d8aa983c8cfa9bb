//go:build !purego

package ukr

// ShortDotF64 and its like are Kernels.Dot and Axpy for vectors of at most ShortBytes,
// on tiers whose Short is true. The compiler puts a wrapper before assembly that is
// called through a variable, and none before what is called by its name: 2 ns of the
// 10 that a product of twelve elements takes. So much in AVX2 is no slower than in
// AVX-512 (AMD EPYC of family 25, November 2026).

func ShortDotF64(n int, x, y *float64) float64     { return dotF64AVX2(n, x, y) }
func ShortDotF32(n int, x, y *float32) float32     { return dotF32AVX2(n, x, y) }
func ShortAxpyF64(n int, a float64, x, y *float64) { axpyF64AVX2(n, a, x, y) }
func ShortAxpyF32(n int, a float32, x, y *float32) { axpyF32AVX2(n, a, x, y) }

//go:build !purego

package ukr

// ShortDotF64 and the following functions are Kernels.Dot and Axpy for vectors of at most ShortBytes, on tiers
// whose Short is true. For short vectors AVX2 is as fast as AVX-512. Calling assembly by name avoids the wrapper
// that a call through a variable needs, and takes 7 % less time for a product of twelve elements (AMD EPYC of
// family 25, November 2026).

func ShortDotF64(n int, x, y *float64) float64     { return dotF64AVX2(n, x, y) }
func ShortDotF32(n int, x, y *float32) float32     { return dotF32AVX2(n, x, y) }
func ShortAxpyF64(n int, a float64, x, y *float64) { axpyF64AVX2(n, a, x, y) }
func ShortAxpyF32(n int, a float32, x, y *float32) { axpyF32AVX2(n, a, x, y) }

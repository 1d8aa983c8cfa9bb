//go:build !purego

package ukr

// ShortDotF64 and the following functions compute Kernels.Dot and Kernels.Axpy for vectors of at most ShortBytes, on
// tiers whose Short is true. They avoid the overhead of calling assembly through a variable.

func ShortDotF64(n int, x, y *float64) float64     { return dotF64AVX2(n, x, y) }
func ShortDotF32(n int, x, y *float32) float32     { return dotF32AVX2(n, x, y) }
func ShortAxpyF64(n int, a float64, x, y *float64) { axpyF64AVX2(n, a, x, y) }
func ShortAxpyF32(n int, a float32, x, y *float32) { axpyF32AVX2(n, a, x, y) }

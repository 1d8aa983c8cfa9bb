//go:build !purego

package ukr

// ShortDotF64 and the following functions compute Kernels.Dot and Kernels.Axpy for short vectors; see short_amd64.go.

func ShortDotF64(n int, x, y *float64) float64     { return dotF64NEON(n, x, y) }
func ShortDotF32(n int, x, y *float32) float32     { return dotF32NEON(n, x, y) }
func ShortAxpyF64(n int, a float64, x, y *float64) { axpyF64NEON(n, a, x, y) }
func ShortAxpyF32(n int, a float32, x, y *float32) { axpyF32NEON(n, a, x, y) }

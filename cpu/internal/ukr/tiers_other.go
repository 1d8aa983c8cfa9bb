//go:build !(amd64 || arm64) || purego

package ukr

// assembled returns no tiers: there is no assembly for this architecture.
func assembled() []*Tier { return nil }

// ShortDotF64 and the following functions have the results of Kernels.Dot and Kernels.Axpy.

func ShortDotF64(n int, x, y *float64) float64     { return dotGeneric(n, x, y) }
func ShortDotF32(n int, x, y *float32) float32     { return dotGeneric(n, x, y) }
func ShortAxpyF64(n int, a float64, x, y *float64) { axpyGeneric(n, a, x, y) }
func ShortAxpyF32(n int, a float32, x, y *float32) { axpyGeneric(n, a, x, y) }

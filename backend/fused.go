package backend

import "errors"

// errFused is the error for Config.Reproducible in a build with fused multiply-adds.
var errFused = errors.New("reproducible results were requested, but the compiler has fused multiplications with additions in this build, as it does on arm64: build it with -gcflags=all=-d=fmahash=n")

// fused reports whether this build computes x·y + z as one operation with one rounding.
func fused() bool {
	const x = 1 + 0x1p-27 // x² = 1 + 2⁻²⁶ + 2⁻⁵⁴ rounds to 1 + 2⁻²⁶
	return multiplyAdd(x, x, -(1+0x1p-26)) != 0
}

//go:noinline
func multiplyAdd(x, y, z float64) float64 { return x*y + z }

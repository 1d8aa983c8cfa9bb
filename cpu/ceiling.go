package cpu

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// Ceiling performs at least the given number of fused multiply-adds in registers, on the widest
// vectors of the tier, and returns the number of multiply-adds that it has performed. The rate of
// multiply-adds is the peak rate of one core without loads and stores, an upper bound of the rate
// of every product. Ceiling runs in the caller's goroutine, in float32 if single is true and in
// float64 otherwise.
//
// A caller obtains Ceiling by asserting interface{ Ceiling(bool, float64) float64 } on a device.
func (d *device) Ceiling(single bool, flops float64) float64 {
	if single {
		return peak(&d.tier.F32, flops)
	}
	return peak(&d.tier.F64, flops)
}

func peak[T backend.Float](k *ukr.Kernels[T], flops float64) float64 {
	tile := float64(2 * k.MR * k.NR)
	// The factors are not 0: with the factor 0, the processor may take less power than in a real
	// product, and so run faster.
	s := &ukr.Span[T]{N: int(flops/tile) + 1, A: 0.7, B: 1.1}
	performed := tile * float64(s.N)
	k.Peak(s)
	return performed
}

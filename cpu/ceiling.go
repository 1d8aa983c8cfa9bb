package cpu

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// Ceiling performs at least the given number of floating-point operations as multiply-adds in registers, on the
// widest vectors of the tier, and returns the number of operations performed. Their rate, without loads and
// stores, is an upper bound of the rate of every product on one core. Ceiling runs in the caller's goroutine, in
// float32 if single is true and in float64 otherwise.
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
	// With factors of 0, the processor may take less power, and so run faster than in a real product.
	s := &ukr.Span[T]{N: int(flops/tile) + 1, A: 0.7, B: 1.1}
	performed := tile * float64(s.N)
	k.Peak(s)
	return performed
}

package cpu

import (
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// Ceiling makes fused multiply-adds of the tier's widest vectors in registers,
// at least the given number of operations, and returns the number done. Its rate is the peak of one
// core without loads and stores, which no product exceeds. It runs in the caller's goroutine, in
// float32 when single is true and in float64 otherwise.
//
// It is found by asserting interface{ Ceiling(bool, float64) float64 } on a
// device.
func (d *device) Ceiling(single bool, flops float64) float64 {
	if single {
		return peak(&d.tier.F32, flops)
	}
	return peak(&d.tier.F64, flops)
}

func peak[T backend.Float](k *ukr.Kernels[T], flops float64) float64 {
	tile := float64(2 * k.MR * k.NR)
	// Factors whose bits are mixed: a multiplier that sees zeros only may run
	// cooler, and so faster, than one at work.
	s := &ukr.Span[T]{N: int(flops/tile) + 1, A: 0.7, B: 1.1}
	done := tile * float64(s.N)
	k.Peak(s)
	return done
}

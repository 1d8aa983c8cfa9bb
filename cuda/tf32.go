package cuda

import "github.com/mercer-go/mercer/backend"

// tf32Unit is the rounding of TF32, which has 10 bits behind the first.
const tf32Unit = 0x1p-11

// ReducedUnit is 0 in float64, which has no reduced precision, without cuBLAS, and on
// processors whose tensor cores take TF32 no faster than float32.
func (q *queue[T]) ReducedUnit() float64 {
	if sizeOf[T]() == 8 || q.engine.device.Rates().Reduced == 0 {
		return 0
	}
	return tf32Unit
}

func (q *queue[T]) PotrfPackedReduced(a backend.Packed[T]) error {
	return q.waitPotrfPacked("PotrfPackedReduced", a, q.ReducedUnit() > 0)
}

// What a device reaches of what its clocks and widths say, until it is measured on cards:
// of products in float64, of the memory's bytes, and of the instructions of a product with
// a K that is not stored.
const (
	productShare = 0.82
	memoryShare  = 0.87
	pairShare    = 0.55
	// A launch that waits for the one before it takes about so many seconds, and a call
	// of cuBLAS for a triangle of the order cuts.thin with few columns about so many.
	stepSeconds  = 10e-6
	solveSeconds = 80e-6
)

// Rates follow from the clocks and widths that the driver reports and from NVIDIA's
// tables: in float32 and reduced precision 1 and 3.3 times float64, and 2 times for the
// values of kernels, on an H200, whose tensor cores take float64 at the rate of float32;
// 64, 0 and 64 on a card for games. A reduced-precision factorisation keeps a fifth of
// its time for what stays in full precision.
func (d *device) Rates() backend.Rates {
	p := d.props
	r := backend.Rates{
		Single: p.single() / p.double(), Values: float64(max(p.ratio, 1)),
		Products: productShare * p.double(), Bytes: memoryShare * p.memoryRate(), Step: stepSeconds,
		Pairs: pairShare * p.single() / 2 / float64(max(p.ratio, 1)), Solve: solveSeconds / float64(cuts.thin),
	}
	if d.libraries.Blas == nil {
		r.Single = r.Values // the device functions use no tensor cores
		r.Products = min(r.Products, pairShare*p.single()/float64(max(p.ratio, 1)))
		return r
	}
	if p.reduced() > p.single() {
		r.Reduced = 1 / (0.8*p.double()/p.reduced() + 0.2*p.double()/p.single())
	}
	return r
}

// memoryRate is bytes a second, by the slowest card of a capability where a virtual GPU
// does not report its clock.
func (p properties) memoryRate() float64 {
	switch {
	case p.bandwidth > 0:
		return p.bandwidth
	case p.major >= 9 && p.minor == 0:
		return 2e12
	case p.major == 8 && p.minor == 0:
		return 1.5e12
	case p.major == 7 && p.minor == 0:
		return 0.9e12
	}
	return 0.3e12
}

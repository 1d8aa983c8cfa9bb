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

// Rates are those of NVIDIA's tables: 1, 3.3 and 2 on an H200, whose tensor cores
// take float64 at the rate of float32; 64, 0 and 64 on a card for games. A reduced-precision
// factorisation keeps a fifth of its time for what stays in full precision.
func (d *device) Rates() backend.Rates {
	p := d.props
	r := backend.Rates{Single: p.single() / p.double(), Values: float64(max(p.ratio, 1))}
	if d.libraries.Blas == nil {
		r.Single = r.Values // the device functions use no tensor cores
		return r
	}
	if p.reduced() > p.single() {
		r.Reduced = 1 / (0.8*p.double()/p.reduced() + 0.2*p.double()/p.single())
	}
	return r
}

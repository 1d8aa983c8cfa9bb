package cuda

import "github.com/mercer-go/mercer/backend"

// roughUnit is the rounding of TF32, which has 10 bits behind the first.
const roughUnit = 0x1p-11

// RoughUnit is 0 in float64, which has no rough products, without cuBLAS, and on
// processors whose tensor cores take TF32 no faster than float32.
func (q *queue[T]) RoughUnit() float64 {
	if sizeOf[T]() == 8 || q.engine.device.Rates().Rough == 0 {
		return 0
	}
	return roughUnit
}

func (q *queue[T]) PotrfHalfRough(a backend.Half[T]) error {
	return q.waitPotrfHalf("PotrfHalfRough", a, q.RoughUnit() > 0)
}

// Rates are those of NVIDIA's tables: 1, 7 and 2 on an H200, whose tensor cores
// take float64 at the rate of float32; 64, 0 and 64 on a card for games. A rough
// factorisation keeps a fifth of its time for what is not rough.
func (d *device) Rates() backend.Rates {
	p := d.props
	r := backend.Rates{Single: p.single() / p.double(), Values: float64(max(p.ratio, 1))}
	if d.libraries.Blas == nil {
		r.Single = r.Values // the device functions use no tensor cores
		return r
	}
	if p.rough() > p.single() {
		r.Rough = 1 / (0.8*p.double()/p.rough() + 0.2*p.double()/p.single())
	}
	return r
}

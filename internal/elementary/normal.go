package elementary

import (
	"math"
	"math/rand/v2"
)

// tailBegins is the number at which the tail of the normal distribution begins.
const tailBegins = 3.442619855899

// normals holds the tables of the ziggurat method (Marsaglia and Tsang, The ziggurat method for generating random
// variables, 2000): 128 strips of equal area. A random 32-bit integer j gives the number j·widths[i]. If
// |j| < inside[i], the number is accepted without computing the density.
var normals = func() (t struct {
	inside          [128]uint32
	widths, heights [128]float32
}) {
	const unit = 1 << 31
	const area = 9.91256303526217e-3
	x := float64(tailBegins)
	base := area / Exp(-0.5*x*x)
	t.inside[0] = uint32(x / base * unit)
	t.widths[0], t.widths[127] = float32(base/unit), float32(x/unit)
	t.heights[0], t.heights[127] = 1, float32(Exp(-0.5*x*x))
	for i := 126; i > 0; i-- {
		last := x
		x = math.Sqrt(-2 * Log(area/last+Exp(-0.5*last*last)))
		t.inside[i+1] = uint32(x / last * unit)
		t.widths[i], t.heights[i] = float32(x/unit), float32(Exp(-0.5*x*x))
	}
	return t
}()

// Normal returns a normally distributed number by the algorithm of r.NormFloat64, with the
// exponential and logarithm of this package.
func Normal(r *rand.Rand) float64 {
	for {
		u := r.Uint64()
		j := int32(u)
		i := u >> 32 & 127
		x := float64(float64(j) * float64(normals.widths[i]))
		size := uint32(j)
		if j < 0 {
			size = -size
		}
		if size < normals.inside[i] {
			return x
		}
		if i == 0 { // the number lies in the tail
			for {
				x = float64(-Log(r.Float64()) * (1 / tailBegins))
				y := -Log(r.Float64())
				if y+y >= float64(x*x) {
					break
				}
			}
			return math.Copysign(tailBegins+x, float64(j))
		}
		height := normals.heights[i-1] - normals.heights[i]
		if normals.heights[i]+float32(float32(r.Float64())*height) < float32(Exp(-0.5*x*x)) {
			return x
		}
	}
}

package spectrum

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/internal/nufft"
	"github.com/mercer-go/mercer/kernels"
)

var densities = []kernels.Kernel{
	kernels.Matern{Nu: 0.5, Sigma: 1},
	kernels.Matern{Nu: 1.5, Sigma: 1},
	kernels.Matern{Nu: 2.5, Sigma: 1},
	kernels.Gaussian{Sigma: 1},
	kernels.Sum{kernels.Scaled{Weight: 2, Kernel: kernels.Matern{Nu: 2.5, Sigma: 0.5}}, kernels.Gaussian{Sigma: 2}, kernels.Constant{Value: 0.5}},
}

// TestCoefficientsAreTheKernel compares Fourier series with the kernel at random differences of points in boxes of
// several shapes, with and without a window. Tail bounds the omitted coefficients.
func TestCoefficientsAreTheKernel(t *testing.T) {
	const tol = 1e-10
	r := rand.New(rand.NewPCG(3, 0))
	windows := 0
	for _, k := range densities {
		for _, sides := range [][3]float64{{0, 0, 0}, {0, 0, 2}, {0, 0, 30}, {0, 1, 3}, {0, 0.1, 5}, {1, 2, 0.5}} {
			d := 1
			for a := range 2 {
				if sides[a] > 0 {
					d = max(d, 3-a)
				}
			}
			s, ok := Of(k, d)
			if !ok {
				t.Fatal(k)
			}
			c := s.Wrap(sides, tol)
			if c.Windowed {
				windows++
			}
			omega := [...]float64{200, 20, 8}[d-1]
			var m nufft.Axes
			for a := 3 - d; a < 3; a++ {
				m[a] = int(math.Ceil(omega * c.Period[a] / (2 * math.Pi)))
			}
			f, h := s.Coefficients(c, m), m.Half()
			for range 5 {
				var x [3]float64
				for a := 3 - d; a < 3; a++ {
					x[a] = sides[a] * (2*r.Float64() - 1)
				}
				sum := 0.0
				for index, v := range f {
					phase := 0.0
					for a, k := range [3]int{index/(h[1]*h[2]) - m[0], index/h[2]%h[1] - m[1], index % h[2]} {
						if k != 0 {
							phase += 2 * math.Pi * float64(k) * x[a] / c.Period[a]
						}
					}
					if index%h[2] > 0 {
						v *= 2
					}
					sum += v * math.Cos(phase)
				}
				want := s.Constant + s.Kernel(math.Hypot(x[0], math.Hypot(x[1], x[2])))
				// Tail has a relative error of 1e-3, and the sum of 10⁶ terms a rounding error.
				if diff, bound := math.Abs(sum-want), 1.01*s.Tail(omega, 1)+2*float64(d)*tol+1e-10; !(diff <= bound) {
					t.Errorf("%v, sides %v, windowed %v: the series at %v differs by %.3g, the bound is %.3g", k, sides, c.Windowed, x, diff, bound)
				}
			}
		}
	}
	if windows < 6 {
		t.Errorf("only %d of the problems have a window", windows)
	}
}

// TestWindowedCoefficientsArePositive checks windowed Matérn kernels for sides from much smaller to much larger
// than the length scale.
func TestWindowedCoefficientsArePositive(t *testing.T) {
	sides := [][3]float64{
		{0, 0, 0}, {0, 0, 1}, {0, 0, 2}, {0, 0, 4}, {0, 0, 5.3}, {0, 0, 6.5},
		{0, 0, 4}, {0, 2, 2}, {0, 2, 6}, {0, 4, 4}, {0, 4, 6}, {0, 5.3, 5.3}, {0, 5.3, 6.5}, {0, 6, 6},
		{0, 0, 4}, {2, 2, 2}, {2, 4, 6}, {4, 4, 4}, {5.3, 5.3, 5.3},
	}
	if testing.Short() {
		sides = sides[:14]
	}
	for i, side := range sides {
		d := 1 + min(i/6, 1) + i/14
		for _, nu := range []float64{0.5, 1.5, 2.5} {
			t.Run(fmt.Sprintf("%d features, nu %g, %v", d, nu, side), func(t *testing.T) {
				s := Density{D: d, Terms: []Term{{1, 1, nu}}}
				c := s.Wrap(side, 1e-14)
				if !c.Windowed {
					t.Fatal("no window")
				}
				m := s.remainderModes(c)
				h, volume := m.Half(), 1.0
				for a := 3 - d; a < 3; a++ {
					volume *= c.Period[a]
				}
				for index, v := range s.remainder(c, m) {
					k := [3]int{index/(h[1]*h[2]) - m[0], index/h[2]%h[1] - m[1], index % h[2]}
					if f := s.At(c.Frequency(k)) / volume; !(real(v) < 0.7*f) || math.Abs(imag(v)) > 1e-14 {
						t.Fatalf("mode %v: %v of %v", k, v, f)
					}
				}
			})
		}
	}
}

package spectrum

import (
	"math"

	"gonum.org/v1/gonum/integrate/quad"

	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/nufft"
	"github.com/mercer-go/mercer/internal/run"
)

// A Torus is a box of differences r of points, |r_a| ≤ Side[a], inside the periods of a Fourier series that
// approximates a kernel on this box. Problems of fewer than three features use the last axes; the first axes have
// Side 0 and Period 0.
//
// If Windowed is set, Matérn kernels are first multiplied by a smooth window, the product over the axes of
//
//	η(t) = erfc((|t| − T/2)/s)/2,   s = (T/2 − L)/windowEdge,
//
// where L is the side and T the period of an axis. Up to an error of 4e-15, η is 1 for |t| ≤ L and 0 for
// |t| ≥ T − L. The window allows shorter periods if the kernel has a long reach. (Smooth truncation of
// covariances: Bachmayr, Graham, Nguyen and Scheichl 2020.)
type Torus struct {
	Side, Period [3]float64
	Windowed     bool
}

const (
	windowEdge = 5.5
	// windowError bounds the error of the window at its ends: erfc(windowEdge)/2 is 3.7e-15.
	windowError = 4e-15
	// The period of a window is at least side + windowReach·sigma and (1 + windowSide)·side. All Fourier coefficients
	// of the tested kernels were positive with windowReach = 8, but not with 7.5.
	windowReach = 8
	windowSide  = 1.5
)

func (s Density) split() (matern, gauss Density) {
	matern.D, gauss.D = s.D, s.D
	for _, t := range s.Terms {
		if math.IsInf(t.Nu, 1) {
			gauss.Terms = append(gauss.Terms, t)
		} else {
			matern.Terms = append(matern.Terms, t)
		}
	}
	return matern, gauss
}

// Wrap returns the torus with the smallest periods for differences up to sides. Periodic images
// change the kernel by at most about 2D·tol for D features.
func (s Density) Wrap(sides [3]float64, tol float64) Torus {
	plain, windowed := Torus{Side: sides}, Torus{Side: sides, Windowed: true}
	matern, gauss := s.split()
	radius, minMargin := s.radius(tol), gauss.radius(tol)
	for _, t := range matern.Terms {
		minMargin = max(minMargin, windowReach*t.Sigma)
	}
	ratio := 1.0
	for a := 3 - s.D; a < 3; a++ {
		plain.Period[a] = sides[a] + radius
		windowed.Period[a] = sides[a] + max(minMargin, windowSide*sides[a])
		ratio *= windowed.Period[a] / plain.Period[a]
	}
	if ratio < 0.8 && tol >= windowError*s.Kernel(0) {
		return windowed
	}
	return plain
}

// radius returns a distance beyond which the kernel, without its constant, is at most tol.
func (s Density) radius(tol float64) float64 {
	if len(s.Terms) == 0 {
		return 0
	}
	return Decreasing(func(r float64) bool { return s.Kernel(r) <= tol }, s.Terms[0].Sigma)
}

// Decreasing returns a number slightly above the smallest v for which within(v) is true. The function within must
// also be true for all larger numbers.
func Decreasing(within func(v float64) bool, start float64) float64 {
	high := start
	for i := 0; i < 200 && !within(high); i++ {
		high *= 2
	}
	low := high / 2
	for i := 0; i < 200 && within(low); i++ {
		low, high = low/2, low
	}
	for range 6 {
		if mid := (low + high) / 2; within(mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// Frequency returns the frequency ‖ω‖ of mode k, ω_a = 2πk_a/T_a.
func (c Torus) Frequency(k [3]int) (omega float64) {
	for a, period := range c.Period {
		if period > 0 {
			omega = math.Hypot(omega, 2*math.Pi*float64(k[a])/period)
		}
	}
	return omega
}

// Coefficients returns the Fourier coefficients of the kernel for the modes k with |k_a| ≤ m_a on
// each axis a, in the shape m.Half(). A coefficient is the density s at ω divided by the volume of
// c. Mode 0 adds s.Constant. If c is windowed, Coefficients subtracts the result of s.remainder.
func (s Density) Coefficients(c Torus, m nufft.Axes) []float64 {
	h := m.Half()
	f := make([]float64, h.Len())
	volume := 1.0
	for a := 3 - s.D; a < 3; a++ {
		volume *= c.Period[a]
	}
	var remainder []complex128
	limit := s.remainderModes(c)
	remainderShape := limit.Half()
	if c.Windowed {
		remainder = s.remainder(c, limit)
	}
	run.Parallel(len(f), func(first, last int) {
		for index := first; index < last; index++ {
			k := [3]int{index/(h[1]*h[2]) - m[0], index/h[2]%h[1] - m[1], index % h[2]}
			f[index] = s.At(c.Frequency(k)) / volume
			if remainder != nil && max(k[0], -k[0]) <= limit[0] && max(k[1], -k[1]) <= limit[1] && k[2] <= limit[2] {
				f[index] = max(0, f[index]-real(remainder[((k[0]+limit[0])*remainderShape[1]+k[1]+limit[1])*remainderShape[2]+k[2]]))
			}
			if k == [3]int{} {
				f[index] += s.Constant
			}
		}
	})
	return f
}

// remainderModes returns the largest indices of the coefficients of remainder that are not negligible. For larger
// indices, the transform of the edge of the window is below exp(−25).
func (s Density) remainderModes(c Torus) (m nufft.Axes) {
	if !c.Windowed {
		return m
	}
	for a := 3 - s.D; a < 3; a++ {
		m[a] = int(math.Ceil(10 * windowEdge / math.Pi * c.Period[a] / (c.Period[a] - 2*c.Side[a])))
	}
	return m
}

// Elements returns the number of float64 values that Coefficients allocates for c in addition to its result.
func (s Density) Elements(c Torus) int64 {
	if !c.Windowed {
		return 0
	}
	m := s.remainderModes(c)
	size := gridOf(m)
	return nufft.Elements(m, size) + int64(size[0])*int64(size[1])*int64(size[2]) + 2*int64(m.Half().Len())
}

func gridOf(m nufft.Axes) nufft.Axes {
	var minSize nufft.Axes
	for a, v := range m {
		minSize[a] = 2*v + 2
	}
	return nufft.SizeOf(m, minSize)
}

// remainder returns the coefficients of the smooth periodic function
//
//	Σ_m k(r + mT)(1 − η(r + mT))
//
// of the Matérn terms k, with η and T of Torus. It is even on every axis and is evaluated only for r_a ≥ 0.
func (s Density) remainder(c Torus, m nufft.Axes) []complex128 {
	k, _ := s.split()
	radius := k.radius(1e-17 * k.Kernel(0))
	grid := nufft.NewGrid(m, gridOf(m))
	size, upper := grid.Size, upperTail()
	// image holds t² and the window η(t) of a point, or of a periodic image of it, at the coordinate t on an axis.
	type image struct{ square, window float64 }
	var images [3][][]image
	var count nufft.Axes
	for a := range 3 {
		count[a] = size[a]/2 + 1
		if c.Period[a] == 0 {
			images[a], count[a] = [][]image{{{0, 1}}}, 1
			continue
		}
		width := (c.Period[a]/2 - c.Side[a]) / windowEdge
		for i := range count[a] {
			position := c.Period[a] * float64(i) / float64(size[a])
			var list []image
			numImages := int(radius/c.Period[a]) + 1
			for j := -numImages; j <= numImages; j++ {
				t := math.Abs(position + float64(j)*c.Period[a])
				if t <= radius {
					list = append(list, image{t * t, upper((t - c.Period[a]/2) / width)})
				}
			}
			images[a] = append(images[a], list)
		}
	}
	values := make([]float64, size.Len())
	run.Parallel(count[0]*count[1], func(first, last int) {
		for row := first; row < last; row++ {
			i, j := row/count[1], row%count[1]
			for l, line := range images[2] {
				sum := 0.0
				for _, p := range images[0][i] {
					for _, q := range images[1][j] {
						for _, r := range line {
							square, weight := p.square+q.square+r.square, 1-p.window*q.window*r.window
							if weight > 0 && square <= radius*radius {
								sum += weight * k.Kernel(math.Sqrt(square))
							}
						}
					}
				}
				for _, x := range [2]int{i, (size[0] - i) % size[0]} {
					for _, y := range [2]int{j, (size[1] - j) % size[1]} {
						offset := (x*size[1] + y) * size[2]
						values[offset+l], values[offset+(size[2]-l)%size[2]] = sum, sum
					}
				}
			}
		}
	})
	f := make([]complex128, m.Half().Len())
	grid.Modes(f, values)
	for i := range f {
		f[i] /= complex(float64(len(values)), 0)
	}
	return f
}

// upperTail returns the function erfc(z)/2, to about 1e-16. Beyond ±windowEdge it is 0 or 1.
func upperTail() func(z float64) float64 {
	node, weight := make([]float64, 48), make([]float64, 48)
	quad.Legendre{}.FixedLocations(node, weight, 0, 1)
	return func(z float64) float64 {
		switch {
		case z >= windowEdge:
			return 0
		case z <= -windowEdge:
			return 1
		}
		sum := 0.5
		for i, u := range node {
			sum -= z / math.Sqrt(math.Pi) * weight[i] * elementary.Exp(-z*z*u*u)
		}
		return sum
	}
}

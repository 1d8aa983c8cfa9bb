package nufft_test

import (
	"fmt"
	"math"
	"math/cmplx"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/nufft"
)

// points returns n points in [−1, 2)ᵈ. Two points are equal, and three are at or next to the ends of [0, 1)ᵈ.
func points(r *rand.Rand, n, d int) host.Matrix[float64] {
	x := host.New[float64](n, d)
	for i := range x.Data {
		x.Data[i] = 3*r.Float64() - 1
	}
	copy(x.Row(1), x.Row(0))
	for a := range d {
		x.Row(2)[a], x.Row(3)[a], x.Row(4)[a] = 0, math.Nextafter(1, 0), -0x1p-60
	}
	return x
}

// forEachMode calls f with the index of each mode and its phase 2πk·x for the points.
func forEachMode(m nufft.Axes, x host.Matrix[float64], f func(index int, k [3]int, phase func(i int) float64)) {
	h, index := m.Half(), 0
	for i := range h[0] {
		for j := range h[1] {
			for l := range h[2] {
				k := [3]int{i - m[0], j - m[1], l}
				f(index, k, func(i int) float64 {
					sum := 0.0
					for a, v := range x.Row(i) {
						sum += math.Mod(float64(k[3-x.Cols+a])*v, 1)
					}
					return 2 * math.Pi * sum
				})
				index++
			}
		}
	}
}

var shapes = []struct {
	d int
	m nufft.Axes
}{
	{1, nufft.Axes{0, 0, 1}}, {1, nufft.Axes{0, 0, 40}}, {2, nufft.Axes{0, 1, 1}}, {2, nufft.Axes{0, 13, 7}},
	{3, nufft.Axes{2, 5, 3}}, {3, nufft.Axes{3, 0, 2}}, {2, nufft.Axes{0, 4, 0}}, {3, nufft.Axes{}},
}

// TestSums compares both transforms with their defining sums. The error may be at most (tol + 2⁻⁴⁰) times the sum of
// the absolute values of the terms, where 2⁻⁴⁰ allows for rounding.
func TestSums(t *testing.T) {
	const n = 60
	for _, s := range shapes {
		for _, tol := range []float64{1e-2, 1e-6, 1e-9, 1e-12} {
			t.Run(fmt.Sprint(s.m, tol), func(t *testing.T) {
				r := rand.New(rand.NewPCG(1, 0))
				x := points(r, n, s.d)
				p := nufft.New(x, s.m, tol)
				c, total := make([]float64, n), 0.0
				for i := range c {
					c[i] = r.NormFloat64()
					total += math.Abs(c[i])
				}
				got := make([]complex128, s.m.Half().Len())
				p.Modes(got, c)
				maxError := 0.0
				forEachMode(s.m, x, func(index int, _ [3]int, phase func(i int) float64) {
					var want complex128
					for i, v := range c {
						want += complex(v, 0) * cmplx.Exp(complex(0, -phase(i)))
					}
					maxError = max(maxError, cmplx.Abs(got[index]-want))
				})
				if bound := (tol + 0x1p-40) * total; !(maxError <= bound) {
					t.Errorf("type 1: error %.3g, allowed %.3g", maxError, bound)
				}

				f, half, total := make([]complex128, len(got)), s.m.Half(), 0.0
				want := make([]float64, n)
				for index := range f {
					f[index] = complex(r.NormFloat64(), r.NormFloat64())
				}
				for index := 0; index < len(f); index += half[2] { // if k₃ = 0, f holds both a mode and its conjugate
					if conjugate := len(f) - half[2] - index; conjugate > index {
						f[conjugate] = cmplx.Conj(f[index])
					} else if conjugate == index {
						f[index] = complex(real(f[index]), 0)
					}
				}
				forEachMode(s.m, x, func(index int, k [3]int, phase func(i int) float64) {
					times := 2.0
					if k[2] == 0 {
						times = 1
					}
					total += times * cmplx.Abs(f[index])
					for i := range want {
						want[i] += times * real(f[index]*cmplx.Exp(complex(0, phase(i))))
					}
				})
				values := make([]float64, n)
				p.Values(values, f)
				maxError = 0
				for i := range want {
					maxError = max(maxError, math.Abs(values[i]-want[i]))
				}
				if bound := (tol + 0x1p-40) * total; !(maxError <= bound) {
					t.Errorf("type 2: error %.3g, allowed %.3g", maxError, bound)
				}
			})
		}
	}
}

// TestDense compares both transforms of a Dense with those of a Grid of at most 30·30·30 modes.
func TestDense(t *testing.T) {
	element := func(transpose bool, h host.Matrix[float64], i, k int) float64 {
		if transpose {
			i, k = k, i
		}
		return h.Row(i)[k]
	}
	multiply := func(tA, tB bool, a, b, c host.Matrix[float64]) {
		terms := a.Cols
		if tA {
			terms = a.Rows
		}
		for i := range c.Rows {
			for j := range c.Cols {
				sum := 0.0
				for k := range terms {
					sum += element(tA, a, i, k) * element(tB, b, k, j)
				}
				c.Row(i)[j] = sum
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 0))
	for _, s := range shapes {
		for _, ratio := range []int{2, 4} {
			grid := nufft.NewGrid(s.m, nufft.Axes{ratio*s.m[0] + 1, ratio*s.m[1] + 1, ratio*s.m[2] + 1})
			dense := nufft.NewDense(s.m, grid.Size, multiply)
			f, fromDense := make([]complex128, s.m.Half().Len()), make([]complex128, s.m.Half().Len())
			values, want := make([]float64, grid.Size.Len()), make([]float64, grid.Size.Len())
			total := 0.0
			for i := range values {
				values[i] = r.NormFloat64()
				total += math.Abs(values[i])
			}
			grid.Modes(f, values)
			dense.Modes(fromDense, values)
			for i, v := range f {
				if d := cmplx.Abs(fromDense[i] - v); !(d <= 0x1p-48*total) {
					t.Fatalf("%v, size %v: mode %d: got %v, want %v", s.m, grid.Size, i, fromDense[i], v)
				}
			}
			grid.Values(want, slices.Clone(f))
			dense.Values(values, f)
			for i, v := range want {
				if d := math.Abs(values[i] - v); !(d <= 0x1p-48*total*float64(len(f))) {
					t.Fatalf("%v, size %v: value %d: got %v, want %v", s.m, grid.Size, i, values[i], v)
				}
			}
		}
	}
}

// TestWorkersDoNotChangeResults checks that one and several workers give the same bits.
func TestWorkersDoNotChangeResults(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	const n = 300
	for _, s := range shapes {
		x := points(rand.New(rand.NewPCG(2, 0)), n, s.d)
		var last []complex128
		var lastValues []float64
		for _, workers := range []int{1, 2, 7} {
			runtime.GOMAXPROCS(workers)
			p := nufft.New(x, s.m, 1e-9)
			f, c := make([]complex128, s.m.Half().Len()), make([]float64, n)
			for i := range c {
				c[i] = math.Sin(float64(i))
			}
			p.Modes(f, c)
			modes := slices.Clone(f)
			p.Values(c, f)
			if last != nil && !(slices.Equal(modes, last) && slices.Equal(c, lastValues)) {
				t.Errorf("%v: %d workers give other bits", s.m, workers)
			}
			last, lastValues = modes, c
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	const n = 100_000
	x, m := points(rand.New(rand.NewPCG(3, 0)), n, 2), nufft.Axes{0, 200, 200}
	p := nufft.New(x, m, 1e-9)
	f, c := make([]complex128, m.Half().Len()), make([]float64, n)
	for b.Loop() {
		p.Modes(f, c)
		p.Values(c, f)
		for i := range c {
			c[i] *= 1e-9
		}
	}
}

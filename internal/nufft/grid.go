package nufft

import (
	"sync"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/mercer-go/mercer/internal/run"
)

// Axes holds one number for each of three axes. Problems of lower dimension use the last axes.
type Axes [3]int

// Len returns the product of the three numbers.
func (a Axes) Len() int { return a[0] * a[1] * a[2] }

// Half returns the shape of the coefficients F_k of a real function for |k_a| ≤ m_a: k runs from −m to m on the
// first two axes and from 0 to m on the last axis. The other coefficients are complex conjugates, F_{−k} = F̄_k.
func (m Axes) Half() Axes { return Axes{2*m[0] + 1, 2*m[1] + 1, m[2] + 1} }

// Grid is the discrete Fourier transform between real values on a grid and their coefficients for the
// modes |k_a| ≤ m_a. It must not be used concurrently.
type Grid struct {
	modes, halfModes, Size Axes
	complexFFT             [2]sync.Pool // *fourier.CmplxFFT of the first two axes
	realFFT                sync.Pool    // *fourier.FFT of the last axis
	work                   [2][]complex128
}

// Elements returns the number of float64 values that a Grid stores for the given modes and size.
func Elements(m, size Axes) int64 {
	h := m.Half()
	return 2 * (int64(size[0])*int64(h[1])*int64(h[2]) + int64(size[0])*int64(size[1])*int64(h[2]))
}

// NewGrid returns the transform for the modes |k_a| ≤ m_a. If m_a > 0, axis a of the grid has at
// least minSize[a] values, and minSize[a] must exceed 2m_a.
func NewGrid(m, minSize Axes) *Grid {
	g := &Grid{modes: m, halfModes: m.Half(), Size: SizeOf(m, minSize)}
	for a := range g.complexFFT {
		g.complexFFT[a].New = func() any { return fourier.NewCmplxFFT(g.Size[a]) }
	}
	g.realFFT.New = func() any { return fourier.NewFFT(g.Size[2]) }
	g.work[0] = make([]complex128, g.Size[0]*g.halfModes[1]*g.halfModes[2])
	g.work[1] = make([]complex128, g.Size[0]*g.Size[1]*g.halfModes[2])
	return g
}

// SizeOf returns the size of the grid of NewGrid. If m_a > 0, the size of axis a is the smallest
// even number ≥ minSize[a] whose prime factors are 2, 3 or 5. If m_a = 0, it is 1.
func SizeOf(m, minSize Axes) (size Axes) {
	for a, v := range minSize {
		size[a] = 1
		for v += v % 2; m[a] > 0; v += 2 {
			quotient := v
			for _, p := range []int{2, 3, 5} {
				for quotient%p == 0 {
					quotient /= p
				}
			}
			if quotient == 1 {
				size[a] = v
				break
			}
		}
	}
	return size
}

// Values computes dst_l = Σ_k f_k exp(2πi Σ_a k_a l_a / Size_a) for the points l of the grid.
func (g *Grid) Values(dst []float64, f []complex128) {
	h, p := g.halfModes, g.Size
	g.axis(0, g.work[0], f, 1, h[1]*h[2], true)
	g.axis(1, g.work[1], g.work[0], p[0], h[2], true)
	run.Parallel(p[0]*p[1], func(first, last int) {
		t := g.realFFT.Get().(*fourier.FFT)
		defer g.realFFT.Put(t)
		line := make([]complex128, p[2]/2+1)
		for i := first; i < last; i++ {
			if p[2] == 1 {
				dst[i] = real(g.work[1][i])
				continue
			}
			copy(line, g.work[1][i*h[2]:][:h[2]])
			t.Sequence(dst[i*p[2]:][:p[2]], line)
		}
	})
}

// Modes computes f_k = Σ_l values_l exp(−2πi Σ_a k_a l_a / Size_a) for the modes k.
func (g *Grid) Modes(f []complex128, values []float64) {
	h, p := g.halfModes, g.Size
	run.Parallel(p[0]*p[1], func(first, last int) {
		t := g.realFFT.Get().(*fourier.FFT)
		defer g.realFFT.Put(t)
		line := make([]complex128, p[2]/2+1)
		for i := first; i < last; i++ {
			if p[2] == 1 {
				g.work[1][i] = complex(values[i], 0)
				continue
			}
			t.Coefficients(line, values[i*p[2]:][:p[2]])
			copy(g.work[1][i*h[2]:][:h[2]], line)
		}
	})
	g.axis(1, g.work[0], g.work[1], p[0], h[2], false)
	g.axis(0, f, g.work[0], 1, h[1]*h[2], false)
}

// axis transforms along axis a, 0 or 1, from modes to grid values if toGrid is set, and otherwise back. outer and
// inner are the products of the sizes of the axes before and after axis a.
func (g *Grid) axis(a int, dst, src []complex128, outer, inner int, toGrid bool) {
	m, k, p := g.modes[a], g.halfModes[a], g.Size[a]
	if p == 1 {
		copy(dst, src)
		return
	}
	const width = 8 // number of adjacent lines that are transformed together
	blocks := (inner + width - 1) / width
	run.Parallel(outer*blocks, func(first, last int) {
		t := g.complexFFT[a].Get().(*fourier.CmplxFFT)
		defer g.complexFFT[a].Put(t)
		lines := make([]complex128, width*p)
		for b := first; b < last; b++ {
			o, from := b/blocks, b%blocks*width
			n := min(width, inner-from)
			rows, columns := p, k // lengths of a line of src and of dst
			if toGrid {
				rows, columns = k, p
			}
			in, out := src[o*rows*inner+from:], dst[o*columns*inner+from:]
			if toGrid {
				clear(lines)
				for i := range k {
					index := (i - m + p) % p
					for c, v := range in[i*inner:][:n] {
						lines[c*p+index] = v
					}
				}
			} else {
				for i := range p {
					for c, v := range in[i*inner:][:n] {
						lines[c*p+i] = v
					}
				}
			}
			for c := range n {
				line := lines[c*p:][:p]
				if toGrid {
					t.Sequence(line, line)
				} else {
					t.Coefficients(line, line)
				}
			}
			if toGrid {
				for i := range p {
					for c := range n {
						out[i*inner+c] = lines[c*p+i]
					}
				}
			} else {
				for i := range k {
					index := (i - m + p) % p
					for c := range n {
						out[i*inner+c] = lines[c*p+index]
					}
				}
			}
		}
	})
}

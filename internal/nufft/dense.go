package nufft

import (
	"math"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/run"
)

// Multiply computes C ← op(A) op(B), where op(A) is Aᵀ if transposeA is set and op(B) is Bᵀ if transposeB is set.
type Multiply func(transposeA, transposeB bool, a, b, c host.Matrix[float64])

// Dense computes the same transform as a Grid, for a grid of any size, by one matrix product for each axis instead
// of fast Fourier transforms. With up to some hundred modes on an axis the products take less time if Multiply is
// fast. A Dense must not be used concurrently.
//
// On the first two axes, the products use sums and differences of the coefficients of k and −k, which halves the
// number of operations. With θ = 2πl/Size and i² = −1,
//
//	Σ_k f_k exp(iθk) = f_0 + Σ_{k>0} cos(θk)(f_k + f_{−k}) + sin(θk) i(f_k − f_{−k})
//
// A complex number is stored as two adjacent real numbers.
type Dense struct {
	modes, halfModes, Size Axes
	multiply               Multiply
	tables                 [3]host.Matrix[float64] // cosines and sines: Size × (2m+1) on the first two axes, 2(m+1) × Size on the last axis
	folded                 [2][]float64
	work                   [3][]float64 // the coefficients, and the results of the transforms of the first and of the second axis
}

// DenseElements returns the number of float64 values that a Dense stores.
func DenseElements(m, size Axes) int64 {
	h := m.Half()
	row := 2 * int64(h[2])
	inner, middle := int64(h[1])*row, int64(size[0])*row
	return int64(size[0]*h[0]+size[1]*h[1]+size[2]*2*h[2]) + 2*int64(h[0])*inner + int64(h[1])*row + int64(size[0])*inner + int64(size[1])*middle
}

// DenseFlops returns the number of floating-point operations of one call of Values or of Modes.
func DenseFlops(m, size Axes) float64 {
	h, flops := m.Half(), 0.0
	outer, inner := 1., float64(2*h[1]*h[2])
	for a := range 2 {
		if m[a] > 0 {
			flops += 2 * outer * float64(size[a]) * float64(h[a]) * inner
		}
		outer *= float64(size[a])
		inner /= float64(h[1])
	}
	return flops + 2*outer*float64(2*h[2])*float64(size[2])
}

// NewDense returns the transform for the modes |k_a| ≤ m_a on a grid with size[a] values on each axis.
func NewDense(m, size Axes, multiply Multiply) *Dense {
	g := &Dense{modes: m, halfModes: m.Half(), Size: size, multiply: multiply}
	for a := range 3 {
		wave := func(k, l int) (cosine, sine float64) {
			sine, cosine = math.Sincos(2 * math.Pi * float64(int64(k)*int64(l)%int64(size[a])) / float64(size[a]))
			return cosine, sine
		}
		if a == 2 {
			t := host.New[float64](2*g.halfModes[2], size[2])
			for k := range g.halfModes[2] {
				for l := range size[2] {
					c, s := wave(k, l)
					t.Row(2 * k)[l], t.Row(2*k + 1)[l] = c, -s
				}
			}
			g.tables[2] = t
			continue
		}
		t := host.New[float64](size[a], g.halfModes[a])
		for l := range size[a] {
			row := t.Row(l)
			row[0] = 1
			for k := 1; k <= m[a]; k++ {
				row[k], row[m[a]+k] = wave(k, l)
			}
		}
		g.tables[a] = t
	}
	h := g.halfModes
	inner := 2 * h[1] * h[2]
	g.folded[0], g.folded[1] = make([]float64, h[0]*inner), make([]float64, h[1]*2*h[2])
	g.work[0], g.work[1] = make([]float64, h[0]*inner), make([]float64, size[0]*inner)
	g.work[2] = make([]float64, size[0]*size[1]*2*h[2])
	return g
}

func matrix(rows, cols int, data []float64) host.Matrix[float64] {
	return host.Matrix[float64]{Rows: rows, Cols: cols, Stride: cols, Data: data[:rows*cols]}
}

// Values computes dst_l = Σ_k f_k exp(2πi Σ_a k_a l_a / Size_a) for the points l of the grid.
func (g *Dense) Values(dst []float64, f []complex128) {
	h, p := g.halfModes, g.Size
	run.Parallel(len(f), func(first, last int) {
		for i := first; i < last; i++ {
			v := f[i]
			if i%h[2] > 0 {
				v *= 2 // adds the term of the conjugate coefficient, whose real part is the same
			}
			g.work[0][2*i], g.work[0][2*i+1] = real(v), imag(v)
		}
	})
	inner := 2 * h[1] * h[2]
	for a, width := range []int{inner, 2 * h[2]} {
		if g.modes[a] == 0 {
			copy(g.work[a+1], g.work[a])
			continue
		}
		for o := range [...]int{1, p[0]}[a] {
			fold(g.folded[a], g.work[a][o*h[a]*width:], g.modes[a], width)
			g.multiply(false, false, g.tables[a], matrix(h[a], width, g.folded[a]), matrix(p[a], width, g.work[a+1][o*p[a]*width:]))
		}
	}
	g.multiply(false, false, matrix(p[0]*p[1], 2*h[2], g.work[2]), g.tables[2], matrix(p[0]*p[1], p[2], dst))
}

// Modes computes f_k = Σ_l values_l exp(−2πi Σ_a k_a l_a / Size_a) for the modes k.
func (g *Dense) Modes(f []complex128, values []float64) {
	h, p := g.halfModes, g.Size
	g.multiply(false, true, matrix(p[0]*p[1], p[2], values), g.tables[2], matrix(p[0]*p[1], 2*h[2], g.work[2]))
	inner := 2 * h[1] * h[2]
	for _, a := range []int{1, 0} {
		width := [...]int{inner, 2 * h[2]}[a]
		if g.modes[a] == 0 {
			copy(g.work[a], g.work[a+1])
			continue
		}
		for o := range [...]int{1, p[0]}[a] {
			g.multiply(true, false, g.tables[a], matrix(p[a], width, g.work[a+1][o*p[a]*width:]), matrix(h[a], width, g.folded[a]))
			unfold(g.work[a][o*h[a]*width:], g.folded[a], g.modes[a], width)
		}
	}
	run.Parallel(len(f), func(first, last int) {
		for i := first; i < last; i++ {
			f[i] = complex(g.work[0][2*i], g.work[0][2*i+1])
		}
	})
}

// fold writes 2m+1 rows, each of width numbers, to r: f_0, then f_k + f_{−k} for k = 1, …, m, and
// then i(f_k − f_{−k}) for k = 1, …, m. Here f_k is row m + k of f.
func fold(r, f []float64, m, width int) {
	copy(r, f[m*width:][:width])
	run.Parallel(m, func(first, last int) {
		for k := first + 1; k <= last; k++ {
			plus, minus := f[(m+k)*width:][:width], f[(m-k)*width:][:width]
			sum, diff := r[k*width:][:width], r[(m+k)*width:][:width]
			for i := 0; i < width; i += 2 {
				sum[i], sum[i+1] = plus[i]+minus[i], plus[i+1]+minus[i+1]
				diff[i], diff[i+1] = minus[i+1]-plus[i+1], plus[i]-minus[i]
			}
		}
	})
}

// unfold sets row m + k of f to E_k − iO_k and row m − k to E_k + iO_k, for k = 0, …, m and O_0 = 0. The rows of r
// are E_0, …, E_m, O_1, …, O_m.
func unfold(f, r []float64, m, width int) {
	copy(f[m*width:], r[:width])
	run.Parallel(m, func(first, last int) {
		for k := first + 1; k <= last; k++ {
			even, odd := r[k*width:][:width], r[(m+k)*width:][:width]
			plus, minus := f[(m+k)*width:][:width], f[(m-k)*width:][:width]
			for i := 0; i < width; i += 2 {
				plus[i], plus[i+1] = even[i]+odd[i+1], even[i+1]-odd[i]
				minus[i], minus[i+1] = even[i]-odd[i+1], even[i+1]+odd[i]
			}
		}
	})
}

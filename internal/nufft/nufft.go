package nufft

import (
	"math"
	"slices"
	"sort"

	"gonum.org/v1/gonum/integrate/quad"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/run"
)

// maxWidth is the width, in cells, of the spreading kernel whose error is the roundoff of float64.
const maxWidth = 16

// Plan holds the points x_j and the modes of a pair of transforms. It must not be used concurrently.
type Plan struct {
	grid        *Grid
	width       Axes         // cells of the kernel: w, or 1 on an axis with m_a = 0
	padded      Axes         // size of the grid with margins for the kernel
	margin      Axes         // number of cells of padded before the first cell of the grid
	polynomials [][2]float64 // the polynomials that approximate the kernel piecewise
	order       []int32      // indices of the points, sorted by cell
	x           []float64    // three coordinates of each point, in units of cells; the points are sorted like the field order
	stripAxis   int          // the axis whose cells are the first sorting key of the points
	factor      [3][]float64 // reciprocals of the kernel's transform for k = 0, …, m
	cells       []float64    // the grid with its margins
	values      []float64    // the grid
}

// Width returns the width of the kernel, in cells, for an error of tol: ⌈log₁₀(1/tol)⌉ + 1 for one dimension
// (Barnett, Magland and af Klinteberg 2019, §4.2), plus 1 because the errors of three dimensions add up.
func Width(tol float64) int {
	return min(max(int(math.Ceil(-math.Log10(tol)))+2, 3), maxWidth)
}

// PlanElements returns the number of float64 values that a Plan of n points stores.
func PlanElements(n int, m Axes, tol float64) int64 {
	size := oversampledSize(m, Width(tol))
	cells := int64(1)
	for a, v := range size {
		if m[a] > 0 {
			v += Width(tol) + 1
		}
		cells *= int64(v)
	}
	return Elements(m, size) + cells + int64(size[0])*int64(size[1])*int64(size[2]) + 4*int64(n)
}

// oversampledSize returns a grid size of at least twice the number of modes and twice the width.
func oversampledSize(m Axes, width int) Axes {
	var minSize Axes
	for a := range m {
		minSize[a] = max(4*m[a]+2, 2*width)
	}
	return SizeOf(m, minSize)
}

// New returns a plan for the points in the rows of x and for the modes |k_a| ≤ m_a. Coordinates must be finite, and the
// period is 1. The columns of x, at most three, are the coordinates on the last axes. On the other axes m must be 0.
// The error of each result of a transform is at most max(tol, 1e-14) times the sum of the absolute values of the terms.
func New(x host.Matrix[float64], m Axes, tol float64) *Plan {
	w := Width(tol)
	p := &Plan{grid: NewGrid(m, oversampledSize(m, w)), polynomials: kernelPolynomials(w), stripAxis: 2}
	for a := 2; a >= 0; a-- {
		p.width[a], p.margin[a], p.padded[a] = 1, 0, 1
		p.factor[a] = []float64{1}
		if m[a] > 0 {
			p.stripAxis = a
			p.width[a], p.margin[a] = w, (w+1)/2
			p.padded[a] = p.grid.Size[a] + 2*p.margin[a]
			p.factor[a] = factors(m[a], p.grid.Size[a], w)
		}
	}
	p.sort(x)
	p.cells = make([]float64, p.padded.Len())
	p.values = make([]float64, p.grid.Size.Len())
	return p
}

// factors returns the reciprocals of ∫ φ(2t/w) exp(−2πi kt/size) dt for k = 0, …, m, where φ is the kernel,
// computed by Gauss–Legendre quadrature.
func factors(m, size, w int) []float64 {
	z, weight := make([]float64, 8*w+32), make([]float64, 8*w+32)
	quad.Legendre{}.FixedLocations(z, weight, -1, 1)
	for i, v := range z {
		weight[i] *= kernel(v, w) * float64(w) / 2
	}
	f := make([]float64, m+1)
	for k := range f {
		sum := 0.0
		for i, v := range z {
			sum += weight[i] * math.Cos(math.Pi*float64(w)*float64(k)/float64(size)*v)
		}
		f[k] = 1 / sum
	}
	return f
}

// kernel returns φ(z) = exp(β(√(1−z²) − 1)) for |z| ≤ 1, with β = 2.3w.
func kernel(z float64, w int) float64 {
	return elementary.Exp(2.3 * float64(w) * (math.Sqrt(max(1-z*z, 0)) - 1))
}

// terms returns half the number of coefficients of each polynomial of kernelPolynomials.
func terms(w int) int { return w/2 + 3 }

// kernelPolynomials returns a polynomial in u for each cell i of the left half of the kernel φ. For −1 ≤ u ≤ 1 it
// interpolates φ((2i + 1 − w + u)/w) at Chebyshev nodes. A polynomial is a list of pairs, the coefficients of u²ᵏ
// and u²ᵏ⁺¹, in descending order of k. By symmetry, the polynomial of cell w−1−i at u equals that of cell i at −u.
func kernelPolynomials(w int) [][2]float64 {
	n := 2 * terms(w)
	var list [][2]float64
	for i := range (w + 1) / 2 {
		// Convert the Chebyshev coefficients c to coefficients of powers of u, by T_{k+1} = 2uT_k − T_{k−1}.
		sum := make([]float64, n)
		previous, current := make([]float64, n), make([]float64, n)
		current[0] = 1
		for k := range n {
			c := 0.0
			for j := range n {
				angle := math.Pi * (float64(j) + 0.5) / float64(n)
				c += 2 / float64(n) * kernel((float64(2*i+1-w)+math.Cos(angle))/float64(w), w) * math.Cos(float64(k)*angle)
			}
			if k == 0 {
				c /= 2
			}
			for j, v := range current {
				sum[j] += c * v
			}
			next := make([]float64, n)
			for j, v := range current[:n-1] {
				next[j+1] = 2 * v
				if k == 0 {
					next[j+1] = v
				}
			}
			for j, v := range previous {
				next[j] -= v
			}
			previous, current = current, next
		}
		for k := n - 2; k >= 0; k -= 2 {
			list = append(list, [2]float64{sum[k], sum[k+1]})
		}
	}
	return list
}

// sort sorts the points by their cells and sets the fields order and x of p.
func (p *Plan) sort(x host.Matrix[float64]) {
	n, first := x.Rows, 3-x.Cols
	cell := func(i, a int) float64 {
		if a < first || p.width[a] == 1 {
			return 0
		}
		v := x.Row(i)[a-first]
		v -= math.Floor(v)
		return min(v*float64(p.grid.Size[a]), math.Nextafter(float64(p.grid.Size[a]), 0))
	}
	keys := make([]uint64, n)
	run.Parallel(n, func(from, to int) {
		for i := from; i < to; i++ {
			key := uint64(p.start(cell(i, p.stripAxis), p.stripAxis))
			if p.stripAxis < 2 { // second key: points near each other on the next axis share cache lines
				key = key<<10 | uint64(cell(i, p.stripAxis+1)/float64(p.grid.Size[p.stripAxis+1])*1023)
			}
			keys[i] = key<<32 | uint64(i)
		}
	})
	slices.Sort(keys)
	p.order, p.x = make([]int32, n), make([]float64, 3*n)
	for j, key := range keys {
		i := int(uint32(key))
		p.order[j] = int32(i)
		for a := range 3 {
			p.x[3*j+a] = cell(i, a)
		}
	}
}

// start returns the first cell, along axis a of the padded grid, that the kernel around a point at t covers.
func (p *Plan) start(t float64, a int) int {
	if p.width[a] == 1 {
		return 0
	}
	return int(math.Ceil(t-float64(p.width[a])/2)) + p.margin[a]
}

// A stencil holds the kernel's values in the cells around one point.
type stencil struct {
	start  Axes
	values [3][maxWidth]float64
}

// setStencil sets s to the stencil of the point order[j].
func (p *Plan) setStencil(s *stencil, j int) {
	for a := range 3 {
		if p.width[a] == 1 {
			s.start[a], s.values[a][0] = 0, 1
			continue
		}
		t := p.x[3*j+a]
		s.start[a] = p.start(t, a)
		w := p.width[a]
		u, n := 2*(float64(s.start[a]-p.margin[a])-t)+float64(w-1), terms(w)
		for i := range (w + 1) / 2 {
			even, odd := 0.0, 0.0
			for _, c := range p.polynomials[i*n:][:n] {
				even, odd = even*(u*u)+c[0], odd*(u*u)+c[1]
			}
			s.values[a][i], s.values[a][w-1-i] = even+u*odd, even-u*odd
		}
	}
}

// Modes computes dst_k = Σ_j c_j exp(−2πi k·x_j), in the shape of Axes.Half for the modes.
func (p *Plan) Modes(dst []complex128, c []float64) {
	clear(p.cells)
	a, n := p.stripAxis, len(p.order)
	// Each worker fills the cells of a strip, in the order of the points.
	run.Parallel(p.padded[a], func(first, last int) {
		begin := func(j int) int { return p.start(p.x[3*j+a], a) }
		from := sort.Search(n, func(j int) bool { return begin(j) > first-p.width[a] })
		to := sort.Search(n, func(j int) bool { return begin(j) >= last })
		var s stencil
		for j := from; j < to; j++ {
			p.setStencil(&s, j)
			p.spread(&s, c[p.order[j]], first, last)
		}
	})
	p.fold()
	p.grid.Modes(dst, p.values)
	p.correct(dst)
}

// spread adds v times the kernel to the cells whose index on stripAxis is in [first, last).
func (p *Plan) spread(s *stencil, v float64, first, last int) {
	var from, to Axes
	for a := range 3 {
		to[a] = p.width[a]
	}
	a := p.stripAxis
	from[a], to[a] = max(first-s.start[a], 0), min(last-s.start[a], p.width[a])
	line := s.values[2][from[2]:to[2]]
	for i := from[0]; i < to[0]; i++ {
		for j := from[1]; j < to[1]; j++ {
			f := v * s.values[0][i] * s.values[1][j]
			offset := ((s.start[0]+i)*p.padded[1]+s.start[1]+j)*p.padded[2] + s.start[2] + from[2]
			cells := p.cells[offset:][:len(line)]
			for k, u := range line {
				cells[k] += f * u
			}
		}
	}
}

// wrapped returns the index on axis a of the grid for an index of the padded grid.
func (p *Plan) wrapped(i, a int) int {
	size := p.grid.Size[a]
	return (i - p.margin[a] + size) % size
}

// fold adds each cell of the padded grid to the grid's cell at the same point modulo the period.
func (p *Plan) fold() {
	clear(p.values)
	size := p.grid.Size
	for i := range p.padded[0] {
		for j := range p.padded[1] {
			to := p.values[(p.wrapped(i, 0)*size[1]+p.wrapped(j, 1))*size[2]:][:size[2]]
			from := p.cells[(i*p.padded[1]+j)*p.padded[2]:][:p.padded[2]]
			m := p.margin[2]
			for k, v := range from[m:][:size[2]] {
				to[k] += v
			}
			for k, v := range from[:m] {
				to[size[2]-m+k] += v
			}
			for k, v := range from[m+size[2]:] {
				to[k] += v
			}
		}
	}
}

// Values computes dst_j = Σ_k f_k exp(2πi k·x_j) for the real function with the coefficients f. It overwrites f.
func (p *Plan) Values(dst []float64, f []complex128) {
	p.correct(f)
	p.grid.Values(p.values, f)
	size := p.grid.Size
	run.Parallel(p.padded[0]*p.padded[1], func(first, last int) {
		for r := first; r < last; r++ {
			i, j := r/p.padded[1], r%p.padded[1]
			from := p.values[(p.wrapped(i, 0)*size[1]+p.wrapped(j, 1))*size[2]:][:size[2]]
			to := p.cells[r*p.padded[2]:][:p.padded[2]]
			m := p.margin[2]
			copy(to[m:], from)
			copy(to[:m], from[size[2]-m:])
			copy(to[m+size[2]:], from)
		}
	})
	run.Parallel(len(p.order), func(first, last int) {
		var s stencil
		for n := first; n < last; n++ {
			p.setStencil(&s, n)
			dst[p.order[n]] = p.interpolate(&s)
		}
	})
}

func (p *Plan) interpolate(s *stencil) (sum float64) {
	line := s.values[2][:p.width[2]]
	for i := range p.width[0] {
		for j := range p.width[1] {
			offset := ((s.start[0]+i)*p.padded[1]+s.start[1]+j)*p.padded[2] + s.start[2]
			rowSum := 0.0
			for k, v := range p.cells[offset:][:len(line)] {
				rowSum += v * line[k]
			}
			sum += s.values[0][i] * s.values[1][j] * rowSum
		}
	}
	return sum
}

// correct divides the coefficients f by the kernel's transform.
func (p *Plan) correct(f []complex128) {
	m, h := p.grid.modes, p.grid.halfModes
	for i := range h[0] {
		for j := range h[1] {
			outer := p.factor[0][abs(i-m[0])] * p.factor[1][abs(j-m[1])]
			row := f[(i*h[1]+j)*h[2]:][:h[2]]
			for k, v := range p.factor[2] {
				row[k] *= complex(outer*v, 0)
			}
		}
	}
}

func abs(i int) int { return max(i, -i) }

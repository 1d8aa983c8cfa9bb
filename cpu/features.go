package cpu

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/pages"
	"github.com/mercer-go/mercer/kernels"
)

// This file computes statistics from features derived from the points, such as the cosines and sines of CosSum.

// cosinesAndSines writes to out one row for each of the given number of rows of m, from row first on. For
// each feature x and each frequency w, the row contains cos(w(x−center)) and sin(w(x−center)).
func (p packing[T]) cosinesAndSines(m *matrix[T], first, rows int, out []T) {
	for i := range rows {
		for c, v := range m.row(first + i) {
			// The center is subtracted in float64, which makes the angles small.
			x := float64(v) - float64(p.center[c])
			if p.scale != nil && p.scale[c] == 0 {
				clear(out[:2*len(p.freqs)])
				out = out[2*len(p.freqs):]
				continue
			}
			for _, w := range p.freqs {
				sin, cos := math.Sincos(w * x)
				out[0], out[1] = T(cos), T(sin)
				out = out[2:]
			}
		}
	}
}

// A filler writes a statistic of point i of X against points j … j+len(out)−1 of Z;
// elements past the last point are arbitrary.
type filler[T backend.Float] func(s *scratch[T], i, j int, out []T)

// onePoint returns a filler for a statistic that depends on only one point of the pair.
func (g *gram[T]) onePoint(stat kernels.Stat) filler[T] {
	m, ofX := g.z, stat.Kind == kernels.SelfX || stat.Kind == kernels.RootX
	if ofX {
		m = g.x
	}
	values := make([]T, m.rows)
	g.q.rows(m.rows, 8*m.cols, func(lo, hi int) {
		point := make([]float64, m.cols)
		for i := lo; i < hi; i++ {
			for c, v := range m.row(i) {
				point[c] = float64(v)
			}
			values[i] = T(stat.Eval(point, point))
		}
	})
	if ofX {
		return func(_ *scratch[T], i, _ int, out []T) {
			for c := range out {
				out[c] = values[i]
			}
		}
	}
	return func(_ *scratch[T], _, j int, out []T) {
		clear(out[copy(out, values[j:]):])
	}
}

// entries returns a filler that reads the values of kernels.Precomputed from the points.
func (g *gram[T]) entries() filler[T] {
	d := g.x.cols
	number := func(v T) int { return kernels.PrecomputedIndex(float64(v), d) }
	return func(_ *scratch[T], i, j int, out []T) {
		x := g.x.row(i)
		xIndex := number(x[0])
		for c := range out[:min(len(out), g.z.rows-j)] {
			z := g.z.row(j + c)
			switch zIndex := number(z[0]); {
			case zIndex >= 0:
				out[c] = x[2+zIndex]
			case xIndex >= 0:
				out[c] = z[2+xIndex]
			case equalRows(x, z):
				out[c] = x[1]
			default:
				out[c] = T(math.NaN())
			}
		}
	}
}

func equalRows[T backend.Float](x, z []T) bool {
	for p, v := range x {
		if v != z[p] {
			return false
		}
	}
	return true
}

// sineBatch is the approximate number of sines that are computed at once.
const sineBatch = 1024

// sines returns a filler for a sum over the features. Let Δ be the difference of the two points in a feature. Without
// frequencies, the term of the feature is sin(2πΔ)/Δ, or 2π if Δ = 0. With frequencies w, the term is Σ_w wΔ sin(wΔ).
func (g *gram[T]) sines(stat kernels.Stat) filler[T] {
	var columns []int // the features whose scale is not 0
	for c := range g.x.cols {
		if stat.ScaleAt(c) != 0 {
			columns = append(columns, c)
		}
	}
	u, d, freqs := g.q.engine.ukr, len(columns), stat.Freqs
	batch := max(1, sineBatch/max(d, 1)) // number of pairs of points whose sines are computed at once
	size := panels(batch*d, u.NR) * u.NR
	return func(s *scratch[T], i, j int, out []T) {
		if d == 0 {
			clear(out)
			return
		}
		if len(s.pairs) < 2*size {
			s.pairs = pages.Zeros[T](2 * size)
		}
		x, diffs, sines := g.x.row(i), s.pairs[:size], s.pairs[size:2*size]
		clear(diffs)
		computeSines := func(w float64) {
			copy(sines, diffs)
			s.span = ukr.Span[T]{X: &sines[0], N: size, A: T(w)}
			u.Sin(&s.span)
		}
		for cols := min(len(out), g.z.rows-j); cols > 0; cols = min(len(out), g.z.rows-j) {
			chunk := out[:min(batch, cols)]
			for c := range chunk {
				z, to := g.z.row(j+c), diffs[c*d:][:d]
				for p, column := range columns {
					to[p] = x[column] - z[column]
				}
			}
			clear(chunk)
			if freqs == nil {
				computeSines(2 * math.Pi)
				for c := range chunk {
					chunk[c] = sincs(diffs[c*d:][:d], sines[c*d:][:d])
				}
			}
			for _, w := range freqs {
				computeSines(w)
				for c := range chunk {
					for p, diff := range diffs[c*d:][:d] {
						chunk[c] += T(w) * diff * sines[c*d+p]
					}
				}
			}
			out, j = out[len(chunk):], j+len(chunk)
		}
	}
}

// sincs returns Σ sin(2πΔ)/Δ from the differences Δ and their sines.
func sincs[T backend.Float](diffs, sines []T) T {
	var sum T
	for p, diff := range diffs {
		if diff == 0 {
			sum += 2 * math.Pi
		} else {
			sum += sines[p] / diff
		}
	}
	return sum
}

package cpu

import (
	"math"
	"slices"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// This file is for points whose features are integer multiples of one number, the step, as in images and counts.
// Their products are exact, in 16-bit integers with sums in 32 bits, at up to four times the rate of float64.

// For minIntegerPoints or more points, integer products save more time than finding the step takes.
const minIntegerPoints = 64

// useIntegers makes g use integer products if the points allow it, for xᵀz and for ‖x−z‖² computed from the norms.
func (g *gram[T]) useIntegers() *gram[T] {
	if g.q.engine.device.tier.Pairs == 0 || g.x.cols <= directDistance || min(g.x.rows, g.z.rows) < minIntegerPoints {
		return g
	}
	step, searched := T(0), false
	for i := range g.stats {
		st := &g.stats[i]
		p := &g.packs[st.packing]
		// Integer products are 2 times as fast as in float32 and 4 times as fast as in float64, but do not omit zeros.
		if !st.product || p.scale != nil || p.freqs != nil || p.sparse && p.keptFraction < 2/float64(unsafe.Sizeof(step)) {
			continue
		}
		if !searched {
			step, searched = g.q.commonStep(g.x, g.z), true
		}
		if step != 0 {
			*p = packing[T]{step: step, norms: p.norms}
			if len(g.packs) == 1 { // blocks may have more points, because a packed integer takes two bytes
				g.size = gramBlock(g.x.cols, 2)
			}
			st.factor = step * step
			g.ones = make([]T, g.size+2*g.q.engine.ukr.NR)
			for k := range g.ones {
				g.ones[k] = 1
			}
		}
	}
	return g
}

// commonStep returns a step such that every feature of x and z is, up to rounding, the step times an integer of 16
// bits, and such that sums of products of these integers fit in 32 bits. It returns 0 if there is no such step.
func (q *queue[T]) commonStep(x, z *matrix[T]) T {
	step, smallest := stepOf(z), 0x1p-1022
	if unsafe.Sizeof(step) == 4 {
		smallest = 0x1p-126
	}
	// step² must be a normal number, and step² times a 32-bit sum must not overflow.
	if square := step * step; float64(square) < smallest || math.IsInf(float64(square*math.MaxInt32), 0) {
		return 0
	}
	largest := q.largestSquare(z, step)
	if !x.sameMatrix(z) {
		// By the Cauchy–Schwarz inequality, the product of the largest norms bounds all partial sums.
		largest = math.Sqrt(largest) * math.Sqrt(q.largestSquare(x, step))
	}
	if !(largest < math.MaxInt32) {
		return 0
	}
	return step
}

// stepOf returns the greatest common divisor of the features of some rows of m, by Euclid's algorithm. It returns 0 if
// a feature is not finite or is more than 2¹⁵ − 1 times the divisor (2¹⁰ times in float32, because of rounding errors).
func stepOf[T backend.Float](m *matrix[T]) T {
	const samples = 16
	multiple := float64(math.MaxInt16)
	if unsafe.Sizeof(T(0)) == 4 {
		multiple = 1 << 10
	}
	largest, divisor := 0.0, 0.0
	for k := range samples {
		for _, v := range m.row(k * (m.rows - 1) / (samples - 1)) {
			size := math.Abs(float64(v))
			if !(size <= math.MaxFloat64) {
				return 0
			}
			largest = max(largest, size)
			rounding := largest / (2 * multiple)
			for a, b := size, divisor; ; {
				if b <= rounding {
					divisor = a
					break
				}
				remainder := math.Mod(a, b)
				if b-remainder <= rounding {
					remainder = 0
				}
				a, b = b, remainder
			}
			if divisor*multiple < largest {
				return 0
			}
			if divisor > 0 {
				divisor = largest / math.Round(largest/divisor) // recompute the step with a single rounding
			}
		}
	}
	return T(divisor)
}

// largestSquare returns the largest ‖p/step‖² of the points p, or Inf if a feature is not a multiple of step.
func (q *queue[T]) largestSquare(m *matrix[T], step T) float64 {
	const grain = 64
	tolerance := 0x1p-50 // bounds the relative rounding errors of v, of step and of v/step
	if unsafe.Sizeof(step) == 4 {
		tolerance = 0x1p-21
	}
	inverse := 1 / float64(step)
	squares := make([]float64, panels(m.rows, grain))
	q.chunks(m.rows, grain, copyFlops(m.rows*m.cols), func(_ *scratch[T], first, rows int) {
		largest := 0.0
		for i := first; i < first+rows && largest < math.MaxInt32; i++ {
			sum := 0.0
			for _, v := range m.row(i) {
				t := float64(v) * inverse
				k := t + toInteger - toInteger
				if !(math.Abs(t-k) <= tolerance*math.Abs(k) && math.Abs(k) <= math.MaxInt16) {
					sum = math.Inf(1)
					break
				}
				sum += k * k
			}
			largest = max(largest, sum)
		}
		squares[first/grain] = largest
	})
	return slices.Max(squares)
}

// Adding toInteger to a number leaves the nearest integer in the last bits of the sum.
const toInteger = 0x1.8p52

// nearest returns the integer nearest to t; |t| must be less than 2³¹.
func nearest(t float64) int32 { return int32(math.Float64bits(t + toInteger)) }

// packIntegers is the method pack for points whose features are integers times p.step. Pairs of 16-bit integers
// are packed in panels of w points; an odd last feature is paired with zero.
func (g *gram[T]) packIntegers(p packing[T], m *matrix[T], first, rows, w int, lend allocator[T]) (packedPoints[T], func()) {
	depth, padded := panels(m.cols, 2), panels(rows, w)*w
	size := panels(padded*depth*4, int(unsafe.Sizeof(T(0))))
	memory, free := lend(size + padded)
	b := packedPoints[T]{norms: memory[size:][:padded], first: first}
	b.pairs = unsafe.Slice((*uint32)(unsafe.Pointer(&memory[0])), padded*depth)
	inverse := 1 / float64(p.step)
	g.q.chunks(rows, 8*w, copyFlops(rows*m.cols), func(_ *scratch[T], r, count int) {
		for k := r; k < r+count; k += w {
			panel := b.pairs[k*depth:][:w*depth]
			if rows-k < w {
				clear(panel)
				clear(b.norms[k:][:w])
			}
			for i := range min(w, rows-k) {
				row, sum := m.row(first+k+i), int32(0)
				for j := 0; j < len(row); j += 2 {
					u, v := nearest(float64(row[j])*inverse), int32(0)
					if j+1 < len(row) {
						v = nearest(float64(row[j+1]) * inverse)
					}
					sum += u*u + v*v
					panel[j/2*w+i] = uint32(uint16(u)) | uint32(uint16(v))<<16
				}
				b.norms[k+i] = T(sum) * (p.step * p.step)
			}
		}
	})
	return b, free
}

// fillIntegers is the method fill for the statistic xᵀz of points packed by packIntegers.
func (g *gram[T]) fillIntegers(s *scratch[T], factor T, x, z packedPoints[T], i, j, rows, width int, out []T, stride int) {
	u, depth, kc := g.q.engine.ukr, panels(g.x.cols, 2), g.q.engine.block.kc
	element := func(pairs []uint32, index int) *T { return (*T)(unsafe.Pointer(&pairs[index])) }
	for p := 0; p < depth && !g.q.stopped(); p += kc {
		beta := T(1)
		if p == 0 {
			beta = 0
		}
		for c := 0; c < width; c += u.NR {
			s.scaled = ukr.Scaled[T]{Tile: ukr.Tile[T]{
				A: element(x.pairs, i*depth+p*u.MR), B: element(z.pairs, (j+c)*depth+p*u.NR), C: &out[c],
				K: min(kc, depth-p), M: rows, N: u.NR, Ldc: stride, Lda: u.MR * depth,
				Alpha: factor, Beta: beta,
			}, R: &g.ones[0], S: &g.ones[0]}
			u.Gemm16(&s.scaled)
		}
	}
}

package strings

import (
	"math"

	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/pairwise"
)

// dynamic evaluates the subsequence kernel k(s, t) by dynamic programming, for one string t and any number of strings
// s. The subsequences have p characters, and λ is the decay.
//
//   - M_l(i, j) is a sum over all common subsequences of l characters that end at s_i and t_j. A subsequence adds λ to
//     the power of its span in s plus its span in t. k is the sum of M_p(i, j) over all i and j.
//   - M_l(i, j) is 0 if s_i ≠ t_j. Otherwise M_1(i, j) is λ², and M_l+1(i, j) is
//     Q_l(i, j) = Σ_{i'<i, j'<j} M_l(i', j') λ^(i−i' + j−j').
//   - Instead of Q, dynamic stores R_l(j) = Q_l(i, j)/λ^(i−base) for the current row i; R_0 is λ²/λ^(i−base). The row
//     number base is increased before 1/λ^(i−base) overflows.
//   - Row i adds Σ_{j'<j, t_j'=s_i} R_l−1(j') λ^(j−j') to R_l(j). This is 0 up to the first position of s_i in t.
type dynamic struct {
	length int
	decay  float64
	powers []float64 // λ^d
	window int       // number of rows after which base is increased
	r      [][]float64

	t         []int32
	start     []int32 // for each character, the index of its first element in the slice positions
	positions []int32
	heads     []float64 // R_l for l = 0 … p−2 at each position of t that has the character s_i of the current row i
	sums      []float64 // the sum in the update of R_l, for each l

	operations int // number of operations on elements of R in all calls of value
}

func newDynamic(k Subsequence, powers []float64, characters, longest int) *dynamic {
	d := &dynamic{
		length: k.Length, decay: k.Decay, powers: powers,
		window:    window(k.Decay),
		r:         make([][]float64, k.Length-1),
		start:     make([]int32, characters+1),
		positions: make([]int32, longest),
		heads:     make([]float64, max(k.Length-1, 0)*longest),
		sums:      make([]float64, max(k.Length-1, 0)),
	}
	for l := range d.r {
		d.r[l] = make([]float64, longest)
	}
	return d
}

// window returns the number of rows after which dynamic increases base, so that 1/λ^(i−base) does not overflow.
func window(decay float64) int {
	if decay == 1 {
		return math.MaxInt
	}
	return max(1, int(elementary.Log(1e-100)/elementary.Log(decay)))
}

// load sets t and sorts its positions by their characters.
func (d *dynamic) load(t []int32) {
	d.t = t
	clear(d.start)
	for _, c := range t {
		d.start[c]++
	}
	sum := int32(0)
	for c, n := range d.start {
		sum += n
		d.start[c] = sum
	}
	for j := len(t) - 1; j >= 0; j-- {
		c := t[j]
		d.start[c]--
		d.positions[d.start[c]] = int32(j)
	}
}

// value returns k(s, t) without normalization. It calls the function stop with the fraction of rows that it has
// finished since the previous call.
func (d *dynamic) value(s []int32, stop pairwise.Stop) float64 {
	n := len(d.t)
	if len(s) < d.length || n < d.length {
		return 0
	}
	sum := 0.0
	if d.length == 1 {
		for _, c := range s {
			sum += float64(d.start[c+1] - d.start[c])
		}
		return sum * d.decay * d.decay
	}
	levels := d.length - 1
	for _, r := range d.r {
		clear(r[:n])
	}
	base, scale := 0, 1.0     // scale is λ^(i−base)
	firstRow, pending := 0, 0 // first row and number of operations after the last call of stop
	for i, c := range s {
		if i-base == d.window {
			for _, r := range d.r {
				for j := range r[:n] {
					r[j] *= scale
				}
			}
			base, scale = i, 1
			d.operations += levels * n
			pending += levels * n
		}
		positions := d.positions[d.start[c]:d.start[c+1]]
		if len(positions) > 0 {
			last := d.r[levels-1]
			row := 0.0
			for _, j := range positions {
				row += last[j]
			}
			sum += row * scale
			if i+1 < len(s) {
				d.update(positions, d.decay*d.decay/scale)
				work := levels * (n - 1 - int(positions[0]))
				d.operations += work
				pending += work
			}
		}
		if pending += 1 + len(positions); pending >= pairwise.Poll {
			if stop(float64(i+1-firstRow) / float64(len(s))) {
				return 0
			}
			firstRow, pending = i+1, 0
		}
		scale *= d.decay
	}
	return sum
}

// update adds the terms of one character of s to the sums of every length. The character occurs at the given positions
// of t, and first is the term of one character alone.
func (d *dynamic) update(positions []int32, first float64) {
	levels, n := d.length-1, len(d.t)
	// Copy the values before this row changes them.
	heads := d.heads[:levels*len(positions)]
	for m, j := range positions {
		heads[m*levels] = first
		for l := 1; l < levels; l++ {
			heads[m*levels+l] = d.r[l-1][j]
		}
	}
	clear(d.sums)
	previous := int(positions[0])
	for m, p := range positions {
		j, end := int(p), n
		if m+1 < len(positions) {
			end = int(positions[m+1]) + 1
		}
		powers := d.powers[1:][:end-j-1]
		gap := d.powers[j-previous]
		previous = j
		for l := range d.sums {
			d.sums[l] = d.sums[l]*gap + heads[m*levels+l]
		}
		l := 0
		for ; l+1 < levels; l += 2 {
			add2(d.r[l][j+1:end], d.r[l+1][j+1:end], powers, d.sums[l], d.sums[l+1])
		}
		if l < levels {
			add(d.r[l][j+1:end], powers, d.sums[l])
		}
	}
}

// add computes x ← x + f·y.
func add(x, y []float64, f float64) {
	y = y[:len(x)]
	for i := range x {
		x[i] += f * y[i]
	}
}

// add2 is like add, for two rows x0 and x1 in one pass over y.
func add2(x0, x1, y []float64, f0, f1 float64) {
	x1, y = x1[:len(x0)], y[:len(x0)]
	for i := range x0 {
		v := y[i]
		x0[i] += f0 * v
		x1[i] += f1 * v
	}
}

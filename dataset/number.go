package dataset

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// learnNumber learns from a column that must be numbers.
func (t *Table) learnNumber(c *column, r Rules) (*Input, error) {
	values, err := t.numbers(c)
	if err != nil {
		return nil, err
	}
	if r.RefuseMissing {
		if row := slices.IndexFunc(values, math.IsNaN); row >= 0 {
			return nil, t.missingFault(c, row, refused)
		}
	}
	n, rule := numberOf(values, r.Standardize)
	if rule != "" {
		return nil, t.fault(c.name, rule)
	}
	return &Input{Name: c.name, Number: n}, nil
}

const (
	noValues = "has no values; drop the column"
	tooLarge = "has numbers too large to standardize; rescale the column"
)

// A numberWriter writes the feature of a column of numbers.
type numberWriter struct {
	place
	rule *Number
}

func (w *numberWriter) write(x []float64, width, first, last int) (int, error) {
	mean, scale := w.rule.Mean, w.rule.Scale
	var some [256]float64
	to := w.at
	for ; first < last; first += len(some) {
		for i, v := range w.column.values(some[:], first, min(first+len(some), last)) {
			if v-v != 0 {
				switch _, k := w.column.number(first + i); {
				case k > number:
					return first + i, w.table.notNumber(w.column, first+i, k)
				case w.refuse:
					return first + i, w.table.missingFault(w.column, first+i, refused)
				}
				v = w.rule.Fill
			}
			if v = (v - mean) / scale; math.IsInf(v, 0) {
				return first + i, w.table.cellFault(w.column, first+i, w.column.cell(first+i), fmt.Sprintf("leaves the range of float64 when standardized with mean %v and scale %v", mean, scale))
			}
			x[to] = v
			to += width
		}
	}
	return last, nil
}

// refused is the rule that a missing cell of a feature breaks.
const refused = "missing cells are refused: give it a value or drop the row"

// missingFault is the error for a missing cell where that breaks a rule.
func (t *Table) missingFault(c *column, row int, rule string) *Error {
	if value := c.cell(row); value != "" {
		return t.cellFault(c, row, value, "stands for a missing cell; "+rule)
	}
	return t.cellFault(c, row, "", "the cell is empty; "+rule)
}

// numberOf learns from numbers, NaN where they are missing, or returns what is
// wrong with them.
func numberOf(values []float64, standardize bool) (n *Number, rule string) {
	m := momentsOf(values)
	fill, _ := median(values, m.n)
	return m.number(fill, len(values)-m.n, standardize)
}

// moments are of some numbers.
type moments struct {
	n         int
	mean, sd  float64 // sd² is Σ (v − mean)² / n
	low, high float64
}

// momentsOf passes over NaN.
//
// The deviations are taken from the mean, and their squares summed, in a second pass,
// which also finds what rounding left in the mean: the sum of x² − n·mean² of one pass
// cancels when the mean is large (Chan, Golub and LeVeque 1983, equation 1.7). They are
// divided by a power of two above the largest, so that no square leaves the range of
// float64.
func momentsOf(values []float64) (m moments) {
	m.low, m.high = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v == v {
			m.n++
			m.mean += v
			if v < m.low {
				m.low = v
			}
			if v > m.high {
				m.high = v
			}
		}
	}
	n := float64(m.n)
	switch {
	case m.low >= m.high: // or there is none
		m.mean = m.low
		return m
	case math.IsInf(m.mean, 0):
		m.mean = 0
		for _, v := range values {
			if v == v {
				m.mean += v / n
			}
		}
	default:
		m.mean /= n
	}
	_, exponent := math.Frexp(max(m.high-m.mean, m.mean-m.low))
	unit := math.Ldexp(1, max(-1022, min(exponent, 1023)))
	perUnit := 1 / unit
	var rest, sum float64
	for _, v := range values {
		if v == v {
			u := (v - m.mean) * perUnit
			rest += u
			sum += u * u
		}
	}
	rest /= n
	m.mean += rest * unit
	m.sd = math.Sqrt(max(sum/n-rest*rest, 0)) * unit
	return m
}

// repeated are those of n times v.
func repeated(n int, v float64) moments { return moments{n: n, mean: v, low: v, high: v} }

// add is the union (Chan, Golub and LeVeque 1983, equation 2.1).
func (m *moments) add(o moments) {
	if o.n == 0 {
		return
	}
	if m.n == 0 {
		*m = o
		return
	}
	all := float64(m.n + o.n)
	p, q := float64(m.n)/all, float64(o.n)/all
	d := o.mean - m.mean
	m.mean += d * q
	m.sd = math.Hypot(math.Hypot(math.Sqrt(p)*m.sd, math.Sqrt(q)*o.sd), math.Sqrt(p*q)*d)
	m.n += o.n
	m.low, m.high = min(m.low, o.low), max(m.high, o.high)
}

// number is what they say of a column with that many missing numbers, which fill, the
// median, replaces.
func (m moments) number(fill float64, missing int, standardize bool) (n *Number, rule string) {
	if m.n == 0 {
		return nil, noValues
	}
	n = &Number{Fill: fill, Scale: 1}
	if !standardize {
		return n, ""
	}
	m.add(repeated(missing, fill))
	if m.low == m.high {
		n.Mean = m.low
		return n, ""
	}
	n.Mean, n.Scale = m.mean, m.sd
	if !(n.Scale > 0) || math.IsInf(n.Scale, 1) || math.IsInf(n.Mean, 0) || math.IsNaN(n.Mean) {
		return nil, tooLarge
	}
	return n, ""
}

// median returns the median of the n values that are not NaN: the middle one, or
// the mean of the two in the middle. ok is false when there are none.
func median(values []float64, n int) (m float64, ok bool) {
	if n == 0 {
		return 0, false
	}
	near, below := aroundMedian(values, n)
	k := n/2 - below
	b := nth(near, k)
	if n%2 == 1 {
		return b, true
	}
	a := slices.Max(near[:k])
	if m = (a + b) / 2; math.IsInf(m, 0) {
		m = a/2 + b/2
	}
	return m, true
}

// aroundMedian returns a copy of the values among which the middle one or two of the n
// are, and how many come before those: an interval around the median of some, four
// standard deviations of its rank to either side, and all where that does not have them
// (Floyd and Rivest 1975).
func aroundMedian(values []float64, n int) (near []float64, below int) {
	const sampled = 1 << 12
	if n >= 4*sampled {
		sample := make([]float64, 0, 2*sampled)
		for i := 0; i < len(values); i += len(values) / sampled {
			if v := values[i]; v == v {
				sample = append(sample, v)
			}
		}
		if middle, reach := len(sample)/2, 2*int(math.Sqrt(float64(len(sample)))); reach < middle {
			low, high := nth(sample, middle-reach), nth(sample, middle+reach)
			near = make([]float64, n/4)
			k := 0
			for _, v := range values {
				if k == len(near) {
					break
				}
				below += one(v < low)
				near[k] = v
				k += one(v >= low) & one(v <= high)
			}
			if k < len(near) && below < n/2 && n/2 < below+k {
				return near[:k], below
			}
		}
	}
	near = make([]float64, 0, n)
	for _, v := range values {
		if v == v {
			near = append(near, v)
		}
	}
	return near, 0
}

// one is 1 for true, without a branch.
func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// nth returns the value that would stand at place k if a were sorted, and moves
// it there, none before it larger and none after it smaller (Hoare 1961; the
// pivot is the median of three). When the pieces shrink too slowly it sorts.
func nth(a []float64, k int) float64 {
	low, high := 0, len(a)-1
	for steps := 2 * bits.Len(uint(len(a))); low < high; steps-- {
		if steps == 0 {
			slices.Sort(a[low : high+1])
			break
		}
		x, y, z := a[low], a[(low+high)/2], a[high]
		pivot := max(min(x, y), min(max(x, y), z))
		i, j := low, high
		for i <= j {
			for a[i] < pivot {
				i++
			}
			for a[j] > pivot {
				j--
			}
			if i <= j {
				a[i], a[j] = a[j], a[i]
				i++
				j--
			}
		}
		switch {
		case k <= j:
			high = j
		case k >= i:
			low = i
		default:
			return a[k]
		}
	}
	return a[k]
}

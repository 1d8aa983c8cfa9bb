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

// numberOf learns from numbers, NaN where they are missing, or returns what is
// wrong with them. It changes values.
func numberOf(values []float64, standardize bool) (n *Number, rule string) {
	fill, ok := median(values)
	if !ok {
		return nil, noValues
	}
	n = &Number{Fill: fill, Scale: 1}
	if standardize {
		for i, v := range values {
			if math.IsNaN(v) {
				values[i] = fill
			}
		}
		if n.Mean, n.Scale, ok = standard(values); !ok {
			return nil, tooLarge
		}
	}
	return n, ""
}

// median returns the median of the values that are not NaN: the middle one, or
// the mean of the two in the middle. ok is false when there are none.
func median(values []float64) (m float64, ok bool) {
	sorted := make([]float64, 0, len(values)) // as far as need be
	for _, v := range values {
		if !math.IsNaN(v) {
			sorted = append(sorted, v)
		}
	}
	n := len(sorted)
	if n == 0 {
		return 0, false
	}
	b := nth(sorted, n/2)
	if n%2 == 1 {
		return b, true
	}
	a := slices.Max(sorted[:n/2])
	if m = (a + b) / 2; math.IsInf(m, 0) {
		m = a/2 + b/2
	}
	return m, true
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

// standard returns the mean and the standard deviation with the divisor n, or
// 1 instead of it when all values are equal. ok is false when they are not
// finite.
//
// The deviations are taken from the mean, and their squares summed, in a
// second pass: the sum of x² − n·mean² of one pass cancels when the mean is
// large (Chan, Golub and LeVeque 1983). They are divided by the largest first,
// so that no square leaves the range of float64.
func standard(values []float64) (mean, sd float64, ok bool) {
	low, high := slices.Min(values), slices.Max(values)
	if low == high {
		return low, 1, true
	}
	n := float64(len(values))
	for _, v := range values {
		mean += v / n
	}
	var rest float64 // what rounding left in the mean
	for _, v := range values {
		rest += (v - mean) / n
	}
	mean += rest
	largest := max(high-mean, mean-low)
	var sum float64
	for _, v := range values {
		u := (v - mean) / largest
		sum += u * u
	}
	sd = largest * math.Sqrt(sum/n)
	return mean, sd, sd > 0 && !math.IsInf(sd, 0) && !math.IsNaN(sd)
}

// A numberWriter writes the feature of a column of numbers.
type numberWriter struct {
	place
	rule *Number
}

func (w *numberWriter) write(row []float64, i int) error {
	v, k := w.column.number(i)
	switch {
	case k > number:
		return w.table.notNumber(w.column, i, k)
	case k != number && w.refuse:
		return w.table.missingFault(w.column, i, refused)
	case k != number:
		v = w.rule.Fill
	}
	v = (v - w.rule.Mean) / w.rule.Scale
	if math.IsInf(v, 0) {
		return w.table.cellFault(w.column, i, w.column.cell(i), fmt.Sprintf("leaves the range of float64 when standardized with mean %v and scale %v", w.rule.Mean, w.rule.Scale))
	}
	row[w.at] = v
	return nil
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

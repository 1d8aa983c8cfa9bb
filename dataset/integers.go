package dataset

import (
	"math"
	"strconv"
)

// integers holds a column of integers of up to 64 bits. A cell is rounded to float64 if it is read as a number, and
// exact if it is read as a class label.
type integers struct {
	values   []int64
	unsigned bool     // the values are the bits of uint64
	missing  []uint64 // bit i is 1 if the cell of row i is missing; bits beyond the slice count as 0
}

func (m *integers) addMissing() {
	i := len(m.values)
	for len(m.missing) <= i/64 {
		m.missing = append(m.missing, 0)
	}
	m.missing[i/64] |= 1 << (i % 64)
	m.values = append(m.values, 0)
}

// addAll appends a row for each element of present: the next value if the element is true, and a
// missing cell if it is false. If present is nil, addAll appends all values.
func (m *integers) addAll(values []int64, present []bool) {
	if present == nil {
		m.values = append(m.values, values...)
		return
	}
	for _, isPresent := range present {
		if !isPresent {
			m.addMissing()
			continue
		}
		m.values = append(m.values, values[0])
		values = values[1:]
	}
}

func (m *integers) isMissing(row int) bool {
	return row/64 < len(m.missing) && m.missing[row/64]>>(row%64)&1 == 1
}

func (m *integers) number(row, _ int) float64 {
	switch {
	case m.isMissing(row):
		return math.NaN()
	case m.unsigned:
		return float64(uint64(m.values[row]))
	}
	return float64(m.values[row])
}

func (m *integers) text(row, _ int) string {
	switch {
	case m.isMissing(row):
		return ""
	case m.unsigned:
		return strconv.FormatUint(uint64(m.values[row]), 10)
	}
	return strconv.FormatInt(m.values[row], 10)
}

// numberText returns v as text: all digits of an integer, the shortest text that is read as v for
// any other number, and "" for NaN.
func numberText(v float64) string {
	switch {
	case math.IsNaN(v):
		return ""
	case v == math.Trunc(v) && math.Abs(v) < 1<<63 && math.Abs(v) >= 1<<53:
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

package dataset

import (
	"math"
	"strconv"
)

// integers holds one column of integers of up to 64 bits. A cell is exact if it is read as a class,
// and rounded to the nearest float64 if it is read as a number.
type integers struct {
	values   []int64
	unsigned bool     // whether the values are the bits of uint64
	missing  []uint64 // one bit per row, set if the cell is missing; rows past the end are not missing
}

func (m *integers) addMissing() {
	i := len(m.values)
	for len(m.missing) <= i/64 {
		m.missing = append(m.missing, 0)
	}
	m.missing[i/64] |= 1 << (i % 64)
	m.values = append(m.values, 0)
}

// addAll appends one row for each element of present. The row holds the next value if the element
// is true, and a missing cell otherwise. If present is nil, addAll appends all values.
func (m *integers) addAll(values []int64, present []bool) {
	if present == nil {
		m.values = append(m.values, values...)
		return
	}
	for _, there := range present {
		if !there {
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

// numberText returns the text of an exact float64: all digits of an integer, the shortest text of
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

package dataset

import (
	"math"
	"strconv"
)

// integers are the cells of one column of integers of up to 64 bits. As a class
// each is exact; as a number it is the nearest float64.
type integers struct {
	values   []int64
	unsigned bool     // the values are the bits of uint64
	missing  []uint64 // a bit for each row; shorter when the rest is there
}

func (m *integers) addMissing() {
	i := len(m.values)
	for len(m.missing) <= i/64 {
		m.missing = append(m.missing, 0)
	}
	m.missing[i/64] |= 1 << (i % 64)
	m.values = append(m.values, 0)
}

// addAll appends a row for each of present, with the next value where it is true, or,
// where present is nil, for each value.
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

// numberText is the text of a number that is an exact float64: all digits of an
// integer, the shortest text of any other number, and none where it is missing.
func numberText(v float64) string {
	switch {
	case math.IsNaN(v):
		return ""
	case v == math.Trunc(v) && math.Abs(v) < 1<<63 && math.Abs(v) >= 1<<53:
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

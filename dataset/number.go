package dataset

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/mercer-go/mercer/internal/selection"
	"github.com/mercer-go/mercer/internal/spread"
)

const (
	noValues = "has no values; {$drop}"
	tooLarge = "has numbers too large to standardize; rescale the column"
)

// A numberWriter is a writer for a column of numbers.
type numberWriter struct {
	inputColumn
	rule *Number
}

func (w *numberWriter) write(x []float64, width, first, last int) (int, error) {
	var buffer [256]float64
	to := w.offset
	for ; first < last; first += len(buffer) {
		for i, v := range w.column.values(buffer[:], first, min(first+len(buffer), last)) {
			if v-v != 0 {
				switch _, k := w.column.number(first + i); {
				case k > number:
					return first + i, w.table.notNumber(w.column, first+i, k)
				case w.refuse:
					return first + i, w.table.missingError(w.column, first+i, missingRefused)
				}
				v = w.rule.Fill
			}
			if v = w.rule.feature(v); math.IsInf(v, 0) {
				return first + i, w.table.cellError(w.column, first+i, w.column.cell(first+i), fmt.Sprintf("overflows float64 when standardized with mean %v and scale %v", w.rule.Mean, w.rule.Scale))
			}
			x[to] = v
			to += width
		}
	}
	return last, nil
}

// missingRefused is the error text for a missing cell of a feature.
const missingRefused = "missing cells are refused: give it a value or drop the row"

// missingError returns the error for a missing cell that violates the given rule.
func (t *Table) missingError(c *column, row int, rule string) *Error {
	return t.cellError(c, row, c.cell(row), missingRule(c.cell(row))+rule)
}

// missingRule returns the first part of the error text for a missing cell.
func missingRule(cell string) string {
	if cell != "" {
		return "stands for a missing cell; "
	}
	return "the cell is empty; "
}

// feature returns the feature for the number v.
func (n *Number) feature(v float64) float64 {
	if v -= n.Mean; math.Abs(v) <= n.Rounding {
		return 0
	}
	return v / n.Scale
}

// numberOf learns the encoding of a column of numbers, in which NaN is a missing cell. rule is the rule that the column
// violates, or "". weights may be nil.
func numberOf(values, weights []float64, standardize bool) (n *Number, rule string) {
	m := momentsOf(values, weights)
	fill, _ := m.median(values, weights)
	return m.number(fill, totalWeight(weights, len(values))-m.N, standardize)
}

// moments holds statistics of the numbers in a column, without its missing cells.
type moments struct {
	N         float64 // the number of values, or the sum of their weights
	Mean, SD  float64 // SD² = Σ (v − Mean)² / N
	Low, High float64 // minimum and maximum

	remainder float64 // exact mean of the values − Mean
}

// momentsOf returns the moments of the values that are not NaN. weights may be nil.
//
// The algorithm is the corrected two-pass algorithm (Chan, Golub and LeVeque 1983, equation 1.7). The deviations
// are divided by a power of two, so that no square overflows.
func momentsOf(values, weights []float64) (m moments) {
	if weights != nil {
		return weightedMoments(values, weights)
	}
	m.Low, m.High = math.Inf(1), math.Inf(-1)
	for _, v := range values {
		if v == v {
			m.N++
			m.Mean += v
			if v < m.Low {
				m.Low = v
			}
			if v > m.High {
				m.High = v
			}
		}
	}
	n := m.N
	switch {
	case m.Low >= m.High: // also true if there are no values
		m.Mean = m.Low
		return m
	case math.IsInf(m.Mean, 0):
		m.Mean = 0
		for _, v := range values {
			if v == v {
				m.Mean += v / n
			}
		}
	default:
		m.Mean /= n
	}
	_, exponent := math.Frexp(max(m.High-m.Mean, m.Mean-m.Low))
	unit := math.Ldexp(1, max(-1022, min(exponent, 1023)))
	perUnit := 1 / unit
	var remainder, sum float64
	for _, v := range values {
		if v == v {
			u := (v - m.Mean) * perUnit
			remainder += u
			sum += u * u
		}
	}
	remainder /= n
	m.shift(remainder * unit)
	m.SD = math.Sqrt(max(sum/n-remainder*remainder, 0)) * unit
	return m
}

// shift adds d to Mean, and stores the rounding error in remainder.
func (m *moments) shift(d float64) {
	mean := m.Mean + d
	m.Mean, m.remainder = mean, d-(mean-m.Mean)
}

// repeated returns the moments of n values that are all v.
func repeated(n, v float64) moments { return moments{N: n, Mean: v, Low: v, High: v} }

// add sets m to the moments of all values of m and o together (Chan, Golub and LeVeque 1983, equation 2.1).
func (m *moments) add(o moments) {
	if o.N <= 0 {
		return
	}
	if m.N == 0 {
		*m = o
		return
	}
	total := m.N + o.N
	p, q := m.N/total, o.N/total
	d := o.Mean - m.Mean
	m.Mean += d * q
	m.SD = math.Hypot(math.Hypot(math.Sqrt(p)*m.SD, math.Sqrt(q)*o.SD), math.Sqrt(p*q)*d)
	m.N += o.N
	m.Low, m.High = min(m.Low, o.Low), max(m.High, o.High)
}

// rounding returns the largest standard deviation that may be due to rounding: see spread.Rounding.
func (m moments) rounding() float64 { return spread.Rounding(m.N, m.Mean) }

// number returns the encoding of a column with these moments. missingWeight is the weight of the missing cells, and
// fill, the median, replaces them. rule is the rule that the column violates, or "".
func (m moments) number(fill, missingWeight float64, standardize bool) (n *Number, rule string) {
	if m.N == 0 {
		return nil, noValues
	}
	n = &Number{Fill: fill, Scale: 1, Low: m.Low, High: m.High}
	if !standardize {
		return n, ""
	}
	m.add(repeated(missingWeight, fill))
	rounding := m.rounding()
	switch {
	case m.Low == m.High:
		n.Mean = m.Low
	case rounding > 0 && m.SD <= rounding && !math.IsInf(rounding, 0):
		n.Mean, n.Rounding = m.Mean, max(rounding, m.High-m.Mean, m.Mean-m.Low)
	default:
		n.Mean, n.Scale = m.Mean, m.SD
		if n.Scale == 0 { // the mean of the squares has underflowed
			n.Scale = m.High - m.Low
		}
		if math.IsInf(n.Scale, 1) || math.IsInf(n.Mean, 0) || math.IsNaN(n.Scale+n.Mean) {
			return nil, tooLarge
		}
	}
	return n, ""
}

// median returns the median of the n values that are not NaN: the middle value, or the mean of the
// two middle values. If n is 0, ok is false.
func median(values []float64, n int) (m float64, ok bool) {
	if n == 0 {
		return 0, false
	}
	candidates, lowerCount := aroundMedian(values, n)
	k := n/2 - lowerCount
	b := selection.Nth(candidates, k)
	if n%2 == 1 {
		return b, true
	}
	a := slices.Max(candidates[:k])
	if m = (a + b) / 2; math.IsInf(m, 0) {
		m = a/2 + b/2
	}
	return m, true
}

// aroundMedian returns the values in an interval that contains the middle value or both middle values, and the
// number of values below it. The bounds are quantiles of a sample (Floyd and Rivest 1975). If the interval does not
// contain the middle values, aroundMedian returns all values.
func aroundMedian(values []float64, n int) (candidates []float64, lowerCount int) {
	const sampled = 1 << 12
	if n >= 4*sampled {
		sample := make([]float64, 0, 2*sampled)
		for i := 0; i < len(values); i += len(values) / sampled {
			if v := values[i]; v == v {
				sample = append(sample, v)
			}
		}
		if middle, halfWidth := len(sample)/2, 2*int(math.Sqrt(float64(len(sample)))); halfWidth < middle {
			low, high := selection.Nth(sample, middle-halfWidth), selection.Nth(sample, middle+halfWidth)
			candidates = make([]float64, n/4)
			k := 0
			for _, v := range values {
				if k == len(candidates) {
					break
				}
				lowerCount += boolToInt(v < low)
				candidates[k] = v
				k += boolToInt(v >= low) & boolToInt(v <= high)
			}
			if k < len(candidates) && lowerCount < n/2 && n/2 < lowerCount+k {
				return candidates[:k], lowerCount
			}
		}
	}
	candidates = make([]float64, 0, n)
	for _, v := range values {
		if v == v {
			candidates = append(candidates, v)
		}
	}
	return candidates, 0
}

// boolToInt returns 1 if b is true and 0 otherwise. It compiles without a branch.
func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// powersOfTen lists the powers of ten that are exact in float64.
var powersOfTen = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// powersOfFive lists the powers of five that fit in 64 bits.
var powersOfFive = func() (p [28]uint64) {
	p[0] = 1
	for k := range p[1:] {
		p[k+1] = 5 * p[k]
	}
	return p
}()

// decimal parses a number such as -12.5e3 with up to 19 digits, not counting leading zeros, and a power of ten from
// −27 to 27. It returns the nearest float64, ties to even, as strconv does. For any other cell ok is false.
func decimal(b []byte) (v float64, ok bool) {
	v, end, ok := scanDecimal(b, 0)
	if !ok || end != len(b) {
		return 0, false
	}
	return v, true
}

// scanDecimal does the work of the function decimal for a number that begins at index i of b. end
// is the index of the first byte that is not part of the number.
func scanDecimal(b []byte, i int) (v float64, end int, ok bool) {
	negative := false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		negative = b[i] == '-'
		i++
	}
	var mantissa uint64
	first, fraction := i, 0
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		mantissa = mantissa*10 + uint64(b[i]-'0')
	}
	digits := i - first
	if i < len(b) && b[i] == '.' {
		start := i + 1
		for i = start; i+8 <= len(b); i += 8 {
			x := binary.LittleEndian.Uint64(b[i:]) ^ '0'*eachByte // now the byte of a digit has the value of the digit
			nonDigits := (x&(0x7f*eachByte) + 0x76*eachByte | x) & (0x80 * eachByte)
			if nonDigits != 0 {
				if uint32(nonDigits) == 0 {
					mantissa = mantissa*1e4 + fourDigits(uint32(x))
					i += 4
				}
				break
			}
			mantissa = mantissa*1e8 + eightDigits(x)
		}
		for ; i < len(b) && b[i]-'0' <= 9; i++ {
			mantissa = mantissa*10 + uint64(b[i]-'0')
		}
		fraction = i - start
		digits += fraction
	}
	for k := first; digits > 19 && (b[k] == '0' || b[k] == '.'); k++ {
		if b[k] == '0' {
			digits-- // a leading zero is not one of the 19 digits
		}
	}
	if digits == 0 || digits > 19 { // 19 digits fit in 64 bits
		return 0, i, false
	}
	power := -fraction
	if i < len(b) && b[i]|0x20 == 'e' {
		i++
		sign := 1
		if i < len(b) && (b[i] == '-' || b[i] == '+') {
			if b[i] == '-' {
				sign = -1
			}
			i++
		}
		start, e := i, 0
		for ; i < len(b) && b[i]-'0' <= 9 && i-start < 4; i++ {
			e = e*10 + int(b[i]-'0')
		}
		if i == start {
			return 0, i, false
		}
		power += sign * e
	}
	switch {
	case mantissa <= 1<<53 && -22 <= power && power <= 22:
		// A single operation on exact numbers gives the result, rounded once (Clinger 1990).
		v = float64(mantissa)
		if power < 0 {
			v /= powersOfTen[-power]
		} else if power > 0 {
			v *= powersOfTen[power]
		}
	case power < -27 || power > 27:
		return 0, i, false
	default:
		v = scaled(mantissa, power)
	}
	if negative {
		v = -v
	}
	return v, i, true
}

// eachByte has 1 in each of its bytes.
const eachByte = 0x0101010101010101

// eightDigits returns a number of eight decimal digits. Each byte of x is a digit from 0 to 9; the
// lowest byte is the first digit.
func eightDigits(x uint64) uint64 {
	x = x*10 + x>>8 // now every second byte of x is a number of two digits
	return (x&0x000000ff000000ff*(100+1000000<<32) + x>>16&0x000000ff000000ff*(1+10000<<32)) >> 32
}

// fourDigits does the same as eightDigits, for four digits.
func fourDigits(x uint32) uint64 {
	x = x*10 + x>>8
	return uint64(x&0xff*100 + x>>16&0xff)
}

// scaled returns mantissa·10^power, rounded once. It computes at least 62 bits of the product or quotient of mantissa
// and 5^|power|, and sets the last bit if the remaining bits are not all 0.
func scaled(mantissa uint64, power int) float64 {
	five := powersOfFive[max(power, -power)]
	shift := bits.LeadingZeros64(mantissa)
	exponent := power - shift
	mantissa <<= shift
	var high, remainder uint64
	if power < 0 {
		shift = bits.LeadingZeros64(five)
		// Div64 requires mantissa/2 < divisor. This holds, because the divisor is at least 2⁶³.
		high, remainder = bits.Div64(mantissa>>1, mantissa<<63, five<<shift)
		exponent += shift - 63
	} else {
		high, remainder = bits.Mul64(mantissa, five<<bits.LeadingZeros64(five))
		exponent += 64 - bits.LeadingZeros64(five)
	}
	if remainder != 0 {
		remainder = 1
	}
	high = high>>1 | high&1 | remainder // the conversion of an int64 rounds only once on every platform
	return float64(int64(high)) * math.Float64frombits(uint64(1023+exponent+1)<<52)
}

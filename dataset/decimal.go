package dataset

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// powersOfTen are those that float64 holds exactly.
var powersOfTen = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// powersOfFive are those that 64 bits hold.
var powersOfFive = func() (p [28]uint64) {
	p[0] = 1
	for k := range p[1:] {
		p[k+1] = 5 * p[k]
	}
	return p
}()

// decimal reads a number such as -12.5e3 that is short enough to be exact: up to 19
// digits behind zeros, and a power of ten of at most 27 on either side of 0. It gives the nearest
// float64, the even one of two, as strconv does. It is not ok for any other cell:
// parseCell reads all of them.
func decimal(b []byte) (v float64, ok bool) {
	v, end, ok := scanDecimal(b, 0)
	if !ok || end != len(b) {
		return 0, false
	}
	return v, true
}

// scanDecimal is decimal for the text that begins at place i and ends, at the
// place end, before the first byte that no number goes on with.
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
			x := binary.LittleEndian.Uint64(b[i:]) ^ '0'*eachByte // a digit is a byte of 0 to 9 now
			others := (x&(0x7f*eachByte) + 0x76*eachByte | x) & (0x80 * eachByte)
			if others != 0 {
				if uint32(others) == 0 {
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
			digits-- // at the front it is none
		}
	}
	if digits == 0 || digits > 19 { // 19 cannot overflow
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
		// One multiplication or division, rounded once (Clinger 1990).
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

// eachByte has a 1 in each byte.
const eachByte = 0x0101010101010101

// eightDigits is the number of eight digits, bytes of 0 to 9, the first one lowest.
func eightDigits(x uint64) uint64 {
	x = x*10 + x>>8 // pairs of them
	return (x&0x000000ff000000ff*(100+1000000<<32) + x>>16&0x000000ff000000ff*(1+10000<<32)) >> 32
}

// fourDigits is eightDigits of four.
func fourDigits(x uint32) uint64 {
	x = x*10 + x>>8
	return uint64(x&0xff*100 + x>>16&0xff)
}

// scaled is mantissa·10^power, rounded once: product or quotient with 5^|power| to 62 bits
// or more, of which the last is also set where anything follows.
func scaled(mantissa uint64, power int) float64 {
	five := powersOfFive[max(power, -power)]
	shift := bits.LeadingZeros64(mantissa)
	exponent := power - shift
	mantissa <<= shift
	var high, rest uint64
	if power < 0 {
		shift = bits.LeadingZeros64(five)
		// mantissa/2 < 2⁶³ ≤ the divisor
		high, rest = bits.Div64(mantissa>>1, mantissa<<63, five<<shift)
		exponent += shift - 63
	} else {
		high, rest = bits.Mul64(mantissa, five<<bits.LeadingZeros64(five))
		exponent += 64 - bits.LeadingZeros64(five)
	}
	if rest != 0 {
		rest = 1
	}
	high = high>>1 | high&1 | rest // as int64, whose conversion rounds once everywhere
	return float64(int64(high)) * math.Float64frombits(uint64(1023+exponent+1)<<52)
}

package dataset

// powersOfTen are those that float64 holds exactly.
var powersOfTen = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// decimal reads a number such as -12.5e3 that is short enough to be exact: its
// digits make an integer up to 2⁵³ and its power of ten is at most 22 on either
// side of 0, so that one multiplication or division, rounded once, gives the
// nearest float64 (Clinger 1990). It is not ok for any other cell: parseCell
// reads all of them, and to the same bits.
func decimal[T string | []byte](b T) (v float64, ok bool) {
	v, end, ok := scanDecimal(b, 0)
	if !ok || end != len(b) {
		return 0, false
	}
	return v, true
}

// scanDecimal is decimal for the text that begins at place i and ends, at the
// place end, before the first byte that no number goes on with.
func scanDecimal[T string | []byte](b T, i int) (v float64, end int, ok bool) {
	negative := false
	if i < len(b) && (b[i] == '-' || b[i] == '+') {
		negative = b[i] == '-'
		i++
	}
	const exact = 1 << 53
	var mantissa uint64
	start, fraction := i, 0
	for ; i < len(b) && b[i]-'0' <= 9; i++ {
		mantissa = mantissa*10 + uint64(b[i]-'0')
	}
	digits := i - start
	if i < len(b) && b[i] == '.' {
		start = i + 1
		for i = start; i < len(b) && b[i]-'0' <= 9; i++ {
			mantissa = mantissa*10 + uint64(b[i]-'0')
		}
		fraction = i - start
		digits += fraction
	}
	if digits == 0 || digits > 18 || mantissa > exact { // 18 digits cannot overflow
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
	if power < -22 || power > 22 {
		return 0, i, false
	}
	v = float64(mantissa)
	if power < 0 {
		v /= powersOfTen[-power]
	} else if power > 0 {
		v *= powersOfTen[power]
	}
	if negative {
		v = -v
	}
	return v, i, true
}

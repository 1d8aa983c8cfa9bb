package sums

// twoSum returns s = a + b, rounded, and the rounding error e: s + e = a + b exactly (Knuth 1969,
// The Art of Computer Programming 2, 4.2.2, theorem B).
func twoSum(a, b float64) (s, e float64) {
	s = a + b
	v := s - a
	return s, (a - (s - v)) + (b - v)
}

// quickTwoSum returns the same as twoSum, but requires |a| ≥ |b| (Dekker 1971).
func quickTwoSum(a, b float64) (s, e float64) {
	s = a + b
	return s, b - (s - a)
}

// add returns (ah + al) + (bh + bl) with a relative error below 3·2⁻¹⁰⁶ for any signs (Joldes, Muller and Popescu
// 2017, Tight and rigorous error bounds for basic building blocks of double-word arithmetic, algorithm 6).
func add(ah, al, bh, bl float64) (h, l float64) {
	sh, sl := twoSum(ah, bh)
	th, tl := twoSum(al, bl)
	vh, vl := quickTwoSum(sh, sl+th)
	return quickTwoSum(vh, tl+vl)
}

// addOne returns (ah + al) + b with a relative error below 2·2⁻¹⁰⁶ (Joldes, Muller and Popescu 2017, algorithm 4).
func addOne(ah, al, b float64) (h, l float64) {
	sh, sl := twoSum(ah, b)
	return quickTwoSum(sh, al+sl)
}

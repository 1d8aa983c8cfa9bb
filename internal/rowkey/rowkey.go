// Package rowkey draws random samples of rows by keys, 64 bits for each row that are
// equal for equal rows: the sample is the rows of the smallest priorities (bottom-k
// sampling: Cohen and Kaplan 2007, Summarizing data using bottom-k sketches). It does
// not depend on the order of the rows, on how they are cut into files, or on which
// process reads them.
package rowkey

import "math"

// golden is 2⁶⁴ divided by the golden ratio, the increment of SplitMix64.
const golden = 0x9e3779b97f4a7c15

// Mix is a bijection of 64 bits whose every output bit depends on every input bit
// (Steele, Lea and Flood 2014, SplitMix64).
func Mix(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

// Join is the hash of what h is the hash of, followed by v.
func Join(h, v uint64) uint64 { return Mix((h + golden) ^ v) }

// Priority is that of a row under a seed: different for different keys, and as good as
// random.
func Priority(key, seed uint64) uint64 { return Mix(key ^ Mix(seed+golden)) }

// Of is the key of a row of numbers; −0 is 0.
func Of(row []float64) uint64 {
	h := uint64(len(row))
	for _, v := range row {
		h = Join(h, math.Float64bits(v+0))
	}
	return h
}

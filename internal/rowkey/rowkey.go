// Package rowkey draws random samples of rows by keys of 64 bits, which are equal for equal rows. The sample
// consists of the rows with the smallest priorities (bottom-k sampling: Cohen and Kaplan 2007, Summarizing data
// using bottom-k sketches). It does not depend on the order of the rows or on the division of the rows into files.
package rowkey

import "math"

// golden, the increment of SplitMix64, is 2⁶⁴ divided by the golden ratio.
const golden = 0x9e3779b97f4a7c15

// Mix is a bijection of 64-bit numbers in which every output bit depends on every input bit
// (Steele, Lea and Flood 2014, SplitMix64).
func Mix(h uint64) uint64 {
	h ^= h >> 30
	h *= 0xbf58476d1ce4e5b9
	h ^= h >> 27
	h *= 0x94d049bb133111eb
	return h ^ h>>31
}

// Join returns the hash of a sequence followed by v, where h is the hash of the sequence.
func Join(h, v uint64) uint64 { return Mix((h + golden) ^ v) }

// Priority returns the priority of the row with the given key. Priorities are pseudo-random numbers
// that depend on the seed. Different keys have different priorities.
func Priority(key, seed uint64) uint64 { return Mix(key ^ Mix(seed+golden)) }

// Of returns the key of a row of numbers, in which −0 equals 0.
func Of(row []float64) uint64 {
	h := uint64(len(row))
	for _, v := range row {
		h = Join(h, math.Float64bits(v+0))
	}
	return h
}

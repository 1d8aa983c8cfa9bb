package numeric

import (
	"math"
	"math/bits"

	"github.com/mercer-go/mercer/backend"
)

// Elements returns rows·cols, or the largest int64 if the product exceeds it.
func Elements(rows, cols int) int64 {
	hi, lo := bits.Mul64(uint64(rows), uint64(cols))
	if hi != 0 || lo > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(lo)
}

// Total returns the sum of sizes, or the largest int64 if the sum exceeds it.
func Total(list ...int64) (total int64) {
	for _, v := range list {
		if total > math.MaxInt64-v {
			return math.MaxInt64
		}
		total += v
	}
	return total
}

// Bytes returns the size of a number of float64 elements in bytes.
func Bytes(elements int64) int64 { return ElementBytes[float64](elements) }

// ElementBytes returns the size of a number of elements of T in bytes.
func ElementBytes[T backend.Float](elements int64) int64 {
	var zero T
	size := int64(8)
	if _, single := any(zero).(float32); single {
		size = 4
	}
	if elements > math.MaxInt64/size {
		return math.MaxInt64
	}
	return size * elements
}

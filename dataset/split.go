package dataset

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Split divides the rows at random into a training and a test table. Each row
// is in exactly one of them, and both keep the table's order.
//
// The test table has round(testFraction · rows) rows, and at least one row is
// left on both sides when 0 < testFraction < 1 and there are two; a
// testFraction ≤ 0 or NaN gives an empty test table, one ≥ 1 an empty training
// table. The same table, fraction and seed give the same split everywhere: the
// rows are shuffled by Fisher and Yates' method with PCG.
func (t *Table) Split(testFraction float64, seed uint64) (train, test *Table) {
	trainRows, testRows := SplitRows(t.rows, testFraction, seed)
	return t.selectRows(trainRows), t.selectRows(testRows)
}

// SplitRows returns the rows of a table of n that Split puts on either side.
func SplitRows(n int, testFraction float64, seed uint64) (train, test []int) {
	size := 0
	switch {
	case testFraction >= 1:
		size = n
	case testFraction > 0:
		size = int(math.Round(testFraction * float64(n)))
		if n >= 2 {
			size = min(max(size, 1), n-1)
		}
	}
	rows := rand.New(rand.NewPCG(seed, splitStream)).Perm(n)
	slices.Sort(rows[:size])
	slices.Sort(rows[size:])
	return rows[size:], rows[:size]
}

// splitStream keeps the numbers of Split apart from other uses of a seed.
const splitStream = 0x73706c6974 // "split"

// Select returns the table of those rows, counted from 0, in that order; a row
// may be there several times. It panics when there is no such row.
func (t *Table) Select(rows []int) *Table { return t.selectRows(rows) }

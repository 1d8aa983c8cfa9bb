package dataset

import (
	"math"
	"math/rand/v2"
	"slices"
)

// Split divides the rows at random into a training and a test table. Each row is in one of the two
// tables, and each table has its rows in the order of t.
//
// The test table has round(testFraction · rows) rows. If 0 < testFraction < 1 and there are at least two rows, both
// tables have at least one row. The test table is empty if testFraction ≤ 0 or NaN, and the training table is empty
// if testFraction ≥ 1. Equal tables, fractions and seeds give equal splits on all machines.
func (t *Table) Split(testFraction float64, seed uint64) (train, test *Table) {
	trainRows, testRows := SplitRows(t.Rows(), testFraction, seed)
	return t.selectRows(trainRows), t.selectRows(testRows)
}

// SplitRows returns, for a table of n rows, the indices of the rows in the two tables of Split.
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

// splitStream selects the random stream of Split.
const splitStream = 0x73706c6974 // "split"

// Select returns a table of the given rows, counted from 0, in the given order. A row may occur
// several times. It panics if a row is out of range.
func (t *Table) Select(rows []int) *Table { return t.selectRows(rows) }

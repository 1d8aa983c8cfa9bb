package dataset_test

import (
	"math"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/dataset"
)

func counting(t *testing.T, n int) *dataset.Table {
	t.Helper()
	values := make([]float64, n)
	for i := range values {
		values[i] = float64(i)
	}
	table, err := dataset.NewTable("", dataset.Numbers("i", values))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func numbers(t *testing.T, table *dataset.Table, name string) []float64 {
	t.Helper()
	values, err := table.Numbers(name)
	if err != nil {
		t.Fatal(err)
	}
	return values
}

// TestSplit checks that each row is in exactly one part, that a part is in order, and that it has the documented
// size.
func TestSplit(t *testing.T) {
	for _, c := range []struct {
		rows     int
		fraction float64
		test     int
	}{
		{100, 0.2, 20}, {101, 0.5, 51}, {10, 0.25, 3}, {3, 0.1, 1}, {3, 0.99, 2}, {2, 0.5, 1}, {1, 0.2, 0}, {1, 0.7, 1}, {0, 0.5, 0},
		{10, 0, 0}, {10, -1, 0}, {10, math.NaN(), 0}, {10, 1, 10}, {10, 7, 10}, {10, math.Inf(1), 10},
	} {
		const seed = 7
		train, test := counting(t, c.rows).Split(c.fraction, seed)
		a, b := numbers(t, train, "i"), numbers(t, test, "i")
		if len(b) != c.test || train.Rows()+test.Rows() != c.rows {
			t.Errorf("%d rows, fraction %v: %d and %d rows, want %d in the test", c.rows, c.fraction, train.Rows(), test.Rows(), c.test)
		}
		if !slices.IsSorted(a) || !slices.IsSorted(b) {
			t.Errorf("%d rows, fraction %v: out of order", c.rows, c.fraction)
		}
		union := slices.Sorted(slices.Values(slices.Concat(a, b)))
		if c.rows > 0 && !slices.Equal(union, numbers(t, counting(t, c.rows), "i")) {
			t.Errorf("%d rows, fraction %v: rows are lost or doubled: %v", c.rows, c.fraction, union)
		}
	}
}

// TestSplitSeed checks that the split depends only on the seed.
func TestSplitSeed(t *testing.T) {
	table := counting(t, 12)
	_, first := table.Split(0.25, 1)
	_, sameSeed := table.Split(0.25, 1)
	_, otherSeed := table.Split(0.25, 2)
	if !slices.Equal(numbers(t, first, "i"), numbers(t, sameSeed, "i")) {
		t.Error("the same seed gave two splits")
	}
	if slices.Equal(numbers(t, first, "i"), numbers(t, otherSeed, "i")) {
		t.Error("two seeds gave the same split")
	}
	if got, want := numbers(t, first, "i"), []float64{1, 2, 4}; !slices.Equal(got, want) {
		t.Errorf("seed 1 gives %v, it has always given %v", got, want)
	}
}

// TestSplitKeepsCells checks that a split does not change line numbers, missing cells, and cells that are not
// numbers.
func TestSplitKeepsCells(t *testing.T) {
	text := "a,b\n" + numbersBelow(2*dataset.MaxCategories) + "x,oops\n"
	table := read(t, text)
	for seed := range uint64(20) {
		train, test := table.Split(0.5, seed)
		_, trainErr := train.Numbers("b")
		_, testErr := test.Numbers("b")
		err := trainErr
		if err == nil {
			err = testErr
		}
		if trainErr != nil && testErr != nil {
			t.Fatalf("seed %d: the cell is on both sides", seed)
		}
		wantError(t, err, `standard input:2002: column "b": "oops" is not a number; correct it, or name it as a marker of missing values`)
	}
}

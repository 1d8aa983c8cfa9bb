package dataset_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/dataset"
	"gonum.org/v1/gonum/mat"
)

func keysOf(t *testing.T, table *dataset.Table, names ...string) []uint64 {
	t.Helper()
	keys, err := table.Keys(names)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func newTable(t *testing.T, columns ...dataset.Column) *dataset.Table {
	t.Helper()
	table, err := dataset.NewTable("", columns...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestKeysAreEqualForEqualRows checks that rows have equal keys if and only if their cells are equal.
func TestKeysAreEqualForEqualRows(t *testing.T) {
	nan := math.NaN()
	a := []string{"1", "1.0", "10e-1", "2", "-0", "0", "NA", "", "red", "1"}
	b := []float64{5, 5, 5, 5, 5, 5, 5, 5, 5, 6}
	equal := [][]int{{0, 1, 2}, {3}, {4, 5}, {6, 7}, {8}, {9}} // each group lists the indices of equal rows
	mixed := newTable(t, dataset.Texts("a", a), dataset.Numbers("b", b))
	keys := keysOf(t, mixed, "a", "b")
	seen := map[uint64]bool{}
	for _, rows := range equal {
		if seen[keys[rows[0]]] {
			t.Errorf("row %d has the key of another row", rows[0])
		}
		seen[keys[rows[0]]] = true
		for _, i := range rows {
			if keys[i] != keys[rows[0]] {
				t.Errorf("rows %d and %d have different keys", i, rows[0])
			}
		}
	}
	// The keys must not depend on the order of the columns, on whether numbers are stored as texts, on an additional
	// column, or on the selection of rows.
	numbers := newTable(t, dataset.Numbers("y", make([]float64, 8)), dataset.Numbers("b", b[:8]),
		dataset.Numbers("a", []float64{1, 1, 1, 2, math.Copysign(0, -1), 0, nan, nan}))
	if got := keysOf(t, numbers, "b", "a"); !slices.Equal(got, keys[:8]) {
		t.Errorf("keys of numbers: %v, of texts: %v", got, keys[:8])
	}
	if got := keysOf(t, mixed.Select([]int{9, 3}), "a", "b"); !slices.Equal(got, []uint64{keys[9], keys[3]}) {
		t.Errorf("keys of rows 9 and 3: %v", got)
	}
	// The same cells in other columns must give a different key.
	crossed := newTable(t, dataset.Numbers("a", []float64{5}), dataset.Numbers("b", []float64{1}))
	if got := keysOf(t, crossed, "a", "b"); got[0] == keys[0] {
		t.Error("a = 5, b = 1 has the key of a = 1, b = 5")
	}
	if _, err := mixed.Keys([]string{"c"}); err == nil || !strings.Contains(err.Error(), `has no column "c"`) {
		t.Errorf("a column that is not there: %v", err)
	}
}

// TestKeysOfFile checks that a file gives the same keys as a table, also in passes and in another format.
func TestKeysOfFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var csv, libsvm strings.Builder
	csv.WriteString("x2,label,x1\n")
	for i := range 3000 {
		switch {
		case i%3 == 0:
			csv.WriteString("0,7,1.50\n")
			libsvm.WriteString("7 1:1.5\n")
		case i%3 == 1:
			csv.WriteString("2e0,8,0\n")
			libsvm.WriteString("8 2:2\n")
		default:
			csv.WriteString("-3,9,4\n")
			libsvm.WriteString("9 1:4 2:-3\n")
		}
	}
	var keysByFormat [][]uint64
	for _, path := range []string{write("t.csv", csv.String()), write("t.libsvm", libsvm.String())} {
		table, err := dataset.Read(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		e, err := dataset.Learn(table, dataset.Rules{Targets: []string{"label"}})
		if err != nil {
			t.Fatal(err)
		}
		keys, err := e.Keys(table)
		if err != nil {
			t.Fatal(err)
		}
		s, err := dataset.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		var streamed []uint64
		err = s.EachBlock(t.Context(), e, 77, true, func(x, y *mat.Dense, _ []float64, keys []uint64) error {
			if r, _ := x.Dims(); r != len(keys) || y == nil {
				t.Errorf("%d keys for %d rows", len(keys), r)
			}
			streamed = append(streamed, keys...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(streamed, keys) {
			t.Errorf("%s: the keys of passes differ", path)
		}
		if distinct := len(slices.Compact(slices.Sorted(slices.Values(keys)))); distinct != 3 {
			t.Errorf("%s: %d different keys, want 3", path, distinct)
		}
		keysByFormat = append(keysByFormat, keys)
	}
	if !slices.Equal(keysByFormat[0], keysByFormat[1]) {
		t.Error("CSV and LIBSVM have different keys")
	}
}

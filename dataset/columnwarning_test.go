package dataset_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/dataset"
)

// TestColumnWarnings checks the warnings about a table and in passes: about dates that became categories, about row
// numbers, and about texts that differ in all rows.
func TestColumnWarnings(t *testing.T) {
	columns := map[string]func(i, n int) string{
		"id":       func(i, _ int) string { return fmt.Sprint(i) },
		"from 100": func(i, _ int) string { return fmt.Sprint(100 + 3*i) },
		"negative": func(i, n int) string { return fmt.Sprint(i - n) },
		"falling":  func(i, n int) string { return fmt.Sprint(n - i) },
		"last":     func(i, n int) string { return fmt.Sprint(i % (n - 1)) },
		"halves":   func(i, _ int) string { return fmt.Sprint(float64(i) / 2) },
		"gap":      func(i, _ int) string { return map[bool]string{true: fmt.Sprint(i)}[i != 3] },
		"day":      func(i, _ int) string { return fmt.Sprintf("2024-01-%02d", 1+i%3) },
		"stamp":    func(i, _ int) string { return fmt.Sprintf("2024-01-05 12:00:0%d", i%3) },
		"german":   func(i, _ int) string { return fmt.Sprintf("%d.1.2024", 1+i%3) },
		"american": func(i, _ int) string { return fmt.Sprintf("1/%d/2024", 1+i%3) },
		"code":     func(i, _ int) string { return fmt.Sprintf("1-%d", i%3) },
		"name":     func(i, _ int) string { return fmt.Sprintf("n%d", i) },
		"y":        func(i, _ int) string { return fmt.Sprint(i * i % 7) },
	}
	names := []string{"id", "from 100", "negative", "falling", "last", "halves", "gap", "day", "stamp", "german", "american", "code", "name", "y"}
	for n, want := range map[int][]string{
		// With 3000 rows, the column "name" has too many distinct texts to be categories, and the rules drop it.
		12:   {"id", "from 100", "negative", "day", "stamp", "german", "american", "name"},
		3000: {"id", "from 100", "negative", "day", "stamp", "german", "american"},
		4:    nil,
	} {
		rules := dataset.Rules{Targets: []string{"y"}, Standardize: true}
		if n == 3000 {
			rules.Drop = []string{"name"}
		}
		path := writeColumns(t, n, names, func(name string, i int) string { return columns[name](i, n) })
		table, err := dataset.Read(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		e, err := dataset.Learn(table, rules)
		if err != nil {
			t.Fatal(err)
		}
		s, err := dataset.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Learn(t.Context(), rules); err != nil {
			t.Fatal(err)
		}
		for _, list := range [][]dataset.ColumnWarning{e.ColumnWarnings(table), s.ColumnWarnings()} {
			var got []string
			for _, r := range list {
				got = append(got, r.Column)
			}
			if !slices.Equal(got, want) {
				t.Errorf("n = %d: %q, want %q", n, got, want)
			}
		}
	}
	// The only column of features gets no warning.
	table := newTable(t, dataset.Numbers("x", []float64{1, 2, 3, 4, 5, 6}), dataset.Numbers("y", []float64{1, 2, 3, 4, 5, 6}))
	e, err := dataset.Learn(table, dataset.Rules{Targets: []string{"y"}})
	if err != nil || e.ColumnWarnings(table) != nil {
		t.Errorf("%v, %v", e.ColumnWarnings(table), err)
	}
}

// TestColumnWarningsOnMissing checks that exactly the columns with more than half of the cells missing get a
// warning with the fraction, for tables and for passes.
func TestColumnWarningsOnMissing(t *testing.T) {
	columns := map[string]func(i int) string{
		"x":    func(i int) string { return fmt.Sprint(i * 7 % 13) },
		"half": func(i int) string { return map[bool]string{true: fmt.Sprint(i % 5)}[i%2 == 0] },
		"most": func(i int) string { return map[bool]string{true: fmt.Sprint(i % 5)}[i%4 == 0] },
		"real": func(i int) string {
			return map[bool]string{true: fmt.Sprintf("%.3f", math.Sin(float64(i))), false: "NA"}[i%3 == 0]
		},
		"veneer": func(i int) string { return map[bool]string{true: "brick", false: "None"}[i%10 == 0] },
		"blank":  func(i int) string { return map[bool]string{true: "b"}[i%10 == 0] },
		"kind":   func(i int) string { return map[bool]string{true: "None", false: "b"}[i%3 == 0] },
		"y":      func(i int) string { return fmt.Sprint(i * i % 7) },
	}
	// The fraction refers to rows, not to weights: the column "half" has no value in 50 % of the rows.
	columns["w"] = func(i int) string { return map[bool]string{true: "10", false: "1"}[i%2 == 1] }
	names := []string{"x", "half", "most", "real", "veneer", "blank", "kind", "y", "w"}
	want := []string{
		"most: has no value in 75 % of the rows: these cells get the median; drop the column",
		"real: has no value in 66 % of the rows: these cells get the median; drop the column",
		`veneer: has no value ("None" counts as missing) in 90 % of the rows: these cells get the category "brick"; drop the column or take such cells for a category`,
		`blank: has no value in 90 % of the rows: these cells get the category "b"; drop the column`,
	}
	for _, n := range []int{60, 3000} {
		path := writeColumns(t, n, names, func(name string, i int) string { return columns[name](i) })
		rules := dataset.Rules{Targets: []string{"y"}, Weight: "w", Standardize: true}
		table, err := dataset.Read(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		e, err := dataset.Learn(table, rules)
		if err != nil {
			t.Fatal(err)
		}
		s, err := dataset.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Learn(t.Context(), rules); err != nil {
			t.Fatal(err)
		}
		for source, list := range map[string][]dataset.ColumnWarning{"table": e.ColumnWarnings(table), "stream": s.ColumnWarnings()} {
			var got []string
			for _, r := range list {
				got = append(got, r.Column+": "+r.String())
			}
			if !slices.Equal(got, want) {
				t.Errorf("%d rows, %s: %q, want %q", n, source, got, want)
			}
		}
	}
}

// writeColumns writes n rows to a CSV file and returns its path.
func writeColumns(t *testing.T, n int, names []string, cell func(name string, i int) string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(strings.Join(names, ",") + "\n")
	for i := range n {
		cells := make([]string, len(names))
		for j, name := range names {
			cells[j] = cell(name, i)
		}
		b.WriteString(strings.Join(cells, ",") + "\n")
	}
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

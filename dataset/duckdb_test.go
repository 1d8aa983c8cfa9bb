package dataset_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/required"
)

// TestArrowOfDuckDB compares Arrow files and streams of DuckDB with a CSV file of the same query. It also lets
// DuckDB read a file of WriteArrow.
func TestArrowOfDuckDB(t *testing.T) {
	if testing.Short() {
		t.Skip("starts DuckDB: skipped by -short")
	}
	dir := t.TempDir()
	const rows = 1<<17 + 3 // two batches
	x, y, k, words := make([]float64, rows), make([]float64, rows), make([]int64, rows), make([]string, rows)
	want := map[string]any{"n": float64(rows), "list": "|a|naïve"}
	sum, total, missingWeight := 0.0, int64(0), 0.0
	for i := range rows {
		x[i], y[i], k[i], words[i] = float64(i)/4, float64(i), int64(i-7), []string{"", "a", "naïve"}[i%3]
		if i%5 == 0 {
			y[i] = math.NaN()
			missingWeight++
		}
		sum, total = sum+x[i], total+k[i]
	}
	want["x"], want["k"], want["missing"], want["words"] = sum, float64(total), missingWeight, 3.0
	f, err := os.Create(filepath.Join(dir, "mercer.arrow"))
	if err == nil {
		err = dataset.WriteArrow(f, []string{"x", "y", "k", "word"}, []any{x, y, k, words})
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := required.DuckDBWasm(t, filepath.Join("testdata", "duckdb.js"), dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("DuckDB read another table:", diff)
	}

	text, err := dataset.Read(filepath.Join(dir, "duckdb.csv"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"duckdb.arrow", "duckdb.arrows"} {
		table, err := dataset.Read(filepath.Join(dir, name), nil)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(text.Names(), table.Names()); diff != "" || table.Rows() != 4500 {
			t.Errorf("%s: %d rows, names %s", name, table.Rows(), diff)
		}
		for _, column := range text.Names() {
			switch column {
			case "i8", "f64", "f32", "price", "u64", "i64":
				a, err := text.Numbers(column)
				if err != nil {
					t.Fatal(err)
				}
				b, err := table.Numbers(column)
				if diff := cmp.Diff(a, b, cmpopts.EquateNaNs()); diff != "" || err != nil {
					t.Errorf("%s: %s: %v %.500s", name, column, err, diff)
				}
			default:
				a, err := text.Texts(column)
				if err != nil {
					t.Fatal(err)
				}
				b, err := table.Texts(column)
				if diff := cmp.Diff(a, b); diff != "" || err != nil {
					t.Errorf("%s: %s: %v %.500s", name, column, err, diff)
				}
			}
		}
	}
}

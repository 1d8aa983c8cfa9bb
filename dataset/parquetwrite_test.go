package dataset_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mercer-go/mercer/dataset"
)

// TestWriteParquet checks that a written file is read back, as a table and in passes. parquet-wasm 0.8.0 (the Rust
// implementation of Apache Arrow) and hyparquet 1.33.0 have read the two files whose SHA-256 is given. If the bytes
// change, check the files with both programs again.
func TestWriteParquet(t *testing.T) {
	const rows = 1<<17 + 3 // these rows have two groups and pages of 512 KiB
	values := make([]float64, rows)
	labels := make([]string, rows)
	for i := range values {
		values[i], labels[i] = float64(i)/3, []string{"ant", "çat", ""}[i%3]
	}
	columns := make([]any, 20) // a list of 15 or more elements has a longer header
	wideNames := make([]string, len(columns))
	for j := range columns {
		columns[j], wideNames[j] = []float64{float64(j)}, fmt.Sprint("c", j)
	}
	for _, c := range []struct {
		names   []string
		columns []any
		sum     string
	}{
		{[]string{"prediction", "id", "ключ.a b"}, []any{
			[]float64{1.5, math.NaN(), math.Copysign(0, -1), 5e-324, math.MaxFloat64},
			[]int64{7, -9007199254740993, 0, math.MaxInt64, math.MinInt64},
			[]string{"é", "", "日本語 🦊", "NULL", "a,\"b\"\nc"}}, "bdc0db5ff48132ccc1af31af8230a18919d196ddc76c01dd36a153c217631fdf"},
		{[]string{"a", "b"}, []any{[]float64{}, []string{}}, "4e138483d57a9465d0363431128fbf3cfd486d200a9cb0d6eb998e0c8f2a4419"},
		{[]string{"a"}, []any{[]int64{-1}}, ""},
		{wideNames, columns, ""},
		{[]string{"v", "label"}, []any{values, labels}, ""},
	} {
		var b bytes.Buffer
		if err := dataset.WriteParquet(&b, c.names, c.columns); err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(b.Bytes()); c.sum != "" && hex.EncodeToString(sum[:]) != c.sum {
			t.Errorf("%q: other bytes, of SHA-256 %x", c.names, sum)
		}
		file := dataset.File{Path: filepath.Join(t.TempDir(), "a.parquet"), Keep: c.names[1:]}
		if err := os.WriteFile(file.Path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		table, err := file.Read()
		if err != nil {
			t.Fatal(err)
		}
		stream, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(table.Names(), c.names) || !slices.Equal(stream.Names(), c.names) {
			t.Fatalf("the columns are %q and %q, want %q", table.Names(), stream.Names(), c.names)
		}
		for j, name := range c.names {
			var want, got any = c.columns[j], nil
			var err error
			switch values := want.(type) {
			case []float64:
				got, err = table.Numbers(name)
			case []string:
				got, err = table.Texts(name)
			case []int64:
				texts := make([]string, len(values))
				for i, v := range values {
					texts[i] = fmt.Sprint(v)
				}
				want = texts
				got, err = table.Cells(name)
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateNaNs(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s:\n%.500s", name, diff)
			}
		}
		cells, err := stream.Cells(t.Context(), c.names)
		if err != nil {
			t.Fatal(err)
		}
		for j, name := range c.names {
			column, err := table.Cells(name)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(cells[j], column) {
				t.Errorf("%s: a stream has other cells than the table", name)
			}
		}
	}
}

func TestWriteParquetRefuses(t *testing.T) {
	for want, columns := range map[string][]any{
		`dataset: parquet: column "b": a []bool cannot be written`:                  {[]float64{1}, []bool{true}},
		`dataset: parquet: column "b" has 2 rows, and the columns before it have 1`: {[]float64{1}, []float64{1, 2}},
	} {
		var b bytes.Buffer
		if err := dataset.WriteParquet(&b, []string{"a", "b"}, columns); err == nil || err.Error() != want || b.Len() > 0 {
			t.Errorf("%v, %d bytes, want %s", err, b.Len(), want)
		}
	}
}

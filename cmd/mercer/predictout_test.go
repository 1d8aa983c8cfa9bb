package main

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/dataset"
)

// TestPredictionsInEveryFormat checks that the files of all formats have the same values as standard output,
// without rounding of integers above 2⁵³.
func TestPredictionsInEveryFormat(t *testing.T) {
	folder := t.TempDir()
	mercer := commandIn(t, folder)
	var b strings.Builder
	b.WriteString("key,n,x,y\n")
	for i := range 1500 {
		fmt.Fprintf(&b, "%05d,%d,%d,%d\n", i, 1<<53+2*i+1, i%37, i%37*2+i%5)
	}
	if err := os.WriteFile(filepath.Join(folder, "t.csv"), []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	mercer(0, "fit", "--quiet", "--learner", "ridge", "--target", "y", "--drop", "key,n", "--model", "@m.st", "@t.csv")
	predict := []string{"predict", "--model", "@m.st", "@t.csv"}
	text, _ := mercer(0, append(predict, "--keep", "key,n")...)
	want := columnOf(t, text, "prediction")
	for i, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
		if prefix := fmt.Sprintf("%05d,%d,", i, 1<<53+2*i+1); !strings.HasPrefix(line, prefix) {
			t.Fatalf("row %d is %s, want %s…", i+1, line, prefix)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	mercer(0, append(predict, "--keep", "key,n", "--out", "@p.csv.gz")...)
	z, err := gzip.NewReader(bytes.NewReader(read("p.csv.gz")))
	if err != nil {
		t.Fatal(err)
	}
	if unpacked, err := io.ReadAll(z); err != nil || string(unpacked) != text {
		t.Errorf("p.csv.gz differs, %v", err)
	}
	mercer(0, append(predict, "--out", "@p.npy")...)
	if head := string(read("p.npy")[10:]); !strings.HasPrefix(head, "{'descr': '<f8', 'fortran_order': False, 'shape': (1500,), }") {
		t.Errorf("p.npy: %.80s", head)
	}
	mercer(0, append(predict, "--keep", "key,n", "--out", "@p.npz")...)
	mercer(0, append(predict, "--keep", "key,n", "--out", "@p.parquet")...)
	mercer(0, append(predict, "--stream", "--keep", "key,n", "--out", "@s.parquet")...)
	if !bytes.Equal(read("p.parquet"), read("s.parquet")) {
		t.Error("p.parquet of a stream differs")
	}
	mercer(0, append(predict, "--keep", "key,n", "--out", "@p.arrow")...)
	for _, file := range []string{"p.parquet", "p.arrow"} {
		table, err := dataset.File{Path: filepath.Join(folder, file), Keep: []string{"key", "n"}}.Read()
		if err != nil {
			t.Fatal(err)
		}
		kept := make([][]string, 2)
		for j, name := range []string{"key", "n"} {
			if kept[j], err = table.Cells(name); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := table.Numbers("prediction"); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s differs, %v", file, err)
		}
		for i, line := range strings.Split(strings.TrimSpace(text), "\n")[1:] {
			if prefix := kept[0][i] + "," + kept[1][i] + ","; !strings.HasPrefix(line, prefix) {
				t.Fatalf("%s: row %d is %s…, want %s", file, i+1, prefix, line)
			}
		}
	}
	for name, arrays := range map[string][]string{"p.npy": nil, "p.npz": {"prediction"}} {
		table, err := dataset.File{Path: filepath.Join(folder, name), Arrays: arrays}.Read()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := table.Numbers(table.Names()[0]); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s differs, %v", name, err)
		}
	}
	// numpy 1.26 writes these headers for numpy.array(["00000"]*1500) and int64.
	files, err := zip.OpenReader(filepath.Join(folder, "p.npz"))
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	for name, head := range map[string]string{"key.npy": "{'descr': '<U5', 'fortran_order': False, 'shape': (1500,), }", "n.npy": "{'descr': '<i8', 'fortran_order': False, 'shape': (1500,), }"} {
		f, err := files.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err != nil || len(data)%64 != 1500*map[string]int{"key.npy": 20, "n.npy": 8}[name]%64 || !strings.HasPrefix(string(data[10:]), head) {
			t.Errorf("%s: %v: %.90q", name, err, data)
		}
	}
}

// TestNumbersOfKeptColumns checks that a cell becomes a number in JSON and NPY only if this preserves its digits.
func TestNumbersOfKeptColumns(t *testing.T) {
	for _, c := range []struct {
		cells   []string
		literal bool
		float   []float64 // nil if the conversion must fail
	}{
		{[]string{"1", "-2.5e3", ""}, true, []float64{1, -2500, math.NaN()}},
		{[]string{"007"}, false, nil},
		{[]string{"+1"}, false, nil},
		{[]string{"1.", ".5"}, false, nil},
		{[]string{"NaN"}, false, nil},
		{[]string{"0x1p3"}, false, nil},
		{[]string{"9007199254740992"}, true, []float64{1 << 53}},
		{[]string{"9007199254740993"}, true, nil},
		{[]string{"-9223372036854775808"}, true, []float64{-1 << 63}},
		{[]string{"9223372036854775807"}, true, nil},
		{[]string{"18446744073709551615"}, true, nil},
		{[]string{"1e999"}, true, nil},
	} {
		column := predictedColumn{name: "c", text: func(i int) string { return c.cells[i] }, kept: true}
		if got := column.allJSONNumbers(len(c.cells)); got != c.literal {
			t.Errorf("%q: literal %v", c.cells, got)
		}
		got, err := column.float(len(c.cells))
		if equal := slices.EqualFunc(got, c.float, func(a, b float64) bool { return a == b || a != a && b != b }); (err == nil) != (c.float != nil) || !equal {
			t.Errorf("%q: %v, %v, want %v", c.cells, got, err, c.float)
		}
	}
}

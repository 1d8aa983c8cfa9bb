package dataset_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mercer-go/mercer/dataset"
)

// arrowFiles lists files and streams with the same 300 rows, written by four programs; see testdata/README.md.
func arrowFiles() (paths []string) {
	for _, name := range []string{"go-lz4.arrow", "go-none.arrow", "go-zstd.arrows", "js.arrow", "js.arrows", "rust.arrows", "polars-lz4.arrow", "polars-zstd.arrow"} {
		paths = append(paths, "testdata/arrow/"+name)
	}
	return paths
}

// TestArrow checks that every file, and every file from a pipe, gives the table from which it was written.
func TestArrow(t *testing.T) {
	for _, path := range arrowFiles() {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []dataset.File{{Path: path}, {Path: "-", Stdin: bytes.NewReader(data)}, {Path: "-", Stdin: bytes.NewReader(gzipped(t, string(data)))}} {
			table, err := f.Read()
			if strings.HasSuffix(path, "js.arrow") && f.Path == "-" {
				wantError(t, err, "standard input: has its schema at its end: it can be read only from an uncompressed file, not from a pipe")
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			checkRows(t, path, table)
		}
	}
}

// TestArrowStream checks that reading a file in passes gives the same table as reading it at once.
func TestArrowStream(t *testing.T) {
	for _, path := range arrowFiles() {
		checkStream(t, dataset.File{Path: path}, dataset.Rules{Targets: []string{"u8"}, Standardize: true}, 77)
		checkStream(t, dataset.File{Path: path}, dataset.Rules{Targets: []string{"bool"}, Labels: true}, 1000)
	}
}

// TestArrowKinds checks each type of column, and columns that cannot be read.
func TestArrowKinds(t *testing.T) {
	const path = "testdata/arrow/go-kinds.arrow"
	table, err := dataset.Read(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]float64{
		"half": {-0.5, 0.5, 1.5}, "i8": {-1, 0, 1}, "u64": {math.MaxUint64, math.MaxUint64, math.MaxUint64},
		"price": {123.45, math.NaN(), -123.45}, "wide": {0, -2.5, -5}, "none": {math.NaN(), math.NaN(), math.NaN()}, "code": {0, 0.25, math.NaN()}, "last": {0, 100, 200},
	} {
		got, err := table.Numbers(name)
		if diff := cmp.Diff(want, got, cmpopts.EquateNaNs()); diff != "" || err != nil {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	for name, want := range map[string][]string{
		"date": {"2024-10-04", "", "2024-10-06"}, "date64": {"1969-12-31", "1970-01-01", "1970-01-02"}, "at": {"2023-11-14 22:13:20+00:00", "2023-11-14 22:13:21+00:00", "2023-11-14 22:13:22+00:00"},
		"clock": {"00:00:00.000005", "01:00:00.000005", "02:00:00.000005"}, "view": {"short", "", "longer than twelve bytes"},
	} {
		if got, err := table.Texts(name); err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if got, err := table.Cells("u64"); err != nil || !slices.Equal(got, []string{"18446744073709551615", "18446744073709551614", "18446744073709551613"}) {
		t.Errorf("u64: %q, %v", got, err)
	}
	for name, rule := range map[string]string{"nested": "is nested; only flat columns can be read", "list": "is nested; only flat columns can be read", "raw": "holds byte arrays that are neither texts nor numbers; write them as numbers"} {
		_, err := table.Numbers(name)
		wantError(t, err, path+`: column "`+name+`": `+rule+", or drop the column")
	}
	if table, err = dataset.Read("testdata/arrow/go-delta.arrows", nil); err != nil {
		t.Fatal(err)
	}
	if got, err := table.Texts("text"); err != nil || !slices.Equal(got, []string{"t0", "t0", "", "t1", "t0", "", "t2", "t0", "", "t3", "t0", ""}) {
		t.Errorf("a dictionary that grows: %q, %v", got, err)
	}
}

// TestWriteArrow checks that a written file, also one without rows, is read back, as a table and in passes.
func TestWriteArrow(t *testing.T) {
	const rows = 1<<17 + 3 // two batches
	names := []string{"x", "id", "text", "π"}
	x, id, texts, y := make([]float64, rows), make([]int64, rows), make([]string, rows), make([]float64, rows)
	for i := range x {
		x[i], id[i], texts[i], y[i] = float64(i)/3, math.MaxInt64-int64(i), []string{"", "a", "bc"}[i%3], -float64(i)
	}
	x[5] = math.NaN()
	path := filepath.Join(t.TempDir(), "t.arrow")
	for _, n := range []int{0, 1, rows, 1000} {
		var b bytes.Buffer
		if err := dataset.WriteArrow(&b, names, []any{x[:n], id[:n], texts[:n], y[:n]}); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		table, err := dataset.Read(path, nil)
		if err != nil || table.Rows() != n || !slices.Equal(table.Names(), names) {
			t.Fatalf("%v, %v", table, err)
		}
		if got, err := table.Numbers("x"); err != nil || !cmp.Equal(got, x[:n], cmpopts.EquateNaNs(), cmpopts.EquateEmpty()) {
			t.Errorf("%d rows: x is %.100v, %v", n, got, err)
		}
		if got, err := table.Cells("id"); err != nil || n > 2 && got[2] != "9223372036854775805" {
			t.Errorf("%d rows: id is %.100v, %v", n, got, err)
		}
		if got, err := table.Texts("text"); err != nil || !slices.Equal(got, texts[:n]) {
			t.Errorf("%d rows: text is %.100q, %v", n, got, err)
		}
	}
	checkStream(t, dataset.File{Path: path}, dataset.Rules{Targets: []string{"π"}, Drop: []string{"id"}}, 1000)
	for _, c := range []struct {
		column any
		want   string
	}{{[]int{1}, `dataset: arrow: column "id": a []int cannot be written`}, {[]int64{1, 2}, `dataset: arrow: column "id" has 2 rows, and the columns before it have 1`}} {
		var b bytes.Buffer
		if err := dataset.WriteArrow(&b, names[:2], []any{x[:1], c.column}); err == nil || err.Error() != c.want || b.Len() > 0 {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestArrowDamage checks that a file with a changed byte gives an error or another table, but never
// a panic. A truncated file must give an error.
func TestArrowDamage(t *testing.T) {
	paths, err := filepath.Glob("testdata/arrow/*")
	if err != nil || len(paths) < 13 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		step := 37
		if testing.Short() {
			step = 491
		}
		for pos := 0; pos < len(data); pos += step {
			for _, flip := range []byte{0xff, 0x01, 0x80} {
				damaged := slices.Clone(data)
				damaged[pos] ^= flip
				if _, err := dataset.Read("-", bytes.NewReader(damaged)); err != nil {
					oneLine(t, err)
				}
			}
			if table, err := dataset.Read("-", bytes.NewReader(data[:pos])); err == nil && pos > 4 && strings.HasSuffix(path, ".arrow") {
				t.Fatalf("%s is read when cut at %d: %v", path, pos, table.Names())
			}
		}
	}
}

// TestArrowRefuses checks the error messages for files that cannot be read.
func TestArrowRefuses(t *testing.T) {
	file, err := os.ReadFile("testdata/arrow/go-none.arrow")
	if err != nil {
		t.Fatal(err)
	}
	stream, err := os.ReadFile("testdata/arrow/js.arrows")
	if err != nil {
		t.Fatal(err)
	}
	overlong := slices.Clone(stream)
	binary.LittleEndian.PutUint32(overlong[4:], 1<<27)
	for _, c := range []struct {
		data []byte
		want string
	}{
		{stream[:100], "standard input: is not a complete Arrow file or stream: the message after batch 0, which claims "},
		{stream[:8], "standard input: is not a complete Arrow file or stream: "},
		{overlong, "standard input: is not a complete Arrow file or stream: the message after batch 0, which claims 134217728 bytes although only "},
		{slices.Concat(stream, stream), "standard input: has more bytes after the end of its stream: only one stream can be read"},
		{file[:len(file)-1], "standard input: is not a complete Arrow file or stream: its footer cannot be read"},
		{[]byte("FEA1\x00\x00\x00\x00"), "standard input: is a Feather file of version 1, which is not supported; write it as version 2, which is an Arrow file"},
	} {
		_, err := dataset.Read("-", bytes.NewReader(c.data))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
	if _, err := (dataset.File{Path: "testdata/arrow/go-none.arrow", Memory: 1 << 10}).Read(); err == nil || !strings.Contains(err.Error(), "takes more than its limit of 0.0 MiB of memory") {
		t.Error(err)
	}
}

// FuzzArrow reads arbitrary bytes as an Arrow file or stream.
func FuzzArrow(f *testing.F) {
	paths, err := filepath.Glob("testdata/arrow/*-*")
	if err != nil || len(paths) < 5 {
		f.Fatal(paths, err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		if len(data) < 5000 {
			f.Add(data)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, prefix := range []string{"ARROW1\x00\x00", "\xff\xff\xff\xff"} {
			table, err := dataset.File{Path: "-", Stdin: strings.NewReader(prefix + string(data[min(len(prefix), len(data)):])), Memory: fuzzMemory}.Read()
			if err != nil {
				oneLine(t, err)
				continue
			}
			for _, name := range table.Names() {
				_, _ = table.Texts(name)
			}
		}
	})
}

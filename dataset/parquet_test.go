package dataset_test

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mercer-go/mercer/dataset"
)

// parquetFiles lists files with the same 300 rows, which three programs wrote in all versions of pages, encodings
// and codecs; see testdata/README.md.
func parquetFiles(t testing.TB) []string {
	t.Helper()
	paths, err := filepath.Glob("testdata/parquet/[ag]*-v*.parquet")
	if err != nil || len(paths) < 9 {
		t.Fatalf("%d files, %v", len(paths), err)
	}
	return append(paths, "testdata/parquet/arrow-brotli.parquet", "testdata/parquet/hyparquet.parquet")
}

// checkRows checks that a table has the 300 rows that testdata/README.md describes.
func checkRows(t *testing.T, path string, table *dataset.Table) {
	t.Helper()
	const n = 300
	want := map[string][]float64{}
	var texts, unique []string
	for i := range n {
		add := func(name string, missing bool, v float64) {
			if missing {
				v = math.NaN()
			}
			want[name] = append(want[name], v)
		}
		add("i32", i%7 == 3, float64(i*37%101-50))
		add("f64", i%11 == 5, float64(i)/8-3)
		add("f32", false, float64(i)*0.5)
		add("bool", false, float64((i+1)%2))
		add("u8", false, float64(i%256))
		add("i64", false, float64(i)*1e10)
		add("u32", false, float64(4294967295-i))
		texts = append(texts, []string{"ant", "bee", "çat"}[i%3])
		if i%13 == 6 {
			texts[i] = ""
		}
		unique = append(unique, strconv.Itoa(10000+i))
	}
	if table.Rows() != n || len(table.Names()) != len(want)+2 {
		t.Errorf("%s: %d rows of %q", path, table.Rows(), table.Names())
	}
	for name, values := range want {
		got, err := table.Numbers(name)
		if err != nil {
			t.Error(path, err)
		}
		if diff := cmp.Diff(values, got, cmpopts.EquateNaNs()); diff != "" {
			t.Errorf("%s: %s:\n%.500s", path, name, diff)
		}
	}
	for name, values := range map[string][]string{"text": texts, "unique": unique} {
		if got, err := table.Texts(name); err != nil || !slices.Equal(got, values) {
			t.Errorf("%s: %s is %.60q, %v", path, name, got, err)
		}
	}
}

// TestParquet checks that every file gives the table from which it was written.
func TestParquet(t *testing.T) {
	for _, path := range parquetFiles(t) {
		table, err := dataset.Read(path, nil)
		if err != nil {
			t.Error(err)
			continue
		}
		checkRows(t, path, table)
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		fromInput, err := dataset.Read("-", strings.NewReader(string(data)))
		if err != nil || fromInput.Rows() != 300 {
			t.Error(path, err)
		}
	}
}

// TestParquetKinds checks files with decimals of up to 38 digits, without rows, and with lists.
func TestParquetKinds(t *testing.T) {
	table, err := dataset.Read("testdata/parquet/go-decimal.parquet", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string][]float64{"price": {123.45, -0.01}, "small": {5.5, -0.7}}, cells(t, table)); diff != "" {
		t.Error(diff)
	}
	// The reader must round each value only once, as the compiler rounds the constants below.
	if table, err = dataset.Read("testdata/parquet/go-decimal38.parquet", nil); err != nil {
		t.Fatal(err)
	}
	wide := map[string][]float64{
		"wide":  {1234567890123456789.0123456789, -9999999999999999999999999999.9999999999, math.NaN()},
		"dict":  {0.99999999999999999999999999999999999999, -1e-38, 0},
		"bytes": {123.45, -0.01, 1234567890123456789012345678.90},
		"delta": {-123.45, 0, 0.01},
		"long":  {90071992547409.9313, -90071992547409.9313, 0.0007},
	}
	if diff := cmp.Diff(wide, cells(t, table), cmpopts.EquateNaNs()); diff != "" {
		t.Error(diff)
	}
	if table, err = dataset.Read("testdata/parquet/go-empty.parquet", nil); err != nil || table.Rows() != 0 || len(table.Names()) != 2 {
		t.Error(table, err)
	}
	if table, err = dataset.Read("testdata/parquet/go-list.parquet", nil); err != nil {
		t.Fatal(err)
	}
	_, err = table.Numbers("list")
	wantError(t, err, `testdata/parquet/go-list.parquet: column "list": holds lists; only flat columns can be read, or drop the column`)
}

// TestParquetStream checks that reading a file in passes gives the same table as reading it at once.
func TestParquetStream(t *testing.T) {
	for _, path := range parquetFiles(t) {
		checkStream(t, dataset.File{Path: path}, dataset.Rules{Targets: []string{"u8"}, Standardize: true}, 77)
		checkStream(t, dataset.File{Path: path}, dataset.Rules{Targets: []string{"bool"}, Labels: true}, 1000)
	}
}

// TestParquetDamage checks that a file with one changed byte gives an error or another table, but never a panic.
func TestParquetDamage(t *testing.T) {
	for _, path := range parquetFiles(t) {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		step := 211
		if testing.Short() {
			step = 997
		}
		for pos := 0; pos < len(data); pos += step {
			for _, flip := range []byte{0xff, 0x01, 0x80} {
				damaged := slices.Clone(data)
				damaged[pos] ^= flip
				if _, err := dataset.Read("-", strings.NewReader(string(damaged))); err != nil {
					oneLine(t, err)
				}
			}
			if _, err := dataset.Read("-", strings.NewReader(string(data[:pos]))); err == nil && pos > 4 {
				t.Fatalf("%s is read when cut at %d", path, pos)
			}
		}
	}
	valid, err := os.ReadFile("testdata/parquet/arrow-none-v1.parquet")
	if err != nil {
		t.Fatal(err)
	}
	end := len(valid)
	overlong := slices.Clone(valid)
	binary.LittleEndian.PutUint32(overlong[end-8:], 1<<31)
	for _, c := range []struct {
		data []byte
		want string
	}{
		{valid[:end-1], ": byte "},
		{[]byte("PAR1PAR1"), ": is truncated: 8 bytes are too short for a Parquet file"},
		{overlong, "claims a footer of 2147483648 bytes, but is only"},
	} {
		_, err := dataset.Read("-", strings.NewReader(string(c.data)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}

// fuzzMemory limits the memory of a table in a fuzz test, because a few bytes can represent millions of rows.
const fuzzMemory = 1 << 18

// FuzzParquet reads arbitrary bytes as a Parquet file. Run it with -fuzzminimizetime 100x, as make fuzz-smoke does.
func FuzzParquet(f *testing.F) {
	paths, err := filepath.Glob("testdata/parquet/small-*") // with large tables, each execution would be slow
	if err != nil || len(paths) < 5 {
		f.Fatalf("%d files, %v", len(paths), err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		table, err := dataset.File{Path: "-", Stdin: strings.NewReader("PAR1" + string(data[min(4, len(data)):])), Memory: fuzzMemory}.Read()
		if err != nil {
			oneLine(t, err)
			return
		}
		for _, name := range table.Names() {
			if values, err := table.Texts(name); err != nil || len(values) != table.Rows() {
				t.Fatalf("%d cells of %d rows, %v", len(values), table.Rows(), err)
			}
		}
	})
}

package dataset_test

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/dataset"
)

// A tableReader generates a table of distinct numbers while it is read. peak is the largest size of the heap,
// including garbage.
type tableReader struct {
	rows, cols int
	row        int
	buf        []byte
	peak       uint64
}

func (r *tableReader) Read(p []byte) (int, error) {
	if len(r.buf) == 0 {
		if r.row%256 == 0 {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			r.peak = max(r.peak, m.HeapAlloc)
		}
		if r.row > r.rows {
			return 0, io.EOF
		}
		r.buf = r.buf[:0]
		for j := range r.cols {
			if j > 0 {
				r.buf = append(r.buf, ',')
			}
			if r.row == 0 {
				r.buf = append(r.buf, 'c')
			}
			r.buf = strconv.AppendInt(r.buf, int64(r.row*r.cols+j), 10)
		}
		r.buf = append(r.buf, '\n')
		r.row++
	}
	n := copy(p, r.buf)
	r.buf = r.buf[n:]
	return n, nil
}

// TestReadMemory checks that a table takes little more memory than a matrix of its numbers, and that reading it takes
// at most three times as much as the matrix.
func TestReadMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads two million cells: skipped by -short")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // the bound of the heap below assumes this percentage
	in := &tableReader{rows: 40_000, cols: 50}
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	heapBefore := heap()
	table, err := dataset.ReadCSV("-", in)
	if err != nil {
		t.Fatal(err)
	}
	heapGrowth := heap() - heapBefore
	runtime.KeepAlive(table)
	matrix := float64(8 * in.rows * in.cols)
	peak := float64(in.peak) - heapBefore
	t.Logf("the matrix takes %.0f bytes, the table %.2f times as much, reading it %.2f times", matrix, heapGrowth/matrix, peak/matrix)
	// append may grow a list by the factor 1.25, and a line number takes half as much memory as a cell. 1 MiB is
	// for the runtime and the test.
	if bound := matrix*(1.25+0.5/float64(in.cols)) + 1<<20; heapGrowth > bound {
		t.Errorf("the table takes %.0f bytes, allowed %.0f", heapGrowth, bound)
	}
	// The heap grows to twice the live memory of the last collection, or to 4 MiB.
	if bound := 3*matrix + 4<<20; peak > bound {
		t.Errorf("reading takes %.0f bytes, allowed %.0f", peak, bound)
	}
}

// TestRefusedTablesStayBelowTheLimit checks that Read of a table of unknown size returns an error before its lists,
// their old arrays and the decoded parts exceed the limit.
func TestRefusedTablesStayBelowTheLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("reads four million cells: skipped by -short")
	}
	const percent = 5
	defer debug.SetGCPercent(debug.SetGCPercent(percent))
	for _, limit := range []int64{48 << 20, 67 << 20} {
		for _, cols := range []int{1, 3} {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			in := &tableReader{rows: 1 << 40, cols: cols}
			_, err := dataset.File{Path: "-", Stdin: in, Memory: limit}.Read()
			if err == nil || !strings.Contains(err.Error(), "takes more than its limit") {
				t.Errorf("got %v", err)
			}
			peak := int64(in.peak - m.HeapAlloc)
			t.Logf("%d columns: %.2f of the limit, after %d rows", cols, float64(peak)/float64(limit), in.row)
			// The collector runs when the heap has grown by 5 % and is larger than 4 MiB.
			if bound := limit + limit*percent/100 + 4<<20; peak > bound {
				t.Errorf("reading takes %d bytes, allowed %d", peak, bound)
			}
			// The old and the new list of a column and the decoded parts may take two thirds of the limit.
			if table := int64(in.row) * int64(8*cols+4); 3*table < limit {
				t.Errorf("refused at a table of %d bytes", table)
			}
		}
	}
}

// An endless reader repeats a text.
type endless struct {
	text   string
	offset int
}

func (r *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		k := copy(p[n:], r.text[r.offset:])
		n += k
		r.offset = (r.offset + k) % len(r.text)
	}
	return n, nil
}

// TestReadingObeysMemory checks that Read returns an error for a table that exceeds the limit of memory, and that it
// allocates memory proportional to the limit.
func TestReadingObeysMemory(t *testing.T) {
	const limit = 4 << 20
	if _, err := dataset.Read("testdata/parquet/go-constant.parquet", nil); err != nil { // without a limit, the file is valid
		t.Fatal(err)
	}
	constant, err := os.ReadFile("testdata/parquet/go-constant.parquet") // this file has 2²⁰ equal rows
	if err != nil {
		t.Fatal(err)
	}
	zeros := strings.Repeat("\x00", 16<<20)
	array := npyOf[byte]("<f8", "False", "2097152,")
	array = append(array, zeros...)
	tooLarge := "takes more than its limit of 4.0 MiB of memory: use fewer rows or columns, or allow more memory"
	for _, c := range []struct {
		name string
		in   io.Reader
		want string
	}{
		{"zeros", &endless{text: "\x00"}, "the line is longer than"},
		{"line", &endless{text: "1,"}, "the line is longer than"},
		{"sparse line", io.MultiReader(strings.NewReader("1 1:1\n"), &endless{text: "1 "}), "the line is longer than"},
		{"cell", io.MultiReader(strings.NewReader("a,b\n1,"), &endless{text: "x"}), ":2: the line is longer than"},
		{"quoted", io.MultiReader(strings.NewReader("a,b\n1,\""), &endless{text: "x\n"}), ":2: the line is longer than"},
		{"numbers", io.MultiReader(strings.NewReader("a,b\n"), &endless{text: "1,2\n"}), tooLarge},
		{"many numbers", &tableReader{rows: 1 << 40, cols: 3}, tooLarge},
		{"sparse", &endless{text: "1 1:1 2:3\n"}, tooLarge},
		{"gzip cell", bytes.NewReader(gzipped(t, "a,b\n1,"+zeros)), ":2: the line is longer than"},
		{"npz", bytes.NewReader(npz(t, zip.Deflate, "X.npy", array)), tooLarge},
		{"npy.gz", bytes.NewReader(gzipped(t, string(array))), tooLarge},
		{"npy claims", bytes.NewReader(npyOf[byte]("<f8", "False", "2000000000, 1000")), tooLarge},
		{"npz rows", bytes.NewReader(npz(t, zip.Deflate, "X.npy", array, "y.npy", npyOf("<f8", "False", "2,", 1.0, 2))), `array "X" has 2097152 rows, array "y" has 2`},
		{"zip", io.MultiReader(strings.NewReader("PK\x03\x04"), &endless{text: "x"}), tooLarge},
		{"parquet", bytes.NewReader(constant), tooLarge},
		{"parquet without end", io.MultiReader(strings.NewReader("PAR1"), &endless{text: "x"}), tooLarge},
		{"idx", io.MultiReader(bytes.NewReader(idx(8, nil, 1<<31-1, 1<<10)), &endless{text: "x"}), tooLarge},
	} {
		t.Run(c.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := dataset.File{Path: "-", Stdin: c.in, Memory: limit}.Read()
			runtime.ReadMemStats(&after)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
			oneLine(t, err)
			// A buffer that doubles allocates at most twice its final size in total, and a slice that grows by a
			// quarter at most five times its final size. A block of 1 MiB of text has at most 2¹⁷ numbers of 8 bytes.
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%.1f MiB allocated", float64(allocated)/(1<<20))
			if allocated > (2+5+1)*limit+8<<20 {
				t.Errorf("%d bytes are allocated for a limit of %d", allocated, limit)
			}
		})
	}
	// With a larger limit, Read returns the table.
	if table, err := (dataset.File{Path: "testdata/parquet/go-constant.parquet", Memory: 64 << 20}).Read(); err != nil || table.Rows() != 1<<20 {
		t.Error(table, err)
	}
	// If a file is read in passes, its total size may exceed the limit.
	path := file(t, "a.npy", array)
	s, err := dataset.File{Path: path, Memory: 8 << 20}.Open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Learn(t.Context(), dataset.Rules{}); err != nil || s.Rows() != 1<<21 {
		t.Error(s.Rows(), err)
	}
}

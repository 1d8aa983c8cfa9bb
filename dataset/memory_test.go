package dataset_test

import (
	"io"
	"runtime"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/mercer-go/mercer/dataset"
)

// A tableReader writes a table of numbers, all different, as it is read, and
// notes the largest heap it sees meanwhile, garbage included.
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

// A table of numbers takes little more than its matrix, and reading it no more
// than three times as much.
func TestReadMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("reads two million cells: skipped by -short")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // what the bound below is for
	in := &tableReader{rows: 40_000, cols: 50}
	heap := func() float64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	table, err := dataset.ReadCSV("-", in)
	if err != nil {
		t.Fatal(err)
	}
	live := heap() - before
	runtime.KeepAlive(table)
	matrix := float64(8 * in.rows * in.cols)
	peak := float64(in.peak) - before
	t.Logf("the matrix takes %.0f bytes, the table %.2f times as much, reading it %.2f times", matrix, live/matrix, peak/matrix)
	// 1.25 is append's growth, the line of each row is half a cell, and the
	// rest is the runtime's and the test's own.
	if allowed := matrix*(1.25+0.5/float64(in.cols)) + 1<<20; live > allowed {
		t.Errorf("the table takes %.0f bytes, allowed %.0f", live, allowed)
	}
	// The collector lets the heap grow to twice what was live when it last
	// ran, and it does not run at all below 4 MiB.
	if allowed := 3*matrix + 4<<20; peak > allowed {
		t.Errorf("reading takes %.0f bytes, allowed %.0f", peak, allowed)
	}
}

package dataset_test

import (
	"archive/zip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/dataset"
)

// TestLargeArraysAreReadOnAllProcessors checks that arrays of several MiB are read as they were written, from files
// and from zip files. A changed bit, and bytes after the numbers, must give an error.
func TestLargeArraysAreReadOnAllProcessors(t *testing.T) {
	const rows = 200_000
	values := make([]float64, 2*rows)
	for i := range values {
		values[i] = float64(i) + 0.5
	}
	x := npyOf("<f8", "False", "200000, 2", values...)
	archive := npz(t, zip.Store, "x.npy", x)
	for name, data := range map[string][]byte{"x.npy": x, "stored.npz": archive, "deflated.npz": npz(t, zip.Deflate, "x.npy", x)} {
		table, err := dataset.Read(file(t, name, data), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := cells(t, table)
		for i := range rows {
			if got["x1"][i] != values[2*i] || got["x2"][i] != values[2*i+1] {
				t.Fatalf("%s: row %d is %v, %v, want %v, %v", name, i, got["x1"][i], got["x2"][i], values[2*i], values[2*i+1])
			}
		}
		e, matrix, _ := stream(t, dataset.File{Path: file(t, name, data), Memory: 0}, dataset.Rules{}, 70_000)
		if n, d := matrix.Dims(); e.Width() != 2 || n != rows || d != 2 || matrix.At(rows-1, 1) != values[2*rows-1] {
			t.Errorf("%s: the stream has %d × %d numbers", name, n, d)
		}
	}

	begin := strings.Index(string(archive), "\x93NUMPY")
	for _, offset := range []int{begin + 30, begin + 200, begin + 1<<20 + 7, begin + len(x) - 1} { // offset begin + 30 is in the header
		damaged := slices.Clone(archive)
		damaged[offset] ^= 1
		if _, err := dataset.Read(file(t, "damaged.npz", damaged), nil); err == nil {
			t.Errorf("a changed bit at byte %d of %d is not an error", offset, len(archive))
		} else if offset > begin+200 && !strings.Contains(err.Error(), "the zip data is damaged: checksum error") {
			t.Errorf("a changed bit at byte %d: %v", offset, err)
		}
	}
	for name, data := range map[string][]byte{"long.npy": append(slices.Clone(x), 0), "long.npz": npz(t, zip.Store, "x.npy", append(slices.Clone(x), 0))} {
		if _, err := dataset.Read(file(t, name, data), nil); err == nil || !strings.Contains(err.Error(), "has more bytes than its header describes") {
			t.Errorf("%s: %v", name, err)
		}
	}
	shortFile := file(t, "short.npy", x)
	if err := os.Truncate(shortFile, int64(len(x)-8)); err != nil {
		t.Fatal(err)
	}
	if _, err := dataset.Read(shortFile, nil); err == nil || !strings.Contains(err.Error(), "is truncated") {
		t.Errorf("a truncated file: %v", err)
	}
}

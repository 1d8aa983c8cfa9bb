package dataset_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/mercer-go/mercer/dataset"
)

// TestWriteNPYWritesWhatNumpySaves compares the SHA-256 of the files with those of numpy.save of numpy 1.24.2 for
// the same arrays. It also reads the files back.
func TestWriteNPYWritesWhatNumpySaves(t *testing.T) {
	for _, c := range []struct {
		data  any
		shape []int
		want  string
	}{
		{[]float64{1.5, -2, 0, 3, 4, 1e300}, []int{2, 3}, "7129248e0f067e7154456cab872f0a4a88f46f17640702f767678b333c51370e"},
		{[]int64{7, -9007199254740993}, []int{2}, "e0b65ac30003daa95af67b53fb3c26a9628edf4384398215f8e78211b208efee"},
		{[]string{"é", "", "fox"}, []int{3}, "f1368664b0f66de69d75cf3606c7f323ab9d5a31fb78d8aba6350749635ed6c4"},
	} {
		var b bytes.Buffer
		if err := dataset.WriteNPY(&b, c.data, c.shape...); err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(b.Bytes()); hex.EncodeToString(sum[:]) != c.want {
			t.Errorf("%v: other bytes than those of numpy: %q", c.data, b.Bytes())
		}
		path := filepath.Join(t.TempDir(), "a.npy")
		if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		read, err := dataset.Read(path, nil)
		if err != nil {
			t.Fatal(err)
		}
		cols := 1
		if len(c.shape) == 2 {
			cols = c.shape[1]
		}
		if read.Rows() != c.shape[0] || len(read.Names()) != cols {
			t.Errorf("%v: read as %d × %d", c.data, read.Rows(), len(read.Names()))
		}
		if values, ok := c.data.([]float64); ok {
			for j, name := range read.Names() {
				column, err := read.Numbers(name)
				if err != nil {
					t.Fatal(err)
				}
				for i, v := range column {
					if v != values[i*cols+j] {
						t.Errorf("row %d, column %d: %v, want %v", i+1, j+1, v, values[i*cols+j])
					}
				}
			}
		}
	}
	if err := dataset.WriteNPY(new(bytes.Buffer), []bool{true}, 1); err == nil {
		t.Error("an array of bool is not refused")
	}
}

package dataset_test

import (
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
)

// numbersCSV returns a CSV file of normally distributed numbers, formatted with the given fmt verb.
func numbersCSV(rows, cols int, verb string) []byte {
	rng := rand.New(rand.NewPCG(1, 0))
	var b bytes.Buffer
	for j := range cols {
		fmt.Fprintf(&b, "x%d,", j+1)
	}
	b.WriteString("y\n")
	for range rows {
		for range cols {
			fmt.Fprintf(&b, verb+",", rng.NormFloat64())
		}
		fmt.Fprintf(&b, "%d\n", rng.IntN(100))
	}
	return b.Bytes()
}

// sparseLIBSVM returns a LIBSVM file in which a tenth of the numbers are not 0.
func sparseLIBSVM(rows, cols int) []byte {
	rng := rand.New(rand.NewPCG(2, 0))
	var b bytes.Buffer
	for range rows {
		fmt.Fprintf(&b, "%d", rng.IntN(100))
		for j := range cols {
			if rng.IntN(10) == 0 {
				fmt.Fprintf(&b, " %d:%.4g", j+1, rng.NormFloat64())
			}
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

// BenchmarkStream times a pass over files of 20,000 rows, on one processor and on all processors.
func BenchmarkStream(b *testing.B) {
	short, long := numbersCSV(20_000, 50, "%.6g"), numbersCSV(20_000, 50, "%v")
	values := make([]float64, 20_000*50)
	for i := range values {
		values[i] = float64(i)
	}
	for _, f := range []struct {
		name string
		data []byte
	}{
		{"6digits.csv", short},
		{"17digits.csv", long},
		{"tenth.libsvm", sparseLIBSVM(20_000, 500)},
		{"f8.npy", npyOf("<f8", "False", "20000, 50", values...)},
	} {
		path := file(b, f.name, f.data)
		for _, procs := range []int{1, runtime.NumCPU()} {
			s, err := dataset.Open(path)
			if err != nil {
				b.Fatal(err)
			}
			e, err := s.Learn(b.Context(), dataset.Rules{})
			if err != nil {
				b.Fatal(err)
			}
			run := func(name string, work func() error) {
				b.Run(fmt.Sprintf("%s/%s/procs=%d", f.name, name, procs), func(b *testing.B) {
					defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(procs))
					b.SetBytes(int64(len(f.data)))
					for b.Loop() {
						if err := work(); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
			run("blocks", func() error {
				return s.Blocks(b.Context(), e, 1000, func(x, y *mat.Dense) error { return nil })
			})
			run("learn", func() error {
				_, err := s.Learn(b.Context(), dataset.Rules{})
				return err
			})
			run("read", func() error {
				_, err := dataset.Read(path, nil)
				return err
			})
		}
	}
}

// BenchmarkStreamFlights times a pass over a compressed file of 327,346 rows.
func BenchmarkStreamFlights(b *testing.B) {
	path := shared(b, "nycflights13.csv.gz")
	s, err := dataset.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	e, err := s.Learn(b.Context(), dataset.Rules{Targets: []string{"target"}})
	if err != nil {
		b.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		b.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		b.Fatal(err)
	}
	unpacked, err := dataset.Open(file(b, "flights.csv", data))
	if err != nil {
		b.Fatal(err)
	}
	for name, s := range map[string]*dataset.Stream{"gz": s, "csv": unpacked} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if err := s.Blocks(b.Context(), e, 1000, func(x, y *mat.Dense) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkLIBSVM reads a file of 5,000 rows, each with 120 nonzero values in 50,000 features.
func BenchmarkLIBSVM(b *testing.B) {
	rng := rand.New(rand.NewPCG(4, 0))
	var text bytes.Buffer
	for range 5_000 {
		fmt.Fprintf(&text, "%d", rng.IntN(5))
		for j := range 120 {
			fmt.Fprintf(&text, " %d:%.6g", 1+j*416+rng.IntN(416), rng.Float64())
		}
		text.WriteByte('\n')
	}
	path := file(b, "a.libsvm", text.Bytes())
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := dataset.Read(path, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkTable times reading a whole table, a CSV or an NPZ file, and computing its features and targets. For
// comparison it times encoding/csv with strconv.ParseFloat, and reading the NPZ file only.
func BenchmarkTable(b *testing.B) {
	folder := b.TempDir()
	write := func(name string, data []byte) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			b.Fatal(err)
		}
		return path
	}
	file := func(b *testing.B, path string) {
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(info.Size())
	}
	table := func(b *testing.B, path string) {
		file(b, path)
		for b.Loop() {
			t, err := dataset.Read(path, nil)
			if err != nil {
				b.Fatal(err)
			}
			e, err := dataset.Learn(t, dataset.Rules{Targets: []string{"y"}})
			if err != nil {
				b.Fatal(err)
			}
			if _, err = e.Features(t); err != nil {
				b.Fatal(err)
			}
			if _, err = e.Targets(t); err != nil {
				b.Fatal(err)
			}
		}
	}
	text := write("short.csv", numbersCSV(100_000, 50, "%.3g"))
	b.Run("csv", func(b *testing.B) { table(b, text) })
	b.Run("csv/encoding", func(b *testing.B) {
		file(b, text)
		for b.Loop() {
			f, err := os.Open(text)
			if err != nil {
				b.Fatal(err)
			}
			r := csv.NewReader(bufio.NewReader(f))
			r.ReuseRecord = true
			sum := 0.0
			for row := 0; ; row++ {
				record, err := r.Read()
				if err == io.EOF {
					break
				}
				if err != nil {
					b.Fatal(err)
				}
				for _, cell := range record {
					if v, err := strconv.ParseFloat(cell, 64); err == nil {
						sum += v
					} else if row > 0 {
						b.Fatal(err)
					}
				}
			}
			f.Close()
		}
	})
	var zipped bytes.Buffer
	z := zip.NewWriter(&zipped)
	for name, columns := range map[string]int{"x": 50, "y": 1} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: zip.Store})
		if err != nil {
			b.Fatal(err)
		}
		values := make([]float64, 200_000*columns)
		for i := range values {
			values[i] = math.Mod(float64(i)*math.Phi, 1)
		}
		if err := dataset.WriteNPY(w, values, 200_000, columns); err != nil {
			b.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		b.Fatal(err)
	}
	arrays := write("stored.npz", zipped.Bytes())
	b.Run("npz/read", func(b *testing.B) {
		file(b, arrays)
		for b.Loop() {
			if _, err := dataset.Read(arrays, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("npz", func(b *testing.B) { table(b, arrays) })
}

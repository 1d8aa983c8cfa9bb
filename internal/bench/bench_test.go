package bench

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mercer-go/mercer/backend"
)

// The benchmarks of this package have names of key=value pairs, for benchstat:
//
//	go test -run '^$' -bench . -count 10 ./internal/bench > old.txt
//	benchstat -col /threads old.txt
//
// They run on the device that MERCER_DEVICE names, or on the best device.

// benchmarks lists the benchmarks that TestBenchmarks runs.
var benchmarks = map[string]func(*testing.B){
	"BenchmarkBLAS":   BenchmarkBLAS,
	"BenchmarkFit":    BenchmarkFit,
	"BenchmarkDevice": BenchmarkDevice,
	"BenchmarkRidge":  BenchmarkRidge,
}

// sizes holds the sizes n of the benchmarks. TestBenchmarks replaces them by small sizes.
var sizes = []int{128, 512, 1024, 2048}

// BenchmarkBLAS measures Mercer's entries of `mercer bench blas`.
func BenchmarkBLAS(b *testing.B) {
	for _, r := range routines {
		for _, threads := range slices.Compact([]int{1, runtime.GOMAXPROCS(0)}) {
			dev, err := backend.Open("", backend.Config{Threads: threads})
			if err != nil {
				b.Fatal(err)
			}
			for _, n := range sizes {
				benchmarkRoutine(b, dev.F64(), r, "float64", threads, n)
				benchmarkRoutine(b, dev.F32(), r, "float32", threads, n)
			}
			dev.Close()
		}
	}
}

func benchmarkRoutine[T backend.Float](b *testing.B, q backend.Backend[T], r routine, precision string, threads, n int) {
	c := Case{{"routine", r.name}, {"precision", precision}, {"threads", fmt.Sprint(threads)}, {"n", fmt.Sprint(n)}}
	b.Run(c.String(), func(b *testing.B) {
		e, err := deviceEntry(q, newProblem[T](r, n))
		if err != nil {
			b.Fatal(err)
		}
		defer e.Close()
		for b.Loop() {
			if r.inPlace {
				b.StopTimer()
			}
			if err := e.Before(); err != nil {
				b.Fatal(err)
			}
			if r.inPlace {
				b.StartTimer()
			}
			if err := e.Run(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(r.flops(n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	})
}

// TestBenchmarks runs every benchmark of the package once, at a tiny size.
func TestBenchmarks(t *testing.T) {
	var written, listed []string
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Benchmark") {
				written = append(written, f.Name.Name)
			}
		}
	}
	for name := range benchmarks {
		listed = append(listed, name)
	}
	slices.Sort(written)
	slices.Sort(listed)
	if d := cmp.Diff(written, listed); d != "" {
		t.Errorf("the list of benchmarks (-written +listed):\n%s", d)
	}

	defer func(previous []int) { sizes = previous }(sizes)
	sizes = []int{5, 16}
	setBenchtime(t)
	for name, f := range benchmarks {
		cases := 0
		r := testing.Benchmark(func(b *testing.B) {
			f(b)
			cases++
			if b.Failed() {
				t.Errorf("%s has failed", name)
			}
		})
		if cases == 0 || r.N == 0 {
			t.Errorf("%s: %d runs", name, r.N)
		}
	}
}

// setBenchtime sets the flag -test.benchtime so that each benchmark of the test runs once.
func setBenchtime(t *testing.T) {
	t.Helper()
	f := flag.Lookup("test.benchtime")
	previous := f.Value.String()
	if err := f.Value.Set("1x"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Value.Set(previous); err != nil {
			t.Error(err)
		}
	})
}

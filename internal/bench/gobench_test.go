package bench

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestReadGoBench(t *testing.T) {
	const text = `goos: linux
goarch: amd64
pkg: example.org/x
cpu: Abacus
BenchmarkMat/operation=Mul/n=100/library=mercer-2   	     100	   2000000 ns/op	  12.3 GFLOP/s
BenchmarkMat/operation=Mul/n=100/library=gonum-2    	      10	   9000000 ns/op
BenchmarkMat/operation=Mul/n=100/library=mercer-2   	     100	   4000000 ns/op
PASS
ok  	example.org/x	1.2s
`
	day := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	r, err := ReadGoBench(strings.NewReader(text), "library", day)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Cells) != 1 || r.Cells[0].Case.String() != "benchmark=Mat/operation=Mul/n=100" || r.Kind != GoKind || !r.Started.Equal(day) {
		t.Fatalf("%+v", r)
	}
	want := Run{Implementation: "mercer", Calls: 100, Timings: []float64{0.002, 0.004}, Time: Summary{Median: 0.003, Min: 0.002, Max: 0.004}}
	if d := cmp.Diff(want, *r.Cells[0].Run("mercer")); d != "" {
		t.Error(d)
	}
	if m := r.Machine; m.Processor != "Abacus" || m.System != "linux/amd64" || m.MaxProcs != 2 {
		t.Errorf("%+v", m)
	}
	if list := r.compare("n"); len(list) != 1 || math.Abs(list[0].ratios[0]-3) > 0x1p-50 {
		t.Errorf("%+v", list)
	}
	for text, want := range map[string]string{
		"PASS\n": "bench: go: the input has no line with a benchmark's result",
		"BenchmarkX/library=a 1 5 ns/op\nBenchmarkX 1 5 ns/op\n": "bench: go: X: there is no library= in the name",
		"BenchmarkX/Mul/library=a 1 5 ns/op\n":                   `bench: go: X/Mul/library=a: "Mul" is not of the form key=value`,
		"BenchmarkX/library=a one 5 ns/op\n":                     "bench: go: line 1: ",
	} {
		if _, err := ReadGoBench(strings.NewReader(text), "library", day); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

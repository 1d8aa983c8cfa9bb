package bench

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
)

// TestDevices runs every operation on every device of the machine and checks the result.
func TestDevices(t *testing.T) {
	d := Benchmark{Kind: DevicesKind, Sizes: []int{33, 70}, Features: 4, Devices: usable()}
	wants := []string{"  fastest\n", "torch", "X ~ N(0, I), d = 4"}
	if testing.Short() {
		d.Peers, wants = []string{}, wants[2:] // save the time of starting a Python process
	}
	r, err := d.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := textOf(t, r)
	t.Log(text)
	if len(r.Cells) != 2*9 {
		t.Fatalf("%d cells, want two sizes of four operations in two precisions, and solve", len(r.Cells))
	}
	for _, c := range r.Cells {
		for _, e := range r.Implementations {
			run := c.Run(e.Name)
			if e.Kind == OwnKind && !run.Timed() {
				t.Errorf("%v: %s: %+v", c.Case, e.Name, run)
			}
			if e.Missing != "" && run != nil && run.Reason != e.Missing {
				t.Errorf("%v: %s: %+v", c.Case, e.Name, run)
			}
			if solve := c.Case.Get("operation") == "solve"; e.Kind == OwnKind && solve != (run.Work == 0) {
				t.Errorf("%v: %s: %.0f operations", c.Case, e.Name, run.Work)
			}
			if fit := c.Case.Get("operation") == "solve"; fit && run.Timed() && !(run.Metrics[residualMetric] <= fitTol) {
				t.Errorf("%v: %s: residual %g", c.Case, e.Name, run.Metrics[residualMetric])
			}
		}
	}
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("the text has no %q", want)
		}
	}
}

// TestOperationWrong checks, for every operation, that a wrong result is detected.
func TestOperationWrong(t *testing.T) {
	dev, newJudge := openJudge(t)
	s := newSynthetic(40, 3, fitLambda)
	for _, operation := range KindOf(DevicesKind).Names[:4] {
		for _, wrong := range []bool{false, true} {
			o := &operand[float64]{q: dev.F64(), judge: newJudge(s), x: s.x, y: s.y}
			if wrong {
				o.x = newSynthetic(41, 3, fitLambda).x.View(1, 0, 40, 3) // the judge has other rows
			}
			e, err := o.entry(operation, ridgeLimit(40, 3, "float64", fitLambda), productLimit[float64](40, 3))
			if err != nil {
				t.Fatal(err)
			}
			if e.Before != nil {
				err = e.Before()
			}
			if err == nil {
				err = e.Run()
			}
			if err != nil {
				t.Fatal(err)
			}
			if c := e.Check(); (c.Difference > c.Limit) != wrong {
				t.Errorf("%s, wrong: %v: difference %.2g, limit %.2g", operation, wrong, c.Difference, c.Limit)
			}
			e.Close()
		}
	}
	if inUse, _ := dev.InUse(); inUse != 0 {
		t.Errorf("%d bytes are still in use", inUse)
	}
}

// TestFastestDevice checks that the table names the fastest device at each n.
func TestFastestDevice(t *testing.T) {
	r := &Result{Kind: DevicesKind, Implementations: []Implementation{
		{Name: "a", Kind: OwnKind, Device: "cpu/a"}, {Name: "g", Kind: OwnKind, Device: "cuda/0"}, {Name: "torch", Kind: PeerKind},
	}}
	for i, times := range [][]float64{{1, 4, 5}, {3, 2, 6}, {9, 4, 3}} {
		c := Cell{Case: Case{{"operation", "fit"}, {"precision", "float64"}, {"n", strconv.Itoa(100 << i)}}}
		for j, v := range times {
			c.Runs = append(c.Runs, Run{Implementation: r.Implementations[j].Name, Timings: []float64{v}})
		}
		c.summarize()
		r.Cells = append(r.Cells, c)
	}
	p, err := r.Report()
	if err != nil {
		t.Fatal(err)
	}
	var fastest []string
	for _, row := range p.Tables[0].Rows {
		fastest = append(fastest, row[len(row)-1].Text)
	}
	if want := []string{"a", "g", "torch"}; !slices.Equal(fastest, want) {
		t.Errorf("got %v, want %v", fastest, want)
	}
	if want := "fit, float64, n = 400: torch is the fastest, 3.00 s."; p.Answer != want {
		t.Errorf("got %q, want %q", p.Answer, want)
	}
}

func TestTimeEstimates(t *testing.T) {
	p := timeEstimates{}
	if got := p.skipReason("a", 1e9, time.Second); got != "" {
		t.Errorf("unknown: %q", got)
	}
	p.record("a", 1e9, 3*time.Second)
	p.record("a", 1e9, time.Second)
	p.record("a", 1e9, 2*time.Second)
	if got := p.skipReason("a", 8e9, 8*time.Second); got != "" {
		t.Errorf("in time: %q", got)
	}
	if got := p.skipReason("a", 8e9, 7*time.Second); got != "would take about 8.00 s, the limit is 7.00 s" {
		t.Errorf("got %q", got)
	}
}

func TestDevicesRefusals(t *testing.T) {
	for _, test := range []struct {
		d    Benchmark
		want string
	}{
		{Benchmark{Kind: DevicesKind, Names: []string{"svd"}}, `operation: "svd" is not known; the choices are: gram, mul`},
		{Benchmark{Kind: DevicesKind, Precisions: []string{"float16"}}, `precision: "float16" is not known`},
		{Benchmark{Kind: DevicesKind, Peers: []string{"jax"}}, `peers: "jax" is not known; the choices are: torch, cupy`},
		{Benchmark{Kind: DevicesKind, Sizes: []int{0}}, "must be ≥ 1, got 0"},
		{Benchmark{Kind: DevicesKind, Devices: []string{"abacus"}}, `no device is called "abacus"`},
	} {
		if _, err := test.d.Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v", test.d, err)
		}
	}
	// An operation whose matrices exceed the device's memory is skipped.
	d := Benchmark{Kind: DevicesKind, Names: []string{"gram", "mul"}, Precisions: []string{"float32"}, Sizes: []int{600}, Features: 2, Devices: []string{"ref"}, Peers: []string{}, Memory: 1 << 20}
	r, err := d.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if run := r.Cells[0].Run("mercer ref"); !strings.Contains(run.Reason, "1.0 MiB may be used") {
		t.Errorf("gram: %+v", run)
	}
	if run := r.Cells[1].Run("mercer ref"); !run.Timed() {
		t.Errorf("mul: %+v", run)
	}
}

// BenchmarkDevice measures the entries of one device in `mercer bench devices`.
func BenchmarkDevice(b *testing.B) {
	dev, err := backend.Open("", backend.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer dev.Close()
	for _, operation := range KindOf(DevicesKind).Names[:4] {
		for _, n := range sizes {
			s := newSynthetic(n, 50, fitLambda)
			operationBenchmark(b, dev.F64(), operation, "float64", s, s.x, s.y)
			operationBenchmark(b, dev.F32(), operation, "float32", s, toFloat32(s.x), toFloat32(s.y))
		}
	}
}

func operationBenchmark[T backend.Float](b *testing.B, q backend.Backend[T], operation, precision string, s *synthetic, x, y backend.Host[T]) {
	n := x.Rows
	c := Case{{"operation", operation}, {"precision", precision}, {"n", strconv.Itoa(n)}}
	b.Run(c.String(), func(b *testing.B) {
		o := &operand[T]{q: q, judge: judge{synthetic: s}, x: x, y: y}
		e, err := o.entry(operation, 0, 0)
		if err != nil {
			b.Fatal(err)
		}
		defer e.Close()
		for b.Loop() {
			if e.Before != nil {
				b.StopTimer()
				if err := e.Before(); err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
			}
			if err := e.Run(); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(operationFlops(operation, n, 50)*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
	})
}

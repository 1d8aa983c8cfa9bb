package bench

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func sample() *Result {
	r := &Result{
		Schema: Schema, Kind: "blas", Started: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC), Seconds: 12,
		Machine: Machine{
			Processor: "Abacus <2>", CPUs: 2, MaxProcs: 2, Devices: []string{"cpu/fast", "cpu/slow"}, Virtual: true,
			System: "linux/amd64", Go: "go1.26", Mercer: "v1", Noise: &Noise{Steal: 0.25, Others: 3},
		},
		Settings: Settings{Repeats: 3, SampleSeconds: 0.02, BudgetSeconds: 10, PauseSeconds: 0.05},
		Implementations: []Implementation{
			{Name: "mercer cpu/fast", Kind: OwnKind, Detail: "fast"},
			{Name: "mercer cpu/slow", Kind: OwnKind, Detail: "slow"},
			{Name: "openblas", Kind: PeerKind, Detail: "OpenBLAS 1.2, core type Z80", Path: "/lib/libopenblas.so.0"},
			{Name: "gonum", Kind: PeerKind, Detail: "gonum v0"},
			{Name: "mkl", Kind: PeerKind, Missing: "not found: libmkl_rt.so"},
			{Name: "ceiling cpu/fast", Kind: CeilingKind, Detail: "in registers"},
		},
	}
	for _, precision := range []string{"float64", "float32"} {
		for _, n := range []string{"64", "128"} {
			c := Cell{Case: Case{{"routine", "potrf"}, {"precision", precision}, {"threads", "2"}, {"n", n}}}
			for i, e := range r.Implementations {
				run := Run{Implementation: e.Name, Work: 1e9, Calls: 2, Limiter: "ceiling cpu/fast"}
				speed := 10 * float64(6-i)
				if e.Kind == CeilingKind {
					speed, run.Limiter = 80, ""
				}
				run.Timings = []float64{1 / speed, 0.9 / speed, 1.25 / speed}
				switch {
				case e.Missing != "":
					run = Run{Implementation: e.Name, Reason: e.Missing}
				case e.Name == "gonum" && precision == "float32":
					run = Run{Implementation: e.Name, Reason: "has no potrf in float32"}
				case i > 0 && e.Kind != CeilingKind:
					run.Check = &Check{Difference: 1e-16 * float64(i), Limit: 1e-13}
				}
				c.Runs = append(c.Runs, run)
			}
			c.summarize()
			r.Cells = append(r.Cells, c)
		}
	}
	return r
}

func TestRoundTrip(t *testing.T) {
	r := sample()
	r.Cells[0].Runs[0].Metrics = map[string]float64{"residual": 1e-14}
	var text bytes.Buffer
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	first := text.String()
	decoded, err := Read(&text)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, decoded, cmpopts.EquateComparable(Check{})); d != "" {
		t.Errorf("(-written +read):\n%s", d)
	}
	var encoded bytes.Buffer
	if err := decoded.Write(&encoded); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(first, encoded.String()); d != "" {
		t.Errorf("(-first +second):\n%s", d)
	}
}

// TestFieldNamesOfJSON checks that the names of the fields that other programs read do not change.
func TestFieldNamesOfJSON(t *testing.T) {
	var text bytes.Buffer
	if err := sample().Write(&text); err != nil {
		t.Fatal(err)
	}
	var form struct {
		Schema int
		Kind   string
		Cells  []struct {
			Case struct {
				Routine, Precision string
				Threads, N         int
			}
			Runs []struct {
				Implementation string
				Gflops         struct{ Median, Min, Max float64 }
				Share          float64
			}
		}
	}
	if err := json.Unmarshal(text.Bytes(), &form); err != nil {
		t.Fatal(err)
	}
	c := form.Cells[1]
	if form.Schema != 1 || form.Kind != "blas" || c.Case.Routine != "potrf" || c.Case.Threads != 2 || c.Case.N != 128 {
		t.Errorf("got %+v", form)
	}
	// The median rate is 60 GFLOP/s, and the highest rate of the ceiling is 80/0.9 GFLOP/s.
	if run := c.Runs[0]; run.Gflops.Median != 60 || !almostEqual(run.Share, 60*0.9/80) {
		t.Errorf("got %+v", run)
	}
	if i, j := strings.Index(text.String(), `"routine"`), strings.Index(text.String(), `"precision"`); i > j {
		t.Error("the parameters of a case have lost their order")
	}
}

// almostEqual reports whether a and b are equal up to the rounding errors of a small number of operations.
func almostEqual(a, b float64) bool { return a-b < 8*0x1p-53*b && b-a < 8*0x1p-53*b }

func TestReadRefuses(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{`{"schema": 2}`, "its schema is 2, but this version reads schema 1"},
		{`{"schema": 1, "cells": [{"case": {"n": 1}, "runs": [{"entrant": "x"}]}]}`, `n=1: no implementation is called "x"`},
		{`{"schema": 1, "cells": [{"case": {"n": []}}]}`, "n must be a text or a number"},
		{`{"schema": 1, "cells": [{"case": 5}]}`, "want an object"},
		{`{"schema`, "unexpected EOF"},
	} {
		if _, err := Read(strings.NewReader(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", test.text, err)
		}
	}
}

func TestCase(t *testing.T) {
	c := Case{{"routine", "gemm"}, {"threads", "1"}, {"n", "0064"}, {"sigma", "0.5"}}
	text, err := json.Marshal(c)
	if err != nil || string(text) != `{"routine":"gemm","threads":1,"n":"0064","sigma":"0.5"}` {
		t.Errorf("got %s, %v", text, err)
	}
	if c.String() != "routine=gemm/threads=1/n=0064/sigma=0.5" || c.Title() != "gemm, 1 thread, n = 0064, sigma = 0.5" {
		t.Errorf("got %v, %q", c, c.Title())
	}
	if c.Int("threads") != 1 || c.Int("sigma") != 0 || c.Get("nothing") != "" {
		t.Error("wrong values")
	}
	if reduced := c.Without("threads"); len(reduced) != 3 || len(c) != 4 || reduced.Get("threads") != "" {
		t.Errorf("got %v of %v", reduced, c)
	}
}

// textOf returns the report of r for a terminal.
func textOf(t *testing.T, r *Result) string {
	t.Helper()
	p, err := r.Report()
	if err != nil {
		t.Fatal(err)
	}
	return p.Text()
}

// TestText checks that the tables have medians, ranges and shares, and that the text lists a missing library once.
func TestText(t *testing.T) {
	got := textOf(t, sample())
	for _, want := range []string{
		"At the largest size, Mercer is the fastest in 2 of 2 comparisons. It reaches 68 to 68 % of the ceiling.\n",
		"mercer bench blas, 2026-03-04 05:06 UTC, 12 s\n",
		"Abacus <2>, 2 processors of a virtual machine, governor not readable; usable: cpu/fast, cpu/slow\n",
		"the host took 0.2 % and other processes took 3.0 % of the processors' time\n",
		"  openblas          OpenBLAS 1.2, core type Z80, /lib/libopenblas.so.0\n",
		"  mkl               missing: not found: libmkl_rt.so\n",
		`potrf, float64, 2 threads: rate, GFLOP/s
    n  mercer cpu/fast         mercer cpu/slow         openblas                gonum                   ceiling cpu/fast
   64  60.0 (48.0–66.7, 68 %)  50.0 (40.0–55.6, 56 %)  40.0 (32.0–44.4, 45 %)  30.0 (24.0–33.3, 34 %)              88.9
  128  60.0 (48.0–66.7, 68 %)  50.0 (40.0–55.6, 56 %)  40.0 (32.0–44.4, 45 %)  30.0 (24.0–33.3, 34 %)              88.9
`,
		"  gonum: has no potrf in float32\n",
		`Mercer at the largest n
                               n  Mercer    GFLOP/s  of ceiling  × openblas  × gonum
  potrf, float64, 2 threads  128  cpu/fast     60.0        68 %        1.50     2.00
  potrf, float32, 2 threads  128  cpu/fast     60.0        68 %        1.50        –
`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no\n%s\nin\n%s", want, got)
		}
	}
	if strings.Count(got, "missing") != 1 {
		t.Error("a missing library is not to be listed at every table")
	}
}

// TestMarkdown checks that the Markdown has the same tables.
func TestMarkdown(t *testing.T) {
	p, err := sample().Report()
	if err != nil {
		t.Fatal(err)
	}
	got := p.Markdown()
	for _, want := range []string{
		"## Mercer’s BLAS on Abacus <2>\n\nAt the largest size, ",
		"\n### Mercer at the largest n\n\n|  | n | Mercer | GFLOP/s | of ceiling | × openblas | × gonum |\n|---|---:|---:|---:|---:|---:|---:|\n" +
			"| potrf, float64, 2 threads | 128 | cpu/fast | 60.0 | 68 % | 1.50 | 2.00 |\n",
		"| 64 | 60.0 (48.0–66.7, 68 %) | 50.0 (40.0–55.6, 56 %) | ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no\n%s\nin\n%s", want, got)
		}
	}
}

// TestReportOfUnknownKind checks that Report returns an error for an unknown kind of measurement.
func TestReportOfUnknownKind(t *testing.T) {
	if _, err := (&Result{Kind: "weather"}).Report(); err == nil || err.Error() != `bench: report: measurements of kind "weather" are not known` {
		t.Errorf("got %v", err)
	}
}

func TestFigures(t *testing.T) {
	for v, want := range map[float64]string{0: "0.00", 0.01234: "0.0123", 0.5: "0.500", 1.236: "1.24", 12.34: "12.3", 99.96: "100", 123.4: "123", 1234: "1234"} {
		if got := figures(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
	for v, want := range map[float64]string{0.957: "0.96", 1: "1.00", 9.99: "9.99", 9.996: "10.0", 12.34: "12.3"} {
		if got := ratioText(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}

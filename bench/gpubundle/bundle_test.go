package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/bench"
	"github.com/mercer-go/mercer/cuda/cudatest"
	"github.com/mercer-go/mercer/internal/required"
)

// TestBundle makes the bundle and runs it as it would on a GPU, on the simulated
// libraries.
func TestBundle(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it builds the command and runs the tests of the GPU")
	}
	libraries := t.TempDir()
	if err := cudatest.Build(libraries, cudatest.WithSolver); err != nil {
		if errors.Is(err, cudatest.ErrNoCompiler) {
			required.Lacking(t, "g++", err)
		}
		t.Fatal(err)
	}
	required.Program(t, "g++", "make")
	bundle, out := filepath.Join(t.TempDir(), "gpu"), filepath.Join(t.TempDir(), "results")
	build := exec.Command("make", "-C", filepath.Join("..", ".."), "gpu-bundle", "BUNDLE="+bundle)
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	c := exec.Command(filepath.Join(bundle, "run"), "--size", "tiny", "--out", out)
	c.Dir = t.TempDir() // it must not matter where it is called
	c.Env = append(os.Environ(), "MERCER_CUDA_LIBDIR="+libraries)
	text, err := c.CombinedOutput()
	t.Logf("%s", text)
	if err != nil {
		t.Fatal(err)
	}

	var r report
	read, err := os.ReadFile(filepath.Join(out, "results.json"))
	if err == nil {
		err = json.Unmarshal(read, &r)
	}
	if err != nil {
		t.Fatal(err)
	}
	if r.Schema != Schema || r.Size != "tiny" || len(r.Steps) != 6 || r.Machine.GPU == "" || r.Machine.Bytes == 0 {
		t.Errorf("got %+v", r)
	}
	for _, s := range r.Steps {
		if s.Outcome != passed || s.Seconds <= 0 {
			t.Errorf("%s: %+v", s.Name, s)
		}
		if strings.HasSuffix(s.Command[0], ".test") && (s.Tests.Passed < 3 || s.Tests.Failed > 0) {
			t.Errorf("%s: %+v", s.Name, s.Tests)
		}
		if s.Result == "" {
			continue
		}
		f, err := os.Open(filepath.Join(out, s.Result))
		if err != nil {
			t.Fatal(err)
		}
		m, err := bench.Read(f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for _, cell := range m.Cells {
			if run := cell.Run(gpu); run != nil && !run.Timed() {
				t.Errorf("%s: %v: %+v", s.Name, cell.Case, run)
			}
		}
		if m.Kind == bench.DevicesKind && len(m.Takeovers()) != 9 {
			t.Errorf("%d takeovers", len(m.Takeovers()))
		}
		if _, err := os.Stat(filepath.Join(out, strings.TrimSuffix(s.Result, "json")+"html")); err != nil {
			t.Error(err)
		}
	}
	for _, f := range r.Figures {
		if f.Value != nil || f.Met {
			t.Errorf("a figure of the simulator is told as one of a GPU: %+v", f)
		}
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if last := strings.Join(lines[max(0, len(lines)-15):], "\n"); !strings.Contains(last, "backendtest and solvertest") || !strings.Contains(last, "not taken") {
		t.Errorf("the table does not come last:\n%s", last)
	}
}

// TestNoGPU: without a driver it says so and measures nothing.
func TestNoGPU(t *testing.T) {
	if os.Getenv("MERCER_CUDA_LIBDIR") != "" {
		t.Skip("MERCER_CUDA_LIBDIR is set")
	}
	if _, err := os.Stat("/dev/nvidiactl"); err == nil {
		t.Skip("there is a GPU")
	}
	var b strings.Builder
	if err := run(t.Context(), []string{"--out", t.TempDir()}, &b); err == nil || !strings.Contains(err.Error(), "there is no GPU to measure") {
		t.Errorf("got %v", err)
	}
	if err := run(t.Context(), []string{"--size", "huge"}, &b); err == nil || !strings.Contains(err.Error(), "tiny, quick, full") {
		t.Errorf("got %v", err)
	}
}

func TestCountTests(t *testing.T) {
	c := countTests("=== RUN   TestA\n--- PASS: TestA (0.1s)\n    --- FAIL: TestB/x (0.0s)\n--- FAIL: TestB (0.0s)\n--- SKIP: TestC (0.00s)\nok\n")
	if c.Passed != 1 || c.Failed != 2 || c.Skipped != 1 || strings.Join(c.Failures, " ") != "TestB/x TestB" {
		t.Errorf("got %+v", c)
	}
}

// TestFigures takes the figures from times with known ratios.
func TestFigures(t *testing.T) {
	cell := func(name, n string, times map[string]float64) bench.Cell {
		c := bench.Cell{Case: bench.Case{{Name: "operation", Value: name}, {Name: "precision", Value: "float64"}, {Name: "n", Value: n}}}
		for entrant, v := range times {
			c.Runs = append(c.Runs, bench.Run{Entrant: entrant, Timings: []float64{v}, Time: bench.Spread{Median: v, Min: v, Max: v}})
		}
		return c
	}
	list := []*step{
		{Name: "devices", Outcome: passed, measured: &bench.Result{Cells: []bench.Cell{
			cell("fit", "1024", map[string]float64{gpu: 1, "torch": 0.1}), // too small to count
			cell("fit", "4096", map[string]float64{gpu: 1, "torch": 3}),
			cell("fit", "50000", map[string]float64{gpu: 2.2, "torch": 4.4}),
			cell("factor", "50000", map[string]float64{gpu: 2}),
		}}},
		{Name: "start-up", Outcome: passed, checked: map[string]float64{"seconds": 2}},
		{Name: "2000 fits leave nothing", Outcome: failed, checked: map[string]float64{"bytes": 0}},
	}
	want := map[string]figure{
		"exact fit beside its Cholesky, float64, n = 50,000": {Value: new(2.2 / 2.0), Met: true},
		"fit beside torch, the worst n ≥ 2,000":              {Value: new(2.0), Met: true},
		"start-up and a first fit":                           {Value: new(2.0)},
	}
	for _, f := range figures("full", list) {
		w := want[f.Name]
		if (f.Value == nil) != (w.Value == nil) || f.Met != w.Met || f.Value != nil && (*f.Value-*w.Value > 1e-12 || *w.Value-*f.Value > 1e-12) {
			t.Errorf("%s: %+v, want %+v", f.Name, f, w)
		}
	}
	for _, f := range figures("tiny", list) {
		if f.Value != nil {
			t.Errorf("tiny: %+v", f)
		}
	}
}

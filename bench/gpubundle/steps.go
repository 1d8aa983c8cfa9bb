package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/mercer-go/mercer/bench"
)

// sizes are how much is done.
var sizes = []string{"tiny", "quick", "full"}

// The outcomes of a step.
const (
	passed = "passed"
	failed = "FAILED"
)

// step is a program that was run.
type step struct {
	Name    string   `json:"name"`
	Command []string `json:"command"` // the first is a file of the bundle
	Outcome string   `json:"outcome"`
	Seconds float64  `json:"seconds"`
	Summary string   `json:"summary"`
	Tests   *counts  `json:"tests,omitempty"`
	Output  string   `json:"output,omitempty"` // the file with what it printed
	Result  string   `json:"result,omitempty"` // the file with what it measured
	Error   string   `json:"error,omitempty"`

	measured *bench.Result
	checked  map[string]float64
	limit    time.Duration
}

// counts are the outcomes of tests, subtests included.
type counts struct {
	Passed   int      `json:"passed"`
	Failed   int      `json:"failed"`
	Skipped  int      `json:"skipped"`
	Failures []string `json:"failures,omitempty"`
}

// steps lists what is run, and how long each may take.
func steps(size string) []*step {
	tests := []string{"cuda.test", "-test.v", "-test.timeout=20m"}
	fits, devices, fit := "2000", "512,1024,2048,4096,8192,16384", "2048,4096,8192,16384"
	quick := []string{"--quick", "--quiet", "--json"}
	switch size {
	case "tiny":
		tests = append(tests, "-test.short", "-test.run=^(TestConformance|TestSolvers)$/^(solver|dual)$")
		fits, devices, fit = "20", "24,48,96", "24,48,96"
		quick = append(quick, "--d", "4", "--repeats", "1")
	case "full":
		devices, fit = "512,1024,2048,4096,8192,16384,32768,50000", "2048,8192,32768,50000"
		quick[0] = "--repeats=3"
	}
	mercer := func(name string, args ...string) *step {
		return &step{Name: name, Command: append([]string{"mercer", "bench"}, append(args, quick...)...), limit: 30 * time.Minute}
	}
	list := []*step{
		{Name: "start-up", Command: []string{"gpurun", "-check", "start-up"}, limit: 2 * time.Minute},
		{Name: "libraries", Command: []string{"driver.test", "-test.v"}, limit: 5 * time.Minute},
		{Name: "backendtest and solvertest", Command: tests, limit: 25 * time.Minute},
		{Name: fits + " fits leave nothing", Command: []string{"gpurun", "-check", "leaks", "-fits", fits}, limit: 10 * time.Minute},
		mercer("devices", "devices", "--device", "cpu,cuda/0", "--n", devices, "--limit", "10s"),
		mercer("fit", "fit", "--fit", "ridge", "--device", "cuda/0", "--n", fit, "--peers", "torch,cupy,gpytorch"),
	}
	if size == "full" {
		list = append(list,
			mercer("K·v, d = 3", "devices", "--device", "cuda/0", "--operation", "mul", "--precision", "float32", "--n", "65536,262144", "--d", "3", "--peers", "torch"),
			mercer("n = 100,000", "devices", "--device", "cuda/0", "--operation", "factor,fit", "--precision", "float64", "--n", "100000", "--limit", "5m", "--peers", "none"))
	}
	return list
}

// worker runs steps.
type worker struct {
	ctx            context.Context
	bundle, folder string
	out            io.Writer
}

// do runs a step and fills in what came of it.
func (w *worker) do(s *step) {
	start := time.Now()
	ctx, cancel := context.WithTimeout(w.ctx, s.limit)
	defer cancel()
	c := exec.CommandContext(ctx, filepath.Join(w.bundle, s.Command[0]), s.Command[1:]...)
	c.Dir = w.folder // tests write there at most
	c.Env = append(os.Environ(), "MERCER_REQUIRE="+require())
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	s.Seconds = time.Since(start).Seconds()
	if ctx.Err() != nil && w.ctx.Err() == nil {
		err = fmt.Errorf("took longer than %v: %w", s.limit, err)
	}
	base := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, s.Name)
	s.Output = base + ".txt"
	err = errors.Join(err, os.WriteFile(filepath.Join(w.folder, s.Output), append(stdout.Bytes(), stderr.Bytes()...), 0o666))
	switch {
	case strings.HasSuffix(s.Command[0], ".test"):
		s.Tests = countTests(stdout.String())
		s.Summary = fmt.Sprintf("%d passed, %d failed, %d skipped", s.Tests.Passed, s.Tests.Failed, s.Tests.Skipped)
		if s.Tests.Passed == 0 {
			err = errors.Join(err, errors.New("no test has run"))
		}
	case s.Command[0] == "mercer" && err == nil:
		err = w.keepResult(s, base, stdout.Bytes())
	case err == nil:
		err = json.Unmarshal(stdout.Bytes(), &s.checked)
		s.Summary = strings.TrimSpace(stdout.String())
	}
	s.Outcome = passed
	if err != nil {
		s.Outcome = failed
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		s.Error = strings.TrimSpace(err.Error() + ": " + lines[len(lines)-1])
		if s.Summary == "" {
			s.Summary = s.Error
		}
	}
}

// require is MERCER_REQUIRE with cuda: no test of the GPU may skip for want of one.
func require() string {
	list := os.Getenv("MERCER_REQUIRE")
	if list == "" {
		return "cuda"
	}
	return list + ",cuda"
}

// keepResult writes a measurement and its page.
func (w *worker) keepResult(s *step, base string, text []byte) error {
	var err error
	if s.measured, err = bench.Read(bytes.NewReader(text)); err != nil {
		return err
	}
	s.Result = base + ".json"
	path := filepath.Join(w.folder, s.Result)
	if err := os.WriteFile(path, text, 0o666); err != nil {
		return err
	}
	s.Summary = summary(s.measured)
	c := exec.CommandContext(w.ctx, filepath.Join(w.bundle, "mercer"), "bench", "report", path, "--out", filepath.Join(w.folder, base+".html"))
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, out)
	}
	return nil
}

// summary is a line of what was measured.
func summary(r *bench.Result) string {
	timed, left := 0, 0
	for _, c := range r.Cells {
		for _, run := range c.Runs {
			if run.Timed() {
				timed++
			} else if e := r.Entrant(run.Entrant); e != nil && e.Missing == "" {
				left++
			}
		}
	}
	text := fmt.Sprintf("%d timed", timed)
	if left > 0 {
		text += fmt.Sprintf(", %d left out", left)
	}
	for _, c := range r.Takeovers() {
		if c.Case.Get("operation") == "fit" && c.Case.Get("precision") == "float64" {
			text += "; " + c.String()
		}
	}
	return text
}

// outcome is a line of `go test -v` that ends a test.
var outcome = regexp.MustCompile(`(?m)^\s*--- (PASS|FAIL|SKIP): (\S+)`)

func countTests(text string) *counts {
	c := new(counts)
	for _, m := range outcome.FindAllStringSubmatch(text, -1) {
		switch m[1] {
		case "PASS":
			c.Passed++
		case "SKIP":
			c.Skipped++
		default:
			c.Failed++
			c.Failures = append(c.Failures, m[2])
		}
	}
	return c
}

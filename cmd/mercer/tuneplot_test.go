package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners/tuning"
)

// TestSurfaceRowsEndTogether draws the scores of three kernels. The second kernel has a grid of λ that is finer at one
// end, and the third kernel has fewer λ.
func TestSurfaceRowsEndTogether(t *testing.T) {
	row := func(factor float64, lambdas ...float64) tuning.Trial {
		trial := tuning.Trial{Factors: []float64{factor}}
		for _, lambda := range lambdas {
			trial.Points = append(trial.Points, tuning.Point{Lambda: lambda, Score: 1})
		}
		return trial
	}
	cells := surfaceCells(&tuning.Result{Trials: []tuning.Trial{row(1, 0.01, 1, 100), row(10, 0.01, 0.1, 1, 100), row(100, 1, 100)}}, 1)
	var got [][2]float64
	for _, b := range cells.list {
		got = append(got, [2]float64{b.x0, b.x1})
	}
	want := [][2]float64{{-3, -1}, {-1, 1}, {1, 3}, {-3, -1.5}, {-1.5, -0.5}, {-0.5, 1}, {1, 3}, {-1, 1}, {1, 3}}
	if diff := cmp.Diff(want, got, cmpopts.EquateApprox(0, 16*0x1p-52)); diff != "" { // a few roundings of numbers below 4
		t.Error(diff)
	}
}

// tunePlotArguments returns the arguments of a search that reads its table from standard input.
func tunePlotArguments() []string {
	rows := "60"
	if required.FewCases() {
		rows = "20"
	}
	return []string{"tune", "--device", "ref", "--rows", rows, "--search", "grid", "--kernel", "rationalquadratic(sigma=1,a=1)", "--target", "y", "--model", "m.st", "--plot", "p.png", "-"}
}

// startTune starts a search that writes a model and a picture, and returns during the fit after the search.
func startTune(t *testing.T, rows int) *command {
	t.Helper()
	c := start(t, tunePlotArguments()...)
	go func() {
		_, _ = io.Copy(c.stdin, bytes.NewReader(table3(rows)))
		_ = c.stdin.Close()
	}()
	for {
		line, err := c.stderr.ReadString('\n')
		if err != nil {
			t.Fatalf("no progress of the fit: %q, %v", line, err)
		}
		if !strings.HasPrefix(line, "tune: ") {
			return c
		}
	}
}

// TestNoPictureWithoutItsModel checks that no picture exists without its model, if the command is interrupted or
// killed during the fit after the search, or cannot write the model. A model may exist without its picture.
func TestNoPictureWithoutItsModel(t *testing.T) {
	for _, s := range required.Subset(1, []syscall.Signal{syscall.SIGINT, syscall.SIGTERM}) {
		t.Run(s.String(), func(t *testing.T) { startTune(t, 5000).interrupt(t, s) })
	}
	exists := func(c *command, name string) bool {
		info, err := os.Stat(filepath.Join(c.folder, name))
		return err == nil && info.Mode().IsRegular()
	}
	t.Run("killed", func(t *testing.T) {
		c := startTune(t, 5000)
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = c.Wait()
		if exists(c, "m.st") || exists(c, "p.png") {
			t.Error("a model or a picture is there")
		}
	})
	for _, test := range []struct {
		blockedPath, flag string
		model             bool
	}{
		{"m.st", "m.st", false},
		{"p.png", "--plot", true},
	} {
		t.Run("blocked "+test.blockedPath, func(t *testing.T) {
			c := start(t, tunePlotArguments()...)
			// Write returns after the command has begun to read, because the empty lines exceed the buffer of a pipe.
			if _, err := c.stdin.Write(append(table3(300), bytes.Repeat([]byte("\n"), 1<<20)...)); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(filepath.Join(c.folder, test.blockedPath), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := c.stdin.Close(); err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(c.stderr)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.Wait()
			if code := c.ProcessState.ExitCode(); code != 1 || !strings.Contains(string(text), test.flag) || !strings.Contains(string(text), "is a directory") {
				t.Errorf("exit code %d, stderr %q", code, text)
			}
			if exists(c, "m.st") != test.model || exists(c, "p.png") {
				t.Errorf("model %v, picture %v", exists(c, "m.st"), exists(c, "p.png"))
			}
		})
	}
}

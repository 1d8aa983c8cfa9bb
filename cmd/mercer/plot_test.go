package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/plot/plotter"

	"github.com/mercer-go/mercer/internal/browser"
	"github.com/mercer-go/mercer/learners"
)

// TestPlotPages: each kind of picture is a page that needs nothing else, and that a
// browser draws on a wide screen, on a phone in the dark and on paper.
func TestPlotPages(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a browser for each page")
	}
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	if err := os.WriteFile(in("all.csv"), []byte(everyData()), 0o666); err != nil {
		t.Fatal(err)
	}
	writeWithout(t, in("all.csv"), in("class.csv"), "number")
	writeWithout(t, in("all.csv"), in("number.csv"), "class")
	mercer := func(args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(args, strings.NewReader(""), &out, &errs); code != 0 {
			t.Fatalf("mercer %s: %d: %s", strings.Join(args, " "), code, errs.String())
		}
	}
	mercer("fit", "--learner", "svc", "--target", "class", "--model", in("svc.st"), in("class.csv"))
	mercer("fit", "--learner", "logistic", "--target", "class", "--model", in("logistic.st"), in("class.csv"))
	mercer("fit", "--learner", "gaussian-process", "--target", "number", "--model", in("gp.st"), in("number.csv"))
	for name, args := range map[string][]string{
		"boundary":    {"boundary", "--model", in("svc.st"), in("class.csv")},
		"surface":     {"boundary", "--model", in("gp.st"), in("number.csv")},
		"curve":       {"curve", "--x", "a", "--model", in("gp.st"), in("number.csv")},
		"path":        {"path", "--learner", "lasso", "--points", "10", "--target", "number", in("number.csv")},
		"ball":        {"ball", "--target", "number", in("number.csv")},
		"epochs":      {"epochs", "--learner", "perceptron", "--target", "class", in("class.csv")},
		"learning":    {"learning", "--folds", "3", "--sizes", "3", "--target", "number", in("number.csv")},
		"validation":  {"validation", "--folds", "3", "--lambda", "{}", "--values", "0.1,1,10", "--target", "number", in("number.csv")},
		"calibration": {"calibration", "--model", in("logistic.st"), in("class.csv")},
	} {
		t.Run(name, func(t *testing.T) {
			out := in(name + ".html")
			mercer(append([]string{"plot", "--out", out}, args...)...)
			page, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			text := string(page)
			for _, word := range []string{"<script", "<link", "@import", "url(", "<img"} {
				if strings.Contains(text, word) {
					t.Errorf("the page has %s", word)
				}
			}
			browser.Check(t, text, strings.Count(text, "<figure"))
		})
	}
}

// TestReliability: bins with their means and frequencies, by hand.
func TestReliability(t *testing.T) {
	classes := learners.Classes{Labels: []float64{3, 7}, Names: []string{"a", "b"}}
	proba := mat.NewDense(5, 2, []float64{0.98, 0.02, 0.92, 0.08, 0.5, 0.5, 0, 1, 0.05, 0.95})
	truth := mat.NewDense(5, 1, []float64{3, 7, 7, 7, 3})
	c := reliability(proba, truth, classes, 1)
	line := c.line
	want := [][2]float64{{0.05, 0.5}, {0.5, 1}, {0.975, 0.5}}
	if len(line) != len(want) {
		t.Fatalf("%v, want %v", line, want)
	}
	for i, w := range want {
		if math.Abs(line[i].X-w[0]) > 0x1p-52 || line[i].Y != w[1] {
			t.Errorf("bin %d: %v, want %v", i, line[i], w)
		}
	}
	var n []float64
	for _, at := range c.counts {
		n = append(n, at.Y)
	}
	if !slices.Equal(n, []float64{2, 1, 2}) {
		t.Errorf("rows in the bins: %v", n)
	}
	if want := (0.9 + 0.5 + 0.95) / 5; math.Abs(c.error-want) > 0x1p-50 {
		t.Errorf("mean distance %v, want %v", c.error, want)
	}
	// Both classes together: the bins of the second and, mirrored, of the first.
	if both := reliability(proba, truth, classes, 0, 1); len(both.line) != 3 || both.counts[0].Y != 4 || both.line[1] != (plotter.XY{X: 0.5, Y: 0.5}) {
		t.Errorf("of both classes: %v %v", both.line, both.counts)
	}
}

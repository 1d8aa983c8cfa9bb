package main

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners"
)

// everyData returns 48 rows with two features a and b. In row i, number is 2a + b + (i mod 3), and class is "high"
// if number exceeds 23 and "low" otherwise.
func everyData() string {
	var b strings.Builder
	b.WriteString("a,b,number,class\n")
	for i := range 48 {
		u, v := i*7%17, i*5%13
		class := "low"
		if 2*u+v+i%3 > 23 {
			class = "high"
		}
		for _, n := range []int{u, v, 2*u + v + i%3} {
			b.WriteString(exact(float64(n)) + ",")
		}
		b.WriteString(class + "\n")
	}
	return b.String()
}

// TestEveryLearner checks that each learner of the catalogue can be fitted, evaluated, cross-validated and drawn
// with its default parameters, and that it makes every kind of prediction that it supports.
func TestEveryLearner(t *testing.T) {
	folder := t.TempDir()
	data := filepath.Join(folder, "data.csv")
	if err := os.WriteFile(data, []byte(everyData()), 0o666); err != nil {
		t.Fatal(err)
	}
	for i, d := range learners.Catalogue() {
		for j, task := range d.Tasks {
			t.Run(d.Name+"/"+string(task), func(t *testing.T) {
				mercer := func(args ...string) string {
					t.Helper()
					var out, errs bytes.Buffer
					if code := run(args, strings.NewReader(""), &out, &errs); code != 0 {
						t.Fatalf("mercer %s: %d: %s", strings.Join(args, " "), code, errs.String())
					}
					return out.String()
				}
				target, drop := "number", "class"
				if task == learners.Classification {
					target, drop = "class", "number"
				}
				table := filepath.Join(folder, target+".csv")
				writeWithout(t, data, table, drop)
				model := filepath.Join(folder, d.Name+".safetensors")
				common := []string{"--quiet", "--learner", d.Name, "--task", string(task)}
				fit := append([]string{"fit", "--json", "--model", model}, common...)
				if task != learners.Novelty {
					common = append(common, "--target", target)
					fit = append(fit, "--target", target)
				}
				fit = append(fit, needs[d.Name]...)
				var report struct {
					Learner string
					Task    learners.Task
				}
				if err := json.Unmarshal([]byte(mercer(append(fit, table)...)), &report); err != nil || report.Learner != d.Name || report.Task != task {
					t.Errorf("fit tells of %+v, %v", report, err)
				}
				if lines := strings.Count(mercer("predict", "--model", model, table), "\n"); lines != 49 {
					t.Errorf("%d lines of predictions", lines)
				}
				if required.FewCases() && (i+j)%4 != 0 {
					return
				}
				checkShown(t, mercer, model, table, task)
				if task == learners.Novelty {
					mercer("predict", "--decision", "--model", model, table)
					return
				}
				picture := filepath.Join(folder, "p.png")
				text := mercer("evaluate", "--plot", picture, "--model", model, table)
				if info, err := os.Stat(picture); err != nil || info.Size() < 1000 {
					t.Errorf("the picture: %v", err)
				}
				want := "R²"
				if task == learners.Classification {
					want = "accuracy"
					mercer("predict", "--decision", "--model", model, table)
				}
				if !strings.Contains(text, want) {
					t.Errorf("evaluate prints %q", text)
				}
				mercer(append(fit, "--calibrate", "0.25", table)...)
				column := map[learners.Task]string{learners.Regression: ",lower,upper", learners.Classification: ",in_set_high,in_set_low"}[task]
				if text := mercer("predict", "--interval", "0.8", "--model", model, table); !strings.Contains(text, column+"\n") {
					t.Errorf("predict --interval prints %q", text)
				}
				cv := append(append([]string{"cv", "--folds", "3"}, common...), needs[d.Name]...)
				if text := mercer(append(cv, table)...); !strings.Contains(text, want) {
					t.Errorf("cv prints %q", text)
				}
			})
		}
	}
}

// checkShown checks that show names the learner, repeats the report of the fit, and lists points or weights, which
// must give the predictions.
func checkShown(t *testing.T, mercer func(args ...string) string, model, table string, task learners.Task) {
	t.Helper()
	if text := mercer("show", "--rows", "3", model); !strings.Contains(text, "formula  ") || !strings.Contains(text, "data ") {
		t.Errorf("show prints %q", text)
	}
	var s shownModel
	if err := json.Unmarshal([]byte(mercer("show", "--json", model)), &s); err != nil {
		t.Fatal(err)
	}
	if s.Fit == nil || s.Fit.Task != task || s.Fit.N != 48 || len(s.Columns) != s.Fit.D {
		t.Errorf("show --json: the fit is %+v", s.Fit)
	}
	if s.Learner.Name != "fourier-ridge" && (len(s.Weights) == 0) == (len(s.Points) == 0) {
		t.Errorf("show --json: %d weights and %d points", len(s.Weights), len(s.Points))
	}
	if s.Kernel == "" && len(s.Points) > 0 {
		t.Error("show --json: points without a kernel")
	}
	if len(s.Weights) == 0 {
		return
	}
	flag, field := "--json", "predictions"
	if task == learners.Classification {
		flag, field = "--decision", "decision"
	}
	var predicted map[string]json.RawMessage
	var want [][]float64
	if err := json.Unmarshal([]byte(mercer("predict", "--json", flag, "--model", model, table)), &predicted); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(predicted[field], &want); err != nil {
		t.Fatal(err)
	}
	raw := map[string]float64{}
	for _, w := range s.Weights {
		raw[w.Feature] = w.Raw[0]
	}
	for i := range 48 {
		a, b := float64(i*7%17), float64(i*5%13)
		f := raw["a"]*a + raw["b"]*b + s.RawIntercept[0]
		// f has four rounding errors, relative to the sum of the magnitudes of its terms, which may cancel.
		size := math.Abs(raw["a"])*17 + math.Abs(raw["b"])*13 + math.Abs(s.RawIntercept[0])
		if math.Abs(f-want[i][0]) > 16*0x1p-52*size {
			t.Errorf("row %d: the weights make %v, predict %v", i+1, f, want[i][0])
		}
	}
}

// needs maps the name of a learner to flags without which it cannot be fitted.
var needs = map[string][]string{}

// writeWithout copies a CSV file without the named column.
func writeWithout(t *testing.T, from, to, name string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	column := -1
	var b strings.Builder
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		cells := strings.Split(line, ",")
		if i == 0 {
			for j, cell := range cells {
				if cell == name {
					column = j
				}
			}
		}
		b.WriteString(strings.Join(append(cells[:column:column], cells[column+1:]...), ",") + "\n")
	}
	if err := os.WriteFile(to, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
}

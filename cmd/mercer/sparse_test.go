package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// denseTable converts a LIBSVM file to CSV. features is the number of columns.
func denseTable(t *testing.T, text []byte, features int) []byte {
	t.Helper()
	var b bytes.Buffer
	for j := range features {
		fmt.Fprintf(&b, "x%d,", j+1)
	}
	b.WriteString("label\n")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		cells := make([]string, features+1)
		for j := range cells {
			cells[j] = "0"
		}
		cells[features] = fields[0]
		for _, field := range fields[1:] {
			var j int
			var v string
			if _, err := fmt.Sscanf(strings.Replace(field, ":", " ", 1), "%d %s", &j, &v); err != nil {
				t.Fatal(err)
			}
			cells[j-1] = v
		}
		b.WriteString(strings.Join(cells, ",") + "\n")
	}
	return b.Bytes()
}

// TestSparseTableGivesTheResultsOfTheDenseTable checks that models fitted to a LIBSVM file and to a CSV file with
// the same numbers give the same predictions for the rows of both files, and the same scores.
func TestSparseTableGivesTheResultsOfTheDenseTable(t *testing.T) {
	const n, features, lambda = 40, 90, 0.5
	l := gramLab{t, t.TempDir()}
	text := sparseTable(n, features)
	for name, text := range map[string][]byte{"sparse.svm": text, "dense.csv": denseTable(t, text, features)} {
		if err := os.WriteFile(l.path(name), text, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	// The squared distance of two points with 16 nonzero numbers in total has a relative error of at most
	// 2¹²·16·2⁻⁵³ (see backend.SparseBackend). The error of K is at most n times as large, and the error of α is
	// larger by the condition number, at most n/λ + 1. A prediction has n terms, a score is at most quadratic in it.
	const tol = 4 * (1 << 12) * 16 * 0x1p-53 * n * n * (n/lambda + 1)
	checkEqual := func(name string, a, b float64) {
		t.Helper()
		if !(math.Abs(a-b) <= tol) {
			t.Errorf("%s: %v of the sparse table, %v of the dense table", name, a, b)
		}
	}
	tables := []string{"sparse.svm", "dense.csv"}
	common := []string{"--quiet", "--task", "regression", "--no-standardize", "--target", "label"}
	call := func(command string, table string, extra ...string) string {
		return l.mercer(append(append(append([]string{command}, common...), extra...), l.path(table))...)
	}
	kernel := []string{"--kernel", "gaussian(sigma=2)", "--lambda", exact(lambda)}
	var want [][]float64
	for _, model := range tables {
		call("fit", model, append(kernel, "--model", l.path(model+".st"))...)
		for _, table := range tables {
			got := l.numbers(l.mercer("predict", "--quiet", "--interval", "0.8", "--model", l.path(model+".st"), l.path(table)))
			if want == nil {
				want = got
			}
			for i, row := range want {
				for j := range row {
					checkEqual(fmt.Sprintf("number %d of row %d of %s, by the model of %s", j, i, table, model), row[j], got[i][j])
				}
			}
		}
	}
	score := func(text string) (list []float64) {
		var report struct {
			Score    float64
			Measures []struct{ Scores []float64 }
			OutOfBag float64 `json:"error_out_of_bag"`
		}
		if err := json.Unmarshal([]byte(text), &report); err != nil {
			t.Fatal(err)
		}
		for _, m := range report.Measures {
			list = append(list, m.Scores...)
		}
		return append(list, report.Score, report.OutOfBag)
	}
	for name, args := range map[string][]string{
		"cv":                  append(kernel, "--folds", "4"),
		"bootstrap":           append(kernel, "--rounds", "3"),
		"tune":                {"--kernel", "gaussian(sigma=2)", "--vary", "", "--lambdas", exact(lambda)},
		"tune --by gcv":       {"--kernel", "gaussian(sigma=2)", "--vary", "", "--lambdas", exact(lambda)},
		"tune --by kfold":     {"--kernel", "gaussian(sigma=2)", "--vary", "", "--lambdas", exact(lambda)},
		"tune --no-intercept": {"--kernel", "linear()", "--by", "evidence", "--search", "grid", "--vary", "", "--lambdas", exact(lambda)},
	} {
		words := strings.Fields(name)
		args = append(append(words[1:], args...), "--json")
		a, b := score(call(words[0], tables[0], args...)), score(call(words[0], tables[1], args...))
		if len(a) != len(b) || a[0] == 0 {
			t.Fatalf("%s: %v and %v", name, a, b)
		}
		for i := range a {
			checkEqual(name, a[i], b[i])
		}
	}
	// The rest compares the predicted classes of two support vector machines, and the parts of their models.
	for _, table := range tables {
		l.mercer("fit", "--quiet", "--learner", "svc", "--no-standardize", "--target", "label", "--model", l.path(table+".st"), l.path(table))
	}
	if a, b := l.mercer("predict", "--model", l.path("sparse.svm.st"), l.path("dense.csv")), l.mercer("predict", "--model", l.path("dense.csv.st"), l.path("sparse.svm")); a != b {
		t.Errorf("classes of the sparse table %s, of the dense table %s", a, b)
	}
	var shown [2]shownModel
	for i, table := range tables {
		if err := json.Unmarshal([]byte(l.mercer("show", "--json", l.path(table+".st"))), &shown[i]); err != nil {
			t.Fatal(err)
		}
	}
	if len(shown[0].Points) != len(shown[1].Points) || len(shown[0].Points) == 0 {
		t.Fatalf("%d support vectors of the sparse table, %d of the dense table", len(shown[0].Points), len(shown[1].Points))
	}
	for i := range shown[0].Points {
		if got := len(shown[0].Points[i].Values); got != 8 {
			t.Errorf("support vector %d has %d features that are not 0, not 8", i, got)
		}
	}
}

// TestManyWeightsAreNotListed checks a linear model with sparse points. If it has more weights than
// maxWeights, show must omit the weights and say so.
func TestManyWeightsAreNotListed(t *testing.T) {
	original := maxWeights
	defer func() { maxWeights = original }()
	x, err := host.NewCSR(3, 5, []int{0, 1, 2, 3}, []int{0, 1, 4}, []float64{1, 1, 1})
	if err != nil {
		t.Fatal(err)
	}
	svc := learners.SVC{Kernel: kernels.Linear{}, C: 1000}
	m, err := mercer.Fit(t.Context(), svc, x, mat.NewDense(3, 1, []float64{0, 1, 2}), mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for limit, listed := range map[int]bool{18: true, 17: false} { // 18 numbers: 3 machines, each with 3 weights of features and 3 coefficients of samples
		maxWeights = limit
		s, err := newShown(modelfile.Bundle{Model: m.Fitted}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if text := s.text(0); (len(s.Weights) == 3) != listed || strings.Contains(text, "Not listed: weights of 5 features in 3 outputs: more than 17 numbers") == listed {
			t.Errorf("at most %d numbers: %d weights:\n%s", limit, len(s.Weights), text)
		}
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
)

// commandIn returns a function that runs the command and checks its exit status. In the arguments, @ stands for the
// path of the folder.
func commandIn(t *testing.T, folder string) func(code int, args ...string) (stdout, stderr string) {
	return func(code int, args ...string) (string, string) {
		t.Helper()
		args = slices.Clone(args)
		for i, arg := range args {
			args[i] = strings.ReplaceAll(arg, "@", folder+string(filepath.Separator))
		}
		var out, errs bytes.Buffer
		if got := run(args, strings.NewReader(""), &out, &errs); got != code {
			t.Fatalf("mercer %s: %d, want %d: %s", strings.Join(args, " "), got, code, errs.String())
		}
		return out.String(), errs.String()
	}
}

// columnOf returns the numbers in a column of a CSV text.
func columnOf(t *testing.T, text, name string) (values []float64) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	column := slices.Index(strings.Split(lines[0], ","), name)
	if column < 0 {
		t.Fatalf("no column %s: %s", name, lines[0])
	}
	for _, line := range lines[1:] {
		v, err := strconv.ParseFloat(strings.Split(line, ",")[column], 64)
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, v)
	}
	return values
}

// writeTables writes w.csv, which has weights from 0 to 3 and missing cells, and r.csv, in which each row of w.csv
// occurs as many times as its weight.
func writeTables(t *testing.T, folder string) {
	t.Helper()
	var weighted, repeated strings.Builder
	r := rand.New(rand.NewPCG(5, 5))
	for _, b := range []*strings.Builder{&weighted, &repeated} {
		b.WriteString("id,a,b,c,w,y,k\n")
	}
	for i := range 60 {
		a, b, w := 5+2*r.NormFloat64(), -1+30*r.NormFloat64(), r.IntN(4)
		y := a + 0.1*b + r.NormFloat64()
		k := "no"
		if y+r.NormFloat64() > 5 {
			k = "yes"
		}
		cell := fmt.Sprint(a)
		if i%9 == 4 {
			cell = ""
		}
		line := fmt.Sprintf("n%d,%s,%v,%c,%d,%v,%s\n", i, cell, b, "uvw"[i%3], w, y, k)
		weighted.WriteString(line)
		repeated.WriteString(strings.Repeat(line, w))
	}
	for name, text := range map[string]string{"w.csv": weighted.String(), "r.csv": repeated.String()} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWeightsAreRepeatedRows checks that a fit with --weight equals a fit to repeated rows, and has the same score
// (scikit-learn's sample_weight).
func TestWeightsAreRepeatedRows(t *testing.T) {
	folder := t.TempDir()
	writeTables(t, folder)
	kernel := []string{"--kernel", "gaussian(sigma=2)"}
	for _, c := range required.Subset(6, []struct {
		learner, target string
		flags           []string
	}{
		{"ridge", "y", nil}, {"ridge", "k", []string{"--class-weight", "balanced"}},
		{"fourier-ridge", "k", append(kernel, "--features", "20", "--class-weight", "balanced", "--stream")},
		{"lasso", "y", nil}, {"least-squares", "y", nil}, {"bayes-ridge", "y", nil}, {"kernel-ridge", "y", kernel},
		{"nystrom-ridge", "y", append(kernel, "--centers", "60")}, {"nystrom-ridge", "y", append(kernel, "--centers", "60", "--stream")},
		{"fourier-ridge", "y", append(kernel, "--features", "20")}, {"fourier-ridge", "y", append(kernel, "--features", "20", "--stream")},
		{"gaussian-process", "y", append(kernel, "--no-optimize")}, {"kernel-vote", "y", kernel}, {"svr", "y", append(kernel, "--tol", "1e-9")},
		{"logistic", "k", []string{"--class-weight", "yes=3"}}, {"logistic", "k", []string{"--class-weight", "balanced", "--tol", "1e-13"}},
		{"kernel-logistic", "k", kernel}, {"svc", "k", append(kernel, "--tol", "1e-9", "--class-weight", "balanced")},
	}) {
		t.Run(c.learner+" "+strings.Join(c.flags, " "), func(t *testing.T) {
			mercer := commandIn(t, folder)
			unused := map[string]string{"y": "k", "k": "y"}[c.target]
			fit := append([]string{"fit", "--quiet", "--learner", c.learner, "--target", c.target, "--drop", unused}, c.flags...)
			mercer(0, append(fit, "--drop", "id", "--weight", "w", "--model", "@w.st", "@w.csv")...)
			mercer(0, append(fit, "--drop", "id,w", "--model", "@r.st", "@r.csv")...)
			column, flags := "prediction", []string{"predict", "--quiet"}
			if c.target == "k" {
				column, flags = "decision", append(flags, "--decision")
			}
			got, _ := mercer(0, append(flags, "--model", "@w.st", "@w.csv")...)
			want, _ := mercer(0, append(flags, "--model", "@r.st", "@w.csv")...)
			w, v := columnOf(t, got, column), columnOf(t, want, column)
			for i := range w {
				// Iterative learners stop at a loss of at most about 1 + 1e-9 times the minimum. Because of the penalty
				// λ‖f‖²/2, f(x) then has an error of at most √(2·1e-9·loss·k(x, x)/λ), below 1e-3 for losses below 100.
				if !(math.Abs(w[i]-v[i]) <= 1e-3) {
					t.Fatalf("row %d: %v, with rows repeated %v", i+1, w[i], v[i])
				}
			}
			var scores [2]map[string]any
			for i, model := range []string{"@w.st @w.csv", "@r.st @r.csv"} {
				text, _ := mercer(0, append([]string{"evaluate", "--quiet", "--json", "--model"}, strings.Fields(model)...)...)
				if err := json.Unmarshal([]byte(text), &scores[i]); err != nil {
					t.Fatal(err)
				}
			}
			for _, figure := range []string{"rmse", "mae", "r2", "accuracy", "log_loss", "auc"} {
				u, ok1 := scores[0][figure].(float64)
				v, ok2 := scores[1][figure].(float64)
				if ok1 != ok2 || !(math.Abs(u-v) <= 2e-3) { // twice the tolerance of the predictions
					t.Errorf("%s %v, with rows repeated %v", figure, u, v)
				}
			}
			if scores[0]["weight"] != "w" {
				t.Errorf("the report does not name the weights: %v", scores[0])
			}
		})
	}
}

// TestClassWeightsOfScikitLearn compares decision values and probabilities with those of SVC and LogisticRegression
// of scikit-learn 1.2.1 with class_weight. A balanced weight is n/(k n_c) for k classes and n_c rows of the class.
func TestClassWeightsOfScikitLearn(t *testing.T) {
	folder := t.TempDir()
	var twoClasses, threeClasses strings.Builder
	twoClasses.WriteString("a,b,k\n")
	threeClasses.WriteString("a,b,k\n")
	for i := range 30 {
		u, v := i*7%17, i*5%13
		class := "often"
		if 2*u+v+i%3*4 > 36 {
			class = "rare"
		} else if u%3 == 0 {
			class = "mid"
		}
		line := fmt.Sprintf("%v,%v,%s\n", float64(u)/4, float64(v)/4, class)
		threeClasses.WriteString(line)
		if class != "mid" {
			twoClasses.WriteString(line)
		}
	}
	for name, text := range map[string]string{"2.csv": twoClasses.String(), "3.csv": threeClasses.String(), "t.csv": "a,b\n0,0\n1,2.5\n3.5,1\n4,3\n"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	mercer := commandIn(t, folder)
	// The objective of svc exceeds its minimum by at most Σ C_i tol ≤ 168e-10, and that of logistic by at most 1e-9
	// times a loss < 10. For an excess e, decision values have an error of at most 6√(2e/λ), where λ = 1 for svc.
	svc, logistic := 6*math.Sqrt(2*168e-10), 6*math.Sqrt(2*1e-8/0.5)
	for _, c := range []struct {
		table, learner, weights string
		column                  string
		want                    []float64
		tol                     float64
	}{
		{"2", "svc", "balanced", "decision", []float64{-0.7465865447, -1.316846752, 0.9229634922, 0.9980437462}, svc},
		{"2", "svc", "rare=5", "decision", []float64{-1.217149581, -1.488898435, 1.139799354, 0.720070249}, svc},
		{"2", "logistic", "balanced", "decision", []float64{-7.559183352, -3.860147867, 1.158807124, 3.417547484}, logistic},
		{"2", "logistic", "rare=5", "decision", []float64{-9.066456027, -4.515957879, 1.632307464, 4.41349009}, logistic},
		{"3", "logistic", "balanced", "probability_mid", []float64{0.5996102942, 0.3442042493, 0.2594995089, 0.009722499118}, logistic},
		{"3", "logistic", "balanced", "probability_rare", []float64{3.430952879e-05, 0.006428092165, 0.5621355182, 0.9743527721}, logistic},
		// The classes have 16, 9 and 5 rows. Their balanced weights are 30/(3·16), 30/(3·9) and 30/(3·5).
		{"3", "logistic", "often=0.625,mid=1.1111111111111112,rare=2", "probability_rare", []float64{3.430952879e-05, 0.006428092165, 0.5621355182, 0.9743527721}, logistic},
	} {
		flags := map[string][]string{"svc": {"--C", "2", "--kernel", "gaussian(sigma=1.5)", "--tol", "1e-10"}, "logistic": {"--lambda", "0.5"}}[c.learner]
		mercer(0, append([]string{"fit", "--quiet", "--no-standardize", "--learner", c.learner, "--target", "k", "--class-weight", c.weights, "--model", "@m.st", "@" + c.table + ".csv"}, flags...)...)
		flag := "--decision"
		if c.column != "decision" {
			flag = "--proba"
		}
		text, _ := mercer(0, "predict", "--quiet", flag, "--model", "@m.st", "@t.csv")
		for i, v := range columnOf(t, text, c.column) {
			if !(math.Abs(v-c.want[i]) <= c.tol) {
				t.Errorf("%s %s %s: row %d: %v, scikit-learn has %v", c.learner, c.weights, c.column, i+1, v, c.want[i])
			}
		}
	}
}

// TestWeightsFollowTheirRows checks that every row has its own weight in each fold, round and split. The outliers of
// size 1e3 have the weight 1e-12. With the weight of another row, an outlier would change the result.
func TestWeightsFollowTheirRows(t *testing.T) {
	folder := t.TempDir()
	var b strings.Builder
	b.WriteString("x,w,y\n")
	r := rand.New(rand.NewPCG(2, 9))
	for range 80 {
		x, y, w := r.NormFloat64(), 0.0, "1"
		if y = 3*x + 1; r.IntN(4) == 0 {
			y, w = y+1e3*r.NormFloat64(), "1e-12"
		}
		fmt.Fprintf(&b, "%v,%s,%v\n", x, w, y)
	}
	if err := os.WriteFile(filepath.Join(folder, "t.csv"), []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	mercer := commandIn(t, folder)
	// The squared errors of the outliers have a sum below 2e7. With the weight 1e-12 they change the root mean
	// square by less than √(2e-5) < 5e-3.
	const bound = 5e-3
	checkSmall := func(name string, v any) {
		t.Helper()
		if f, ok := v.(float64); !ok || !(f <= bound) {
			t.Errorf("%s: %v", name, v)
		}
	}
	report := func(args ...string) (r map[string]any) {
		t.Helper()
		text, _ := mercer(0, append(args, "--quiet", "--json", "--target", "y", "--weight", "w", "@t.csv")...)
		if err := json.Unmarshal([]byte(text), &r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	rmse := func(r any) any { return r.(map[string]any)["measures"].([]any)[0].(map[string]any)["mean"] }
	ridge := []string{"--learner", "ridge", "--lambda", "1e-9"}
	checkSmall("cv", rmse(report(append([]string{"cv", "--repeats", "2"}, ridge...)...)))
	boot := report(append([]string{"bootstrap", "--rounds", "5"}, ridge...)...)
	checkSmall("bootstrap", rmse(boot))
	checkSmall("bootstrap, out of the bag", boot["error_out_of_bag"])
	checkSmall("bootstrap, learned", boot["error_apparent"])
	for _, l := range report("compare", "--learner", "ridge,bayes-ridge", "--lambda", "1e-9")["learners"].([]any) {
		checkSmall("compare", rmse(l))
	}
	for _, flags := range [][]string{{"--learner", "lasso", "--grid", "lambda=1e-9"}, {"--by", "kfold", "--kernel", "linear()"}, {"--kernel", "linear()"}} {
		checkSmall("tune "+strings.Join(flags, " "), report(append([]string{"tune"}, flags...)...)["score"])
	}
	fit := report(append([]string{"fit", "--model", "@m.st", "--test-fraction", "0.3"}, ridge...)...)
	checkSmall("fit", fit["test"].(map[string]any)["rmse"])
}

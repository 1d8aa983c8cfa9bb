package main

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners/validate"
	"github.com/mercer-go/mercer/testdata"
)

// TestGridScoresDoNotDependOnThreads checks that the scores of a grid have the same bits for any number of threads,
// even if a fit takes more than its thread's part of --memory.
func TestGridScoresDoNotDependOnThreads(t *testing.T) {
	l := gramLab{t, t.TempDir()}
	if err := os.CopyFS(l.folder, testdata.FS); err != nil {
		t.Fatal(err)
	}
	grid := func(threads string, args ...string) (scores [][2]float64) {
		t.Helper()
		var report struct{ Grid []gridTrial }
		args = append([]string{"tune", "--quiet", "--json", "--threads", threads, "--target", "target", "--folds", "3"}, args...)
		if err := json.Unmarshal([]byte(l.mercer(args...)), &report); err != nil {
			t.Fatal(err)
		}
		for _, trial := range report.Grid {
			if trial.Score == nil {
				t.Fatalf("%s threads: %s", threads, trial.Error)
			}
			scores = append(scores, [2]float64{*trial.Score, trial.SD})
		}
		return scores
	}
	for _, args := range required.Subset(3, [][]string{
		{"--learner", "lasso", l.path("diabetes.csv")},
		{"--learner", "svr", "--kernel", "gaussian(sigma=3)", "--vary", "", "--grid", "C=0.1,10", l.path("diabetes.csv")},
		{"--learner", "logistic", "--grid", "lambda=1,10", l.path("digits.csv")},
		{"--learner", "kernel-knn", "--grid", "k=1,5", l.path("breast_cancer.csv")},
		// For 379 rows, K and its factor take 1 MiB each.
		{"--learner", "kernel-logistic", "--kernel", "gaussian(sigma=3)", "--vary", "", "--grid", "lambda=1,10", "--memory", "4MB", l.path("breast_cancer.csv")},
	}) {
		want := grid("1", args...)
		for _, threads := range []string{"2", "8"} {
			if got := grid(threads, args...); !slices.Equal(got, want) {
				t.Errorf("%v: %s threads: %v, one: %v", args, threads, got, want)
			}
		}
	}
}

// TestGridAgainstScikitLearn compares the scores of a grid with scikit-learn's GridSearchCV on the
// same folds. Both standardize each training set by itself.
func TestGridAgainstScikitLearn(t *testing.T) {
	required.Slow(t, "sklearn", "starts Python")
	l := gramLab{t, t.TempDir()}
	if err := os.CopyFS(l.folder, testdata.FS); err != nil {
		t.Fatal(err)
	}
	trials := func(args ...string) (scores []float64) {
		t.Helper()
		var report struct{ Grid []gridTrial }
		if err := json.Unmarshal([]byte(l.mercer(append([]string{"tune", "--quiet", "--json", "--target", "target"}, args...)...)), &report); err != nil {
			t.Fatal(err)
		}
		for _, trial := range report.Grid {
			scores = append(scores, *trial.Score)
		}
		return scores
	}
	svc := trials("--learner", "svc", "--kernel", "gaussian(sigma=2)", "--kernel", "gaussian(sigma=8)", "--vary", "", "--grid", "C=0.1,1,10", "--grid", "tol=1e-7", l.path("breast_cancer.csv"))
	lasso := trials("--learner", "lasso", "--lambdas", "10,100,1000", "--grid", "tol=1e-12", l.path("diabetes.csv"))
	folds := func(table string, labels bool) (fold []int) {
		text, err := os.ReadFile(l.path(table))
		if err != nil {
			t.Fatal(err)
		}
		rows := strings.Split(strings.TrimSpace(string(text)), "\n")[1:]
		var strata []int
		for _, row := range rows {
			if labels && strings.HasSuffix(row, ",benign") {
				strata = append(strata, 0)
			} else if labels {
				strata = append(strata, 1)
			}
		}
		fold, err = validate.Folds(len(rows), 5, strata, 1)
		if err != nil {
			t.Fatal(err)
		}
		return fold
	}
	input, err := json.Marshal(map[string]any{"svc": folds("breast_cancer.csv", true), "lasso": folds("diabetes.csv", false)})
	if err != nil {
		t.Fatal(err)
	}
	// For lasso, λ = 2n·alpha, where n is the size of the training set of the fold.
	cmd := exec.Command(required.SKLearn(t), "-c", `
import json, sys, numpy as np, pandas as pd
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.svm import SVC
from sklearn.linear_model import Lasso
folds = json.loads(sys.argv[1])
def load(f):
    d = pd.read_csv(f); return d.drop(columns="target").values.astype(float), d["target"].values
X, y = load("breast_cancer.csv"); fold = np.array(folds["svc"]); sizes = np.bincount(fold)
g = GridSearchCV(make_pipeline(StandardScaler(), SVC(tol=1e-7)), {"svc__gamma": [1/8, 1/128], "svc__C": [.1, 1, 10]}, cv=PredefinedSplit(fold)).fit(X, y)
wrong = {}
for i, p in enumerate(g.cv_results_["params"]):
    wrong[(p["svc__gamma"], p["svc__C"])] = sum(sizes[k] * (1 - g.cv_results_["split%d_test_score" % k][i]) for k in range(5)) / len(y)
svc = [wrong[(s, c)] for s in (1/8, 1/128) for c in (.1, 1, 10)]
X, y = load("diabetes.csv"); fold = np.array(folds["lasso"]); lasso = []
for l in (10, 100, 1000):
    e = 0
    for k in range(5):
        a, b = fold != k, fold == k
        m = make_pipeline(StandardScaler(), Lasso(alpha=l/(2*a.sum()), tol=1e-12, max_iter=100000)).fit(X[a], y[a])
        e += ((m.predict(X[b]) - y[b])**2).sum()
    lasso.append((e/len(y))**.5)
print(json.dumps({"svc": svc, "lasso": lasso}))
`, string(input))
	cmd.Dir, cmd.Stderr = l.folder, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]float64
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	// svc: the decision values of the programs differ by about 1e-7. No row is so close to a boundary, so that both
	// make the same errors. lasso: the fitted values of each program differ from the optimum by at most the square
	// root of the duality gap, ≤ 1e-6‖y‖. The root mean square of y is 170. The factor 10 is for held-out rows.
	for name, c := range map[string]struct {
		got []float64
		tol float64
	}{"svc": {svc, 569 * 0x1p-52}, "lasso": {lasso, 10 * 2e-6 * 170}} {
		if len(c.got) != len(want[name]) || len(c.got) == 0 {
			t.Fatalf("%s: %d scores of %d", name, len(c.got), len(want[name]))
		}
		for i, w := range want[name] {
			t.Logf("%s: setting %d: %v, scikit-learn %v", name, i+1, c.got[i], w)
			if math.Abs(c.got[i]-w) > c.tol {
				t.Errorf("%s: setting %d: %v, scikit-learn %v", name, i+1, c.got[i], w)
			}
		}
	}
}

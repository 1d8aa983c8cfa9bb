package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/testdata"
)

// gramLab runs the command in a folder with two kinds of tables: the features of some rows, and the values of the
// Gaussian kernel for these rows, which the test computes.
type gramLab struct {
	*testing.T
	folder string
}

func (l gramLab) path(name string) string { return filepath.Join(l.folder, name) }

func (l gramLab) mercer(args ...string) string {
	l.Helper()
	var out, errs bytes.Buffer
	if code := run(args, strings.NewReader(""), &out, &errs); code != 0 {
		l.Fatalf("mercer %s: %d: %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}

func (l gramLab) write(name string, head []string, rows [][]float64) {
	l.Helper()
	text := strings.Join(head, ",") + "\n"
	for _, row := range rows {
		cells := make([]string, len(row))
		for j, v := range row {
			cells[j] = exact(v)
		}
		text += strings.Join(cells, ",") + "\n"
	}
	if err := os.WriteFile(l.path(name), []byte(text), 0o666); err != nil {
		l.Fatal(err)
	}
}

// numbers reads the columns of a CSV text.
func (l gramLab) numbers(text string) (rows [][]float64) {
	l.Helper()
	records, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil {
		l.Fatal(err)
	}
	for _, record := range records[1:] {
		var row []float64
		for _, cell := range record {
			v, err := strconv.ParseFloat(cell, 64)
			if err != nil {
				l.Fatal(err)
			}
			row = append(row, v)
		}
		rows = append(rows, row)
	}
	return rows
}

// newGramLab writes the features of n training rows and of m other rows to x.csv and xnew.csv, and their kernel
// values with the training rows to gram.csv and cross.csv.
func newGramLab(t *testing.T, n, m int) gramLab {
	const seed = 71
	t.Logf("seed %d", seed)
	l := gramLab{t, t.TempDir()}
	r := rand.New(rand.NewPCG(seed, 0))
	points := make([][]float64, n+m)
	for i := range points {
		a, b := r.NormFloat64(), r.NormFloat64()
		points[i] = []float64{a, b, math.Sin(a) + b*b + 0.1*r.NormFloat64()}
	}
	head, cross := []string{"y"}, make([][]float64, n+m)
	for j := range n {
		head = append(head, fmt.Sprintf("k%d", j))
	}
	for i, p := range points {
		cross[i] = []float64{p[2]}
		for _, q := range points[:n] {
			cross[i] = append(cross[i], math.Exp(-(math.Pow(p[0]-q[0], 2)+math.Pow(p[1]-q[1], 2))/8))
		}
	}
	l.write("x.csv", []string{"a", "b", "y"}, points[:n])
	l.write("xnew.csv", []string{"a", "b", "y"}, points[n:])
	l.write("gram.csv", head, cross[:n])
	l.write("cross.csv", head, cross[n:])
	return l
}

// TestGramFileGivesTheResultsOfItsKernel checks that a file with the Gram matrix of a kernel gives the same results
// as that kernel on the features, for a fit, for held-out rows, in cross-validation and in the bootstrap.
func TestGramFileGivesTheResultsOfItsKernel(t *testing.T) {
	const n, m, lambda = 40, 12, 0.5
	l := newGramLab(t, n, m)
	// Two computed n × n Gram matrices differ in the norm by at most n times some units of roundoff. The error of α is
	// larger by the condition number of K + λI, at most n/λ + 1. The factor 100 allows for larger errors of scores.
	const tol = 100 * 64 * n * (n/lambda + 1) * 0x1p-53
	checkEqual := func(name string, a, b float64) {
		t.Helper()
		if !(math.Abs(a-b) <= tol) {
			t.Errorf("%s: %v of the features, %v of the Gram matrix", name, a, b)
		}
	}
	features := []string{"--kernel", "gaussian(sigma=2)", "--no-standardize"}
	values := []string{"--kernel", "precomputed()"}
	common := []string{"--quiet", "--lambda", exact(lambda), "--target", "y"}
	run := func(command string, kernel []string, table string, extra ...string) string {
		return l.mercer(append(append(append([]string{command}, kernel...), extra...), l.path(table))...)
	}

	run("fit", features, "x.csv", append(common, "--model", l.path("x.st"))...)
	run("fit", values, "gram.csv", append(common, "--model", l.path("gram.st"))...)
	for _, stream := range []string{"--stream=false", "--stream"} {
		a := l.numbers(l.mercer("predict", stream, "--quiet", "--model", l.path("x.st"), l.path("xnew.csv")))
		b := l.numbers(l.mercer("predict", stream, "--quiet", "--model", l.path("gram.st"), l.path("cross.csv")))
		if len(a) != m || len(b) != m {
			t.Fatalf("%d and %d predictions of %d", len(a), len(b), m)
		}
		for i := range a {
			checkEqual("prediction", a[i][0], b[i][0])
		}
	}

	scores := func(text string) (list []float64) {
		var report struct {
			Measures []struct{ Scores []float64 }
			Test     map[string]any
			OutOfBag float64 `json:"error_out_of_bag"`
			E632     float64 `json:"error_632"`
		}
		if err := json.Unmarshal([]byte(text), &report); err != nil {
			t.Fatal(err)
		}
		for _, m := range report.Measures {
			list = append(list, m.Scores...)
		}
		for _, name := range []string{"rmse", "mae", "r2"} {
			if v, ok := report.Test[name].(float64); ok {
				list = append(list, v)
			}
		}
		return append(list, report.OutOfBag, report.E632)
	}
	for command, extra := range map[string][]string{
		"cv":        append(common, "--json", "--folds", "5"),
		"bootstrap": append(common, "--json", "--rounds", "4"),
		"fit":       append(common, "--json", "--test-fraction", "0.3", "--model", l.path("t.st")),
		"tune":      {"--quiet", "--target", "y", "--json", "--test-fraction", "0.3", "--lambdas", exact(lambda), "--vary", "", "--no-intercept"},
	} {
		a, b := scores(run(command, features, "x.csv", extra...)), scores(run(command, values, "gram.csv", extra...))
		if len(a) != len(b) || len(a) < 5 {
			t.Fatalf("%s: %d and %d scores", command, len(a), len(b))
		}
		for i := range a {
			checkEqual(command, a[i], b[i])
		}
	}
	// A model fitted to some of the rows finds the columns of these rows in the whole table by the names of the columns.
	run("fit", features, "x.csv", append(common, "--test-fraction", "0.3", "--model", l.path("x.st"))...)
	run("fit", values, "gram.csv", append(common, "--test-fraction", "0.3", "--model", l.path("gram.st"))...)
	a := l.numbers(l.mercer("predict", "--quiet", "--model", l.path("x.st"), l.path("x.csv")))
	b := l.numbers(l.mercer("predict", "--quiet", "--model", l.path("gram.st"), l.path("gram.csv")))
	for i := range a {
		checkEqual("prediction of a row, held out or not", a[i][0], b[i][0])
	}
}

// TestModelOfPrecomputedPointsStillPredicts checks the predictions of a stored model of an earlier version, whose
// training table had n+2 columns: the index of a row, its kernel value with itself, and its kernel values with the
// n training rows. The solution for K = [2 1 0; 1 2 1; 0 1 2] and y = (1, 2, 4) is f = (5, 13, 19)/7.
func TestModelOfPrecomputedPointsStillPredicts(t *testing.T) {
	l := gramLab{t, t.TempDir()}
	l.write("points.csv", []string{"id", "self", "k1", "k2", "k3"}, [][]float64{{0, 2, 2, 1, 0}, {1, 2, 1, 2, 1}, {2, 2, 0, 1, 2}, {-1, 9, 1, 2, 1}})
	got := l.numbers(l.mercer("predict", "--model", "testdata/points.safetensors", l.path("points.csv")))
	for i, want := range []float64{5. / 7, 13. / 7, 19. / 7, 13. / 7} {
		if math.Abs(got[i][0]-want) > 64*0x1p-53 {
			t.Errorf("row %d: %v, want %v", i+1, got[i][0], want)
		}
	}
}

// TestGramFilesAgainstScikitLearn compares predictions with those of scikit-learn, for an n × n Gram matrix in the
// fit and the m × n kernel values of other rows.
func TestGramFilesAgainstScikitLearn(t *testing.T) {
	required.Slow(t, "sklearn", "starts Python")
	l := gramLab{t, t.TempDir()}
	cmd := exec.Command(required.SKLearn(t), "-c", `
import json, numpy as np
from sklearn.svm import SVC
from sklearn.kernel_ridge import KernelRidge
r = np.random.default_rng(72)
X = r.normal(size=(90, 3)); y = np.sin(X[:, 0]) + X[:, 1]; c = (X[:, 0] + X[:, 1]**2 > 0.7).astype(int)
K = np.exp(-((X[:, None] - X[None])**2).sum(-1) / 4)
tr, te = np.arange(60), np.arange(60, 90)
for name, t in [("ridge", y), ("svc", c)]:
    np.savez(name + "_train.npz", X=K[np.ix_(tr, tr)], y=t[tr])
    np.savez(name + "_test.npz", X=K[np.ix_(te, tr)], y=t[te])
    head = ",".join(["y"] + ["k%d" % i for i in tr])
    np.savetxt(name + "_train.csv", np.c_[t[tr], K[np.ix_(tr, tr)]], "%.17g", ",", header=head, comments="")
    np.savetxt(name + "_test.csv", np.c_[t[te], K[np.ix_(te, tr)]], "%.17g", ",", header=head, comments="")
a = KernelRidge(kernel="precomputed", alpha=0.1).fit(K[np.ix_(tr, tr)], y[tr])
b = SVC(kernel="precomputed", C=2, tol=1e-10).fit(K[np.ix_(tr, tr)], c[tr])
print(json.dumps({"ridge": a.predict(K[np.ix_(te, tr)]).tolist(), "svc": b.decision_function(K[np.ix_(te, tr)]).tolist()}))
`)
	cmd.Dir, cmd.Stderr = l.folder, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var want map[string][]float64
	if err := json.Unmarshal(out, &want); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		column int // index of the column in the output of predict
		tol    float64
		fit    []string
		add    []string
	}{
		// The condition number of K + λI is at most n/λ + 1 = 601, and |y| < 4.
		{"ridge", 0, 4 * 60 * 601 * 0x1p-52, []string{"--lambda", "0.1", "--no-intercept"}, nil},
		// The optimality conditions are violated by less than 1e-9, which changes f by at most 1e-9 times a factor
		// that is below 1000 for this K. A wrong row or column would change f by 0.1.
		{"svc", 1, 1e-6, []string{"--learner", "svc", "--C", "2", "--tol", "1e-9"}, []string{"--decision"}},
	} {
		for _, form := range []string{".csv", ".npz"} {
			l.mercer(append([]string{"fit", "--quiet", "--kernel", "precomputed()", "--target", "y", "--model", l.path("m.st"), l.path(c.name + "_train" + form)}, c.fit...)...)
			got := l.numbers(l.mercer(append([]string{"predict", "--quiet", "--model", l.path("m.st"), l.path(c.name + "_test" + form)}, c.add...)...))
			if len(got) != len(want[c.name]) {
				t.Fatalf("%s: %d predictions of %d", c.name, len(got), len(want[c.name]))
			}
			for i, w := range want[c.name] {
				if math.Abs(got[i][c.column]-w) > c.tol {
					t.Errorf("%s%s: row %d: %v, scikit-learn %v", c.name, form, i+1, got[i][c.column], w)
				}
			}
		}
	}
}

// TestGramCommandAgainstScikitLearn compares the kernel, distances, centered kernel values and principal components
// of mercer gram with scikit-learn, and the inner products of approximate features with the kernel.
func TestGramCommandAgainstScikitLearn(t *testing.T) {
	required.Slow(t, "sklearn", "starts Python")
	l := gramLab{t, t.TempDir()}
	if err := os.CopyFS(l.folder, testdata.FS); err != nil {
		t.Fatal(err)
	}
	data := l.path("diabetes.csv")
	text, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(l.path("new.csv"), []byte(strings.Join(strings.Split(string(text), "\n")[:31], "\n")+"\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for out, args := range map[string][]string{
		"k.npy": nil, "d.npy": {"--distances"}, "p.npy": {"--center", "--features", "principal", "--count", "5"},
		"cross_d.npy": {"--distances", "--train", data}, "cross_c.npy": {"--center", "--train", data},
		"cross_p.npy": {"--center", "--features", "principal", "--count", "5", "--train", data},
		"fourier.npy": {"--features", "fourier", "--count", "20000"},
		"nystrom.npy": {"--features", "nystrom", "--count", "30", "--kernel", "linear()"},
		"exact.npy":   {"--features", "exact", "--kernel", "polynomial(degree=2,c=1)"},
	} {
		input := data
		if strings.HasPrefix(out, "cross") {
			input = l.path("new.csv")
		}
		l.mercer(append([]string{"gram", "--quiet", "--kernel", "gaussian(sigma=3)", "--target", "target", "--out", l.path(out), input}, args...)...)
	}
	var eigen struct {
		Eigenvalues         []float64
		EffectiveDimensions []gramDimension `json:"effective_dimensions"`
	}
	report := l.mercer("gram", "--quiet", "--json", "--kernel", "gaussian(sigma=3)", "--target", "target", "--lambda", "0.1,10", data)
	if err := os.WriteFile(l.path("eigen.json"), []byte(report), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(report), &eigen); err != nil || len(eigen.Eigenvalues) != 442 || len(eigen.EffectiveDimensions) != 2 {
		t.Fatalf("%v: %s", err, report)
	}
	// Each result has two numbers: its largest difference from scikit-learn, and a bound. Sums in float64 differ by
	// at most n roundings of the largest value. For principal components, the bound is divided by the gap between
	// the eigenvalues, and for distances by the smallest distance. For m Fourier features it is 6√(1/m), six
	// standard deviations.
	cmd := exec.Command(required.SKLearn(t), "-c", `
import json, numpy as np, pandas as pd
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import KernelCenterer
from sklearn.decomposition import KernelPCA
X = pd.read_csv("diabetes.csv").drop(columns="target").values.astype(float)
X = (X - X.mean(0)) / X.std(0)
n = len(X); eps = n * 2.0**-52
K = rbf_kernel(X, gamma=1/18); D = np.sqrt(np.maximum(0, 2 - 2*K)); off = ~np.eye(n, dtype=bool)
C = KernelCenterer().fit(K); P = KernelPCA(5, kernel="precomputed").fit(K)
w = np.linalg.eigvalsh(K); c = np.linalg.eigvalsh(C.transform(K))[::-1]; gap = -np.diff(c[:6]).min()
load = lambda name: np.load(name + ".npy")
size = lambda A, B: float(abs(A - B).max())
e = json.load(open("eigen.json"))
print(json.dumps({
 "gram": [size(load("k"), K), eps],
 "distances": [size(load("d"), D), eps / D[off].min()],
 "distances to others": [size(load("cross_d")[D[:30] > 0], D[:30][D[:30] > 0]), eps / D[off].min()],
 "centered others": [size(load("cross_c"), C.transform(K[:30])), 4 * eps],
 "components": [size(abs(load("p")), abs(P.transform(K))), eps * c[0]**1.5 / gap],
 "components of others": [size(abs(load("cross_p")), abs(P.transform(K[:30]))), eps * c[0]**1.5 / gap],
 "exact": [size(load("exact") @ load("exact").T, (X @ X.T + 1)**2), eps * ((X**2).sum(1).max() + 1)**2],
 "nystrom of full rank": [size(load("nystrom") @ load("nystrom").T, X @ X.T), eps * 442 * (X**2).sum(1).max()],
 "fourier": [size(load("fourier") @ load("fourier").T, K), 6 / 20000**.5],
 "eigenvalues": [size(np.array(e["eigenvalues"])[::-1], w), eps * w[-1]],
 "effective dimension": [size(np.array([v["value"] for v in e["effective_dimensions"]]), np.array([(w / (w + l)).sum() for l in (.1, 10)])), n * eps * w[-1] / .1],
}))
`)
	cmd.Dir, cmd.Stderr = l.folder, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var differences map[string][2]float64
	if err := json.Unmarshal(out, &differences); err != nil || len(differences) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	for name, d := range differences {
		t.Logf("%s: %.1e, allowed %.1e", name, d[0], d[1])
		if !(d[0] <= d[1]) {
			t.Errorf("%s: differs from scikit-learn by %v, more than %v", name, d[0], d[1])
		}
	}
}

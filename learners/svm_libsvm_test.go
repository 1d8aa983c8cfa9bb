package learners_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// libsvm runs svm-train of LIBSVM (Debian: libsvm-tools) and returns the sum of the minimal primal objectives over
// the pairs of classes, and the number of support vectors.
func libsvm(t *testing.T, x, y *mat.Dense, args ...string) (objective float64, support int) {
	t.Helper()
	var data strings.Builder
	n, d := x.Dims()
	for i := range n {
		fmt.Fprintf(&data, "%.17g", y.At(i, 0))
		for j := range d {
			fmt.Fprintf(&data, " %d:%.17g", j+1, x.At(i, j))
		}
		data.WriteByte('\n')
	}
	folder := t.TempDir()
	file := filepath.Join(folder, "data")
	if err := os.WriteFile(file, []byte(data.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("svm-train", append(args, file, filepath.Join(folder, "model"))...).CombinedOutput()
	if err != nil {
		t.Fatalf("svm-train: %v\n%s", err, out)
	}
	total := -1
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "obj = "); ok {
			text, _, _ = strings.Cut(text, ",")
			v, err := strconv.ParseFloat(text, 64)
			if err != nil {
				t.Fatal(err)
			}
			objective -= v // LIBSVM minimizes the negative of the dual
		}
		var numSupport, numBound int
		if _, err := fmt.Sscanf(line, "nSV = %d, nBSV = %d", &numSupport, &numBound); err == nil {
			support = numSupport
		}
		if _, err := fmt.Sscanf(line, "Total nSV = %d", &numSupport); err == nil {
			total = numSupport
		}
	}
	if total >= 0 {
		support = total
	}
	return objective, support
}

// bundled returns a table of testdata with standardized features.
func bundled(t *testing.T, name string, classes bool) (x, y *mat.Dense) {
	t.Helper()
	data, err := dataset.ReadCSV(filepath.Join("..", "testdata", name), nil)
	if err != nil {
		t.Fatal(err)
	}
	x, y, _ = learnertest.Encode(t, data, dataset.Rules{Targets: []string{"target"}, Labels: classes, Standardize: true})
	return x, y
}

// TestAgainstLIBSVM compares the objectives with those of LIBSVM, for two classes, ten classes, regression and
// novelty. The numbers of support vectors must agree, except for vectors whose α is nearly 0.
func TestAgainstLIBSVM(t *testing.T) {
	required.Slow(t, "libsvm", "runs LIBSVM")
	path := required.Program(t, "libsvm", "svm-train")
	if text, _ := exec.Command(path).CombinedOutput(); !bytes.Contains(text, []byte("Usage: svm-train")) {
		required.SkipOrFail(t, "libsvm", path, "is not LIBSVM's")
	}
	dev := backendtest.Device(t, "cpu")
	cancer, kinds := bundled(t, "breast_cancer.csv", true)
	digits, digit := bundled(t, "digits.csv", true)
	table, score := bundled(t, "diabetes.csv", false)
	score.Scale(1./50, score)
	k := kernels.Gaussian{Sigma: 4} // corresponds to gamma = 1/32
	fit := func(m learners.Model, err error) learners.Model {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	const gamma = "0.03125"
	const tol = 1e-8 // tolerance of both programs
	for _, test := range []struct {
		name string
		fit  func() learners.Model
		x, y *mat.Dense
		c    float64 // upper bound of a dual variable of one binary machine, times the number of dual variables for each sample
		args []string
	}{
		{"svc, breast_cancer, C 1", func() learners.Model {
			return fit(learners.SVC{Kernel: k, C: 1, Tol: tol}.Fit(t.Context(), dev, cancer, kinds, learners.Options{}))
		}, cancer, kinds, 1, []string{"-s", "0", "-c", "1", "-g", gamma}},
		{"svc, breast_cancer, C 100", func() learners.Model {
			return fit(learners.SVC{Kernel: k, C: 100, Tol: tol}.Fit(t.Context(), dev, cancer, kinds, learners.Options{}))
		}, cancer, kinds, 100, []string{"-s", "0", "-c", "100", "-g", gamma}},
		{"svc, linear, breast_cancer", func() learners.Model {
			return fit(learners.SVC{Kernel: kernels.Linear{}, C: 0.1, Tol: tol}.Fit(t.Context(), dev, cancer, kinds, learners.Options{}))
		}, cancer, kinds, 0.1, []string{"-s", "0", "-t", "0", "-c", "0.1"}},
		{"svc, digits, ten classes", func() learners.Model {
			return fit(learners.SVC{Kernel: k, C: 10, Tol: tol}.Fit(t.Context(), dev, digits, digit, learners.Options{}))
		}, digits, digit, 10 * 9, []string{"-s", "0", "-c", "10", "-g", gamma}},
		{"svr, diabetes", func() learners.Model {
			return fit(learners.SVR{Kernel: k, C: 2, Epsilon: 0.2, Tol: tol, NoStandardize: true}.Fit(t.Context(), dev, table, score, learners.Options{}))
		}, table, score, 2 * 2, []string{"-s", "3", "-c", "2", "-p", "0.2", "-g", gamma}},
		{"one-class-svm, diabetes", func() learners.Model {
			return fit(learners.OneClassSVM{Kernel: k, Nu: 0.2, Tol: tol}.Fit(t.Context(), dev, table, nil, learners.Options{}))
		}, table, score, 1, []string{"-s", "2", "-n", "0.2", "-g", gamma}},
	} {
		want, vectors := libsvm(t, test.x, test.y, append(test.args, "-e", fmt.Sprint(tol))...)
		m := test.fit()
		got, count := fact(t, m, "objective").(float64), fact(t, m, "support vectors").(int)
		t.Logf("%s: objective %.8g, LIBSVM %.8g (%.1g of it); %d support vectors, LIBSVM %d", test.name, got, want, math.Abs(got-want)/math.Abs(want), count, vectors)
		// If the optimality conditions are violated by tol, the objective exceeds its minimum by at most tol·ΣC/2.
		// LIBSVM's float32 kernel values change it by at most 2⁻²⁵ max|K| (Σ|β|)², and it prints six decimals.
		n, _ := test.x.Dims()
		largest := 1.0
		if strings.Contains(test.name, "linear") {
			for i := range n {
				row := test.x.RawRowView(i)
				largest = max(largest, floats.Dot(row, row))
			}
		}
		coef := mat.Norm(learners.PartsOf(m).Coef, 1) // a bound on Σ|β| of each machine
		if cols := learners.PartsOf(m).Coef.RawMatrix().Cols; cols > 1 {
			coef *= float64(cols + 1)
		}
		bound := tol*test.c*float64(n) + 0x1p-25*largest*coef*coef + 1e-6
		t.Logf("the objectives may differ by %.2g", bound)
		checkClose(t, test.name+": objective", got, want, bound)
		// An α may be 0 in one program and slightly positive in the other.
		checkClose(t, test.name+": support vectors", float64(count), float64(vectors), 2+0.01*float64(vectors))
	}
}

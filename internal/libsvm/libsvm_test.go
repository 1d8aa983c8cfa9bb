package libsvm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/internal/svm"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/learners"
)

// writeRows writes n rows with the given labels to a LIBSVM file. A third of the d features are not 0.
func writeRows(t *testing.T, name string, n, d int, labels []int, seed uint64) string {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	var b strings.Builder
	for i := range n {
		label := labels[i%len(labels)]
		fmt.Fprint(&b, label)
		for j := range d {
			if r.IntN(3) == 0 || j == d-1 && i == 0 {
				fmt.Fprintf(&b, " %d:%.4f", j+1, 0.3*float64(label%4)+r.NormFloat64())
			}
		}
		b.WriteString("\n")
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// libsvmOutput is what testdata/decide.py prints for a model.
type libsvmOutput struct {
	Labels    []int
	Values    [][]float64
	Predicted []float64

	Probabilities [][]float64
}

// TestAgainstLIBSVM compares models of all types and kernels, dense and sparse, with LIBSVM's own library.
func TestAgainstLIBSVM(t *testing.T) {
	train := required.Program(t, "libsvm", "svm-train")
	dev := backendtest.Device(t, "cpu")
	for _, c := range []struct {
		name   string
		d      int
		labels []int
	}{{"two classes", 5, []int{1, -1}}, {"two classes in order", 5, []int{-1, 1}}, {"three classes, sparse", 90, []int{7, -2, 10}}} {
		t.Run(c.name, func(t *testing.T) {
			data, rows := writeRows(t, "train", 60, c.d, c.labels, 1), writeRows(t, "test", 30, c.d, c.labels, 2)
			folder := t.TempDir()
			var paths []string
			for kind := range 5 {
				for kernel := range 4 {
					path := filepath.Join(folder, fmt.Sprintf("type%d-kernel%d", kind, kernel))
					args := []string{"-q", "-s", fmt.Sprint(kind), "-t", fmt.Sprint(kernel), "-g", "0.07", "-r", "0.3", "-n", "0.4", data, path}
					if kind == 0 && kernel == 2 {
						args = append([]string{"-b", "1"}, args...)
					}
					if out, err := exec.Command(train, args...).CombinedOutput(); err != nil {
						t.Fatalf("svm-train %v: %v\n%s", args, err, out)
					}
					paths = append(paths, path)
				}
			}
			table, err := dataset.ReadLIBSVM(rows, nil)
			if err != nil {
				t.Fatal(err)
			}
			out, err := exec.Command(required.Python, append([]string{filepath.Join("testdata", "decide.py"), rows}, paths...)...).Output()
			if err != nil {
				required.SkipOrFail(t, "libsvm", err)
			}
			lines := json.NewDecoder(bytes.NewReader(out))
			for _, path := range paths {
				var want libsvmOutput
				if err := lines.Decode(&want); err != nil {
					t.Fatal(err)
				}
				text, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				b, err := Read(bytes.NewReader(text))
				if err != nil {
					t.Fatalf("%s: %v", filepath.Base(path), err)
				}
				compare(t, dev, filepath.Base(path), b, table, want)
			}
		})
	}
}

// compare checks the decision values, and the predicted classes except where the votes are tied.
func compare(t *testing.T, dev backend.Device, name string, b modelfile.Bundle, table *dataset.Table, want libsvmOutput) {
	t.Helper()
	if err := modelfile.Write(io.Discard, b); err != nil {
		t.Fatal(err)
	}
	features, err := b.Features(t.Context(), table, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	x := mat.DenseCopyOf(features)
	predicted, err := b.Model.Predict(t.Context(), dev, features)
	if err != nil {
		t.Fatal(err)
	}
	values := predicted
	m, classes := b.Model.(*learners.SVCModel)
	if classes {
		if values, err = m.PairwiseDecision(t.Context(), dev, features); err != nil {
			t.Fatal(err)
		}
	}
	for i, row := range want.Values {
		for machine, w := range inOrder(row, want.Labels) {
			if got, bound := values.At(i, machine), rounding(b.Model, x.RawRowView(i), machine); !(math.Abs(got-w) <= bound) {
				t.Fatalf("%s: row %d: value %d is %v, want %v ± %.2g", name, i, machine, got, w, bound)
			}
		}
		if k := len(want.Labels); k == 2 && b.Encoder.Labels[int(predicted.At(i, 0))] != fmt.Sprint(want.Predicted[i]) {
			t.Errorf("%s: row %d: the label is %s, want %v", name, i, b.Encoder.Labels[int(predicted.At(i, 0))], want.Predicted[i])
		}
	}
	if _, has := learners.As[learners.Prober](b.Model); has != (len(want.Probabilities[0]) > 0) {
		t.Fatalf("%s has probabilities: %v", name, has)
	} else if has {
		probabilities(t, dev, m, features, want)
	}
}

// inOrder returns the decision values in the order of the classes of svc, or one value without labels.
func inOrder(row []float64, labels []int) []float64 {
	if len(labels) == 0 {
		return row
	}
	k, sorted, list := len(labels), slices.Sorted(slices.Values(labels)), make([]float64, len(row))
	index := 0
	for a := range k {
		for c := a + 1; c < k; c++ {
			w, p, q := -row[index], slices.Index(sorted, labels[a]), slices.Index(sorted, labels[c])
			if p > q {
				w, p, q = -w, q, p
			}
			list[svm.At(p, q, k)] = w
			index++
		}
	}
	return list
}

// rounding bounds the difference of two computed sums of m terms α k(x, z) by 2(m + d + 50)·2⁻⁵³ Σ|α k(x, z)|. A
// kernel value is a sum of d terms, and 50 covers the errors of exp, tanh and powers at the values of this test.
func rounding(m learners.Model, x []float64, machine int) float64 {
	parts := learners.PartsOf(m)
	coef, points := parts.Machines(), mat.DenseCopyOf(parts.Points)
	n, d := points.Dims()
	sum := math.Abs(parts.Intercept[machine])
	for i := range n {
		sum += math.Abs(coef.At(i, machine) * kernels.Eval(parts.Kernel, x, points.RawRowView(i)))
	}
	return float64(2*(n+d+50)) * 0x1p-53 * sum
}

// probabilities compares the probabilities of K classes with LIBSVM's. Both programs iterate until the residuals of K
// equations are below 0.005/K, but they have the classes in different orders.
func probabilities(t *testing.T, dev backend.Device, m *learners.SVCModel, x mat.Matrix, want libsvmOutput) {
	t.Helper()
	p, err := m.Proba(t.Context(), dev, x)
	if err != nil {
		t.Fatal(err)
	}
	sorted := slices.Sorted(slices.Values(want.Labels))
	for i, row := range want.Probabilities {
		for c, w := range row {
			if got := p.At(i, slices.Index(sorted, want.Labels[c])); !(math.Abs(got-w) <= 0.005) {
				t.Errorf("row %d: the probability of class %d is %v, LIBSVM has %v", i, want.Labels[c], got, w)
			}
		}
	}
}

const validFile = `svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 2
rho 0.25
label 1 -1
nr_sv 1 1
SV
1 1:0.5 3:1
-1 2:0.5
`

// FuzzRead checks that Read returns an error or a model that can be saved.
func FuzzRead(f *testing.F) {
	f.Add(validFile)
	f.Add(strings.NewReplacer("nr_class 2", "nr_class 3", "rho 0.25", "rho 1 2 3", "1 -1\n", "5 7 6\n", "nr_sv 1 1", "nr_sv 1 0 1", "1 1:", "1 0 1:", "-1 2:", "1 -1 2:").Replace(validFile) + "probA 1\n")
	f.Add(strings.NewReplacer("c_svc", "one_class", "rbf", "sigmoid\ncoef0 1", "label 1 -1\nnr_sv 1 1\n", "").Replace(validFile))
	f.Fuzz(func(t *testing.T, text string) {
		b, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		if err := modelfile.Write(io.Discard, b); err != nil {
			t.Error(err)
		}
	})
}

func TestReadRefuses(t *testing.T) {
	if _, err := Read(strings.NewReader(validFile)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{validFile, "", "is incomplete"},
		{validFile, "age,sex\n1,2\n", "is not a model of LIBSVM"},
		{"c_svc", "c_svm", `the svm_type "c_svm" is not supported`},
		{"rbf", "precomputed", `the kernel_type "precomputed" is not supported`},
		{"gamma 0.5\n", "", "has no gamma"},
		{"gamma 0.5", "gamma 0", "sigma"},
		{"gamma 0.5", "gamma 1 2", "gamma: has 2 numbers, not 1"},
		{"nr_class 2", "nr_class 2.5", "nr_class must be an integer"},
		{"nr_class 2", "nr_class 3", "line 10: \"1:0.5\" is not a finite number"},
		{"total_sv 2", "total_sv 3", "is incomplete: it has 2 support vectors, and total_sv is 3"},
		{"nr_sv 1 1", "nr_sv 1 2", "nr_sv does not add up"},
		{"nr_sv 1 1", "nr_sv -1 3", "nr_sv does not add up"},
		{"rho 0.25", "rho x", `rho: "x" is not a finite number`},
		{"label 1 -1", "label 1 1", "label: label 1 occurs twice"},
		{"3:1\n", "1:1\n", `line 10: "1:1": the index must be an integer from 2 to`},
		{"3:1\n", "3\n", `line 10: "3": "" is not a finite number`},
		{"2:0.5", "2:NaN", "is not a finite number"},
		{"1 1:0.5 3:1\n-1 2:0.5", "1\n-1", "has no support vectors with features"},
		{"rbf\ngamma 0.5", "polynomial\ndegree 2\ngamma 0.5\ncoef0 -1", "coef0 ≥ 0"},
	} {
		text := strings.Replace(validFile, c.old, c.new, 1)
		if _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: got %v, want %q", c.new, c.old, err, c.want)
		}
	}
}

package onnx

import (
	"bufio"
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

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/gram"
	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
)

// A job is one model that onnxruntime evaluates.
type job struct {
	Model   string     `json:"model"`
	Type    string     `json:"type"`
	Rows    int        `json:"rows"`
	Columns int        `json:"columns"`
	X       []*float64 `json:"x"`
}

// An output is a tensor that onnxruntime returned.
type output struct {
	Dims []int           `json:"dims"`
	Data json.RawMessage `json:"data"`
}

// newJob writes the model in b to a temporary file.
func newJob(t *testing.T, b modelfile.Bundle, x mat.Matrix, single bool) job {
	t.Helper()
	f, err := os.CreateTemp(t.TempDir(), "*.onnx")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := Write(f, b, single); err != nil {
		t.Fatal(err)
	}
	n, d := x.Dims()
	j := job{Model: f.Name(), Type: "float64", Rows: n, Columns: d}
	if single {
		j.Type = "float32"
	}
	for i := range n {
		for _, v := range mat.Row(nil, i, x) {
			if math.IsNaN(v) {
				j.X = append(j.X, nil)
			} else {
				j.X = append(j.X, &v)
			}
		}
	}
	return j
}

// evaluate returns the outputs of the jobs in onnxruntime.
func evaluate(t *testing.T, jobs []job) []map[string]output {
	t.Helper()
	cmd := required.ONNXRuntime(t, filepath.Join("testdata", "run.js"))
	text, err := json.Marshal(jobs)
	if err != nil {
		t.Fatal(err)
	}
	var errs bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(text), &errs
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	var list []map[string]output
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<30)
	for lines.Scan() {
		var failure struct{ Error string }
		if json.Unmarshal(lines.Bytes(), &failure) == nil && failure.Error != "" {
			list = append(list, nil)
			t.Errorf("model %d: %s", len(list), failure.Error)
			continue
		}
		var outputs map[string]output
		if err := json.Unmarshal(lines.Bytes(), &outputs); err != nil {
			t.Fatal(err)
		}
		list = append(list, outputs)
	}
	if len(list) != len(jobs) {
		t.Fatalf("onnxruntime evaluated %d of %d models: %s", len(list), len(jobs), errs.String())
	}
	return list
}

// difference returns the largest difference of a tensor from want, divided by the largest absolute value of want.
func difference(t *testing.T, o output, want *mat.Dense) float64 {
	t.Helper()
	n, cols := want.Dims()
	var got []*float64
	if err := json.Unmarshal(o.Data, &got); err != nil || !slices.Equal(o.Dims, []int{n, cols}) {
		t.Fatalf("dims %v, want %d×%d: %v", o.Dims, n, cols, err)
	}
	maxDiff, scale := 0.0, 0.0
	for i, g := range got {
		w := want.At(i/cols, i%cols)
		scale = max(scale, math.Abs(w))
		if g == nil {
			maxDiff = math.Inf(1)
		} else {
			maxDiff = max(maxDiff, math.Abs(*g-w))
		}
	}
	if scale == 0 {
		return maxDiff
	}
	return maxDiff / scale
}

// samples returns n rows of d features ≥ 0, a target and three classes that depend on the features.
func samples(n, d int, seed uint64) (x, y, classes *mat.Dense) {
	r := rand.New(rand.NewPCG(seed, 0))
	x, y, classes = mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		sum := 0.0
		for j := range d {
			v := r.Float64()
			x.Set(i, j, v)
			sum += v * float64(j+1)
		}
		y.Set(i, 0, sum+0.3*r.NormFloat64())
		classes.Set(i, 0, math.Floor(3*(sum/float64(d*(d+1)/2)*0.8+0.2*r.Float64())))
	}
	return x, y, classes
}

// chosenKernels are kernels with parameters that suit samples of three features, and compositions.
var chosenKernels = []string{
	"linear()", "polynomial(degree=3,c=1)", "gaussian(sigma=0.5)", "gaussian(sigma=[0.5,1,2])", "laplacian(sigma=1)", "exponential(sigma=1)", "matern32(sigma=1)", "matern52(sigma=1)",
	"rationalquadratic(a=1.5,sigma=1)", "cosine(theta=1)", "columns([0,2],gaussian(sigma=1))", "columns([0,2],cosine(theta=1))*columns(1,chi2())+columns(1-2,sinc())", "periodic(period=3,sigma=1)", "cosineseries(l=4)", "sinc()", "chi2(gamma=1)", "cosinesimilarity()", "sigmoid(a=0.3,c=0.1)", "exp(0.3*linear())", "normalize(polynomial(degree=2,c=1))",
	"2*gaussian(sigma=1)+linear()*matern32(sigma=2)+0.5", "laplacian(sigma=1)*matern52(sigma=1)",
}

type compared struct {
	learner, kernel, name string
	model                 learners.Model
	maxDiff               [2]float64 // largest differences in float64 and in float32
}

// everyModel fits every learner with each kernel for all its tasks. fourier-ridge and nystrom-ridge may refuse kernels.
func everyModel(t *testing.T, dev backend.Device, kernels []string, x, y, classes *mat.Dense) (list []*compared) {
	twoClasses := mat.DenseCopyOf(classes)
	twoClasses.Apply(func(_, _ int, v float64) float64 { return min(v, 1) }, twoClasses)
	targets := map[learners.Task][]*mat.Dense{learners.Regression: {y}, learners.Novelty: {y}, learners.Classification: {twoClasses, classes}}
	for _, d := range learners.Catalogue() {
		list = append(list, fitted(t, dev, d, kernels, x, targets)...)
	}
	return list
}

func fitted(t *testing.T, dev backend.Device, d learners.Description, kernels []string, x *mat.Dense, targets map[learners.Task][]*mat.Dense) (list []*compared) {
	params := map[string]string{}
	for name, text := range map[string]string{"lambda": "10", "optimize": "false"} {
		if p, ok := d.Parameter(name); ok && p.Default != text && !strings.HasPrefix(d.Name, "sv") {
			params[name] = text
		}
	}
	if _, ok := d.Parameter("kernel"); !ok {
		kernels = []string{""}
	}
	for _, k := range kernels {
		if k != "" {
			params["kernel"] = k
		}
		if d.Name == "svc" {
			params["probability"] = strconv.FormatBool(strings.HasPrefix(k, "gaussian"))
		}
		for _, task := range d.Tasks {
			fit, err := d.Make(task, params)
			if err != nil {
				t.Fatal(err)
			}
			for i, target := range targets[task] {
				m, err := fit(t.Context(), dev, x, target, learners.Options{})
				if err != nil {
					if d.Name != "fourier-ridge" && d.Name != "nystrom-ridge" {
						t.Errorf("%s with %s: %v", d.Name, k, err)
					}
					continue
				}
				list = append(list, &compared{learner: d.Name, kernel: k, name: fmt.Sprintf("%s, %s, %s, target %d", d.Name, k, task, i), model: m})
			}
		}
	}
	return list
}

// allKernels returns every kernel that a model on vectors can have. TestGramMatrix tests precomputed.
func allKernels() []string {
	list, text := chosenKernels, strings.Join(chosenKernels, " ")
	for _, d := range kernels.Catalogue() {
		if d.Name != "precomputed" && d.Name != "matern" && !strings.Contains(text, d.Name+"(") {
			list = append(list, d.Example)
		}
	}
	return list
}

// TestAgainstONNXRuntime compares the outputs of every learner with every kernel with the outputs of package
// learners. Relative to the largest output, the differences must be at most 1e-12 in float64 and 1e-5 in float32.
// If MERCER_ONNX is set, the test writes the page of the differences.
func TestAgainstONNXRuntime(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	list := allKernels()
	if testing.Short() {
		list = []string{"gaussian(sigma=[0.5,1,2])"}
	}
	x, y, classes := samples(60, 3, 1)
	rows, _, _ := samples(20, 3, 2)
	rows.SetRow(0, x.RawRowView(0))
	models := everyModel(t, dev, list, x, y, classes)
	var jobs []job
	for _, m := range models {
		jobs = append(jobs, newJob(t, modelfile.Bundle{Model: m.model}, rows, false), newJob(t, modelfile.Bundle{Model: m.model}, rows, true))
	}
	results := evaluate(t, jobs)
	for i, m := range models {
		for p, limit := range []float64{1e-12, 1e-5} {
			if m.maxDiff[p] = largest(t, dev, m.name, m.model, rows, results[2*i+p]); !(m.maxDiff[p] <= limit) {
				t.Errorf("%s in float%d: the outputs differ by %.2g", m.name, 64>>p, m.maxDiff[p])
			}
		}
	}
	if path := os.Getenv("MERCER_ONNX"); path != "" {
		if err := os.WriteFile(path, []byte(page(models, list)), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// largest returns the largest difference of the outputs, and checks the labels.
func largest(t *testing.T, dev backend.Device, name string, m learners.Model, x *mat.Dense, got map[string]output) float64 {
	t.Helper()
	if got == nil {
		return math.Inf(1)
	}
	predicted, err := m.Predict(t.Context(), dev, x)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	c, ok := m.(learners.Classifier)
	if !ok {
		return difference(t, got["prediction"], predicted)
	}
	decision, err := c.Decision(t.Context(), dev, x)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	maxDiff := difference(t, got["decision"], decision)
	if p, ok := learners.As[learners.Prober](m); ok {
		// kernel-vote may refuse probabilities, because its kernel may have negative values.
		if want, err := p.Proba(t.Context(), dev, x); err == nil {
			maxDiff = max(maxDiff, difference(t, got["probabilities"], want))
		} else if m.Learner() != "kernel-vote" {
			t.Errorf("%s: %v", name, err)
		}
	}
	var labels []string
	if err := json.Unmarshal(got["label"].Data, &labels); err != nil || len(labels) != predicted.RawMatrix().Rows {
		t.Fatalf("%s: %d labels: %v", name, len(labels), err)
	}
	for i, label := range labels {
		if want := c.Classes().Names[c.Classes().Index(predicted.At(i, 0))]; label != want {
			t.Errorf("%s: the label of row %d is %q, want %q", name, i, label, want)
		}
	}
	return maxDiff
}

// table has a category, a constant column, a missing cell and two targets.
const table = `size,kind,flat,price,age
1,oak,0.1,2,10
2,ash,0.1,4.5,20
,oak,0.1,5.5,30
400000,pine,0.1,8,45
400001,pine,0.1,7,41
`

// TestPreparedColumns checks that the graph prepares raw columns as the encoder does.
func TestPreparedColumns(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	tab, err := dataset.ReadCSV("-", strings.NewReader(table))
	if err != nil {
		t.Fatal(err)
	}
	x, y, e := learnertest.Encode(t, tab, dataset.Rules{Targets: []string{"price", "age"}, Standardize: true})
	raw := mat.DenseCopyOf(x) // the columns size, kind=ash, kind=oak, kind=pine, flat
	for i, size := range []float64{1, 2, math.NaN(), 400000, 400001} {
		raw.Set(i, 0, size)
		raw.Set(i, 4, 0.1)
	}
	var jobs []job
	var want []*mat.Dense
	for _, k := range []kernels.Kernel{kernels.Linear{}, kernels.Matern{Nu: 0.5, Sigma: 1.3}} {
		m, err := learners.KernelRidge{Kernel: k, Lambda: 1}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := m.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		jobs, want = append(jobs, newJob(t, modelfile.Bundle{Model: m, Encoder: e}, raw, false)), append(want, f)
	}
	for i, got := range evaluate(t, jobs) {
		if d := difference(t, got["prediction"], want[i]); !(d <= 1e-12) {
			t.Errorf("model %d differs by %.2g", i, d)
		}
	}
}

// TestOneColumn checks a model of one feature whose scale is not a float32 number, which onnxruntime must not round.
func TestOneColumn(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	tab, err := dataset.ReadCSV("-", strings.NewReader("x,y\n0.1,1\n0.5,2\n0.7,2.5\n"))
	if err != nil {
		t.Fatal(err)
	}
	x, y, e := learnertest.Encode(t, tab, dataset.Rules{Targets: []string{"y"}, Standardize: true})
	m, err := learners.Ridge{Lambda: 0.1}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want, err := m.Predict(t.Context(), dev, x)
	if err != nil {
		t.Fatal(err)
	}
	got := evaluate(t, []job{newJob(t, modelfile.Bundle{Model: m, Encoder: e}, mat.NewDense(3, 1, []float64{0.1, 0.5, 0.7}), false)})
	if d := difference(t, got[0]["prediction"], want); !(d <= 1e-14) {
		t.Errorf("the prediction differs by %.2g", d)
	}
}

// TestGramMatrix checks models that were fitted to a Gram matrix. Among training rows with equal distances, the
// neighbors must be those with the smallest indices.
func TestGramMatrix(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, _, classes := samples(30, 2, 5)
	x.SetRow(1, x.RawRowView(0)) // equal samples, with different classes
	classes.Set(0, 0, 0)
	classes.Set(1, 0, 1)
	k := mat.NewDense(30, 30, nil)
	for i := range 30 {
		for j := range 30 {
			k.Set(i, j, kernels.Eval(kernels.Gaussian{Sigma: 0.3}, x.RawRowView(i), x.RawRowView(j)))
		}
	}
	host, err := gram.TrainingPoints(k)
	if err != nil {
		t.Fatal(err)
	}
	points := mat.NewDense(host.Rows, host.Cols, host.Data)
	svc, err := learners.SVC{Kernel: kernels.Precomputed{}}.Fit(t.Context(), dev, points, classes, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	weights := slices.Repeat([]float64{0.7}, 30)
	knn, err := learners.KernelKNN{Kernel: kernels.Precomputed{}, K: 1}.FitClasses(t.Context(), dev, points, classes, learners.Options{Weights: weights})
	if err != nil {
		t.Fatal(err)
	}
	got := evaluate(t, []job{newJob(t, modelfile.Bundle{Model: svc}, k, false), newJob(t, modelfile.Bundle{Model: knn}, k, false)})
	for i, m := range []learners.Model{svc, knn} {
		if d := largest(t, dev, m.Learner(), m, points, got[i]); !(d <= 1e-12) {
			t.Errorf("%s differs by %.2g", m.Learner(), d)
		}
	}
}

// TestSparseSupport checks that linear models of sparse samples have weights, and other models dense support vectors.
func TestSparseSupport(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	r := rand.New(rand.NewPCG(3, 0))
	x, classes := mat.NewDense(40, 100, nil), mat.NewDense(40, 1, nil)
	for i := range 40 {
		for range 8 {
			x.Set(i, r.IntN(90), r.NormFloat64()) // the last features are always 0
		}
		classes.Set(i, 0, float64(i%3))
	}
	var jobs []job
	var models []learners.Model
	for _, k := range []kernels.Kernel{kernels.Linear{}, kernels.Gaussian{Sigma: 3}} {
		m, err := learners.SVC{Kernel: k}.Fit(t.Context(), dev, backend.Host[float64]{Rows: 40, Cols: 100, Stride: 100, Data: x.RawMatrix().Data}.CSR(), classes, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		jobs, models = append(jobs, newJob(t, modelfile.Bundle{Model: m}, x, false)), append(models, m)
	}
	sizes := make([]int64, 2)
	for i, got := range evaluate(t, jobs) {
		if d := largest(t, dev, fmt.Sprint("model ", i), models[i], x, got); !(d <= 1e-12) {
			t.Errorf("model %d differs by %.2g", i, d)
		}
		info, err := os.Stat(jobs[i].Model)
		if err != nil {
			t.Fatal(err)
		}
		sizes[i] = info.Size()
	}
	if limit := int64(8*(100*3) + 8*100 + 2000); sizes[0] > limit || sizes[1] < limit { // 8 bytes for each of 100·3 weights and of 100 indices of features
		t.Errorf("the files have %v bytes", sizes)
	}
}

func TestRefusals(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := mat.NewDense(3, 1, []float64{1e60, 2e60, -1e60}), mat.NewDense(3, 1, []float64{1, 2, 3})
	overflowing, err := learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1e60}, Lambda: 1}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	tab, err := dataset.ReadCSV("-", strings.NewReader("t,y\nab,1\nabc,2\nb,3\n"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := dataset.Learn(tab, dataset.Rules{Targets: []string{"y"}, Text: "t"})
	if err != nil {
		t.Fatal(err)
	}
	kernel, err := objects.Parse("spectrum(length=1)")
	if err != nil {
		t.Fatal(err)
	}
	px, trained, err := modelfile.TrainingFeatures(t.Context(), e, tab, kernel, objects.Options{})
	if err != nil {
		t.Fatal(err)
	}
	texts, err := learners.KernelRidge{Kernel: kernels.Precomputed{}, Lambda: 1}.Fit(t.Context(), dev, px, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for want, b := range map[string]modelfile.Bundle{
		"onnx: there is no model":          {},
		"exceeds the range of float32":     {Model: overflowing},
		"onnx: the model takes texts, but": {Model: texts, Encoder: e, Objects: trained},
		"onnx: the model is not fitted":    {Model: &learners.RidgeModel{}},
	} {
		var file bytes.Buffer
		if _, err := Write(&file, b, true); err == nil || !strings.Contains(err.Error(), want) || file.Len() > 0 {
			t.Errorf("got %v and %d bytes, want %q", err, file.Len(), want)
		}
	}
}

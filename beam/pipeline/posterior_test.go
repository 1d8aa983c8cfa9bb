package pipeline

import (
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// uncertain is a model with a posterior.
type uncertain interface {
	learners.Sampler
	learners.Uncertain
	Scale() []float64
	LogLikelihood() float64
}

// encoded returns the encoded rows of a file.
func encoded(t *testing.T, e *dataset.Encoder, file string) (x, y *mat.Dense) {
	t.Helper()
	table, err := dataset.Read(file, nil)
	if err == nil {
		x, err = e.Features(table)
	}
	if err == nil {
		y, err = e.Targets(table)
	}
	if err != nil {
		t.Fatal(err)
	}
	return x, y
}

// inMemory fits the learner of p to x and y in memory, with the centers of the model b if it has any.
func inMemory(t *testing.T, p Params, b modelfile.Bundle, x, y mat.Matrix) uncertain {
	t.Helper()
	dev := backendtest.Device(t, "cpu", backend.Config{})
	state := b.Model.State()
	lambda := state.Params["lambda"].(float64)
	var kernel kernels.Kernel
	var err error
	if text, ok := state.Params["kernel"].(string); ok {
		if kernel, err = kernels.Parse(text); err != nil {
			t.Fatal(err)
		}
	}
	var m uncertain
	switch p.Learner {
	case "nystrom-ridge":
		c := state.Arrays["centers"]
		m, err = learners.NystromRidge{Kernel: kernel, Lambda: lambda, NoIntercept: !p.Intercept, Tol: 1e-11, Std: true, UnitScale: p.UnitScale}.Fit(t.Context(), dev, x, y, learners.Options{Centers: mat.NewDense(c.Rows, c.Cols, c.Data)})
	case "fourier-ridge":
		m, err = learners.FourierRidge{Kernel: kernel, Lambda: lambda, NoIntercept: !p.Intercept, Features: p.Functions, Seed: p.Seed, Tol: 1e-11, Std: true, UnitScale: p.UnitScale}.Fit(t.Context(), dev, x, y, learners.Options{})
	case "ridge":
		m, err = learners.Ridge{Lambda: lambda, NoIntercept: !p.Intercept, Std: true, UnitScale: p.UnitScale}.Fit(t.Context(), dev, x, y, learners.Options{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// alike fails the test unless the arrays, the likelihoods, and, at the rows of x, the predictions, variances and
// draws of the models agree. tol is relative to the largest number of each kind.
func alike(t *testing.T, label string, got, want uncertain, x mat.Matrix, tol float64) {
	t.Helper()
	dev := backendtest.Device(t, "cpu", backend.Config{})
	checkNear(t, label, arrays(got), arrays(want), tol)
	list := func(m uncertain) map[string]backend.Host[float64] {
		f, err := m.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		v, err := m.Variance(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		draws, err := m.Sample(t.Context(), dev, x, 2, 5)
		if err != nil {
			t.Fatal(err)
		}
		numbers := []float64{m.LogLikelihood()}
		if bounded, ok := m.(*learners.NystromRidgeModel); ok {
			numbers = append(numbers, bounded.LikelihoodBound())
		}
		return map[string]backend.Host[float64]{
			"predictions": hostOf(f), "variances": hostOf(v), "draw 1": hostOf(draws[0]), "draw 2": hostOf(draws[1]),
			"likelihood": {Rows: 1, Cols: len(numbers), Stride: len(numbers), Data: numbers},
		}
	}
	checkNear(t, label, list(got), list(want), tol)
}

// posteriorCases are fits whose equations have condition numbers below 1e4, so that the models must agree to 1e-10.
var posteriorCases = []Params{
	{Learner: "nystrom-ridge", Kernels: []string{"gaussian(sigma=0.5)"}, Functions: 60, Lambdas: []float64{1}},
	{Learner: "nystrom-ridge", Kernels: []string{"2 * matern32(sigma=1)"}, Functions: 40, Lambdas: []float64{3}, Intercept: true, UnitScale: true},
	{Learner: "fourier-ridge", Kernels: []string{"gaussian(sigma=1)"}, Functions: 50, Lambdas: []float64{1}, Intercept: true},
	{Learner: "fourier-ridge", Kernels: []string{"matern32(sigma=2)"}, Functions: 40, Lambdas: []float64{0.5}},
	{Learner: "ridge", Lambdas: []float64{2}, Intercept: true, NoStandardize: true},
}

// TestPosteriorIsThatInMemory compares a model with Std, read from its file, with a fit in memory to the same
// encoded rows. The fits have no, one, or two measuring passes.
func TestPosteriorIsThatInMemory(t *testing.T) {
	const seed, n = 20261201, 5000
	t.Logf("seed %d", seed)
	header, rows := lines(seed, n, false)
	for i := range rows { // a second target, and a constant third target
		rows[i] += fmt.Sprintf(",%v,7.25", math.Sqrt(float64(i%50)))
	}
	header += ",z,one"
	glob := write(t, header, rows, 1700, 1)
	file := strings.ReplaceAll(write(t, header, rows), "*", "part-000")
	for i, p := range posteriorCases {
		for _, passes := range []int{0, 1, 2} {
			t.Run(fmt.Sprint(i, p.Learner, p.Kernels, passes), func(t *testing.T) {
				p.Inputs, p.Targets, p.Seed, p.Passes, p.PieceBytes, p.Tol, p.Std, p.Workers = []string{glob}, []string{"y", "z", "one"}, 9, passes, 30000, 1e-9, true, passes
				b, result := fit(t, p)
				x, y := encoded(t, b.Encoder, file)
				want := inMemory(t, p, b, x, y)
				points := x.Slice(0, 30, 0, x.RawMatrix().Cols)
				alike(t, "beam", b.Model.(uncertain), want, points, 1e-10)
				if got := result.Report.LogEvidence; got == nil || math.Abs(*got-want.LogLikelihood()) > 1e-10*math.Abs(want.LogLikelihood()) {
					t.Errorf("the report has the log evidence %v, want %v", got, want.LogLikelihood())
				}
				if nystrom, ok := want.(*learners.NystromRidgeModel); ok != (result.Report.LogEvidenceBound != nil) || ok && math.Abs(*result.Report.LogEvidenceBound-nystrom.LikelihoodBound()) > 1e-10*math.Abs(nystrom.LikelihoodBound()) {
					t.Errorf("the report has the bound %v", result.Report.LogEvidenceBound)
				}
			})
		}
	}
}

// TestModelsOfBeamAreUpdated checks that appending rows to a model of a pipeline, removing these rows, and merging
// the models of two runs give the models of fits in memory.
func TestModelsOfBeamAreUpdated(t *testing.T) {
	const seed, n = 20261202, 1500
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	rows := make([]string, n)
	for i := range rows {
		a, b, c, d := r.NormFloat64(), r.NormFloat64(), r.NormFloat64(), r.NormFloat64()
		rows[i] = fmt.Sprintf("%v,%v,%v,%v,%v", a, b, c, d, 2+math.Sin(a)+b*c+0.1*r.NormFloat64())
	}
	files := make([]string, 3) // all rows, the first part, and the last part
	for i, fileRows := range [][]string{rows, rows[:n-300], rows[n-300:]} {
		files[i] = strings.ReplaceAll(write(t, "a,b,c,d,y", fileRows), "*", "part-000")
	}
	dev := backendtest.Device(t, "cpu", backend.Config{})
	for i, p := range posteriorCases {
		t.Run(fmt.Sprint(i, p.Learner, p.Kernels), func(t *testing.T) {
			p.Targets, p.Seed, p.Passes, p.Tol, p.Std, p.NoStandardize = []string{"y"}, 9, 1, 1e-9, true, true
			p.Inputs = files[1:2]
			b, _ := fit(t, p)
			fitted := b.Model.(uncertain)
			x, y := encoded(t, b.Encoder, files[0])
			newX, newY := encoded(t, b.Encoder, files[2])
			points := x.Slice(0, 30, 0, 4)
			want := inMemory(t, p, b, x, y)
			// The tolerance allows for the rounding errors of the likelihood, of Append and of Remove. The condition
			// numbers are below 1e4, and n·2⁻⁵³ is 2e-13.
			const tol = 1e-8
			appended, err := learners.Append(t.Context(), dev, fitted, newX, newY, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			alike(t, "appended", appended, want, points, tol)
			removed, err := learners.Remove(t.Context(), dev, appended, newX, newY, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			alike(t, "removed", removed, fitted, points, tol)
			p.Inputs = files[2:]
			otherBundle, _ := fit(t, p)
			if p.Learner == "nystrom-ridge" { // the runs choose different centers
				if _, err := learners.Merge(t.Context(), dev, fitted, otherBundle.Model); err == nil || !strings.Contains(err.Error(), "centers") {
					t.Errorf("models with different centers: %v", err)
				}
				otherBundle.Model = inMemory(t, p, b, newX, newY)
			}
			merged, err := learners.Merge(t.Context(), dev, fitted, otherBundle.Model)
			if err != nil {
				t.Fatal(err)
			}
			alike(t, "merged", merged, want, points, tol)
		})
	}
}

// TestPredictWithBeamsPosterior checks that mercer predict prints standard deviations and intervals of a model of
// the pipeline.
func TestPredictWithBeamsPosterior(t *testing.T) {
	required.Slow(t, "cases", "builds the command mercer")
	dir := t.TempDir()
	command := filepath.Join(dir, "mercer")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", command, "./cmd/mercer")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	header, rows := lines(20261203, 400, false)
	glob := write(t, header, rows)
	file := strings.ReplaceAll(glob, "*", "part-000")
	p := posteriorCases[1]
	p.Inputs, p.Targets, p.Seed, p.Passes, p.Std, p.Model = []string{glob}, []string{"y"}, 9, 1, true, filepath.Join(dir, "m.safetensors")
	b, _ := fit(t, p)
	c := exec.CommandContext(t.Context(), command, "predict", "--std", "--interval", "0.9", "--model", p.Model, file)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		t.Fatal(err)
	}
	table, err := csv.NewReader(strings.NewReader(string(out))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	x, y := encoded(t, b.Encoder, file)
	m := inMemory(t, p, b, x, y)
	dev := backendtest.Device(t, "cpu", backend.Config{})
	f, err := m.Predict(t.Context(), dev, x)
	if err != nil {
		t.Fatal(err)
	}
	v, err := m.Variance(t.Context(), dev, x)
	if err != nil {
		t.Fatal(err)
	}
	const quantile = 1.6448536269514722 // the 0.95-quantile of the standard normal distribution
	t.Log(table[0])
	if len(table) != len(rows)+1 || len(table[0]) != 4 {
		t.Fatalf("%d rows with the columns %q", len(table), table[0])
	}
	for i, row := range table[1:] {
		mean, std := f.At(i, 0), math.Sqrt(v.At(i, 0))
		for j, want := range []float64{mean, std, mean - quantile*std, mean + quantile*std} {
			got, err := strconv.ParseFloat(row[j], 64)
			if err != nil || math.Abs(got-want) > 1e-10*(math.Abs(mean)+std) {
				t.Fatalf("row %d: %s is %q, want %v", i+1, table[0][j], row[j], want)
			}
		}
	}
}

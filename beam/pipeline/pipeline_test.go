package pipeline

import (
	"flag"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/beam/sdks/v2/go/pkg/beam"
	_ "github.com/apache/beam/sdks/v2/go/pkg/beam/runners/prism"
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

func TestMain(m *testing.M) {
	flag.Parse()
	beam.Init()
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError + 1})))
	dir, err := os.MkdirTemp("", "mercer-pipeline-*") // for each run Beam creates a file in TMPDIR that it does not remove
	if err != nil {
		panic(err)
	}
	os.Setenv("TMPDIR", dir)
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// fit runs p on Prism and returns the model that the run wrote.
func fit(t *testing.T, p Params) (modelfile.Bundle, *Ran) {
	t.Helper()
	if p.Model == "" {
		p.Model = filepath.Join(t.TempDir(), "m.safetensors")
	}
	result, err := Run(t.Context(), "prism", p, 1)
	if err != nil {
		t.Fatal(err)
	}
	b, err := modelfile.Load(p.Model)
	if err != nil {
		t.Fatal(err)
	}
	return b, result
}

// lines returns a header and the rows of a table. The target y is a class if classify is set, otherwise a number.
func lines(seed uint64, n int, classify bool) (header string, rows []string) {
	r := rand.New(rand.NewPCG(seed, 1))
	for range n {
		a, b, c := r.NormFloat64(), 100+5*r.NormFloat64(), []string{"red", "green", "blue"}[r.IntN(3)]
		y := math.Sin(a) + 0.1*(b-100) + float64(len(c)) + 0.1*r.NormFloat64()
		text := fmt.Sprint(y)
		if classify {
			text = []string{"low", "middle", "high"}[max(0, min(2, int(y-2.5)))]
		}
		rows = append(rows, fmt.Sprintf("%v,%v,%s,%s", a, b, c, text))
	}
	return "a,b,c,y", rows
}

// write writes the rows to files and returns a glob for the files. File k has counts[k] rows; a last file has the
// remaining rows.
func write(t *testing.T, header string, rows []string, counts ...int) string {
	t.Helper()
	dir := t.TempDir()
	for k := 0; len(rows) > 0; k++ {
		n := len(rows)
		if k < len(counts) {
			n = min(n, counts[k])
		}
		text := header + "\n" + strings.Join(rows[:n], "\n") + "\n"
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("part-%03d.csv", k)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		rows = rows[n:]
	}
	return filepath.Join(dir, "*.csv")
}

// arrays returns the arrays of a model.
func arrays(m learners.Model) map[string]backend.Host[float64] { return m.State().Arrays }

// checkNear fails the test if arrays differ by more than tol times their largest element.
func checkNear(t *testing.T, label string, got, want map[string]backend.Host[float64], tol float64) {
	t.Helper()
	for name, w := range want {
		g := got[name]
		if g.Rows != w.Rows || g.Cols != w.Cols {
			t.Errorf("%s: %s is %d×%d, want %d×%d", label, name, g.Rows, g.Cols, w.Rows, w.Cols)
			continue
		}
		maxAbs, maxDiff := 0.0, 0.0
		for i := range w.Rows {
			for j, v := range w.Row(i) {
				maxAbs, maxDiff = max(maxAbs, math.Abs(v)), max(maxDiff, math.Abs(v-g.Row(i)[j]))
			}
		}
		if !(maxDiff <= tol*maxAbs) {
			t.Errorf("%s: %s differs by %.3g of %.3g, more than %.3g of it", label, name, maxDiff, maxAbs, tol)
		}
	}
}

// fitLocally fits the rows of the file in memory, with its own encoder and the centers or the seed of the model in
// b.
func fitLocally(t *testing.T, p Params, file string, b modelfile.Bundle) (learners.Model, *dataset.Encoder) {
	t.Helper()
	table, err := dataset.Read(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	enc, err := dataset.Learn(table, dataset.Rules{Targets: p.Targets, Labels: p.Classify, Standardize: !p.NoStandardize})
	if err != nil {
		t.Fatal(err)
	}
	mx, err := enc.Features(table)
	if err != nil {
		t.Fatal(err)
	}
	my, err := enc.Targets(table)
	if err != nil {
		t.Fatal(err)
	}
	x, y := hostOf(mx), signs(hostOf(my), enc.Labels)
	dev := backendtest.Device(t, "cpu", backend.Config{})
	state := b.Model.State()
	lambda := state.Params["lambda"].(float64)
	data, par := solvers.InMemory(x, y, nil, nil), solvers.StreamParams{Method: solvers.Normal, Tol: 1e-9}
	var kernel kernels.Kernel
	if text, ok := state.Params["kernel"].(string); ok {
		if kernel, err = kernels.Parse(text); err != nil {
			t.Fatal(err)
		}
	}
	row := func(v []float64) backend.Host[float64] {
		return backend.Host[float64]{Rows: 1, Cols: len(v), Stride: len(v), Data: v}
	}
	want := map[string]backend.Host[float64]{}
	switch p.Learner {
	case "nystrom-ridge":
		res, err := solvers.SolveNystrom(t.Context(), dev, solvers.NystromProblem{Kernel: kernel, Data: data, Centers: state.Arrays["centers"], Lambda: lambda, Intercept: p.Intercept}, par)
		if err != nil {
			t.Fatal(err)
		}
		want["beta"], want["intercept"], want["centers"] = res.Beta, row(res.Intercept), state.Arrays["centers"]
	case "fourier-ridge":
		res, err := solvers.SolveFourier(t.Context(), dev, solvers.FourierProblem{Kernel: kernel, Data: data, Count: p.Functions, Seed: p.Seed, Lambda: lambda, Intercept: p.Intercept}, par)
		if err != nil {
			t.Fatal(err)
		}
		half := res.Frequencies.Rows
		want["frequencies"], want["intercept"] = res.Frequencies, row(res.Intercept)
		want["cosines"], want["sines"] = res.Beta.View(0, 0, half, y.Cols), res.Beta.View(half, 0, half, y.Cols)
	case "ridge":
		res, err := solvers.Solve(t.Context(), dev, solvers.Problem{Kernel: kernels.Linear{}, X: x, Y: y, Lambda: lambda, Intercept: p.Intercept}, solvers.Params{Method: solvers.Primal, Tol: 1e-12})
		if err != nil {
			t.Fatal(err)
		}
		want["coef"], want["intercept"] = res.Coef, row(res.Intercept)
	}
	clone := learners.State{Learner: p.Learner, Params: state.Params, Arrays: map[string]backend.Host[float64]{}}
	for name, a := range state.Arrays {
		clone.Arrays[name] = a
	}
	for name, a := range want {
		clone.Arrays[name] = a
	}
	m, err := learners.Restore(clone)
	if err != nil {
		t.Fatal(err)
	}
	return m, enc
}

// TestModelIsTheSingleMachines checks that the models agree with the models of one machine to 1e-10, for several
// divisions into files and pieces and for another order of the rows.
func TestModelIsTheSingleMachines(t *testing.T) {
	const seed, n = 20261127, 6000
	t.Logf("seed %d", seed)
	for _, p := range []Params{
		{Learner: "ridge", Lambdas: []float64{3}, Intercept: true, NoStandardize: true},
		{Learner: "nystrom-ridge", Kernels: []string{"gaussian(sigma=0.3)"}, Functions: 50, Lambdas: []float64{1}},
		// The condition number is above 1e8 here. Rounding errors dominate the coefficients, but not the predictions.
		{Learner: "nystrom-ridge", Kernels: []string{"gaussian(sigma=1)"}, Functions: 60, Lambdas: []float64{30}, Intercept: true},
		{Learner: "fourier-ridge", Classify: true, Kernels: []string{"matern32(sigma=2)"}, Functions: 60, Lambdas: []float64{1}, Intercept: true},
	} {
		t.Run(fmt.Sprint(p.Learner, p.Kernels), func(t *testing.T) {
			header, rows := lines(seed, n, p.Classify)
			oneFile := write(t, header, rows)
			shuffled := append([]string(nil), rows...)
			rand.New(rand.NewPCG(seed, 2)).Shuffle(n, func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			p.Targets, p.Seed, p.Passes, p.Tol = []string{"y"}, 9, 1, 1e-9
			var first map[string]backend.Host[float64]
			for _, in := range []struct {
				name  string
				glob  string
				bytes int64
			}{
				{"one piece", oneFile, 0},
				{"pieces of 20 kB", oneFile, 20000},
				{"files of 1, 17, 3000 rows and the rest, shuffled", write(t, header, shuffled, 1, 17, 3000), 50000},
			} {
				p.Inputs = []string{in.glob, strings.ReplaceAll(in.glob, "*", "part-000*")} // the second glob matches files that the first glob matches too; these files are used once
				p.PieceBytes = in.bytes
				b, result := fit(t, p)
				want, enc := fitLocally(t, p, strings.ReplaceAll(oneFile, "*", "part-000"), b)
				got := predictions(t, b.Model, oneFile, b.Encoder)
				// The condition number is above 1e8 for gaussian(sigma=1), and below 1e5 for the other kernels.
				tol := 1e-10
				if len(p.Kernels) > 0 && p.Kernels[0] == "gaussian(sigma=1)" {
					tol = 1e8 * 0x1p-53
				}
				checkNear(t, in.name, got, predictions(t, want, oneFile, enc), tol)
				if tol == 1e-10 {
					checkNear(t, in.name, arrays(b.Model), arrays(want), 1e-10)
				}
				checkNear(t, in.name+", encoder", numbersOf(b.Encoder), numbersOf(enc), 1e-13)
				if result.Report.Rows != n || !result.Report.Measured || result.Report.Residual > 1e-9 || result.counters["rows"] != 2*n {
					t.Errorf("%s: the report is %+v, the counters %v", in.name, result.Report, result.counters)
				}
				if first == nil {
					first = got
				}
				checkNear(t, in.name+", beside the first", got, first, tol)
			}
		})
	}
}

// predictions returns the predictions of a model for a file, or its decision values.
func predictions(t *testing.T, m learners.Model, glob string, enc *dataset.Encoder) map[string]backend.Host[float64] {
	t.Helper()
	table, err := dataset.Read(strings.ReplaceAll(glob, "*", "part-000"), nil)
	if err != nil {
		t.Fatal(err)
	}
	x, err := enc.Features(table)
	if err != nil {
		t.Fatal(err)
	}
	dev := backendtest.Device(t, "cpu", backend.Config{})
	predict := m.Predict
	if c, ok := m.(learners.Classifier); ok {
		predict = c.Decision
	}
	f, err := predict(t.Context(), dev, x)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]backend.Host[float64]{"predictions": hostOf(f)}
}

// numbersOf returns the means and scales of an encoder.
func numbersOf(e *dataset.Encoder) map[string]backend.Host[float64] {
	var list []float64
	for _, in := range e.Inputs {
		if in.Number != nil {
			list = append(list, in.Number.Mean, in.Number.Scale)
		} else {
			list = append(list, float64(len(in.Text.Categories)))
		}
	}
	return map[string]backend.Host[float64]{"numbers": {Rows: 1, Cols: len(list), Stride: len(list), Data: list}}
}

package pipeline

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// TestSearch compares the cross-validated scores with separate fits and predictions for each fold, and the chosen
// model with a fit to all rows.
func TestSearch(t *testing.T) {
	const seed, n, folds = 20261128, 3000, 3
	t.Logf("seed %d", seed)
	header, rows := lines(seed, n, false)
	glob := write(t, header, rows, 1000, 1200)
	p := Params{
		Inputs: []string{glob}, Targets: []string{"y"}, Learner: "fourier-ridge", Functions: 40, Seed: 3, Intercept: true,
		Kernels: []string{"gaussian(sigma=0.5)", "gaussian(sigma=3)"}, Lambdas: []float64{0.1, 10}, Folds: folds, PieceBytes: 1 << 14,
	}
	b, result := fit(t, p)
	if len(result.Report.Scores) != 4 {
		t.Fatalf("%d scores, want 4", len(result.Report.Scores))
	}

	table, err := dataset.Read(strings.ReplaceAll(write(t, header, rows), "*", "part-000"), nil)
	if err != nil {
		t.Fatal(err)
	}
	mx, err := b.Encoder.Features(table)
	if err != nil {
		t.Fatal(err)
	}
	my, err := b.Encoder.Targets(table)
	if err != nil {
		t.Fatal(err)
	}
	h, err := p.keys(table)
	if err != nil {
		t.Fatal(err)
	}
	member := make([][]int, folds)
	for i, v := range h {
		k := fold(v, p.Seed, folds)
		member[k] = append(member[k], i)
	}
	t.Logf("folds of %d, %d and %d rows", len(member[0]), len(member[1]), len(member[2]))
	pick := func(m *mat.Dense, rows []int) backend.Host[float64] {
		_, c := m.Dims()
		out := backend.NewHost[float64](len(rows), c)
		for i, r := range rows {
			copy(out.Row(i), m.RawRowView(r))
		}
		return out
	}
	dev := backendtest.Device(t, "cpu", backend.Config{})
	best := Score{MSE: math.Inf(1)}
	for _, got := range result.Report.Scores {
		kernel, err := kernels.Parse(got.Kernel)
		if err != nil {
			t.Fatal(err)
		}
		total := 0.0
		for k := range folds {
			var train []int
			for j, list := range member {
				if j != k {
					train = append(train, list...)
				}
			}
			slices.Sort(train)
			res, err := solvers.SolveFourier(t.Context(), dev, solvers.FourierProblem{
				Kernel: kernel, Data: solvers.InMemory(pick(mx, train), pick(my, train), nil, nil), Count: p.Functions, Seed: p.Seed, Lambda: got.Lambda, Intercept: true,
			}, solvers.StreamParams{Method: solvers.Normal, Tol: 1e-10})
			if err != nil {
				t.Fatal(err)
			}
			half := res.Frequencies.Rows
			for _, i := range member[k] {
				f := res.Intercept[0]
				for j := range half {
					angle := 0.0
					for q, v := range mx.RawRowView(i) {
						angle += v * res.Frequencies.Row(j)[q]
					}
					f += math.Cos(angle)*res.Beta.Row(j)[0] + math.Sin(angle)*res.Beta.Row(half + j)[0]
				}
				total += (my.At(i, 0) - f) * (my.At(i, 0) - f)
			}
		}
		// The scores have an error of 2⁻⁴⁰ times the squares of the targets, which are about 20 times the squared
		// errors.
		if want := total / n; math.Abs(got.MSE-want) > 1e-9*want {
			t.Errorf("%s, lambda %v: mse %v, want %v", got.Kernel, got.Lambda, got.MSE, want)
		}
		if got.MSE < best.MSE {
			best = got
		}
	}
	if result.Report.Kernel != best.Kernel || result.Report.Lambda != best.Lambda {
		t.Errorf("chosen: %s, lambda %v; the least error has %s, %v", result.Report.Kernel, result.Report.Lambda, best.Kernel, best.Lambda)
	}
	// The chosen model must equal a fit without folds.
	p.Kernels, p.Lambdas, p.Model = []string{best.Kernel}, []float64{best.Lambda}, ""
	refitted, _ := fit(t, p)
	checkNear(t, "the chosen model", arrays(b.Model), arrays(refitted.Model), 1e-10)
}

// TestCensus checks that the merged censuses of parts, in any order, give the encoder that package dataset learns
// from the whole table, also with missing cells.
func TestCensus(t *testing.T) {
	dir := t.TempDir()
	var rows []string
	for i := range 2000 {
		few, many, text := fmt.Sprint(i%7), fmt.Sprint(float64(i*i%1999)/8), []string{"x", "", "y", "1"}[i%4]
		if i%11 == 0 {
			few = "NA"
		}
		if i%13 == 0 {
			many = ""
		}
		rows = append(rows, fmt.Sprintf("%s,%s,%s,%d", few, many, text, i%5))
	}
	header := "few,many,text,y\n"
	file := filepath.Join(dir, "whole.csv")
	if err := os.WriteFile(file, []byte(header+strings.Join(rows, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	table, err := dataset.Read(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	want, err := dataset.Learn(table, dataset.Rules{Targets: []string{"y"}, Standardize: true})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Params{Inputs: []string{file}, Targets: []string{"y"}, Model: "m", PieceBytes: 1024}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	var list []filePiece
	if err := pieces(t.Context(), p, func(piece filePiece) { list = append(list, piece) }); err != nil {
		t.Fatal(err)
	}
	if len(list) < 10 {
		t.Fatalf("%d pieces", len(list))
	}
	var samples [][]sampledRow
	for order := range 3 {
		if order > 0 {
			slices.Reverse(list)
		}
		merged := census{}
		for i, piece := range list {
			c, err := censusOf(t.Context(), p, piece)
			if err != nil {
				t.Fatal(err)
			}
			if i%2 == order%2 { // the census is encoded and decoded, as between workers
				b, err := encodeCensus(*c)
				if err != nil {
					t.Fatal(err)
				}
				decoded, err := decodeCensus(b)
				if err != nil {
					t.Fatal(err)
				}
				c = &decoded
			}
			if err := merged.merge(c); err != nil {
				t.Fatal(err)
			}
		}
		got, err := merged.encoder(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for j, in := range want.Inputs {
			g := got.Inputs[j]
			switch {
			case g.Name != in.Name || (g.Number == nil) != (in.Number == nil):
				t.Errorf("input %d is %+v, want %+v", j, g, in)
			case in.Number != nil:
				// The median of a column with many values is that of the sample, which contains all distinct rows
				// here.
				n, w := g.Number, in.Number
				if n.Fill != w.Fill || math.Abs(n.Mean-w.Mean) > 1e-12*w.Scale || math.Abs(n.Scale-w.Scale) > 1e-12*w.Scale {
					t.Errorf("%s: %+v, want %+v", in.Name, *n, *w)
				}
			case g.Text.Fill != in.Text.Fill || !slices.Equal(g.Text.Categories, in.Text.Categories):
				t.Errorf("%s: %+v, want %+v", in.Name, *g.Text, *in.Text)
			}
		}
		samples = append(samples, merged.Sample)
	}
	for _, s := range samples[1:] {
		if !slices.EqualFunc(s, samples[0], func(a, b sampledRow) bool { return a.Priority == b.Priority && slices.Equal(a.Cells, b.Cells) }) {
			t.Error("the sample depends on the order of the pieces")
		}
	}
}

// TestFaults checks that errors in the data name the file.
func TestFaults(t *testing.T) {
	header, rows := lines(1, 40, false)
	valid := write(t, header, rows)
	shortRow := write(t, header, append(slices.Clone(rows[:20]), "1,2,red"))
	otherHeader := write(t, "a,b,z,y", rows)
	for _, c := range []struct {
		name string
		p    Params
		want string
	}{
		{"no such file", Params{Inputs: []string{"/nowhere/*.csv"}}, "/nowhere/*.csv: there is no such file"},
		{"a short row", Params{Inputs: []string{shortRow}}, "part-000.csv:22"},
		{"other columns", Params{Inputs: []string{valid, otherHeader}}, "all files must have the same"},
		{"no such target", Params{Inputs: []string{valid}, Targets: []string{"price"}}, `no target column "price"`},
		{"texts as numbers", Params{Inputs: []string{valid}, Targets: []string{"c"}}, "to learn classes, set Classify"},
		{"a learner", Params{Inputs: []string{valid}, Learner: "lasso"}, `unknown learner "lasso"`},
		{"a kernel", Params{Inputs: []string{valid}, Kernels: []string{"gaussian(sigma=0)"}}, "sigma"},
		{"a lambda", Params{Inputs: []string{valid}, Lambdas: []float64{-1}}, "lambda must be"},
		{"few folds", Params{Inputs: []string{valid}, Lambdas: []float64{1, 2}, Folds: 1}, "at least 2 folds"},
	} {
		if c.p.Targets == nil {
			c.p.Targets = []string{"y"}
		}
		c.p.Functions, c.p.Model = 10, filepath.Join(t.TempDir(), "m")
		_, err := Run(t.Context(), "prism", c.p, 3)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q in it", c.name, err, c.want)
		}
		if _, err := os.Stat(c.p.Model); err == nil {
			t.Errorf("%s: a model was written", c.name)
		}
	}
}

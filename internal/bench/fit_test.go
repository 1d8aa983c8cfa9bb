package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners"
)

// TestFit runs every fit once, at a small size, on two devices and with every installed library.
func TestFit(t *testing.T) {
	f := Benchmark{Kind: FitKind, Sizes: []int{60, 90}, Features: 4, Centers: 20, Devices: []string{"cpu", "ref"}, Threads: []int{1}}
	if testing.Short() {
		f.Peers = []string{"gonum"} // save the time of starting a Python process
	}
	r, err := f.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := textOf(t, r)
	t.Log(text)
	if len(r.Cells) != 2*9 {
		t.Fatalf("%d cells, want two sizes of ridge in two precisions, nystrom, svr, neighbors, file, linear, lasso and logistic", len(r.Cells))
	}
	for _, want := range []string{": residual\n", "gonum: gonum/mat has no float32", "chose dual", "X ~ N(0, I), d = 4"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text has no %q", want)
		}
	}
	for _, c := range r.Cells {
		fit, precision := c.Case.Get("fit"), c.Case.Get("precision")
		for _, e := range r.Implementations {
			run := c.Run(e.Name)
			if run == nil || run.Reason != "" {
				if e.Kind == OwnKind && run != nil {
					t.Errorf("%v: %s: %s", c.Case, e.Name, run.Reason)
				}
				if run != nil && e.Missing == "" && e.Name == "gonum" && precision == "float64" {
					t.Errorf("%v: %s: %s", c.Case, e.Name, run.Reason)
				}
				continue
			}
			limit := ridgeLimit(90, 4, precision, fitLambda)
			switch fit {
			case "nystrom":
				limit = nystromLimit(90, 20, 4, fitLambda)
			case "svr":
				limit = 1e-2 // the gap is at most 2·tol·C·n, and the objective of f = 0 is about n/2
			}
			residual, ok := run.Metrics[residualMetric]
			if fit == "neighbors" {
				if !ok || !(residual <= nearest*0x1p-53) || !run.Timed() {
					t.Errorf("%v: %s: %+v", c.Case, e.Name, run)
				}
				continue
			}
			if fit == "linear" {
				if !ok || !(residual <= fitTol) || !run.Timed() {
					t.Errorf("%v: %s: %+v", c.Case, e.Name, run)
				}
				continue
			}
			if fit == "lasso" || fit == "logistic" {
				// Each implementation tries decreasing tolerances until the objective is within the limit.
				if !ok || !(residual <= linearLimit) || !(residual >= -1e-12) || !(run.Metrics[toleranceMetric] > 0) || !run.Timed() {
					t.Errorf("%v: %s: %+v", c.Case, e.Name, run)
				}
				continue
			}
			if !ok || !(residual <= limit) || !(run.Metrics[rmseMetric] < 1) || !run.Timed() {
				t.Errorf("%v: %s: %+v, residual at most %.2g", c.Case, e.Name, run, limit)
			}
		}
		// All implementations solve the same problem: their predictions must agree, up to residuals and rounding.
		var errors []float64
		for _, run := range c.Runs {
			if v, ok := run.Metrics[rmseMetric]; ok {
				errors = append(errors, v)
			}
		}
		if len(errors) == 0 {
			continue
		}
		tol := 1e-8
		if precision == "float32" || fit == "svr" {
			tol = 1e-2
		}
		if low, high := slices.Min(errors), slices.Max(errors); high-low > tol {
			t.Errorf("%v: errors of prediction from %v to %v", c.Case, low, high)
		}
	}
	for _, c := range r.compare("n") {
		if c.mercer == nil || c.cell.Case.Int("n") != 90 {
			t.Errorf("%+v", c)
		}
	}
	if testing.Short() {
		return
	}
	sklearnHere := r.Implementation(sklearn).Missing == ""
	if required.Names("sklearn") && !sklearnHere {
		t.Errorf("MERCER_REQUIRE names sklearn: %s", r.Implementation(sklearn).Missing)
	}
	if run := r.Cells[0].Run(sklearn + processGP); sklearnHere && !run.Timed() {
		t.Errorf("the Gaussian process has no timing: %+v", run)
	}
}

// openJudge opens the judge's device and closes it at the end of the test.
func openJudge(t *testing.T) (backend.Device, func(*synthetic) judge) {
	t.Helper()
	dev, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	l := &setup{ctx: t.Context(), judges: dev}
	return dev, l.judge
}

// TestFitWrong checks that a wrong result of Mercer is an error, and that a library with a wrong result is skipped.
func TestFitWrong(t *testing.T) {
	_, newJudge := openJudge(t)
	s := newSynthetic(50, 3, fitLambda)
	j := newJudge(s)
	for _, own := range []bool{true, false} {
		w := competitor{Entry: Entry{Implementation: "zeros", Optional: !own, Run: func() error { return nil }}, result: func() (function, error) {
			return function{points: s.x, coef: make([]float64, 50)}, nil
		}}
		cells, err := Runner{}.Measure(t.Context(), []Task{{Start: func(context.Context) ([]Entry, error) {
			return []Entry{w.entry(j, j.residual, ridgeLimit(50, 3, "float64", fitLambda))}, nil
		}}})
		switch {
		case own && (err == nil || !strings.Contains(err.Error(), "the result is wrong: its relative difference from the reference is 1,")):
			t.Errorf("Mercer's: %v", err)
		case !own && (err != nil || !strings.Contains(cells[0].Runs[0].Reason, "the result is wrong")):
			t.Errorf("a library's: %+v, %v", cells, err)
		}
	}
}

// TestJudge compares the judge's sums with dense linear algebra.
func TestJudge(t *testing.T) {
	dev, newJudge := openJudge(t)
	const n, m = 40, 7
	s := newSynthetic(n, 3, fitLambda)
	j := newJudge(s)
	gram := func(a, b backend.Host[float64]) *mat.Dense {
		k := mat.NewDense(a.Rows, b.Rows, nil)
		k.Apply(func(i, j int, _ float64) float64 {
			var sum float64
			for c := range a.Cols {
				v := a.Row(i)[c] - b.Row(j)[c]
				sum += v * v
			}
			return math.Exp(-s.gamma() * sum)
		}, k)
		return k
	}
	checkClose := func(name string, got, want float64) {
		t.Helper()
		// A sum of about n terms of size 1 has an error of about n roundings.
		if math.Abs(got-want) > 100*n*0x1p-52 {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	coef := make([]float64, n)
	for i := range coef {
		coef[i] = math.Sin(float64(i))
	}
	alpha, y := mat.NewVecDense(n, coef), mat.NewVecDense(n, s.y.Data)
	var r mat.VecDense
	r.MulVec(gram(s.x, s.x), alpha)
	r.AddScaledVec(&r, s.lambda, alpha)
	r.SubVec(&r, y)
	got, err := j.residual(function{points: s.x, coef: coef})
	if err != nil {
		t.Fatal(err)
	}
	checkClose("residual", got, mat.Norm(&r, 2)/mat.Norm(y, 2))

	centers := s.x.View(0, 0, m, 3)
	beta := mat.NewVecDense(m, coef[:m])
	phi, k := gram(s.x, centers), gram(centers, centers)
	var residual, gradient, penalty, b mat.VecDense
	residual.MulVec(phi, beta)
	residual.SubVec(y, &residual)
	gradient.MulVec(phi.T(), &residual)
	penalty.MulVec(k, beta)
	gradient.AddScaledVec(&gradient, -s.lambda, &penalty)
	b.MulVec(phi.T(), y)
	if got, err = j.normalResidual(function{points: centers, coef: coef[:m]}); err != nil {
		t.Fatal(err)
	}
	checkClose("residual of the normal equations", got, mat.Norm(&gradient, 2)/mat.Norm(&b, 2))

	// For f = 0 the gap is the whole objective.
	if got, err = j.gap(function{points: s.x, coef: make([]float64, n)}, svrC, svrEpsilon); err != nil {
		t.Fatal(err)
	}
	checkClose("gap of nothing", got, 1)
	for _, tol := range []float64{1e-2, 1e-5} {
		l := learners.SVR{Kernel: s.kernel, C: svrC, Epsilon: svrEpsilon, Tol: tol, NoStandardize: true}
		model, err := l.Fit(t.Context(), dev, matrixOf(s.x), matrixOf(s.y), learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.allRows(model)
		if err != nil {
			t.Fatal(err)
		}
		limit := 2 * tol * svrC * n / j.idle(svrC, svrEpsilon)
		if got, err := j.gap(f, svrC, svrEpsilon); err != nil || got > limit || got < -1e-12 {
			t.Errorf("tol %g: gap %g, %v; want at most %g", tol, got, err, limit)
		}
	}
}

func TestFitRefusals(t *testing.T) {
	for _, test := range []struct {
		f    Benchmark
		want string
	}{
		{Benchmark{Kind: FitKind, Names: []string{"tobit"}}, `fit: "tobit" is not known; the choices are: ridge, nystrom, svr, neighbors, file, linear, lasso, logistic`},
		{Benchmark{Kind: FitKind, Precisions: []string{"float16"}}, `precision: "float16" is not known`},
		{Benchmark{Kind: FitKind, Peers: []string{"tensorflow"}}, `peers: "tensorflow" is not known; the choices are: gonum, scikit-learn,`},
		{Benchmark{Kind: FitKind, Sizes: []int{0}}, "must be ≥ 1, got 0"},
		{Benchmark{Kind: FitKind, Centers: -1}, "must be ≥ 0, got -1"},
		{Benchmark{Kind: FitKind, Devices: []string{"abacus"}}, `no device is called "abacus"`},
		{Benchmark{Kind: FitKind, Sizes: []int{1000}, Memory: 8 << 20, Peers: []string{"gonum"}}, "n = 512 would fit"},
	} {
		if _, err := test.f.Run(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: got %v", test.f, err)
		}
	}
}

// TestLinearBounds checks that the minimum lies between the lower bound and the objective: in closed form for the
// lasso with an orthogonal design, and on a grid for logistic regression with one weight.
func TestLinearBounds(t *testing.T) {
	_, newJudge := openJudge(t)
	// For X = 2I, each coordinate minimizes ½(y − 2w)² + μ|w|. The minimum is ½y² if |y| ≤ μ/2, and otherwise
	// μ|y|/2 − μ²/8.
	const n, mu = 6, 1.5
	s := &synthetic{x: backend.NewHost[float64](n, n), y: backend.NewHost[float64](n, 1), lambda: 1}
	w, want := backend.NewHost[float64](n, 1), 0.0
	for i := range n {
		y := float64(i) - 2.2
		s.x.Row(i)[i], s.y.Data[i] = 2, y
		if a := math.Abs(y); a > mu/2 {
			w.Data[i] = math.Copysign(a-mu/2, y) / 2
			want += mu*a/2 - mu*mu/8
		} else {
			want += y * y / 2
		}
	}
	j := newJudge(s)
	values, lower := j.lassoObjectives([]float64{mu})(w)
	if math.Abs(values[0]-want) > 1e-13 || math.Abs(lower[0]-want) > 1e-13 {
		t.Errorf("lasso: %v, at least %v; want %v", values, lower, want)
	}
	zero := backend.NewHost[float64](n, 1)
	if values, lower = j.lassoObjectives([]float64{mu})(zero); !(lower[0] < want && want < values[0]) {
		t.Errorf("lasso at 0: %v, at least %v; the minimum is %v", values, lower, want)
	}
	// For a sample of class 1 at x = 2 and a sample of class 0 at x = −2, F(w) = 2 ln(1 + e^−2w) + ½w².
	pair := &synthetic{x: backend.Host[float64]{Rows: 2, Cols: 1, Stride: 1, Data: []float64{2, -2}}, y: backend.Host[float64]{Rows: 2, Cols: 1, Stride: 1, Data: []float64{1, 0}}, lambda: 1}
	minimum, argmin := math.Inf(1), 0.0
	for k := range 400001 {
		v := float64(k) / 1e5
		if f := 2*math.Log1p(math.Exp(-2*v)) + v*v/2; f < minimum {
			minimum, argmin = f, v
		}
	}
	for _, v := range []float64{0, argmin} {
		values, lower := newJudge(pair).logisticObjectives(backend.Host[float64]{Rows: 1, Cols: 1, Stride: 1, Data: []float64{v}})
		// The best point of the grid is within 1e-5 of the minimizer.
		if lower[0] > minimum || values[0] < minimum-1e-9 || v == argmin && lower[0] < minimum-1e-8 {
			t.Errorf("logistic at %v: %v, at least %v; the minimum is %v", v, values, lower, minimum)
		}
	}
}

// TestFitSparse runs every fit of sparse data once, with every installed library. Half of the random texts of each
// class contain a word that occurs in no text of the other class.
func TestFitSparse(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var table strings.Builder
	table.WriteString("text,target\n")
	for i := range 120 {
		word := make([]byte, 12)
		for k := range word {
			word[k] = 'a' + byte(r.IntN(6))
		}
		class := i % 2
		if i%4 > 1 {
			word = append(word, []byte([]string{" winner", " dinner"}[class])...)
		}
		fmt.Fprintf(&table, "%s,%s\n", word, []string{"spam", "ham"}[class])
	}
	file := filepath.Join(t.TempDir(), "texts.csv")
	if err := os.WriteFile(file, []byte(table.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	b := Benchmark{Kind: FitKind, Data: "sparse", Texts: file, Devices: []string{"cpu", "ref"}, Threads: []int{1}}
	if testing.Short() {
		b.Peers = []string{} // save the time of starting a Python process
	}
	result, err := b.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	text := textOf(t, result)
	t.Log(text)
	if len(result.Cells) != len(sparseFits) {
		t.Fatalf("%d cells, want %d", len(result.Cells), len(sparseFits))
	}
	for _, want := range []string{"texts.csv as tf-idf", "read: a LIBSVM file of"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text has no %q", want)
		}
	}
	for _, c := range result.Cells {
		for _, e := range result.Implementations {
			run := c.Run(e.Name)
			if run == nil {
				continue
			}
			if run.Reason != "" {
				if e.Missing == "" {
					t.Errorf("%v: %s: %s", c.Case, e.Name, run.Reason)
				}
				continue
			}
			// Only rounding errors may make the residual negative.
			if residual, ok := run.Metrics[residualMetric]; !ok || !(residual >= -1e-12 && residual <= linearLimit) {
				t.Errorf("%v: %s: residual %v, at most %v", c.Case, e.Name, residual, linearLimit)
			}
		}
	}
	for _, test := range []struct {
		b    Benchmark
		want string
	}{
		{Benchmark{Kind: FitKind, Data: "sparse"}, "texts: is needed with sparse data"},
		{Benchmark{Kind: FitKind, Texts: "x.csv"}, "texts: is used only with sparse data"},
		{Benchmark{Kind: FitKind, Data: "thin"}, `data: must be dense or sparse, got "thin"`},
		{Benchmark{Kind: BLASKind, Data: "sparse"}, "data: is not an option of this benchmark"},
		{Benchmark{Kind: FitKind, Data: "sparse", Texts: file, Names: []string{"svr"}}, `fit: "svr" is not known`},
	} {
		if err := test.b.Fill(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.b, err, test.want)
		}
	}
}

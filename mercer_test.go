package mercer_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

func normals(rng *rand.Rand, rows, cols int) *mat.Dense {
	m := mat.NewDense(rows, cols, nil)
	for i := range rows {
		for j := range cols {
			m.Set(i, j, rng.NormFloat64())
		}
	}
	return m
}

// wrapped hides what a matrix is.
type wrapped struct{ mat.Symmetric }

func TestSolve(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, n := range []int{1, 2, 17, 300} {
		var k mat.SymDense
		k.SymOuterK(1, normals(rng, n, n))
		before := mat.NewSymDense(n, nil)
		before.CopySym(&k)
		for _, lambda := range []float64{0.5, 1e6} {
			y := normals(rng, n, 3)
			for _, m := range []mat.Symmetric{&k, wrapped{&k}} {
				alpha, err := mercer.Solve(t.Context(), m, lambda, y, mercer.Options{})
				if err != nil {
					t.Fatal(err)
				}
				var r mat.Dense
				r.Mul(&k, alpha)
				r.Apply(func(i, j int, v float64) float64 { return v + lambda*alpha.At(i, j) - y.At(i, j) }, &r)
				if got := mat.Norm(&r, 2) / mat.Norm(y, 2); got > 1e-8 {
					t.Errorf("n = %d, λ = %g: residual %g", n, lambda, got)
				}
			}
		}
		if !mat.Equal(&k, before) {
			t.Errorf("n = %d: K was changed", n)
		}
	}
	// A part of a matrix, in rows further apart than they are long.
	var k mat.SymDense
	k.SymOuterK(1, normals(rng, 40, 40))
	part := k.SliceSym(3, 23)
	y := mat.NewVecDense(20, nil)
	y.SetVec(4, 1)
	a, err := mercer.Solve(t.Context(), part, 1, y, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := mercer.Solve(t.Context(), wrapped{part}, 1, y, mercer.Options{})
	if err != nil || !mat.Equal(a, b) {
		t.Errorf("a part and a copy of it differ: %v", err)
	}
}

func TestSolveRefuses(t *testing.T) {
	singular := mat.NewSymDense(2, []float64{1, 1, 1, 1})
	y := mat.NewVecDense(2, []float64{1, 0})
	if _, err := mercer.Solve(t.Context(), singular, 0, y, mercer.Options{}); !errors.Is(err, backend.ErrNotPosDef) {
		t.Errorf("a singular matrix: %v", err)
	}
	for want, f := range map[string]func() error{
		"y has 3 rows, K is 2×2": func() error {
			_, err := mercer.Solve(t.Context(), singular, 1, mat.NewVecDense(3, nil), mercer.Options{})
			return err
		},
		"k is missing": func() error {
			_, err := mercer.Solve(t.Context(), nil, 1, y, mercer.Options{})
			return err
		},
		"y is missing": func() error {
			_, err := mercer.Solve(t.Context(), singular, 1, nil, mercer.Options{})
			return err
		},
		"lambda must be": func() error {
			_, err := mercer.Solve(t.Context(), singular, -1, y, mercer.Options{})
			return err
		},
		"is NaN": func() error {
			_, err := mercer.Solve(t.Context(), mat.NewSymDense(1, []float64{math.NaN()}), 1, mat.NewVecDense(1, nil), mercer.Options{})
			return err
		},
		"x is missing": func() error {
			_, err := mercer.NewKernelFactor(t.Context(), kernels.Linear{}, 1, nil, mercer.Options{})
			return err
		},
		"the kernel is missing": func() error {
			_, err := mercer.SolveKernel(t.Context(), nil, 1, y, y, mercer.Options{})
			return err
		},
		"they do not fit": func() error {
			f, err := mercer.NewFactor(t.Context(), singular, 1, mercer.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return f.SolveVecTo(t.Context(), mat.NewVecDense(3, nil), mat.NewVecDense(3, nil))
		},
	} {
		if err := f(); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got the error %v, want %q in it", err, want)
		}
	}
}

// TestLoadRefusesTables: a model of a table predicts from encoded features only.
func TestLoadRefuses(t *testing.T) {
	if _, err := mercer.Load(filepath.Join(t.TempDir(), "none"), mercer.Options{}); err == nil {
		t.Error("a file that is not there was loaded")
	}
}

// BenchmarkPredict is the latency of one prediction by 2,000 samples of 20
// features, and the rate for 10,000 points at once.
func BenchmarkPredict(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	x, y := normals(rng, 2000, 20), normals(rng, 2000, 1)
	dev, err := backend.Open("cpu", backend.Config{Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = dev.Close() }()
	m, err := mercer.Fit(b.Context(), learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 6}, Lambda: 0.1, NoIntercept: true}, x, y, mercer.Options{Device: dev})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	b.Run("rows=1/n=2000/d=20", func(b *testing.B) {
		b.ReportAllocs()
		dst := []float64{0}
		for b.Loop() {
			if err := m.PredictRow(b.Context(), dst, x.RawRowView(7)); err != nil {
				b.Fatal(err)
			}
		}
	})
	points := normals(rng, 10000, 20)
	b.Run("rows=10000/n=2000/d=20", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := m.Predict(b.Context(), points); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(10000*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}

// TestPredictRowAllocates: what one prediction allocates does not grow with the
// number of samples.
func TestPredictRowAllocates(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	count := func(n int) float64 {
		x := normals(rng, n, 5)
		m, err := mercer.Fit(t.Context(), learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 2}, Lambda: 1, NoIntercept: true}, x, normals(rng, n, 1), mercer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		dst := []float64{0}
		return testing.AllocsPerRun(100, func() {
			if err := m.PredictRow(t.Context(), dst, x.RawRowView(0)); err != nil {
				t.Fatal(err)
			}
		})
	}
	// Pools may be emptied by the garbage collector in between.
	if few, many := count(100), count(3000); many > few+2 {
		t.Errorf("%v allocations with 100 samples, %v with 3,000", few, many)
	}
}

// TestSVCKnowsProbabilitiesWhereAsked: Proba of a support vector machine is an error that
// names the field, and with the field set the rows sum to 1 and the label is the most
// probable class, also after Save and Load.
func TestSVCKnowsProbabilitiesWhereAsked(t *testing.T) {
	x, y := mat.NewDense(30, 1, nil), mat.NewDense(30, 1, nil)
	for i := range 30 {
		x.Set(i, 0, float64(i*7%30))
		y.Set(i, 0, float64(i*7%30/10))
	}
	for _, asked := range []bool{false, true} {
		fitted, err := mercer.Fit(t.Context(), learners.SVC{Probabilities: asked}, x, y, mercer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "m.st")
		if err := fitted.Save(path); err != nil {
			t.Fatal(err)
		}
		m, err := mercer.Load(path, mercer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		proba, err := m.Proba(t.Context(), x)
		if _, was := fitted.Proba(t.Context(), x); (was == nil) != asked || (err == nil) != asked || err != nil && !strings.Contains(err.Error(), "svc with Probabilities") {
			t.Fatalf("Probabilities %v: Proba: %v, loaded: %v", asked, was, err)
		}
		if !asked {
			continue
		}
		labels, err := m.Predict(t.Context(), x)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			row := proba.RawRowView(i)
			if sum := floats.Sum(row); math.Abs(sum-1) > 3*0x1p-52 || row[int(labels.At(i, 0))] != slices.Max(row) {
				t.Errorf("row %d: label %v, probabilities %v, sum %v", i, labels.At(i, 0), row, sum)
			}
		}
	}
}

// TestFitRows: samples that are read in passes give the model of the same samples in
// memory, and each option that has no use is refused.
func TestFitRows(t *testing.T) {
	x, y := mat.NewDense(40, 2, nil), mat.NewDense(40, 1, nil)
	for i := range 40 {
		x.SetRow(i, []float64{math.Sin(float64(i)), math.Cos(float64(3 * i))})
		y.Set(i, 0, float64(i%5))
	}
	hx, hy := backend.Host[float64]{Rows: 40, Cols: 2, Stride: 2, Data: x.RawMatrix().Data}, backend.Host[float64]{Rows: 40, Cols: 1, Stride: 1, Data: y.RawMatrix().Data}
	data := solvers.InMemory(hx, hy, nil)
	l := learners.FourierRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 0.1, Features: 10, Seed: 3}
	want, err := mercer.Fit(t.Context(), l, x, y, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := mercer.FitRows(t.Context(), l, data, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	a, errA := want.Predict(t.Context(), x)
	b, errB := got.Predict(t.Context(), x)
	if errA != nil || errB != nil || !mat.Equal(a, b) {
		t.Errorf("in passes %v, %v, in memory %v, %v", b, errB, a, errA)
	}
	for name, o := range map[string]learners.Options{"Weights": {Weights: make([]float64, 40)}, "Keys": {Keys: make([]uint64, 40)}} {
		if _, err := mercer.FitRows(t.Context(), l, data, mercer.Options{Options: o}); err == nil || !strings.Contains(err.Error(), "Options."+name+" is not used here") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := mercer.FitRows(t.Context(), l, nil, mercer.Options{}); err == nil {
		t.Error("no samples: no error")
	}
}

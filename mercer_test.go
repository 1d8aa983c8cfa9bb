package mercer_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/gram"
	"github.com/mercer-go/mercer/kernels/objects"
	stringkernels "github.com/mercer-go/mercer/kernels/strings"
	"github.com/mercer-go/mercer/kernels/trees"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"github.com/mercer-go/mercer/learners/tuning"
	"github.com/mercer-go/mercer/learners/validate"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/testdata"
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

// wrapped hides the concrete type of a matrix, so that only the methods of mat.Symmetric are available.
type wrapped struct{ mat.Symmetric }

func TestSolve(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, n := range []int{1, 2, 17, 300} {
		var k mat.SymDense
		k.SymOuterK(1, normals(rng, n, n))
		original := mat.NewSymDense(n, nil)
		original.CopySym(&k)
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
		if !mat.Equal(&k, original) {
			t.Errorf("n = %d: K was changed", n)
		}
	}
	// k is a submatrix, whose rows are not contiguous in memory.
	var k mat.SymDense
	k.SymOuterK(1, normals(rng, 40, 40))
	submatrix := k.SliceSym(3, 23)
	y := mat.NewVecDense(20, nil)
	y.SetVec(4, 1)
	a, err := mercer.Solve(t.Context(), submatrix, 1, y, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	b, err := mercer.Solve(t.Context(), wrapped{submatrix}, 1, y, mercer.Options{})
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
		"the shapes do not match": func() error {
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

// TestLoadRefuses checks that Load returns an error for a file that does not exist.
func TestLoadRefuses(t *testing.T) {
	if _, err := mercer.Load(filepath.Join(t.TempDir(), "none"), mercer.Options{}); err == nil {
		t.Error("a file that is not there was loaded")
	}
}

// BenchmarkPredict measures the time of one prediction by a model with 2,000 samples of 20 features, and the rate
// for 10,000 points in one call.
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

// TestPredictRowAllocates checks that the memory of one prediction does not grow with the number of samples.
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
	// The garbage collector may empty a sync.Pool between two predictions.
	if few, many := count(100), count(3000); many > few+2 {
		t.Errorf("%v allocations with 100 samples, %v with 3,000", few, many)
	}
}

// TestSVCKnowsProbabilitiesWhereAsked checks that without the field Probabilities, Proba of a support vector
// machine returns an error that names the field. With the field, probabilities sum to 1, and the label is the most
// probable class, also after Save and Load.
func TestSVCKnowsProbabilitiesWhereAsked(t *testing.T) {
	x, y := mat.NewDense(30, 1, nil), mat.NewDense(30, 1, nil)
	for i := range 30 {
		x.Set(i, 0, float64(i*7%30))
		y.Set(i, 0, float64(i*7%30/10))
	}
	for _, probability := range []bool{false, true} {
		fitted, err := mercer.Fit(t.Context(), learners.SVC{Probabilities: probability}, x, y, mercer.Options{})
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
		if _, probaErr := fitted.Proba(t.Context(), x); (probaErr == nil) != probability || (err == nil) != probability || err != nil && !strings.Contains(err.Error(), "svc fitted with Probabilities") {
			t.Fatalf("Probabilities %v: Proba: %v, loaded: %v", probability, probaErr, err)
		}
		if !probability {
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

// TestFitRows checks that samples that are read in passes give the same model as samples in memory, and that
// FitRows refuses the options that it does not use.
func TestFitRows(t *testing.T) {
	x, y := mat.NewDense(40, 2, nil), mat.NewDense(40, 1, nil)
	for i := range 40 {
		x.SetRow(i, []float64{math.Sin(float64(i)), math.Cos(float64(3 * i))})
		y.Set(i, 0, float64(i%5))
	}
	hx, hy := backend.Host[float64]{Rows: 40, Cols: 2, Stride: 2, Data: x.RawMatrix().Data}, backend.Host[float64]{Rows: 40, Cols: 1, Stride: 1, Data: y.RawMatrix().Data}
	data := solvers.InMemory(hx, hy, nil, nil)
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

// TestLassoPath checks that for XᵀX = I each weight is the element of Xᵀy, moved toward 0 by λ/2, but not beyond 0.
func TestLassoPath(t *testing.T) {
	x, y := mat.NewDense(3, 3, []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}), mat.NewVecDense(3, []float64{3, -2, 0.5})
	lambdas := []float64{8, 4, 2, 0.5}
	models, err := mercer.LassoPath(t.Context(), learners.Lasso{NoIntercept: true, Tol: 1e-14}, x, y, lambdas, mercer.Options{})
	if err != nil || len(models) != len(lambdas) {
		t.Fatal(len(models), err)
	}
	for i, m := range models {
		f, err := m.Predict(t.Context(), x) // the predictions are the weights, because X = I
		if err != nil {
			t.Fatal(err)
		}
		for j := range 3 {
			want := math.Copysign(math.Max(math.Abs(y.AtVec(j))-lambdas[i]/2, 0), y.AtVec(j))
			// A duality gap of at most Tol·‖y‖² limits the error of the weights to √Tol·‖y‖.
			if got := f.At(j, 0); !(math.Abs(got-want) <= 1e-7*mat.Norm(y, 2)) {
				t.Errorf("λ = %v: weight %d is %v, want %v", lambdas[i], j+1, got, want)
			}
		}
	}
	if _, err := mercer.LassoPath(t.Context(), learners.Lasso{}, x, y, []float64{-1}, mercer.Options{}); err == nil {
		t.Error("λ = -1: no error")
	}
}

func TestNeighborsOfAModel(t *testing.T) {
	m, err := mercer.Fit(t.Context(), learners.KernelKNN{K: 2}, mat.NewDense(3, 1, []float64{0, 1, 4}), mat.NewDense(3, 1, nil), mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	points := mat.NewDense(2, 1, []float64{0.75, 3})
	samples, squares, err := m.Neighbors(t.Context(), points)
	if err != nil || !slices.Equal(samples[0], []int{1, 0}) || !slices.Equal(samples[1], []int{2, 1}) {
		t.Fatal(samples, err)
	}
	if !slices.Equal(squares[0], []float64{0.0625, 0.5625}) || !slices.Equal(squares[1], []float64{1, 4}) {
		t.Error(squares)
	}
	if _, err := m.PairwiseDecision(t.Context(), points); err == nil || err.Error() != "mercer: this model of kernel-knn has no pairs of classes: svc has them" {
		t.Error(err)
	}
}

// TestPairsOfAModel checks the decision values of the pairs of classes, with samples at 0, 2 and 6. For a pair a
// and b, the value at x is 2(x − (a + b)/2)/(b − a).
func TestPairsOfAModel(t *testing.T) {
	x := mat.NewDense(3, 1, []float64{0, 2, 6})
	m, err := mercer.Fit(t.Context(), learners.SVC{Kernel: kernels.Linear{}, C: 100, Tol: 1e-9}, x, mat.NewDense(3, 1, []float64{0, 1, 2}), mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.PairwiseDecision(t.Context(), mat.NewDense(1, 1, []float64{1}))
	if err != nil {
		t.Fatal(err)
	}
	for pair, want := range []float64{0, -2.0 / 3, -1.5} {
		if !(math.Abs(got.At(0, pair)-want) <= 1e-8) { // Tol bounds the gradient, and the error of a value is a sum of a few elements of the gradient
			t.Errorf("pair %d: %v, want %v", pair+1, got.At(0, pair), want)
		}
	}
	if _, _, err := m.Neighbors(t.Context(), x); err == nil {
		t.Error("an SVC has neighbors")
	}
}

// TestGramMatrixEqualsItsPoints checks that the n×n matrix of a precomputed kernel and the points that package gram
// makes of it give the same bits in fits, predictions, cross-validation and tuning, also after saving.
func TestGramMatrixEqualsItsPoints(t *testing.T) {
	const n, q = 24, 5
	r := rand.New(rand.NewPCG(61, 1))
	x, y := mat.NewDense(n+q, 2, nil), mat.NewDense(n, 1, nil)
	for i := range n + q {
		x.SetRow(i, []float64{r.NormFloat64(), r.NormFloat64()})
		if i < n && x.At(i, 0)+x.At(i, 1) > 0 {
			y.Set(i, 0, 1)
		}
	}
	gramX, err := mercer.Gram(t.Context(), kernels.Gaussian{Sigma: 1}, x, nil, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	k, crossGram := mat.NewDense(n, n, nil), mat.NewDense(q, n, nil)
	k.Copy(gramX.View(0, 0, n, n))
	crossGram.Copy(gramX.View(n, 0, q, n))
	points, err := gram.TrainingPoints(k)
	if err != nil {
		t.Fatal(err)
	}
	otherPoints, err := gram.OtherPoints(crossGram, slices.Repeat([]float64{1}, q))
	if err != nil {
		t.Fatal(err)
	}
	fold, err := validate.Folds(n, 4, nil, 1)
	if err != nil {
		t.Fatal(err)
	}
	pre := kernels.Precomputed{}
	anyLearner(t, "kernel-ridge", learners.KernelRidge{Kernel: pre, Lambda: 0.1}, k, points, y, crossGram, otherPoints, fold)
	anyLearner(t, "gaussian-process", learners.GaussianProcess{Kernel: kernels.Scaled{Weight: 2, Kernel: pre}, Lambda: 0.1, Fixed: true}, k, points, y, crossGram, otherPoints, fold)
	anyLearner(t, "svr", learners.SVR{Kernel: pre}, k, points, y, crossGram, otherPoints, fold)
	anyLearner(t, "svc", learners.SVC{Kernel: pre, Probabilities: true}, k, points, y, crossGram, otherPoints, fold)
	anyLearner(t, "one-class-svm", learners.OneClassSVM{Kernel: pre}, k, points, y, crossGram, otherPoints, fold)
	anyLearner(t, "kernel-logistic", learners.KernelLogistic{Kernel: pre, Lambda: 0.1}, k, points, y, crossGram, otherPoints, fold)
	anyLearner(t, "kernel-perceptron", learners.KernelPerceptron{Kernel: pre}, k, points, y, crossGram, otherPoints, fold)
	anyLearner(t, "voted-perceptron", learners.KernelPerceptron{Kernel: pre, Kind: learners.VotedPerceptron}, k, points, y, crossGram, otherPoints, fold)
	anyLearner(t, "kernel-vote", learners.KernelVote{Kernel: pre}, k, points, y, crossGram, otherPoints, fold)
	anyLearner(t, "kernel-knn", learners.KernelKNN{Kernel: pre, K: 3}, k, points, y, crossGram, otherPoints, fold)
	anyLearner(t, "rvm", learners.RVM{Kernel: pre}, k, points, y, crossGram, otherPoints, fold)
	anyLearner(t, "rvc", learners.RVC{Kernel: pre}, k, points, y, crossGram, otherPoints, fold)

	ridge := learners.KernelRidge{Kernel: pre}
	a, _, err := mercer.Tune(t.Context(), ridge, k, y, tuning.Params{}, mercer.Options{})
	b, _, err2 := mercer.Tune(t.Context(), ridge, points, y, tuning.Params{}, mercer.Options{})
	if err != nil || err2 != nil || a.Lambda != b.Lambda {
		t.Errorf("tuned lambda %v and %v: %v, %v", a.Lambda, b.Lambda, err, err2)
	}

	// A prediction that needs k(x, x) of a new object returns an error if this value is missing.
	process, err := mercer.Fit(t.Context(), learners.GaussianProcess{Kernel: pre, Lambda: 0.1, Fixed: true}, k, y, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := process.Std(t.Context(), crossGram); err == nil || !strings.Contains(err.Error(), "gram.OtherPoints") {
		t.Errorf("a standard deviation without k(x, x): %v", err)
	}
	if std, err := process.Std(t.Context(), otherPoints); err != nil || std.At(0, 0) <= 0 {
		t.Errorf("the standard deviation of points: %v, %v", std, err)
	}
	neighbors, err := mercer.Fit(t.Context(), learners.KernelKNN{Kernel: pre}, k, y, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := neighbors.Neighbors(t.Context(), crossGram); err == nil || !strings.Contains(err.Error(), "gram.OtherPoints") {
		t.Errorf("neighbors without k(x, x): %v", err)
	}

	k.Set(1, 0, k.At(1, 0)+1)
	for name, run := range map[string]func() error{
		"fit": func() error { _, err := mercer.Fit(t.Context(), ridge, k, y, mercer.Options{}); return err },
		"cross-validate": func() error {
			_, err := mercer.CrossValidate(t.Context(), ridge, k, y, fold, mercer.Options{})
			return err
		},
	} {
		if err := run(); err == nil || !strings.Contains(err.Error(), "not symmetric: row 2, column 1") {
			t.Errorf("%s of a matrix that is not symmetric: %v", name, err)
		}
	}
}

// anyLearner compares the model of the Gram matrix k with the model of its points.
func anyLearner[M learners.Model](t *testing.T, name string, l mercer.Learner[M], k, points, y, crossGram, otherPoints mat.Matrix, fold []int) {
	t.Helper()
	a, err := mercer.Fit(t.Context(), l, k, y, mercer.Options{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	b, err := mercer.Fit(t.Context(), l, points, y, mercer.Options{})
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	want, err := b.Predict(t.Context(), otherPoints)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	for form, predict := range map[string]func(x mat.Matrix) (*mat.Dense, error){
		"fitted": func(x mat.Matrix) (*mat.Dense, error) { return a.Predict(t.Context(), x) },
		"loaded": func(x mat.Matrix) (*mat.Dense, error) { return reloaded(t, a).Predict(t.Context(), x) },
	} {
		for _, x := range []mat.Matrix{crossGram, otherPoints} {
			if got, err := predict(x); err != nil || !mat.Equal(got, want) {
				t.Errorf("%s: %s: predictions %v, want %v: %v", name, form, got, want, err)
			}
		}
	}
	row, precomputed := make([]float64, 1), make([]float64, 1)
	if err := a.PredictRow(t.Context(), row, mat.Row(nil, 0, crossGram)); err != nil {
		t.Errorf("%s: predict a row: %v", name, err)
	}
	if err := b.PredictRow(t.Context(), precomputed, mat.Row(nil, 0, otherPoints)); err != nil || row[0] != precomputed[0] {
		t.Errorf("%s: predict a row: %v, want %v: %v", name, row, precomputed, err)
	}
	predictions, err := mercer.CrossValidate(t.Context(), l, k, y, fold, mercer.Options{})
	heldPoints, err2 := mercer.CrossValidate(t.Context(), l, points, y, fold, mercer.Options{})
	if err != nil || err2 != nil || !mat.Equal(predictions, heldPoints) {
		t.Errorf("%s: cross-validation differs: %v, %v", name, err, err2)
	}
}

// TestTableOfKernelValues checks that a table of texts and a table of their Gram matrix give the same predictions
// f(x) = Σ_i α_i k(x_i, x) with (K + λI)α = y, also after saving. k counts the letters that two texts share.
func TestTableOfKernelValues(t *testing.T) {
	k := mat.NewSymDense(3, []float64{1, 0, 1, 0, 1, 1, 1, 1, 2})
	alpha, err := mercer.Solve(t.Context(), k, 0.5, mat.NewVecDense(3, []float64{1, -2, 3}), mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := 2*alpha.At(0, 0) + alpha.At(1, 0) + 3*alpha.At(2, 0) // the prediction for "aab"
	learner := learners.KernelRidge{Kernel: kernels.Precomputed{}, Lambda: 0.5, NoIntercept: true}
	letters := mercer.Options{Objects: stringkernels.Spectrum{Length: 1, Raw: true}}
	text := dataset.Rules{Targets: []string{"y"}, Text: "text"}
	for name, c := range map[string]struct {
		table, row string
		rules      dataset.Rules
		o          mercer.Options
	}{
		"texts":         {"text,y\na,1\nb,-2\nab,3\n", "text\naab\n", text, letters},
		"a Gram matrix": {"a,b,ab,y\n1,0,1,1\n0,1,1,-2\n1,1,2,3\n", "a,b,ab\n2,1,3\n", dataset.Rules{Targets: []string{"y"}, Gram: true}, mercer.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			fitted, err := mercer.FitTable(t.Context(), learner, readTable(t, c.table), c.rules, c.o)
			if err != nil {
				t.Fatal(err)
			}
			m := reloaded(t, fitted)
			got, err := m.PredictRows(t.Context(), readTable(t, c.row), mercer.PredictOptions{})
			// The relative residuals of both solutions are 1e-8, and |α| and k are below 8.
			if err != nil || !(math.Abs(got[0].Values["y"]-want) <= 1e-6) {
				t.Errorf("%+v, %v, want %v", got, err, want)
			}
			if _, err := mercer.FitTable(t.Context(), learners.KernelRidge{Kernel: kernels.Linear{}, Lambda: 1, NoIntercept: true}, readTable(t, c.table), c.rules, c.o); err == nil {
				t.Error("a linear kernel on kernel values: no error")
			}
		})
	}
	table := readTable(t, "text,y\na,1\nb,-2\n")
	for name, o := range map[string]mercer.Options{"no kernel": {}, "a kernel on trees": {Objects: trees.Subtree{Decay: 1}}} {
		if _, err := mercer.FitTable(t.Context(), learner, table, text, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := mercer.FitTable(t.Context(), learner, table, dataset.Rules{Targets: []string{"y"}}, letters); err == nil {
		t.Error("a kernel on texts without a column: no error")
	}
	if _, err := mercer.Fit(t.Context(), learner, mat.NewDense(1, 1, nil), mat.NewDense(1, 1, nil), letters); err == nil {
		t.Error("a kernel on texts for matrices: no error")
	}
}

// gated is a device that counts its factorizations in float64, each of which waits until the gate opens.
type gated struct {
	backend.Device
	gate    chan struct{} // factorizations continue after it is closed
	begun   atomic.Int64
	waiting atomic.Int64
}

func (d *gated) F64() backend.Backend[float64] {
	return &gatedQueue{d.Device.F64(), d, context.Background()}
}

type gatedQueue struct {
	backend.Backend[float64]
	dev *gated
	ctx context.Context
}

func (q *gatedQueue) With(ctx context.Context, done func(float64)) backend.Backend[float64] {
	return &gatedQueue{q.Backend.With(ctx, done), q.dev, ctx}
}

func (q *gatedQueue) Potrf(ul backend.Uplo, a backend.Matrix[float64]) error {
	q.dev.begun.Add(1)
	q.dev.waiting.Add(1)
	defer q.dev.waiting.Add(-1)
	select {
	case <-q.dev.gate:
	case <-q.ctx.Done():
		return context.Cause(q.ctx)
	}
	return q.Backend.Potrf(ul, a)
}

// prepared calls visit with each model that factorizes a matrix when its first interval or standard deviation is
// requested. The function `first` makes that request on dev.
func prepared(t *testing.T, visit func(t *testing.T, dev *gated, m *mercer.Model[learners.Model], first func(context.Context) error, factorizations int64)) {
	inner, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = inner.Close() })
	x, y := sine()
	columns := mat.NewDense(100, 2, nil)
	columns.Augment(y, y)
	for _, c := range []struct {
		learner        string
		parameters     map[string]string
		y              *mat.Dense
		std            bool
		factorizations int64
	}{
		{"kernel-ridge", map[string]string{"kernel": "gaussian(sigma=1)", "lambda": "0.1"}, y, false, 1},
		{"kernel-ridge", map[string]string{"kernel": "gaussian(sigma=1)", "lambdas": "0.1,1"}, columns, false, 2},
		{"ridge", map[string]string{"lambda": "0.1", "intervals": "true"}, y, false, 1},
		{"ridge", map[string]string{"lambdas": "0.1,1", "intervals": "true"}, columns, false, 2},
		{"gaussian-process", map[string]string{"kernel": "gaussian(sigma=1)", "lambda": "0.1", "optimize": "false"}, y, true, 1},
	} {
		t.Run(c.learner, func(t *testing.T) {
			dev := &gated{Device: inner, gate: make(chan struct{})}
			d, err := learners.Find(c.learner)
			if err != nil {
				t.Fatal(err)
			}
			fit, err := d.Make("", c.parameters)
			if err != nil {
				t.Fatal(err)
			}
			fitted, err := mercer.Fit(t.Context(), mercer.LearnerFunc[learners.Model](fit), x, c.y, mercer.Options{Device: inner})
			if err != nil {
				t.Fatal(err)
			}
			path := t.TempDir() + "/m.safetensors"
			if err := fitted.Save(path); err != nil {
				t.Fatal(err)
			}
			m, err := mercer.Load(path, mercer.Options{Device: dev})
			if err != nil {
				t.Fatal(err)
			}
			visit(t, dev, m, func(ctx context.Context) error {
				if c.std {
					_, err := m.Std(ctx, x)
					return err
				}
				_, _, err := m.Intervals(ctx, x, 0.9)
				return err
			}, c.factorizations)
		})
	}
}

// TestTimeoutsDoNotStarveIntervals checks that callers with a timeout shorter than the factorization return in
// time, and a single computation continues for all of them.
func TestTimeoutsDoNotStarveIntervals(t *testing.T) {
	prepared(t, func(t *testing.T, dev *gated, m *mercer.Model[learners.Model], first func(context.Context) error, factorizations int64) {
		defer m.Close()
		var group sync.WaitGroup
		for i := range 25 {
			call := first
			if i%2 == 1 {
				call = m.Prepare
			}
			group.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
				defer cancel()
				if err := call(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a call before the gate: %v", err)
				}
			})
		}
		group.Wait()
		close(dev.gate)
		for range 3 {
			if err := first(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := dev.begun.Load(); n != factorizations {
			t.Errorf("%d factorizations, want %d", n, factorizations)
		}
	})
}

// TestCloseEndsPrepare checks that Close ends the computation that Prepare started, whether or not callers wait.
func TestCloseEndsPrepare(t *testing.T) {
	prepared(t, func(t *testing.T, dev *gated, m *mercer.Model[learners.Model], first func(context.Context) error, _ int64) {
		shortCtx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		defer cancel()
		_ = m.Prepare(shortCtx) // returns at the timeout, and the computation continues
		var group sync.WaitGroup
		for range 3 {
			group.Go(func() {
				if err := first(t.Context()); !errors.Is(err, mercer.ErrClosed) {
					t.Errorf("a call that Close ended: %v", err)
				}
			})
		}
		for dev.waiting.Load() == 0 {
			time.Sleep(time.Millisecond)
		}
		m.Close()
		if n := dev.waiting.Load(); n != 0 {
			t.Errorf("%d factorizations go on after Close", n)
		}
		group.Wait()
	})
}

// TestPrepareWithNothingToDo checks that Prepare returns at once for models that need no factorization.
func TestPrepareWithNothingToDo(t *testing.T) {
	inner, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = inner.Close() }()
	dev := &gated{Device: inner, gate: make(chan struct{})}
	x, y := sine()
	empty, err := mercer.Fit(t.Context(), learners.SVR{Kernel: kernels.Gaussian{Sigma: 1}, NoStandardize: true}, x, y, mercer.Options{Device: dev})
	if err != nil {
		t.Fatal(err)
	}
	fitted, err := learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 1, NoIntercept: true}.Fit(t.Context(), inner, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	calibrated, err := mercer.Fit(t.Context(), mercer.LearnerFunc[*learners.KernelRidgeModel](func(context.Context, backend.Device, mat.Matrix, mat.Matrix, learners.Options) (*learners.KernelRidgeModel, error) {
		return fitted, nil
	}), x, y, mercer.Options{Device: dev})
	if err != nil {
		t.Fatal(err)
	}
	if err := calibrated.Calibrate(t.Context(), x, y); err != nil {
		t.Fatal(err)
	}
	if _, _, err := calibrated.Intervals(t.Context(), x, 0.9); err != nil {
		t.Error(err)
	}
	for _, prepare := range []func(context.Context) error{empty.Prepare, calibrated.Prepare} {
		if err := prepare(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if n := dev.begun.Load(); n != 0 {
		t.Errorf("%d factorizations", n)
	}
}

// callAll calls every exported method except Close. A method that can fail must return ErrClosed in an error of one
// line, and none may panic.
func callAll(t *testing.T, name string, v any) {
	t.Helper()
	arguments := map[reflect.Type]reflect.Value{
		reflect.TypeFor[context.Context](): reflect.ValueOf(t.Context()),
		reflect.TypeFor[mat.Matrix]():      reflect.ValueOf(mat.NewDense(1, 1, nil)),
		reflect.TypeFor[mat.Vector]():      reflect.ValueOf(mat.NewVecDense(1, nil)),
		reflect.TypeFor[*mat.Dense]():      reflect.ValueOf(new(mat.Dense)),
		reflect.TypeFor[*mat.VecDense]():   reflect.ValueOf(new(mat.VecDense)),
	}
	value := reflect.ValueOf(v)
	for i := range value.NumMethod() {
		method, f := value.Type().Method(i).Name, value.Method(i)
		if method == "Close" {
			continue
		}
		args := make([]reflect.Value, f.Type().NumIn())
		for j := range args {
			args[j] = reflect.Zero(f.Type().In(j))
			if g, ok := arguments[f.Type().In(j)]; ok {
				args[j] = g
			}
		}
		results := f.Call(args)
		if len(results) == 0 || f.Type().Out(len(results)-1) != reflect.TypeFor[error]() {
			continue
		}
		err, _ := results[len(results)-1].Interface().(error)
		if !errors.Is(err, mercer.ErrClosed) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %s: %v, want ErrClosed", name, method, err)
		}
	}
}

// TestClosed checks that every method that can fail returns ErrClosed for a model that is closed, nil or zero, and
// for a factor or a path that is closed or zero.
func TestClosed(t *testing.T) {
	x, y := sine()
	regression, err := mercer.Fit(t.Context(), learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 1, NoIntercept: true}, x, y, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "m.safetensors")
	if err := regression.Save(file); err != nil {
		t.Fatal(err)
	}
	loaded, err := mercer.Load(file, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	labels := mat.NewDense(100, 1, nil)
	labels.Apply(func(i, _ int, _ float64) float64 { return float64(i % 2) }, labels)
	classes, err := mercer.Fit(t.Context(), learners.KernelKNN{}, x, labels, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	factor, err := mercer.NewKernelFactor(t.Context(), kernels.Linear{}, 1, x, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	path, err := solvers.NewPath(t.Context(), backendtest.Device(t, "cpu"), solvers.Problem{Kernel: kernels.Linear{}, X: backend.NewHost[float64](2, 1), Y: backend.NewHost[float64](2, 1)}, solvers.PathParams{})
	if err != nil {
		t.Fatal(err)
	}
	for name, v := range map[string]interface{ Close() }{
		"regression": regression, "loaded": loaded, "neighbors": classes, "factor": factor, "zero factor": &mercer.Factor{},
		"nil cholesky": (*solvers.Cholesky)(nil), "zero cholesky": &solvers.Cholesky{}, "path": path, "zero path": &solvers.Path{}, "nil path": (*solvers.Path)(nil),
		"nil":  (*mercer.Model[*learners.RidgeModel])(nil),
		"zero": &mercer.Model[*learners.RidgeModel]{},
	} {
		for range 2 {
			v.Close()
			callAll(t, name, v)
		}
	}
}

// TestCloseWaits checks that Close waits for running predictions, and that they return their values or ErrClosed.
func TestCloseWaits(t *testing.T) {
	x, y := sine()
	for range 20 {
		m, err := mercer.Fit(t.Context(), learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 1e-3, NoIntercept: true}, x, y, mercer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				dst := []float64{0}
				for range 50 {
					switch err := m.PredictRow(t.Context(), dst, x.RawRowView(i)); {
					case err == nil:
					case errors.Is(err, mercer.ErrClosed):
						return
					default:
						t.Error(err)
					}
					if _, _, err := m.Intervals(t.Context(), x.Slice(0, 2, 0, 1), 0.8); err != nil && !errors.Is(err, mercer.ErrClosed) {
						t.Error(err)
					}
				}
			})
		}
		group.Go(m.Close)
		group.Wait()
	}
}

// TestMisuse checks that missing arguments and NaN give an error of one line.
func TestMisuse(t *testing.T) {
	ctx, o := context.Background(), mercer.Options{}
	k := mat.NewSymDense(2, []float64{1, 0, 0, 1})
	y := mat.NewDense(2, 1, []float64{1, 2})
	f, err := mercer.NewFactor(ctx, k, 1, o)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for want, call := range map[string]func() error{
		"fit: the learner is missing": func() error {
			_, err := mercer.Fit[*learners.RidgeModel](ctx, nil, y, y, o)
			return err
		},
		"factor: k is missing": func() error {
			_, err := mercer.Solve(ctx, (*mat.SymDense)(nil), 1, y, o)
			return err
		},
		"solve: y: row 2, column 1 is NaN": func() error {
			_, err := mercer.Solve(ctx, k, 1, mat.NewDense(2, 1, []float64{1, math.NaN()}), o)
			return err
		},
		"solve: dst is missing":  func() error { return f.SolveTo(ctx, nil, y) },
		"solve: dst is missing ": func() error { return f.SolveVecTo(ctx, nil, mat.NewVecDense(2, nil)) },
	} {
		if err := call(); err == nil || err.Error() != "mercer: "+strings.TrimSpace(want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestOptionsAreUsedOrRefused checks that SolveKernel uses weights in (K + λW⁻¹)α = y, and that each call refuses
// the options that it does not use.
func TestOptionsAreUsedOrRefused(t *testing.T) {
	ctx := t.Context()
	k := mat.NewSymDense(2, []float64{2, 1, 1, 2})
	x, y := mat.NewDense(2, 1, []float64{0, 1}), mat.NewDense(2, 1, []float64{1, 2})
	options := map[string]learners.Options{
		"Weights":    {Weights: []float64{1, 2}},
		"Centers":    {Centers: x},
		"Classes":    {Classes: []string{"a", "b"}},
		"Memory":     {Memory: 1 << 30},
		"Progress":   {Progress: func(solvers.Progress) {}},
		"Checkpoint": {Checkpoint: solvers.Checkpoint{Dir: t.TempDir()}},
	}
	for option, l := range options {
		o := mercer.Options{Options: l}
		want := "Options." + option + " is not used here"
		calls := map[string]func() error{
			"Solve":           func() error { _, err := mercer.Solve(ctx, k, 1, y, o); return err },
			"NewFactor":       func() error { _, err := mercer.NewFactor(ctx, k, 1, o); return err },
			"NewKernelFactor": func() error { _, err := mercer.NewKernelFactor(ctx, kernels.Linear{}, 1, x, o); return err },
			"Load":            func() error { _, err := mercer.Load("none.safetensors", o); return err },
		}
		if option == "Classes" {
			calls["SolveKernel"] = func() error { _, err := mercer.SolveKernel(ctx, kernels.Linear{}, 1, x, y, o); return err }
		}
		for name, call := range calls {
			if err := call(); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s with %s: %v", name, option, err)
			}
		}
	}
	// With the kernel matrix (1 1; 1 2), W = diag(1, 2) and λ = 1, the equation is (2 1; 1 2.5)α = (1, 2), and its
	// solution (0.125, 0.75).
	res, err := mercer.SolveKernel(ctx, kernels.Polynomial{Degree: 1, C: 1}, 1, x, y, mercer.Options{Options: options["Weights"]})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{0.125, 0.75} {
		if got := res.Alpha.Data[i]; math.Abs(got-want) > 1e-15 {
			t.Errorf("alpha %d is %v, want %v", i, got, want)
		}
	}
}

// TestDataSums compares the bundled data with the checksums in its README. The test is in this
// folder because ./... excludes folders called testdata.
func TestDataSums(t *testing.T) {
	readme, err := os.ReadFile("testdata/README.md")
	if err != nil {
		t.Fatal(err)
	}
	names, err := fs.Glob(testdata.FS, "*.csv")
	if err != nil || len(names) == 0 {
		t.Fatalf("no CSV files: %v", err)
	}
	for _, name := range names {
		data, err := testdata.FS.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf("%x  %s\n", sha256.Sum256(data), name)
		if !strings.Contains(string(readme), line) {
			t.Errorf("testdata/README.md does not say %q", line)
		}
	}
}

// noisy returns n samples of a smooth function with noise.
func noisy(t *testing.T, n int) (x *mat.Dense, y *mat.VecDense) {
	const seed = 23
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	x, y = mat.NewDense(n, 2, nil), mat.NewVecDense(n, nil)
	for i := range n {
		x.SetRow(i, []float64{r.NormFloat64(), r.NormFloat64()})
		y.SetVec(i, math.Sin(2*x.At(i, 0))+0.3*r.NormFloat64())
	}
	return x, y
}

// leftOut returns the leave-one-out errors of kernel ridge regression: e_i/((K + λI)⁻¹)_ii, with e = (K + λI)⁻¹y.
func leftOut(t *testing.T, k kernels.Kernel, lambda float64, x *mat.Dense, y *mat.VecDense) *mat.VecDense {
	n, _ := x.Dims()
	a := mat.NewDense(n, n, nil)
	for i := range n {
		for j := range n {
			a.Set(i, j, kernels.Eval(k, x.RawRowView(i), x.RawRowView(j)))
		}
		a.Set(i, i, a.At(i, i)+lambda)
	}
	var inverse mat.Dense
	if err := inverse.Inverse(a); err != nil {
		t.Fatal(err)
	}
	e := mat.NewVecDense(n, nil)
	e.MulVec(&inverse, y)
	for i := range n {
		e.SetVec(i, e.AtVec(i)/inverse.At(i, i))
	}
	return e
}

// TestCrossValidationLeavesRowsOut checks that with a fold for each row the errors equal the closed form leftOut.
func TestCrossValidationLeavesRowsOut(t *testing.T) {
	const n, lambda = 40, 0.1
	x, y := noisy(t, n)
	k := kernels.Gaussian{Sigma: 0.8}
	fold, weights := make([]int, n), make([]float64, n)
	for i := range n {
		fold[i], weights[i] = i, 2 // with all weights 2 and 2λ in place of λ, K + λW⁻¹ equals K + λI
	}
	last := 0.0
	f, err := mercer.CrossValidate(t.Context(), learners.KernelRidge{Kernel: k, Lambda: 2 * lambda, NoIntercept: true}, x, y, fold, mercer.Options{
		Options: learners.Options{Weights: weights, Progress: func(p solvers.Progress) {
			if p.Fraction < last-1e-12 {
				t.Errorf("progress falls from %v to %v", last, p.Fraction)
			}
			last = p.Fraction
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(last-1) > 1e-12 {
		t.Errorf("progress ends at %v", last)
	}
	// The bound is for two backward stable solutions of systems whose condition number is below (n + λ)/λ.
	bound := 4 * n * (3*n + 1) * 0x1p-53 * (n + lambda) / lambda * 10
	for i, want := range leftOut(t, k, lambda, x, y).RawVector().Data {
		if got := y.AtVec(i) - f.At(i, 0); math.Abs(got-want) > bound {
			t.Errorf("row %d: the error is %v, want %v", i+1, got, want)
		}
	}
}

// TestTuneFindsTheBestLambda checks that the returned learner has the λ with the smallest leave-one-out error.
func TestTuneFindsTheBestLambda(t *testing.T) {
	x, y := noisy(t, 40)
	k := kernels.Gaussian{Sigma: 0.8}
	lambdas := []float64{1e-4, 1e-2, 0.3, 3, 100}
	best, smallest := 0.0, math.Inf(1)
	for _, lambda := range lambdas {
		e := leftOut(t, k, lambda, x, y)
		if v := mat.Dot(e, e); v < smallest {
			best, smallest = lambda, v
		}
	}
	l, result, err := mercer.Tune(t.Context(), learners.KernelRidge{Kernel: k, NoIntercept: true}, x, y, tuning.Params{Vary: []string{}, Lambdas: lambdas}, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if l.Lambda != best || l.Kernel.String() != k.String() {
		t.Errorf("found %v with %v, want %v", l.Lambda, l.Kernel, best)
	}
	if got := result.Score(); math.Abs(got-smallest/40) > 1e-9*smallest {
		t.Errorf("the score is %v, want %v", got, smallest/40)
	}
	if l, _, err = mercer.Tune(t.Context(), learners.KernelRidge{NoIntercept: true}, x, y, tuning.Params{Steps: 3}, mercer.Options{}); err != nil || l.Kernel == nil || l.Lambda <= 0 {
		t.Errorf("without a kernel: %+v, %v", l, err)
	}
}

// TestTuneEndsWhereFitSucceeds checks that the learner of Tune can be fitted and has the kernel and λ of the
// Result, also if rounding errors prevent the fit with the best score.
func TestTuneEndsWhereFitSucceeds(t *testing.T) {
	tune := func(t *testing.T, l learners.KernelRidge, x, y *mat.Dense) *tuning.Result {
		best, result, err := mercer.Tune(t.Context(), l, x, y, tuning.Params{}, mercer.Options{})
		if err != nil {
			t.Error(err)
			return nil
		}
		if best.Kernel.String() != result.Kernel().String() || best.Lambda != result.Lambda() {
			t.Errorf("the learner has %v and lambda %v, the list %v and %v", best.Kernel, best.Lambda, result.Kernel(), result.Lambda())
		}
		m, err := mercer.Fit(t.Context(), best, x, y, mercer.Options{})
		if err != nil {
			t.Errorf("%v, lambda %v: %v", best.Kernel, best.Lambda, err)
			return result
		}
		defer m.Close()
		return result
	}
	x, y := mat.NewDense(60, 1, nil), mat.NewDense(60, 1, nil)
	for i := range 60 {
		x.Set(i, 0, float64(i)/12)
		y.Set(i, 0, 1000*x.At(i, 0)+5)
	}
	warned := 0
	for _, degree := range []int{2, 3, 6} {
		for _, tol := range []float64{1e-8, 1e-15} { // some kernels do not reach 1e-15
			result := tune(t, learners.KernelRidge{Kernel: kernels.Polynomial{Degree: degree, C: 1}, Tol: tol}, x, y)
			if result != nil && strings.Contains(result.Warning, fmt.Sprintf("%v, lambda %.4g", result.Kernel(), result.Lambda())) {
				warned++
			}
		}
	}
	if warned == 0 {
		t.Error("no point was refused: the test shows nothing")
	}
	_, _, err := mercer.Tune(t.Context(), learners.KernelRidge{Tol: -1}, x, y, tuning.Params{Steps: 3}, mercer.Options{})
	if err == nil || !strings.Contains(err.Error(), "tol") || strings.Contains(err.Error(), "points") {
		t.Errorf("a wrong tolerance: %v", err)
	}
	for _, name := range required.Subset(2, []string{"airfoil.csv", "power_plant.csv", "california_housing.csv", "kin40k.csv.gz", "diabetes.csv"}) {
		t.Run(name, func(t *testing.T) {
			table, err := dataset.ReadCSV(required.Data(t, name), nil)
			if err != nil {
				t.Fatal(err)
			}
			x, y, _ := learnertest.Encode(t, table, dataset.Rules{Targets: []string{"target"}, Standardize: true})
			_, d := x.Dims()
			tune(t, learners.KernelRidge{}, x.Slice(0, 250, 0, d).(*mat.Dense), y.Slice(0, 250, 0, 1).(*mat.Dense))
		})
	}
}

// TestSamplesInFloat32 checks that samples in float32 give the same results as equal samples in float64.
func TestSamplesInFloat32(t *testing.T) {
	x, y := noisy(t, 30)
	single := host.Matrix[float32]{Rows: 30, Cols: 2, Stride: 3, Data: make([]float32, 90)}
	double := mat.NewDense(30, 2, nil)
	for i := range 30 {
		for j := range 2 {
			single.Data[3*i+j] = float32(x.At(i, j))
			double.Set(i, j, float64(float32(x.At(i, j))))
		}
	}
	if !mat.Equal(single, double) || !mat.Equal(single.T(), double.T()) {
		t.Error("as a gonum matrix it differs")
	}
	var f [2]*mat.Dense
	for i, samples := range []mat.Matrix{single, double} {
		m, err := mercer.Fit(t.Context(), learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 0.1, NoIntercept: true}, samples, y, mercer.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if f[i], err = m.Predict(t.Context(), samples); err != nil {
			t.Fatal(err)
		}
	}
	if !mat.Equal(f[0], f[1]) {
		t.Errorf("float32 gives %v, float64 %v", f[0], f[1])
	}
}

func TestGramMatrixOfAKernel(t *testing.T) {
	x, _ := noisy(t, 5)
	z := x.Slice(0, 2, 0, 2)
	k := kernels.Laplacian{Sigma: 2}
	square, err := mercer.Gram(t.Context(), k, x, nil, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cross, err := mercer.Gram(t.Context(), k, x, z, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sparse := backend.Host[float64]{Rows: 5, Cols: 2, Stride: 2, Data: x.RawMatrix().Data}.CSR()
	sparseCross, err := mercer.Gram(t.Context(), k, sparse, sparse.SliceRows(0, 2), mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		for j := range 5 {
			want := kernels.Eval(k, x.RawRowView(i), x.RawRowView(j))
			// The tolerance is for a few rounding errors of numbers ≤ 1.
			if math.Abs(square.At(i, j)-want) > 0x1p-46 || j < 2 && (math.Abs(cross.At(i, j)-want) > 0x1p-46 || math.Abs(sparseCross.At(i, j)-want) > 0x1p-46) {
				t.Errorf("(%d, %d) is %v, want %v", i+1, j+1, square.At(i, j), want)
			}
		}
	}
	factor, err := mercer.NewKernelFactor(t.Context(), k, 1, sparse, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer factor.Close()
	if points, ok := factor.Points().(backend.CSR[float64]); !ok || points.Rows != 5 || points.NNZ() != sparse.NNZ() {
		t.Errorf("the factor of 5 sparse samples has the points %v", factor.Points())
	}
}

func TestValidationRefuses(t *testing.T) {
	ctx := t.Context()
	x, y := noisy(t, 6)
	l := learners.KernelRidge{Kernel: kernels.Linear{}, Lambda: 1, NoIntercept: true}
	fold := []int{0, 0, 1, 1, 2, 2}
	cross := func(y mat.Matrix, fold []int, o mercer.Options) error {
		_, err := mercer.CrossValidate(ctx, l, x, y, fold, o)
		return err
	}
	tune := func(l learners.KernelRidge, o mercer.Options) error {
		_, _, err := mercer.Tune(ctx, l, x, y, tuning.Params{}, o)
		return err
	}
	invalid := mat.VecDenseCopyOf(y)
	invalid.SetVec(5, math.NaN())
	for want, err := range map[string]error{
		"x has 6 rows, but fold has 5":            cross(y, fold[:5], mercer.Options{}),
		"x has 6 rows, but y has 4":               cross(y.SliceVec(0, 4), fold, mercer.Options{}),
		"x has 6 rows, but Options.Weights has 1": cross(y, fold, mercer.Options{Options: learners.Options{Weights: []float64{1}}}),
		"all rows are in one fold":                cross(y, make([]int, 6), mercer.Options{}),
		"y is missing":                            cross(nil, fold, mercer.Options{}),
		"without fold 1 of 3: ":                   cross(invalid, fold, mercer.Options{}),
		"Options.Checkpoint is not used":          cross(y, fold, mercer.Options{Options: learners.Options{Checkpoint: solvers.Checkpoint{Dir: "c"}}}),
		"Options.Memory is not used":              tune(l, mercer.Options{Options: learners.Options{Memory: 1}}),
		"set Lambdas to nil":                      tune(learners.KernelRidge{Lambdas: []float64{1}, NoIntercept: true}, mercer.Options{}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// This example chooses C of a support vector machine by cross-validation.
func ExampleCrossValidate() {
	ctx := context.Background()
	x := mat.NewDense(12, 1, []float64{-3, -2.5, -2, -1.5, -1, 0.2, -0.2, 1, 1.5, 2, 2.5, 3})
	y := mat.NewVecDense(12, []float64{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1})
	fold, err := validate.Folds(12, 4, nil, 1)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range []float64{0.1, 1} {
		f, err := mercer.CrossValidate(ctx, learners.SVC{Kernel: kernels.Linear{}, C: c}, x, y, fold, mercer.Options{})
		if err != nil {
			log.Fatal(err)
		}
		right := 0
		for i := range 12 {
			if f.At(i, 0) == y.AtVec(i) {
				right++
			}
		}
		fmt.Printf("C = %v: %d of 12 are right\n", c, right)
	}
	// Output:
	// C = 0.1: 10 of 12 are right
	// C = 1: 10 of 12 are right
}

// This example searches sigma and lambda of kernel ridge regression, and fits with the best values.
func ExampleTune() {
	ctx := context.Background()
	x, y := sine()
	best, result, err := mercer.Tune(ctx, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 30}, NoIntercept: true}, x, y, tuning.Params{}, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	m, err := mercer.Fit(ctx, best, x, y, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	fmt.Println(len(result.Trials), "kernels, leave-one-out error below 1e-6:", result.Score() < 1e-6)
	// Output:
	// 15 kernels, leave-one-out error below 1e-6: true
}

// This example makes a learner from its name, with the parameters that `mercer learners` lists.
func ExampleLearnerFunc() {
	x, y := sine()
	d, err := learners.Find("kernel-knn")
	if err != nil {
		log.Fatal(err)
	}
	fit, err := d.Make(learners.Regression, map[string]string{"k": "1"})
	if err != nil {
		log.Fatal(err)
	}
	m, err := mercer.Fit(context.Background(), mercer.LearnerFunc[learners.Model](fit), x, y, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	f, err := m.Predict(context.Background(), mat.NewDense(1, 1, []float64{0.52}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.At(0, 0) == y.At(5, 0))
	// Output:
	// true
}

// Samples in float32 are accepted without conversion.
func ExampleFit_float32() {
	x := host.Matrix[float32]{Rows: 4, Cols: 1, Stride: 1, Data: []float32{0, 1, 2, 3}}
	y := host.Matrix[float32]{Rows: 4, Cols: 1, Stride: 1, Data: []float32{1, 3, 5, 7}}
	m, err := mercer.Fit(context.Background(), learners.LeastSquares{}, x, y, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	f, err := m.Predict(context.Background(), mat.NewDense(1, 1, []float64{10}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.1f\n", f.At(0, 0))
	// Output:
	// 21.0
}

// This example fits texts with a string kernel. The function objects.TrainingPoints returns points for Fit.
func ExampleFit_texts() {
	ctx := context.Background()
	k := stringkernels.Spectrum{Length: 2}
	texts := []string{"banana", "bandana", "papaya", "cherry", "berry", "strawberry"}
	y := mat.NewVecDense(6, []float64{0, 0, 0, 1, 1, 1})
	x, err := objects.TrainingPoints(ctx, k, texts, objects.Options{})
	if err != nil {
		log.Fatal(err)
	}
	m, err := mercer.Fit(ctx, learners.SVC{Kernel: kernels.Precomputed{}, C: 10}, x, y, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	points, err := objects.OtherPoints(ctx, k, []string{"cranberry", "ananas"}, texts, objects.Options{})
	if err != nil {
		log.Fatal(err)
	}
	f, err := m.Predict(ctx, points)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.RawMatrix().Data)
	// Output:
	// [1 0]
}

// This example uses kernel values from another program. Fit takes the n×n kernel matrix of the samples. Predict takes
// the kernel values of each new object with the samples.
func ExampleFit_precomputed() {
	ctx := context.Background()
	k := mat.NewSymDense(3, []float64{
		2, 1, 0,
		1, 2, 1,
		0, 1, 2,
	})
	y := mat.NewVecDense(3, []float64{1, 2, 4})
	m, err := mercer.Fit(ctx, learners.KernelRidge{Kernel: kernels.Precomputed{}, Lambda: 1, NoIntercept: true}, k, y, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	f, err := m.Predict(ctx, mat.NewDense(1, 3, []float64{0, 0, 1})) // the third element of (K + I)⁻¹y
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.4f\n", f.At(0, 0))
	// Output:
	// 1.2857
}

// This example computes the Gram matrix of a kernel as a gonum matrix.
func ExampleGram() {
	k, err := mercer.Gram(context.Background(), kernels.Linear{}, mat.NewDense(2, 2, []float64{1, 2, 3, 4}), nil, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mat.Formatted(k))
	// Output:
	// ⎡ 5  11⎤
	// ⎣11  25⎦
}

// exportedTypes lists the types, except errors, that have exported methods in the packages that programs import.
func exportedTypes() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[mercer.LearnerFunc[learners.Model]](), reflect.TypeFor[learners.RowsFitter](),
		reflect.TypeFor[mercer.Factor](), reflect.TypeFor[mercer.Model[learners.Model]](), reflect.TypeFor[solvers.BudgetError](), reflect.TypeFor[solvers.CenterChoice](),
		reflect.TypeFor[solvers.Cholesky](), reflect.TypeFor[solvers.ConvergenceError](), reflect.TypeFor[solvers.FourierProblem](),
		reflect.TypeFor[solvers.LeaveOneOut](), reflect.TypeFor[solvers.NystromProblem](), reflect.TypeFor[solvers.Path](),
		reflect.TypeFor[solvers.PathPoint](), reflect.TypeFor[solvers.Uncertainty](), reflect.TypeFor[learners.BayesRidge](),
		reflect.TypeFor[learners.BayesRidgeModel](), reflect.TypeFor[learners.Calibration](), reflect.TypeFor[learners.Classes](),
		reflect.TypeFor[learners.ClassifyModel](), reflect.TypeFor[learners.Description](), reflect.TypeFor[learners.Fact](),
		reflect.TypeFor[learners.FourierRidge](), reflect.TypeFor[learners.FourierRidgeModel](), reflect.TypeFor[learners.GaussianProcess](),
		reflect.TypeFor[learners.GaussianProcessModel](), reflect.TypeFor[learners.KernelKNN](), reflect.TypeFor[learners.KernelKNNClassModel](),
		reflect.TypeFor[learners.KernelKNNModel](), reflect.TypeFor[learners.KernelLogistic](), reflect.TypeFor[learners.KernelLogisticModel](),
		reflect.TypeFor[learners.Parts](), reflect.TypeFor[learners.KernelPerceptron](), reflect.TypeFor[learners.KernelPerceptronModel](), reflect.TypeFor[learners.KernelRidge](),
		reflect.TypeFor[learners.KernelRidgeModel](), reflect.TypeFor[learners.KernelVote](), reflect.TypeFor[learners.KernelVoteClassModel](),
		reflect.TypeFor[learners.KernelVoteModel](), reflect.TypeFor[learners.L0](), reflect.TypeFor[learners.Lasso](),
		reflect.TypeFor[learners.LeastSquares](), reflect.TypeFor[learners.LinearModel](), reflect.TypeFor[learners.Logistic](),
		reflect.TypeFor[learners.LogisticModel](), reflect.TypeFor[learners.NystromRidge](), reflect.TypeFor[learners.NystromRidgeModel](),
		reflect.TypeFor[learners.OneClassSVM](), reflect.TypeFor[learners.Parameter](), reflect.TypeFor[learners.ParameterError](),
		reflect.TypeFor[learners.Perceptron](), reflect.TypeFor[learners.PerceptronModel](), reflect.TypeFor[learners.Predictor](),
		reflect.TypeFor[learners.RVC](), reflect.TypeFor[learners.RVCModel](), reflect.TypeFor[learners.RVM](), reflect.TypeFor[learners.RVMModel](),
		reflect.TypeFor[learners.Ridge](), reflect.TypeFor[learners.RidgeConstrained](), reflect.TypeFor[learners.RidgeModel](),
		reflect.TypeFor[learners.SVC](), reflect.TypeFor[learners.SVCModel](), reflect.TypeFor[learners.SVR](), reflect.TypeFor[learners.Settings](),
		reflect.TypeFor[learners.SupportModel](), reflect.TypeFor[learners.VotedModel](), reflect.TypeFor[learners.When](),
		reflect.TypeFor[validate.FitError](), reflect.TypeFor[validate.OutOfBag](), reflect.TypeFor[tuning.Setting](), reflect.TypeFor[validate.Measure](), reflect.TypeFor[validate.Novelty](),
		reflect.TypeFor[validate.Outcome](), reflect.TypeFor[validate.ROC](), reflect.TypeFor[validate.Runner](), reflect.TypeFor[validate.Samples](),
		reflect.TypeFor[validate.Score](), reflect.TypeFor[validate.Table](), reflect.TypeFor[tuning.Result](), reflect.TypeFor[tuning.Trial](),
		reflect.TypeFor[dataset.Dialect](), reflect.TypeFor[dataset.Encoder](), reflect.TypeFor[dataset.ObjectReader](),
		reflect.TypeFor[dataset.Error](), reflect.TypeFor[dataset.File](), reflect.TypeFor[dataset.Number](), reflect.TypeFor[dataset.Summary](),
		reflect.TypeFor[dataset.ColumnWarning](), reflect.TypeFor[dataset.Rules](), reflect.TypeFor[dataset.Stream](), reflect.TypeFor[dataset.Table](),
		reflect.TypeFor[host.CSR[float64]](), reflect.TypeFor[host.Matrix[float64]](), reflect.TypeFor[kernels.ChiSquared](),
		reflect.TypeFor[kernels.Constant](), reflect.TypeFor[kernels.CosOf](), reflect.TypeFor[kernels.Cosine](), reflect.TypeFor[kernels.CosineSeries](),
		reflect.TypeFor[kernels.CosineSimilarity](), reflect.TypeFor[kernels.ExpOf](),
		reflect.TypeFor[kernels.FeatureMap](), reflect.TypeFor[kernels.Gaussian](), reflect.TypeFor[kernels.Laplacian](),
		reflect.TypeFor[kernels.Linear](), reflect.TypeFor[kernels.Matern](), reflect.TypeFor[kernels.Normalized](), reflect.TypeFor[kernels.Param](),
		reflect.TypeFor[kernels.ParseError](), reflect.TypeFor[kernels.PointError](), reflect.TypeFor[kernels.Polynomial](),
		reflect.TypeFor[kernels.Mixed](), reflect.TypeFor[kernels.Precomputed](), reflect.TypeFor[kernels.Product](), reflect.TypeFor[kernels.Program](),
		reflect.TypeFor[kernels.Columns](), reflect.TypeFor[kernels.Periodic](), reflect.TypeFor[kernels.RationalQuadratic](), reflect.TypeFor[kernels.Rule](), reflect.TypeFor[kernels.Scaled](),
		reflect.TypeFor[kernels.Sigmoid](), reflect.TypeFor[kernels.SincLimit](), reflect.TypeFor[kernels.Stat](),
		reflect.TypeFor[kernels.StatDerivative](), reflect.TypeFor[kernels.StatKind](), reflect.TypeFor[kernels.Sum](), reflect.TypeFor[gram.Centering](),
		reflect.TypeFor[gram.Eigen](),
		reflect.TypeFor[objects.Options](), reflect.TypeFor[objects.Sum](), reflect.TypeFor[stringkernels.Spectrum](),
		reflect.TypeFor[stringkernels.Subsequence](), reflect.TypeFor[trees.Subtree](),
		reflect.TypeFor[backend.MemoryError](), reflect.TypeFor[backend.PivotError](),
		reflect.TypeFor[backend.RangeError](), reflect.TypeFor[backend.Side](), reflect.TypeFor[backend.Trans](), reflect.TypeFor[backend.Uplo](),
		reflect.TypeFor[gonum.Cholesky](),
	}
}

// panicking lists the methods that are documented to panic. A name that ends with a dot stands for a whole type.
var panicking = map[string]string{
	"gonum.Cholesky.":            "behaves as mat.Cholesky, which panics where there is no factor",
	"host.CSR.At":                "has no element (0, 0)",
	"host.CSR.Row":               "has no row 0",
	"host.Matrix.At":             "has no element (0, 0)",
	"kernels.FeatureMap.Apply":   "panics where the lengths do not fit",
	"kernels.Stat.PointGradient": "is for statistics of one point",
	"validate.Novelty.":          "embeds the model, which must not be nil",
}

// TestZeroValuesDoNotPanic checks that no method of a zero value panics. With a nil pointer, Close and all methods that
// can return an error must not panic. Nil pointers to models of package learners are not tested, because many of their
// methods are methods of embedded structs.
func TestZeroValuesDoNotPanic(t *testing.T) {
	dense := mat.NewDense(2, 2, []float64{2, 1, 1, 2})
	arguments := map[reflect.Type]any{
		reflect.TypeFor[context.Context](): t.Context(), reflect.TypeFor[backend.Device](): backendtest.Device(t, "cpu"),
		reflect.TypeFor[mat.Matrix](): dense, reflect.TypeFor[*mat.Dense](): dense,
		reflect.TypeFor[mat.Vector](): mat.NewVecDense(2, nil), reflect.TypeFor[*mat.VecDense](): mat.NewVecDense(2, nil),
		reflect.TypeFor[io.Reader](): strings.NewReader(""), reflect.TypeFor[any](): []any{}, reflect.TypeFor[[]float64](): []float64{1, 2},
		reflect.TypeFor[backend.Points](): backend.NewHost[float64](2, 2),
	}
	argument := func(in reflect.Type) reflect.Value {
		if v, ok := arguments[in]; ok {
			return reflect.ValueOf(v)
		}
		switch in.Kind() {
		case reflect.Func: // a function that returns zero values
			return reflect.MakeFunc(in, func([]reflect.Value) (out []reflect.Value) {
				for k := range in.NumOut() {
					out = append(out, reflect.Zero(in.Out(k)))
				}
				return out
			})
		case reflect.Pointer:
			return reflect.New(in.Elem())
		}
		return reflect.Zero(in)
	}
	call := func(name string, method reflect.Value) {
		defer func() {
			if p := recover(); p != nil {
				t.Errorf("%s: %v\n%s", name, p, debug.Stack())
			}
		}()
		var args []reflect.Value
		for k := range method.Type().NumIn() {
			if !method.Type().IsVariadic() || k < method.Type().NumIn()-1 {
				args = append(args, argument(method.Type().In(k)))
			}
		}
		method.Call(args)
	}
	calls := 0
	for _, typ := range exportedTypes() {
		name, _, _ := strings.Cut(typ.String(), "[")
		if panicking[name+"."] != "" {
			continue
		}
		zero, null := reflect.New(typ), reflect.Zero(reflect.PointerTo(typ))
		for i := range zero.NumMethod() {
			m := zero.Type().Method(i)
			if panicking[name+"."+m.Name] != "" {
				continue
			}
			call(fmt.Sprintf("the zero value of %s: %s", name, m.Name), zero.Method(i))
			calls++
			_, byValue := typ.MethodByName(m.Name) // for a method with a value receiver, Go itself panics if the pointer is nil
			outs := m.Type.NumOut()
			fails := outs > 0 && m.Type.Out(outs-1) == reflect.TypeFor[error]()
			implements := zero.Type().Implements
			if (fails || m.Name == "Close") && !byValue && !implements(reflect.TypeFor[learners.Model]()) && !implements(reflect.TypeFor[error]()) {
				call(fmt.Sprintf("a nil pointer to %s: %s", name, m.Name), null.Method(i))
			}
		}
	}
	t.Logf("%d methods of %d types", calls, len(exportedTypes()))
}

// TestExportedTypesAreComplete checks that exportedTypes has every type with an exported method in the packages
// that programs import, except types of errors.
func TestExportedTypesAreComplete(t *testing.T) {
	listed := map[string]bool{}
	for _, typ := range exportedTypes() {
		name, _, _ := strings.Cut(typ.String(), "[")
		listed[name] = true
	}
	for _, folder := range []string{".", "backend", "dataset", "gonum", "host", "kernels", "kernels/gram", "kernels/objects", "kernels/strings", "kernels/trees", "learners", "learners/tuning", "learners/validate", "solvers"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		methods := map[string][]string{} // names of methods by the type of their receiver
		name := ""
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			name = file.Name.Name
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Recv == nil || !f.Name.IsExported() {
					continue
				}
				receiver := f.Recv.List[0].Type
				if p, ok := receiver.(*ast.StarExpr); ok {
					receiver = p.X
				}
				if p, ok := receiver.(*ast.IndexExpr); ok {
					receiver = p.X
				}
				if id := receiver.(*ast.Ident); id.IsExported() {
					methods[id.Name] = append(methods[id.Name], f.Name.Name)
				}
			}
		}
		for typ, list := range methods {
			if !listed[name+"."+typ] && !slices.Contains(list, "Error") {
				t.Errorf("%s.%s has methods and is not among exportedTypes", name, typ)
			}
		}
	}
}

// TestNilModels calls each function that takes a model with a nil interface and with a nil pointer to a model. The
// function must return an error or, without an error result, the zero value.
func TestNilModels(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x := mat.NewDense(2, 1, []float64{1, 2})
	calls := map[string]func(m learners.Model) (any, error){
		"learners.NewPredictor": func(m learners.Model) (any, error) { return learners.NewPredictor(dev, m) },
		"learners.Calibrate":    func(m learners.Model) (any, error) { return learners.Calibrate(t.Context(), dev, m, x, x) },
		"learners.As":           func(m learners.Model) (any, error) { _, ok := learners.As[learners.Uncertain](m); return ok, nil },
		"learners.Merge":        func(m learners.Model) (any, error) { return learners.Merge(t.Context(), dev, m, m) },
		"learners.FactsOf":      func(m learners.Model) (any, error) { return learners.FactsOf(m, nil), nil },
		"learners.PartsOf":      func(m learners.Model) (any, error) { return learners.PartsOf(m), nil },
		"learners.MarginalEffects": func(m learners.Model) (any, error) {
			return learners.MarginalEffects(t.Context(), dev, m, x, learners.EffectParams{})
		},
		"validate.Dependence": func(m learners.Model) (any, error) {
			return validate.Dependence(t.Context(), dev, m, x, validate.DependenceParams{Grid: [][]float64{{1}}})
		},
		"validate.Apply":    func(m learners.Model) (any, error) { return validate.Apply(t.Context(), dev, m, x, true, nil) },
		"validate.Scorable": func(m learners.Model) (any, error) { return validate.Scorable(m) != m, nil },
		"validate.NewScore": func(m learners.Model) (any, error) { return validate.NewScore(m, nil, x, validate.Outcome{}, nil) },
		"validate.Importance": func(m learners.Model) (any, error) {
			return validate.Importance(t.Context(), dev, m, x, x, validate.ImportanceParams{Repeats: 1})
		},
	}
	nils := []learners.Model{nil, (*learners.RidgeModel)(nil), (*learners.SVCModel)(nil), (*learners.ClassifyModel)(nil), (*learners.GaussianProcessModel)(nil)}
	for name, call := range calls {
		for _, m := range nils {
			func() {
				defer func() {
					if p := recover(); p != nil {
						t.Errorf("%s of a nil %T: %v", name, m, p)
					}
				}()
				got, err := call(m)
				if v := reflect.ValueOf(got); v.IsValid() && !v.IsZero() {
					t.Errorf("%s of a nil %T: %v", name, m, got)
				}
				if err != nil && !strings.Contains(err.Error(), "no model was given") {
					t.Errorf("%s of a nil %T: %v", name, m, err)
				}
			}()
		}
	}
	// The map named calls must have an entry for every function that takes a model.
	for _, folder := range []string{".", "learners", "learners/tuning", "learners/validate"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range file.Decls {
				f, ok := d.(*ast.FuncDecl)
				if !ok || f.Recv != nil || !f.Name.IsExported() || strings.HasSuffix(path, "_test.go") {
					continue
				}
				for _, p := range f.Type.Params.List {
					if name := file.Name.Name + "." + f.Name.Name; strings.TrimPrefix(types.ExprString(p.Type), "learners.") == "Model" && calls[name] == nil {
						t.Errorf("%s takes a model and is not tested with none", name)
					}
				}
			}
		}
	}
}

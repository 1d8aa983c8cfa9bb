package mercer_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/objects"
	stringkernels "github.com/mercer-go/mercer/kernels/strings"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/tuning"
	"github.com/mercer-go/mercer/learners/validate"
	"github.com/mercer-go/mercer/solvers"
)

// noisy are n samples of a smooth function with noise.
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

// leftOut are y_i − f₋ᵢ(x_i) = ((K + λI)⁻¹y)_i / ((K + λI)⁻¹)_ii by a plain inverse.
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

// With a fold for each row the errors are those of the closed form.
func TestCrossValidationLeavesRowsOut(t *testing.T) {
	const n, lambda = 40, 0.1
	x, y := noisy(t, n)
	k := kernels.Gaussian{Sigma: 0.8}
	fold, weights := make([]int, n), make([]float64, n)
	for i := range n {
		fold[i], weights[i] = i, 2 // (K + λW⁻¹) with 2λ is K + λI
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
	// K + λI has a condition below (n + λ)/λ; two backward stable solves.
	bound := 4 * n * (3*n + 1) * 0x1p-53 * (n + lambda) / lambda * 10
	for i, want := range leftOut(t, k, lambda, x, y).RawVector().Data {
		if got := y.AtVec(i) - f.At(i, 0); math.Abs(got-want) > bound {
			t.Errorf("row %d: the error is %v, want %v", i+1, got, want)
		}
	}
}

// The λ of the smallest mean squared error without each row is found, and the learner
// that is returned has it.
func TestTuneFindsTheBestLambda(t *testing.T) {
	x, y := noisy(t, 40)
	k := kernels.Gaussian{Sigma: 0.8}
	lambdas := []float64{1e-4, 1e-2, 0.3, 3, 100}
	best, least := 0.0, math.Inf(1)
	for _, lambda := range lambdas {
		e := leftOut(t, k, lambda, x, y)
		if v := mat.Dot(e, e); v < least {
			best, least = lambda, v
		}
	}
	l, found, err := mercer.Tune(t.Context(), learners.KernelRidge{Kernel: k, NoIntercept: true}, x, y, tuning.Params{Vary: []string{}, Lambdas: lambdas}, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if l.Lambda != best || l.Kernel.String() != k.String() {
		t.Errorf("found %v with %v, want %v", l.Lambda, l.Kernel, best)
	}
	if got := found.Score(); math.Abs(got-least/40) > 1e-9*least {
		t.Errorf("the score is %v, want %v", got, least/40)
	}
	if l, _, err = mercer.Tune(t.Context(), learners.KernelRidge{NoIntercept: true}, x, y, tuning.Params{Steps: 3}, mercer.Options{}); err != nil || l.Kernel == nil || l.Lambda <= 0 {
		t.Errorf("without a kernel: %+v, %v", l, err)
	}
}

// Samples in float32 give what the same numbers in float64 give.
func TestSamplesInFloat32(t *testing.T) {
	x, y := noisy(t, 30)
	small := host.Matrix[float32]{Rows: 30, Cols: 2, Stride: 3, Data: make([]float32, 90)}
	wide := mat.NewDense(30, 2, nil)
	for i := range 30 {
		for j := range 2 {
			small.Data[3*i+j] = float32(x.At(i, j))
			wide.Set(i, j, float64(float32(x.At(i, j))))
		}
	}
	if !mat.Equal(small, wide) || !mat.Equal(small.T(), wide.T()) {
		t.Error("as a gonum matrix it differs")
	}
	var f [2]*mat.Dense
	for i, samples := range []mat.Matrix{small, wide} {
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
	all, err := mercer.Gram(t.Context(), k, x, nil, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	some, err := mercer.Gram(t.Context(), k, x, z, mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		for j := range 5 {
			want := kernels.Eval(k, x.RawRowView(i), x.RawRowView(j))
			// A sum of 2 terms, a root or an exponential: a few roundings of numbers up to 1.
			if math.Abs(all.At(i, j)-want) > 0x1p-46 || j < 2 && math.Abs(some.At(i, j)-want) > 0x1p-46 {
				t.Errorf("(%d, %d) is %v, want %v", i+1, j+1, all.At(i, j), want)
			}
		}
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
	bad := mat.VecDenseCopyOf(y)
	bad.SetVec(5, math.NaN())
	for want, err := range map[string]error{
		"x has 6 rows, fold 5":            cross(y, fold[:5], mercer.Options{}),
		"x has 6 rows, y 4":               cross(y.SliceVec(0, 4), fold, mercer.Options{}),
		"x has 6 rows, Options.Weights 1": cross(y, fold, mercer.Options{Options: learners.Options{Weights: []float64{1}}}),
		"all rows are in one fold":        cross(y, make([]int, 6), mercer.Options{}),
		"y is missing":                    cross(nil, fold, mercer.Options{}),
		"without fold 1 of 3: ":           cross(bad, fold, mercer.Options{}),
		"Options.Checkpoint is not used":  cross(y, fold, mercer.Options{Options: learners.Options{Checkpoint: solvers.Checkpoint{Dir: "c"}}}),
		"Options.Memory is not used":      tune(l, mercer.Options{Options: learners.Options{Memory: 1}}),
		"Lambdas has one for each target": tune(learners.KernelRidge{Lambdas: []float64{1}, NoIntercept: true}, mercer.Options{}),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// Choose C of a support vector machine by cross-validation.
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

// Find sigma and lambda of kernel ridge regression, and fit with them.
func ExampleTune() {
	ctx := context.Background()
	x, y := sine()
	best, found, err := mercer.Tune(ctx, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 30}, NoIntercept: true}, x, y, tuning.Params{}, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	m, err := mercer.Fit(ctx, best, x, y, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	fmt.Println(len(found.Trials), "kernels, leave-one-out error below 1e-6:", found.Score() < 1e-6)
	// Output:
	// 15 kernels, leave-one-out error below 1e-6: true
}

// A learner by its name, with the parameters that `mercer learners` lists.
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

// Samples in float32 are taken as they are.
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

// A kernel over texts: what it returns are samples like any others.
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

// The Gram matrix of a kernel, a gonum matrix.
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

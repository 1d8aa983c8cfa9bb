package mercer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// must returns v, and ends the program if err is not nil.
func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}

// line returns a least-squares model fitted to y = 2x + 1 at 0, 1, 2 and 3.
func line() *mercer.Model[*learners.RidgeModel] {
	x, y := mat.NewDense(4, 1, []float64{0, 1, 2, 3}), mat.NewDense(4, 1, []float64{1, 3, 5, 7})
	return must(mercer.Fit(context.Background(), learners.Ridge{}, x, y, mercer.Options{}))
}

// threeClasses returns 30 samples on a line, and their labels 0, 1 and 2.
func threeClasses() (x, y *mat.Dense) {
	x, y = mat.NewDense(30, 1, nil), mat.NewDense(30, 1, nil)
	for i := range 30 {
		x.Set(i, 0, float64(i))
		y.Set(i, 0, float64(i/10))
	}
	return x, y
}

func number(v float64) *mat.Dense { return mat.NewDense(1, 1, []float64{v}) }

func ExampleModel_Predict() {
	f := must(line().Predict(context.Background(), mat.NewDense(2, 1, []float64{5, 10})))
	fmt.Printf("%.1f\n", f.RawMatrix().Data)
	// Output:
	// [11.0 21.0]
}

func ExampleModel_PredictRow() {
	dst := []float64{0}
	err := line().PredictRow(context.Background(), dst, []float64{5})
	fmt.Printf("%.1f %v\n", dst, err)
	// Output:
	// [11.0] <nil>
}

func ExampleModel_Dims() {
	features, outputs := line().Dims()
	fmt.Println(features, outputs)
	// Output:
	// 1 1
}

func ExampleModel_Model() {
	fmt.Println(line().Model().Learner())
	// Output:
	// ridge
}

// This example prints the columns of the table that a model was fitted to.
func ExampleModel_Encoder() {
	table := must(dataset.NewTable("", dataset.Numbers("area", []float64{50, 80, 90}), dataset.Texts("town", []string{"york", "bath", "york"}), dataset.Numbers("price", []float64{90, 160, 170})))
	m := must(mercer.FitTable(context.Background(), learners.Ridge{Lambda: 1}, table, dataset.Rules{Targets: []string{"price"}}, mercer.Options{}))
	for _, in := range m.Encoder().Inputs {
		fmt.Println(in.Name, in.Text != nil)
	}
	// Output:
	// area false
	// town true
}

func ExampleModel_Save() {
	folder := must(os.MkdirTemp("", "mercer"))
	defer os.RemoveAll(folder)
	fmt.Println(line().Save(filepath.Join(folder, "model.safetensors")))
	// Output:
	// <nil>
}

// This example writes a model to memory instead of a file.
func ExampleModel_Write() {
	var file bytes.Buffer
	fmt.Println(line().Write(&file), file.Len() > 0)
	// Output:
	// <nil> true
}

// This example writes a model for onnxruntime and other programs.
func ExampleModel_WriteONNX() {
	var file bytes.Buffer
	fmt.Println(line().WriteONNX(&file, 64), file.Len() > 0)
	// Output:
	// <nil> true
}

// Close waits for running calls; later calls return an error.
func ExampleModel_Close() {
	m := line()
	m.Close()
	_, err := m.Predict(context.Background(), number(5))
	fmt.Println(errors.Is(err, mercer.ErrClosed))
	// Output:
	// true
}

// This example fits a table of texts and numbers, one cell of which is missing.
func ExampleFitTable() {
	ctx := context.Background()
	table := must(dataset.ReadCSV("-", strings.NewReader("area,town,price\n50,york,100\n60,,130\n80,bath,190\n90,bath,200\n")))
	m := must(mercer.FitTable(ctx, learners.Ridge{Lambda: 0.1}, table, dataset.Rules{Targets: []string{"price"}}, mercer.Options{}))
	p := must(m.PredictRows(ctx, map[string]any{"area": 70, "town": "bath"}, mercer.PredictOptions{}))
	fmt.Printf("%.0f\n", p[0].Values["price"])
	// Output:
	// 157
}

// The features are the numbers of the table, and a 0 or 1 for each text that occurs in the training column.
func ExampleModel_Encode() {
	ctx := context.Background()
	table := must(dataset.ReadCSV("-", strings.NewReader("area,town,price\n50,york,100\n60,york,130\n80,bath,190\n90,bath,200\n")))
	m := must(mercer.FitTable(ctx, learners.Ridge{Lambda: 0.1}, table, dataset.Rules{Targets: []string{"price"}}, mercer.Options{}))
	x := must(m.Encode(ctx, []map[string]any{{"area": 70, "town": "bath"}, {"area": 55, "town": "york"}}))
	fmt.Println(mat.Row(nil, 0, x), mat.Row(nil, 1, x))
	// Output:
	// [70 1 0] [55 0 1]
}

// A prediction lists the unknown texts and the missing cells of its row.
func ExampleModel_PredictRows() {
	ctx := context.Background()
	table := must(dataset.ReadCSV("-", strings.NewReader("area,town,price\n50,york,100\n60,york,130\n80,bath,190\n90,bath,200\n")))
	m := must(mercer.FitTable(ctx, learners.Ridge{Lambda: 0.1}, table, dataset.Rules{Targets: []string{"price"}}, mercer.Options{}))
	for _, p := range must(m.PredictRows(ctx, []map[string]any{{"area": 70, "town": "paris"}, {"area": nil, "town": "york"}}, mercer.PredictOptions{})) {
		fmt.Println(p.Unknown, p.Missing)
	}
	// Output:
	// map[town:paris] []
	// map[] [area]
}

func ExampleModel_Classes() {
	x, y := threeClasses()
	o := mercer.Options{Options: learners.Options{Classes: []string{"low", "middle", "high"}}}
	m := must(mercer.Fit(context.Background(), learners.SVC{Kernel: kernels.Linear{}}, x, y, o))
	fmt.Println(m.Classes().Names)
	// Output:
	// [low middle high]
}

// For two classes the decision value is > 0 if the second class is predicted.
func ExampleModel_Decision() {
	x, y := mat.NewDense(2, 1, []float64{-1, 1}), mat.NewDense(2, 1, []float64{7, 9})
	m := must(mercer.Fit(context.Background(), learners.SVC{Kernel: kernels.Linear{}, C: 10}, x, y, mercer.Options{}))
	f := must(m.Decision(context.Background(), mat.NewDense(2, 1, []float64{-2, 0.5})))
	fmt.Printf("%.1f\n", f.RawMatrix().Data)
	// Output:
	// [-2.0 0.5]
}

func ExampleModel_Proba() {
	x, y := threeClasses()
	m := must(mercer.Fit(context.Background(), learners.Logistic{Lambda: 1}, x, y, mercer.Options{}))
	p := must(m.Proba(context.Background(), number(25)))
	fmt.Println(p.At(0, 0) < 0.01, p.At(0, 2) > 0.99)
	// Output:
	// true true
}

// The SVC has a binary classifier for each pair of classes. Its decision value is > 0 for the
// second class of the pair.
func ExampleModel_PairwiseDecision() {
	x, y := threeClasses()
	m := must(mercer.Fit(context.Background(), learners.SVC{Kernel: kernels.Linear{}}, x, y, mercer.Options{}))
	f := must(m.PairwiseDecision(context.Background(), number(25)))
	for i, pair := range []string{"0 or 1", "0 or 2", "1 or 2"} {
		fmt.Println(pair, f.At(0, i) > 0)
	}
	// Output:
	// 0 or 1 true
	// 0 or 2 true
	// 1 or 2 true
}

func ExampleModel_Neighbors() {
	x, y := threeClasses()
	m := must(mercer.Fit(context.Background(), learners.KernelKNN{K: 3}, x, y, mercer.Options{}))
	samples, squares, err := m.Neighbors(context.Background(), number(7.25))
	fmt.Println(samples, squares, err)
	// Output:
	// [[7 8 6]] [[0.0625 0.5625 1.5625]] <nil>
}

// The standard deviation of a Gaussian process grows far away from its samples.
func ExampleModel_Std() {
	x, y := sine()
	m := must(mercer.Fit(context.Background(), learners.GaussianProcess{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 0.01, Fixed: true}, x, y, mercer.Options{}))
	s := must(m.Std(context.Background(), mat.NewDense(2, 1, []float64{5, 50})))
	fmt.Println(s.At(0, 0) < s.At(1, 0)/5)
	// Output:
	// true
}

// PredictBound returns a proven bound on the errors that rounding and the tolerance of the solver
// cause in predictions.
func ExampleModel_PredictBound() {
	x, y := sine()
	m := must(mercer.Fit(context.Background(), learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 0.01, Bound: true}, x, y, mercer.Options{}))
	values, bounds, err := m.PredictBound(context.Background(), number(1))
	fmt.Println(values.At(0, 0) > 0.5, bounds.At(0, 0) < 1e-12, err)
	// Output:
	// true true <nil>
}

// The average derivative of y = 2x + 1 is the slope 2.
func ExampleModel_Effects() {
	x := mat.NewDense(3, 1, []float64{0, 1, 2})
	effects := must(line().Effects(context.Background(), x, nil))
	fmt.Printf("%.2f\n", effects.Mean.At(0, 0))
	// Output:
	// 2.00
}

// The jackknife+ intervals of kernel ridge regression at level 0.9 contain about nine of ten new targets.
func ExampleModel_Intervals() {
	x, y := sine()
	m := must(mercer.Fit(context.Background(), learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 0.01}, x, y, mercer.Options{}))
	lower, upper, err := m.Intervals(context.Background(), number(1), 0.9)
	fmt.Println(lower.At(0, 0) < upper.At(0, 0), upper.At(0, 0)-lower.At(0, 0) < 0.1, err)
	// Output:
	// true true <nil>
}

// Prepare does the slow work of the first call of Intervals in advance, for example before the first request of a
// service.
func ExampleModel_Prepare() {
	ctx := context.Background()
	x, y := sine()
	m := must(mercer.Fit(ctx, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 0.01}, x, y, mercer.Options{}))
	defer m.Close()
	if err := m.Prepare(ctx); err != nil {
		log.Fatal(err)
	}
	_, _, err := m.Intervals(ctx, number(1), 0.9)
	fmt.Println(err)
	// Output:
	// <nil>
}

// After a calibration on samples that were not in the fit, every learner returns intervals. They
// take no longer than predictions. Here half of the width is the largest of ten errors.
func ExampleModel_Calibrate() {
	ctx := context.Background()
	m := line()
	x, y := mat.NewDense(10, 1, nil), mat.NewDense(10, 1, nil)
	for i := range 10 {
		x.Set(i, 0, float64(i))
		y.Set(i, 0, 2*float64(i)+1+float64(i+1)/10) // errors of 0.1, 0.2, … 1
	}
	if err := m.Calibrate(ctx, x, y); err != nil {
		log.Fatal(err)
	}
	lower, upper, err := m.Intervals(ctx, number(5), 0.9)
	fmt.Printf("%.1f %.1f %v\n", lower.At(0, 0), upper.At(0, 0), err)
	// Output:
	// 10.0 12.0 <nil>
}

// A prediction set contains the predicted class and all classes whose score is within the calibrated limit.
func ExampleModel_PredictionSets() {
	ctx := context.Background()
	x, y := mat.NewDense(20, 1, nil), mat.NewDense(20, 1, nil)
	for i := range 20 {
		x.Set(i, 0, float64(i)-9.5)
		y.Set(i, 0, float64(i/10))
	}
	m := must(mercer.Fit(ctx, learners.Logistic{Lambda: 1}, x, y, mercer.Options{}))
	if err := m.Calibrate(ctx, x, y); err != nil { // a real program calibrates with samples that were not in the fit
		log.Fatal(err)
	}
	sets := must(m.PredictionSets(ctx, mat.NewDense(2, 1, []float64{-8, 0.5}), 0.95))
	fmt.Println(sets.RawRowView(0), sets.RawRowView(1)[1])
	// Output:
	// [1 0] 1
}

// This example prints the coefficients of a path, from the largest penalty to the smallest.
func ExampleLassoPath() {
	x := mat.NewDense(4, 2, []float64{1, 1, 1, -1, -1, 1, -1, -1})
	y := mat.NewDense(4, 1, []float64{4, 2, -2, -4}) // 3x₁ + x₂
	path := must(mercer.LassoPath(context.Background(), learners.Lasso{}, x, y, []float64{8, 2}, mercer.Options{}))
	for _, m := range path {
		fmt.Printf("%.2f\n", m.Fitted.Coef().RawMatrix().Data)
	}
	// Output:
	// [2.00 0.00]
	// [2.75 0.75]
}

func ExampleLearnerFunc_Fit() {
	x, y := threeClasses()
	learn := mercer.LearnerFunc[*learners.KernelKNNClassModel](learners.KernelKNN{K: 3}.FitClasses)
	m := must(learn.Fit(context.Background(), must(backend.Open("cpu", backend.Config{})), x, y, learners.Options{}))
	fmt.Println(m.Classes().Labels)
	// Output:
	// [0 1 2]
}

// exampleFactor returns the factor for K = (2 1; 1 2) and λ = 1.
func exampleFactor() *mercer.Factor {
	return must(mercer.NewFactor(context.Background(), mat.NewSymDense(2, []float64{2, 1, 1, 2}), 1, mercer.Options{}))
}

func ExampleNewFactor() {
	f := exampleFactor()
	defer f.Close()
	fmt.Printf("%.4f\n", must(f.LogDet())) // log 8
	// Output:
	// 2.0794
}

func ExampleNewKernelFactor() {
	f := must(mercer.NewKernelFactor(context.Background(), kernels.Linear{}, 1, mat.NewDense(2, 1, []float64{1, 2}), mercer.Options{}))
	defer f.Close()
	fmt.Printf("%.4f\n", must(f.LogDet())) // log det(2 2; 2 5) = log 6
	// Output:
	// 1.7918
}

func ExampleFactor_SolveTo() {
	f := exampleFactor()
	defer f.Close()
	var a mat.Dense
	err := f.SolveTo(context.Background(), &a, mat.NewDense(2, 1, []float64{4, 4}))
	fmt.Printf("%.1f %v\n", a.RawMatrix().Data, err)
	// Output:
	// [1.0 1.0] <nil>
}

func ExampleFactor_SolveVecTo() {
	f := exampleFactor()
	defer f.Close()
	var a mat.VecDense
	err := f.SolveVecTo(context.Background(), &a, mat.NewVecDense(2, []float64{4, 4}))
	fmt.Printf("%.1f %v\n", a.RawVector().Data, err)
	// Output:
	// [1.0 1.0] <nil>
}

func ExampleFactor_Close() {
	f := exampleFactor()
	f.Close()
	err := f.SolveTo(context.Background(), new(mat.Dense), number(1))
	fmt.Println(errors.Is(err, mercer.ErrClosed))
	// Output:
	// true
}

// samplesOfLine provides the points (i/1000, 2i/1000 + 1), which are never all in memory.
type samplesOfLine struct{}

func (samplesOfLine) Dims() (n, d, t int) { return 1000, 1, 1 }

func (samplesOfLine) Pass(ctx context.Context, _ bool, use func(solvers.Block) error) error {
	const rows = 100
	for first := 0; first < 1000; first += rows {
		x, y := backend.NewHost[float64](rows, 1), backend.NewHost[float64](rows, 1)
		for i := range rows {
			v := float64(first+i) / 1000
			x.Data[i], y.Data[i] = v, 2*v+1
		}
		if err := use(solvers.Block{X: x, Y: y}); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// This example fits samples that the program generates, or reads, again in each pass.
func ExampleFitRows() {
	ctx := context.Background()
	m := must(mercer.FitRows(ctx, learners.NystromRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 1e-4, Centers: 8, Seed: 1}, samplesOfLine{}, mercer.Options{}))
	defer m.Close()
	f := must(m.Predict(ctx, mat.NewDense(1, 1, []float64{0.25})))
	fmt.Printf("%.2f\n", f.At(0, 0))
	// Output:
	// 1.50
}

// sine returns 100 samples of sin on [0, 10).
func sine() (x, y *mat.Dense) {
	x, y = mat.NewDense(100, 1, nil), mat.NewDense(100, 1, nil)
	for i := range 100 {
		x.Set(i, 0, 0.1*float64(i))
		y.Set(i, 0, math.Sin(x.At(i, 0)))
	}
	return x, y
}

// A classifier accepts any numbers as labels and predicts them.
func ExampleFit_classifier() {
	x := mat.NewDense(6, 1, []float64{-3, -2, -1, 1, 2, 3})
	y := mat.NewVecDense(6, []float64{7, 7, 7, 9, 9, 9})
	m, err := mercer.Fit(context.Background(), learners.SVC{Kernel: kernels.Linear{}, C: 1}, x, y, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	label := []float64{0}
	if err := m.PredictRow(context.Background(), label, []float64{0.7}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(label)
	// Output:
	// [9]
}

// Any number of goroutines may use one model. Predicting a row takes microseconds and does not
// increase the memory of the program.
func ExampleModel_concurrent() {
	x, y := sine()
	ctx := context.Background()
	m, err := mercer.Fit(ctx, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 1e-3}, x, y, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var group sync.WaitGroup
	deviations := make([]float64, 8)
	for i := range deviations {
		group.Go(func() {
			f := []float64{0}
			if err := m.PredictRow(ctx, f, []float64{float64(i)}); err != nil {
				log.Fatal(err)
			}
			deviations[i] = math.Abs(f[0] - math.Sin(float64(i)))
		})
	}
	group.Wait()
	maxDeviation := 0.0
	for _, v := range deviations {
		maxDeviation = max(maxDeviation, v)
	}
	fmt.Printf("none is more than %.2f off\n", math.Ceil(maxDeviation*100)/100)
	// Output:
	// none is more than 0.01 off
}

// This example fits a table, as mercer fit does, and predicts rows with intervals.
func ExampleFitTable_intervals() {
	ctx := context.Background()
	table, err := dataset.Read("docs/pictures/sinc.csv", nil)
	if err != nil {
		log.Fatal(err)
	}
	learner := learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 0.25}, Lambda: 0.1}
	rules := dataset.Rules{Targets: []string{"y"}, Standardize: true}
	model, err := mercer.FitTable(ctx, learner, table, rules, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer model.Close()
	rows := []map[string]any{{"x": 0}, {"x": 5}}
	predictions, err := model.PredictRows(ctx, rows, mercer.PredictOptions{Level: 0.9})
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range predictions {
		fmt.Printf("%.2f, in [%.2f, %.2f] with probability 0.9\n", p.Values["y"], p.Lower["y"], p.Upper["y"])
	}
	// Output:
	// 1.02, in [0.81, 1.23] with probability 0.9
	// -0.21, in [-0.41, -0.00] with probability 0.9
}

// A fit ends soon after its context is canceled, and reports its progress.
func ExampleFit_progress() {
	x, y := sine()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	last := 0.0
	_, err := mercer.Fit(ctx, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 1e-3}, x, y, mercer.Options{
		Options: learners.Options{Progress: func(p solvers.Progress) { last = p.Fraction }},
	})
	fmt.Println(err, last)
	// Output:
	// <nil> 1
}

// This example reads a model from memory, where a program may have embedded it or read it from a database.
func ExampleRead() {
	var file bytes.Buffer
	if err := line().Write(&file); err != nil {
		log.Fatal(err)
	}
	m := must(mercer.Read(bytes.NewReader(file.Bytes()), int64(file.Len()), mercer.Options{}))
	defer m.Close()
	fmt.Println(m.Model().Learner())
	// Output:
	// ridge
}

// This example saves a model and loads it, as another program or `mercer predict` can.
func ExampleLoad() {
	x, y := sine()
	ctx := context.Background()
	m, err := mercer.Fit(ctx, learners.Ridge{Lambda: 1}, x, y, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "mercer")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "model.safetensors")
	if err := m.Save(path); err != nil {
		log.Fatal(err)
	}
	loaded, err := mercer.Load(path, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	before, after := []float64{0}, []float64{0}
	_ = m.PredictRow(ctx, before, []float64{1})
	_ = loaded.PredictRow(ctx, after, []float64{1})
	fmt.Println(loaded.Model().Learner(), before[0] == after[0])
	// Output:
	// ridge true
}

// This example solves (K + λI)α = y for a given matrix K.
func ExampleSolve() {
	k := mat.NewSymDense(2, []float64{2, 1, 1, 2})
	alpha, err := mercer.Solve(context.Background(), k, 1, mat.NewVecDense(2, []float64{4, 4}), mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.3f\n", mat.Formatted(alpha.T()))
	// Output:
	// [1.000  1.000]
}

// This example solves (K + λI)α = y for a kernel; K need not be stored as a matrix.
func ExampleSolveKernel() {
	x, y := sine()
	res, err := mercer.SolveKernel(context.Background(), kernels.Gaussian{Sigma: 1}, 1e-3, x, y, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Alpha.Rows, res.Residual < 1e-8)
	// Output:
	// 100 true
}

// A factor serves many right-hand sides, and can be updated for a moving window of samples.
func ExampleFactor() {
	ctx := context.Background()
	x, y := sine()
	f, err := mercer.NewKernelFactor(ctx, kernels.Gaussian{Sigma: 1}, 1e-3, x.Slice(0, 50, 0, 1), mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for i := 50; i < 100; i++ { // each step takes O(n²) operations
		if err := f.AppendPoint(ctx, x.RawRowView(i)); err != nil {
			log.Fatal(err)
		}
		if err := f.Remove(ctx, 0); err != nil {
			log.Fatal(err)
		}
	}
	var alpha mat.Dense
	if err := f.SolveTo(ctx, &alpha, y.Slice(50, 100, 0, 1)); err != nil {
		log.Fatal(err)
	}
	fresh, err := mercer.SolveKernel(ctx, kernels.Gaussian{Sigma: 1}, 1e-3, x.Slice(50, 100, 0, 1), y.Slice(50, 100, 0, 1), mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(mat.EqualApprox(&alpha, mat.NewDense(50, 1, fresh.Alpha.Data), 1e-6))
	// Output:
	// true
}

// This example opens a device with 4 threads and 1 GiB for matrices.
func ExampleOptions() {
	dev, err := backend.Open("cpu", backend.Config{Threads: 4, Memory: 1 << 30})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = dev.Close() }()
	x, y := sine()
	m, err := mercer.Fit(context.Background(), learners.Ridge{Lambda: 1}, x, y, mercer.Options{Device: dev})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	fmt.Println(m.Dims())
	// Output:
	// 1 1
}

package mercer_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
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

// sine is 100 samples of sin on [0, 10).
func sine() (x, y *mat.Dense) {
	x, y = mat.NewDense(100, 1, nil), mat.NewDense(100, 1, nil)
	for i := range 100 {
		x.Set(i, 0, 0.1*float64(i))
		y.Set(i, 0, math.Sin(x.At(i, 0)))
	}
	return x, y
}

// A classifier takes the labels as they are and gives them back.
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

// Any number of goroutines may ask one model; a row costs microseconds, and no
// memory that grows.
func ExampleModel_concurrent() {
	x, y := sine()
	ctx := context.Background()
	m, err := mercer.Fit(ctx, learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 1e-3}, x, y, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	var group sync.WaitGroup
	off := make([]float64, 8)
	for i := range off {
		group.Go(func() {
			f := []float64{0}
			if err := m.PredictRow(ctx, f, []float64{float64(i)}); err != nil {
				log.Fatal(err)
			}
			off[i] = math.Abs(f[0] - math.Sin(float64(i)))
		})
	}
	group.Wait()
	worst := 0.0
	for _, v := range off {
		worst = max(worst, v)
	}
	fmt.Printf("none is more than %.2f off\n", math.Ceil(worst*100)/100)
	// Output:
	// none is more than 0.01 off
}

// Fit a table, as mercer fit does, and predict rows with their intervals.
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
	predictions, err := model.PredictRows(ctx, rows, mercer.Wanted{Level: 0.9})
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

// A fit ends soon after its context does, and tells how far it is.
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

// Save a model and load it in another program, or in `mercer predict`.
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
	again, err := mercer.Load(path, mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	before, after := []float64{0}, []float64{0}
	_ = m.PredictRow(ctx, before, []float64{1})
	_ = again.PredictRow(ctx, after, []float64{1})
	fmt.Println(again.Model().Learner(), before[0] == after[0])
	// Output:
	// ridge true
}

// Solve (K + λI)α = y for a matrix of your own.
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

// Solve for a kernel, which need not be stored as a matrix.
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

// A factor is kept for many right-hand sides, and follows a window of samples.
func ExampleFactor() {
	ctx := context.Background()
	x, y := sine()
	f, err := mercer.NewKernelFactor(ctx, kernels.Gaussian{Sigma: 1}, 1e-3, x.Slice(0, 50, 0, 1), mercer.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	for i := 50; i < 100; i++ { // O(n²) each
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

// A device of your own: 4 threads and 1 GiB for matrices.
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

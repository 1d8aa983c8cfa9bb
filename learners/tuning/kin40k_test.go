package tuning_test

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners/learnertest"
	"github.com/mercer-go/mercer/learners/tuning"
	"github.com/mercer-go/mercer/solvers"
)

// TestKin40k checks a search on the forward dynamics of a robot's arm, 40,000 points of 8 features. With the
// parameters that it finds, the error is about 0.25 for 2,000 points and 0.08 for 36,000 points. With sigma equal
// to the median distance, the error for 2,000 points is 0.6.
func TestKin40k(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of factorizations: not under -short")
	}
	data, err := dataset.ReadCSV(required.Data(t, "kin40k.csv.gz"), nil)
	if err != nil {
		t.Fatal(err)
	}
	x, y, _ := learnertest.Encode(t, data, dataset.Rules{Targets: []string{"target"}, Standardize: true})
	rowRange := func(first, rows int) (hx, hy backend.Host[float64]) {
		rx, ry := x.RawMatrix(), y.RawMatrix()
		return backend.Host[float64]{Rows: rx.Rows, Cols: rx.Cols, Stride: rx.Stride, Data: rx.Data}.View(first, 0, rows, rx.Cols),
			backend.Host[float64]{Rows: ry.Rows, Cols: 1, Stride: ry.Stride, Data: ry.Data}.View(first, 0, rows, 1)
	}
	dev := device(t, "cpu")
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigmas: slices.Repeat([]float64{4}, 8)}}
	p.X, p.Y = rowRange(0, 500)
	res, err := tuning.Search(context.Background(), dev, p, tuning.Params{Criterion: tuning.Evidence, Strategy: tuning.Gradient, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	train, test := solvers.Problem{}, solvers.Problem{}
	train.X, train.Y = rowRange(0, 2000)
	test.X, test.Y = rowRange(38000, 2000)
	rmse := func(k kernels.Kernel, lambda float64) float64 {
		q := train
		q.Kernel, q.Lambda = k, lambda
		r, err := solvers.Solve(context.Background(), dev, q, solvers.Params{})
		if err != nil {
			t.Fatal(err)
		}
		b := dev.F64()
		z, f := mustPlace(t, b, test.X), mustPlace(t, b, backend.NewHost[float64](2000, 1))
		c, a := mustPlace(t, b, train.X), mustPlace(t, b, r.Alpha)
		b.GramMul(f, k, z, c, a)
		values := backend.NewHost[float64](2000, 1)
		if err := b.Download(values, f); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for i, v := range values.Data {
			d := test.Y.Row(i)[0] - v
			sum += d * d / 2000
		}
		return math.Sqrt(sum)
	}
	tuned, untuned := rmse(res.Kernel(), res.Lambda()), rmse(kernels.Gaussian{Sigma: 4}, 0.1)
	t.Logf("%v, λ = %v: RMSE %v; the median distance: %v", res.Kernel(), res.Lambda(), tuned, untuned)
	if tuned > 0.3 || tuned > 0.5*untuned {
		t.Errorf("RMSE %v tuned, %v at the median distance", tuned, untuned)
	}
}

// mustPlace returns a copy of h on the device. The copy is freed at the end of the test.
func mustPlace(t *testing.T, b backend.Backend[float64], h backend.Host[float64]) backend.Matrix[float64] {
	t.Helper()
	m, err := b.New(h.Rows, h.Cols)
	if err == nil {
		err = b.Upload(m, h)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Free)
	return m
}

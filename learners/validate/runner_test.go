package validate_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/planned"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
	"gonum.org/v1/gonum/mat"
)

func checkClose(t *testing.T, name string, got, want, bound float64) {
	t.Helper()
	if d := math.Abs(got - want); !(d <= bound) {
		t.Errorf("%s: got %v, want %v: difference %.3g, allowed %.3g", name, got, want, d, bound)
	}
}

func fitter(t *testing.T, learner string, params map[string]string) learners.Fitter {
	t.Helper()
	d, err := learners.Find(learner)
	if err != nil {
		t.Fatal(err)
	}
	fit, err := d.Make(d.Tasks[0], params)
	if err != nil {
		t.Fatal(err)
	}
	return fit
}

// TestMatricesAndTablesHaveTheSameScores compares the scores of tables and of matrices, on one device and on two, with
// those of the exact solution: ridge regression on one centered column has the weight Σxy/(Σx² + λ).
func TestMatricesAndTablesHaveTheSameScores(t *testing.T) {
	one, two := backendtest.Device(t, "ref"), backendtest.Device(t, "ref")
	const n, folds, lambda = 20, 4, 0.5
	rng := rand.New(rand.NewPCG(3, 3))
	t.Log("seed 3, 3")
	xs, ys := make([]float64, n), make([]float64, n)
	for i := range n {
		xs[i] = rng.NormFloat64()
		ys[i] = 2*xs[i] + 1 + 0.1*rng.NormFloat64()
	}
	table, err := dataset.NewTable("t.csv", dataset.Numbers("x", xs), dataset.Numbers("y", ys))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := validate.NewTable(table, dataset.Rules{Targets: []string{"y"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	column := func(v []float64) backend.Host[float64] {
		return backend.Host[float64]{Rows: n, Cols: 1, Stride: 1, Data: v}
	}
	splits, err := validate.KFold(n, folds, nil, 7)
	if err != nil {
		t.Fatal(err)
	}
	fit := fitter(t, "ridge", map[string]string{"lambda": strconv.FormatFloat(lambda, 'g', -1, 64)})
	want := make([]float64, 2*folds)
	for i := range want {
		train, test := splits(i)
		mx, my, xy, xx, sum := 0.0, 0.0, 0.0, 0.0, 0.0
		for _, r := range train {
			mx, my = mx+xs[r]/float64(len(train)), my+ys[r]/float64(len(train))
		}
		for _, r := range train {
			xy, xx = xy+(xs[r]-mx)*(ys[r]-my), xx+(xs[r]-mx)*(xs[r]-mx)
		}
		for _, r := range test {
			e := ys[r] - my - xy/(xx+lambda)*(xs[r]-mx)
			sum += e * e
		}
		want[i] = math.Sqrt(sum / float64(len(test)))
	}
	for name, r := range map[string]validate.Runner{
		"matrices":    {Data: validate.Samples{X: column(xs), Y: mat.NewDense(len(ys), 1, ys)}, Devices: []backend.Device{one}},
		"table":       {Data: rows, Devices: []backend.Device{one}},
		"two devices": {Data: rows, Devices: []backend.Device{one, two}},
	} {
		scores, err := r.Scores(t.Context(), fit, 2*folds, splits, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range scores {
			// The bound covers sums of n terms of size ≤ 10 in different orders, and the solution of one equation.
			checkClose(t, name+": RMSE", *s.RMSE, want[i], 100*n*0x1p-52)
		}
		m := validate.Measures(scores)
		if len(m) != 3 || m[0].Name != "rmse" || len(m[0].Scores) != 2*folds {
			t.Errorf("%s: measures %+v", name, m)
		}
	}
}

// TestEachSharesParts checks that fits on the same division share one Part, which is made only once.
func TestEachSharesParts(t *testing.T) {
	data := &countingSamples{Samples: validate.Samples{X: backend.NewHost[float64](6, 1), Y: mat.NewDense(6, 1, nil)}}
	r := validate.Runner{Data: data, Devices: []backend.Device{nil}}
	splits, n := validate.PredefinedSplits([]int{5, 5, 9, 9, 2, 2})
	if n != 3 {
		t.Fatalf("%d folds", n)
	}
	parts := map[int]*validate.Part{}
	divisions := []int{0, 1, 2, 0, 1, 2}
	err := r.Each(t.Context(), splits, divisions, func(_ context.Context, f validate.Fit) error {
		if previous := parts[divisions[f.Number]]; previous != nil && previous != f.Part {
			t.Errorf("fit %d: another part", f.Number)
		}
		parts[divisions[f.Number]] = f.Part
		return nil
	})
	if err != nil || data.splits != 3 {
		t.Errorf("%d parts were made, %v", data.splits, err)
	}
	errFailed := errors.New("failed")
	err = r.Each(t.Context(), splits, divisions, func(_ context.Context, f validate.Fit) error {
		if f.Number >= 2 {
			return errFailed
		}
		return nil
	})
	if fitErr := (*validate.FitError)(nil); !errors.As(err, &fitErr) || fitErr.Fit != 2 || !errors.Is(err, errFailed) {
		t.Errorf("%v, want that of fit 2", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Each(ctx, splits, divisions, func(context.Context, validate.Fit) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v after the end of the context", err)
	}
}

type countingSamples struct {
	validate.Samples
	splits int
}

func (c *countingSamples) Split(train, test []int) (*validate.Part, error) {
	c.splits++
	return c.Samples.Split(train, test)
}

// TestOutOfBagCountsRows checks that N is the number of out-of-bag rows, also if the rows have
// weights, and that bias² and variance sum to the square of the error.
func TestOutOfBagCountsRows(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	const n = 8
	x, y, w := backend.NewHost[float64](n, 1), backend.NewHost[float64](n, 1), make([]float64, n)
	for i := range n {
		x.Data[i], y.Data[i], w[i] = float64(i), float64(i*i%5), float64(1+i%3)
	}
	r := validate.Runner{Data: validate.Samples{X: x, Y: mat.NewDense(n, 1, y.Data), Weights: w}, Devices: []backend.Device{dev}}
	b, err := r.OutOfBag(t.Context(), fitter(t, "ridge", map[string]string{"lambda": "1"}), 30, 1)
	if err != nil {
		t.Fatal(err)
	}
	out := map[int]bool{}
	for round := range 30 {
		_, test := validate.Bootstrap(n, 1)(round)
		for _, i := range test {
			out[i] = true
		}
	}
	if b.N != len(out) {
		t.Errorf("%d rows, want %d", b.N, len(out))
	}
	checkClose(t, "bias² + variance", b.Bias2+b.Variance, b.Error*b.Error, 30*n*0x1p-52*b.Error*b.Error)
	// A table of one row has no out-of-bag samples, because its row is always drawn.
	runner := validate.Runner{Data: validate.Samples{X: backend.NewHost[float64](1, 1), Y: mat.NewDense(1, 1, nil)}, Devices: []backend.Device{dev}}
	if _, err := runner.OutOfBag(t.Context(), nil, 3, 1); err == nil {
		t.Error("a bootstrap of one row is not refused")
	}
}

// TestFitsAtOnceShareTheMemory checks that a fit gets the memory limit divided by the number of devices, minus the size
// of its Part, and that the plan includes all concurrent fits.
func TestFitsAtOnceShareTheMemory(t *testing.T) {
	const n, memory, plan = 6, 9000, 100
	x := backend.NewHost[float64](n, 3)
	partBytes := int64(8 * n * (3 + 1)) // size of the training and test samples with their targets
	for devices, want := range map[int]struct{ memory, plan int64 }{1: {memory - partBytes, plan + partBytes}, 3: {memory/3 - partBytes, 3 * (plan + partBytes)}} {
		r := validate.Runner{Data: validate.Samples{X: x, Y: mat.NewDense(n, 1, nil)}, Devices: make([]backend.Device, devices)}
		r.Options.Memory = memory
		splits, folds := validate.PredefinedSplits([]int{0, 0, 1, 1, 2, 2})
		var mu sync.Mutex
		planning := planned.With(t.Context(), func(bytes int64) {
			mu.Lock()
			defer mu.Unlock()
			if bytes != want.plan {
				t.Errorf("%d devices: %d bytes are planned, want %d", devices, bytes, want.plan)
			}
		})
		divisions := make([]int, folds)
		for k := range divisions {
			divisions[k] = k
		}
		err := r.Each(planning, splits, divisions, func(ctx context.Context, f validate.Fit) error {
			if f.Options.Memory != want.memory {
				t.Errorf("%d devices: a fit may take %d bytes, want %d", devices, f.Options.Memory, want.memory)
			}
			planned.Report(ctx, plan)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

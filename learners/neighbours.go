package learners

import (
	"context"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

// remembered is what learners that keep all samples have in common.
type remembered struct {
	kernel kernels.Kernel
	points backend.Host[float64] // the samples of weight > 0
	weight []float64
}

// remember copies the samples. needed are bytes on the device for n rows.
func remember(ctx context.Context, dev backend.Device, learner string, k kernels.Kernel, x backend.Host[float64], o Options, needed func(n int) int64) (*remembered, error) {
	t, err := newTask(ctx, dev, o, learner, x.Rows, needed)
	if err != nil {
		return nil, err
	}
	r := &remembered{kernel: k, points: keepPositive(x, o.Weights)}
	for i := range x.Rows {
		if w := weightOf(o, i); w > 0 {
			r.weight = append(r.weight, w)
		}
	}
	return r, t.at("copy", 1)
}

func (r *remembered) dims() int {
	if r == nil {
		return 0
	}
	return r.points.Cols
}

// rowsAtOnce is how many rows of x are held against n samples at a time.
func rowsAtOnce(n int) int { return max(1, min(256, 1<<21/n)) }

// each calls f with k(x_i, z) for all samples z, for every row of x.
func (r *remembered) each(ctx context.Context, dev backend.Device, x backend.Host[float64], f func(i int, values []float64) error) error {
	base, b := dev.F64(), dev.F64().With(ctx, nil)
	z, err := backend.Place(base, r.points)
	if err != nil {
		return err
	}
	defer z.Free()
	rows := min(x.Rows, rowsAtOnce(r.points.Rows))
	gram, err := b.New(rows, r.points.Rows)
	if err != nil {
		return err
	}
	defer gram.Free()
	host := backend.NewHost[float64](rows, r.points.Rows)
	for first := 0; first < x.Rows; first += rows {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n := min(rows, x.Rows-first)
		err := placed(base, x.View(first, 0, n, x.Cols), backend.Host[float64]{}, func(x, _ backend.Matrix[float64]) error {
			out := gram.View(0, 0, n, r.points.Rows)
			b.Gram(out, r.kernel, x, z)
			return b.Download(host.View(0, 0, n, r.points.Rows), out)
		})
		if err != nil {
			return err
		}
		for i := range n {
			if err := f(first+i, host.Row(i)); err != nil {
				return err
			}
		}
	}
	return nil
}

// save puts the samples into s, where restoreRemembered finds them.
func (r *remembered) save(s State) {
	s.Params["kernel"] = r.kernel.String()
	s.Arrays["points"], s.Arrays["weights"] = r.points, rowOf(r.weight)
}

func restoreRemembered(s State) (*remembered, error) {
	var err error
	r := &remembered{}
	if r.points, err = s.array("points", -1, -1); err != nil {
		return nil, err
	}
	if r.kernel, err = restoreKernel(s, r.points.Cols); err != nil {
		return nil, err
	}
	w, err := s.array("weights", 1, r.points.Rows)
	if err != nil {
		return nil, err
	}
	r.weight = w.Row(0)
	for i, v := range r.weight {
		if !(v > 0) {
			return nil, fmt.Errorf("array \"weights\": column %d must be > 0, got %v", i+1, v)
		}
	}
	return r, nil
}

// sharesOf turns n×K sums that are ≥ 0 into probabilities.
func sharesOf(sums *mat.Dense) (*mat.Dense, error) {
	n, _ := sums.Dims()
	for i := range n {
		row, total := sums.RawRowView(i), 0.0
		for _, v := range row {
			if v < 0 {
				return nil, fmt.Errorf("x: row %d: the kernel is negative there, so that votes are no probabilities", i+1)
			}
			total += v
		}
		if total == 0 {
			return nil, fmt.Errorf("x: row %d: the kernel is 0 for all samples: use a larger length scale", i+1)
		}
		for c := range row {
			row[c] /= total
		}
	}
	return sums, nil
}

// decisionOf turns n×K sums for classes into decision values.
func decisionOf(classes Classes, sums *mat.Dense) *mat.Dense {
	if classes.Len() != 2 {
		return sums
	}
	n, _ := sums.Dims()
	d := mat.NewDense(n, 1, nil)
	for i := range n {
		d.Set(i, 0, sums.At(i, 1)-sums.At(i, 0))
	}
	return d
}

// restoreTask reads the parameter "task" of learners that do both.
func restoreTask(s State) (Task, error) {
	text, err := param[string](s, "task")
	if err != nil {
		return "", err
	}
	if t := Task(text); t == Regression || t == Classification {
		return t, nil
	}
	return "", fmt.Errorf("parameter \"task\" must be %q or %q, got %q", Regression, Classification, text)
}

// classTargets returns the n×K matrix with 1 in the column of a row's class, for
// the rows of weight > 0.
func classTargets(classes Classes, index []int, o Options) backend.Host[float64] {
	h := backend.NewHost[float64](len(index), classes.Len())
	for i, c := range index {
		if c >= 0 {
			h.Row(i)[c] = 1
		}
	}
	return keepPositive(h, o.Weights)
}

package learners

import (
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

// trainingSet is the core of models that keep all samples.
type trainingSet struct {
	model
	kernel kernels.Kernel
	points backend.Host[float64] // the samples of weight > 0
	weight []float64
	y      backend.Host[float64] // their targets, n×t, or 1 in the column of their class, n×K
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

// decisionOf turns n×K sums for classes, which may have failed, into decision values.
func decisionOf(sums *mat.Dense, err error) (*mat.Dense, error) {
	if err != nil {
		return nil, err
	}
	n, k := sums.Dims()
	if k != 2 {
		return sums, nil
	}
	d := mat.NewDense(n, 1, nil)
	for i := range n {
		d.Set(i, 0, sums.At(i, 1)-sums.At(i, 0))
	}
	return d, nil
}

// Dims implements Model.
func (r *trainingSet) Dims() (features, outputs int) { return r.points.Cols, r.y.Cols }

// Kernel returns the kernel, also where it was chosen by Fit.
func (r *trainingSet) Kernel() kernels.Kernel { return r.kernel }

func (r *trainingSet) setFields(task Task, cols size) []field {
	return []field{
		fixedField("task", string(task)), pointsField("points", &r.kernel, &r.points),
		rowField("weights", &r.weight, rowsOf(&r.points), positive), matrixField("targets", &r.y, rowsOf(&r.points), cols),
	}
}

// trainingSet copies the samples, and keeps y, which has the rows of weight > 0. needed
// are bytes on the device for n rows.
func (f *fitting) trainingSet(k kernels.Kernel, y backend.Host[float64], needed func(n int) int64) trainingSet {
	if t := f.task(f.x.Rows, needed); t != nil {
		f.fail(t.Step("copy", 1))
	}
	return trainingSet{model{learner: f.learner}, k, f.kept(f.x), positiveWeights(f.o.Weights, f.x.Rows), y}
}

// members returns the classes, and n×K numbers for the samples of weight > 0: 1 in the
// column of a sample's class.
func (f *fitting) members() (Classes, backend.Host[float64]) {
	classes, index := f.classes()
	members := backend.NewHost[float64](len(index), classes.Len())
	for i, c := range index {
		if c >= 0 {
			members.Row(i)[c] = 1
		}
	}
	return classes, f.kept(members)
}

// restoreByTask restores the models of learners that have two kinds of them.
func restoreByTask(regression, classification func(State) (Model, error)) func(State) (Model, error) {
	return func(s State) (Model, error) {
		switch task, err := param[string](s, "task"); {
		case err != nil:
			return nil, err
		case Task(task) == Regression:
			return regression(s)
		case Task(task) == Classification:
			return classification(s)
		default:
			return nil, fmt.Errorf("parameter \"task\" must be %q or %q, got %q", Regression, Classification, task)
		}
	}
}

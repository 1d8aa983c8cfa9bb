package learners

import (
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

// trainingSet is the common part of models that keep all samples.
type trainingSet struct {
	model
	kernel  kernels.Kernel
	points  numeric.Points // the samples of weight > 0
	weight  []float64
	y       backend.Host[float64] // the targets of these samples, n×t; for classes n×K, with 1 in the column of each sample's class and 0 elsewhere
	classes Classes               // empty for regression
}

// decision converts the sums of the K classes for n points, n×K, to decision values. It returns err if err is not nil.
func (r *trainingSet) decision(sums *mat.Dense, err error) (*mat.Dense, error) {
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
	return checked(r.learner, "decision value", d, nil)
}

// Dims implements Model.
func (r *trainingSet) Dims() (features, outputs int) {
	if r.classes.Len() > 0 {
		return r.points.Cols, 1
	}
	return r.points.Cols, r.y.Cols
}

// Kernel returns the kernel of the fit, whether it was given or chosen by Fit.
func (r *trainingSet) Kernel() kernels.Kernel { return r.kernel }

func (r *trainingSet) setFields(task Task) []field {
	var list []field
	var cols size
	if task == Classification {
		list, cols = []field{classesField(&r.classes)}, numberOf(&r.classes)
	}
	return append(list, fixedField("task", string(task)), pointsField("points", &r.kernel, &r.points),
		rowField("weights", &r.weight, numberOfPoints(&r.points), positive), matrixField("targets", &r.y, numberOfPoints(&r.points), cols))
}

// trainingSet copies the samples of weight > 0, with their targets or classes.
func (f *fitting) trainingSet(task Task) trainingSet {
	r, y := trainingSet{model: model{learner: f.learner}}, f.y
	if task == Classification {
		var index []int
		r.classes, index = f.classes()
		y = backend.NewHost[float64](len(index), r.classes.Len())
		for i, c := range index {
			if c >= 0 {
				y.Row(i)[c] = 1
			}
		}
	}
	r.points, r.y, r.weight = f.points.Kept(f.o.Weights), f.keptRows(y), positiveWeights(f.o.Weights, f.points.Rows)
	return r
}

// planCopies is the last step of a fit that only copies its samples: it plans the memory of the
// copies. The targets have the given number of columns.
func (f *fitting) planCopies(columns int) {
	points := f.points
	bytes := func(n int) int64 { return points.CopyBytes(n) + 8*int64(n)*int64(columns+2) }
	if t := f.task(points.Rows, bytes); t != nil {
		f.fail(t.Step("copy", 1))
	}
}

// isOfClasses reports whether a State belongs to a classifier, for learners of both tasks.
func isOfClasses(s State) (bool, error) {
	task, err := param[string](s, "task")
	if err == nil && Task(task) != Regression && Task(task) != Classification {
		err = fmt.Errorf("parameter \"task\" must be %q or %q, got %q", Regression, Classification, task)
	}
	return Task(task) == Classification, err
}

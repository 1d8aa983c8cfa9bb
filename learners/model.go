package learners

import (
	"context"
	"fmt"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

// Options are what every Fit takes besides the samples; the zero value is
// right for most.
type Options struct {
	Weights  []float64              // of the samples; nil: all 1. A sample of weight 0 is left out
	Keys     []uint64               // of the samples, for learners that draw some of them: solvers.KeyedRows, dataset.Encoder.Keys; nil: those of the numbers in x
	Classes  []string               // names of the classes 0, 1, … of y; nil: y's values are their names
	Memory   int64                  // bytes that may be taken on the device; 0: all that it has free
	Progress func(solvers.Progress) // nil, or called with the progress of the work

	// Trace is nil, or called after each epoch by learners that have some
	// (Description.Traces). The loss after each is an evaluation more.
	Trace func(Epoch)

	// Checkpoint lets a fit by an iterative solver go on where an earlier one
	// was ended; learners that write none refuse it (Description.Checkpoints).
	Checkpoint solvers.Checkpoint
}

// Epoch is where a fit stands after a pass over the samples or a step of its solver.
type Epoch = run.Epoch

// Model is a fitted learner.
type Model interface {
	// Learner is the name of what fitted it: "ridge", "kernel-ridge".
	Learner() string
	// Dims returns the columns of x and of what Predict returns; zeros when
	// the model is not fitted.
	Dims() (features, outputs int)
	// Predict returns f(x) for every row of x, n×outputs. The rows are worked
	// on in blocks; the result for a row does not depend on the others but
	// for rounding. Once ctx is done it returns within about 0.1 s an error
	// that wraps context.Cause(ctx).
	Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error)
	// State returns what Restore needs to make an equal model. It shares
	// memory with the model and is only for reading.
	State() State
}

// State is a model as data, for saving.
type State struct {
	Learner string
	Params  map[string]any // strings, bools and float64s, so that JSON keeps them
	Arrays  map[string]backend.Host[float64]
}

// Solved is a Model that a solver of (K + λI)α = y computed.
type Solved interface {
	Model
	// Solved returns how; nil for a restored model.
	Solved() *solvers.Result
}

// Describer is a Model that has more to tell about its fit: iterations, support
// vectors, mistakes.
type Describer interface {
	Model
	// Facts returns it in the order in which it is to be shown; nil for a
	// restored model.
	Facts() []Fact
}

// Fact is a figure of a fit.
type Fact struct {
	Name  string // in lower case, words apart: "support vectors"
	Value any    // an int, a float64, a string or a bool
}

// Restore returns a model whose predictions have the same bits as those of the
// model that s came from. It checks every shape, parameter and number, so that
// a State from a damaged file gives an error and nothing else. The model
// shares the memory of s.
func Restore(s State) (Model, error) {
	d := catalogue[s.Learner]
	if d == nil {
		return nil, fmt.Errorf("learners: restore: no learner is called %q; there are: %s", s.Learner, strings.Join(Names(), ", "))
	}
	m, err := d.restore(s)
	if d.classify && err == nil {
		m, err = classifier(s, m)
	}
	if err != nil {
		return nil, fmt.Errorf("learners: restore: %s: %w", s.Learner, err)
	}
	return m, nil
}

// param returns a parameter of type T.
func param[T any](s State, name string) (T, error) {
	var zero T
	v, ok := s.Params[name]
	if !ok {
		return zero, fmt.Errorf("parameter %q is missing", name)
	}
	t, ok := v.(T)
	if !ok {
		return zero, fmt.Errorf("parameter %q is a %T, not a %T", name, v, zero)
	}
	return t, nil
}

// array returns an array of finite numbers with the given shape; a negative
// dimension allows any that is not 0.
func (s State) array(name string, rows, cols int) (backend.Host[float64], error) {
	h, ok := s.Arrays[name]
	if !ok {
		return h, fmt.Errorf("array %q is missing", name)
	}
	if h.Rows <= 0 || h.Cols <= 0 || h.Stride < h.Cols || rows >= 0 && h.Rows != rows || cols >= 0 && h.Cols != cols {
		return h, fmt.Errorf("array %q has the shape %d×%d, not %s×%s", name, h.Rows, h.Cols, dimension(rows), dimension(cols))
	}
	// Divided, because (Rows−1)·Stride of a foreign State may overflow.
	if len(h.Data) < h.Cols || (len(h.Data)-h.Cols)/h.Stride < h.Rows-1 {
		return h, fmt.Errorf("array %q: %d×%d with stride %d does not fit %s", name, h.Rows, h.Cols, h.Stride, count.Of(len(h.Data), "element"))
	}
	return h, checkFinite(fmt.Sprintf("array %q", name), h)
}

func dimension(n int) string {
	if n < 0 {
		return "any"
	}
	return fmt.Sprint(n)
}

// Uncertain is a Model that also knows how far off its predictions may be.
type Uncertain interface {
	Model
	// Variance returns the variances of new targets at the rows of x, noise
	// included: n×outputs, ≥ 0. What Predict promises holds here too. That of a Preparer
	// takes as long as a fit the first time.
	Variance(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error)
}

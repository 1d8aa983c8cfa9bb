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

// Options are arguments of every Fit besides the samples; the zero value suits most problems.
type Options struct {
	Weights  []float64              // weights of the samples; nil means all 1. A sample of weight 0 is omitted
	Keys     []uint64               // keys of the samples, for learners that draw samples at random: see solvers.Block and dataset.Encoder.Keys; nil means keys computed from the numbers in x
	Centers  mat.Matrix             // the M×d centers of nystrom-ridge, in the form of dense x; nil means centers chosen among the samples. Other learners return an error for given centers
	Classes  []string               // names of the classes 0, 1, … of y; nil means that the values of y are the names
	Memory   int64                  // maximum number of bytes on the device; 0 means all its free memory
	Progress func(solvers.Progress) // called with the progress of the fit, unless nil

	// Prove makes the bounds of Bounded about a hundred times smaller for KernelRidge and GaussianProcess, for fits of
	// at most some hundreds of samples: the extra work takes at most a few hundredths of a second. With Prove, Ridge,
	// NystromRidge and FourierRidge compute bounds also for large fits.
	Prove bool

	// Trace, unless nil, is called after each epoch by learners with epochs (Description.Traces).
	// Each call costs an extra evaluation of the loss.
	Trace func(Epoch)

	// Checkpoint lets a fit by an iterative solver resume an earlier fit that was interrupted.
	// Learners that write no checkpoints return an error (Description.Checkpoints).
	Checkpoint solvers.Checkpoint
}

// Epoch is the state of a fit after a pass over the samples or a step of its solver.
type Epoch = run.Epoch

// Model is a fitted learner.
type Model interface {
	// Learner returns the name of the learner that fitted the model: "ridge", "kernel-ridge".
	Learner() string
	// Dims returns the number of columns of x and of the result of Predict; both are 0 if the model is not fitted.
	Dims() (features, outputs int)
	// Predict returns f(x) for every row of x, n×outputs. It processes the rows in blocks; except
	// for rounding, the result for a row does not depend on the other rows. Once ctx is done it
	// returns within about 0.1 s an error that wraps context.Cause(ctx).
	Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error)
	// State returns the data from which Restore makes an equal model. The State shares memory with
	// the model: do not modify it.
	State() State
}

// State is the data of a model, for saving it.
type State struct {
	Learner string
	Params  map[string]any // strings, bools and float64s, which JSON can represent
	Arrays  map[string]backend.Host[float64]
}

// Solved is a Model that was fitted by a solver of (K + λI)α = y.
type Solved interface {
	Model
	// Solved returns the result of the solver, or nil for a restored model.
	Solved() *solvers.Result
}

// Describer is a Model with further facts about its fit: iterations, support vectors, mistakes.
type Describer interface {
	Model
	// Facts returns the facts in display order, or nil for a restored model.
	Facts() []Fact
}

// Fact is a named value that describes a fit.
type Fact struct {
	Name  string // in lower case, with spaces between words: "support vectors"
	Value any    // an int, a float64, a string or a bool
}

// Key returns the name of the fact in a Report, with underscores between words.
func (f Fact) Key() string { return strings.ReplaceAll(f.Name, " ", "_") }

// Restore returns a model whose predictions have the same bits as the predictions of the model
// whose State is s. It checks every shape, parameter and number, so that a State from a damaged
// file causes an error, not a panic. The model shares the memory of s.
func Restore(s State) (Model, error) {
	d := catalogue[s.Learner]
	if d == nil {
		return nil, fmt.Errorf("learners: restore: no learner is called %q; the learners are: %s", s.Learner, strings.Join(names(), ", "))
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

// param returns the parameter with the given name, which must be of type T.
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

// array returns the named array of finite numbers if it has the given shape. A negative rows or cols allows any
// positive number.
func (s State) array(name string, rows, cols int) (backend.Host[float64], error) {
	h, ok := s.Arrays[name]
	if !ok {
		return h, fmt.Errorf("array %q is missing", name)
	}
	if h.Rows <= 0 || h.Cols <= 0 || h.Stride < h.Cols || rows >= 0 && h.Rows != rows || cols >= 0 && h.Cols != cols {
		return h, fmt.Errorf("array %q has the shape %d×%d, not %s×%s", name, h.Rows, h.Cols, dimension(rows), dimension(cols))
	}
	// The division avoids an overflow of (Rows−1)·Stride in a damaged State.
	if len(h.Data) < h.Cols || (len(h.Data)-h.Cols)/h.Stride < h.Rows-1 {
		return h, fmt.Errorf("array %q is %d×%d with stride %d, but has only %s", name, h.Rows, h.Cols, h.Stride, count.Of(len(h.Data), "element"))
	}
	return h, checkFinite(fmt.Sprintf("array %q", name), h)
}

func dimension(n int) string {
	if n < 0 {
		return "any"
	}
	return fmt.Sprint(n)
}

// Uncertain is a Model that also estimates the variances of its predictions.
type Uncertain interface {
	Model
	// Variance returns the variances of new targets at the rows of x, including the noise: n×outputs, ≥ 0. Like
	// Predict, it processes blocks of rows and obeys ctx. For a Preparer the first call takes as long as a fit.
	Variance(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error)
}

package learners

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/lsq"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/neighbors"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// fitting holds the checked samples of a Fit that has its own solver loop; its methods are the steps before the
// solver. After the first error, which is stored in err, the methods do nothing.
type fitting struct {
	ctx     context.Context
	dev     backend.Device
	o       Options
	learner string
	x, y    backend.Host[float64] // x and y are empty after an error; y is also empty for Novelty, and x for sparse samples
	points  numeric.Points        // x as points, which are sparse only if Description.Sparse is set; empty after an error
	copied  bool                  // whether x is a dense copy of sparse samples
	err     error
}

// newFitting completes the parameters and checks the arguments. y may be missing only for Novelty.
func newFitting(ctx context.Context, dev backend.Device, learner string, parameters []Parameter, x, y mat.Matrix, o Options) *fitting {
	f := &fitting{ctx: ctx, dev: dev, o: o, learner: learner}
	f.fail(complete(parameters))
	f.fail(o.refuseUnused())
	if x != nil && y == nil && !catalogue[learner].Supports(Novelty) {
		f.fail(errors.New("y is missing"))
	}
	if f.err != nil {
		return f
	}
	if dev == nil {
		f.fail(errors.New("no device was given"))
	}
	var hy backend.Host[float64]
	points, err := f.samplePoints(x)
	if err == nil && y != nil {
		hy, err = targets(points.Rows, y)
	}
	f.fail(err)
	f.fail(points.CheckFinite("x"))
	for _, p := range parameters {
		if p.Name == "kernel" {
			f.ctx = points.Evaluating(ctx, dev)
		}
		if k, ok := p.load().(kernels.Kernel); ok && f.err == nil {
			points, err = numeric.SamplePoints(k, points)
			f.fail(err)
		}
	}
	f.fail(checkFinite("y", hy))
	f.fail(numeric.CheckWeights(o.Weights, points.Rows))
	if f.err == nil {
		f.points, f.x, f.y = points, points.Dense, hy
	}
	return f
}

// samplePoints returns the samples in the form that the learner accepts.
func (f *fitting) samplePoints(x mat.Matrix) (numeric.Points, error) {
	if catalogue[f.learner].Sparse {
		return pointsOf("x", x)
	}
	s, err := sparseOf("x", x)
	if err != nil {
		return numeric.Points{}, err
	}
	f.copied = s != nil
	h, err := denseSamples(f.dev, f.o, f.learner, x)
	return numeric.DensePoints(h), err
}

// fail stores err in f.err and empties the samples, unless err is nil or f has an error.
func (f *fitting) fail(err error) {
	if f.err == nil && err != nil {
		f.err, f.x, f.y, f.points = err, backend.Host[float64]{}, backend.Host[float64]{}, numeric.Points{}
	}
}

// keptRows copies the rows of h whose samples have a weight > 0. Row i of h belongs to sample i.
func (f *fitting) keptRows(h backend.Host[float64]) backend.Host[float64] {
	if f.err != nil {
		return backend.Host[float64]{}
	}
	return dropZeroWeight(h, f.o.Weights)
}

// keptX returns the dense samples of weight > 0: a copy, unless the samples already are a copy and
// all their weights are > 0.
func (f *fitting) keptX() backend.Host[float64] {
	if f.copied && !slices.Contains(f.o.Weights, 0) {
		return f.x
	}
	return f.keptRows(f.x)
}

// keptPoints returns a copy of the samples of weight > 0.
func (f *fitting) keptPoints() numeric.Points {
	if f.err != nil {
		return numeric.Points{}
	}
	return keptPoints(f.ctx, f.dev, f.points, f.o.Weights)
}

// keptPoints returns a copy of the samples of weight > 0 for a model, and adds its size to the memory plan.
func keptPoints(ctx context.Context, dev backend.Device, points numeric.Points, weights []float64) numeric.Points {
	run.ReportPlan(points.Evaluating(ctx, dev), dev, points.CopyBytes(points.Rows))
	return points.Kept(weights)
}

func (f *fitting) oneTarget() {
	if f.err == nil && f.y.Cols != 1 {
		f.fail(fmt.Errorf("y has %s; %s takes one target", count.Of(f.y.Cols, "column"), f.learner))
	}
}

// classes returns the classes of y and the class of each sample: see classesOf.
func (f *fitting) classes() (c Classes, index []int) {
	if f.err == nil {
		var err error
		c, index, err = classesOf(f.y, f.o.Weights, f.o.Classes)
		f.fail(err)
	}
	return c, index
}

// kernel returns k, or if k is nil the Gaussian kernel whose sigma is half the median distance: see kernelFor.
func (f *fitting) kernel(k kernels.Kernel, seed uint64) kernels.Kernel {
	if f.err == nil {
		var err error
		k, err = kernelFor(f.ctx, k, f.points, f.o.Weights, seed)
		f.fail(err)
	}
	return k
}

// scaleKernel returns k, or if k is nil the Gaussian kernel of scikit-learn's gamma="scale": see neighbors.ScaleSigma.
func (f *fitting) scaleKernel(k kernels.Kernel) kernels.Kernel {
	if f.err == nil && k == nil {
		sigma, err := neighbors.ScaleSigma(f.points, f.o.Weights)
		f.fail(err)
		k = kernels.Gaussian{Sigma: sigma}
	}
	return f.kernel(k, 0)
}

// task returns the run.Task of a solver that takes the given memory on the device. It sets an error
// if the context is done, or if the device does not allow that much memory.
func (f *fitting) task(rows int, bytes func(rows int) int64) *run.Task {
	if f.err == nil && f.ctx.Err() != nil {
		f.fail(context.Cause(f.ctx))
	}
	if f.err == nil {
		f.fail(solvers.Reserve(f.ctx, f.dev, f.o.Memory, solvers.Method(f.learner), rows, bytes))
	}
	if f.err != nil {
		return nil
	}
	t := run.NewTask(f.ctx, f.dev, nil)
	t.Progress, t.Trace = newProgress(f.o), f.o.Trace
	return t
}

// centered returns the samples in the form for linear least squares, and a task for the solver. The function bytes
// gives the memory that the solver needs.
func (f *fitting) centered(intercept bool, bytes func(c *lsq.Samples, rows int) int64) (*lsq.Samples, *run.Task) {
	if f.err != nil {
		return nil, nil
	}
	if f.copied {
		f.ctx, f.o = besideCopy(f.ctx, f.dev, f.o, f.points)
	}
	c, err := lsq.New(f.ctx, f.points, f.y, f.o.Weights, intercept)
	if err != nil {
		f.fail(err)
		return nil, nil
	}
	return c, f.task(c.Rows(), func(rows int) int64 { return bytes(c, rows) })
}

// newProgress returns a run.Progress that reports the fractions computed by the caller to o.Progress.
func newProgress(o Options) *run.Progress {
	var notify func(stage string, fraction float64)
	if o.Progress != nil {
		notify = func(stage string, fraction float64) { o.Progress(solvers.Progress{Stage: stage, Fraction: fraction}) }
	}
	return run.NewProgress(notify, nil, 1)
}

// Functions call wrapError with defer. If *err is not nil, wrapError prefixes the error with name,
// removes advice about all but the given parameters, and sets *m to its zero value.
func wrapError[M any](name string, parameters []Parameter, m *M, err *error) {
	if *err != nil {
		var zero M
		*m, *err = zero, fmt.Errorf("learners: %s: %w", name, message.Within(*err, adviceNames(parameters)))
	}
}

// adviceNames returns a function for message.Within. It maps the name of a parameter in the advice of a message to a
// name that the given parameters of a learner support, or to "" if such a parameter has no effect. If parameters is
// nil, the advice is for a fitted model.
func adviceNames(parameters []Parameter) func(parameter string) string {
	values := valuesOf(parameters)
	hasEffect := func(name string) bool {
		name, value, _ := strings.Cut(name, "=")
		return slices.ContainsFunc(parameters, func(p Parameter) bool {
			return p.Name == name && p.When.met(values) && (value == "" || slices.Contains(p.Choices, value)) &&
				// A parameter without a value and without an automatic default has no effect if it excludes another one.
				(values.has(name) || p.autoDefault || !slices.ContainsFunc(parameters, func(q Parameter) bool { return q.When != nil && len(q.When.Values) == 0 && q.When.Parameter == name }))
		})
	}
	return func(parameter string) string {
		name, _, _ := strings.Cut(parameter, "=")
		switch {
		case parameter == "lambda" && parameters == nil: // the advice is for a fitted model
			return "fitted=lambda"
		case parameter == "penalty" && hasEffect("C"), hasEffect(parameter), !isParameter(name):
			return parameter
		case parameter == "penalty" && hasEffect("lambda"):
			return "penalty=lambda"
		case parameter == "lambda" && values.has("lambdas"):
			return "lambdas"
		}
		return ""
	}
}

// isParameter reports whether name is a parameter of some learner, or a name that stands for
// several parameters in advice.
func isParameter(name string) bool {
	if name == "penalty" {
		return true
	}
	for _, d := range catalogue {
		if _, ok := d.Parameter(name); ok {
			return true
		}
	}
	return false
}

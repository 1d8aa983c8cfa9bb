package learners

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

// Predictor is a Model that is prepared on a device, for programs that request many predictions of a few rows
// each. The data of the model stay on the device in the form that is evaluated fastest (backend.Expander).
//
// Several goroutines may call the methods of a Predictor at the same time. Predict and PredictRow of a Predictor
// that is nil, zero or closed return an error that wraps solvers.ErrClosed.
type Predictor struct {
	model     Model
	dev       backend.Device
	ready     bool      // whether the fields below are set; if not, predictions call model.Predict
	predictor predictor // the predictor of f, or of the decision values
	classes   *Classes  // the classes of a classifier whose labels follow from decision values
	sum       backend.Expansion[float64]
	fixed     []backend.Matrix[float64]
	rule      func(x []float64) error // the rule that the kernel sets for points, or nil

	mu     sync.RWMutex // held for reading by calls that use the fields that Close clears
	closed bool
}

// A method calls begin before it reads the fields that Close clears. If begin returns nil, the method must call
// p.mu.RUnlock after the last read.
func (p *Predictor) begin() error {
	if p == nil || p.model == nil {
		return fmt.Errorf("learners: predict: the model %w", solvers.ErrClosed)
	}
	p.mu.RLock()
	if p.closed {
		p.mu.RUnlock()
		return p.wrapError(fmt.Errorf("the model %w", solvers.ErrClosed))
	}
	return nil
}

// NewPredictor prepares m on dev. For a sum of n kernel functions of d features it takes O(nd) operations, and
// O(nd) memory until Close.
func NewPredictor(dev backend.Device, m Model) (*Predictor, error) {
	if dev == nil {
		return nil, errors.New("learners: predictor: no device was given")
	}
	if numeric.IsNil(m) {
		return nil, errors.New("learners: predictor: no model was given")
	}
	if features, _ := m.Dims(); features == 0 {
		return nil, predictError(m.Learner(), errNotFitted)
	}
	p := &Predictor{model: m, dev: dev}
	source, ok := m.(interface{ predictor() predictor })
	if !ok {
		return p, nil
	}
	p.ready, p.predictor = true, source.predictor()
	p.rule = kernels.PointRule(p.predictor.kernel)
	if c, ok := m.(Classifier); ok {
		classes := c.Classes()
		p.classes = &classes
	}
	var err error
	if e, ok := dev.F64().(backend.Expander[float64]); ok && p.predictor.sum && p.predictor.fixed[0].Sparse == nil {
		p.sum, err = e.NewExpansion(p.predictor.kernel, p.predictor.fixed[0].Dense, p.predictor.fixed[1].Dense)
	} else {
		p.fixed, err = numeric.PlaceAll(dev.F64(), p.predictor.fixed...)
	}
	if err != nil {
		return nil, p.wrapError(err)
	}
	return p, nil
}

func (p *Predictor) wrapError(err error) error { return predictError(p.model.Learner(), err) }

// Model returns the model, or nil if there is none.
func (p *Predictor) Model() Model {
	if p == nil {
		return nil
	}
	return p.model
}

// Dims returns the number of columns of x and of the result of Predict; both are 0 if there is no model.
func (p *Predictor) Dims() (features, outputs int) {
	if p == nil || p.model == nil {
		return 0, 0
	}
	return p.model.Dims()
}

// Close waits for running predictions and frees the memory on the device; the device stays open.
// Later predictions return an error that wraps solvers.ErrClosed.
func (p *Predictor) Close() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	if p.sum != nil {
		p.sum.Free()
	}
	numeric.FreeAll(p.fixed)
	p.sum, p.fixed = nil, nil
}

// Predict returns the result of Model.Predict up to rounding.
func (p *Predictor) Predict(ctx context.Context, x mat.Matrix) (*mat.Dense, error) {
	if err := p.begin(); err != nil {
		return nil, err
	}
	defer p.mu.RUnlock()
	return p.predict(ctx, x)
}

func (p *Predictor) predict(ctx context.Context, x mat.Matrix) (*mat.Dense, error) {
	if !p.ready {
		return p.model.Predict(ctx, p.dev, x)
	}
	h, err := p.predictor.check(p.dev, x)
	if err != nil {
		return nil, p.wrapError(err)
	}
	f := backend.NewHost[float64](h.Rows, len(p.predictor.intercept))
	if err := p.apply(ctx, f, h); err != nil {
		return nil, p.wrapError(err)
	}
	values := mat.NewDense(f.Rows, f.Cols, f.Data)
	if p.classes != nil {
		return p.classes.Decide(values), nil
	}
	return values, nil
}

// PredictRow sets dst, one number for each output, to the prediction for one point x. len(x) is the
// number of features of the model.
func (p *Predictor) PredictRow(ctx context.Context, dst, x []float64) error {
	if err := p.begin(); err != nil {
		return err
	}
	defer p.mu.RUnlock()
	features, outputs := p.Dims()
	values := len(x) > 0 && len(x) == features-2 // x may be a point of kernels.Precomputed; predict refuses it for other kernels
	if len(x) != features && !values || len(dst) != outputs {
		return p.wrapError(fmt.Errorf("x has %s and dst %s; the model has %s and %s", count.Of(len(x), "feature"), count.Of(len(dst), "element"), count.Of(features, "feature"), count.Of(outputs, "output")))
	}
	if p.ready && p.classes == nil && !values {
		point := numeric.DensePoints(numeric.Row(x))
		var err error
		if !numeric.Finite(x) || p.rule != nil && p.rule(x) != nil {
			err = p.predictor.checkValues(point) // describes the error
		} else {
			err = p.apply(ctx, numeric.Row(dst), p.predictor.convert(point))
		}
		if err != nil {
			return p.wrapError(err)
		}
		return nil
	}
	f, err := p.predict(ctx, mat.NewDense(1, len(x), x))
	if err != nil {
		return err
	}
	copy(dst, f.RawRowView(0))
	return nil
}

func (p *Predictor) apply(ctx context.Context, f backend.Host[float64], x numeric.Points) error {
	if p.sum == nil {
		if err := p.predictor.blocks(ctx, p.dev, f, x, p.fixed); err != nil {
			return err
		}
	} else {
		if err := p.sum.Apply(ctx, f, x.Dense); err != nil {
			return err
		}
		p.predictor.addIntercept(f)
	}
	return checkPredicted("prediction", f, 0)
}

package learners

import (
	"context"
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

// predictor is the part of a prediction that differs between models: queue
// out ← f(x) without the intercept, given the fixed matrices on the device.
type predictor struct {
	learner   string
	features  int            // 0: not fitted
	kernel    kernels.Kernel // whose rule the points must obey; nil: there is none
	fixed     []backend.Host[float64]
	intercept []float64
	apply     func(b backend.Backend[float64], out, x backend.Matrix[float64], fixed []backend.Matrix[float64])
}

// predict runs p over x in blocks of rows, so that the memory on the device
// does not grow with them.
func (p predictor) predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	f, err := p.run(ctx, dev, x)
	if err != nil {
		return nil, fmt.Errorf("learners: %s: predict: %w", p.learner, err)
	}
	return f, nil
}

func (p predictor) run(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	h, err := p.check(dev, x)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}

	base, b := dev.F64(), dev.F64().With(ctx, nil)
	fixed := make([]backend.Matrix[float64], 0, len(p.fixed))
	defer func() {
		for _, m := range fixed {
			m.Free()
		}
	}()
	for _, h := range p.fixed {
		m, err := backend.Place(base, h)
		if err != nil {
			return nil, err
		}
		fixed = append(fixed, m)
	}
	t := len(p.intercept)
	rows := min(h.Rows, max(256, 1<<20/(h.Cols+t)))
	out, err := b.New(rows, t)
	if err != nil {
		return nil, err
	}
	defer out.Free()

	f := backend.NewHost[float64](h.Rows, t)
	for i := 0; i < h.Rows; i += rows {
		r := min(rows, h.Rows-i)
		if err := p.block(base, b, f.View(i, 0, r, t), out.View(0, 0, r, t), h.View(i, 0, r, h.Cols), fixed); err != nil {
			return nil, err
		}
		if err := checkPredicted(f.View(i, 0, r, t), i); err != nil {
			return nil, err
		}
	}
	return mat.NewDense(f.Rows, f.Cols, f.Data), nil
}

// check returns x as a row-major matrix that the model can be applied to.
func (p predictor) check(dev backend.Device, x mat.Matrix) (h backend.Host[float64], err error) {
	if p.features == 0 {
		return h, errors.New("the model is not fitted")
	}
	if dev == nil {
		return h, errors.New("no device was given")
	}
	h, err = hostOf("x", x)
	if err != nil {
		return h, err
	}
	if h.Cols != p.features {
		return h, fmt.Errorf("x has %d columns, the model was fitted to %d", h.Cols, p.features)
	}
	if i, j, ok := notFinite(h); ok {
		return h, valueError("x", h, i, j)
	}
	if p.kernel != nil {
		return h, backend.CheckPoints(p.kernel, "x", h)
	}
	return h, nil
}

// block sets f to the predictions for the rows of x.
func (p predictor) block(base, b backend.Backend[float64], f backend.Host[float64], out backend.Matrix[float64], x backend.Host[float64], fixed []backend.Matrix[float64]) error {
	place, err := backend.Place(base, x)
	if err != nil {
		return err
	}
	defer place.Free()
	p.apply(b, out, place, fixed)
	if err := b.Download(f, out); err != nil {
		return err
	}
	for i := range f.Rows {
		row := f.Row(i)
		for j, c := range p.intercept {
			row[j] += c
		}
	}
	return nil
}

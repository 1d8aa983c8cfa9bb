package learners

import (
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/internal/numeric"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/count"
)

// asDense returns m as a dense matrix, which shares the memory of m if m is row-major. It returns
// nil if m is nil or empty.
func asDense(m mat.Matrix) *mat.Dense {
	if d, ok := m.(*mat.Dense); ok {
		return d
	}
	h, err := gonum.Host("", m)
	if err != nil {
		return nil
	}
	d, err := gonum.Dense(h)
	if err != nil {
		return nil
	}
	return d
}

// denseOf returns a copy of h as a gonum matrix, or nil if h is empty.
func denseOf(h backend.Host[float64]) *mat.Dense {
	if h.Rows == 0 {
		return nil
	}
	return mat.DenseCopyOf(h)
}

// checkFinite returns an error that names the row and column of the first NaN or Inf.
func checkFinite(name string, h backend.Host[float64]) error {
	return numeric.DensePoints(h).CheckFinite(name)
}

// refuseUnused returns an error if o has a checkpoint or centers, which only some learners use.
func (o Options) refuseUnused() error {
	switch {
	case o.Checkpoint.Dir != "":
		return errNoCheckpoint
	case o.Centers != nil:
		return errNoCenters
	}
	return nil
}

var errNoCenters = errors.New("centers: the learner has no centers: omit them, or use nystrom-ridge")

var errNoCheckpoint = errors.New("checkpoint: the learner writes no checkpoints: omit the checkpoint")

// samples returns x and y as row-major matrices with equal numbers of rows, for a learner that does not accept
// sparse samples. It does not check for NaN and Inf.
func samples(dev backend.Device, o Options, learner string, x, y mat.Matrix) (hx, hy backend.Host[float64], err error) {
	if hx, err = denseSamples(dev, o, learner, x); err == nil {
		hy, err = targets(hx.Rows, y)
	}
	return hx, hy, err
}

// targets returns y as a row-major matrix, or an error if y does not have the given number of rows.
func targets(rows int, y mat.Matrix) (backend.Host[float64], error) {
	h, err := gonum.Host("y", y)
	if err == nil && h.Rows != rows {
		err = fmt.Errorf("x has %s, y has %d", count.Of(rows, "row"), h.Rows)
	}
	return h, err
}

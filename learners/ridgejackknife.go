package learners

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/run"
)

// ridgeSamples are the samples of weight > 0 of a ridge model that has intervals, and
// empty for one that has none.
type ridgeSamples struct {
	x, y    backend.Host[float64] // n×d and n×t
	weights []float64             // nil: all 1
}

// ridgeJackknife is what the fits without a sample need of a penalty λ: with the
// weighted means x̄ (0 without an intercept) and XᵀX + λI = LLᵀ of X's rows
// √w_i (x_i − x̄), h_i = ‖z_i‖² + w_i/Σw (no second term without an intercept) and
//
//	y_i − f₋ᵢ(x_i) = c_i = e_i/(1 − h_i),    z_i = √w_i L⁻¹(x_i − x̄)
//	f₋ᵢ(x) = f(x) − c_i (√w_i z_iᵀL⁻¹(x − x̄) + w_i/Σw)
type ridgeJackknife struct {
	l, z  backend.Host[float64] // d×d lower, n×d
	share []float64             // 1 − h_i
}

// HasIntervals reports whether the model keeps the samples that Intervals needs.
func (m *RidgeModel) HasIntervals() bool { return m.samples.x.Rows > 0 && m.samples.y.Rows > 0 }

// Intervals implements Jackknife, for a model that was fitted with
// Ridge.Intervals: 2nd² operations for each λ, and 2nd for each point. At λ = 0 the
// features must be independent, as for the fit; condition numbers up to about 1e7
// of X leave digits.
func (m *RidgeModel) Intervals(ctx context.Context, dev backend.Device, x mat.Matrix, level float64) (lower, upper *mat.Dense, err error) {
	if lower, upper, err = m.intervals(ctx, dev, x, level); err != nil {
		return nil, nil, fmt.Errorf("learners: ridge: intervals: %w", err)
	}
	return lower, upper, nil
}

func (m *RidgeModel) intervals(ctx context.Context, dev backend.Device, x mat.Matrix, level float64) (lower, upper *mat.Dense, err error) {
	h, err := m.predictor().check(dev, x)
	if err != nil {
		return nil, nil, err
	}
	if !m.HasIntervals() {
		return nil, nil, errors.New("the model did not keep its samples: fit it with intervals = true")
	}
	rank, err := jackknifeRank(level, m.samples.x.Rows)
	if err != nil {
		return nil, nil, err
	}
	f, err := m.Predict(ctx, dev, x)
	if err != nil {
		return nil, nil, err
	}
	c, err := newCentred(ctx, dev, denseOf(m.samples.x), denseOf(m.samples.y), Options{Weights: m.samples.weights}, m.fitted)
	if err != nil {
		return nil, nil, err
	}
	frame := &task{run.NewTask(ctx, dev, nil)}
	defer frame.Mem.FreeAll()
	lower, upper = mat.NewDense(h.Rows, c.t, nil), mat.NewDense(h.Rows, c.t, nil)
	byLambda := outputsByLambda(m.lambda, m.lambdas, c.t)
	for _, lambda := range slices.Sorted(maps.Keys(byLambda)) {
		a, err := c.jackknife(frame, lambda, m.fitted)
		if err != nil {
			return nil, nil, err
		}
		errs, err := a.errors(m, c)
		if err != nil {
			return nil, nil, err
		}
		err = a.influence(frame, c, h, m.fitted, func(first int, b backend.Host[float64]) {
			for _, j := range byLambda[lambda] {
				jackknife(dev.Info().Threads, rank, j, first, lower, upper, f, errs, b)
			}
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return lower, upper, nil
}

func (c *centred) jackknife(f *task, lambda float64, intercept bool) (*ridgeJackknife, error) {
	moments, err := c.moments(f)
	if err != nil {
		return nil, err
	}
	a := &ridgeJackknife{l: moments.g, z: backend.NewHost[float64](c.n, c.d), share: make([]float64, c.n)}
	l, err := f.Mem.New(c.d, c.d)
	if err != nil {
		return nil, err
	}
	if err := f.B.Upload(l, a.l); err != nil {
		return nil, err
	}
	f.B.AddDiag(slices.Repeat([]float64{lambda}, c.d), l)
	if err := f.B.Potrf(backend.Lower, l); err != nil {
		if errors.Is(err, backend.ErrNotPosDef) {
			return nil, message.Errorf("%w: features depend on each other: raise {lambda}", err)
		}
		return nil, err
	}
	if err := f.B.Download(a.l, l); err != nil {
		return nil, err
	}
	err = c.each(f.Ctx, f.B, func(x, _ backend.Matrix[float64], from int) error {
		f.B.Trsm(backend.Right, backend.Lower, backend.Transpose, 1, l, x)
		rows, _ := x.Dims()
		return f.B.Download(a.z.View(from, 0, rows, c.d), x)
	})
	if err != nil {
		return nil, err
	}
	for i := range a.share {
		h := 0.0
		for _, v := range a.z.Row(i) {
			h += v * v
		}
		if intercept {
			h += c.root[i] * c.root[i] / c.weight
		}
		a.share[i] = 1 - h
	}
	return a, nil
}

// errors returns c_i of every output, n×t.
func (a *ridgeJackknife) errors(m *RidgeModel, c *centred) (backend.Host[float64], error) {
	errs := backend.NewHost[float64](c.n, c.t)
	for i := range c.n {
		x, y, to := c.x.Row(c.rows[i]), c.y.Row(c.rows[i]), errs.Row(i)
		copy(to, y)
		for j, b := range m.intercept {
			to[j] -= b
		}
		for p, v := range x {
			for j, w := range m.coef.Row(p) {
				to[j] -= v * w
			}
		}
		// A leverage of 1 leaves nothing else to fix a direction of w by.
		if rounding := 0x1p-52 * float64(c.d+c.n); !(a.share[i] > rounding) {
			return errs, message.Errorf("without sample %d there is no solution: raise {lambda}", c.rows[i]+1)
		}
		for j := range to {
			to[j] /= a.share[i]
		}
	}
	return errs, nil
}

// influence calls visit with √w_i z_iᵀL⁻¹(x − x̄) + w_i/Σw of some rows x of points at
// a time, n× up to 256.
func (a *ridgeJackknife) influence(f *task, c *centred, points backend.Host[float64], intercept bool, visit func(first int, b backend.Host[float64])) error {
	rows := min(points.Rows, max(1, min(256, (64<<20)/(8*c.n))))
	l, err := f.Mem.Place(a.l)
	if err != nil {
		return err
	}
	z, err := f.Mem.Place(a.z)
	if err != nil {
		return err
	}
	from := backend.NewHost[float64](rows, c.d)
	b := backend.NewHost[float64](c.n, rows)
	x, err := f.Mem.New(rows, c.d)
	if err != nil {
		return err
	}
	product, err := f.Mem.New(c.n, rows)
	if err != nil {
		return err
	}
	for first := 0; first < points.Rows; first += rows {
		if f.Ctx.Err() != nil {
			return context.Cause(f.Ctx)
		}
		r := min(rows, points.Rows-first)
		for i := range r {
			for p, v := range points.Row(first + i) {
				from.Row(i)[p] = v - c.meanX[0][p] - c.meanX[1][p]
			}
		}
		block, part, to := x.View(0, 0, r, c.d), product.View(0, 0, c.n, r), b.View(0, 0, c.n, r)
		if err := f.B.Upload(block, from.View(0, 0, r, c.d)); err != nil {
			return err
		}
		f.B.Trsm(backend.Right, backend.Lower, backend.Transpose, 1, l, block)
		f.B.Gemm(backend.NoTrans, backend.Transpose, 1, z, block, 0, part)
		if err := f.B.Download(to, part); err != nil {
			return err
		}
		for i, root := range c.root {
			share := 0.0
			if intercept {
				share = root * root / c.weight
			}
			for k, v := range to.Row(i) {
				to.Row(i)[k] = math.FMA(root, v, share)
			}
		}
		visit(first, to)
	}
	return nil
}

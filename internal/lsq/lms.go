package lsq

import (
	"context"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// LMS is the rule of Widrow and Hoff (1960), starting from w = 0 and b = 0:
//
//	w ← w + η w_i (y_i − wᵀx_i − b) x_i,  b ← b + η w_i (y_i − wᵀx_i − b)
//
// For a small constant η it converges to a distance of order η from the least-squares solution, or to the solution
// itself if the residual is 0. The default is η = 1/max w_i(‖x_i‖² + 1).
type LMS struct {
	Rate      float64 // the step size η; 0 selects the default
	Epochs    int
	Intercept bool
}

type LMSFit struct {
	Coef      backend.Host[float64] // the weights, d×t
	Intercept []float64
	Rate      float64
	Squares   []float64 // Σ_i w_i (y_i − f(x_i))² of each output
}

// Fit fits the n×d samples x and the n×t targets y. The n weights are all 1 if weights is nil.
func (l LMS) Fit(t *run.Task, x numeric.Points, y backend.Host[float64], weights []float64) (*LMSFit, error) {
	one := 0.0
	if l.Intercept {
		one = 1
	}
	if weights == nil {
		weights = slices.Repeat([]float64{1}, x.Rows)
	}
	longest := 0.0
	for i, w := range weights {
		longest = max(longest, w*(numeric.Dot(x.Stored(i), x.Stored(i))+one))
	}
	rate := l.Rate
	if rate == 0 && longest > 0 {
		rate = 1 / longest
	}
	m := &LMSFit{Coef: backend.NewHost[float64](x.Cols, y.Cols), Intercept: make([]float64, y.Cols), Rate: rate}
	w := backend.NewHost[float64](y.Cols, x.Cols)
	for epoch := range l.Epochs {
		for i, weight := range weights {
			if i%1024 == 0 {
				if err := t.Step("learn", (float64(epoch)+float64(i)/float64(x.Rows))/float64(l.Epochs)); err != nil {
					return nil, err
				}
			}
			for j := range y.Cols {
				step := rate * weight * (y.Row(i)[j] - m.Intercept[j] - x.Product(i, w.Row(j)))
				x.AddTo(w.Row(j), step, i)
				m.Intercept[j] += step * one
			}
		}
		for j := range w.Rows {
			for p, v := range w.Row(j) {
				m.Coef.Row(p)[j] = v
			}
		}
		if t.Trace == nil && epoch < l.Epochs-1 {
			continue
		}
		var err error
		if m.Squares, err = Squares(t.Ctx, x, y, m.Coef, m.Intercept, weights); err != nil {
			return nil, err
		}
		if t.Trace != nil {
			loss := 0.0
			for _, v := range m.Squares {
				loss += v
			}
			t.Traced(run.Epoch{Number: epoch + 1, Loss: loss})
		}
	}
	for j, residual := range m.Squares {
		total := 0.0
		for i, weight := range weights {
			total += weight * y.Row(i)[j] * y.Row(i)[j]
		}
		if residual-residual != 0 || rate*longest >= 2 && residual > total {
			return nil, message.Errorf("the weights diverge at rate %.3g: the rate must be below 2/(‖x‖² + 1) = %.3g: {lower $rate, or leave it out}", rate, 2/longest)
		}
	}
	return m, t.Step("learn", 1)
}

// Squares returns Σ_i w_i (y_i − wᵀx_i − b)² of each output. The weights w_i are 1 if weights is nil.
// Rows of weight 0 are not read.
func Squares(ctx context.Context, x numeric.Points, y, coef backend.Host[float64], b, weights []float64) ([]float64, error) {
	const block = 1024
	squares := make([]float64, y.Cols)
	terms := backend.NewHost[float64](min(x.Rows, block), y.Cols)
	for from := 0; from < x.Rows; from += block {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		n := min(block, x.Rows-from)
		run.Parallel(n, func(first, last int) {
			for i := first; i < last; i++ {
				row, weight := terms.Row(i), 1.0
				if weights != nil {
					weight = weights[from+i]
				}
				clear(row)
				if weight == 0 {
					continue
				}
				for j := range row {
					r := y.Row(from + i)[j] - b[j] - x.Dot(from+i, coef, j)
					row[j] = weight * r * r
				}
			}
		})
		for i := range n {
			for j, v := range terms.Row(i) {
				squares[j] += v
			}
		}
	}
	return squares, nil
}

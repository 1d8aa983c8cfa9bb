package learners

import (
	"slices"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
)

// lms is LeastSquares by the rule of Widrow and Hoff (1960), from w = 0 and b = 0:
//
//	w ← w + η w_i (y_i − wᵀx_i − b) x_i,  b ← b + η w_i (y_i − wᵀx_i − b)
//
// It comes to the solution for a small η; with a constant one it ends within a distance
// of the order of η where the residual is not 0. For η ≤ 1/max w_i(‖x_i‖² + 1), which is
// the default, no step leads away from the solutions of its own equation.
func (l LeastSquares) lms(f *fitting) (*LinearModel, error) {
	ctx, hx, hy, o := f.ctx, f.x, f.y, f.o
	t := f.task(hx.Rows, func(int) int64 { return 8 * int64(hx.Cols) * int64(hy.Cols) })
	if f.err != nil {
		return nil, f.err
	}
	weights, one := o.Weights, 1.0
	if weights == nil {
		weights = slices.Repeat([]float64{1}, hx.Rows)
	}
	if l.NoIntercept {
		one = 0
	}
	longest := 0.0
	for i, w := range weights {
		longest = max(longest, w*(blas64.Dot(vectorOf(hx.Row(i)), vectorOf(hx.Row(i)))+one))
	}
	rate := l.Rate
	if rate == 0 && longest > 0 {
		rate = 1 / longest
	}
	m := &LinearModel{linear: linear{model{learner: leastSquaresName}, backend.NewHost[float64](hx.Cols, hy.Cols), make([]float64, hy.Cols)}, fitted: !l.NoIntercept, penalty: make([]float64, hy.Cols)}
	w := backend.NewHost[float64](hy.Cols, hx.Cols)
	for epoch := range l.Epochs {
		for i, weight := range weights {
			if i%1024 == 0 {
				if err := t.Step("learn", (float64(epoch)+float64(i)/float64(hx.Rows))/float64(l.Epochs)); err != nil {
					return nil, err
				}
			}
			for j := range hy.Cols {
				step := rate * weight * (hy.Row(i)[j] - m.intercept[j] - blas64.Dot(vectorOf(w.Row(j)), vectorOf(hx.Row(i))))
				blas64.Axpy(step, vectorOf(hx.Row(i)), vectorOf(w.Row(j)))
				m.intercept[j] += step * one
			}
		}
		for j := range w.Rows {
			for p, v := range w.Row(j) {
				m.coef.Row(p)[j] = v
			}
		}
		if t.Trace != nil {
			loss := 0.0
			for j := range hy.Cols {
				left, _, err := linearSquares(ctx, hx, hy.View(0, j, hy.Rows, 1), m.coef.View(0, j, hx.Cols, 1), m.intercept[j:], o.Weights)
				if err != nil {
					return nil, err
				}
				loss += left
			}
			t.Traced(Epoch{Number: epoch + 1, Loss: loss})
		}
	}
	for j := range hy.Cols {
		left, n, err := linearSquares(ctx, hx, hy.View(0, j, hy.Rows, 1), m.coef.View(0, j, hx.Cols, 1), m.intercept[j:], o.Weights)
		if err != nil {
			return nil, err
		}
		total := 0.0
		for i, weight := range weights {
			total += weight * hy.Row(i)[j] * hy.Row(i)[j]
		}
		if !finite(left) || rate*longest >= 2 && left > total {
			return nil, message.Errorf("the weights diverge at rate %.3g: it must be below 2/(‖x‖² + 1) = %.3g; {rate}, or leave it out", rate, 2/longest)
		}
		if j == 0 {
			parameters := hx.Cols + int(one)
			m.facts = append([]Fact{{squaredNorm, coefNorm(m.coef)}}, noiseFacts(left, o.Weights, n, parameters)...)
			if l.Rate == 0 {
				m.facts = append(m.facts, Fact{"rate", rate})
			}
		}
	}
	return m, t.Step("learn", 1)
}

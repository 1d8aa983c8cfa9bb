package glm

import (
	"math"
	"math/rand/v2"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/message"
)

// descend minimizes F by gradient descent: θ ← θ − η∇F/Σw with the given rate η,
// or with steps that F itself allows where the rate is 0. It stops as lbfgs does,
// by the diagonal metric.
func (l *logit) descend(rate, tol float64, most int, at func(iter int, gain float64) error) (backend.Host[float64], int, error) {
	theta, gradient, m := l.zero(), l.zero(), l.diagonalMetric()
	value, err := l.eval(theta, gradient)
	if err != nil {
		return theta, 0, err
	}
	total := m.square[l.d]
	step := 1.0 // of −gradient
	if rate > 0 {
		step = rate / total
	} else {
		sum := 0.0
		for _, v := range m.square {
			sum += v
		}
		step = 2 / (sum + l.lambda) // H ≤ (½ trace of X̃ᵀX̃ + λ)I
	}
	for iter := range most {
		if err := l.separated(); err != nil {
			return theta, iter, err
		}
		_ = m.refresh(l.spread)
		plain, _ := m.solve(gradient)
		gain := dot(gradient, plain) / 2 / max(value, math.SmallestNonzeroFloat64)
		if err := at(iter, gain); err != nil {
			return theta, iter, err
		}
		if gain <= tol {
			return theta, iter, nil
		}
		if rate > 0 {
			theta = along(theta, -step, gradient)
			if value, err = l.eval(theta, gradient); err != nil {
				return theta, iter, message.Errorf("%w; or {rate}", err)
			}
			continue
		}
		direction := along(gradient, 2*step-1, gradient)
		next, nextGradient, nextValue, err := l.search(theta, direction, value, -dot(gradient, direction))
		if err != nil {
			return theta, iter, err
		}
		if next.Data == nil {
			return theta, iter, message.Errorf("no step makes the loss smaller, which could still fall by about %.2g of itself: raise {lambda} or {tol}", gain)
		}
		moved := along(next, -1, theta)
		step = math.Sqrt(dot(moved, moved) / dot(gradient, gradient))
		theta, gradient, value = next, nextGradient, nextValue
	}
	return theta, most, message.Errorf("did not converge within %s of gradient descent: take another solver, or raise {lambda}, {tol} or {iterations}", count.Of(most, "iteration"))
}

// stochastic goes through the samples in a new random order in each of some
// epochs and steps along the gradient of a batch of them,
//
//	θ ← θ − η(1 − t/T) (mean of the batch's gradients + λW/Σw)
//
// in step t of T. A rate η of 0 is 2/(mean ‖x̃‖² + 1), the inverse of a bound of
// the mean curvature.
//
// Source of the schedule: Defazio, Cutkosky, Mehta and Mishchenko (2023),
// Optimal linear decay learning rate schedules and further refinements.
func (l *logit) stochastic(rate float64, batch, epochs int, seed uint64, at func(fraction float64) error) (backend.Host[float64], error) {
	theta := l.zero()
	r := rand.New(rand.NewPCG(seed, 0))
	m := l.diagonalMetric()
	total := m.square[l.d]
	if rate == 0 {
		sum := 0.0
		for _, v := range m.square[:l.d] {
			sum += v / total
		}
		rate = 2 / (sum + 1)
	}
	batch = min(batch, l.n)
	w := &batchLoss{logit: l, rows: backend.NewHost[float64](batch, l.d), f: backend.NewHost[float64](batch, l.c), g: backend.NewHost[float64](l.d, l.c)}
	perEpoch := (l.n + batch - 1) / batch
	step := 0.0
	for epoch := range epochs {
		order := r.Perm(l.n)
		for from := 0; from < l.n; from += batch {
			if err := at((float64(epoch) + float64(from)/float64(l.n)) / float64(epochs)); err != nil {
				return theta, err
			}
			part := order[from:min(from+batch, l.n)]
			if err := w.gradient(theta, part); err != nil {
				return theta, err
			}
			eta := rate * (1 - step/float64(perEpoch*epochs))
			step++
			scale := eta * float64(l.n) / (float64(len(part)) * total)
			for p := range l.d {
				for c := range l.c {
					theta.Row(p)[c] -= scale*w.g.Row(p)[c] + eta*l.lambda/total*theta.Row(p)[c]
				}
			}
			for c, v := range w.sums {
				theta.Row(l.d)[c] -= scale * v
			}
		}
	}
	if size := dot(theta, theta); size-size != 0 {
		return theta, message.Errorf("the steps lead to infinity: {rate}, or scale the features down")
	}
	return theta, at(1)
}

// batchLoss is the gradient over a batch of samples.
type batchLoss struct {
	*logit
	rows, f, g backend.Host[float64]
	sums       []float64 // of the intercepts; nil without
}

func (w *batchLoss) gradient(theta backend.Host[float64], batch []int) error {
	rows, f := w.rows.View(0, 0, len(batch), w.d), w.f.View(0, 0, len(batch), w.c)
	for r, i := range batch {
		copy(rows.Row(r), w.hx.Row(i))
		for p, m := range w.mean {
			rows.Row(r)[p] -= m
		}
	}
	b := w.t.B
	x, err := backend.Place(b, rows)
	if err != nil {
		return err
	}
	defer x.Free()
	out, err := b.New(len(batch), w.c)
	if err != nil {
		return err
	}
	defer out.Free()
	if err := b.Upload(w.w, theta.View(0, 0, w.d, w.c)); err != nil {
		return err
	}
	b.Gemm(backend.NoTrans, backend.NoTrans, 1, x, w.w, 0, out)
	if err := b.Download(f, out); err != nil {
		return err
	}
	w.sums = nil
	if w.mean != nil {
		w.sums = make([]float64, w.c)
	}
	for r, i := range batch {
		row := f.Row(r)
		for c, v := range theta.Row(w.d) {
			row[c] += v
		}
		if weight := w.weight(i); weight == 0 {
			clear(row)
		} else {
			w.sample(row, w.index[i])
			for c := range row {
				row[c] *= weight
			}
		}
		for c := range w.sums {
			w.sums[c] += row[c]
		}
	}
	if err := b.Upload(out, f); err != nil {
		return err
	}
	b.Gemm(backend.Transpose, backend.NoTrans, 1, x, out, 0, w.logit.g)
	return b.Download(w.g, w.logit.g)
}

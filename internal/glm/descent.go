package glm

import (
	"math"
	"math/rand/v2"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// descend minimizes F by gradient descent, θ ← θ − η∇F/Σw with the given rate η, where θ = (W, b). If the rate is
// 0, the iterate is (W, c) with c = b + Wᵀx̄, and the first step size follows from a bound on the curvature of F.
// It stops when gᵀM⁻¹g/2 ≤ tol·F for the gradient g and the metric M.
func (l *logit) descend(p *point, metric metric, rate, tol float64, maxIter int, report func(iter int, gain, value float64) error) (_ *point, iter int, reason ending, err error) {
	defer metric.free()
	step := 1.0 // θ changes by −step·∇F
	if rate > 0 {
		step = rate / l.total
	} else {
		sum := l.total
		for _, v := range l.square {
			sum += v
		}
		step = 2 / (sum + l.lambda) // the Hessian of F is at most (½ trace of X̃ᵀX̃ + λ)I
	}
	for iter := 0; ; iter++ {
		if _, err := l.separated(); err != nil { // descend stops at separable classes only if the caller has not set the number of steps
			return p, iter, stalled, err
		}
		gain, err := l.gain(p, metric)
		if err != nil {
			return p, iter, stalled, err
		}
		if err := report(iter, gain, p.value); err != nil {
			return p, iter, stalled, err
		}
		switch {
		case gain <= tol:
			return p, iter, converged, nil
		case iter == maxIter:
			return p, iter, exhausted, nil
		}
		if rate > 0 {
			next, err := l.pointAt(addScaled(p.theta, -step, l.uncentered(p.gradient)))
			if err != nil {
				return p, iter, stalled, message.Errorf("%w; {or lower $rate}", err)
			}
			p = next
			continue
		}
		direction := addScaled(p.gradient, 2*step-1, p.gradient)
		next, err := l.search(p, direction, -dot(p.gradient, direction))
		if err != nil || next == nil {
			return p, iter, stalled, err
		}
		moved := addScaled(next.theta, -1, p.theta)
		step = math.Sqrt(dot(moved, moved) / dot(p.gradient, p.gradient))
		p = next
	}
}

// uncentered returns the step in (W, c), with c = b + Wᵀx̄, that a gradient step in (W, b) makes. The argument g is the
// gradient with respect to W and c. W changes by g_W + x̄g_cᵀ, and c by g_c plus x̄ᵀ times the change of W.
func (l *logit) uncentered(g backend.Host[float64]) backend.Host[float64] {
	if l.mean == nil {
		return g
	}
	u := addScaled(g, 0, g)
	b := u.Row(l.d)
	for p, m := range l.mean {
		for c, v := range g.Row(l.d) {
			u.Row(p)[c] += m * v
			b[c] += m * u.Row(p)[c]
		}
	}
	return u
}

// gain returns gᵀM⁻¹g/(2F), the relative decrease of F that a quadratic model with the Hessian M predicts.
func (l *logit) gain(p *point, metric metric) (float64, error) {
	if _, err := metric.refresh(l.spread); err != nil {
		return 0, err
	}
	plain, err := metric.solve(p.gradient)
	return dot(p.gradient, plain) / 2 / max(p.value, math.SmallestNonzeroFloat64), err
}

// stochastic visits the samples in a new random order in each epoch and takes a step along the gradient of each batch,
//
//	θ ← θ − η(1 − t/T) (mean of the batch's gradients + λW/Σw)
//
// in step t of T (Defazio, Cutkosky, Mehta and Mishchenko 2023, Optimal linear decay learning rate schedules and
// further refinements). A rate η of 0 means 2/(m + 1) for the mean m of ‖x − x̄‖², where (m + 1)/2 bounds the
// curvature of the mean loss.
func (l *logit) stochastic(rate float64, batch, epochs int, seed uint64, report func(fraction float64) error) (backend.Host[float64], error) {
	theta := l.zero()
	r := rand.New(rand.NewPCG(seed, 0))
	if rate == 0 {
		sum := 0.0
		for _, v := range l.square {
			sum += v / l.total
		}
		rate = 2 / (sum + 1)
	}
	batch = min(batch, l.n)
	w := &batchLoss{logit: l, f: backend.NewHost[float64](batch, l.c), g: backend.NewHost[float64](l.d, l.c)}
	if l.points.Sparse == nil {
		w.rows = backend.NewHost[float64](batch, l.d)
	}
	perEpoch := (l.n + batch - 1) / batch
	step := 0.0
	for epoch := range epochs {
		order := r.Perm(l.n)
		for from := 0; from < l.n; from += batch {
			if err := report((float64(epoch) + float64(from)/float64(l.n)) / float64(epochs)); err != nil {
				return theta, err
			}
			batchRows := order[from:min(from+batch, l.n)]
			if err := w.gradient(theta, batchRows); err != nil {
				return theta, err
			}
			eta := rate * (1 - step/float64(perEpoch*epochs))
			step++
			scale := eta * float64(l.n) / (float64(len(batchRows)) * l.total)
			for p := range l.d {
				for c := range l.c {
					theta.Row(p)[c] -= scale*w.g.Row(p)[c] + eta*l.lambda/l.total*theta.Row(p)[c]
				}
			}
			for c, v := range w.sums {
				theta.Row(l.d)[c] -= scale * v
			}
		}
		if l.t.Trace != nil {
			p, err := l.pointAt(theta)
			if err != nil {
				return theta, err
			}
			l.t.Traced(run.Epoch{Number: epoch + 1, Loss: p.value})
		}
	}
	if size := dot(theta, theta); size-size != 0 {
		return theta, message.Errorf("the iteration diverges: {lower $rate|scale the features down}")
	}
	return theta, report(1)
}

// batchLoss computes the gradient over a batch of samples.
type batchLoss struct {
	*logit
	rows, f, g backend.Host[float64] // samples of the batch, scores and gradient; rows is empty for sparse samples
	sums       []float64             // gradient with respect to the intercepts; nil without intercepts
}

// batch returns the centered samples with the listed indices. Sparse samples are not centered.
func (w *batchLoss) batch(list []int) numeric.Points {
	if w.points.Sparse != nil {
		return w.points.Take(list)
	}
	rows := w.rows.View(0, 0, len(list), w.d)
	for r, i := range list {
		copy(rows.Row(r), w.points.Dense.Row(i))
		for p, m := range w.mean {
			rows.Row(r)[p] -= m
		}
	}
	return numeric.DensePoints(rows)
}

func (w *batchLoss) gradient(theta backend.Host[float64], list []int) error {
	f := w.f.View(0, 0, len(list), w.c)
	b := w.t.B
	x, err := w.batch(list).Place(b)
	if err != nil {
		return err
	}
	defer x.Free()
	out, err := b.New(len(list), w.c)
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
	shift := theta.Row(w.d)
	if w.points.Sparse != nil {
		shift = w.shift(theta)
	}
	sums := w.residuals(f, func(r int) int { return list[r] }, shift).sums
	if w.sums = nil; w.mean != nil {
		w.sums = sums
	}
	if err := b.Upload(out, f); err != nil {
		return err
	}
	b.Gemm(backend.Transpose, backend.NoTrans, 1, x, out, 0, w.logit.g)
	if err := b.Download(w.g, w.logit.g); err != nil || w.points.Sparse == nil {
		return err
	}
	w.center(w.g, sums)
	return nil
}

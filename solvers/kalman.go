package solvers

import (
	"context"
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/markov"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Kalman solves by a Kalman filter, which computes a Cholesky factorization of K + λW⁻¹ in O(n) time
// and memory. It needs one feature and a kernel whose Gaussian process is Markov: exponential, laplacian,
// matern32, matern52, constants, and their sums and multiples. It computes in float64 in Go memory.
const Kalman Method = "kalman"

// kalmanRow[0] + kalmanRow[1]·d² is the time in seconds for one sample and one right-hand side with a state of
// dimension d, measured on two cores of a Zen 4, 2026-11.
var kalmanRow = [2]float64{3e-7, 3e-8}

// kalmanFlops is the number of operations in one pass over n samples, for the reports of progress.
func kalmanFlops(m markov.Model, n int) float64 {
	d := float64(m.Dim())
	return 4 * float64(n) * d * d
}

// markov returns the state-space model of the kernel, and true if there is one and p has one dense feature.
func (p Problem) markov() (markov.Model, bool) {
	if p.Sparse != nil || p.X.Cols != 1 {
		return markov.Model{}, false
	}
	return markov.Of(p.Kernel)
}

func kalmanEstimate(z *sizes, _ Params) (estimate, error) {
	m, ok := z.p.markov()
	if !ok {
		return estimate{}, message.Errorf("solvers: kalman: needs one feature and a kernel such as exponential, matern32 or matern52, or a sum of them, got %s and %v: {use $solver=dual}", features(z.d), z.kernel)
	}
	flops := kalmanFlops(m, z.n)
	e := estimate{
		settings: kalmanChoice{m},
		stages:   []stage{{"gram", flops}, {"factor", flops}, {"solve", 4 * flops * float64(z.columns)}},
		bytesOf:  z.kalmanBytes(m),
	}
	e.cost = z.kalmanCost(m)
	return e, nil
}

// kalmanBytes returns the device and Go memory of Kalman as a function of the number of rows.
func (z *sizes) kalmanBytes(m markov.Model) func(n int) int64 {
	return func(n int) int64 {
		return numeric.Total(z.refinedBytes(n), numeric.Bytes(numeric.Total(m.Elements(n), numeric.Elements(n, 2+2*z.columns+4*z.t))))
	}
}

func (z *sizes) kalmanCost(m markov.Model) float64 {
	d := float64(m.Dim())
	return float64(z.n) * (kalmanRow[0] + kalmanRow[1]*d*d) * float64(z.columns) * z.costs().rate
}

// kalman returns the kernel's state-space model, and true if Kalman is estimated to be faster than factoring K on dev.
func (p Problem) kalman(dev backend.Device) (markov.Model, bool) {
	if dev == nil || p.checkShapes() != nil {
		return markov.Model{}, false
	}
	m, ok := p.markov()
	if ok {
		z := newSizes(dev, p, Params{})
		ok = z.kalmanCost(m) < z.dualEstimate(false).cost
	}
	return m, ok
}

// newLine makes the checks of newCovariance, reserves elements(n) numbers, and sorts the samples by their feature.
func newLine(ctx context.Context, dev backend.Device, m markov.Model, operation string, p Problem, limit int64, elements func(n int) int64) (*samples, *markov.Line, error) {
	if err := p.checkCovariance(dev, operation, limit); err != nil {
		return nil, nil, err
	}
	s := newSamples(p)
	if err := Reserve(ctx, dev, limit, Method(operation), s.n, func(n int) int64 { return numeric.Bytes(elements(n)) }); err != nil {
		return nil, nil, err
	}
	if err := p.checkValues(); err != nil {
		return nil, nil, err
	}
	l, err := s.line(ctx, m)
	return s, l, err
}

// kalmanEvidence implements LogEvidence by a Kalman filter.
func kalmanEvidence(ctx context.Context, dev backend.Device, m markov.Model, p Problem, par EvidenceParams) (*Evidence, error) {
	s, l, err := newLine(ctx, dev, m, "evidence", p, par.Memory, func(n int) int64 {
		return numeric.Total(m.Elements(n), numeric.Elements(n, 2*p.Y.Cols))
	})
	if err != nil {
		return nil, err
	}
	if err := l.Filter(ctx, s.shift()); err != nil {
		return nil, s.refused("evidence", err)
	}
	y := backend.NewHost[float64](s.n, s.t)
	s.fill(y, s.Y, nil, 0, false)
	e := s.evidence(l.Squares(y), l.LogPivots(), par)
	if err := e.check(); err != nil {
		return nil, err
	}
	if !par.Gradient {
		return e, nil
	}
	s.fill(y, s.Y, nil, 0, false)
	gradient, lambda, err := l.Gradient(ctx, len(kernels.Params(s.Kernel)), s.shift(), y, e.Scale)
	if err != nil {
		return nil, fmt.Errorf("solvers: evidence: %w", err)
	}
	for i := range s.n {
		lambda -= float64(s.t) * (s.weightOf(i) - 1) / 2
	}
	e.Gradient = append(gradient, lambda)
	return e, nil
}

// refused adds the name of the operation to an error of the Kalman filter.
func (s *samples) refused(operation string, err error) error {
	if errors.Is(err, backend.ErrNotPosDef) {
		return s.explain(err)
	}
	return fmt.Errorf("solvers: %s: %w", operation, err)
}

// newPosterior implements NewUncertainty by a Kalman filter.
func newPosterior(ctx context.Context, dev backend.Device, m markov.Model, p Problem, limit int64) (*Uncertainty, error) {
	s, l, err := newLine(ctx, dev, m, "variance", p, limit, m.PosteriorElements)
	if err != nil {
		return nil, err
	}
	u := &Uncertainty{s: s}
	if u.posterior, err = l.Posterior(ctx, s.shift()); err != nil {
		return nil, s.refused("variance", err)
	}
	return u, nil
}

// kalmanChoice solves by a Kalman filter, with refinement.
type kalmanChoice struct{ model markov.Model }

func (choice kalmanChoice) run(w *work) error {
	return w.refine(nil, fallback{method: Kalman, make: func() (inner, error) { return w.newFilter(choice.model) }})
}

// filter is the inner solver that uses a Kalman filter.
type filter struct {
	w    *work
	line *markov.Line
}

func (w *work) newFilter(m markov.Model) (inner, error) {
	f := &filter{w: w}
	err := w.Timed("gram", &w.res.Seconds.Gram, func() (err error) {
		f.line, err = w.s.line(w.Ctx, m)
		w.Progress.Done(kalmanFlops(m, w.s.n))
		return err
	})
	if err == nil {
		err = w.Timed("factor", &w.res.Seconds.Factor, func() error {
			err := f.line.Filter(w.Ctx, w.s.shift())
			w.Progress.Done(kalmanFlops(m, w.s.n))
			return err
		})
	}
	var pivot *backend.PivotError
	switch {
	case errors.As(err, &pivot):
		return nil, w.kalmanPivot(pivot)
	case err != nil:
		return nil, w.fail(err)
	}
	return f, nil
}

// kalmanPivot adds an explanation and advice to the error of a failed factorization of K + λW⁻¹.
func (w *work) kalmanPivot(pivot *backend.PivotError) error {
	row := w.s.row(pivot.Index) + 1
	if numeric.Overflowed(pivot) {
		return numeric.ExplainPivot(pivot, "solvers: kalman: K + λI is not finite at row %d: values of the kernel %v overflow: scale the features down", row, w.s.Kernel)
	}
	return numeric.ExplainPivot(pivot, "solvers: kalman: K + λI is not positive definite to working precision at row %d (pivot %.3g), whose feature is too close to that of another row: {raise $lambda}", row, pivot.Value)
}

func (f *filter) solve(r backend.Matrix[float64], _ []float64) error {
	rows, columns := r.Dims()
	h := backend.NewHost[float64](rows, columns)
	if err := f.w.B.Download(h, r); err != nil {
		return f.w.fail(err)
	}
	f.line.Solve(h)
	f.w.Progress.Done(kalmanFlops(f.line.Model, rows) * float64(columns))
	if err := f.w.B.Upload(r, h); err != nil {
		return f.w.fail(err)
	}
	return nil
}

// multiplyByK replaces v, in Go memory, by Kv.
func (f *filter) multiplyByK(v backend.Host[float64]) {
	f.line.Multiply(v)
	f.w.Progress.Done(kalmanFlops(f.line.Model, v.Rows) * float64(v.Cols))
}

func (f *filter) product() numeric.Product { return nil }
func (f *filter) direct() bool             { return true }
func (f *filter) stopReason() string       { return "" }
func (f *filter) switchToCG() bool         { return false }
func (f *filter) endedForFaster() bool     { return false }
func (f *filter) release()                 {}

// pathKalman factors C = K + λW⁻¹ by a Kalman filter for each λ, in Go memory.
type pathKalman struct {
	pathBase
	model markov.Model
	line  *markov.Line
}

// kalmanPathCost is the cost of a path by Kalman filters. Each λ takes about as long as two solutions by Kalman.
func (z *sizes) kalmanPathCost(m markov.Model, lambdas int) float64 {
	return 2 * float64(lambdas) * z.kalmanCost(m)
}

// kalmanPathElements is the number of float64 values in Go memory of the n sorted samples and the workers.
func (z *sizes) kalmanPathElements(m markov.Model, n, workers int) int64 {
	return numeric.Total(m.Elements(n), numeric.Elements(n, workers*(2+m.Dim()+2*z.columns+z.t)))
}

func (p *pathKalman) begin() (err error) {
	p.line, err = p.s.line(p.Ctx, p.model)
	return err
}

func (p *pathKalman) group(ctx context.Context, lambdas []float64) ([]PathPoint, error) {
	points, errs := make([]PathPoint, len(lambdas)), make([]error, len(lambdas))
	run.Parallel(len(lambdas), func(first, last int) {
		for i := first; i < last; i++ {
			points[i].Lambda = lambdas[i]
			if errs[i] = p.one(ctx, &points[i]); errs[i] != nil {
				return
			}
			if points[i].Err != nil {
				points[i] = PathPoint{Lambda: lambdas[i], Err: points[i].Err}
			}
		}
	})
	return points, errors.Join(errs...)
}

func (p *pathKalman) one(ctx context.Context, point *PathPoint) error {
	s, line := *p.s, *p.line
	s.Lambda = point.Lambda
	err := line.Filter(ctx, s.shift())
	if errors.Is(err, backend.ErrNotPosDef) {
		point.Err = s.explain(err)
		return nil
	}
	if err != nil {
		return err
	}
	sol := p.targets(&s)
	line.Solve(sol)
	p.score(&s, point, sol, line.Inverse())
	if point.Err != nil || ctx.Err() != nil {
		return context.Cause(ctx)
	}
	logDet := 0.0
	for i, v := range line.LogPivots() {
		logDet += v + elementary.Log(s.weightOf(i))
	}
	alpha, fit := sol.View(0, 0, s.n, s.t), backend.NewHost[float64](s.n, s.t)
	s.profile(point, p.squares(alpha), logDet)
	for i := range s.n {
		copy(fit.Row(i), alpha.Row(i))
	}
	line.Multiply(fit)
	s.finishPoint(point, fit, alpha, backend.Host[float64]{})
	p.Progress.Done(kalmanFlops(p.model, s.n) * float64(2+2*p.columns()))
	return context.Cause(ctx)
}

func features(n int) string {
	if n == 1 {
		return "1 feature"
	}
	return fmt.Sprintf("%d features", n)
}

package solvers

import (
	"context"
	"errors"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// pathCholesky factors C = K + λW⁻¹ = LLᵀ for each λ. Sums of squares of the columns of L⁻¹ give the diagonal of C⁻¹.
type pathCholesky struct {
	pathBase
	kernel                        kernels.Kernel // the result of lifted
	x, a, rhs, fit, coef, inverse backend.Matrix[float64]
}

// inverseBlock is the number of columns of L⁻¹ that are computed at a time.
const inverseBlock = 256

func (p *pathCholesky) begin() error {
	s := p.s
	p.kernel = s.lifted()
	var err error
	if p.x, err = p.placeX(); err != nil {
		return err
	}
	for _, m := range []struct {
		m          *backend.Matrix[float64]
		rows, cols int
	}{{&p.a, s.n, s.n}, {&p.rhs, s.n, p.columns()}, {&p.fit, s.n, s.t}, {&p.inverse, s.n, min(s.n, inverseBlock)}} {
		if *m.m, err = p.Mem.New(m.rows, m.cols); err != nil {
			return err
		}
	}
	if s.linear() {
		p.coef, err = p.Mem.New(s.d, s.t)
	}
	return err
}

func (p *pathCholesky) group(ctx context.Context, lambdas []float64) ([]PathPoint, error) {
	points := make([]PathPoint, len(lambdas))
	for i, l := range lambdas {
		points[i].Lambda = l
		if err := p.one(ctx, &points[i]); err != nil {
			return nil, err
		}
		if points[i].Err != nil {
			points[i] = PathPoint{Lambda: l, Err: points[i].Err}
		}
	}
	return points, nil
}

func (p *pathCholesky) one(ctx context.Context, point *PathPoint) error {
	b := p.queue(ctx)
	s := *p.s
	s.Lambda = point.Lambda
	err := numeric.FactorGram(b, p.a, p.kernel, p.x, s.shift())
	if errors.Is(err, backend.ErrNotPosDef) {
		point.Err = p.s.explain(err)
		return nil
	}
	if err != nil {
		return err
	}
	sol := p.targets(&s)
	if err := b.Upload(p.rhs, sol); err != nil {
		return err
	}
	numeric.SolveCholesky(b, p.a, p.rhs)
	if err := b.Download(sol, p.rhs); err != nil {
		return err
	}
	diag, err := numeric.InverseDiagonal(ctx, b, p.a, p.inverse)
	if err != nil {
		return err
	}
	p.score(&s, point, sol, diag)
	if point.Err != nil {
		return nil
	}
	pivots, err := numeric.Diagonal(b, p.a)
	if err != nil {
		return err
	}
	logDet := 0.0
	for i, v := range pivots {
		logDet += 2*elementary.Log(v) + elementary.Log(s.weightOf(i))
	}
	s.profile(point, p.squares(sol.View(0, 0, s.n, s.t)), logDet)

	// The factor has overwritten K: the residual evaluates K again.
	alpha := sol.View(0, 0, s.n, s.t)
	onDevice := p.rhs.View(0, 0, s.n, s.t)
	if err := b.Upload(onDevice, alpha); err != nil {
		return err
	}
	b.GramMul(p.fit, s.Kernel, p.x, p.x, onDevice)
	fit := backend.NewHost[float64](s.n, s.t)
	if err := b.Download(fit, p.fit); err != nil {
		return err
	}
	var coef backend.Host[float64]
	if p.coef != nil {
		b.Gemm(backend.Transpose, backend.NoTrans, 1, p.x, onDevice, 0, p.coef)
		coef = backend.NewHost[float64](s.d, s.t)
		if err := b.Download(coef, p.coef); err != nil {
			return err
		}
	}
	s.finishPoint(point, fit, alpha, coef)
	return nil
}

// targets returns the right-hand sides [y 1], or y without an intercept.
func (p *pathBase) targets(s *samples) backend.Host[float64] {
	h := backend.NewHost[float64](s.n, p.columns())
	s.fill(h.View(0, 0, s.n, s.t), s.Y, s.meanY, 0, false)
	if s.Intercept {
		for i := range s.n {
			h.Row(i)[s.t] = 1
		}
	}
	return h
}

// score computes the scores from sol = C⁻¹[y 1] and from diag, the diagonal of C⁻¹, where C = K + λW⁻¹. It overwrites
// sol with α, and diag with the diagonal of G (see Path).
func (p *pathBase) score(s *samples, point *PathPoint, sol backend.Host[float64], diag []float64) {
	point.Intercept = make([]float64, s.t)
	if s.Intercept {
		sums := make([]float64, s.t+1)
		for i := range s.n {
			for j, v := range sol.Row(i) {
				sums[j] += v
			}
		}
		for j := range point.Intercept {
			point.Intercept[j] = sums[j] / sums[s.t]
		}
		for i := range s.n {
			row := sol.Row(i)
			z := row[s.t]
			for j, b := range point.Intercept {
				row[j] -= b * z
			}
			diag[i] -= z * z / sums[s.t]
		}
	}
	trace := 0.0
	point.GCV = make([]float64, s.t)
	for i := range s.n {
		w := s.weightOf(i)
		trace += diag[i] / w
		for j, v := range sol.Row(i)[:s.t] {
			point.GCV[j] += v * v / w
		}
	}
	if !(trace > 0) {
		point.Err = errNothingLeft
		return
	}
	point.DegreesOfFreedom = float64(s.n) - point.Lambda*trace
	for j := range point.GCV {
		point.GCV[j] *= float64(s.n) / trace / trace
	}
	if p.loo {
		s.leaveOneOut(point, func(i, j int) float64 { return sol.Row(i)[j] / diag[i] })
	}
}

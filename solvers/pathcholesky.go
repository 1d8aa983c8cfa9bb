package solvers

import (
	"context"
	"errors"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// pathCholesky factors C = K + λW⁻¹ = LLᵀ anew for each λ. The diagonal of C⁻¹
// is the sums of squares of the columns of L⁻¹: n³/3 operations more, since L⁻¹
// is a triangle.
type pathCholesky struct {
	pathBase
	kernel                        kernels.Kernel // see lifted
	x, a, rhs, fit, coef, inverse backend.Matrix[float64]
}

// inverseBlock is how many columns of L⁻¹ are in work at a time.
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
	if isLinear(s.Kernel) {
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

func (p *pathCholesky) one(ctx context.Context, at *PathPoint) error {
	b := p.queue(ctx)
	s := *p.s
	s.Lambda = at.Lambda
	err := factorGram(b, p.a, p.kernel, p.x, s.shift())
	if errors.Is(err, backend.ErrNotPosDef) {
		at.Err = p.s.explain(err)
		return nil
	}
	if err != nil {
		return err
	}
	sol := backend.NewHost[float64](s.n, p.columns())
	s.fill(sol.View(0, 0, s.n, s.t), s.Y, s.meanY, 0, false)
	if s.Intercept {
		for i := range s.n {
			sol.Row(i)[s.t] = 1
		}
	}
	if err := b.Upload(p.rhs, sol); err != nil {
		return err
	}
	cholesky(b, p.a, p.rhs)
	if err := b.Download(sol, p.rhs); err != nil {
		return err
	}
	diag, err := inverseDiagonal(ctx, b, p.a, p.inverse)
	if err != nil {
		return err
	}
	p.score(&s, at, sol, diag)
	if at.Err != nil {
		return nil
	}
	pivots, err := diagonal(b, p.a)
	if err != nil {
		return err
	}
	logDet := 0.0
	for i, v := range pivots {
		logDet += 2*math.Log(v) + math.Log(s.weightOf(i))
	}
	s.profile(at, p.squares(sol.View(0, 0, s.n, s.t)), logDet)

	// The residual, from K formed anew.
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
	s.finishPoint(at, fit, alpha, coef)
	return nil
}

// factorGram sets the lower triangle of a to the Cholesky factor of k(X, X) + D for
// the diagonal D, of length 1 or n. A pivot that is rounding only is refused.
func factorGram(b backend.Backend[float64], a backend.Matrix[float64], k kernels.Kernel, x backend.Matrix[float64], d []float64) error {
	b.Gram(a, k, x, x)
	b.AddDiag(d, a)
	before, err := diagonal(b, a)
	if err != nil {
		return err
	}
	if err := b.Potrf(backend.Lower, a); err != nil {
		return err
	}
	after, err := diagonal(b, a)
	if err != nil {
		return err
	}
	return roundedPivot(after, before)
}

// inverseDiagonal is the diagonal of (LLᵀ)⁻¹, from the columns of L⁻¹: those of
// block j begin at row j. scratch is n × some columns.
func inverseDiagonal(ctx context.Context, b backend.Backend[float64], l, scratch backend.Matrix[float64]) ([]float64, error) {
	n, width := scratch.Dims()
	diag := make([]float64, n)
	for first := 0; first < n; first += width {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		cols, rest := min(width, n-first), n-first
		x := scratch.View(0, 0, rest, cols)
		setZero(b, x)
		b.AddDiag([]float64{1}, x.View(0, 0, cols, cols))
		b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, l.View(first, first, rest, rest), x)
		if err := b.ColDot(diag[first:first+cols], x, x); err != nil {
			return nil, err
		}
	}
	return diag, nil
}

// score sets what follows from C⁻¹[y 1] and the diagonal of C⁻¹, which becomes
// that of G; sol becomes α.
func (p *pathCholesky) score(s *samples, at *PathPoint, sol backend.Host[float64], diag []float64) {
	at.Intercept = make([]float64, s.t)
	if s.Intercept {
		sums := make([]float64, s.t+1)
		for i := range s.n {
			for j, v := range sol.Row(i) {
				sums[j] += v
			}
		}
		for j := range at.Intercept {
			at.Intercept[j] = sums[j] / sums[s.t]
		}
		for i := range s.n {
			row := sol.Row(i)
			z := row[s.t]
			for j, b := range at.Intercept {
				row[j] -= b * z
			}
			diag[i] -= z * z / sums[s.t]
		}
	}
	trace := 0.0
	at.GCV = make([]float64, s.t)
	for i := range s.n {
		w := s.weightOf(i)
		trace += diag[i] / w
		for j, v := range sol.Row(i)[:s.t] {
			at.GCV[j] += v * v / w
		}
	}
	if !(trace > 0) {
		at.Err = errNothingLeft
		return
	}
	at.Freedom = float64(s.n) - at.Lambda*trace
	for j := range at.GCV {
		at.GCV[j] *= float64(s.n) / trace / trace
	}
	if p.loo {
		s.leaveOneOut(at, func(i, j int) float64 { return sol.Row(i)[j] / diag[i] })
	}
}

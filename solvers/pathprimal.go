package solvers

import (
	"context"
	"errors"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/band"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// pathPrimal computes the path of a linear kernel from X̃ᵀX̃ = QBQᵀ of order d. X̃ is W^½(X − x̄) with an intercept,
// otherwise W^½X. With ỹ = W^½y and B + λI = LLᵀ, the coefficients w, the residuals r and the leave-one-out errors e
// are
//
//	w = Q(B + λI)⁻¹QᵀX̃ᵀỹ,  r = ỹ − X̃w,  e_i = r_i / (√w_i (1 − h_i)),  h_i = ‖L⁻¹Qᵀx̃_i‖²
//
// where w_i is the weight of sample i. The degrees of freedom are tr H = d − λ tr (B + λI)⁻¹. An intercept adds w_i/Σw
// to each h_i and 1 to tr H. λ may be 0.
type pathPrimal struct {
	pathBase
	q       *band.Solver
	blocks  *blocks
	rhs     backend.Host[float64]   // QᵀX̃ᵀỹ
	size    []float64               // divisor of the residual's norm for each output
	coef    backend.Matrix[float64] // d × groupSize·t
	product backend.Matrix[float64] // d × groupSize·t: X̃ᵀr
	fit     backend.Matrix[float64] // r for a block of samples: block rows × groupSize·t
	rotated backend.Matrix[float64] // QᵀX̃ᵀ for a block of samples: d × block rows
}

func (p *pathPrimal) begin() error {
	s, b := p.s, p.B
	var err error
	if p.blocks, err = p.newBlocks(false); err != nil {
		return err
	}
	rows, group := p.blocks.rows, band.GroupSize*s.t
	a, err := p.Mem.New(s.d, s.d)
	if err != nil {
		return err
	}
	for _, m := range []struct {
		m          *backend.Matrix[float64]
		rows, cols int
		loo        bool
	}{{&p.coef, s.d, group, false}, {&p.product, s.d, group, false}, {&p.fit, rows, group, false}, {&p.rotated, s.d, rows, true}} {
		if m.loo && !p.loo {
			continue
		}
		if *m.m, err = p.Mem.New(m.rows, m.cols); err != nil {
			return err
		}
	}
	xy := p.coef.View(0, 0, s.d, s.t)
	err = p.blocks.forEach(func(x, y backend.Matrix[float64]) {
		b.Syrk(backend.Lower, backend.Transpose, 1, x, 1, a)
		b.Gemm(backend.Transpose, backend.NoTrans, 1, x, y, 1, xy)
	})
	if err != nil {
		return err
	}
	rhs := backend.NewHost[float64](s.d, s.t)
	if err := b.Download(rhs, xy); err != nil {
		return err
	}
	diag, err := numeric.Diagonal(b, a)
	if err != nil {
		return err
	}
	p.size = s.primalScales(rhs, numeric.Trace(diag), Params{}.tol())
	if p.q, err = p.decompose(a, s.t, rows); err != nil {
		return err
	}
	p.rhs, err = p.q.Rotate(b, rhs)
	return err
}

func (p *pathPrimal) group(ctx context.Context, lambdas []float64) ([]PathPoint, error) {
	s, b := p.s, p.queue(ctx)
	coefs, err := p.q.Solve(ctx, b, lambdas, p.rhs)
	if err != nil {
		return nil, err
	}
	points, cols := make([]PathPoint, len(lambdas)), len(lambdas)*s.t
	for i, l := range lambdas {
		points[i].Lambda = l
		if err := p.q.Errs[i]; err != nil {
			points[i].Err = p.s.explain(err)
		}
	}
	coef, product := p.coef.View(0, 0, s.d, cols), p.product.View(0, 0, s.d, cols)
	if err := b.Upload(coef, coefs); err != nil {
		return nil, err
	}
	residual := backend.NewHost[float64](s.n, cols) // r
	var leverage [][]float64
	for range lambdas {
		if p.loo {
			leverage = append(leverage, make([]float64, s.n))
		}
	}
	if err := p.residuals(ctx, b, coef, product, residual, leverage); err != nil {
		return nil, err
	}
	gradient := backend.NewHost[float64](s.d, cols) // X̃ᵀr
	if err := b.Download(gradient, product); err != nil {
		return nil, err
	}
	for i := range points {
		if points[i].Err != nil {
			continue
		}
		point := &points[i]
		point.Coef = coefs.View(0, i*s.t, s.d, s.t)
		point.Intercept = make([]float64, s.t)
		for j := range s.t {
			r := numeric.Norm(s.d, func(k int) float64 { return gradient.Row(k)[i*s.t+j] - point.Lambda*point.Coef.Row(k)[j] })
			point.Residual = max(point.Residual, numeric.Ratio(r, p.size[j]))
		}
		var h []float64
		if p.loo {
			h = leverage[i]
		}
		p.score(point, residual.View(0, i*s.t, s.n, s.t), h, p.q.Factors[i].Trace)
		p.likelihood(point, residual.View(0, i*s.t, s.n, s.t), p.q.Factors[i].LogDet)
		s.uncenter(point)
		if v := point.Residual; point.Err == nil && (math.IsNaN(v) || math.IsInf(v, 0)) {
			point.Err = message.Errorf("solvers: path: the solution is not finite: {scale the features and targets down|raise $lambda}")
		}
		if point.Err != nil {
			points[i] = PathPoint{Lambda: point.Lambda, Err: point.Err}
		}
	}
	return points, nil
}

// residuals computes residual = ỹ − X̃w, product = X̃ᵀ·residual and, unless leverage is nil, the leverages h_i in
// one pass over the samples. coef holds w.
func (p *pathPrimal) residuals(ctx context.Context, b backend.Backend[float64], coef, product backend.Matrix[float64], residual backend.Host[float64], leverage [][]float64) error {
	s := p.s
	_, cols := coef.Dims()
	first, beta := 0, 0.0
	blocks := *p.blocks
	blocks.w = &call{run.Frame{Ctx: ctx, Dev: p.Dev, B: b, Mem: p.Mem}, s}
	var failure error
	err := blocks.forEach(func(x, y backend.Matrix[float64]) {
		rows, _ := x.Dims()
		fit, r := p.fit.View(0, 0, rows, cols), residual.View(first, 0, rows, cols)
		targets := backend.NewHost[float64](rows, s.t)
		if failure != nil {
			return
		}
		if failure = b.Download(targets, y); failure != nil {
			return
		}
		for i := range rows {
			for j := range cols {
				r.Row(i)[j] = targets.Row(i)[j%s.t]
			}
		}
		if failure = b.Upload(fit, r); failure != nil {
			return
		}
		b.Gemm(backend.NoTrans, backend.NoTrans, -1, x, coef, 1, fit)
		b.Gemm(backend.Transpose, backend.NoTrans, 1, x, fit, beta, product)
		if failure = b.Download(r, fit); failure != nil {
			return
		}
		if leverage != nil {
			m := p.rotated.View(0, 0, s.d, rows)
			b.Gemm(backend.NoTrans, backend.Transpose, 1, p.q.Transposed(), x, 0, m)
			blockLeverage := make([][]float64, len(leverage))
			for i, h := range leverage {
				blockLeverage[i] = h[first : first+rows]
			}
			failure = p.q.Diagonals(ctx, b, m, blockLeverage)
		}
		first, beta = first+rows, 1
	})
	return errors.Join(failure, err)
}

// likelihood sets point.Evidence from determinants and inverses of d × d matrices, for the X̃, ỹ and r of pathPrimal:
//
//	ỹᵀ(X̃X̃ᵀ + λI)⁻¹ỹ = ỹᵀr/λ,  det (X̃X̃ᵀ + λI) = λⁿ⁻ᵈ det (X̃ᵀX̃ + λI)
func (p *pathPrimal) likelihood(point *PathPoint, r backend.Host[float64], logDet float64) {
	s := p.s
	sums, row := make([]float64, s.t), backend.NewHost[float64](1, s.t)
	for i := range s.n {
		s.fill(row, s.Y, s.meanY, i, true)
		for j, y := range row.Data {
			sums[j] += y * r.Row(i)[j] / point.Lambda
		}
	}
	s.profile(point, sums, logDet+float64(s.n-s.d)*elementary.Log(point.Lambda))
}

// score computes the scores from the residuals r, the leverages h and the trace of (B + λI)⁻¹. h may be nil.
func (p *pathPrimal) score(point *PathPoint, r backend.Host[float64], h []float64, trace float64) {
	s := p.s
	intercept, total := 0.0, 0.0
	for i := range s.n {
		total += s.weightOf(i)
	}
	if s.Intercept {
		intercept = 1
	}
	if h != nil {
		point.DegreesOfFreedom = intercept
		for i := range h {
			point.DegreesOfFreedom += h[i]
			h[i] += intercept * s.weightOf(i) / total
		}
	} else {
		point.DegreesOfFreedom = intercept + float64(s.d) - point.Lambda*trace
	}
	point.GCV = make([]float64, s.t)
	for i := range s.n {
		for j, v := range r.Row(i) {
			point.GCV[j] += v * v
		}
	}
	remaining := float64(s.n) - point.DegreesOfFreedom
	if remaining <= 8*numeric.Epsilon*float64(s.n) {
		point.Err = errNothingLeft
		return
	}
	for j := range point.GCV {
		point.GCV[j] *= float64(s.n) / remaining / remaining
	}
	if h != nil {
		s.leaveOneOut(point, func(i, j int) float64 {
			return r.Row(i)[j] / (1 - h[i]) / math.Sqrt(s.weightOf(i))
		})
	}
}

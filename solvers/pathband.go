package solvers

import (
	"context"
	"errors"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/band"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

// pathBase has the fields that all implementations of route share.
type pathBase struct {
	call
	loo bool
}

// queue returns a queue of the device. Canceling ctx cancels the queue.
func (p *pathBase) queue(ctx context.Context) backend.Backend[float64] {
	return p.Dev.F64().With(ctx, p.Progress.Done)
}

// decompose returns the band decomposition QBQᵀ of a. Q overwrites a.
func (p *pathBase) decompose(a backend.Matrix[float64], columns, samples int) (*band.Solver, error) {
	return band.New(p.Mem, p.B, a, band.Params{Columns: columns, Inverses: p.loo, Samples: samples, Queue: p.queue, Workers: pathWorkers(p.Dev)})
}

// columns is the number of right-hand sides: one for each output and, with an intercept, one for the vector √w.
func (p *pathBase) columns() int {
	if p.s.Intercept {
		return p.s.t + 1
	}
	return p.s.t
}

// pathWorkers is the number of goroutines that factor matrices at the same time, each for another λ.
func pathWorkers(dev backend.Device) int { return max(1, min(band.GroupSize, dev.Info().Threads)) }

// pathBand computes a path from the decomposition of K̃ = W^½KW^½ with an orthogonal Q and a block tridiagonal B:
//
//	W^½(K + λW⁻¹)W^½ = K̃ + λI = Q(B + λI)Qᵀ
//
// With α̃ = W^-½α, ỹ = W^½y and u = W^½1 the system is (K̃ + λI)α̃ + b·u = ỹ. With an intercept and a linear kernel, 1
// may be an eigenvector of K with eigenvalue 0. The method lifted then replaces K by K + c 11ᵀ, which does not change
// α.
type pathBand struct {
	pathBase
	x       backend.Matrix[float64]
	q       *band.Solver
	rhs     backend.Host[float64] // Qᵀ[ỹ u]
	alpha   backend.Matrix[float64]
	product backend.Matrix[float64]
	coef    backend.Matrix[float64]
}

func (p *pathBand) begin() error {
	s, b := p.s, p.B
	var err error
	if p.x, err = p.placeX(); err != nil {
		return err
	}
	a, err := p.Mem.New(s.n, s.n)
	if err != nil {
		return err
	}
	b.Gram(a, s.lifted(), p.x, p.x)
	if err := b.Sync(); err != nil {
		return err
	}
	rhs := backend.NewHost[float64](s.n, p.columns())
	s.fill(rhs.View(0, 0, s.n, s.t), s.Y, s.meanY, 0, true)
	if s.Intercept {
		for i := range s.n {
			rhs.Row(i)[s.t] = math.Sqrt(s.weightOf(i))
		}
	}
	if s.weight != nil {
		if err := scaleTriangle(b, a, s.weight); err != nil {
			return err
		}
	}
	if p.q, err = p.decompose(a, p.columns(), s.n); err != nil {
		return err
	}
	if p.rhs, err = p.q.Rotate(b, rhs); err != nil {
		return err
	}
	for _, m := range []*backend.Matrix[float64]{&p.alpha, &p.product} {
		if *m, err = p.Mem.New(s.n, band.GroupSize*s.t); err != nil {
			return err
		}
	}
	if s.linear() {
		p.coef, err = p.Mem.New(s.d, band.GroupSize*s.t)
	}
	return err
}

// scaleTriangle sets A_ij ← √w_i A_ij √w_j in the lower triangle.
func scaleTriangle(b backend.Backend[float64], a backend.Matrix[float64], weight []float64) error {
	n := len(weight)
	r := blockRows(n, n)
	roots := make([]float64, n)
	for i, w := range weight {
		roots[i] = math.Sqrt(w)
	}
	buffer := backend.NewHost[float64](r, n)
	for first := 0; first < n; first += r {
		end := min(first+r, n)
		h, block := buffer.View(0, 0, end-first, end), a.View(first, 0, end-first, end)
		if err := b.Download(h, block); err != nil {
			return err
		}
		for i := range h.Rows {
			for j, v := range h.Row(i)[:first+i+1] {
				h.Row(i)[j] = roots[first+i] * v * roots[j]
			}
		}
		if err := b.Upload(block, h); err != nil {
			return err
		}
	}
	return nil
}

// lifted returns the kernel whose matrix pathBand decomposes: the kernel of K, or of K + c 11ᵀ.
func (s *samples) lifted() kernels.Kernel {
	if !s.Intercept || !isLinear(s.Kernel) {
		return s.Kernel
	}
	trace := 0.0
	if s.Sparse != nil {
		for i := range s.n {
			trace += s.x.Diag(s.Kernel, s.row(i))
		}
	} else {
		row := backend.NewHost[float64](1, s.d)
		for i := range s.n {
			s.fill(row, s.X, s.meanX, i, false)
			trace += numeric.Dot(row.Data, row.Data)
		}
	}
	if !(trace > 0) || math.IsInf(trace, 1) {
		trace = float64(s.n) // all samples are equal, or an overflow, which Gram reports
	}
	return kernels.Sum{s.Kernel, kernels.Constant{Value: trace / float64(s.n)}}
}

func (p *pathBand) group(ctx context.Context, lambdas []float64) ([]PathPoint, error) {
	s, b := p.s, p.queue(ctx)
	sols, err := p.q.Solve(ctx, b, lambdas, p.rhs)
	if err != nil {
		return nil, err
	}
	var diags [][]float64
	if p.loo {
		diags = make([][]float64, len(lambdas))
		for i := range diags {
			diags[i] = make([]float64, s.n)
		}
		if err := p.q.Diagonals(ctx, b, p.q.Transposed(), diags); err != nil {
			return nil, err
		}
	}
	points := make([]PathPoint, len(lambdas))
	alphas := backend.NewHost[float64](s.n, len(lambdas)*s.t)
	for i, l := range lambdas {
		points[i].Lambda = l
		if err := p.q.Errs[i]; err != nil {
			points[i].Err = p.s.explain(err)
			continue
		}
		c := p.columns()
		diag, trace := []float64(nil), p.q.Factors[i].Trace
		if p.loo {
			diag = diags[i]
			for _, v := range diag {
				trace += v
			}
		}
		p.score(&points[i], sols.View(0, i*c, s.n, c), diag, trace, alphas.View(0, i*s.t, s.n, s.t))
		s.profile(&points[i], p.squares(alphas.View(0, i*s.t, s.n, s.t)), p.q.Factors[i].LogDet)
	}
	return points, p.finish(ctx, b, points, alphas)
}

// squares returns yᵀα for each output.
func (p *pathBase) squares(alpha backend.Host[float64]) []float64 {
	s := p.s
	sums, row := make([]float64, s.t), backend.NewHost[float64](1, s.t)
	for i := range s.n {
		s.fill(row, s.Y, s.meanY, i, false)
		for j, y := range row.Data {
			sums[j] += y * alpha.Row(i)[j]
		}
	}
	return sums
}

// score computes the scores and writes α to alpha. In the notation of pathBand, sol is (K̃+λI)⁻¹[ỹ u]. diag is the
// diagonal of (K̃+λI)⁻¹, or nil without leave-one-out errors, and trace is its sum.
func (p *pathBand) score(point *PathPoint, sol backend.Host[float64], diag []float64, trace float64, alpha backend.Host[float64]) {
	s := p.s
	point.Intercept = make([]float64, s.t)
	if s.Intercept {
		var uzu, zz float64
		uy := make([]float64, s.t)
		for i := range s.n {
			u, row := math.Sqrt(s.weightOf(i)), sol.Row(i)
			z := row[s.t]
			uzu, zz = uzu+u*z, zz+z*z
			for j := range s.t {
				uy[j] += u * row[j]
			}
		}
		trace -= zz / uzu
		for j := range uy {
			point.Intercept[j] = uy[j] / uzu
		}
		for i := range s.n {
			row := sol.Row(i)
			z := row[s.t]
			for j, v := range point.Intercept {
				row[j] -= v * z
			}
			if diag != nil {
				diag[i] -= z * z / uzu
			}
		}
	}
	if !(trace > 0) {
		point.Err = errNothingLeft
		return
	}
	point.GCV = make([]float64, s.t)
	point.DegreesOfFreedom = float64(s.n) - point.Lambda*trace
	for i := range s.n {
		root := math.Sqrt(s.weightOf(i))
		for j, v := range sol.Row(i)[:s.t] {
			point.GCV[j] += v * v
			alpha.Row(i)[j] = root * v
		}
	}
	for j := range point.GCV {
		point.GCV[j] *= float64(s.n) / trace / trace
	}
	if diag != nil {
		s.leaveOneOut(point, func(i, j int) float64 {
			return sol.Row(i)[j] / diag[i] / math.Sqrt(s.weightOf(i))
		})
	}
}

// leaveOneOut sets the leave-one-out errors e(i, j) of output j at sample i, and the means of their squares.
func (s *samples) leaveOneOut(point *PathPoint, e func(i, j int) float64) {
	point.LOO = make([]float64, s.t)
	point.Errors = backend.NewHost[float64](s.x.Rows, s.t)
	total := 0.0
	for i := range s.n {
		w := s.weightOf(i)
		total += w
		for j := range s.t {
			v := e(i, j)
			point.Errors.Row(s.row(i))[j] = v
			point.LOO[j] += w * v * v
		}
	}
	for j := range point.LOO {
		point.LOO[j] /= total
		if v := point.LOO[j]; math.IsNaN(v) || math.IsInf(v, 0) {
			point.Err = message.Errorf("solvers: path: the leave-one-out errors are not finite: {raise $lambda}")
		}
	}
}

// finish computes the residuals of all λ by one product with K, and sets the points.
func (p *pathBand) finish(ctx context.Context, b backend.Backend[float64], points []PathPoint, alphas backend.Host[float64]) error {
	s := p.s
	alpha, product := p.alpha.View(0, 0, s.n, alphas.Cols), p.product.View(0, 0, s.n, alphas.Cols)
	if err := b.Upload(alpha, alphas); err != nil {
		return err
	}
	b.GramMul(product, s.Kernel, p.x, p.x, alpha)
	fit := backend.NewHost[float64](s.n, alphas.Cols)
	if err := b.Download(fit, product); err != nil {
		return err
	}
	var coefs backend.Host[float64]
	if s.linear() {
		coef := p.coef.View(0, 0, s.d, alphas.Cols)
		b.Gemm(backend.Transpose, backend.NoTrans, 1, p.x, alpha, 0, coef)
		coefs = backend.NewHost[float64](s.d, alphas.Cols)
		if err := b.Download(coefs, coef); err != nil {
			return err
		}
	}
	for i := range points {
		point := &points[i]
		if point.Err != nil {
			points[i] = PathPoint{Lambda: point.Lambda, Err: point.Err}
			continue
		}
		var coef backend.Host[float64]
		if s.linear() {
			coef = coefs.View(0, i*s.t, s.d, s.t)
		}
		s.finishPoint(point, fit.View(0, i*s.t, s.n, s.t), alphas.View(0, i*s.t, s.n, s.t), coef)
	}
	return nil
}

// finishPoint sets the residual, α, coefficients and intercept of point. It overwrites fit = Kα.
func (s *samples) finishPoint(point *PathPoint, fit, alpha, coef backend.Host[float64]) {
	point.Residual = s.pathResidual(point, fit, alpha)
	point.Alpha = backend.NewHost[float64](s.x.Rows, s.t)
	for i := range s.n {
		copy(point.Alpha.Row(s.row(i)), alpha.Row(i))
	}
	point.Coef = coef
	s.uncenter(point)
	if v := point.Residual; math.IsNaN(v) || math.IsInf(v, 0) {
		*point = PathPoint{Lambda: point.Lambda, Err: message.Errorf("solvers: path: the solution is not finite: {scale the features and targets down|raise $lambda}")}
	}
}

// pathResidual returns the residual (see Result.Residual) of a solution for centered targets. It overwrites fit = Kα.
func (s *samples) pathResidual(point *PathPoint, fit, alpha backend.Host[float64]) float64 {
	targets, sums := backend.NewHost[float64](1, s.t), make([]float64, s.t)
	for i := range s.n {
		s.fill(targets, s.Y, s.meanY, i, false)
		r, shift := fit.Row(i), point.Lambda/s.weightOf(i)
		for j, a := range alpha.Row(i) {
			r[j] += shift*a + point.Intercept[j] - targets.Data[j]
			sums[j] += a
		}
	}
	largest := 0.0
	for j := range s.t {
		r := numeric.Norm(s.n, func(i int) float64 { return fit.Row(i)[j] })
		if s.Intercept {
			r = math.Hypot(r, sums[j])
		}
		size := numeric.Norm(s.n, func(i int) float64 { return s.Y.Row(s.row(i))[j] })
		largest = max(largest, numeric.Ratio(r, numeric.ScaleOf(size, 0, 0, Params{}.tol())))
	}
	return largest
}

// uncenter converts the intercept for centered data to the intercept for the given data.
func (s *samples) uncenter(point *PathPoint) {
	for j := range point.Intercept {
		for _, mean := range s.meanY {
			point.Intercept[j] += mean[j]
		}
		for _, mean := range s.meanX {
			for k, m := range mean {
				point.Intercept[j] -= m * point.Coef.Row(k)[j]
			}
		}
	}
}

func (s *samples) explain(err error) error {
	var pivot *backend.PivotError
	if !errors.As(err, &pivot) {
		return err
	}
	if numeric.Overflowed(pivot) {
		return numeric.ExplainPivot(pivot, "solvers: path: values of the kernel %v overflow: scale the features down", s.Kernel)
	}
	largest := 0.0
	for i := range s.n {
		largest = max(largest, s.x.Diag(s.Kernel, s.row(i)))
	}
	if numeric.Indefinite(pivot.Value, largest) {
		return numeric.ExplainPivot(pivot, "solvers: path: K + λI is not positive definite (pivot %.3g): %s", pivot.Value, numeric.IndefiniteAdvice(s.Kernel))
	}
	return numeric.ExplainPivot(pivot, "solvers: path: K + λI is not positive definite to working precision (pivot %.3g): {raise $lambda}", pivot.Value)
}

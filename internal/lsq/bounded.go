package lsq

import (
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// The iteration for λ in Bounded ends at a relative error secularTol of ‖w‖², or fails after secularSteps steps.
const (
	secularTol   = 1e-10
	secularSteps = 200
)

// BoundedFit is the solution of least squares with ‖w‖² ≤ θ.
type BoundedFit struct {
	Coef      backend.Host[float64]
	Intercept []float64
	Lambda    []float64 // the penalty λ of each output for which ridge regression has the same solution; 0 if the bound is not active
	Steps     int       // total number of Newton steps that compute Lambda
	Norm      float64   // ‖w‖² of the first output
	Free      float64   // smallest ‖w‖² of a least-squares solution of the first output without the bound
}

// BoundedBytes returns the memory of Bounded for n rows, in bytes. It always includes the memory of QR, although
// Bounded uses QR only if XᵀX or XXᵀ is nearly singular or the bound of an output is not active.
func (c *Samples) BoundedBytes(n int) int64 {
	qr := c.qrBytes(n)
	if n < c.d {
		// solvers.Solve stores X, the n×n factor, w, and three vectors of length n.
		return max(qr, 8*(int64(n)*int64(c.d+n)+max(2*int64(n)*int64(c.t), int64(c.d)+3*int64(n))))
	}
	return max(qr, c.momentBytes(n)+8*int64(c.d)*int64(c.d))
}

// Bounded minimizes Σ w_i (y_i − wᵀx_i − b)² subject to ‖w‖² ≤ theta for each output. The solution is the ridge
// regression w(λ) with the λ ≥ 0 at which ‖w(λ)‖² = theta. Bounded computes λ by Newton's method for 1/‖w(λ)‖ −
// 1/√theta = 0, and by bisection if a Newton step leaves the bracket of λ (Moré and Sorensen 1983; Hebden 1973).
// If theta is 0, the bound of each output is its ‖w(1)‖². memory is the field Memory of solvers.Params.
func (c *Samples) Bounded(t *run.Task, theta float64, memory int64) (*BoundedFit, error) {
	s, _, err := newSecular(t, c)
	if err != nil {
		return nil, err
	}
	par := solvers.Params{Memory: memory}
	if s.dual { // BoundedBytes counts the memory of method Dual
		par.Method = solvers.Dual
	}
	m := &BoundedFit{Coef: backend.NewHost[float64](c.d, c.t)}
	for j := range c.t {
		lambda := 1.0
		if j == 0 || theta > 0 {
			free, err := c.free(t, s, j)
			if err != nil {
				return nil, err
			}
			if j == 0 {
				m.Free = free.norm * free.norm
			}
			if theta > 0 {
				var n int
				if lambda, n, err = s.root(j, theta, free); err != nil {
					return nil, err
				}
				m.Steps += n
			}
		}
		// solvers.Solve computes the final solution, because it refines the solution of the linear system.
		hy := c.y.View(0, j, c.y.Rows, 1)
		res, err := (*solvers.Result)(nil), error(backend.ErrNotPosDef)
		if !s.dual || lambda > 0 {
			res, err = solvers.Solve(t.Ctx, t.Dev, solvers.Problem{
				Kernel: kernels.Linear{}, X: c.x, Y: hy, Weights: c.weights, Lambda: lambda, Intercept: c.intercept,
			}, par)
		}
		if errors.Is(err, backend.ErrNotPosDef) && lambda == 0 {
			// The bound is not active, and the least-squares solution is not unique: use minimum norm.
			one := c.output(j)
			var s Solution
			if err = one.qr(t, &s); err == nil {
				res = &solvers.Result{Solution: solvers.Solution{Coef: s.Coef, Intercept: one.intercepts(s.Coef)}}
			}
		}
		if err != nil {
			return nil, err
		}
		for p := range c.d {
			v := res.Coef.Row(p)[0]
			m.Coef.Row(p)[j] = v
			if j == 0 {
				m.Norm += v * v
			}
		}
		m.Lambda, m.Intercept = append(m.Lambda, lambda), append(m.Intercept, res.Intercept[0])
		if err := t.Step("solve", float64(j+1)/float64(c.t)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// secular computes the function ‖w(λ)‖ from the solution v of (M + λI)v = r. If there are at least
// as many rows as features, M = XᵀX, r = Xᵀy and w = v; otherwise M = XXᵀ, r = y and w = Xᵀv.
type secular struct {
	t     *run.Task
	dual  bool
	m     backend.Host[float64] // the lower triangle of M
	r     backend.Host[float64] // the right-hand side r of each output, one in each row
	trace float64               // the trace of M, an upper bound on ‖M‖
	// pivot is the smallest pivot of the factorization at λ = 0, relative to the diagonal element of M.
	pivot float64
}

// newSecular computes M and r. If there are fewer rows than features, x is X, which the caller may overwrite.
func newSecular(t *run.Task, c *Samples) (s *secular, x backend.Host[float64], err error) {
	s = &secular{t: t, dual: c.n < c.d}
	if !s.dual {
		mo, err := c.moments(t)
		if err != nil {
			return nil, x, err
		}
		s.m, s.r = mo.g, mo.c
	} else {
		var y backend.Host[float64]
		x, y = backend.NewHost[float64](c.n, c.d), backend.NewHost[float64](c.n, c.t)
		c.fillX(x, 0)
		c.fillY(y, 0)
		s.m, s.r = backend.NewHost[float64](c.n, c.n), backend.NewHost[float64](c.t, c.n)
		for i := range c.n {
			for j, v := range y.Row(i) {
				s.r.Row(j)[i] = v
			}
		}
		k, err := t.B.New(c.n, c.n)
		if err != nil {
			return nil, x, err
		}
		defer k.Free()
		err = run.Placed(t.B, x, y, func(x, _ backend.Matrix[float64]) error {
			t.B.Syrk(backend.Lower, backend.NoTrans, 1, x, 0, k)
			return t.B.Download(s.m, k)
		})
		if err != nil {
			return nil, x, err
		}
	}
	for i := range s.m.Rows {
		s.trace += s.m.Row(i)[i]
	}
	if s.dual && c.intercept {
		// Centering makes M singular, with the null vector u proportional to (√w_1, …, √w_n). M + cuuᵀ with c > 0
		// gives the same solution v, because y is orthogonal to u.
		for i := range s.m.Rows {
			for j := range i + 1 {
				s.m.Row(i)[j] += s.trace / float64(s.m.Rows) * c.root(i) * c.root(j) / c.weight
			}
		}
	}
	return s, x, nil
}

// unbounded describes the least-squares solution without a bound.
type unbounded struct {
	norm, slope float64 // ‖w(0)‖ and −d‖w(λ)‖/dλ at λ = 0; slope is not set if XᵀX is singular
	singular    bool
}

// root returns the λ ≥ 0 at which ‖w(λ)‖² = theta for output j, and the number of steps.
func (s *secular) root(j int, theta float64, free unbounded) (lambda float64, steps int, err error) {
	radius, size := math.Sqrt(theta), 0.0
	for _, v := range s.r.Row(j) {
		size = math.Hypot(size, v)
	}
	if size == 0 || free.norm <= radius*(1+secularTol/2) {
		return 0, 0, nil
	}
	// The first bracket follows from ‖w(λ)‖ ≤ ‖r‖/λ, or ‖w(λ)‖ ≤ ‖y‖/(2√λ) for M = XXᵀ.
	low, high := 0.0, size/radius
	if s.dual {
		high = size / (2 * radius) * size / (2 * radius)
	}
	if free.singular {
		lambda = min(high, 1e-8*s.trace)
	} else {
		lambda = min(free.norm*(free.norm/radius-1)/free.slope, high)
	}
	for steps = 1; steps <= secularSteps; steps++ {
		if err := s.t.Step("root", 0.9*float64(j)/float64(s.r.Rows)); err != nil {
			return 0, steps, err
		}
		norm, slope, err := s.norm(j, lambda)
		switch {
		case errors.Is(err, backend.ErrNotPosDef):
			low = lambda // λ is too small for a positive definite M + λI
			lambda = max(10*lambda, math.SmallestNonzeroFloat64)
			continue
		case err != nil:
			return 0, steps, err
		case math.Abs(norm-radius) <= secularTol/2*radius:
			return lambda, steps, nil
		case norm > radius:
			low = lambda
		default:
			high = lambda
		}
		next := lambda + norm*(norm/radius-1)/slope
		if !(next > low && next < high) {
			next = low + (high-low)/2
		}
		if next == lambda {
			return lambda, steps, nil
		}
		lambda = next
	}
	return 0, steps, fmt.Errorf("no λ with ‖w‖² = %v was found in %s: λ lies between %v and %v", theta, count.Of(secularSteps, "step"), low, high)
}

func (c *Samples) output(j int) *Samples {
	one := *c
	one.y, one.t, one.meanY = c.y.View(0, j, c.y.Rows, 1), 1, numeric.Center{c.meanY[0][j : j+1], c.meanY[1][j : j+1]}
	return &one
}

// free describes the solution of output j without a bound. If XᵀX is nearly singular, it computes the solution of
// minimum norm by QR, which does not square the condition number of X.
func (c *Samples) free(t *run.Task, s *secular, j int) (unbounded, error) {
	norm, slope, err := s.norm(j, 0)
	if err == nil && s.pivot > math.Sqrt(epsilon) || err != nil && !errors.Is(err, backend.ErrNotPosDef) {
		return unbounded{norm: norm, slope: slope}, err
	}
	var w Solution
	if err := c.output(j).qr(t, &w); err != nil {
		return unbounded{}, err
	}
	norm = 0
	for p := range c.d {
		norm = math.Hypot(norm, w.Coef.Row(p)[0])
	}
	return unbounded{norm: norm, singular: true}, nil
}

// norm returns ‖w(λ)‖ and −d‖w(λ)‖/dλ = wᵀ(XᵀX + λI)⁻¹w / ‖w‖.
func (s *secular) norm(j int, lambda float64) (norm, slope float64, err error) {
	n := s.m.Rows
	a, err := s.t.B.New(n, n)
	if err != nil {
		return 0, 0, err
	}
	defer a.Free()
	v, err := s.t.B.New(n, 2)
	if err != nil {
		return 0, 0, err
	}
	defer v.Free()
	h := backend.NewHost[float64](n, 2)
	for i, r := range s.r.Row(j) {
		h.Row(i)[0] = r
	}
	b := s.t.B
	if err := b.Upload(a, s.m); err != nil {
		return 0, 0, err
	}
	if err := b.Upload(v, h); err != nil {
		return 0, 0, err
	}
	b.AddDiag([]float64{lambda}, a)
	if err := b.Potrf(backend.Lower, a); err != nil {
		return 0, 0, err
	}
	if lambda == 0 {
		pivots, err := numeric.Diagonal(b, a)
		if err != nil {
			return 0, 0, err
		}
		s.pivot = math.Inf(1)
		for i, p := range pivots {
			if diagonal := s.m.Row(i)[i]; diagonal > 0 {
				s.pivot = min(s.pivot, p/diagonal*p)
			}
		}
	}
	one, two := v.View(0, 0, n, 1), v.View(0, 1, n, 1)
	solve := func(m backend.Matrix[float64]) {
		b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, a, m)
		b.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, a, m)
	}
	solve(one)
	b.ColAxpy([]float64{1}, one, two)
	solve(two)
	if err := b.Download(h, v); err != nil {
		return 0, 0, err
	}
	// The columns of h are v and (M + λI)⁻¹v. For M = XXᵀ, ‖w‖² = vᵀMv and wᵀ(XᵀX + λI)⁻¹w = vᵀM(M + λI)⁻¹v.
	mv := make([]float64, n)
	for i := range n {
		mv[i] = h.Row(i)[0]
	}
	if s.dual {
		mv = s.times(mv)
	}
	var squares, product float64
	for i := range n {
		squares += mv[i] * h.Row(i)[0]
		product += mv[i] * h.Row(i)[1]
	}
	norm = math.Sqrt(max(squares, 0))
	if v := norm + product; v-v != 0 {
		return 0, 0, errors.New("values of x or y overflow: scale them down")
	}
	return norm, product / norm, nil
}

func (s *secular) times(v []float64) []float64 {
	product := make([]float64, len(v))
	for i := range product {
		row := s.m.Row(i)
		for k := range i {
			product[i] += row[k] * v[k]
			product[k] += row[k] * v[i]
		}
		product[i] += row[i] * v[i]
	}
	return product
}

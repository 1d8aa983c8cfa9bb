package verified

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/stream"
)

// A Primal specifies the problem of minimizing
//
//	Σ_i w_i (y_i − f(x_i))² + βᵀPβ,  f(x) = φ(x)ᵀβ + b,
//
// over β and, with an intercept, b. An Expansion defines the functions φ_j. P is λI, or the matrix
// λ(k(x_j, x_l)) if Centers is set.
type Primal struct {
	// Pass calls the function use with the features, targets and weights of each block of samples. Nil weights
	// mean that all weights are 1. Bound needs dense samples.
	Pass      func(ctx context.Context, use func(x numeric.Points, y backend.Host[float64], weights []float64) error) error
	Lambda    Ball
	Lambdas   []Ball // if not nil, the λ of each target, instead of Lambda; read by Rounded only
	Centers   bool
	Intercept bool
	Sums      *stream.Sums // sums of the normal equations from which f was computed, or nil; read by Rounded only
}

func (s *Primal) lambda(c int) Ball {
	if s.Lambdas != nil {
		return s.Lambdas[c]
	}
	return s.Lambda
}

// Bound returns the bound for an approximate solution f, in the notation of Primal. Its field Plain is set.
//
// Let r_i = y_i − f(x_i) be the residuals, m = Σ w_i, φ̄ = Σ w_i φ(x_i)/m, g_b = Σ w_i r_i and g = Σ w_i r_i φ(x_i) −
// Pβ. Without an intercept φ̄ = 0 and g_b = 0. By the normal equations, the error e of β and the error of b satisfy
//
//	(Σ w_i (φ(x_i) − φ̄)(φ(x_i) − φ̄)ᵀ + P)e = g − g_b φ̄,  error of b = g_b/m − φ̄ᵀe.
//
// For a lower bound μ > 0 on the eigenvalues of P, it follows that
//
//	‖e‖ ≤ ‖g − g_b φ̄‖/μ,  |error of f(x)| ≤ ‖φ(x)‖‖e‖ + ‖φ̄‖‖e‖ + |g_b|/m.
//
// For P = λI, μ = λ, and otherwise minEigenvalue proves μ. The residuals g and g_b are evaluated with 106 bits.
// Bound computes a correction by solving the equations for e in float64, and applies the bounds to the corrected f.
//
// Bound reads the samples at most four times.
func (s *Primal) Bound(ctx context.Context, f *Expansion) (*ErrorBound, error) {
	m, t := f.Alpha.Rows, f.Alpha.Cols
	floor := lowerBound(s.Lambda)
	if s.Lambda.Hi > 0 && !(floor > 0) {
		return nil, fmt.Errorf("%w: it is %v", ErrLambda, s.Lambda.Hi)
	}
	if !(floor > 0) {
		return nil, fmt.Errorf("no error bound is known for lambda = %v: it needs lambda > 0", s.Lambda.Hi)
	}
	p := &primal{Primal: s, f: f, a: newLower(m)}
	if s.Centers {
		var err error
		if p.penalty, err = f.gram(ctx); err != nil {
			return nil, err
		}
		eigenvalue, err := minEigenvalue(ctx, p.penalty)
		if err != nil {
			return nil, err
		}
		if floor = floor * eigenvalue * (1 - 0x1p-50); !(floor > 0) {
			return nil, ErrDependent
		}
	}
	b := &ErrorBound{Intercept: s.Intercept, Plain: true, Targets: make([]TargetBound, t)}
	residual, err := p.residuals(ctx, b)
	if err != nil {
		return nil, err
	}
	b.Root = p.root
	residual.set(b.Targets, floor)
	p.finish()
	if ok, err := p.a.factor(ctx); err != nil || !ok {
		return b, err // without a correction b is a valid bound, too
	}
	for range corrections {
		z, targets := backend.NewHost[float64](m, t), slices.Clone(b.Targets)
		for c := range t {
			step, shift := make([]float64, m), residual.sums[c].Hi
			for j := range m {
				step[j] = residual.gradient[j][c].Hi
			}
			p.a.solve(step)
			for j, v := range step {
				shift -= p.center[j].Hi * v
				z.Row(j)[c] = v
				if b.Correction.Data != nil {
					z.Row(j)[c] += b.Correction.Row(j)[c]
				}
			}
			if s.Intercept {
				targets[c].Shift += shift
			}
			targets[c].Power = up(math.Sqrt(total(m, func(j int) float64 { return up(z.Row(j)[c] * z.Row(j)[c]) })))
			targets[c].Alpha = 0
		}
		next, err := p.residuals(ctx, &ErrorBound{Correction: z, Targets: targets})
		if err != nil {
			return nil, err
		}
		next.set(targets, floor)
		refine := false
		for c, v := range targets {
			if !(v.Norm < b.Targets[c].Norm/2) {
				continue // the new correction does not halve the bound: keep the previous correction
			}
			refine = refine || v.Norm > v.Power/64
			if b.Correction.Data == nil {
				b.Correction = backend.NewHost[float64](m, t)
			}
			b.Targets[c], residual.sums[c] = v, next.sums[c]
			for j := range m {
				b.Correction.Row(j)[c], residual.gradient[j][c] = z.Row(j)[c], next.gradient[j][c]
			}
		}
		if !refine {
			break
		}
	}
	return b, nil
}

// blockRows returns the number of samples in a block, for which Bound stores the values of m functions.
func blockRows(m int) int { return min(1024, max(64, 1<<18/m)) }

// Bytes returns the memory that Bound needs, in bytes, for n samples, m functions and t targets.
func (s *Primal) Bytes(n, m, t int) int64 {
	rows := min(n, blockRows(m))
	triangle := numeric.Elements(m, (m+1)/2)
	matrices := triangle
	if s.Centers {
		matrices = numeric.Total(numeric.Elements(3*m, m), 3*triangle)
	}
	return numeric.Bytes(numeric.Total(numeric.Elements(rows, 5*m+3*(t+1)), matrices, numeric.Elements(m, 5*(t+1)+7*t)))
}

// ErrLambda is the error for a λ that is positive and below about 2⁻¹⁰⁰⁰.
var ErrLambda = fmt.Errorf("lambda is too small for an error bound")

// ErrSamples is the error if a bound needs a pass over the samples and Primal.Pass is nil.
var ErrSamples = fmt.Errorf("an error bound needs the samples in memory")

// ErrDependent is the error if no bound can be proven for a problem with Centers.
var ErrDependent = fmt.Errorf("the kernel values of the centers are singular up to rounding errors")

type primal struct {
	*Primal
	f       *Expansion
	penalty [][]Ball // k(x_j, x_l), M×M; set only if Centers is set
	mass    Ball     // m = Σ w_i; the first pass sets this field and the fields below
	center  []Ball   // the mean φ̄
	root    float64  // the largest ‖φ(x_i)‖
	a       *lower   // Σ w_i φ(x_i)φ(x_i)ᵀ in float64, and after finish the matrix of the equations
}

// A primalResidual holds, in the notation of Primal.Bound, gradient = g − g_b φ̄ (M×t) and sums = g_b/m.
type primalResidual struct {
	gradient [][]Ball
	sums     []Ball
	center   float64 // a bound on ‖φ̄‖
}

// set computes the bounds of targets from the residual r. The argument floor is μ, a lower bound on the eigenvalues
// of the penalty P.
func (r *primalResidual) set(targets []TargetBound, floor float64) {
	for c := range targets {
		t := &targets[c]
		t.Norm = up(math.Sqrt(total(len(r.gradient), func(j int) float64 {
			v := r.gradient[j][c].Magnitude()
			return up(v * v)
		})) / floor)
		t.Mean = up(r.center*t.Norm + r.sums[c].Magnitude())
		t.Alpha = finite(up(t.Norm + t.Power))
	}
}

// residuals evaluates the residuals of f, corrected by b.Correction, in a pass over the samples.
func (p *primal) residuals(ctx context.Context, b *ErrorBound) (*primalResidual, error) {
	m, t := p.f.Alpha.Rows, p.f.Alpha.Cols
	first := p.center == nil
	gradient, radii := make([][]sum, m), make([][]float64, m)
	for j := range m {
		gradient[j], radii[j] = make([]sum, t+1), make([]float64, t+1)
	}
	sums, mass := make([]Ball, t), sum{}
	expansion := p.f.withTargets(nil, b.Correction)
	err := p.Pass(ctx, func(points numeric.Points, y backend.Host[float64], weights []float64) error {
		x := points.Dense
		maxRows := blockRows(m)
		for from := 0; from < x.Rows; from += maxRows {
			rows := min(maxRows, x.Rows-from)
			phi := make([]Ball, rows*m)
			weighted := make([]Ball, rows*(t+1)) // the t numbers w_i r_i and the weight w_i of each sample
			norms := newRowSizes(rows, true)
			store := func(i, j int, v Ball) {
				phi[i*m+j] = v
				if first {
					norms.add(i, v)
				}
			}
			err := expansion.Eval(ctx, x.View(from, 0, rows, x.Cols), store, func(i int, values []Ball, _ Ball) {
				w := 1.0
				if weights != nil {
					w = weights[from+i]
				}
				for c := range t {
					v := values[c]
					if b.Correction.Data != nil {
						v = Add(v, Add(values[t+c], Exact(b.Targets[c].Shift)))
					}
					weighted[i*(t+1)+c] = Mul(Exact(w), Sub(Exact(y.Row(from + i)[c]), v))
				}
				weighted[i*(t+1)+t] = Exact(w)
			})
			if err != nil {
				return err
			}
			for i := range rows {
				w := weighted[i*(t+1)+t].Hi
				for c := range t {
					sums[c] = Add(sums[c], weighted[i*(t+1)+c])
				}
				mass.add(w, 0)
				if first && w > 0 {
					p.root = max(p.root, norms.norm(i))
				}
			}
			forEach(m, func(j int) {
				for i := range rows {
					for c := range t + 1 {
						if c == t && !first {
							break
						}
						v := Mul(weighted[i*(t+1)+c], phi[i*m+j])
						gradient[j][c].add(v.Hi, v.Lo)
						radii[j][c] += v.Radius
					}
				}
			})
			if first {
				p.a.add(phi, func(i int) float64 { return weighted[i*(t+1)+t].Hi }, rows)
			}
			if err := context.Cause(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	gradientAt := func(j, c int) Ball {
		s := &gradient[j][c]
		return s.ball().plus(radii[j][c] * (1 + float64(s.n)*0x1p-50))
	}
	if first {
		p.mass, p.center = mass.ball(), make([]Ball, m)
		for j := range m {
			if p.Intercept {
				p.center[j] = Div(gradientAt(j, t), p.mass)
			}
		}
	}
	r := &primalResidual{gradient: make([][]Ball, m), sums: make([]Ball, t)}
	r.center = up(math.Sqrt(total(m, func(j int) float64 {
		v := p.center[j].Magnitude()
		return up(v * v)
	})))
	for c := range t {
		if p.Intercept {
			r.sums[c] = Div(sums[c], p.mass)
		} else {
			sums[c] = Ball{}
		}
	}
	beta := func(j, c int) Ball {
		v := Exact(p.f.Alpha.Row(j)[c])
		if b.Correction.Data != nil {
			v = Add(v, Exact(b.Correction.Row(j)[c]))
		}
		return v
	}
	forEach(m, func(j int) {
		r.gradient[j] = make([]Ball, t)
		for c := range t {
			penalty := beta(j, c)
			if p.penalty != nil {
				penalty = Ball{}
				for l := range m {
					penalty = Add(penalty, Mul(p.penalty[j][l], beta(l, c)))
				}
			}
			r.gradient[j][c] = Sub(Sub(gradientAt(j, c), Mul(p.center[j], sums[c])), Mul(p.Lambda, penalty))
		}
	})
	return r, nil
}

// finish changes a from the sum over the samples to the matrix of the equations, in float64.
func (p *primal) finish() {
	forEach(len(p.center), func(j int) {
		row := p.a.rows[j]
		for l := range row {
			row[l] -= p.mass.Hi * p.center[j].Hi * p.center[l].Hi
			if p.penalty != nil {
				row[l] += p.Lambda.Hi * p.penalty[j][l].Hi
			}
		}
		if p.penalty == nil {
			row[j] += p.Lambda.Hi
		}
	})
}

func (f *Expansion) gram(ctx context.Context) ([][]Ball, error) {
	list := make([][]Ball, f.Points.Rows)
	for j := range list {
		list[j] = make([]Ball, f.Points.Rows)
	}
	err := f.Eval(ctx, f.Points, func(i, j int, k Ball) { list[i][j] = k }, func(int, []Ball, Ball) {})
	return list, err
}

// FactorSlack returns an upper bound on γ_(n+3)·trace. If the Cholesky factorization of a symmetric n×n matrix A
// in float64 succeeds, all eigenvalues of A are at least −FactorSlack(n, tr A) (Rump 2006, Verification of
// positive definiteness, BIT 46, lemma 2.1, which needs γ_(n+1)). The bound allows for two more rounding errors in
// each diagonal element of A.
func FactorSlack(n int, trace float64) float64 {
	return up(1.01 * unit * float64(n+3) * trace * (1 + float64(n)*0x1p-50))
}

// minEigenvalue returns a lower bound on the eigenvalues of the symmetric matrix k, or 0 if it proves no positive
// bound. If the Cholesky factorization of k − θI in float64 succeeds, the eigenvalues are at least θ − FactorSlack
// minus a bound on the norm of the errors of k. The function searches for the largest θ = tr k·4⁻ʲ for which the
// factorization succeeds.
func minEigenvalue(ctx context.Context, k [][]Ball) (float64, error) {
	n, trace, maxError := len(k), 0.0, 0.0
	values := newLower(n)
	for i, row := range values.rows {
		for j := range row {
			v, e := k[i][j].Rounded()
			row[j] = v
			maxError = max(maxError, e)
		}
		trace += math.Abs(row[i])
	}
	slack := up(FactorSlack(n, trace) + float64(n)*maxError)
	var err error
	best := 0.0
	sort.Search(26, func(j int) bool { // a smaller θ proves nothing, because 4⁻²⁶·trace is below slack
		theta := math.Ldexp(trace, -2*j)
		if err != nil || !(theta > 2*slack) {
			return true
		}
		a, ok := newLower(n), false
		for i, row := range values.rows {
			copy(a.rows[i], row)
			a.rows[i][i] -= theta
		}
		if ok, err = a.factor(ctx); ok {
			best = max(best, (theta-slack)*(1-0x1p-50))
		}
		return ok
	})
	return best, err
}

// A lower holds the lower triangle of a symmetric matrix, and after a call of factor its Cholesky factor.
type lower struct{ rows [][]float64 }

func newLower(n int) *lower {
	a := &lower{make([][]float64, n)}
	for i := range a.rows {
		a.rows[i] = make([]float64, i+1)
	}
	return a
}

// add adds Σ w_i φ_i φ_iᵀ, where w_i is weight(i) and φ_i holds the centers of the balls in row i of phi.
func (a *lower) add(phi []Ball, weight func(i int) float64, rows int) {
	m := len(a.rows)
	centers, weighted := make([]float64, rows*m), make([]float64, rows*m)
	for i := range rows {
		for j := range m {
			v := phi[i*m+j].Hi
			centers[j*rows+i], weighted[j*rows+i] = v, weight(i)*v
		}
	}
	forEach(m, func(k int) {
		i := k / 2 // alternate between short and long rows: ranges of k of equal length then take similar times
		if k%2 == 1 {
			i = m - 1 - k/2
		}
		for j := range a.rows[i] {
			a.rows[i][j] += dot(weighted[i*rows:(i+1)*rows], centers[j*rows:(j+1)*rows])
		}
	})
}

// factor overwrites a with its Cholesky factor. The result ok is false if a is not positive definite to working
// precision. The error is nil unless ctx is canceled.
func (a *lower) factor(ctx context.Context) (ok bool, err error) {
	for j, pivot := range a.rows {
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		d := pivot[j] - dot(pivot[:j], pivot[:j])
		if !(d > 0 && d <= math.MaxFloat64) {
			return false, nil
		}
		pivot[j] = math.Sqrt(d)
		forEach(len(a.rows)-j-1, func(i int) {
			row := a.rows[j+1+i]
			row[j] = (row[j] - dot(row[:j], pivot[:j])) / pivot[j]
		})
	}
	return true, nil
}

// solve overwrites v with A⁻¹v, where a holds the Cholesky factor of A.
func (a *lower) solve(v []float64) {
	for i, row := range a.rows {
		v[i] = (v[i] - dot(row[:i], v[:i])) / row[i]
	}
	for i := len(v) - 1; i >= 0; i-- {
		v[i] /= a.rows[i][i]
		for j, l := range a.rows[i][:i] {
			v[j] -= l * v[i]
		}
	}
}

// forEach calls do with 0, …, n−1 concurrently.
func forEach(n int, do func(i int)) {
	run.Parallel(n, func(first, last int) {
		for i := first; i < last; i++ {
			do(i)
		}
	})
}

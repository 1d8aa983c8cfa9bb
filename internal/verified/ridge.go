package verified

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/markov"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// An Expansion is f(x) = Σ_j α_j φ_j(x) + b, with an α and a b for each target.
type Expansion struct {
	Kernel    kernels.Kernel
	Points    backend.Host[float64] // n×d, the x_j
	Alpha     backend.Host[float64] // α, n×t
	Intercept []float64             // one b for each of t targets
	// Features is nil if φ_j(x) = k(x_j, x). Otherwise Features returns a function that computes φ_j(x), and Kernel
	// and Points are not used. Only one goroutine may call this function. For each x it must pass j = 0, 1, … in order.
	Features func() func(j int, x []float64) Ball
}

// features returns two functions: phi(j, x) is φ_j(x), and diag(x) is k(x, x), or 0 if f.Features is set.
func (f *Expansion) features() (phi func(j int, x []float64) Ball, diag func(x []float64) Ball) {
	if f.Features != nil {
		return f.Features(), func([]float64) Ball { return Ball{} }
	}
	k := NewKernel(f.Kernel)
	return func(j int, x []float64) Ball { return k.Eval(f.Points.Row(j), x) }, func(x []float64) Ball { return k.Eval(x, x) }
}

// Eval calls visit once for each row of x, with values = f(x) for each target and diag = k(x, x). Calls for
// different rows are concurrent, and the memory of values is reused after a call. If store is not nil, Eval first
// calls store with each φ_j(x) of the row. Once ctx is done, Eval returns context.Cause(ctx).
func (f *Expansion) Eval(ctx context.Context, x backend.Host[float64], store func(row, j int, k Ball), visit func(row int, values []Ball, diag Ball)) error {
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), x.Rows) {
		group.Add(1)
		go func() {
			defer group.Done()
			phi, diag := f.features()
			values, sums, radii := make([]Ball, f.Alpha.Cols), make([]sum, f.Alpha.Cols), make([]float64, f.Alpha.Cols)
			for ctx.Err() == nil {
				i := int(next.Add(1) - 1)
				if i >= x.Rows {
					return
				}
				row := x.Row(i)
				clear(sums)
				clear(radii)
				for j := range f.Alpha.Rows {
					v := phi(j, row)
					if store != nil {
						store(i, j, v)
					}
					for c, a := range f.Alpha.Row(j) {
						sums[c].product(v.Hi, a, v.Lo*a)
						radii[c] += v.Radius * math.Abs(a)
					}
				}
				for c := range values {
					values[c] = Add(sums[c].ball().plus(radii[c]*(1+float64(f.Alpha.Rows)*0x1p-50)), Exact(f.Intercept[c]))
				}
				visit(i, values, diag(row))
			}
		}()
	}
	group.Wait()
	return context.Cause(ctx)
}

// An ErrorBound bounds the distance between an Expansion and the exact solution of
//
//	(K + D)α + b·1 = y,  1ᵀα = 0,  D = λW⁻¹, λ > 0,
//
// or of (K + D)α = y without an intercept. System.Solve computes a correction z, ζ of α and b, an approximate
// solution of the equations for their errors; without Solve it is 0. Let r and ρ be the residuals of both
// equations for α + z and b + ζ, N = ‖D^−½r‖ and A = K + D. Let k_x be the vector of the k(x_j, x), and φ(x) a
// feature vector with k(x, z) = φ(x)ᵀφ(z). For a positive semidefinite kernel:
//
//   - Without an intercept the error of α + z is A⁻¹r, with ‖D^½A⁻¹r‖ ≤ N and |k_xᵀA⁻¹r| ≤ √k(x, x)·N/2, because
//     s/(s+1)² ≤ 1/4 for each eigenvalue s of D^−½KD^−½.
//   - With an intercept r changes f(x) by vᵀr, where v with 1ᵀv = 1 minimizes ‖φ(x) − Σ_j v_jφ(x_j)‖² + vᵀDv. Let
//     w = W1/1ᵀW1 and φ̄ = Σ_j w_jφ(x_j). The vector v − w solves the problem without an intercept for the feature
//     vectors minus φ̄. Therefore |vᵀr| ≤ |wᵀr| + ‖φ(x) − φ̄‖·N/2.
//   - The residual ρ changes α by A⁻¹1·ρ/q and b by −ρ/q, where q = 1ᵀA⁻¹1 and 1/q ≤ κ² = 1ᵀA1/n². This adds at
//     most κ|ρ|(√k(x, x) + κ) to the error of f(x) and κ|ρ| to the error of D^½α.
//
// For another symmetric kernel, let μ = Floor > 0 be a lower bound on the eigenvalues of A. Without an intercept the
// error e of α + z has ‖e‖ ≤ ‖r‖/μ. With an intercept e is the sum of (ρ/n)1 and a vector orthogonal to 1, so that
//
//	‖e‖ ≤ (‖r‖ + |ρ|‖A1‖/n)/μ + |ρ|/√n,  |error of b| ≤ (√n‖r‖ + ‖A1‖‖e‖)/n.
//
// The error of f(x) is at most ‖k_x‖‖e‖ plus the error of b. For such a kernel Norm is the bound on ‖e‖, Mean is
// the bound on the error of b, Power is ‖z‖, and Root is the largest ‖k_x‖ over the points x_j.
type ErrorBound struct {
	Weights    []float64 // the field Weights of System
	Intercept  bool
	Correction backend.Host[float64] // z, n×t; empty if the correction is 0
	Targets    []TargetBound
	Kappa      float64 // κ of the bounds above
	Square     float64 // ‖φ̄‖² of the bounds above
	Root       float64 // the largest √k(x_j, x_j)
	Plain      bool    // whether the bound has the form for kernels that may be indefinite, or for Primal.Bound
	Rounded    bool    // whether the bound includes the rounding errors of a device; System.Rounded and ForDevice set it
}

// A TargetBound is the part of an ErrorBound for one target.
type TargetBound struct {
	Alpha float64 // a bound on the 2-norm of the error of α
	Shift float64 // ζ, the correction of b
	Power float64 // √(zᵀKz) for the correction z of α
	Norm  float64 // N of ErrorBound
	Mean  float64 // |wᵀr| of ErrorBound
	Rho   float64 // κ|ρ| of ErrorBound
	Size  float64 // Σ_j √k(x_j, x_j)(|α_j| + |z_j|); set if ErrorBound.Rounded is set
}

// A System is the system of equations of ErrorBound, with the kernel matrix K and the diagonal matrix W of weights.
type System struct {
	Y         backend.Host[float64] // n×t targets
	Weights   []float64             // n numbers > 0; nil if all weights are 1
	Lambda    float64
	Lambdas   []float64 // if not nil, the λ of each target, instead of Lambda; read by Rounded only
	Intercept bool
	// Roundings is the number of rounding errors per sample in a residual, a sum over the samples; 0 means 1. Only
	// Rounded reads it.
	Roundings int
	// Solve overwrites r, which has n rows, with an approximation of (K + λW⁻¹)⁻¹r. The bounds hold for any
	// approximation. If Solve is nil, no correction is computed.
	Solve func(r backend.Host[float64]) error
	// Floor is 0 for a positive semidefinite kernel. For another symmetric kernel, it is a lower bound
	// on the eigenvalues of K + λW⁻¹. Only Bound reads it.
	Floor float64
}

func (b *ErrorBound) weight(i int) float64 {
	if b.Weights == nil {
		return 1
	}
	return b.Weights[i]
}

func (b *ErrorBound) mass(n int) Ball {
	var s sum
	for i := range n {
		s.add(b.weight(i), 0)
	}
	return s.ball()
}

// center returns the vector w = W1/1ᵀW1 of ErrorBound, rounded to float64, or nil if the bound does not use w.
func (b *ErrorBound) center(n int) []float64 {
	if !b.Intercept || b.Plain {
		return nil
	}
	w, mass := make([]float64, n), b.mass(n).Hi
	for i := range w {
		w[i] = b.weight(i) / mass
	}
	return w
}

// Bound returns the bound for f. If Solve is set, Bound stores n² numbers during the call. If no finite bound can
// be proven, the bounds are +Inf.
func (s *System) Bound(ctx context.Context, f *Expansion) (*ErrorBound, error) {
	n, t := f.Points.Rows, f.Alpha.Cols
	if !(s.Lambda > 0) {
		return nil, fmt.Errorf("no error bound is known for lambda = %v: it needs lambda > 0", s.Lambda)
	}
	b := &ErrorBound{Weights: s.Weights, Intercept: s.Intercept, Plain: s.Floor > 0, Targets: make([]TargetBound, t)}
	center := b.center(n)
	r := residuals{equations: make([][]Ball, n), sums: make([]Ball, t), diagonal: make([]Ball, n)}
	var gram backend.Host[float64]
	var store func(i, j int, k Ball)
	rows := newRowSizes(n, b.Plain)
	gramErrors := make([]float64, n) // the largest error of an element of gram, for each row
	if s.Solve != nil {
		gram = backend.NewHost[float64](n, n)
		store = func(i, j int, k Ball) {
			value, bound := k.Rounded()
			gram.Row(i)[j] = value
			gramErrors[i] = max(gramErrors[i], bound)
			rows.add(i, k)
		}
	} else if b.Plain {
		store = func(i, _ int, k Ball) { rows.add(i, k) }
	}
	roots, means := make([]float64, n), make([]float64, n)
	err := f.withTargets(center).Eval(ctx, f.Points, store, func(i int, values []Ball, diag Ball) {
		r.diagonal[i] = Div(Exact(s.Lambda), Exact(b.weight(i)))
		r.equations[i] = make([]Ball, t)
		for c := range t {
			r.equations[i][c] = Sub(Exact(s.Y.Row(i)[c]), Add(values[c], Mul(r.diagonal[i], Exact(f.Alpha.Row(i)[c]))))
		}
		roots[i] = Sqrt(diag).Magnitude()
		if b.Plain {
			roots[i] = rows.norm(i)
		} else if s.Intercept {
			means[i] = up(center[i] * values[t].Magnitude())
		}
	})
	if err != nil {
		return nil, err
	}
	for i := range n {
		b.Root = max(b.Root, roots[i])
	}
	if s.Intercept {
		for c := range t {
			var total sum
			for i := range n {
				total.add(f.Alpha.Row(i)[c], 0)
			}
			r.sums[c] = total.ball().neg()
		}
	}
	if s.Intercept && !b.Plain {
		b.Kappa = s.kappa(roots, func(i int) float64 { return r.diagonal[i].Magnitude() })
		b.Square = total(n, func(i int) float64 { return means[i] })
	}
	if s.Solve != nil {
		if err := b.correct(s, &r, gram, slices.Max(gramErrors)); err != nil {
			return nil, err
		}
	}
	for c := range b.Targets {
		target := &b.Targets[c]
		size := 0.0
		if b.Correction.Data != nil {
			size = up(math.Sqrt(total(n, func(i int) float64 { return up(b.Correction.Row(i)[c] * b.Correction.Row(i)[c]) })))
		}
		if b.Plain {
			// onesNorm bounds ‖A1‖ from above by the row sums of |A|.
			onesNorm := up(math.Sqrt(total(n, func(i int) float64 {
				v := up(rows.sums[i] + r.diagonal[i].Magnitude())
				return up(v * v)
			})))
			s.setIndefinite(target, n, up(r.norm(c)*(1+float64(n)*0x1p-50)), r.sums[c].Magnitude(), onesNorm)
			target.Power, target.Alpha = size, finite(up(target.Norm+size))
			continue
		}
		target.Norm = up(math.Sqrt(total(n, func(i int) float64 {
			v := r.equations[i][c].Magnitude()
			return up(v * v / s.Lambda * b.weight(i))
		})))
		if s.Intercept {
			var mean Ball
			for i := range n {
				mean = Add(mean, Mul(Exact(b.weight(i)), r.equations[i][c]))
			}
			target.Rho = up(b.Kappa * r.sums[c].Magnitude())
			target.Mean = Div(mean, b.mass(n)).Magnitude()
		}
		target.Alpha = finite(up(up(target.Norm+target.Rho)/s.minRoot(n, s.Lambda) + size))
	}
	return b, nil
}

// setIndefinite sets the bounds of target for a kernel that is not known to be positive
// semidefinite, given ‖r‖ ≤ r, |ρ| ≤ rho and ‖A1‖ ≤ onesNorm.
func (s *System) setIndefinite(target *TargetBound, n int, r, rho, onesNorm float64) {
	target.Norm = up(r / s.Floor)
	if s.Intercept {
		m := float64(n)
		target.Norm = up(up((r+rho*onesNorm/m)/s.Floor) + rho/math.Sqrt(m))
		target.Mean = up((math.Sqrt(m)*r + onesNorm*target.Norm) / m)
	}
}

// rowSizes holds Σ_j|k(x_j, x)| and Σ_j k(x_j, x)² for each row x. Both slices are nil if no bound needs these sums.
type rowSizes struct{ sums, squares []float64 }

func newRowSizes(rows int, needed bool) rowSizes {
	if !needed {
		return rowSizes{}
	}
	return rowSizes{make([]float64, rows), make([]float64, rows)}
}

func (s rowSizes) add(i int, k Ball) {
	if s.sums != nil {
		v := k.Magnitude()
		s.sums[i] = (s.sums[i] + v) * (1 + 0x1p-50)
		s.squares[i] = (s.squares[i] + v*v) * (1 + 0x1p-50)
	}
}

// norm returns an upper bound on √Σ_j k(x_j, x)² for row i.
func (s rowSizes) norm(i int) float64 { return up(math.Sqrt(s.squares[i])) }

// minRoot returns a lower bound on √(λ/w_i) for λ = lambda and all weights w_i.
func (s *System) minRoot(n int, lambda float64) float64 {
	root := math.Inf(1)
	for i := range n {
		w := 1.0
		if s.Weights != nil {
			w = s.Weights[i]
		}
		root = min(root, math.Sqrt(lambda/w)*(1-0x1p-50))
	}
	return root
}

// kappa returns a bound on the κ of ErrorBound, by 1ᵀK1 ≤ (Σ_i √k(x_i,x_i))². roots[i] is a bound on √k(x_i,x_i).
func (s *System) kappa(roots []float64, diagonal func(i int) float64) float64 {
	n := len(roots)
	k1 := total(n, func(i int) float64 { return roots[i] })
	return up(math.Sqrt(up(k1*k1+total(n, diagonal))) / float64(n))
}

// Rounded returns the bound for a solution α̂, b̂. A device has computed the residuals y − (K + D)α̂ − b̂·1 in
// float64 from kernel values whose errors r bounds. Rounded takes O(nt) operations.
//
// Let S = Σ_j √k(x_j,x_j)|α̂_j|. The error of the computed Σ_j k(x_i,x_j)α̂_j is at most
//
//	(ε + γ_m) √k(x_i,x_i) S,
//
// where m is n times s.Roundings plus a small number for the other terms (Higham 2002, equation 3.5). The errors
// of the other terms are at most 16u(3 max|y| + 2|b̂| + D_ii|α̂_i|).
func (s *System) Rounded(alpha backend.Host[float64], intercept []float64, residuals backend.Host[float64], r *Roundoff) *ErrorBound {
	n, t := alpha.Rows, alpha.Cols
	b := &ErrorBound{Weights: s.Weights, Intercept: s.Intercept, Targets: make([]TargetBound, t), Rounded: true}
	lambda := func(c int) float64 {
		if s.Lambdas != nil {
			return s.Lambdas[c]
		}
		return s.Lambda
	}
	largestLambda := 0.0
	for c := range t {
		largestLambda = max(largestLambda, lambda(c))
	}
	for _, root := range r.roots {
		b.Root = max(b.Root, root)
	}
	mass := b.mass(n)
	minMass := (mass.Hi - mass.Radius) * (1 - 0x1p-50)
	if s.Intercept {
		b.Kappa = s.kappa(r.roots, func(i int) float64 { return up(largestLambda / b.weight(i)) })
		mean := up(total(n, func(i int) float64 { return up(b.weight(i) * r.roots[i]) }) / minMass)
		b.Square = up(mean * mean) // ‖φ̄‖ = ‖Φw‖ ≤ Σ w_i ‖φ(x_i)‖
	}
	relative := up(r.relative(1) + gamma(max(s.Roundings, 1)*n+33))
	for c := range b.Targets {
		target := &b.Targets[c]
		absAlpha := func(i int) float64 { return math.Abs(alpha.Row(i)[c]) }
		sum := total(n, absAlpha)
		target.Size = total(n, func(i int) float64 { return up(r.roots[i] * absAlpha(i)) })
		largest := 0.0
		for i := range n {
			largest = max(largest, math.Abs(s.Y.Row(i)[c]))
		}
		largest = 3*largest + 2*math.Abs(intercept[c])
		rowError := func(i int) float64 {
			return up(relative*r.roots[i]*target.Size + 16*unit*(largest+lambda(c)/b.weight(i)*absAlpha(i)))
		}
		maxResidual := func(i int) float64 { return up(math.Abs(residuals.Row(i)[c]) + rowError(i)) }
		target.Norm = up(math.Sqrt(total(n, func(i int) float64 {
			v := maxResidual(i)
			return up(v * v / lambda(c) * b.weight(i))
		})))
		if s.Intercept {
			signed, weighted := 0.0, 0.0
			for i := range n {
				signed += alpha.Row(i)[c]
				weighted += b.weight(i) * residuals.Row(i)[c]
			}
			target.Rho = up(b.Kappa * up(math.Abs(signed)+gamma(n)*sum))
			slack := total(n, func(i int) float64 {
				return up(b.weight(i) * (rowError(i) + gamma(n+1)*math.Abs(residuals.Row(i)[c])))
			})
			target.Mean = up(up(math.Abs(weighted)+slack) / minMass)
		}
		target.Alpha = finite(up(up(target.Norm+target.Rho) / s.minRoot(n, lambda(c))))
	}
	return b
}

// ForDevice changes b, a result of System.Bound, to a bound for predictions that a device computes in float64,
// where r bounds the errors of the kernel values. If the correction changes f(x) by at most an eighth of the
// rounding errors of a prediction, ForDevice removes it, so that predictions take less time.
func (b *ErrorBound) ForDevice(f *Expansion, r *Roundoff) {
	b.Rounded = true
	n, keepCorrection := len(r.roots), false
	for c := range b.Targets {
		t := &b.Targets[c]
		t.Size = total(n, func(i int) float64 { return up(r.roots[i] * math.Abs(f.Alpha.Row(i)[c])) })
		keepCorrection = keepCorrection || !(b.Root*t.Power+math.Abs(t.Shift) <= (r.relative(1)+gamma(n/8+9))*b.Root*t.Size/8)
	}
	if !keepCorrection {
		b.Correction = backend.Host[float64]{}
		return
	}
	for c := range b.Targets {
		if b.Correction.Data != nil {
			b.Targets[c].Size = up(b.Targets[c].Size + total(n, func(i int) float64 { return up(r.roots[i] * math.Abs(b.Correction.Row(i)[c])) }))
		}
	}
}

// Round returns the predictions of f for the rows of x, and bounds on their distances from the exact solution. The
// matrix sums has the predictions that a device computed, in a row for each row of x. If b.Correction is set, the
// values Σ_j k(x, x_j)z_j + ζ of the correction follow in the row. Without a correction the returned predictions
// share the memory of sums. The argument roundings is the maximum number of roundings of a term of a sum; 0 means
// the number of terms of f.
func (b *ErrorBound) Round(f *Expansion, r *Roundoff, x numeric.Points, sums backend.Host[float64], roundings int) (values, bounds backend.Host[float64]) {
	t, corrected := len(b.Targets), b.Correction.Data != nil
	values, bounds = sums, backend.NewHost[float64](sums.Rows, t)
	if corrected {
		values = backend.NewHost[float64](sums.Rows, t)
	}
	n := len(r.roots)
	if roundings == 0 || roundings > n { // in a sum of n products each product is rounded at most n times, in every order
		roundings = n
	}
	roundings++ // one more rounding, for adding Shift to the sum of the correction
	if _, ok := markov.Of(r.kernel); ok && x.Cols == 1 && markov.Faster(n, math.MaxInt) {
		roundings = max(roundings, (n+9)*markov.Roundings) // package markov may have computed the sums, with more roundings
	}
	nearError, sum, square := r.relative(1), gamma(roundings), up(math.Sqrt(b.Square))
	// fix sets dst to the terms of the bounds that depend only on the ε of Roundoff and on √k(x, x).
	fix := func(dst []float64, relative, root float64) {
		distance := root
		if b.Intercept {
			distance = up(root + square)
		}
		for c := range b.Targets {
			t := &b.Targets[c]
			size, effect := math.Abs(f.Intercept[c]), 0.0
			if corrected {
				size += math.Abs(t.Shift)
			} else {
				effect = up(root*t.Power + math.Abs(t.Shift))
			}
			dst[c] = effect + b.remainingError(c, root, distance) + ((relative+sum*(1+relative))*root*t.Size + sum*size)
		}
	}
	run.Parallel(sums.Rows, func(first, last int) {
		value, fixed, block := x.Values(r.kernel), make([]float64, t), make([]float64, 256)
		root, relative := math.NaN(), math.NaN() // √k(x, x) and ε of the preceding row
		for ; first < last; first += len(block) {
			block = block[:min(len(block), last-first)]
			r.setRatios(block, &x, first)
			for k, ratio := range block {
				i := first + k
				newRoot, newRelative := root, nearError
				if !r.constant || root != root {
					newRoot = r.root(value(i, i), x, i)
				}
				if ratio > 1 {
					newRelative = r.relative(ratio)
				}
				if newRoot != root || newRelative != relative {
					root, relative = newRoot, newRelative
					fix(fixed, relative, root)
				}
				row, to := sums.Row(i), bounds.Row(i)
				for c, bound := range fixed {
					v := row[c]
					if corrected {
						bound += math.Abs(row[t+c])
						values.Data[i*t+c] = v
					}
					to[c] = up(bound + 2*unit*math.Abs(v)) // up returns +Inf for NaN
				}
			}
		}
	})
	return values, bounds
}

func dot(x, y []float64) float64 {
	if n := len(x); n > 32 {
		return dot(x[:n/2], y[:n/2]) + dot(x[n/2:], y[n/2:])
	}
	y = y[:len(x)]
	var s [4]float64
	for ; len(x) >= 4; x, y = x[4:], y[4:] {
		s[0] += x[0] * y[0]
		s[1] += x[1] * y[1]
		s[2] += x[2] * y[2]
		s[3] += x[3] * y[3]
	}
	for i, v := range x {
		s[i] += v * y[i]
	}
	return (s[0] + s[1]) + (s[2] + s[3])
}

// residuals holds the residuals of the n equations and of the constraint 1ᵀα = 0, for t targets.
type residuals struct {
	equations [][]Ball
	sums      []Ball
	diagonal  []Ball // the diagonal of D
}

// corrections is the maximum number of steps of iterative refinement for the correction.
const corrections = 3

// correct computes b.Correction, and replaces r by the residuals of the corrected solution. Each
// element of gram differs from the exact kernel value by at most gramError.
func (b *ErrorBound) correct(s *System, r *residuals, gram backend.Host[float64], gramError float64) error {
	n, t := gram.Rows, len(b.Targets)
	first, current := *r, *r
	sizes := slices.Repeat([]float64{math.Inf(1)}, t)
	for range corrections {
		rhs := backend.NewHost[float64](n, t+1)
		for i := range n {
			for c, v := range current.equations[i] {
				rhs.Row(i)[c] = v.Hi
			}
			rhs.Row(i)[t] = 1
		}
		if err := s.Solve(rhs); err != nil {
			return err
		}
		ones := 0.0
		for i := range n {
			ones += rhs.Row(i)[t]
		}
		z, targets := backend.NewHost[float64](n, t), slices.Clone(b.Targets)
		for c := range t {
			step := 0.0
			if s.Intercept {
				for i := range n {
					step += rhs.Row(i)[c]
				}
				step = (step - current.sums[c].Hi) / ones
				targets[c].Shift += step
			}
			for i := range n {
				z.Row(i)[c] = rhs.Row(i)[c] - step*rhs.Row(i)[t]
				if b.Correction.Data != nil {
					z.Row(i)[c] += b.Correction.Row(i)[c]
				}
			}
		}
		current = first.minus(z, targets, s.Intercept, gram, gramError)
		improved := false
		for c := range t {
			size := current.norm(c)
			improved = improved || size < sizes[c]/2
			sizes[c] = min(sizes[c], size)
		}
		if !improved {
			break
		}
		*r, b.Correction, b.Targets = current, z, targets
	}
	return nil
}

func (r *residuals) norm(c int) float64 {
	return math.Sqrt(total(len(r.equations), func(i int) float64 {
		v := r.equations[i][c].Magnitude()
		return v * v
	}))
}

// minus returns the residuals after the corrections of α by z and of b by targets[c].Shift. It sets targets[c].Power.
func (r *residuals) minus(z backend.Host[float64], targets []TargetBound, intercept bool, gram backend.Host[float64], gramError float64) residuals {
	n := z.Rows
	updated := residuals{make([][]Ball, n), slices.Clone(r.sums), r.diagonal}
	for i := range n {
		updated.equations[i] = slices.Clone(r.equations[i])
	}
	for c := range targets {
		var zSum sum
		for i := range n {
			zSum.add(z.Row(i)[c], 0)
		}
		if intercept {
			updated.sums[c] = Sub(r.sums[c], zSum.ball())
		}
		largest := up(zSum.size * (1 + float64(n)*0x1p-50))
		quadratic := make([]float64, n)
		for i, row := range updated.equations {
			// By Higham 2002, equation 3.5, the sum of the terms p has an error of at most γ_n Σ|p|.
			k, size := 0.0, 0.0
			for j, v := range gram.Row(i) {
				p := v * z.Row(j)[c]
				k += p
				size += math.Abs(p)
			}
			product := Ball{Hi: k, Radius: up(float64(n+2)*0x1p-52*size + gramError*largest + float64(n)*underflow)}
			row[c] = Sub(row[c], Add(product, Add(Mul(r.diagonal[i], Exact(z.Row(i)[c])), Exact(targets[c].Shift))))
			quadratic[i] = up(math.Abs(z.Row(i)[c]) * product.Magnitude())
		}
		// Bound zᵀKz by Σ|z_i||(Kz)_i|.
		targets[c].Power = up(math.Sqrt(total(n, func(i int) float64 { return quadratic[i] })))
	}
	return updated
}

// Uniform returns a bound on the error of f(x) for target c and all x with k(x, x) ≤ square, or with
// Σ_j φ_j(x)² ≤ square if b.Plain is set.
func (b *ErrorBound) Uniform(c int, square float64) float64 {
	root := up(math.Sqrt(square))
	distance := root
	if b.Intercept && !b.Plain {
		distance = up(root + math.Sqrt(b.Square))
	}
	return finite(up(up(root*b.Targets[c].Power+math.Abs(b.Targets[c].Shift)) + b.remainingError(c, root, distance)))
}

// Rounding bounds the rounding errors of a float64 prediction by a device for target c, at each point x that is no
// farther from r.origin than the farthest x_j. If b.Rounded is not set, it returns 0.
func (b *ErrorBound) Rounding(c int, r *Roundoff) float64 {
	if !b.Rounded {
		return 0
	}
	return up((r.relative(1) + gamma(len(r.roots)+9)) * b.Root * b.Targets[c].Size)
}

// remainingError returns a bound on the error of f(x) that remains after the correction, for target
// c and every x with √k(x,x) ≤ root and ‖φ(x) − φ̄‖ ≤ distance.
func (b *ErrorBound) remainingError(c int, root, distance float64) float64 {
	t := &b.Targets[c]
	if b.Plain {
		return up(t.Norm*root + t.Mean)
	}
	return up(t.Norm/2*distance + t.Mean + t.Rho*(root+b.Kappa))
}

// finite returns bound, or +Inf if bound is NaN.
func finite(bound float64) float64 {
	if math.IsNaN(bound) {
		return math.Inf(1)
	}
	return bound
}

// withTargets returns f with more targets: one with the coefficients w if w is not nil, and one for each column of z.
func (f *Expansion) withTargets(w []float64, z ...backend.Host[float64]) *Expansion {
	columns := slices.Clone(z)
	if w != nil {
		columns = append([]backend.Host[float64]{{Rows: len(w), Cols: 1, Stride: 1, Data: w}}, columns...)
	}
	g := &Expansion{Kernel: f.Kernel, Points: f.Points, Features: f.Features, Alpha: f.Alpha, Intercept: f.Intercept}
	for _, add := range columns {
		if add.Data == nil {
			continue
		}
		from := g.Alpha
		g.Alpha = backend.NewHost[float64](from.Rows, from.Cols+add.Cols)
		for i := range from.Rows {
			copy(g.Alpha.Row(i)[copy(g.Alpha.Row(i), from.Row(i)):], add.Row(i))
		}
		g.Intercept = append(slices.Clone(g.Intercept), make([]float64, add.Cols)...)
	}
	return g
}

// Corrected returns f with an additional target for each target of f: the correction of b.
func (f *Expansion) Corrected(b *ErrorBound) *Expansion {
	g := f.withTargets(nil, b.Correction)
	for c := range len(g.Intercept) - len(f.Intercept) {
		g.Intercept[len(f.Intercept)+c] = b.Targets[c].Shift
	}
	return g
}

// Predict returns f(x) for each row of x and each target, rounded to float64, and a bound on its
// distance from the f(x) of the exact solution.
func (b *ErrorBound) Predict(ctx context.Context, f *Expansion, x backend.Host[float64]) (values, bounds backend.Host[float64], err error) {
	t := f.Alpha.Cols
	values, bounds = backend.NewHost[float64](x.Rows, t), backend.NewHost[float64](x.Rows, t)
	rows := newRowSizes(x.Rows, b.Plain)
	err = f.withTargets(b.center(f.Alpha.Rows), b.Correction).Eval(ctx, x, func(i, _ int, k Ball) { rows.add(i, k) }, func(i int, v []Ball, diag Ball) {
		root := Sqrt(diag).Magnitude()
		if b.Plain {
			root = rows.norm(i)
		}
		distance, corrections := root, v[t:]
		if b.Intercept && !b.Plain {
			// distance bounds ‖φ(x) − φ̄‖, including the effect of the rounding errors of w
			s := up(root + b.Root)
			distance = up(math.Sqrt(max(0, up(diag.Magnitude()+b.Square+64*0x1p-53*s*s)-2*lowerBound(v[t]))))
			corrections = v[t+1:]
		}
		for c := range t {
			value, rounding := v[c].Rounded()
			bound := up(rounding + b.remainingError(c, root, distance))
			if b.Correction.Data != nil {
				bound = up(bound + Add(corrections[c], Exact(b.Targets[c].Shift)).Magnitude())
			}
			values.Row(i)[c], bounds.Row(i)[c] = value, finite(bound)
		}
	})
	return values, bounds, err
}

// lowerBound returns a lower bound on the numbers in b.
func lowerBound(b Ball) float64 { return b.Hi - up(math.Abs(b.Hi)*0x1p-50+math.Abs(b.Lo)+b.Radius) }

// total returns an upper bound on Σ_i term(i) for n nonnegative numbers.
func total(n int, term func(i int) float64) float64 {
	s := 0.0
	for i := range n {
		s += term(i)
	}
	return up(s * (1 + float64(n)*0x1p-50))
}

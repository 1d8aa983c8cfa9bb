package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/markov"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Evidence is the log marginal likelihood of the targets under a Gaussian process. For output j, the covariance is
// s_j²C with C = K + λW⁻¹, where W has the samples' weights:
//
//	log p(Y) = −½ Σ_j (y_jᵀC⁻¹y_j/s_j² + N log s_j² + log det C + N log 2π)
//
// N is n without weights. A weight counts repetitions of a sample: N is then the sum of the weights, and log det C
// includes (w_i − 1) ln λ + ln w_i for the repetitions of each sample i.
type Evidence struct {
	Log float64
	// Scale is s² of each output. With EvidenceParams.FitScale it is y_jᵀC⁻¹y_j/N, which maximizes Log. If this value
	// is 0, or without FitScale, it is 1.
	Scale []float64
	// Gradient holds a derivative of Log for each parameter of kernels.Params, then ∂Log/∂ln λ. The
	// derivative is ∂Log/∂ln θ for a parameter θ whose field Log is set, and ∂Log/∂θ otherwise.
	// With FitScale, Gradient differentiates the maximum of Log over Scale.
	Gradient []float64
}

// EvidenceParams are options of LogEvidence; the zero value suits most problems.
type EvidenceParams struct {
	FitScale bool
	Gradient bool  // also compute the derivatives, which triples the cost
	Memory   int64 // largest number of bytes to use on the device; 0 means all its free memory
}

// evidenceBlock is the number of columns of C⁻¹ that are computed at a time.
const evidenceBlock = 256

// LogEvidence computes the Evidence of p in n³/3 operations, and 2n³/3 more for the derivatives. p must have no
// intercept, and λ > 0. For t outputs, with C and s_j as in Evidence, the derivatives are
//
//	∂Log/∂θ = ½ Σ_ij M_ij (∂C/∂θ)_ij,  M = Σ_j α_jα_jᵀ/s_j² − t C⁻¹,  α = C⁻¹y
//
// (Rasmussen and Williams 2006, equation 5.9). No second n×n matrix is stored.
func LogEvidence(ctx context.Context, dev backend.Device, p Problem, par EvidenceParams) (*Evidence, error) {
	if p.Intercept {
		return nil, errors.New("solvers: evidence: an intercept has no prior: subtract the mean of y instead")
	}
	if m, ok := p.kalman(dev); ok {
		return kalmanEvidence(ctx, dev, m, p, par)
	}
	f, err := newCovariance(ctx, dev, "evidence", p, par.Memory, func(n, d, t int) int64 {
		e := numeric.Elements(n, t)
		if par.Gradient {
			e = numeric.Total(e, numeric.Total(numeric.Elements(2*n, min(n, evidenceBlock)), numeric.Elements(n, t)))
			if len(lengthScales(p.Kernel)) > 1 {
				e = numeric.Total(e, numeric.Elements(n, 2*d+1))
			}
		}
		return e
	}, nil)
	if err != nil {
		return nil, err
	}
	defer f.Mem.FreeAll()
	e, err := f.evidence(par)
	if err != nil {
		return nil, fmt.Errorf("solvers: evidence: %w", err)
	}
	return e, nil
}

// covariance is C = K + λW⁻¹ = LLᵀ on the device.
type covariance struct {
	call
	x, l backend.Matrix[float64]
}

// checkCovariance checks everything except the values of the samples.
func (p Problem) checkCovariance(dev backend.Device, operation string, limit int64) error {
	if dev == nil {
		return errors.New("solvers: no device was given")
	}
	if limit < 0 {
		return fmt.Errorf("solvers: %s: memory must be ≥ 0 bytes, got %d", operation, limit)
	}
	if err := p.checkShapes(); err != nil {
		return err
	}
	if !(p.Lambda > 0) {
		return fmt.Errorf("solvers: %s: lambda, the variance of the noise, must be > 0, got %v", operation, p.Lambda)
	}
	return nil
}

// newCovariance factors C (see covariance). The caller needs extraElements elements on the device besides C and X. If
// factor is not nil and the device works in Go memory, newCovariance sets *factor to the n×n factor.
func newCovariance(ctx context.Context, dev backend.Device, operation string, p Problem, limit int64, extraElements func(n, d, t int) int64, factor *backend.Host[float64]) (*covariance, error) {
	if err := p.checkCovariance(dev, operation, limit); err != nil {
		return nil, err
	}
	s := newSamples(p)
	if err := reserveCovariance(ctx, dev, limit, operation, s, 1, extraElements); err != nil {
		return nil, err
	}
	if err := p.checkValues(); err != nil {
		return nil, err
	}
	f := &covariance{call: call{run.New(ctx, dev, nil), s}}
	if w := numeric.Wrapper(dev); w != nil && factor != nil {
		*factor = backend.NewHost[float64](s.n, s.n)
		f.l = w.Wrap(*factor)
		f.Mem.Keep(f.l)
	}
	if err := f.factor(); err != nil {
		f.Mem.FreeAll()
		if errors.Is(err, backend.ErrNotPosDef) {
			return nil, err // err already names the sample's row
		}
		return nil, fmt.Errorf("solvers: %s: %w", operation, err)
	}
	return f, nil
}

// reserveCovariance calls Reserve for the given number of n×n matrices, extraElements, and X if the device copies it.
func reserveCovariance(ctx context.Context, dev backend.Device, limit int64, operation string, s *samples, squares int, extraElements func(n, d, t int) int64) error {
	wrapped := numeric.Wrapper(dev) != nil && s.unchanged(false)
	return Reserve(s.x.Evaluating(ctx, dev), dev, limit, Method(operation), s.n, func(n int) int64 {
		if s.Sparse != nil {
			return numeric.Total(s.placedSparse(dev, n), numeric.Bytes(numeric.Total(numeric.Elements(squares*n, n), extraElements(n, 0, s.t))))
		}
		e := numeric.Total(numeric.Elements(squares*n, n), extraElements(n, s.d, s.t))
		if !wrapped {
			e = numeric.Total(e, numeric.Elements(n, s.d))
		}
		return numeric.Bytes(e)
	})
}

func (f *covariance) factor() error {
	var err error
	if f.x, err = f.placeX(); err != nil {
		return err
	}
	if f.l == nil {
		if f.l, err = f.Mem.New(f.s.n, f.s.n); err != nil {
			return err
		}
	}
	err = numeric.FactorGram(f.B, f.l, f.s.Kernel, f.x, f.s.shift())
	if errors.Is(err, backend.ErrNotPosDef) {
		return f.s.explain(err)
	}
	return err
}

func (f *covariance) evidence(par EvidenceParams) (*Evidence, error) {
	s, b := f.s, f.B
	y := backend.NewHost[float64](s.n, s.t)
	s.fill(y, s.Y, nil, 0, false)
	sol, err := f.Mem.New(s.n, s.t)
	if err != nil {
		return nil, err
	}
	if err := b.Upload(sol, y); err != nil {
		return nil, err
	}
	b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, f.l, sol)
	squares := make([]float64, s.t) // yᵀC⁻¹y
	if err := b.ColDot(squares, sol, sol); err != nil {
		return nil, err
	}
	pivots, err := numeric.Diagonal(b, f.l)
	if err != nil {
		return nil, err
	}
	for i, v := range pivots {
		pivots[i] = 2 * elementary.Log(v)
	}
	e := s.evidence(squares, pivots, par)
	if par.Gradient {
		b.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, f.l, sol)
		if err := f.gradient(e, sol, squares); err != nil {
			return nil, err
		}
	}
	return e, e.check()
}

// evidence returns the evidence without derivatives. squares holds y_jᵀC⁻¹y_j, and logs the logarithms of the
// squared diagonal of C's factor.
func (s *samples) evidence(squares, logs []float64, par EvidenceParams) *Evidence {
	e := &Evidence{Scale: make([]float64, s.t)}
	n, logDet := 0.0, 0.0
	for i, v := range logs {
		w := s.weightOf(i)
		n += w
		logDet += v + (w-1)*elementary.Log(s.Lambda) + elementary.Log(w)
	}
	for j, q := range squares {
		e.Scale[j] = 1
		if par.FitScale && q > 0 {
			e.Scale[j] = q / n
		}
		e.Log -= (q/e.Scale[j] + n*elementary.Log(2*math.Pi*e.Scale[j]) + logDet) / 2
	}
	return e
}

func (e *Evidence) check() error {
	if math.IsNaN(e.Log) || math.IsInf(e.Log, 0) {
		return kernels.Overflow(errors.New("the evidence is not finite: scale the features and targets down"))
	}
	return nil
}

// gradient computes the derivatives by the formula of LogEvidence. alpha is C⁻¹y, and squares holds y_jᵀC⁻¹y_j for
// each target j. For a factor h of the kernel, ∂C/∂ln h = C − λW⁻¹. The derivative with respect to ln h needs only the
// diagonal of M, because tr(MC) = Σ_j y_jᵀC⁻¹y_j/s_j² − tn.
func (f *covariance) gradient(e *Evidence, alpha backend.Matrix[float64], squares []float64) error {
	s, b := f.s, f.B
	scaled, err := f.Mem.New(s.n, s.t) // α_j/s_j²
	if err != nil {
		return err
	}
	inverse := make([]float64, s.t)
	for j, v := range e.Scale {
		inverse[j] = 1 / v
	}
	b.ColAxpy(inverse, alpha, scaled)
	width := min(s.n, evidenceBlock)
	scales, err := newScaleSums(f, width)
	if err != nil {
		return err
	}
	var scratch [2]backend.Matrix[float64] // scratch[0] holds columns of M, and scratch[1] the same columns of ∂K/∂θ
	for i := range scratch {
		if scales != nil {
			scratch[i] = numeric.Wrapper(f.Dev).Wrap(scales.scratch[i])
		} else if scratch[i], err = f.Mem.New(s.n, width); err != nil {
			return err
		}
	}
	derivatives := kernels.Gradient(s.Kernel)
	e.Gradient = make([]float64, len(derivatives)+1)
	_, weighted := s.Kernel.(kernels.Scaled)
	if weighted {
		e.Gradient[0] = -float64(s.t*s.n) / 2
		for j, q := range squares {
			e.Gradient[0] += q / e.Scale[j] / 2
		}
	}
	sums := make([]float64, width)
	for first := 0; first < s.n; first += width {
		if f.Ctx.Err() != nil {
			return context.Cause(f.Ctx)
		}
		remaining := s.n - first
		cols := min(width, remaining)
		m, dk := scratch[0].View(0, 0, remaining, cols), scratch[1].View(0, 0, remaining, cols)
		// The trailing blocks of L⁻¹ and C⁻¹ depend only on the trailing block of L.
		l := f.l.View(first, first, remaining, remaining)
		numeric.Zero(b, m)
		b.AddDiag([]float64{1}, m.View(0, 0, cols, cols))
		b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, l, m)
		b.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, l, m)
		b.Gemm(backend.NoTrans, backend.Transpose, 1, scaled.View(first, 0, remaining, s.t), alpha.View(first, 0, cols, s.t), -float64(s.t), m)
		corner, err := numeric.Diagonal(b, m.View(0, 0, cols, cols))
		if err != nil {
			return err
		}
		for k, v := range corner {
			w := s.weightOf(first + k)
			e.Gradient[len(derivatives)] += (v*s.Lambda/w - float64(s.t)*(w-1)) / 2
			if weighted {
				e.Gradient[0] -= v * s.Lambda / w / 2
			}
		}
		// Because M and ∂K/∂θ are symmetric, the derivative ½ Σ_ij M_ij (∂K/∂θ)_ij is the sum over i > j plus half the
		// sum over i = j. Gram computes only the lower triangle of the diagonal block.
		block := f.x.View(first, 0, cols, s.d)
		diagonalBlock, belowBlock := dk.View(0, 0, cols, cols), dk.View(cols, 0, remaining-cols, cols)
		numeric.Zero(b, diagonalBlock)
		if scales != nil {
			b.Gram(diagonalBlock, s.Kernel, block, block)
			b.Gram(belowBlock, s.Kernel, f.x.View(first+cols, 0, remaining-cols, s.d), block)
			if err := scales.add(b, first, cols, e.Gradient[len(derivatives)-s.d:len(derivatives)]); err != nil {
				return err
			}
			continue
		}
		for i, d := range derivatives {
			if weighted && i == 0 {
				continue
			}
			b.Gram(diagonalBlock, d, block, block)
			b.Gram(belowBlock, d, f.x.View(first+cols, 0, remaining-cols, s.d), block)
			if err := b.ColDot(sums[:cols], m, dk); err != nil {
				return err
			}
			dkDiagonal, err := numeric.Diagonal(b, diagonalBlock)
			if err != nil {
				return err
			}
			for k, v := range dkDiagonal {
				e.Gradient[i] += sums[k] - corner[k]*v/2
			}
		}
	}
	return nil
}

// scaleSums computes the derivatives with respect to the length scales σ_p, one for each feature p, of a Gaussian
// kernel or a multiple of it. With c_p the middle of the range of feature p, and u_ip = (x_ip − c_p)/σ_p, they are
//
//	∂Log/∂ln σ_p = Σ_{i>j} W_ij (u_ip − u_jp)²,  W = M∘K with M as in LogEvidence
//
// After expanding the squares, the product of Wᵀ with [u, u∘u, 1] gives the sums over i.
type scaleSums struct {
	scratch  [2]backend.Host[float64]   // scratch[0] holds columns of M, and scratch[1] columns of K, later of W
	u        backend.Host[float64]      // a row [u, u∘u, 1] for each sample
	products backend.Host[float64]      // product of u with the transposed columns of W
	matrices [3]backend.Matrix[float64] // W, u and products as matrices of the device
}

// maxScaled limits the scaled features u_ip of scaleSums, because rounding errors grow with their squares.
const maxScaled = 256

// lengthScales returns the length scales of the features of a Gaussian kernel or of a multiple of it, or nil.
func lengthScales(k kernels.Kernel) []float64 {
	if scaled, ok := k.(kernels.Scaled); ok {
		k = scaled.Kernel
	}
	g, _ := k.(kernels.Gaussian)
	return g.Sigmas
}

// newScaleSums returns nil if scaleSums does not apply: for kernels without several length scales, sparse samples,
// devices that do not work in Go memory, and features with a scaled range above 2·maxScaled.
func newScaleSums(f *covariance, width int) (*scaleSums, error) {
	sigmas := lengthScales(f.s.Kernel)
	wrap, n, d := numeric.Wrapper(f.Dev), f.s.n, f.s.d
	if len(sigmas) < 2 || wrap == nil || f.s.Sparse != nil {
		return nil, nil
	}
	g := &scaleSums{u: backend.NewHost[float64](n, 2*d+1), products: backend.NewHost[float64](width, 2*d+1)}
	if err := f.B.Download(g.u.View(0, 0, n, d), f.x); err != nil {
		return nil, err
	}
	for p, sigma := range sigmas {
		low, high := math.Inf(1), math.Inf(-1)
		for i := range n {
			v := g.u.Row(i)[p]
			low, high = min(low, v), max(high, v)
		}
		if !(high/sigma-low/sigma <= 2*maxScaled) {
			return nil, nil
		}
		center := low + (high-low)/2
		for i := range n {
			row := g.u.Row(i)
			v := (row[p] - center) / sigma
			row[p], row[d+p], row[2*d] = v, v*v, 1
		}
	}
	g.matrices[1], g.matrices[2] = wrap.Wrap(g.u), wrap.Wrap(g.products)
	for i := range g.scratch {
		g.scratch[i] = backend.NewHost[float64](n, width)
	}
	g.matrices[0] = wrap.Wrap(g.scratch[1])
	return g, nil
}

// add adds to sums the terms of columns first, …, first+cols−1 of W. g.scratch holds the same columns of M and of the
// lower triangle of K, from row first on.
func (g *scaleSums) add(b backend.Backend[float64], first, cols int, sums []float64) error {
	if err := b.Sync(); err != nil {
		return err
	}
	n, d := g.u.Rows, len(sums)
	run.Parallel(n-first, func(from, to int) {
		for i := from; i < to; i++ {
			m, w := g.scratch[0].Row(i)[:cols], g.scratch[1].Row(i)[:cols]
			for j, v := range m {
				w[j] *= v
			}
			if i < cols {
				clear(w[i:])
			}
		}
	})
	products := g.matrices[2].View(0, 0, cols, 2*d+1)
	b.Gemm(backend.Transpose, backend.NoTrans, 1, g.matrices[0].View(0, 0, n-first, cols), g.matrices[1].View(first, 0, n-first, 2*d+1), 0, products)
	if err := b.Sync(); err != nil {
		return err
	}
	for j := range cols {
		u, product := g.u.Row(first+j), g.products.Row(j)
		for p := range sums {
			sums[p] += product[d+p] - float64(2*u[p]*product[p]) + float64(u[d+p]*product[2*d])
		}
	}
	return nil
}

// otherPoints checks points at which kernel values with the samples will be computed.
func (p Problem) otherPoints(points backend.Points) (numeric.Points, error) {
	z, err := numeric.PointsOf(points)
	if err != nil {
		return z, fmt.Errorf("solvers: variance: points: %w", err)
	}
	x := p.points()
	if z.Cols != x.Cols {
		return z, fmt.Errorf("solvers: variance: points have %s, x has %d", count.Of(z.Cols, "column"), x.Cols)
	}
	if (z.Sparse == nil) != (x.Sparse == nil) {
		return z, errors.New("solvers: variance: only one of x and the points is sparse: give both as sparse or both as dense matrices")
	}
	return z, nil
}

// Uncertainty stores the Cholesky factor of the covariance K + λW⁻¹ of a Gaussian process: n² numbers in the memory
// of the host. For one feature and a kernel that Kalman accepts, it stores a state-space model of O(n) numbers
// instead if that is estimated to be faster. Several goroutines may call its methods at the same time. It shares
// the samples of its Problem, which must not be changed.
type Uncertainty struct {
	s         *samples
	factor    backend.Host[float64]
	posterior *markov.Posterior // a state-space model in place of factor, or nil
}

// NewUncertainty factors K + λW⁻¹ on dev in n³/3 operations, and frees all device memory before it returns. It does
// not read p.Y. limit bounds the memory on dev in bytes; 0 means all its free memory.
func NewUncertainty(ctx context.Context, dev backend.Device, p Problem, limit int64) (*Uncertainty, error) {
	if m, ok := p.kalman(dev); ok {
		return newPosterior(ctx, dev, m, p, limit)
	}
	u := &Uncertainty{}
	f, err := newCovariance(ctx, dev, "variance", p, limit, func(_, _, _ int) int64 { return 0 }, &u.factor)
	if err != nil {
		return nil, err
	}
	defer f.Mem.FreeAll()
	u.s = f.s
	if numeric.Wrapper(dev) == nil {
		u.factor = backend.NewHost[float64](f.s.n, f.s.n)
		if err := f.B.Download(u.factor, f.l); err != nil {
			return nil, fmt.Errorf("solvers: variance: %w", err)
		}
	}
	return u, nil
}

// Variance returns the posterior variance of the latent function of the Gaussian process at each row z of points:
//
//	k(z, z) − k_zᵀ(K + λW⁻¹)⁻¹k_z,  k_z = k(X, z),  W = diag(weights)
//
// It excludes the noise λ of a new target (Rasmussen and Williams 2006, equation 2.26). Each point takes n² operations,
// or O(log n) with a state-space model. The rounding error is at most about 2⁻⁵² k(z, z) times the condition number of
// K + λW⁻¹; a negative result becomes 0.
func (u *Uncertainty) Variance(ctx context.Context, dev backend.Device, points backend.Points, limit int64) ([]float64, error) {
	if u == nil || u.s == nil {
		return nil, errors.New("solvers: variance: the Uncertainty was not made by NewUncertainty")
	}
	z, err := u.s.otherPoints(points)
	if err != nil {
		return nil, err
	}
	if u.posterior != nil {
		return u.posterior.Variance(numeric.First(z.Dense)), nil
	}
	rows := min(z.Rows, evidenceBlock)
	f, err := u.placeOn(ctx, dev, "variance", func(n, d, _ int) int64 { return numeric.Elements(n+d, rows) }, limit)
	if err != nil {
		return nil, fmt.Errorf("solvers: variance: %w", err)
	}
	defer f.Mem.FreeAll()
	variance, err := f.variance(z, rows)
	if err != nil {
		return nil, fmt.Errorf("solvers: variance: %w", err)
	}
	return variance, nil
}

// Solve overwrites r with (K + λW⁻¹)⁻¹r, without refinement. r has one row for each sample of weight > 0.
func (u *Uncertainty) Solve(ctx context.Context, dev backend.Device, r backend.Host[float64], limit int64) error {
	if u == nil || u.s == nil {
		return errors.New("solvers: solve: the Uncertainty was not made by NewUncertainty")
	}
	if r.Rows != u.s.n {
		return fmt.Errorf("solvers: solve: the right-hand side has %s, but the factor has order %d", count.Of(r.Rows, "row"), u.s.n)
	}
	if u.posterior != nil {
		u.posterior.Line.Solve(r)
		return nil
	}
	f, err := u.placeOn(ctx, dev, "solve", func(n, _, _ int) int64 { return numeric.Elements(n, r.Cols) }, limit)
	if err != nil {
		return fmt.Errorf("solvers: solve: %w", err)
	}
	defer f.Mem.FreeAll()
	m, err := f.Mem.New(r.Rows, r.Cols)
	if err == nil {
		err = f.B.Upload(m, r)
	}
	if err == nil {
		numeric.SolveCholesky(f.B, f.l, m)
		err = f.B.Download(r, m)
	}
	if err != nil {
		return fmt.Errorf("solvers: solve: %w", err)
	}
	return nil
}

func (f *covariance) variance(points numeric.Points, rows int) ([]float64, error) {
	reduction, variance := make([]float64, rows), points.Diagonal(f.s.Kernel)
	err := f.cross(points, rows, func(first int, k backend.Matrix[float64]) error {
		_, count := k.Dims()
		f.B.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, f.l, k)
		if err := f.B.ColDot(reduction[:count], k, k); err != nil {
			return err
		}
		for i, v := range reduction[:count] {
			variance[first+i] = max(0, variance[first+i]-v)
		}
		return nil
	})
	return variance, err
}

// cross calls visit with k = k(X, block) for each block of rows of points, whose first row is first.
func (f *covariance) cross(points numeric.Points, rows int, visit func(first int, k backend.Matrix[float64]) error) error {
	s, b := f.s, f.B
	cross, err := f.Mem.New(s.n, rows)
	if err != nil {
		return err
	}
	for first := 0; first < points.Rows; first += rows {
		if f.Ctx.Err() != nil {
			return context.Cause(f.Ctx)
		}
		count := min(rows, points.Rows-first)
		z, err := points.Slice(first, count).Place(b)
		if err != nil {
			return err
		}
		k := cross.View(0, 0, s.n, count)
		b.Gram(k, s.Kernel, f.x, z)
		err = visit(first, k)
		z.Free()
		if err != nil {
			return err
		}
	}
	return nil
}

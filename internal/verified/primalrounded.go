package verified

import (
	"context"
	"errors"
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/kernels"
)

// NewWaves returns a Roundoff for the functions cos ω_jᵀx, followed by the functions sin ω_jᵀx, where ω_j is row j
// of omega. The arguments cos and sin are the kernels cos zᵀx and sin zᵀx, and √k(x, x) is 1 in Roundoff.
//
// The error of a function is at most the error γ_(d+3)‖ω_j‖‖x‖ of the computed angle ω_jᵀx, plus
// 2·functionUlps + 8 rounding errors of the angle and of numbers of magnitude 1.
func NewWaves(omega numeric.Points, cos, sin kernels.Kernel) *Roundoff {
	norm := 0.0
	for j := range omega.Rows {
		norm = max(norm, up(math.Sqrt(total(omega.Cols, func(p int) float64 { return up(omega.Dense.Row(j)[p] * omega.Dense.Row(j)[p]) }))))
	}
	r := &Roundoff{kernel: cos, points: omega, functions: []kernels.Kernel{cos, sin}, roots: ones(2 * omega.Rows), constant: true, errors: map[int]float64{}, waves: true}
	r.origin = make([]float64, omega.Cols)
	r.stats, r.maxMeasures = []kernels.Stat{{Kind: kernels.SqDist}}, []float64{1 / max(norm*norm, 0x1p-200)}
	return r
}

// NewCoordinates returns a Roundoff for the functions x_1, …, x_d: the linear kernel with the unit vectors as points.
func NewCoordinates(d int) *Roundoff {
	return &Roundoff{kernel: kernels.Linear{}, points: numeric.Points{Cols: d}, roots: ones(d), errors: map[int]float64{}}
}

func ones(n int) []float64 { return numeric.Repeated(1.0, n) }

// fill computes the values of the functions of r for the points x on the device, where z holds the points of r. It
// returns the part of dst with the values, or x itself if the functions are coordinates.
func (r *Roundoff) fill(q backend.Backend[float64], dst, x, z backend.Matrix[float64]) backend.Matrix[float64] {
	if len(r.functions) == 0 {
		return x
	}
	rows, _ := x.Dims()
	m := r.points.Rows
	for i, k := range r.functions {
		q.Gram(dst.View(0, i*m, rows, m), k, x, z)
	}
	return dst.View(0, 0, rows, len(r.roots))
}

// Rounded returns a bound for an approximate solution f, or the bound +Inf if it can prove no finite bound. The
// queue q evaluates the residuals in float64 from computed values of the functions, whose errors r bounds. Rounded
// reads the samples once. If s.Pass is nil, or if the bound from s.Sums is small enough, it does not read them.
//
// In the notation of Bound, let Φ̃ be the matrix with the rows φ(x_i) − φ̄, r the exact residuals, r̂ the computed
// residuals, and h = Φ̃ᵀWr̂ − Pβ.
//
//   - The error of β is e = (Φ̃ᵀWΦ̃ + P)⁻¹(Φ̃ᵀW(r − r̂) + h).
//   - Let ψ = P^−½(φ(x) − φ̄) and F = ‖W^½(r − r̂)‖/2 + ‖h‖/√μ. Then |(φ(x) − φ̄)ᵀe| ≤ ‖ψ‖F, because
//     s/(s² + 1) ≤ 1/2 for each singular value s of W^½Φ̃P^−½.
//   - ‖P^−½φ(x)‖ is at most √(k(x, x)/λ) for P = λ(k(x_j, x_l)) and a positive semidefinite k. For P = λI it is at
//     most ‖x‖/√λ for the coordinates, and √(D/λ) for D cosines and D sines.
//   - The formulas of ErrorBound hold for N = 2F/√λ, or N = 2F/√(λ/D) for cosines and sines.
//
// The rounding errors of r̂, of h and of the means are bounded as in System.Rounded.
func (s *Primal) Rounded(ctx context.Context, q backend.Backend[float64], f *Expansion, r *Roundoff) (*ErrorBound, error) {
	w := &primalRounded{Primal: s, q: q, f: f, r: r, size: make([]float64, f.Alpha.Cols), targets: make([]primalSums, f.Alpha.Cols)}
	bySums := s.Sums != nil && r.constant && r.points.Sparse == nil // if k(x, x) depends on x, the sums do not bound it
	if s.Pass == nil && !bySums {
		return nil, ErrSamples
	}
	defer func() { numeric.FreeAll(w.allocated) }()
	if err := w.allocate(); err != nil {
		return nil, err
	}
	floor, penalty := 1.0, f.Alpha // lower bound on the eigenvalues of P/λ, and the product Pβ/λ
	if s.Centers {
		var err error
		if floor, penalty, err = w.minEigenvalue(); err != nil {
			return nil, err
		}
		if !(floor > 0) {
			return nil, ErrDependent
		}
	}
	if bySums {
		if b := w.bySums(s.Sums, floor); s.Pass == nil || s.Enough(b) {
			return b, nil
		}
	}
	if err := w.pass(ctx); err != nil {
		return nil, err
	}
	return w.bound(floor, penalty), nil
}

type primalRounded struct {
	*Primal
	q          backend.Backend[float64]
	f          *Expansion
	r          *Roundoff
	size       []float64 // Σ_j √k(x_j, x_j)|β_j| of each target
	rows       int       // number of samples in a block
	allocated  []backend.Matrix[float64]
	vectors    backend.Host[float64]   // the columns β and, if Centers is set, Sums.WeakVectors
	z, beta    backend.Matrix[float64] // the points of r and the matrix vectors, on the device
	values     backend.Matrix[float64] // the values of the functions for a block, or the matrix k(x_j, x_l)
	v, product backend.Matrix[float64] // v: [Wr̂ w] of a block; product: Φᵀ[Wr̂ w], or the products of minEigenvalue

	sums            backend.Host[float64] // Φᵀ[Wr̂ w], m×(t+1), the sum over blocks of samples
	roundings       int                   // number of samples in the largest block, plus the number of blocks
	n               int
	mass, root      float64 // Σ w_i, and the largest √k(x_i, x_i)
	mean, meanError float64 // Σ w_i √k(x_i, x_i) and Σ w_i ε_i √k(x_i, x_i), with the ε_i of Roundoff
	targets         []primalSums
}

// primalSums holds sums over the samples for one target, with the computed residuals r̂_i and the ε_i of Roundoff.
type primalSums struct {
	sum              sum     // Σ w_i r̂_i
	absSum, absError float64 // Σ |w_i r̂_i| √k(x_i, x_i) and Σ |w_i r̂_i| √k(x_i, x_i) ε_i
	slack, square    float64 // Σ w_i δ_i and Σ w_i δ_i², where δ_i bounds the error of r̂_i
}

// allocate sets the fields of w up to product. Rounded frees the matrices on the device.
func (w *primalRounded) allocate() (err error) {
	m, t := w.f.Alpha.Rows, w.f.Alpha.Cols
	for c := range w.size {
		w.size[c] = total(m, func(j int) float64 { return up(w.r.roots[j] * math.Abs(w.f.Alpha.Row(j)[c])) })
	}
	w.rows = min(4096, max(256, 1<<17/m)) // 256 rows are two tiles of Gram; the values then take at most 1 MiB, unless m > 512
	w.vectors = w.f.Alpha
	rows := w.rows
	switch {
	case w.Centers:
		rows = max(rows, m)
	case len(w.r.functions) == 0: // the samples themselves are the values of the functions
		rows = 0
	}
	if w.Centers && w.Sums != nil {
		w.vectors = w.f.withTargets(nil, w.Sums.WeakVectors).Alpha
	}
	for _, p := range []struct {
		to         *backend.Matrix[float64]
		rows, cols int
	}{{&w.beta, m, w.vectors.Cols}, {&w.product, m, w.vectors.Cols + 1}, {&w.v, w.rows, t + 1}, {&w.values, rows, m}} {
		if *p.to, err = w.q.New(p.rows, p.cols); err != nil {
			return err
		}
		w.allocated = append(w.allocated, *p.to)
	}
	if len(w.r.functions) > 0 {
		if w.z, err = w.r.points.Place(w.q); err != nil {
			return err
		}
		w.allocated = append(w.allocated, w.z)
	}
	return w.q.Upload(w.beta, w.vectors)
}

// minEigenvalue returns a lower bound on the eigenvalues of the matrix S of the kernel values k(x_j, x_l), and the
// product of S and w.vectors. The bound is 0 if no positive bound is proven. The proof is a Cholesky factorization of
// S − θI on the device, as in FactorSlack. The first θ is about a third of the smallest Rayleigh quotient of w.vectors.
// If the factorization fails, θ is a fraction of an estimate by inverse iteration.
func (w *primalRounded) minEigenvalue() (floor float64, products backend.Host[float64], err error) {
	m, cols := w.vectors.Rows, w.vectors.Cols
	products = backend.NewHost[float64](m, cols)
	product, energy, square := w.product.View(0, 0, m, cols), make([]float64, cols), make([]float64, cols)
	w.q.GramMul(product, w.r.kernel, w.z, w.z, w.beta)
	err = errors.Join(w.q.Download(products, product), w.q.ColDot(energy, w.beta, product), w.q.ColDot(square, w.beta, w.beta))
	trace := total(m, func(j int) float64 { return up(w.r.roots[j] * w.r.roots[j]) })
	slack, estimate := up(FactorSlack(2*m+16, trace)+w.r.relative(1)*trace), trace/float64(m)
	for c, v := range energy {
		if v /= square[c]; v < estimate { // the comparison is false for the NaN of β = 0
			estimate = max(v, 0)
		}
	}
	a, v := w.values.View(0, 0, m, m), w.product.View(0, 0, m, 1)
	proves := func(divisor float64) bool {
		theta := 2*slack + estimate/divisor
		w.q.Gram(a, w.r.kernel, w.z, w.z)
		w.q.AddDiag([]float64{-theta}, a)
		if err == nil {
			err = w.q.Potrf(backend.Lower, a)
		}
		if errors.Is(err, backend.ErrNotPosDef) {
			err = nil
			return false
		}
		floor = (theta - slack) * (1 - 0x1p-50)
		return true
	}
	if proves(3) || !proves(math.Inf(1)) {
		return floor, products, err
	}
	previous, current := []float64{0}, []float64{float64(m)}
	err = errors.Join(err, w.q.Upload(v, numeric.Column(ones(m))))
	for range 4 {
		copy(previous, current)
		w.q.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, a, v)
		w.q.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, a, v)
		err = errors.Join(err, w.q.ColDot(current, v, v))
	}
	estimate = math.Sqrt(previous[0] / current[0])
	for _, divisor := range []float64{2, 16, 256} {
		if proves(divisor) {
			break
		}
	}
	return floor, products, err
}

func (w *primalRounded) pass(ctx context.Context) error {
	m, t := w.f.Alpha.Rows, w.f.Alpha.Cols
	rows, blocks, nearError := w.rows, 0, w.r.relative(1)
	beta, sums := w.beta.View(0, 0, m, t), w.product.View(0, 0, m, t+1)
	w.sums = backend.NewHost[float64](m, t+1)
	host, add := backend.NewHost[float64](rows, t+1), backend.NewHost[float64](m, t+1)
	return w.Pass(ctx, func(x numeric.Points, y backend.Host[float64], weights []float64) error {
		for from := 0; from < x.Rows; from += rows {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			count := min(rows, x.Rows-from)
			points := x.Slice(from, count)
			devicePoints, err := points.Place(w.q)
			if err != nil {
				return err
			}
			values, products := w.r.fill(w.q, w.values, devicePoints, w.z), w.v.View(0, 0, count, t+1)
			w.q.Gemm(backend.NoTrans, backend.NoTrans, 1, values, beta, 0, products.View(0, 0, count, t))
			block := host.View(0, 0, count, t+1)
			if err = w.q.Download(host.View(0, 0, count, t), products.View(0, 0, count, t)); err == nil {
				value, root, ratios := points.Values(w.r.kernel), 0.0, make([]float64, count)
				w.r.setRatios(ratios, &points, 0)
				for i := range count {
					if i == 0 || !w.r.constant {
						root = w.r.root(value(i, i), points, i)
					}
					weight := 1.0
					if weights != nil {
						weight = weights[from+i]
					}
					relative := nearError
					if ratios[i] > 1 {
						relative = w.r.relative(ratios[i])
					}
					w.add(relative, root, y.Row(from+i), block.Row(i), weight)
				}
				if err = w.q.Upload(products, block); err == nil {
					w.q.Gemm(backend.Transpose, backend.NoTrans, 1, values, products, 0, sums)
					err = w.q.Download(add, sums)
				}
			}
			for i, v := range add.Data {
				w.sums.Data[i] += v
			}
			blocks++
			w.roundings = max(w.roundings, min(rows, w.n)+blocks)
			devicePoints.Free()
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// add adds a sample x to the sums. relative is the ε of Roundoff, root is √k(x, x), y holds the targets, and v the
// computed φ(x)ᵀβ. add overwrites v with the residuals times the weight, followed by the weight.
func (w *primalRounded) add(relative, root float64, y, v []float64, weight float64) {
	rounding := relative + gamma(len(w.r.roots)+9)
	if weight > 0 {
		w.root = max(w.root, root)
	}
	w.n++
	w.mass += weight
	w.mean += weight * root
	w.meanError += weight * root * relative
	for c := range w.targets {
		t, b := &w.targets[c], w.f.Intercept[c]
		r := y[c] - v[c] - b
		// rowError bounds the rounding errors of y − φᵀβ − b and of the product with the weight.
		rowError := up(rounding*root*w.size[c] + unit*(4*(math.Abs(y[c])+math.Abs(b))+2*math.Abs(r)))
		v[c] = weight * r
		t.sum.add(v[c], 0)
		t.absSum += math.Abs(v[c]) * root
		t.absError += math.Abs(v[c]) * root * relative
		t.slack += weight * rowError
		t.square += weight * rowError * rowError
	}
	v[len(w.targets)] = weight
}

// bound returns the bound that follows from the sums. The argument floor is a lower bound on the eigenvalues of
// P/λ, and penalty is Pβ/λ.
func (w *primalRounded) bound(floor float64, penalty backend.Host[float64]) *ErrorBound {
	m, t := w.f.Alpha.Rows, w.f.Alpha.Cols
	// upperSum bounds the exact sum of n nonnegative numbers, whose float64 sum is v.
	upperSum := func(v float64) float64 { return up(v * (1 + float64(w.n)*0x1p-50)) }
	rounding, mass := gamma(w.roundings+9), w.mass*(1-float64(w.n)*0x1p-50)*(1-0x1p-50)
	mean := up(upperSum(w.mean) / mass)
	meanError := up(((upperSum(w.meanError)+rounding*upperSum(w.mean))/mass + gamma(w.n+1)*mean) * (1 + 0x1p-20))
	b := &ErrorBound{Intercept: w.Intercept, Rounded: true, Targets: make([]TargetBound, t), Root: w.root}
	if w.Intercept {
		b.Square = up(mean * mean)
	}
	for c := range b.Targets {
		p, target := &w.targets[c], &b.Targets[c]
		lambda := w.lambda(c)
		weighted, weightedError := p.sum.ball().Rounded()
		low, lambdaError := lowerBound(lambda), up(math.Abs(lambda.Lo)+lambda.Radius)
		relativeError := up((upperSum(p.absError) + rounding*upperSum(p.absSum)) * (1 + 0x1p-20))
		if w.Intercept {
			relativeError = up(relativeError + math.Abs(weighted)*meanError + weightedError*mean)
		}
		if w.Centers {
			relativeError = up(relativeError + (lambda.Hi+lambdaError)*(w.r.relative(1)+gamma(m+9))*w.size[c])
		}
		gradient := up(math.Sqrt(total(m, func(j int) float64 {
			g, centered, penal := w.sums.Row(j)[c], 0.0, lambda.Hi*penalty.Row(j)[c]
			if w.Intercept {
				centered = weighted * (w.sums.Row(j)[t] / w.mass)
			}
			h := up(math.Abs(g-centered-penal) + w.r.roots[j]*relativeError + lambdaError*math.Abs(penalty.Row(j)[c]) +
				8*unit*(math.Abs(g)+math.Abs(centered)+math.Abs(penal)))
			return up(h * h)
		})))
		w.set(target, low, floor, math.Sqrt(upperSum(p.square)), gradient)
		target.Size = w.size[c]
		if w.Intercept {
			target.Mean = up((math.Abs(weighted) + weightedError + upperSum(p.slack)) / mass)
		}
	}
	return b
}

// set sets target.Norm and target.Alpha from bounds on ‖W^½(r − r̂)‖ and ‖h‖ (see Rounded). low is a lower bound on λ.
func (w *primalRounded) set(target *TargetBound, low, floor, residual, gradient float64) {
	minRoot := math.Sqrt(low*floor) * (1 - 0x1p-50)
	n := up(residual + 2*gradient/minRoot)
	scale := low
	if w.r.waves { // P^−½φ(x) has the norm √(D/λ)
		scale = low / float64(w.r.points.Rows) * (1 - 0x1p-50)
	}
	target.Norm = up(n / (math.Sqrt(scale) * (1 - 0x1p-50)))
	target.Alpha = finite(up(n / (2 * minRoot)))
}

// bySums returns a bound for the solution of the normal equations Hβ = z from the sums H and z alone.
//
// In the notation of Primal.Rounded, the error of β is e = H⁻¹h with h = z − Hβ, and |(φ(x) − φ̄)ᵀe| ≤ ‖ψ‖‖h‖/√μ. Let
// ρ = √k(x, x), ρ_a = √k(x_a, x_a) and s_a² = Σ w_i φ_a(x_i)² + P_aa. Element a of h has two kinds of errors:
//
//   - Column a of W^½Φ has an error of norm at most e_a = ερρ_a√m. It adds at most e_a(T + B) + s_a B to element a
//     of h, where B = Σ_b e_b|β_b| and T = √Σ w_i y_i² + Σ_b s_b|β_b|.
//   - The rounding errors of the sums, of their products with β and of the residual add at most γ_c s_a T, where c
//     is about the number of samples.
//
// With an intercept the terms ΦᵀW11ᵀWΦ/m are subtracted: c triples and the effect of ε doubles. With weights m has
// rounding errors, too, and c increases by the number of samples.
func (w *primalRounded) bySums(sums *stream.Sums, floor float64) *ErrorBound {
	f, r := w.f, w.r
	m, rounds, twice := f.Alpha.Rows, 1, 1.0
	if w.Intercept {
		rounds, twice = 3, 2
	}
	if sums.Weighted {
		rounds++
	}
	c := gamma(rounds*(sums.N+8) + m + 64)
	corners := numeric.DensePoints(backend.NewHost[float64](2, r.points.Cols))
	for p, low := range sums.Box[0] {
		high, origin := sums.Box[1][p], 0.0
		if r.origin != nil {
			origin = r.origin[p]
		}
		// Find the corners of the box with the largest ‖x − origin‖ and Σ |x_p| + |x_p − origin_p|.
		for i, size := range []func(v float64) float64{
			func(v float64) float64 { return math.Abs(v - origin) },
			func(v float64) float64 { return math.Abs(v) + math.Abs(v-origin) },
		} {
			corners.Dense.Row(i)[p] = low
			if size(high) > size(low) {
				corners.Dense.Row(i)[p] = high
			}
		}
	}
	ratios := make([]float64, 2)
	r.setRatios(ratios, &corners, 0)
	relative := up(r.relative(max(ratios[0], ratios[1])*(1+0x1p-20)) + gamma(4))
	root := 1.0
	if !r.waves {
		root = r.root(corners.Values(r.kernel)(0, 0), corners, 0)
	}
	mass := sums.TotalWeight * (1 + float64(sums.N)*0x1p-50)
	columnError := up(relative * root * math.Sqrt(mass)) // e_a/ρ_a for every a
	rootsNorm := up(math.Sqrt(total(m, func(j int) float64 { return sums.Roots[j] * sums.Roots[j] })) * (1 + 2*c))
	spread := up(columnError * sums.Scale * math.Sqrt(total(m, func(j int) float64 { return r.roots[j] * r.roots[j] })))
	b := &ErrorBound{Intercept: w.Intercept, Rounded: true, Targets: make([]TargetBound, f.Alpha.Cols), Root: root}
	if w.Intercept {
		b.Square = up(root * root)
	}
	for t := range b.Targets {
		target, sum, lambda := &b.Targets[t], &sums.Targets[t], w.lambda(t)
		size := func(j int) float64 { return f.Alpha.Row(j)[t] * f.Alpha.Row(j)[t] }
		fitNorm := up(sum.FitBound * (1 + 2*c) * (1 + float64(m)*0x1p-50))
		totalNorm := up(math.Sqrt(sum.Square*(1+2*c)) + fitNorm)
		effect := up(columnError * w.size[t]) // B of the formula above
		lambdaError := Sub(Mul(Mul(lambda, Exact(sums.Scale)), Exact(sums.Scale)), Exact(sums.Lambda)).Magnitude()
		gradient := up(sum.ResidualNorm*(1+float64(m)*0x1p-50) + c*rootsNorm*totalNorm + twice*(spread*(totalNorm+effect)+rootsNorm*effect) +
			gamma(m+8)*sum.Diagonal*(1+float64(m)*0x1p-50) + lambdaError*math.Sqrt(total(m, size))/sums.Scale)
		if w.Centers {
			gradient = up(gradient + relative*rootsNorm*fitNorm)
		}
		w.set(target, lowerBound(lambda), floor, 0, up(gradient/sums.Scale))
		target.Size = w.size[t]
		if w.Intercept {
			minRootMass := math.Sqrt(sums.TotalWeight * (1 - float64(sums.N)*0x1p-50))
			target.Mean = up(up(2*c*totalNorm+effect)/minRootMass + 8*unit*(math.Abs(sum.Offset)+math.Abs(f.Intercept[t])))
		}
	}
	return b
}

// Enough reports whether the bound on the error of f is at most a thousandth of the Size of each target in s.Sums.
func (s *Primal) Enough(b *ErrorBound) bool {
	for c, target := range s.Sums.Targets {
		if !(b.Uniform(c, b.Root*b.Root) <= 1e-3*target.Size) {
			return false
		}
	}
	return true
}

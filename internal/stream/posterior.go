package stream

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Posterior is the Gaussian process whose mean is the solution of Equations:
//
//	y_i = f(x_i) + b + noise,  f(x) = φ(x)ᵀβ + r(x),  β ~ N(0, s² S⁻¹),  noise ~ N(0, s²λ/w_i)
//
// An intercept b has a flat prior. For Centers, r has the variance s²(k(x, x) − φᵀS⁻¹φ), is assumed to be zero at
// the samples, and is independent of the y_i (deterministic training conditional, Quiñonero-Candela and Rasmussen
// 2005, equation 20). For Fourier, r is zero.
type Posterior struct {
	// Factors holds the Cholesky factors of two matrices: S = TᵀT and λI + T⁻ᵀΦᵀWΦT⁻¹ = AAᵀ. For Centers it is (M+1)×M:
	// T is the upper triangle of its first M rows and A the lower triangle of its last M rows. For Fourier, T is I, and
	// A is the lower triangle of the M×M matrix Factors.
	Factors backend.Host[float64]
	Shift   []float64 // A⁻¹T⁻ᵀΦᵀW1/Σw for Φ without centering, M numbers; nil without an intercept
	Weight  float64   // Σw over the samples
	// Scale holds s² of each output: 1 if Unit is set, and otherwise Quadratic/(N + (1 − M/N)R/λ), where N is Σw,
	// or Σw − 1 with an intercept. R is ResidualTrace if N > M and otherwise 0. For N ≤ 0, s² is 1. The term with
	// R follows from a process in which r has independent values at the samples (Snelson and Ghahramani 2006),
	// because Quadratic/N would count the variation of r as noise.
	Scale  []float64
	Unit   bool
	Lambda float64 // λ of the penalty
	// Quadratic holds Σ w_i (y_i − φ_iᵀβ − b)²/λ + βᵀSβ of each output. For Centers, ResidualTrace is the sum
	// Σ w_i (k(x_i, x_i) − φ_iᵀS⁻¹φ_i).
	Quadratic     []float64
	ResidualTrace float64
	// Log is the log marginal likelihood log p(Y), summed over the outputs, for s² = Quadratic/N, or for s² = 1 if
	// Unit is set. With an intercept, Log is the restricted likelihood, in which b is integrated out. A sample of
	// weight w counts as w samples.
	Log float64
	// Bound, for Centers, is a lower bound on the log marginal likelihood of the process with the
	// kernel k (Titsias 2009, equation 9): Log − t Σ w_i (k(x_i, x_i) − φ_iᵀS⁻¹φ_i)/2λ for t outputs.
	// Bound is a criterion for choosing the kernel and the centers; Log is not.
	Bound float64
}

// PosteriorBytes returns the memory, in bytes, of the Posterior and of its computation, without the solution.
func PosteriorBytes(n, m, t int) int64 {
	return numeric.Bytes(numeric.Total(numeric.Elements(m+1, m), numeric.Elements(2*m, 1), int64(PieceRows(n, m)), int64(t)))
}

// Posterior computes the posterior in one pass, for the solution s and a preconditioner from
// FullFalkon or Normal. s² is 1 if unit is set.
func (w *Equations) Posterior(pre *Preconditioner, s *Solution, unit bool) (*Posterior, error) {
	var factors, root backend.Matrix[float64]
	switch f := pre.Preconditioner.(type) {
	case *falkon:
		factors, root = f.storage, f.t
	case Factored:
		factors = f.L
	}
	quadratic, err := w.quadratic(s)
	if err != nil {
		return nil, err
	}
	for _, j := range w.Constant() {
		if w.Intercept { // the intercept alone fits a constant target
			quadratic[j] = 0
		}
	}
	p := &Posterior{Weight: w.feed.total, Lambda: w.Lambda, Unit: unit, Quadratic: quadratic, ResidualTrace: max(0, w.kernelTrace-w.explainedTrace)}
	var mean backend.Matrix[float64]
	if w.Intercept {
		if mean, err = w.mem.New(w.m, 1); err != nil {
			return nil, err
		}
		defer w.mem.Free(mean)
		if err := numeric.ScaleRows(w.b, mean, w.g, numeric.Repeated(1/w.feed.total, w.m)); err != nil {
			return nil, err
		}
		if root != nil {
			w.b.Trsm(backend.Left, backend.Upper, backend.Transpose, 1, root, mean)
		}
	}
	return p, p.complete(w.b, factors, mean)
}

// PosteriorOf returns the posterior for sums over the samples. The fields Weight, Unit, Lambda, Quadratic and
// ResidualTrace of p must be set. The lower triangle of h is λI + T⁻ᵀΦᵀWΦT⁻¹, with Φ centered if there is an
// intercept. The argument root is T, or has no rows if S = I. The argument mean is T⁻ᵀΦᵀW1/Σw for Φ without
// centering, or nil without an intercept.
func PosteriorOf(ctx context.Context, dev backend.Device, p Posterior, h, root backend.Host[float64], mean []float64) (*Posterior, error) {
	f := run.New(ctx, dev, nil)
	defer f.Mem.FreeAll()
	m, offset := h.Rows, 0
	if root.Rows > 0 {
		offset = 1
	}
	packed := backend.NewHost[float64](m+offset, m)
	for i := range m {
		if offset > 0 {
			copy(packed.Row(i)[i:], root.Row(i)[i:])
		}
		copy(packed.Row(i + offset)[:i+1], h.Row(i)[:i+1])
	}
	factors, err := f.Mem.Place(packed)
	if err != nil {
		return nil, err
	}
	if err := f.B.Potrf(backend.Lower, factors.View(offset, 0, m, m)); err != nil {
		var pivot *backend.PivotError
		if errors.As(err, &pivot) {
			err = numeric.ExplainPivot(pivot, "the equations of the posterior are not positive definite at function %d (pivot %.3g): {raise $lambda}", pivot.Index+1, pivot.Value)
		}
		return nil, err
	}
	var meanMatrix backend.Matrix[float64]
	if mean != nil {
		if meanMatrix, err = f.Mem.Place(numeric.Column(slices.Clone(mean))); err != nil {
			return nil, err
		}
	}
	return &p, p.complete(f.B, factors, meanMatrix)
}

// complete sets the factors and the shift of p, and the fields that depend on them. The matrix factors has the
// form of p.Factors; if S = I, its upper triangle is arbitrary. complete overwrites mean (see PosteriorOf).
func (p *Posterior) complete(b backend.Backend[float64], factors, mean backend.Matrix[float64]) error {
	rows, m := factors.Dims()
	p.Factors = backend.NewHost[float64](rows, m)
	if err := b.Download(p.Factors, factors); err != nil {
		return err
	}
	for i := 0; rows == m && i < m; i++ {
		clear(p.Factors.Row(i)[i+1:])
	}
	if mean != nil {
		b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, factors.View(rows-m, 0, m, m), mean)
		shift := backend.NewHost[float64](m, 1)
		if err := b.Download(shift, mean); err != nil {
			return err
		}
		p.Shift = shift.Data
	}
	return p.evaluate()
}

// evaluate sets Scale, Log and Bound from the other fields.
func (p *Posterior) evaluate() error {
	m := p.Factors.Cols
	count, determinant := p.count(), 0.0
	for i := range m {
		determinant += 2 * elementary.Log(p.Factors.Row(p.Factors.Rows - m + i)[i])
	}
	if p.Shift != nil {
		determinant += elementary.Log(p.Weight)
	}
	determinant += (count - float64(m)) * elementary.Log(p.Lambda)
	p.Scale, p.Log = p.scales(count), 0
	if count > float64(m) {
		p.Scale = p.scales(count + (1-float64(m)/count)*p.ResidualTrace/p.Lambda)
	}
	for j, s := range p.scales(count) {
		p.Log -= (p.Quadratic[j]/s + count*elementary.Log(2*math.Pi*s) + determinant) / 2
	}
	p.Bound = p.Log - float64(len(p.Quadratic))*p.ResidualTrace/(2*p.Lambda)
	if math.IsNaN(p.Log) || math.IsInf(p.Log, 0) {
		return kernels.Overflow(errors.New("the likelihood is not finite: scale the features and targets down"))
	}
	return nil
}

// count returns N: Σw, or Σw − 1 with an intercept.
func (p *Posterior) count() float64 {
	if p.Shift != nil {
		return p.Weight - 1
	}
	return p.Weight
}

// scales returns Quadratic/count for each output, or 1 if the quotient is not positive or Unit is set.
func (p *Posterior) scales(count float64) []float64 {
	list := numeric.Repeated(1.0, len(p.Quadratic))
	for j, q := range p.Quadratic {
		if !p.Unit && q > 0 && count > 0 {
			list[j] = q / count
		}
	}
	return list
}

// quadratic returns Σ w_i (y_i − φ_iᵀβ − b)²/λ + βᵀSβ of each output, from differences so that no digits cancel.
func (w *Equations) quadratic(s *Solution) ([]float64, error) {
	rows, _ := w.phi.Dims()
	bias := backend.NewHost[float64](1, w.t)
	for j, v := range s.Bias {
		bias.Data[j] = v
		if w.feed.offset != nil {
			bias.Data[j] -= w.feed.offset[j]
		}
	}
	var matrices [3]backend.Matrix[float64]
	for i, h := range []backend.Host[float64]{s.Beta, bias, numeric.Column(numeric.Repeated(1.0, rows))} {
		m, err := w.mem.Place(h)
		if err != nil {
			return nil, err
		}
		defer w.mem.Free(m)
		matrices[i] = m
	}
	beta, b, ones := matrices[0], matrices[1], matrices[2]
	penalty, err := w.mem.New(w.m, w.t)
	if err != nil {
		return nil, err
	}
	defer w.mem.Free(penalty)
	w.basis.Penalize(penalty, beta, 1)
	sums, dots := make([]float64, w.t), make([]float64, w.t)
	if err := w.b.ColDot(sums, beta, penalty); err != nil {
		return nil, err
	}
	err = w.forEachPiece(func(p piece) error {
		r, _ := p.y.Dims()
		w.b.Gemm(backend.NoTrans, backend.NoTrans, -1, p.phi, beta, 1, p.y)
		w.b.Gemm(backend.NoTrans, backend.NoTrans, -1, ones.View(0, 0, r, 1), b, 1, p.y)
		if p.weights != nil {
			if err := numeric.ScaleRows(w.b, p.y, p.y, numeric.Roots(p.weights)); err != nil {
				return err
			}
		}
		if err := w.b.ColDot(dots, p.y, p.y); err != nil {
			return err
		}
		for j, v := range dots {
			sums[j] += v / w.Lambda
		}
		return nil
	})
	return sums, err
}

// Variance returns the variances of f + b at the points, divided by s² and without the noise:
//
//	k(x, x) − φᵀS⁻¹φ + λ(φ − φ̄)ᵀ(ΦᵀWΦ + λS)⁻¹(φ − φ̄) + λ/Σw
//
// with the mean φ̄ of φ over the samples and Φ centered. Without an intercept φ̄ and the last term
// are 0. For Fourier the first two terms are absent. If rounding makes the difference of the first
// two terms negative, Variance replaces it by 0. Variance takes 2M² operations for each point.
func (p *Posterior) Variance(ctx context.Context, dev backend.Device, phi Basis, points numeric.Points) ([]float64, error) {
	list := make([]float64, points.Rows)
	f := run.New(ctx, dev, nil)
	defer f.Mem.FreeAll()
	ws, err := p.newWorkspace(&f, phi, min(points.Rows, varianceRows))
	if err != nil {
		return nil, err
	}
	if ws.root != nil {
		copy(list, phi.KernelDiagonal(points))
	}
	rows, _ := ws.phi.Dims()
	for first := 0; first < points.Rows; first += rows {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		values, err := ws.fill(points.Slice(first, min(rows, points.Rows-first)))
		if err != nil {
			return nil, err
		}
		if err := ws.variances(values, list[first:], p.Lambda); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// varianceRows is the maximum number of points that Variance processes together.
const varianceRows = 512

// VarianceBytes returns the memory of Variance on dev in bytes, without the memory of the basis.
func (p *Posterior) VarianceBytes(dev backend.Device, points numeric.Points) int64 {
	rows, b := min(points.Rows, varianceRows), dev.F64()
	return numeric.Total(numeric.DensePoints(p.Factors).PlacedBytes(b, p.Factors.Rows), points.PlacedBytes(b, rows), numeric.Bytes(numeric.Elements(rows+1, p.Factors.Cols+1)))
}

// Functionals returns the variances of linear functionals of f, divided by s². The functionals must be 0 for
// constants. Row i of the r×M matrix g holds the values of functional i for the functions φ, and prior[i] is the
// variance of functional i under the kernel k. The slice prior is not read for Fourier.
func (p *Posterior) Functionals(ctx context.Context, dev backend.Device, phi Basis, g backend.Host[float64], prior []float64) ([]float64, error) {
	f := run.New(ctx, dev, nil)
	defer f.Mem.FreeAll()
	ws, err := p.newWorkspace(&f, phi, g.Rows)
	if err != nil {
		return nil, err
	}
	ws.shift, ws.invWeight = nil, 0
	if err := f.B.Upload(ws.phi, g); err != nil {
		return nil, err
	}
	list := make([]float64, g.Rows)
	if ws.root != nil {
		copy(list, prior)
		f.B.Trsm(backend.Right, backend.Upper, backend.NoTrans, 1, ws.root, ws.phi)
	}
	return list, ws.variances(ws.phi, list, p.Lambda)
}

type workspace struct {
	*run.Frame
	basis            Basis
	root, a          backend.Matrix[float64] // T and A; root is nil for Fourier
	phi, ones, shift backend.Matrix[float64] // buffers of r×M and r×1 elements, and p.Shift; ones and shift are nil without an intercept
	invWeight        float64                 // 1/Σw, or 0 without an intercept
}

// newWorkspace copies p to the device of f and allocates memory for the given number of points.
func (p *Posterior) newWorkspace(f *run.Frame, phi Basis, rows int) (ws workspace, err error) {
	ws, m := workspace{Frame: f, basis: phi}, phi.Size()
	if err := phi.Place(f.B, f.Mem); err != nil {
		return ws, err
	}
	factors, err := f.Mem.Place(p.Factors)
	if err != nil {
		return ws, err
	}
	ws.a = factors
	if p.Factors.Rows > m {
		ws.root, ws.a = factors.View(0, 0, m, m), factors.View(1, 0, m, m)
	}
	if p.Shift != nil {
		ws.invWeight = 1 / p.Weight
		if ws.shift, err = f.Mem.Place(numeric.Column(p.Shift)); err != nil {
			return ws, err
		}
		if ws.ones, err = f.Mem.Place(numeric.Column(numeric.Repeated(1.0, rows))); err != nil {
			return ws, err
		}
	}
	ws.phi, err = f.Mem.New(rows, m)
	return ws, err
}

// fill writes ΦT⁻¹ for the points to the first rows of ws.phi, and returns these rows.
func (ws *workspace) fill(points numeric.Points) (backend.Matrix[float64], error) {
	_, m := ws.phi.Dims()
	phi := ws.phi.View(0, 0, points.Rows, m)
	x, err := points.Place(ws.B)
	if err != nil {
		return nil, err
	}
	defer x.Free()
	ws.basis.Fill(phi, x)
	if ws.root != nil {
		ws.B.Trsm(backend.Right, backend.Upper, backend.NoTrans, 1, ws.root, phi)
	}
	return phi, ws.B.Sync()
}

// reduce replaces ΦT⁻¹, the contents of phi, by ΦT⁻¹A⁻ᵀ − 1ūᵀ as in Sample.
func (ws *workspace) reduce(phi backend.Matrix[float64]) {
	r, _ := phi.Dims()
	ws.B.Trsm(backend.Right, backend.Lower, backend.Transpose, 1, ws.a, phi)
	if ws.shift != nil {
		ws.B.Gemm(backend.NoTrans, backend.Transpose, -1, ws.ones.View(0, 0, r, 1), ws.shift, 1, phi)
	}
}

// variances adds the other terms of the formula of Variance to the elements of list, which are k(x, x).
// The rows of values, which variances overwrites, are φT⁻¹ for the row φ of basis values of each point.
func (ws *workspace) variances(values backend.Matrix[float64], list []float64, lambda float64) error {
	square := func(add func(i int, sum float64)) error {
		return numeric.EachRow(ws.B, values, func(i int, row []float64) {
			sum := 0.0
			for _, v := range row {
				sum += v * v
			}
			add(i, sum)
		})
	}
	if ws.root != nil {
		if err := square(func(i int, sum float64) { list[i] = max(0, list[i]-sum) }); err != nil {
			return err
		}
	}
	ws.reduce(values)
	return square(func(i int, sum float64) { list[i] += lambda * (sum + ws.invWeight) })
}

// SampleBytes returns the memory of Sample on dev for n points in bytes, without the points and the basis.
func (p *Posterior) SampleBytes(dev backend.Device, n, count int) int64 {
	m := p.Factors.Cols
	elements := numeric.Total(numeric.Elements(n, m), numeric.Elements(2*n+m+1, count), int64(2*m+n))
	if p.Factors.Rows > m { // for the factor C
		elements = numeric.Total(elements, numeric.Elements(n, n))
	}
	return numeric.Total(numeric.DensePoints(p.Factors).PlacedBytes(dev.F64(), p.Factors.Rows), numeric.Bytes(elements))
}

// Sample returns count draws of f + b at the n points, as columns, minus the mean and divided by s. With T and A
// of p.Factors, each draw is
//
//	√λ ((ΦT⁻¹A⁻ᵀ − 1ūᵀ)z + z₀/√Σw) + Cr,  CCᵀ = k(X, X) − ΦS⁻¹Φᵀ
//
// where z, z₀ and r are standard normal, and ū is the mean of the rows of ΦT⁻¹A⁻ᵀ over the samples. Without an
// intercept ū and the term z₀/√Σw are 0. For Fourier the term Cr is 0. If CCᵀ is not positive definite, Sample
// increases its diagonal. Sample takes nM² + n²M + n³/3 operations.
func (p *Posterior) Sample(ctx context.Context, dev backend.Device, phi Basis, k kernels.Kernel, points numeric.Points, count int, rng *rand.Rand) (backend.Host[float64], error) {
	n, m := points.Rows, p.Factors.Cols
	out := backend.NewHost[float64](n, count)
	f := run.New(ctx, dev, nil)
	defer f.Mem.FreeAll()
	ws, err := p.newWorkspace(&f, phi, n)
	if err != nil {
		return out, err
	}
	normal := func(rows int) (backend.Matrix[float64], error) {
		h := backend.NewHost[float64](rows, count)
		for i := range h.Data {
			h.Data[i] = elementary.Normal(rng)
		}
		return f.Mem.Place(h)
	}
	sum, err := f.Mem.New(n, count)
	if err != nil {
		return out, err
	}
	var values backend.Matrix[float64]
	if ws.root == nil {
		values, err = ws.fill(points)
	} else {
		values, err = ws.addRest(k, points, sum, normal)
	}
	if err != nil {
		return out, err
	}
	ws.reduce(values)
	z, err := normal(m)
	if err != nil {
		return out, err
	}
	f.B.Gemm(backend.NoTrans, backend.NoTrans, math.Sqrt(p.Lambda), values, z, 1, sum)
	if ws.shift != nil {
		if z, err = normal(1); err != nil {
			return out, err
		}
		f.B.Gemm(backend.NoTrans, backend.NoTrans, math.Sqrt(p.Lambda*ws.invWeight), ws.ones, z, 1, sum)
	}
	return out, f.B.Download(out, sum)
}

// addRest adds the term Cr of each draw (see Sample) to sum, and returns ΦT⁻¹ for the points.
func (ws *workspace) addRest(k kernels.Kernel, points numeric.Points, sum backend.Matrix[float64], normal func(rows int) (backend.Matrix[float64], error)) (values backend.Matrix[float64], err error) {
	n := points.Rows
	c, err := ws.Mem.New(n, n)
	if err != nil {
		return nil, err
	}
	x, err := points.Place(ws.B)
	if err != nil {
		return nil, err
	}
	defer x.Free()
	trace := numeric.Trace(points.Diagonal(k))
	err = numeric.FactorJittered(numeric.NewJitter(4*numeric.Epsilon*trace, trace, numeric.Epsilon), ws.B, c, func() (err error) {
		if values, err = ws.fill(points); err == nil {
			ws.B.Gram(c, k, x, x)
			ws.B.Syrk(backend.Lower, backend.NoTrans, -1, values, 1, c)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	h := backend.NewHost[float64](n, n)
	if err := ws.B.Download(h, c); err != nil {
		return nil, err
	}
	for i := range n {
		clear(h.Row(i)[i+1:])
	}
	if err := ws.B.Upload(c, h); err != nil {
		return nil, err
	}
	r, err := normal(n)
	if err != nil {
		return nil, err
	}
	ws.B.Gemm(backend.NoTrans, backend.NoTrans, 1, c, r, 1, sum)
	return values, nil
}

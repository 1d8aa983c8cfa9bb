package stream

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// Prior returns the posterior for no samples and a basis of m functions with S = I. Update adds samples to it. In the
// first call of Update, beta must be 0, and bias must be near the means of the targets. The argument mean of Prior must
// be near the mean of φ over the samples. A nil mean means no intercept.
func Prior(lambda float64, unit bool, m, t int, mean []float64) *Posterior {
	p := &Posterior{Factors: backend.NewHost[float64](m, m), Lambda: lambda, Unit: unit, Quadratic: make([]float64, t)}
	root := math.Sqrt(lambda)
	for i := range m {
		p.Factors.Row(i)[i] = root
	}
	for _, v := range mean {
		p.Shift = append(p.Shift, v/root)
	}
	return p
}

// UpdateBytes returns the memory of Update for n samples in bytes, without the samples and the basis.
func (p *Posterior) UpdateBytes(n, t int) int64 {
	m, rows := p.Factors.Cols, min(n, updateRows)
	return numeric.Bytes(numeric.Total(numeric.Elements(p.Factors.Rows+2*m+rows, m), numeric.Elements(3*m+2*rows+2, t), numeric.Elements(2*rows+4*m, 1)))
}

const updateRows = 512

// Update appends samples, or removes samples if sign is −1. It returns the new posterior and the new solution, β and b,
// for the same basis and λ. It needs the previous solution, and takes O(rM²) operations for r samples and O(M³) for the
// factors.
//
// Let T and A be the factors of p, v = T⁻ᵀφ, v̄ and ȳ the weighted means before the update, Σw the total weight after
// it, and ΔΣ the sum over the added samples, or minus the sum over the removed samples. For AAᵀ − λI = Σ w (v − v̄)(v −
// v̄)ᵀ the update is
//
//	AAᵀ ← AAᵀ + ΔΣ w (v − v̄)(v − v̄)ᵀ − ddᵀ/Σw,  d = ΔΣ w (v − v̄)
//
// and it has the same form for AAᵀTβ = Σ w (v − v̄)(y − ȳ) and Σ w (y − ȳ)². v̄, ȳ and d are 0 without an intercept.
func (p *Posterior) Update(ctx context.Context, dev backend.Device, phi Basis, x numeric.Points, y backend.Host[float64], weights []float64, sign float64, beta backend.Host[float64], bias []float64) (q *Posterior, b backend.Host[float64], c []float64, err error) {
	f := run.New(ctx, dev, nil)
	defer f.Mem.FreeAll()
	t, rows := y.Cols, min(x.Rows, updateRows)
	u, err := p.sums(&f, phi, rows, beta, bias)
	if err != nil {
		return nil, b, nil, err
	}
	for i := 0; i < x.Rows; i += rows {
		if ctx.Err() != nil {
			return nil, b, nil, context.Cause(ctx)
		}
		r := min(rows, x.Rows-i)
		w := numeric.Repeated(1.0, r)
		if weights != nil {
			w = weights[i : i+r]
		}
		if err := u.add(x.Slice(i, r), y.View(i, 0, r, t), w, sign); err != nil {
			return nil, b, nil, err
		}
	}
	return u.finish()
}

// Merge returns the posterior and the solution for the samples of p and other. The arguments beta and bias hold the two
// solutions. Both posteriors must have the same λ and the same T in Factors. Merge takes O(M³) operations.
func (p *Posterior) Merge(ctx context.Context, dev backend.Device, phi Basis, other *Posterior, beta [2]backend.Host[float64], bias [2][]float64) (q *Posterior, b backend.Host[float64], c []float64, err error) {
	f := run.New(ctx, dev, nil)
	defer f.Mem.FreeAll()
	u, err := p.sums(&f, phi, 1, beta[0], bias[0])
	if err != nil {
		return nil, b, nil, err
	}
	v, err := other.sums(&f, phi, 1, beta[1], bias[1])
	if err != nil {
		return nil, b, nil, err
	}
	if err := u.addSums(v); err != nil {
		return nil, b, nil, err
	}
	return u.finish()
}

// sums returns the sums of p that an update changes, with memory for blocks of the given number of rows.
func (p *Posterior) sums(f *run.Frame, phi Basis, rows int, beta backend.Host[float64], bias []float64) (*update, error) {
	ws, err := p.newWorkspace(f, phi, rows)
	if err != nil {
		return nil, err
	}
	m, t := p.Factors.Cols, beta.Cols
	u := &update{workspace: ws, p: p, t: t, factors: backend.NewHost[float64](p.Factors.Rows, m)}
	for _, a := range []struct {
		to         *backend.Matrix[float64]
		rows, cols int
	}{{&u.h, m, m}, {&u.lower, m, m}, {&u.z, m, t}, {&u.gamma, m, t}, {&u.tmp, m, t}, {&u.y, rows, t}, {&u.w, rows, 1}, {&u.d, m, 1}, {&u.e, 1, t}, {&u.mean, m, 1}} {
		if *a.to, err = f.Mem.New(a.rows, a.cols); err != nil {
			return nil, err
		}
	}
	return u, u.begin(beta, bias)
}

type update struct {
	workspace
	p            *Posterior
	t            int
	h, lower     backend.Matrix[float64] // AAᵀ in the lower triangle, and a scratch matrix
	factors      backend.Host[float64]   // a scratch matrix until finish, and then the factors of the result
	z            backend.Matrix[float64] // z = AAᵀTβ
	gamma, tmp   backend.Matrix[float64] // gamma is Tβ; tmp is a scratch matrix
	y, w         backend.Matrix[float64] // targets and weights of a block of samples
	d, mean      backend.Matrix[float64] // d of Update and v̄, M×1
	e            backend.Matrix[float64] // e is ΔΣ w (y − ȳ), 1×t
	ybar         []float64
	squares      []float64 // Σ w (y − ȳ)² of each output
	weight, rest float64
}

// triangle copies a triangle of the factors to the scratch matrix, with zeros outside the triangle.
func (u *update) triangle(upper bool) error {
	m := u.p.Factors.Cols
	h := u.factors.View(0, 0, m, m)
	for i := range m {
		clear(h.Row(i))
		if upper {
			copy(h.Row(i)[i:], u.p.Factors.Row(i)[i:])
		} else {
			copy(h.Row(i)[:i+1], u.p.Factors.Row(u.p.Factors.Rows - m + i)[:i+1])
		}
	}
	return u.B.Upload(u.lower, h)
}

func (u *update) begin(beta backend.Host[float64], bias []float64) error {
	p := u.p
	u.weight, u.rest = p.Weight, p.ResidualTrace
	if err := u.B.Upload(u.gamma, beta); err != nil {
		return err
	}
	if u.root != nil {
		if err := u.triangle(true); err != nil {
			return err
		}
		u.B.Gemm(backend.NoTrans, backend.NoTrans, 1, u.lower, u.gamma, 0, u.tmp)
		numeric.Copy(u.B, u.gamma, u.tmp)
	}
	if err := u.triangle(false); err != nil {
		return err
	}
	u.B.Syrk(backend.Lower, backend.NoTrans, 1, u.lower, 0, u.h)
	u.B.Gemm(backend.Transpose, backend.NoTrans, 1, u.lower, u.gamma, 0, u.tmp)
	u.B.Gemm(backend.NoTrans, backend.NoTrans, 1, u.lower, u.tmp, 0, u.z)
	u.squares = make([]float64, u.t)
	if err := u.B.ColDot(u.squares, u.gamma, u.z); err != nil {
		return err
	}
	for j, q := range p.Quadratic {
		u.squares[j] += p.Lambda * q
	}
	u.ybar = make([]float64, u.t)
	if u.shift == nil {
		return nil
	}
	u.B.Gemm(backend.NoTrans, backend.NoTrans, 1, u.lower, u.shift, 0, u.mean)
	means := backend.NewHost[float64](1, u.t)
	u.B.Gemm(backend.Transpose, backend.NoTrans, 1, u.mean, u.gamma, 0, u.e)
	if err := u.B.Download(means, u.e); err != nil {
		return err
	}
	for j := range u.ybar {
		u.ybar[j] = bias[j] + means.Data[j]
	}
	numeric.Zero(u.B, u.e)
	return nil
}

func (u *update) add(x numeric.Points, y backend.Host[float64], weights []float64, sign float64) error {
	phi, err := u.fill(x)
	if err != nil {
		return err
	}
	if u.root != nil {
		kernelDiag := u.basis.KernelDiagonal(x)
		err := numeric.EachRow(u.B, phi, func(i int, row []float64) {
			for _, v := range row {
				kernelDiag[i] -= v * v
			}
			u.rest += sign * weights[i] * max(0, kernelDiag[i])
		})
		if err != nil {
			return err
		}
	}
	roots := numeric.Roots(weights)
	h := numeric.Clone(y)
	for i := range h.Rows {
		u.weight += sign * weights[i]
		for j := range h.Row(i) {
			v := roots[i] * (h.Row(i)[j] - u.ybar[j])
			h.Row(i)[j] = v
			u.squares[j] += sign * v * v
		}
	}
	r := h.Rows
	block, w := u.y.View(0, 0, r, u.t), u.w.View(0, 0, r, 1)
	if err := u.B.Upload(block, h); err != nil {
		return err
	}
	if err := u.B.Upload(w, numeric.Column(roots)); err != nil {
		return err
	}
	if u.shift != nil {
		u.B.Gemm(backend.NoTrans, backend.Transpose, -1, u.ones.View(0, 0, r, 1), u.mean, 1, phi)
	}
	if err := numeric.ScaleRows(u.B, phi, phi, roots); err != nil {
		return err
	}
	u.B.Syrk(backend.Lower, backend.Transpose, sign, phi, 1, u.h)
	u.B.Gemm(backend.Transpose, backend.NoTrans, sign, phi, block, 1, u.z)
	if u.shift != nil {
		u.B.Gemm(backend.Transpose, backend.NoTrans, sign, phi, w, 1, u.d)
		u.B.Gemm(backend.Transpose, backend.NoTrans, sign, w, block, 1, u.e)
	}
	return u.B.Sync()
}

// addSums adds the sums of v to u. Let δ and ε be the differences v − u of the fields mean and ybar, and W the weight
// of v. Relative to the means of u, the fields h, z and squares of v are
//
//	h − λI + W δδᵀ,  z + W δεᵀ,  squares + W ε²
func (u *update) addSums(v *update) error {
	m := u.p.Factors.Cols
	u.weight += v.weight
	u.rest += v.rest
	u.B.ColAxpy(numeric.Repeated(1.0, m), v.h, u.h)
	u.B.AddDiag([]float64{-u.p.Lambda}, u.h)
	u.B.ColAxpy(numeric.Repeated(1.0, u.t), v.z, u.z)
	e := backend.NewHost[float64](1, u.t)
	for j := range u.t {
		difference := v.ybar[j] - u.ybar[j]
		u.squares[j] += v.squares[j] + v.weight*difference*difference
		e.Data[j] = v.weight * difference
	}
	if u.shift == nil {
		return nil
	}
	if err := u.B.Upload(u.e, e); err != nil {
		return err
	}
	numeric.Copy(u.B, u.d, v.mean)
	u.B.ColAxpy([]float64{-1}, u.mean, u.d)
	u.B.Syrk(backend.Lower, backend.NoTrans, v.weight, u.d, 1, u.h)
	u.B.Gemm(backend.NoTrans, backend.NoTrans, 1, u.d, u.e, 1, u.z)
	return numeric.ScaleRows(u.B, u.d, u.d, numeric.Repeated(v.weight, m))
}

// errRemoved means that a removed sample was not in the fit, or that no sample remains in the fit.
var errRemoved = errors.New("the equations of the remaining samples are not positive definite: some removed samples were not in the fit, or no sample of the fit is left")

// finish returns the posterior and the solution that follow from the sums.
func (u *update) finish() (q *Posterior, beta backend.Host[float64], bias []float64, err error) {
	p, m := u.p, u.p.Factors.Cols
	if !(u.weight > 0x1p-40*p.Weight) {
		return nil, beta, nil, errRemoved
	}
	e := backend.NewHost[float64](1, u.t)
	if u.shift != nil {
		if err := u.B.Download(e, u.e); err != nil {
			return nil, beta, nil, err
		}
		u.B.Syrk(backend.Lower, backend.NoTrans, -1/u.weight, u.d, 1, u.h)
		u.B.Gemm(backend.NoTrans, backend.NoTrans, -1/u.weight, u.d, u.e, 1, u.z)
		u.B.ColAxpy([]float64{1 / u.weight}, u.d, u.mean)
		for j, v := range e.Data {
			u.squares[j] -= v * v / u.weight
			u.ybar[j] += v / u.weight
		}
	}
	if err := u.B.Potrf(backend.Lower, u.h); err != nil {
		var pivot *backend.PivotError
		if errors.As(err, &pivot) {
			err = errRemoved
		}
		return nil, beta, nil, err
	}
	numeric.Copy(u.B, u.gamma, u.z)
	numeric.SolveCholesky(u.B, u.h, u.gamma)
	q = &Posterior{
		Factors: u.factors, Weight: u.weight, Unit: p.Unit, Lambda: p.Lambda,
		Quadratic: make([]float64, u.t), ResidualTrace: max(0, u.rest),
	}
	if err := u.B.ColDot(q.Quadratic, u.gamma, u.z); err != nil {
		return nil, beta, nil, err
	}
	for j, v := range q.Quadratic {
		q.Quadratic[j] = max(0, u.squares[j]-v) / p.Lambda
	}
	bias = slices.Clone(u.ybar)
	if u.shift != nil {
		u.B.Gemm(backend.Transpose, backend.NoTrans, 1, u.mean, u.gamma, 0, u.e)
		if err := u.B.Download(e, u.e); err != nil {
			return nil, beta, nil, err
		}
		for j, v := range e.Data {
			bias[j] -= v
		}
		u.B.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, u.h, u.mean)
		shift := backend.NewHost[float64](m, 1)
		if err := u.B.Download(shift, u.mean); err != nil {
			return nil, beta, nil, err
		}
		q.Shift = shift.Data
	}
	if u.root != nil {
		u.B.Trsm(backend.Left, backend.Upper, backend.NoTrans, 1, u.root, u.gamma)
	}
	beta = backend.NewHost[float64](m, u.t)
	if err := u.B.Download(beta, u.gamma); err != nil {
		return nil, beta, nil, err
	}
	err = numeric.EachRow(u.B, u.h, func(i int, row []float64) {
		copy(q.Factors.Row(i)[i:], p.Factors.Row(i)[i:])
		copy(q.Factors.Row(q.Factors.Rows - m + i)[:i+1], row)
	})
	if err != nil {
		return nil, beta, nil, err
	}
	return q, beta, bias, q.evaluate()
}

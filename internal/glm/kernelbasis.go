package glm

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// If λ is small relative to the rounding errors of K, only f can be computed accurately, and not α, which is
// proportional to 1/λ. No factor of K + λW⁻¹, or of its diagonal scaling I + W^½KW^½/λ, then has a correct digit
// (Higham 2002, theorem 10.6). Let K = FFᵀ, where F has as many columns as the rank of K, and f = Fβ + b at the
// samples. Then minimizing
//
//	Σ_i w_i (−ln Pr(y_i | x_i)) + (λ/2)‖β‖²
//
// is logistic regression on the rows of F, with the Hessian FᵀWF + λI. Let the matrix L consist of the pivot rows of F.
// The α of the model is L⁻ᵀβ at the pivot rows, and 0 at all other rows.

// jointUnknowns is the maximum order of the Hessian for which Newton's method treats all classes together.
const jointUnknowns = 4096

func (m *kernelLogit) joint() bool {
	rank := m.x.Rows
	if _, ok := m.k.(kernels.Linear); ok {
		rank = min(rank, m.x.Cols)
	}
	return (rank+1)*m.f.Cols <= jointUnknowns
}

// byBasis fits the model with the columns of F as features. If K is 0 or not positive semidefinite, it returns nil.
func (m *kernelLogit) byBasis(index []int, tol float64, maxIter int) (*KernelResult, error) {
	t := m.t
	if !m.k.IsPSD() {
		return nil, nil
	}
	k, err := pivotedCholesky(t.Ctx, t.Dev, m.k, m.x, m.memory)
	if err != nil {
		return nil, err
	}
	if len(k.pivots) == 0 { // F has no columns because K = 0
		return nil, nil
	}
	n, r, columns := m.f.Rows, len(k.pivots), m.f.Cols
	// Params.Tol bounds the predicted decrease of the loss, which is proportional to the square of the gradient.
	// The argument tol bounds the gradient.
	l := Params{Solver: Newton, MaxIter: maxIter, Tol: max(tol*tol, 64*epsilon)}
	if err := solvers.Reserve(t.Ctx, t.Dev, m.memory, "kernel-logistic", n, func(n int) int64 { return l.bytes(t.Dev, numeric.Points{Rows: n, Cols: min(r, n)}, n, columns) }); err != nil {
		return nil, err
	}
	f, err := newLogit(t, numeric.DensePoints(k.f), index, m.weights, columns, false, m.lambda, m.intercept)
	if err != nil {
		return nil, err
	}
	defer f.free()
	result, end, err := l.minimize(f)
	if err != nil {
		return nil, err
	}
	beta, b := f.coef(end.theta)
	alpha := backend.NewHost[float64](n, columns)
	for c := range columns { // solve Lᵀα = β
		for p := r - 1; p >= 0; p-- {
			v := beta.Row(p)[c]
			for q := p + 1; q < r; q++ {
				v -= k.f.Row(k.pivots[q])[p] * alpha.Row(k.pivots[q])[c]
			}
			alpha.Row(k.pivots[p])[c] = v / k.f.Row(k.pivots[p])[p]
		}
	}
	fit := &KernelResult{Alpha: alpha, Intercept: b, Steps: m.steps + result.Iters, Rank: r, Loss: end.value, Square: dot(beta, beta)}
	if fit.Residual, err = m.checkBasis(fit, k.f, beta); err != nil {
		return nil, err
	}
	// A residual of √tol suffices: the relative error of the loss is about its square.
	if !(fit.Residual <= math.Sqrt(tol)) {
		return nil, message.Errorf("rounding of the kernel's values leaves a relative residual of %.2g where lambda is %v: {raise $lambda|scale the features so that none is much larger than others}", fit.Residual, m.lambda)
	}
	if result.Warning != "" || fit.Residual > tol {
		fit.Warning = (&shortfall{fit.Steps, result.Iters < maxIter, fit.Residual, tol}).text()
	}
	return fit, nil
}

// checkBasis returns the relative residual of the model: the norm of the function Σ_i (w_i(y − p) − λα_i) k(x_i, ·),
// divided by the sum of the norms of the functions w_i(y − p) k(x_i, ·).
func (m *kernelLogit) checkBasis(fit *KernelResult, f, beta backend.Host[float64]) (float64, error) {
	d := backend.NewHost[float64](m.f.Rows, m.f.Cols)
	err := run.Placed(m.t.B, m.x, fit.Alpha, func(x, alpha backend.Matrix[float64]) error {
		out, err := m.t.B.New(d.Rows, d.Cols)
		if err != nil {
			return err
		}
		defer out.Free()
		m.t.B.GramMul(out, m.k, x, x, alpha)
		return m.t.B.Download(d, out)
	})
	if err != nil {
		return 0, err
	}
	for i := range d.Rows {
		for c, v := range fit.Intercept {
			d.Row(i)[c] += v
		}
	}
	maxDifference, maxScore := 0.0, 1.0
	residual, sizes := addScaled(beta, 0, beta), 0.0
	for p := range beta.Rows {
		for c, v := range beta.Row(p) {
			residual.Row(p)[c] = m.lambda * v
		}
	}

	gaps := backend.NewHost[float64](m.f.Rows, m.f.Cols)
	for i := range m.f.Rows {
		row := d.Row(i)
		size := 0.0
		for _, v := range f.Row(i) {
			size = math.Hypot(size, v)
		}
		for c := range row {
			v := fit.Intercept[c]
			for p, u := range f.Row(i) {
				v += u * beta.Row(p)[c]
			}
			maxDifference, maxScore = max(maxDifference, math.Abs(v-row[c])), max(maxScore, math.Abs(v))
		}
		gap(gaps.Row(i), row, m.y.Row(i))
		for c, v := range gaps.Row(i) {
			v *= m.weight(i)
			sizes += math.Abs(v) * size
			for p, u := range f.Row(i) {
				residual.Row(p)[c] -= v * u
			}
		}
	}
	if sizes == 0 {
		return 0, nil
	}
	return math.Sqrt(dot(residual, residual)) / sizes, nil
}

package learners

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/markov"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/internal/verified"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// Bounded is implemented by models that can bound the errors of their predictions: the distances
// from the predictions of the exact solution of the equations that Fit solves.
type Bounded interface {
	// HasBound reports whether the model has a bound. Every Fit of KernelRidge and GaussianProcess makes a bound
	// if the kernel is positive semidefinite, λ > 0, and the rounding errors of its kernel values are known.
	// Ridge, NystromRidge and FourierRidge make a bound only with the field Bound or with Options.Prove.
	HasBound() bool
	// PredictBound returns predictions at the rows of x, and for each prediction a bound on its distance from the
	// prediction of the exact solution. The predictions equal those of Predict up to rounding. The bounds take O(d + t)
	// operations for each row, for d features and t targets, and O(nt) more after a fit with Options.Prove. After a fit
	// with the field Bound, PredictBound computes in more than 80 bits, which takes much longer; the bounds then nearly
	// equal the errors. This is also the case for Ridge, NystromRidge and FourierRidge after a small fit with
	// Options.Prove.
	PredictBound(ctx context.Context, dev backend.Device, x mat.Matrix) (values, bounds *mat.Dense, err error)
}

// An errorBound holds the bound of a model that is a sum of functions k(x_i, x). The field `bound`
// is nil if the model has no bound.
type errorBound struct {
	bound *verified.ErrorBound
	// roundoff caches results of roundoffOn: roundoff[0] is for devices that are not from package
	// cpu, roundoff[1] for devices of package cpu.
	roundoff [2]atomic.Pointer[verified.Roundoff]
}

// HasBound implements Bounded.
func (b *errorBound) HasBound() bool { return b.bound != nil }

// verified returns the function f of the model in the form of package verified.
func (m *kernelExpansion) verified() *verified.Expansion {
	return &verified.Expansion{Kernel: m.kernel, Points: m.points.Dense, Alpha: m.coef, Intercept: m.intercept}
}

// PredictBound implements Bounded.
func (m *KernelRidgeModel) PredictBound(ctx context.Context, dev backend.Device, x mat.Matrix) (values, bounds *mat.Dense, err error) {
	return m.predict(ctx, dev, &m.kernelExpansion, x)
}

// PredictBound implements Bounded. It bounds the error of the mean, for the kernel and the λ of the model.
func (m *GaussianProcessModel) PredictBound(ctx context.Context, dev backend.Device, x mat.Matrix) (values, bounds *mat.Dense, err error) {
	return m.predict(ctx, dev, &m.kernelExpansion, x)
}

func (b *errorBound) predict(ctx context.Context, dev backend.Device, m *kernelExpansion, x mat.Matrix) (values, bounds *mat.Dense, err error) {
	defer wrapError(m.learner+": bound", nil, &values, &err)
	if m.coef.Rows > 0 && b.bound == nil {
		return nil, nil, errors.New("the model has no bound: its kernel is not known to be positive semidefinite, its rounding errors are not known, or lambda is 0")
	}
	f, sums := m.verified(), m.predictor()
	points, err := sums.checkRows(dev, x)
	if err != nil {
		return nil, nil, err
	}
	if b.bound == nil || !b.bound.Rounded {
		return b.evaluateAt(ctx, f, points)
	}
	if b.bound.Correction.Data != nil { // the sums have the columns of f, then the columns of the correction
		corrected := f.Corrected(b.bound)
		sums = expansion(m.learner, m.kernel, m.points, corrected.Alpha, corrected.Intercept)
	}
	return b.roundAt(ctx, dev, sums, sums.predictPoints, f, b.roundoffOn(dev, m), points)
}

// roundAt returns predictions of f, and bounds on their errors, at points that p.checkRows returned. r bounds the
// rounding errors of the kernel functions of f.
func (b *errorBound) roundAt(ctx context.Context, dev backend.Device, p predictor, predictPoints func(context.Context, backend.Device, numeric.Points) (*mat.Dense, error), f *verified.Expansion, r *verified.Roundoff, points numeric.Points) (values, bounds *mat.Dense, err error) {
	err = p.inBlocks(ctx, points, func(ctx context.Context, _ int, x numeric.Points) error {
		sums, err := predictPoints(ctx, dev, x)
		if err == nil {
			v, e := b.bound.Round(f, r, x, dense(sums), p.roundings(dev))
			values, bounds = appendRows(values, v), appendRows(bounds, e)
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return values, bounds, checkPredicted("prediction", dense(values), 0)
}

// evaluateAt evaluates f at the points in more than 80 bits, and returns bounds on the errors of the values.
func (b *errorBound) evaluateAt(ctx context.Context, f *verified.Expansion, points numeric.Points) (values, bounds *mat.Dense, err error) {
	values, bounds = mat.NewDense(points.Rows, f.Alpha.Cols, nil), mat.NewDense(points.Rows, f.Alpha.Cols, nil)
	err = denseBlocks(points, func(i int, x backend.Host[float64]) error {
		v, e, err := b.bound.Predict(ctx, f, x)
		for j := range v.Rows {
			values.SetRow(i+j, v.Row(j))
			bounds.SetRow(i+j, e.Row(j))
		}
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	return values, bounds, nil
}

// denseRows returns the number of rows of a block of denseBlocks for samples of d features, between 8 and 256. A block
// of more than 8 rows has at most 1 MiB.
func denseRows(d int) int { return max(8, min(256, 1<<17/max(d, 1))) }

// denseBlocks calls use for blocks of the points, with the index i of the first point. Dense points are one block;
// blocks of sparse points are dense copies.
func denseBlocks(points numeric.Points, use func(i int, x backend.Host[float64]) error) error {
	if points.Sparse == nil {
		return use(0, points.Dense)
	}
	blockRows := denseRows(points.Cols)
	block := backend.NewHost[float64](min(blockRows, points.Rows), points.Cols)
	for i := 0; i < points.Rows; i += blockRows {
		rows := min(blockRows, points.Rows-i)
		for j := range rows {
			points.CopyPoint(block.Row(j), i+j)
		}
		if err := use(i, block.View(0, 0, rows, points.Cols)); err != nil {
			return err
		}
	}
	return nil
}

// accuracyTol returns the relative residual for which, without rounding errors, the errors of predictions are at most
// accuracy/2 by the bound of verified.ErrorBound. The rows of p are points.
func accuracyTol(accuracy float64, points numeric.Points, p solvers.Problem) (float64, error) {
	if !p.Kernel.IsPSD() || !(p.Lambda > 0) {
		return 0, noBound(p)
	}
	root, rootSum, totalWeight, maxWeight, maxNorm := 0.0, 0.0, 0.0, 0.0, 0.0
	weight := func(i int) float64 {
		if p.Weights == nil {
			return 1
		}
		return p.Weights[i]
	}
	for i, v := range points.Diagonal(p.Kernel) {
		if w := weight(i); w > 0 {
			root, maxWeight = max(root, math.Sqrt(v)), max(maxWeight, w)
			totalWeight += w
			rootSum += w * math.Sqrt(v)
		}
	}
	factor := root / 2
	if p.Intercept {
		factor = (root+rootSum/totalWeight)/2 + math.Sqrt(p.Lambda/totalWeight)
	}
	for c := range p.Y.Cols {
		mean, square := 0.0, 0.0
		for i := range p.Y.Rows {
			mean += weight(i) / totalWeight * p.Y.Row(i)[c]
		}
		for i := range p.Y.Rows {
			if v := p.Y.Row(i)[c]; weight(i) > 0 && p.Intercept {
				square += (v - mean) * (v - mean)
			} else if weight(i) > 0 {
				square += v * v
			}
		}
		maxNorm = max(maxNorm, math.Sqrt(square))
	}
	// If rounding errors make the accuracy unreachable, checkAccuracy reports the proven bound.
	return min(0.5, max(accuracy/2*math.Sqrt(p.Lambda/maxWeight)/(factor*maxNorm), 1e-12)), nil
}

// noBound returns the error that gives the reason why p has no bound.
func noBound(p solvers.Problem) error {
	if !p.Kernel.IsPSD() {
		return fmt.Errorf("bound: no bound is known for %v, which is not positive semidefinite for all samples", p.Kernel)
	}
	return fmt.Errorf("bound: no bound is known for lambda = %v: it needs lambda > 0", p.Lambda)
}

// checkAccuracy returns an error if accuracy > 0 and the bound of m exceeds accuracy.
func (b *errorBound) checkAccuracy(accuracy float64, dev backend.Device, m *kernelExpansion, res *solvers.Result) error {
	if accuracy == 0 {
		return nil
	}
	if b.bound == nil {
		return message.Errorf("accuracy: no bound is known for the rounding errors of this kernel: {use $tol}")
	}
	maxBound := 0.0
	for c := range b.bound.Targets {
		maxBound = max(maxBound, b.bound.Uniform(c, b.bound.Root*b.bound.Root)+b.bound.Rounding(c, b.roundoffOn(dev, m)))
	}
	if !(maxBound <= accuracy) {
		return message.Errorf("accuracy: the proven error %.2g, which consists mostly of rounding errors, exceeds the requested accuracy %.2g: {raise $accuracy|raise $lambda|prove a smaller error with $bound}", maxBound, accuracy)
	}
	if res.Iters > 0 {
		res.Notes = append(res.Notes, fmt.Sprintf("the solver stopped when the errors of predictions were proven to be at most %.2g", accuracy))
	}
	return nil
}

// roundoffOn returns bounds on the rounding errors of the kernel values of m computed on dev.
func (b *errorBound) roundoffOn(dev backend.Device, m *kernelExpansion) *verified.Roundoff {
	i := 0
	direct := strings.HasPrefix(dev.Info().Device, "cpu")
	if direct {
		i = 1
	}
	if r := b.roundoff[i].Load(); r != nil {
		return r
	}
	r := verified.NewRoundoff(m.kernel, m.points, direct)
	b.roundoff[i].Store(r)
	return r
}

// round sets the bound of m from the float64 residuals in res, which have a row for each entry of weights. All
// samples of p have a weight > 0. lambdas holds the λ of each target; nil means p.Lambda for all targets.
func (b *errorBound) round(dev backend.Device, m *kernelExpansion, p solvers.Problem, res *solvers.Result, weights, lambdas []float64) {
	if !p.Kernel.IsPSD() || slices.ContainsFunc(lambdasOf(p.Lambda, lambdas), func(v float64) bool { return !(v > 0) }) {
		return
	}
	residuals := res.Residuals
	if residuals.Rows == 0 && res.Method == solvers.Modes {
		return
	}
	if residuals.Rows == 0 {
		residuals = linearResiduals(m, p, lambdas)
	} else {
		residuals = dropZeroWeight(residuals, weights)
	}
	system := &verified.System{Y: p.Y, Weights: p.Weights, Lambda: p.Lambda, Lambdas: lambdas, Intercept: p.Intercept}
	if res.Method == solvers.Kalman {
		system.Roundings = markov.Roundings
	}
	if bound := system.Rounded(m.coef, m.intercept, residuals, b.roundoffOn(dev, m)); finiteBound(bound) < 0 {
		b.bound = bound
	}
}

// linearResiduals returns the residuals y − X(Xᵀα) − λW⁻¹α − b·1 of the linear kernel.
func linearResiduals(m *kernelExpansion, p solvers.Problem, lambdas []float64) backend.Host[float64] {
	r, w := backend.NewHost[float64](m.coef.Rows, m.coef.Cols), m.points.Weights(m.coef)
	for i := range r.Rows {
		for c := range r.Cols {
			diagonal := p.Lambda
			if len(lambdas) > 0 {
				diagonal = lambdas[c]
			}
			if p.Weights != nil {
				diagonal /= p.Weights[i]
			}
			r.Row(i)[c] = p.Y.Row(i)[c] - (m.points.Dot(i, w, c) + diagonal*m.coef.Row(i)[c] + m.intercept[c])
		}
	}
	return r
}

// finiteBound returns the index of the first target without a finite bound, or −1 if all bounds are finite.
func finiteBound(bound *verified.ErrorBound) int {
	return slices.IndexFunc(bound.Targets, func(t verified.TargetBound) bool { return !finite(t.Alpha) || !finite(t.Norm*bound.Root) })
}

// addFacts adds the bound of the predictions to the facts of m, and the bound of the coefficients, which the argument
// coefficients names.
func (b *errorBound) addFacts(m *model, coefficients string) {
	root := b.bound.Root
	m.facts = append(m.facts, Fact{"proven error", twoDigits(b.bound.Uniform(0, root*root))}, Fact{"proven error of " + coefficients, twoDigits(b.bound.Targets[0].Alpha)})
}

// twoDigits returns v rounded up to two digits.
func twoDigits(v float64) float64 {
	for _, raised := range []float64{v, v * 1.05} {
		if r, err := strconv.ParseFloat(strconv.FormatFloat(raised, 'e', 1, 64), 64); err == nil && r >= v {
			return r
		}
	}
	return v
}

// setBound sets the error bound of m, the solution of p, and adds the facts of the bound. The rows of p are the points
// of m. If sharp is set, setBound uses kernel values in more than 80 bits, or returns an error. lambdas, if not nil,
// has the λ of each target. res.Residuals has a row for each entry of o.Weights, also for weights of 0.
func (b *errorBound) setBound(ctx context.Context, dev backend.Device, m *kernelExpansion, p solvers.Problem, res *solvers.Result, lambdas []float64, sharp bool, o Options) error {
	ctx = run.Beside(m.points.Evaluating(ctx, dev), m.points.CopyBytes(m.points.Rows))
	if sharp && len(lambdas) == 0 {
		return b.prove(ctx, dev, m, p, res, o.Memory)
	}
	cheap := o.Prove && len(lambdas) == 0 && m.points.Sparse == nil && verified.Steps(p.Kernel, m.points.Rows, m.points.Cols) <= provedSteps
	if _, precomputed := p.Kernel.(kernels.Precomputed); precomputed && cheap && p.Lambda > 0 {
		if err := b.prove(ctx, dev, m, p, res, o.Memory); !errors.Is(err, errNoFloor) {
			return err
		}
		return nil
	}
	b.round(dev, m, p, res, o.Weights, lambdas)
	if b.bound == nil {
		return nil
	}
	if cheap {
		_, bound, err := b.evaluate(ctx, dev, m, p, res, 0, o.Memory)
		if err != nil {
			return err
		}
		if bound.ForDevice(m.verified(), b.roundoffOn(dev, m)); finiteBound(bound) < 0 {
			b.bound = bound
		}
	}
	b.addFacts(&m.model, "alpha")
	return nil
}

// provedSteps is the largest result of verified.Steps for which Options.Prove computes a bound. A step takes about 4
// ns.
const provedSteps = 12e6

// prove sets the error bound of the predictions of m, a solution of p, and adds the bound to the Facts
// of m. It takes at most `memory` bytes on dev. The rows of p are the points of m.
func (b *errorBound) prove(ctx context.Context, dev backend.Device, m *kernelExpansion, p solvers.Problem, res *solvers.Result, memory int64) error {
	floor := 0.0
	if _, precomputed := p.Kernel.(kernels.Precomputed); precomputed && p.Lambda > 0 {
		var err error
		if floor, err = minEigenvalue(ctx, dev, p, memory); err != nil {
			return err
		}
	} else if !p.Kernel.IsPSD() || !(p.Lambda > 0) {
		return noBound(p)
	}
	reason, bound, err := b.evaluate(ctx, dev, m, p, res, floor, memory)
	if err != nil {
		return err
	}
	if reason != "" {
		m.facts = warned(m.facts, "the proven error may be some hundred times the true error, because "+reason)
	}
	if c := finiteBound(bound); c >= 0 {
		return fmt.Errorf("bound: no bound can be proven for target %d, because numbers overflow: scale the features and targets down", c+1)
	}
	b.bound = bound
	b.addFacts(&m.model, "alpha")
	return nil
}

// errNoFloor is wrapped by the errors for precomputed kernel values that have no bound.
var errNoFloor = errors.New("no bound is known for these precomputed values")

// minEigenvalue returns a lower bound > 0 on the eigenvalues of K + λW⁻¹ for precomputed values K, proved by
// factoring K + (λ/2)W⁻¹ in float64: see verified.FactorSlack.
func minEigenvalue(ctx context.Context, dev backend.Device, p solvers.Problem, memory int64) (float64, error) {
	n, trace, minShift := p.X.Rows, 0.0, math.Inf(1)
	value := func(i, j int) float64 { return kernels.Eval(p.Kernel, p.X.Row(i), p.X.Row(j)) }
	for i := range n {
		for j := range i {
			if value(i, j) != value(j, i) {
				return 0, fmt.Errorf("bound: %w, because they are not symmetric: entry (%d, %d) is %v, entry (%[3]d, %[2]d) is %[5]v", errNoFloor, i+1, j+1, value(i, j), value(j, i))
			}
		}
		shift := p.Lambda / 2
		if p.Weights != nil {
			shift /= p.Weights[i]
		}
		minShift, trace = min(minShift, shift), trace+math.Abs(value(i, i))+shift
	}
	p.Lambda, p.Intercept = p.Lambda/2, false
	_, err := solvers.NewUncertainty(ctx, dev, p, memory)
	if err == nil {
		if floor := (minShift - verified.FactorSlack(n, trace)) * (1 - 0x1p-50); floor > 0 && float64(n) < 0x1p40 {
			return floor, nil
		}
		err = backend.ErrNotPosDef
	}
	if errors.Is(err, backend.ErrNotPosDef) {
		return 0, message.Errorf("bound: %w, because they are not positive definite when half of lambda is added to the diagonal: {raise $lambda|give values of a positive semidefinite kernel}", errNoFloor)
	}
	return 0, err
}

// evaluate returns a bound on the error of m, the solution of p. It factors the matrix of p again, because this makes
// the bound smaller. If this is not possible, reason gives the cause. The argument floor is verified.System.Floor.
func (b *errorBound) evaluate(ctx context.Context, dev backend.Device, m *kernelExpansion, p solvers.Problem, res *solvers.Result, floor float64, memory int64) (reason string, bound *verified.ErrorBound, err error) {
	system := &verified.System{Y: p.Y, Weights: p.Weights, Lambda: p.Lambda, Intercept: p.Intercept, Floor: floor}
	// bytes counts the factor, the kernel values, and 12(t + 1) columns for t targets.
	bytes := func(n int) int64 {
		return numeric.Bytes(numeric.Total(numeric.Elements(2*n, n), numeric.Elements(n, 12*(p.Y.Cols+1))))
	}
	err = solvers.Reserve(ctx, dev, memory, "bound", p.X.Rows, bytes)
	var factor *solvers.Uncertainty
	if err == nil {
		p.Intercept = false
		factor, err = solvers.NewUncertainty(ctx, dev, p, memory)
	}
	var budgetErr *solvers.BudgetError
	switch {
	case err == nil:
		res.Bytes = max(res.Bytes, bytes(p.X.Rows))
		system.Solve = func(r backend.Host[float64]) error { return factor.Solve(ctx, dev, r, memory) }
	case errors.As(err, &budgetErr), errors.Is(err, backend.ErrMemory):
		reason = "the memory does not suffice for a second factorization"
	case errors.Is(err, backend.ErrNotPosDef):
		reason = "rounding errors prevent a second factorization"
	default:
		return "", nil, err
	}
	bound, err = system.Bound(ctx, m.verified())
	return reason, bound, err
}

// fields returns the field of a model file that holds the error bound of m. weights and intercept point to values
// that are loaded before the bound.
func (b *errorBound) fields(m *kernelExpansion, weights *[]float64, intercept *bool) field {
	return b.field(func() (rows, cols int, sparse bool) { return m.coef.Rows, m.coef.Cols, m.points.Sparse != nil }, weights, intercept)
}

// field returns the field of a model file that holds the bound of a model with rows×cols coefficients and with sparse
// or dense points. weights and intercept are nil if the bound does not need them.
func (b *errorBound) field(sizes func() (rows, cols int, sparse bool), weights *[]float64, intercept *bool) field {
	const name, correction, constants = "bound", "bound_correction", "bound_constants"
	return field{
		save: func(s State) {
			if b.bound == nil {
				return
			}
			terms := backend.NewHost[float64](7, len(b.bound.Targets))
			for c, t := range b.bound.Targets {
				for i, v := range []float64{t.Alpha, t.Shift, t.Power, t.Norm, t.Mean, t.Rho, t.Size} {
					terms.Row(i)[c] = v
				}
			}
			s.Arrays[name] = terms
			kind := 0.0
			switch {
			case b.bound.Rounded:
				kind = 1
			case b.bound.Plain:
				kind = 2
			}
			s.Arrays[constants] = numeric.Row([]float64{b.bound.Kappa, b.bound.Square, b.bound.Root, kind})
			if b.bound.Correction.Data != nil {
				s.Arrays[correction] = b.bound.Correction
			}
		},
		load: func(s State) error {
			_, ok := s.Arrays[name]
			if _, has := s.Arrays[constants]; !ok && !has {
				return nil
			}
			rows, cols, sparse := sizes()
			terms, err := s.array(name, 7, cols)
			if err != nil {
				return err
			}
			k, err := s.array(constants, 1, 4)
			if err != nil {
				return err
			}
			bound := &verified.ErrorBound{Kappa: k.Row(0)[0], Square: k.Row(0)[1], Root: k.Row(0)[2], Rounded: k.Row(0)[3] == 1, Plain: k.Row(0)[3] == 2}
			if weights != nil {
				bound.Weights = *weights
			}
			if intercept != nil {
				bound.Intercept = *intercept
			}
			if _, ok := s.Arrays[correction]; ok {
				if bound.Correction, err = s.array(correction, rows, cols); err != nil {
					return err
				}
			}
			for c := range cols {
				term := func(i int) float64 { return terms.Row(i)[c] }
				bound.Targets = append(bound.Targets, verified.TargetBound{Alpha: term(0), Shift: term(1), Power: term(2), Norm: term(3), Mean: term(4), Rho: term(5), Size: term(6)})
			}
			if sparse && !bound.Rounded {
				return errors.New("the model has sparse samples, but its bound is for dense samples")
			}
			b.bound = bound
			return nil
		},
	}
}

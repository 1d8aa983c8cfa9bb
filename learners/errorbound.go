package learners

import (
	"context"
	"errors"
	"fmt"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/verified"
	"github.com/mercer-go/mercer/solvers"
)

// Bounded is implemented by models that can prove how far their predictions are from those of the
// exact solution of the equations that Fit solves.
type Bounded interface {
	// HasBound reports whether the model was fitted with a bound.
	HasBound() bool
	// PredictBound returns predictions at the rows of x, rounded to float64, and for each of them a
	// bound on its distance from the prediction of the exact solution. It evaluates the kernel in
	// about 100 bits, n times for each row, and takes about a hundred times as long as Predict. The
	// predictions may differ from those of Predict by rounding errors.
	PredictBound(ctx context.Context, dev backend.Device, x mat.Matrix) (values, bounds *mat.Dense, err error)
}

// errorBound is the bound of a model, nil for a model without one.
type errorBound struct{ bound *verified.ErrorBound }

// HasBound implements Bounded.
func (b *errorBound) HasBound() bool { return b.bound != nil }

// verified returns the function of the model for package verified.
func (m *kernelExpansion) verified() *verified.Expansion {
	return &verified.Expansion{Kernel: m.kernel, Points: m.points.Dense, Alpha: m.coef, Intercept: m.intercept}
}

// PredictBound implements Bounded, for a model that was fitted with KernelRidge.Bound.
func (m *KernelRidgeModel) PredictBound(ctx context.Context, dev backend.Device, x mat.Matrix) (values, bounds *mat.Dense, err error) {
	defer named(kernelRidgeName+": bound", nil, &values, &err)
	if m.coef.Rows > 0 && m.bound == nil {
		return nil, nil, errors.New("the model has none: fit it with bound = true")
	}
	points, err := m.predictor().check(dev, x)
	if err != nil {
		return nil, nil, err
	}
	v, e, err := m.bound.Predict(ctx, m.verified(), points.Dense)
	if err != nil {
		return nil, nil, err
	}
	return mat.NewDense(v.Rows, v.Cols, v.Data), mat.NewDense(e.Rows, e.Cols, e.Data), nil
}

// boundError computes the bound of m, for the targets y of its points.
func (l KernelRidge) boundError(ctx context.Context, dev backend.Device, m *KernelRidgeModel, y backend.Host[float64], o Options) error {
	if !m.kernel.IsPSD() {
		return fmt.Errorf("bound: no bound is known for %v, which is not positive semidefinite for all samples", m.kernel)
	}
	if !(l.Lambda > 0) {
		return fmt.Errorf("bound: no bound is known for lambda = %v: it needs lambda > 0", l.Lambda)
	}
	system := &verified.System{Y: y, Weights: m.weights, Lambda: l.Lambda, Intercept: m.fitted}
	n := m.points.Rows
	limit := o.Memory
	if limit > 0 {
		limit = max(1, limit-solvers.UncertaintyBytes(n)) // of the kernel values that the correction needs
	}
	factor, err := solvers.NewUncertainty(ctx, dev, solvers.Problem{Kernel: m.kernel, X: m.points.Dense, Y: y, Weights: m.weights, Lambda: l.Lambda}, limit)
	var large *solvers.BudgetError
	switch {
	case err == nil:
		system.Solve = func(r backend.Host[float64]) error { return factor.Solve(ctx, dev, r, o.Memory) }
	case errors.As(err, &large), errors.Is(err, backend.ErrMemory):
		m.facts = warned(m.facts, "the proven error is much larger than the error: the memory for a correction by a second factorization is missing")
	case errors.Is(err, backend.ErrNotPosDef):
		m.facts = warned(m.facts, "the proven error is much larger than the error: rounding leaves no Cholesky factor of K + λI for a correction")
	default:
		return err
	}
	b, err := system.Bound(ctx, m.verified())
	if err != nil {
		return err
	}
	for c := range b.Targets {
		if !finite(b.Uniform(c, b.Root*b.Root)) || !finite(b.Targets[c].Alpha) {
			return fmt.Errorf("bound: no bound can be proven for target %d: numbers overflow; scale the features and targets down", c+1)
		}
	}
	m.bound = b
	m.facts = append(m.facts, Fact{"proven error", b.Uniform(0, b.Root*b.Root)}, Fact{"proven error of alpha", b.Targets[0].Alpha})
	return nil
}

// boundFields are the parts of the bound of a model with these points, coefficients and weights.
func (m *KernelRidgeModel) boundFields() []field {
	const name, correction, constants = "bound", "bound_correction", "bound_constants"
	return []field{{
		save: func(s State) {
			if m.bound == nil {
				return
			}
			terms := backend.NewHost[float64](6, len(m.bound.Targets))
			for c, t := range m.bound.Targets {
				for i, v := range []float64{t.Alpha, t.Shift, t.Power, t.Norm, t.Mean, t.Rho} {
					terms.Row(i)[c] = v
				}
			}
			s.Arrays[name] = terms
			s.Arrays[constants] = numeric.Row([]float64{m.bound.Kappa, m.bound.Square, m.bound.Root})
			if m.bound.Correction.Data != nil {
				s.Arrays[correction] = m.bound.Correction
			}
		},
		load: func(s State) error {
			if _, ok := s.Arrays[name]; !ok {
				return nil
			}
			if m.points.Sparse != nil {
				return errors.New("the model has a bound and sparse samples")
			}
			terms, err := s.array(name, 6, m.coef.Cols)
			if err != nil {
				return err
			}
			k, err := s.array(constants, 1, 3)
			if err != nil {
				return err
			}
			b := &verified.ErrorBound{Weights: m.weights, Intercept: m.fitted, Kappa: k.Row(0)[0], Square: k.Row(0)[1], Root: k.Row(0)[2]}
			if _, ok := s.Arrays[correction]; ok {
				if b.Correction, err = s.array(correction, m.coef.Rows, m.coef.Cols); err != nil {
					return err
				}
			}
			for c := range m.coef.Cols {
				at := func(i int) float64 { return terms.Row(i)[c] }
				b.Targets = append(b.Targets, verified.TargetBound{Alpha: at(0), Shift: at(1), Power: at(2), Norm: at(3), Mean: at(4), Rho: at(5)})
			}
			m.bound = b
			return nil
		},
	}}
}

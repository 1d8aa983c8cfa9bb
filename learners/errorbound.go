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

// Bounded is implemented by models that can bound the distance of their predictions from those of
// the exact solution of the equations that Fit solves.
type Bounded interface {
	// HasBound reports whether the model was fitted with a bound.
	HasBound() bool
	// PredictBound returns predictions at the rows of x, rounded to float64, and for each of them a
	// bound on its distance from the prediction of the exact solution. It evaluates the kernel in
	// more than 80 bits, n times for each row, so that it takes much longer than Predict. The
	// predictions may differ from those of Predict by rounding errors.
	PredictBound(ctx context.Context, dev backend.Device, x mat.Matrix) (values, bounds *mat.Dense, err error)
}

// An errorBound is the bound of a model of the functions k(x_i, x), or nil if the model has none.
type errorBound struct{ bound *verified.ErrorBound }

// HasBound implements Bounded.
func (b *errorBound) HasBound() bool { return b.bound != nil }

// verified returns the function of the model in the form of package verified.
func (m *kernelExpansion) verified() *verified.Expansion {
	return &verified.Expansion{Kernel: m.kernel, Points: m.points.Dense, Alpha: m.coef, Intercept: m.intercept}
}

// PredictBound implements Bounded, for a model that was fitted with KernelRidge.Bound.
func (m *KernelRidgeModel) PredictBound(ctx context.Context, dev backend.Device, x mat.Matrix) (values, bounds *mat.Dense, err error) {
	return m.predict(ctx, dev, &m.kernelExpansion, x)
}

// PredictBound implements Bounded, for a model that was fitted with GaussianProcess.Bound. It is the
// bound of the mean, for the kernel and the λ of the model.
func (m *GaussianProcessModel) PredictBound(ctx context.Context, dev backend.Device, x mat.Matrix) (values, bounds *mat.Dense, err error) {
	return m.predict(ctx, dev, &m.kernelExpansion, x)
}

func (b *errorBound) predict(ctx context.Context, dev backend.Device, m *kernelExpansion, x mat.Matrix) (values, bounds *mat.Dense, err error) {
	defer named(m.learner+": bound", nil, &values, &err)
	if m.coef.Rows > 0 && b.bound == nil {
		return nil, nil, errors.New("the model has none: fit it with bound = true")
	}
	points, err := m.predictor().check(dev, x)
	if err != nil {
		return nil, nil, err
	}
	v, e, err := b.bound.Predict(ctx, m.verified(), points.Dense)
	if err != nil {
		return nil, nil, err
	}
	return mat.NewDense(v.Rows, v.Cols, v.Data), mat.NewDense(e.Rows, e.Cols, e.Data), nil
}

// prove sets the bound of m, which is to solve p on dev with at most memory bytes, and adds its
// facts. The rows of p are the points of m.
func (b *errorBound) prove(ctx context.Context, dev backend.Device, m *kernelExpansion, p solvers.Problem, memory int64) error {
	if !p.Kernel.IsPSD() {
		return fmt.Errorf("bound: no bound is known for %v, which is not positive semidefinite for all samples", p.Kernel)
	}
	if !(p.Lambda > 0) {
		return fmt.Errorf("bound: no bound is known for lambda = %v: it needs lambda > 0", p.Lambda)
	}
	system := &verified.System{Y: p.Y, Weights: p.Weights, Lambda: p.Lambda, Intercept: p.Intercept}
	// The factor and the kernel values, and a dozen columns for each target.
	err := solvers.Reserve(ctx, dev, memory, "bound", p.X.Rows, func(n int) int64 {
		return numeric.Bytes(numeric.Total(numeric.Elements(2*n, n), numeric.Elements(n, 12*(p.Y.Cols+1))))
	})
	var factor *solvers.Uncertainty
	if err == nil {
		p.Intercept = false
		factor, err = solvers.NewUncertainty(ctx, dev, p, memory)
	}
	var large *solvers.BudgetError
	switch {
	case err == nil:
		system.Solve = func(r backend.Host[float64]) error { return factor.Solve(ctx, dev, r, memory) }
	case errors.As(err, &large), errors.Is(err, backend.ErrMemory):
		m.facts = warned(m.facts, "the proven error may be some hundred times the error: there is no memory for the second factorization that would make it small")
	case errors.Is(err, backend.ErrNotPosDef):
		m.facts = warned(m.facts, "the proven error may be some hundred times the error: rounding leaves no second factorization that would make it small")
	default:
		return err
	}
	bound, err := system.Bound(ctx, m.verified())
	if err != nil {
		return err
	}
	for c := range bound.Targets {
		if !finite(bound.Uniform(c, bound.Root*bound.Root)) || !finite(bound.Targets[c].Alpha) {
			return fmt.Errorf("bound: no bound can be proven for target %d, because numbers overflow: scale the features and targets down", c+1)
		}
	}
	b.bound = bound
	m.facts = append(m.facts, Fact{"proven error", bound.Uniform(0, bound.Root*bound.Root)}, Fact{"proven error of alpha", bound.Targets[0].Alpha})
	return nil
}

// fields returns the field of the bound of m, whose points have these weights.
func (b *errorBound) fields(m *kernelExpansion, weights *[]float64, intercept *bool) field {
	const name, correction, constants = "bound", "bound_correction", "bound_constants"
	return field{
		save: func(s State) {
			if b.bound == nil {
				return
			}
			terms := backend.NewHost[float64](6, len(b.bound.Targets))
			for c, t := range b.bound.Targets {
				for i, v := range []float64{t.Alpha, t.Shift, t.Power, t.Norm, t.Mean, t.Rho} {
					terms.Row(i)[c] = v
				}
			}
			s.Arrays[name] = terms
			s.Arrays[constants] = numeric.Row([]float64{b.bound.Kappa, b.bound.Square, b.bound.Root})
			if b.bound.Correction.Data != nil {
				s.Arrays[correction] = b.bound.Correction
			}
		},
		load: func(s State) error {
			if _, ok := s.Arrays[name]; !ok {
				return nil
			}
			if m.points.Sparse != nil {
				return errors.New("the model has a bound, which is for dense samples, and sparse samples")
			}
			terms, err := s.array(name, 6, m.coef.Cols)
			if err != nil {
				return err
			}
			k, err := s.array(constants, 1, 3)
			if err != nil {
				return err
			}
			bound := &verified.ErrorBound{Weights: *weights, Kappa: k.Row(0)[0], Square: k.Row(0)[1], Root: k.Row(0)[2]}
			if intercept != nil {
				bound.Intercept = *intercept
			}
			if _, ok := s.Arrays[correction]; ok {
				if bound.Correction, err = s.array(correction, m.coef.Rows, m.coef.Cols); err != nil {
					return err
				}
			}
			for c := range m.coef.Cols {
				at := func(i int) float64 { return terms.Row(i)[c] }
				bound.Targets = append(bound.Targets, verified.TargetBound{Alpha: at(0), Shift: at(1), Power: at(2), Norm: at(3), Mean: at(4), Rho: at(5)})
			}
			b.bound = bound
			return nil
		},
	}
}

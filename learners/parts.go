package learners

import (
	"slices"

	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

// Parts holds what a fitted model consists of, for inspection. It is a copy.
type Parts struct {
	// Kernel is the kernel of f(x) = Σ_i k(x_i, x) a_i + b, or nil for other models.
	Kernel kernels.Kernel
	// Points are the x_i, m×d: samples with a coefficient, support or relevance vectors, or
	// centers; for models without coefficients all samples. They are a *mat.Dense, or a
	// backend.CSR if the model was fitted to sparse samples. They are nil for models without a
	// kernel.
	Points mat.Matrix
	// Coef is m×k with a row of coefficients a_i for each point, or without points the d×k
	// weights W of xᵀW + b, or nil for models that have neither. It has a column for each output
	// or decision value. For an SVC of K classes it has K − 1 columns: the coefficients of a
	// point in the machines of its class and each other class.
	Coef      *mat.Dense
	Intercept []float64 // b, with an entry for each column of Coef or each machine
}

// PartsOf returns the parts of a model.
func PartsOf(m Model) Parts {
	if numeric.IsNil(m) {
		return Parts{}
	}
	if c, ok := m.(*ClassifyModel); ok {
		m = c.fitted()
	}
	if p, ok := m.(interface{ parts() Parts }); ok {
		return p.parts()
	}
	return Parts{}
}

func (m *linear) parts() Parts {
	return Parts{Coef: m.Coef(), Intercept: m.Intercept()}
}

func (m *kernelExpansion) parts() Parts {
	return Parts{Kernel: m.kernel, Points: copyOfPoints(m.points), Coef: denseOf(m.coef), Intercept: m.Intercept()}
}

func (r *trainingSet) parts() Parts {
	return Parts{Kernel: r.kernel, Points: copyOfPoints(r.points)}
}

func (m *SVCModel) parts() Parts {
	return Parts{Kernel: m.kernel, Points: copyOfPoints(m.points), Coef: denseOf(m.coef), Intercept: slices.Clone(m.b)}
}

func (m *FourierRidgeModel) parts() Parts {
	return Parts{Kernel: m.kernel, Intercept: m.Intercept()}
}

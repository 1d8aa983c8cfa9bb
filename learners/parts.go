package learners

import (
	"slices"

	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

// Parts is what a fitted model consists of, for people to look at. It is a copy.
type Parts struct {
	// Kernel is that of f(x) = Σ_i k(x_i, x) a_i + b; nil for other models.
	Kernel kernels.Kernel
	// Points are the x_i, m×d: samples with a coefficient, support or relevance vectors,
	// centers; of models without coefficients all samples. They are a *mat.Dense, or a
	// backend.CSR if the model was fitted to sparse samples. Nil for models without a kernel.
	Points mat.Matrix
	// Coef is m×k, a row of coefficients a_i for each point, or without points the d×k
	// weights W of xᵀW + b; nil for models that have neither. There is a column for each
	// output, or decision value; of an SVC of K classes K − 1, a point's in the machines of
	// its class and each other.
	Coef      *mat.Dense
	Intercept []float64 // b, an entry for each column of Coef, or machine
}

// PartsOf returns the parts of a model.
func PartsOf(m Model) Parts {
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

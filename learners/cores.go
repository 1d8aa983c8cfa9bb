package learners

import (
	"context"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

// model is the common part of all models.
type model struct {
	learner string
	facts   []Fact
}

// Learner returns the name of the learner that fitted the model.
func (m *model) Learner() string { return m.learner }

// Facts implements Describer.
func (m *model) Facts() []Fact { return m.factsNamed(message.Plain) }

// factsNamed returns the facts. The function name maps a parameter to its name in the advice of warnings.
func (m *model) factsNamed(name func(parameter string) string) []Fact {
	facts := slices.Clone(m.facts)
	for i, f := range facts {
		if text, ok := f.Value.(string); ok && f.Name == "warning" {
			facts[i].Value = message.Expand(text, name)
		}
	}
	return facts
}

// FactsOf returns the facts of a model, or nil if it has none. Warnings may advise to change a
// parameter. The argument name is a function that returns the front end's name of this parameter, or
// "" to omit the advice. The method Facts uses the names of the fields in Go.
func FactsOf(m Model, name func(parameter string) string) []Fact {
	if numeric.IsNil(m) {
		return nil
	}
	if k, ok := m.(interface {
		factsNamed(name func(parameter string) string) []Fact
	}); ok {
		return k.factsNamed(name)
	}
	if k, ok := m.(Describer); ok {
		return k.Facts()
	}
	return nil
}

// remark adds the fact "warning" with the given text, unless the text is empty. The text may contain advice, in the
// syntax of package message.
func (m *model) remark(text string) { m.facts = warned(m.facts, text) }

func (m *model) setLearner(name string) { m.learner = name }

// linear is the common part of models f(x) = Wᵀx + b.
type linear struct {
	model
	coef      backend.Host[float64] // W, d×t
	intercept []float64             // b
}

// Dims implements Model.
func (m *linear) Dims() (features, outputs int) { return m.coef.Rows, m.coef.Cols }

// Predict implements Model: xW + b.
func (m *linear) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.predictor().predict(ctx, dev, x)
}

func (m *linear) predictor() predictor { return affine(m.learner, m.coef, m.intercept) }

// Coef returns a copy of the d×t weights, or nil if the model is not fitted.
func (m *linear) Coef() *mat.Dense { return denseOf(m.coef) }

// Intercept returns a copy of b, one entry for each column of Coef.
func (m *linear) Intercept() []float64 { return slices.Clone(m.intercept) }

// coefFields returns the fields of W and b of a model xW + b, each with cols columns; a nil cols allows any number.
func (m *linear) coefFields(cols size) []field {
	return []field{
		matrixField("coef", &m.coef, nil, cols),
		rowField("intercept", &m.intercept, colsOf(&m.coef), anyNumber),
	}
}

// kernelExpansion is the common part of models f(x) = Σ_i k(x_i, x) a_i + b.
type kernelExpansion struct {
	model
	kernel    kernels.Kernel
	points    numeric.Points        // x_i, m×d
	coef      backend.Host[float64] // a_i, m×t
	intercept []float64             // b
}

// Dims implements Model.
func (m *kernelExpansion) Dims() (features, outputs int) { return m.points.Cols, m.coef.Cols }

// Predict implements Model: k(x, points)a + b, without storing the matrix of kernel values.
func (m *kernelExpansion) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.predictor().predict(ctx, dev, x)
}

func (m *kernelExpansion) predictor() predictor {
	return expansion(m.learner, m.kernel, m.points, m.coef, m.intercept)
}

// Kernel returns the kernel of the fit, whether it was given or chosen by Fit.
func (m *kernelExpansion) Kernel() kernels.Kernel { return m.kernel }

// Intercept returns a copy of b, one entry for each output.
func (m *kernelExpansion) Intercept() []float64 { return slices.Clone(m.intercept) }

// expansionFields returns the fields of the kernel, the points, their coefficients and b. cols is the number of
// columns of the coefficients; a nil cols allows any number.
func (m *kernelExpansion) expansionFields(points, coef string, cols size) []field {
	return []field{
		pointsField(points, &m.kernel, &m.points),
		matrixField(coef, &m.coef, numberOfPoints(&m.points), cols),
		rowField("intercept", &m.intercept, colsOf(&m.coef), anyNumber),
	}
}

// solution is the common part of models that were fitted by a solver of (K + λI)α = y.
type solution struct {
	lambda       float64
	hasIntercept bool // whether the model was fitted with an intercept
	result       *solvers.Result
}

// Solved implements the interface Solved.
func (s *solution) Solved() *solvers.Result { return s.result }

// Lambda returns the λ of the fit, or the λ of the first target if each target has its own.
func (s *solution) Lambda() float64 { return s.lambda }

func (s *solution) solutionFields() []field {
	return []field{lambdaField(&s.lambda), boolField("intercept", &s.hasIntercept)}
}

// solutions is a solution whose targets may have separate λ.
type solutions struct {
	solution
	lambdas []float64 // nil means lambda for each target
}

// Lambdas returns a copy of the λ of the targets if each target has its own λ, otherwise nil.
func (s *solutions) Lambdas() []float64 { return slices.Clone(s.lambdas) }

// linearClassifier is the common part of classifiers with linear decision values.
type linearClassifier struct {
	linear
	classified
}

// Dims implements Model.
func (m *linearClassifier) Dims() (features, outputs int) { return m.coef.Rows, min(m.coef.Rows, 1) }

// Decision implements Classifier: xW + b.
func (m *linearClassifier) Decision(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.linear.Predict(ctx, dev, x)
}

// Predict implements Model: the class that the decision values imply.
func (m *linearClassifier) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.classes.decide(m.Decision(ctx, dev, x))
}

func (m *linearClassifier) fields() []field {
	return append([]field{classesField(&m.classes)}, m.coefFields(columnsOf(&m.classes))...)
}

// kernelClassifier is the common part of classifiers whose decision values are sums of kernel functions.
type kernelClassifier struct {
	kernelExpansion
	classified
}

// Dims implements Model.
func (m *kernelClassifier) Dims() (features, outputs int) {
	return m.points.Cols, min(m.points.Cols, 1)
}

// Decision implements Classifier: k(x, points)a + b.
func (m *kernelClassifier) Decision(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.kernelExpansion.Predict(ctx, dev, x)
}

// Predict implements Model: the class that the decision values imply.
func (m *kernelClassifier) Predict(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error) {
	return m.classes.decide(m.Decision(ctx, dev, x))
}

func (m *kernelClassifier) classFields(points, coef string) []field {
	return append([]field{classesField(&m.classes)}, m.expansionFields(points, coef, columnsOf(&m.classes))...)
}

package learners

import (
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/svm"
	"github.com/mercer-go/mercer/kernels"
	"gonum.org/v1/gonum/mat"
)

// Parts holds copies of the parts of a fitted model, for inspection.
type Parts struct {
	// Kernel is the kernel of f(x) = Σ_i k(x_i, x) a_i + b, or nil for other models.
	Kernel kernels.Kernel
	// Points are the m points x_i of d features: the support or relevance vectors, the centers, the samples with a
	// coefficient, or all samples for models without coefficients. They are a *mat.Dense, or a backend.CSR if the model
	// was fitted to sparse samples. They are nil for models without a kernel.
	Points mat.Matrix
	// Coef has a column for each output or decision value. It is m×k with a row of coefficients a_i for each point;
	// without points it holds the d×k weights W of xᵀW + b. It is nil for other models. For an SVC of K classes it has
	// K − 1 columns: the coefficients of a point in the two-class machines of its class and each other class.
	Coef      *mat.Dense
	Intercept []float64 // b, with an entry for each column of Coef or each machine

	counts []float64 // for an SVC, the number of points of each class
}

// Weights returns the weights w of f(x) = xᵀw + b for a model of the linear kernel with sparse points. w has a column
// for each entry of Intercept, and a row for each entry of features: the features that occur in some point. w is nil
// for other models.
func (p Parts) Weights() (features []int32, w *mat.Dense) {
	x, sparse := p.Points.(backend.CSR[float64])
	if _, linear := p.Kernel.(kernels.Linear); !sparse || !linear || p.Coef == nil {
		return nil, nil
	}
	coef := p.Machines()
	usedPoints, features := numeric.SparsePoints(x).Used()
	if features == nil {
		for j := range usedPoints.Cols {
			features = append(features, int32(j))
		}
	}
	raw := coef.RawMatrix()
	h := usedPoints.Weights(backend.Host[float64]{Rows: raw.Rows, Cols: raw.Cols, Stride: raw.Stride, Data: raw.Data})
	return features, mat.NewDense(h.Rows, h.Cols, h.Data)
}

// Machines returns coefficients with a column for each entry of Intercept. They equal Coef except for an SVC of K > 2
// classes, where they are m×K(K−1)/2. For a machine of two classes, they are 0 at the points of all other classes.
func (p Parts) Machines() *mat.Dense {
	classes := len(p.counts)
	if classes <= 2 {
		return p.Coef
	}
	rows, _ := p.Coef.Dims()
	coef := mat.NewDense(rows, len(p.Intercept), nil)
	i := 0
	for c, count := range p.counts {
		for last := i + int(count); i < last; i++ {
			for other := range c {
				coef.Set(i, svm.At(other, c, classes), p.Coef.At(i, other))
			}
			for other := c + 1; other < classes; other++ {
				coef.Set(i, svm.At(c, other, classes), p.Coef.At(i, other-1))
			}
		}
	}
	return coef
}

// PartsOf returns the parts of a model.
func PartsOf(m Model) Parts {
	if numeric.IsNil(m) {
		return Parts{}
	}
	if c, ok := m.(*ClassifyModel); ok {
		m = c.regressor()
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
	return Parts{Kernel: m.kernel, Points: copyOfPoints(m.points), Coef: denseOf(m.coef), Intercept: slices.Clone(m.b), counts: m.counts}
}

func (m *FourierRidgeModel) parts() Parts {
	return Parts{Kernel: m.kernel, Intercept: m.Intercept()}
}

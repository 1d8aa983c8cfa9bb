package learners

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/internal/count"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// JointPerceptron is the perceptron of K classes on joint features φ(x, t): the first
// class with the largest wᵀφ(x, t) is predicted, and a mistake changes w by
// φ(x, y) − φ(x, ŷ) (Collins 2002). Perceptron is that of φ(x, t) = x ⊗ e_t, on a device;
// this one runs on the host, at K features for each sample and epoch.
type JointPerceptron struct {
	// Features returns φ(x, t) for t from 0 to Classes − 1, always of the same length.
	Features func(x []float64, t int) []float64
	Classes  int  // K ≥ 2
	Averaged bool // w averaged over all steps
	Epochs   int  // most passes over the samples; 0 is 100
}

// JointPerceptronModel is a fitted JointPerceptron.
type JointPerceptronModel struct {
	W        []float64
	Mistakes int
	Clean    bool // the last epoch had no mistake
	learner  JointPerceptron
}

// Fit fits the samples, one a row of x, to their classes y.
func (l JointPerceptron) Fit(ctx context.Context, x mat.Matrix, y []int) (*JointPerceptronModel, error) {
	fail := func(format string, a ...any) (*JointPerceptronModel, error) {
		return nil, fmt.Errorf("learners: joint perceptron: "+format, a...)
	}
	n, _ := x.Dims()
	switch {
	case l.Features == nil:
		return fail("Features is missing")
	case l.Classes < 2 || l.Epochs < 0:
		return fail("Classes must be ≥ 2 and Epochs ≥ 0, got %d and %d", l.Classes, l.Epochs)
	case n == 0 || len(y) != n:
		return fail("x has %s, y has %d", count.Of(n, "row"), len(y))
	}
	if l.Epochs == 0 {
		l.Epochs = 100
	}
	m := &JointPerceptronModel{learner: l, W: make([]float64, len(l.Features(mat.Row(nil, 0, x), 0)))}
	late := make([]float64, len(m.W)) // changes, each times the step after which it counts
	step := 0
	for epoch := 0; epoch < l.Epochs && !m.Clean; epoch++ {
		m.Clean = true
		for i, class := range y {
			if ctx.Err() != nil {
				return fail("%w", context.Cause(ctx))
			}
			if class < 0 || class >= l.Classes {
				return fail("y: row %d must be a class from 0 to %d, got %d", i+1, l.Classes-1, class)
			}
			row := mat.Row(nil, i, x)
			best, err := m.predict(row)
			if err != nil {
				return fail("row %d: %w", i+1, err)
			}
			if best != class {
				for s, t := range []int{class, best} {
					sign := float64(1 - 2*s)
					phi := vectorOf(l.Features(row, t))
					blas64.Axpy(sign, phi, vectorOf(m.W))
					blas64.Axpy(sign*float64(step), phi, vectorOf(late))
				}
				m.Mistakes++
				m.Clean = false
			}
			step++
		}
	}
	if l.Averaged {
		blas64.Axpy(-1/float64(step), vectorOf(late), vectorOf(m.W))
	}
	return m, nil
}

// Predict returns the class of each row of x.
func (m *JointPerceptronModel) Predict(x mat.Matrix) ([]int, error) {
	n, _ := x.Dims()
	classes := make([]int, n)
	var err error
	for i := range classes {
		if classes[i], err = m.predict(mat.Row(nil, i, x)); err != nil {
			return nil, fmt.Errorf("learners: joint perceptron: row %d: %w", i+1, err)
		}
	}
	return classes, nil
}

func (m *JointPerceptronModel) predict(x []float64) (int, error) {
	f := make([]float64, m.learner.Classes)
	for t := range f {
		phi := m.learner.Features(x, t)
		if len(phi) != len(m.W) {
			return 0, fmt.Errorf("class %d has %s, others %d", t, count.Of(len(phi), "feature"), len(m.W))
		}
		f[t] = blas64.Dot(vectorOf(phi), vectorOf(m.W))
	}
	if slices.ContainsFunc(f, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
		return 0, errors.New("the features are not finite, or overflow")
	}
	return largest(f), nil
}

package online

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"
)

// Joint is the perceptron of K classes with joint features φ(x, t) of a sample x and a class t (Collins 2002). It
// predicts the first class ŷ with the largest wᵀφ(x, t). A mistake on a sample of class y changes w by
// φ(x, y) − φ(x, ŷ). Joint runs on the host and calls Features K times for each sample and epoch.
//
// If Kernel is set instead of Features, Joint uses the dual form: wᵀφ(x, t) is the sum of the differences
// k(x_i, y_i, x, t) − k(x_i, ŷ_i, x, t) over the mistakes (x_i, y_i, ŷ_i). For each pair of a sample and a distinct
// mistake it evaluates Kernel 2K times.
type Joint struct {
	// Features returns φ(x, t) for t from 0 to Classes − 1, always of the same length.
	Features func(x []float64, t int) []float64
	// Kernel returns k(x, t, z, s) = φ(x, t)ᵀφ(z, s). It is used if Features is nil.
	Kernel   func(x []float64, t int, z []float64, s int) float64
	Classes  int  // number K of classes, at least 2
	Averaged bool // whether the result is the average of w over all steps
	Epochs   int  // maximum number of passes over the samples; 0 means 100
}

// JointModel is a fitted Joint.
type JointModel struct {
	W        []float64   // w, if Features is set
	Terms    []JointTerm // if Kernel is set: wᵀφ(x, t) = Σ Weight·k(X, Class, x, t)
	Mistakes int
	Clean    bool // whether the last epoch had no mistake
	learner  Joint
}

// JointTerm is a pair of a sample and a class, with its weight.
type JointTerm struct {
	X      []float64
	Class  int
	Weight float64
}

// Fit fits the samples, which are the rows of x, to their classes y.
func (l Joint) Fit(ctx context.Context, x mat.Matrix, y []int) (*JointModel, error) {
	fail := func(format string, a ...any) (*JointModel, error) {
		return nil, fmt.Errorf("online: joint perceptron: "+format, a...)
	}
	n, _ := x.Dims()
	switch {
	case (l.Features == nil) == (l.Kernel == nil):
		return fail("either Features or Kernel must be given")
	case l.Classes < 2 || l.Epochs < 0:
		return fail("Classes must be ≥ 2 and Epochs ≥ 0, got %d and %d", l.Classes, l.Epochs)
	case n == 0 || len(y) != n:
		return fail("x has %s, y has %d", count.Of(n, "row"), len(y))
	}
	if l.Epochs == 0 {
		l.Epochs = 100
	}
	m := &JointModel{learner: l}
	if l.Features != nil {
		m.W = make([]float64, len(l.Features(mat.Row(nil, 0, x), 0)))
	}
	delayed := make([]float64, len(m.W)) // sum of the changes, each multiplied by the number of the step after which it takes effect
	index := map[[2]int]int{}            // index in m.Terms of a sample and a class
	var lateTerms []float64
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
					if l.Kernel != nil {
						p, known := index[[2]int{i, t}]
						if !known {
							p = len(m.Terms)
							index[[2]int{i, t}] = p
							m.Terms, lateTerms = append(m.Terms, JointTerm{X: row, Class: t}), append(lateTerms, 0)
						}
						m.Terms[p].Weight += sign
						lateTerms[p] += sign * float64(step)
						continue
					}
					phi := vector(l.Features(row, t))
					blas64.Axpy(sign, phi, vector(m.W))
					blas64.Axpy(sign*float64(step), phi, vector(delayed))
				}
				m.Mistakes++
				m.Clean = false
			}
			step++
		}
	}
	if l.Averaged {
		blas64.Axpy(-1/float64(step), vector(delayed), vector(m.W))
		for p, v := range lateTerms {
			m.Terms[p].Weight -= v / float64(step)
		}
	}
	return m, nil
}

// Predict returns the class of each row of x.
func (m *JointModel) Predict(x mat.Matrix) ([]int, error) {
	if m == nil {
		return nil, errors.New("online: joint perceptron: the model is not fitted")
	}
	n, _ := x.Dims()
	classes := make([]int, n)
	var err error
	for i := range classes {
		if classes[i], err = m.predict(mat.Row(nil, i, x)); err != nil {
			return nil, fmt.Errorf("online: joint perceptron: row %d: %w", i+1, err)
		}
	}
	return classes, nil
}

func (m *JointModel) predict(x []float64) (int, error) {
	f := make([]float64, m.learner.Classes)
	for t := range f {
		if m.learner.Kernel != nil {
			for _, term := range m.Terms {
				f[t] += term.Weight * m.learner.Kernel(term.X, term.Class, x, t)
			}
			continue
		}
		phi := m.learner.Features(x, t)
		if len(phi) != len(m.W) {
			return 0, fmt.Errorf("class %d has %s, but the other classes have %d", t, count.Of(len(phi), "feature"), len(m.W))
		}
		f[t] = numeric.Dot(phi, m.W)
	}
	if slices.ContainsFunc(f, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
		return 0, errors.New("the features or values of the kernel are not finite, or overflow")
	}
	return Largest(f), nil
}

// vector returns v as a vector of gonum's BLAS that shares its memory.
func vector(v []float64) blas64.Vector { return blas64.Vector{N: len(v), Inc: 1, Data: v} }

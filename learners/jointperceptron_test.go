package learners_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// TestJointPerceptron checks that with the features φ(x, t) = x ⊗ e_t, where e_t is unit vector t, the joint
// perceptron equals the perceptron of K classes, and that two features suffice for classes on a line.
func TestJointPerceptron(t *testing.T) {
	const n, d, classes = 40, 3, 4
	x, y := gaussians(t, n, d, 15)
	index := make([]int, n)
	for i := range n {
		index[i] = i % classes
		y.Set(i, 0, float64(index[i]))
	}
	kron := func(x []float64, c int) []float64 {
		phi := make([]float64, classes*d)
		copy(phi[c*d:], x)
		return phi
	}
	for kind, averaged := range map[learners.PerceptronKind]bool{learners.LastPerceptron: false, learners.AveragedPerceptron: true} {
		got, err := learners.JointPerceptron{Features: kron, Classes: classes, Averaged: averaged, Epochs: 5}.Fit(t.Context(), x, index)
		if err != nil {
			t.Fatal(err)
		}
		want, err := learners.Perceptron{Kind: kind, NoIntercept: true, Epochs: 5, NoShuffle: true}.Fit(t.Context(), backendtest.Device(t, "cpu"), x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		coef := want.(*learners.PerceptronModel).Coef()
		for p := range d {
			for c := range classes {
				checkClose(t, "w", got.W[c*d+p], coef.At(p, c), 1e-12*(1+math.Abs(coef.At(p, c))))
			}
		}
		if mistakes := fact(t, want, "mistakes"); mistakes != got.Mistakes || got.Clean {
			t.Errorf("%d mistakes, want %v", got.Mistakes, mistakes)
		}
	}
	// The class of x is the nearest t, which maximizes xt − t²/2.
	line := learners.JointPerceptron{Classes: 3, Epochs: 1000, Features: func(x []float64, c int) []float64 {
		return []float64{x[0] * float64(c), float64(c * c)}
	}}
	queries, want := mat.NewDense(6, 1, []float64{-0.2, 0.2, 0.8, 1.2, 1.8, 2.2}), []int{0, 0, 1, 1, 2, 2}
	m, err := line.Fit(t.Context(), queries, want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := m.Predict(queries); err != nil || !slices.Equal(got, want) || !m.Clean {
		t.Errorf("%v, %v", got, err)
	}
	// For integers the kernel φᵀφ has no rounding errors. The perceptron with this kernel therefore takes the same
	// steps as the perceptron with the features φ.
	for _, averaged := range []bool{false, true} {
		primal := line
		primal.Averaged = averaged
		dual := learners.JointPerceptron{Classes: 3, Epochs: 1000, Averaged: averaged, Kernel: func(x []float64, c int, z []float64, s int) float64 {
			p, q := line.Features(x, c), line.Features(z, s)
			return p[0]*q[0] + p[1]*q[1]
		}}
		integers := mat.NewDense(6, 1, []float64{0, 0, 1, 1, 2, 2})
		a, err := primal.Fit(t.Context(), integers, want)
		if err != nil {
			t.Fatal(err)
		}
		b, err := dual.Fit(t.Context(), integers, want)
		if err != nil {
			t.Fatal(err)
		}
		if a.Mistakes != b.Mistakes || a.Mistakes == 0 || a.Clean != b.Clean {
			t.Errorf("averaged %v: %d mistakes by features, %d by the kernel", averaged, a.Mistakes, b.Mistakes)
		}
		w := make([]float64, 2)
		for _, term := range b.Terms {
			for i, v := range line.Features(term.X, term.Class) {
				w[i] += term.Weight * v
			}
		}
		for i := range w {
			checkClose(t, "w", w[i], a.W[i], 1e-12*(1+math.Abs(a.W[i])))
		}
	}
	rbf := learners.JointPerceptron{Classes: classes, Epochs: 1000, Kernel: func(x []float64, c int, z []float64, s int) float64 {
		if c != s {
			return 0
		}
		d := 0.0
		for i := range x {
			d += (x[i] - z[i]) * (x[i] - z[i])
		}
		return math.Exp(-d / 0.02)
	}}
	b, err := rbf.Fit(t.Context(), x, index)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := b.Predict(x); err != nil || !slices.Equal(got, index) || !b.Clean {
		t.Errorf("%v, %v", got, err)
	}
	rbf.Features = kron
	if _, err := rbf.Fit(t.Context(), x, index); err == nil || !strings.Contains(err.Error(), "either Features or Kernel") {
		t.Errorf("got %v", err)
	}
	if _, err := line.Fit(t.Context(), queries, []int{0, 0, 1, 1, 2, 3}); err == nil || !strings.Contains(err.Error(), "row 6 must be a class from 0 to 2, got 3") {
		t.Errorf("got %v", err)
	}
}

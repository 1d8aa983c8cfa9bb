package learners_test

import (
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"github.com/mercer-go/mercer/learners/validate"
	"gonum.org/v1/gonum/mat"
)

func TestKernelPerceptron(t *testing.T) {
	for name, l := range map[string]learners.KernelPerceptron{
		"default":  {NoIntercept: true, NoShuffle: true},
		"averaged": {Kernel: kernels.Gaussian{Sigma: 2}, Kind: learners.AveragedPerceptron},
		"voted":    {Kernel: kernels.Gaussian{Sigma: 2}, Kind: learners.VotedPerceptron, Epochs: 10, NoIntercept: true, NoShuffle: true},
		"budget":   {Kernel: kernels.Gaussian{Sigma: 2}, Budget: 14, Cache: 1, NoIntercept: true, NoShuffle: true},
	} {
		t.Run(name, func(t *testing.T) {
			unfitted := []learners.Model{&learners.KernelPerceptronModel{}}
			if l.Kind == learners.VotedPerceptron {
				unfitted = []learners.Model{&learners.VotedModel{}}
			}
			learnertest.Run(t, learnertest.Suite{
				Learner:  "kernel-perceptron",
				Task:     learners.Classification,
				Fit:      fitter(l.Fit),
				Unfitted: unfitted,
				Steps:    true,
			})
		})
	}
}

// xor returns the four points of XOR and their classes.
func xor() (x, y *mat.Dense) {
	return mat.NewDense(4, 2, []float64{1, 1, -1, 1, -1, -1, 1, -1}), mat.NewDense(4, 1, []float64{1, -1, 1, -1})
}

// TestXOR checks that the first epoch gives α = (1, 0, 0, 0), that the second epoch has no mistake,
// and that f(x) = (x1+x2)².
func TestXOR(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		x, y := xor()
		c, err := learners.KernelPerceptron{Kernel: kernels.Polynomial{Degree: 2}, NoIntercept: true, NoShuffle: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		m := c.(*learners.KernelPerceptronModel)
		if n, _ := m.Alpha().Dims(); n != 1 || m.Alpha().At(0, 0) != 1 || !slices.Equal(m.Counts(), []float64{1}) {
			t.Errorf("alpha is %v", mat.Formatted(m.Alpha()))
		}
		if center := m.State().Arrays["centers"]; center.Rows != 1 || center.Row(0)[0] != 1 || center.Row(0)[1] != 1 {
			t.Errorf("the center is %v", center)
		}
		if epochs, mistakes := fact(t, m, "epochs"), fact(t, m, "mistakes"); epochs != 2 || mistakes != 1 {
			t.Errorf("%v mistakes in %v epochs", mistakes, epochs)
		}
		if !mat.Equal(labels(t, dev, m, x), y) {
			t.Error("the model does not predict the classes of the points")
		}
		grid := mat.NewDense(25, 2, nil)
		for i := range 25 {
			grid.SetRow(i, []float64{float64(i%5 - 2), float64(i/5 - 2)})
		}
		f, err := m.Decision(t.Context(), dev, grid)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 25 {
			sum := grid.At(i, 0) + grid.At(i, 1)
			checkClose(t, "f", f.At(i, 0), sum*sum, 0) // integers are exact
		}
	})
}

// TestKernelPerceptronIsLinear checks that the kernel perceptron with the linear kernel has the mistakes and the
// decision values of the perceptron, for every kind of perceptron.
func TestKernelPerceptronIsLinear(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		for _, classes := range []int{2, 4} {
			t.Logf("seed 9, %d classes", classes)
			x, y := wholeNumbers(203, 4, classes, 9)
			for _, kind := range []learners.PerceptronKind{learners.LastPerceptron, learners.AveragedPerceptron, learners.VotedPerceptron} {
				for _, bias := range []bool{false, true} {
					a, err := learners.Perceptron{Kind: kind, NoIntercept: !bias, Epochs: 5, NoShuffle: true}.Fit(t.Context(), dev, x, y, learners.Options{})
					if err != nil {
						t.Fatal(err)
					}
					// The cache has space for only two rows, so that rows are computed again.
					b, err := learners.KernelPerceptron{Kind: kind, Kernel: kernels.Linear{}, NoIntercept: !bias, Epochs: 5, Cache: 1, NoShuffle: true}.Fit(t.Context(), dev, x, y, learners.Options{})
					if err != nil {
						t.Fatal(err)
					}
					if p, q := fact(t, a, "mistakes"), fact(t, b, "mistakes"); p != q {
						t.Errorf("%s: %v and %v mistakes", kind, p, q)
					}
					f, err := a.Decision(t.Context(), dev, x)
					if err != nil {
						t.Fatal(err)
					}
					g, err := b.Decision(t.Context(), dev, x)
					if err != nil {
						t.Fatal(err)
					}
					// Sums of integers are exact. The averaged perceptron rounds the coefficients of the 203 centers;
					// its sums are at most 5·203·7²·4.
					bound := 0.0
					if kind == learners.AveragedPerceptron {
						bound = 203 * 0x1p-52 * 5 * 203 * 49 * 4
					}
					n, cols := f.Dims()
					for i := range n {
						for c := range cols {
							checkClose(t, string(kind), g.At(i, c), f.At(i, c), bound)
						}
					}
				}
			}
		}
	})
}

// TestBudget checks that the model has at most as many centers as its budget and still classifies
// better than chance, and that a budget for all samples gives the same model as no budget.
func TestBudget(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := wholeNumbers(300, 3, 3, 5)
	t.Log("seed 5")
	k := kernels.Gaussian{Sigma: 6}
	fit := func(budget int) (learners.Classifier, float64) {
		m, err := learners.KernelPerceptron{Kernel: k, Budget: budget, Epochs: 10, NoIntercept: true, NoShuffle: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		s, err := validate.ScoreClassification(m.Classes(), nil, y, validate.Outcome{Values: labels(t, dev, m, x)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return m, *s.Accuracy
	}
	unlimited, accuracy := fit(0)
	ample, ampleAccuracy := fit(300)
	if fact(t, unlimited, "mistakes") != fact(t, ample, "mistakes") || accuracy != ampleAccuracy {
		t.Errorf("a budget with room for all: accuracy %v instead of %v", ampleAccuracy, accuracy)
	}
	limited, limitedAccuracy := fit(40)
	if n := fact(t, limited, "support").(int); n > 40 {
		t.Errorf("%d samples in f", n)
	}
	t.Logf("accuracy %v with %v samples, %v with 40", accuracy, fact(t, unlimited, "support"), limitedAccuracy)
	if limitedAccuracy < 0.6 { // a constant prediction is right for less than half of the samples
		t.Errorf("accuracy %v", limitedAccuracy)
	}
}

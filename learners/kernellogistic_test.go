package learners_test

import (
	"math"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"gonum.org/v1/gonum/mat"
)

func TestKernelLogistic(t *testing.T) {
	for name, l := range map[string]learners.KernelLogistic{
		"intercept":    {Lambda: 1, Kernel: kernels.Gaussian{Sigma: 2}, Tol: 1e-6},
		"no intercept": {Lambda: 0.5, Kernel: kernels.Gaussian{Sigma: 2}, NoIntercept: true, Tol: 1e-6},
	} {
		t.Run(name, func(t *testing.T) {
			learnertest.Run(t, learnertest.Suite{
				Learner:  "kernel-logistic",
				Task:     learners.Classification,
				Fit:      fitter(l.Fit),
				Unfitted: []learners.Model{&learners.KernelLogisticModel{}},
				// Condition is 1e-6/1e-13, for the tolerance 1e-6 of this iterative learner, times the bound 100 on the
				// condition number of K + λW⁻¹.
				Condition: 1e9,
			})
		})
	}
}

// TestKernelLogisticIsLinear checks that with the linear kernel the model equals the model of
// logistic regression with w = Xᵀα, for two classes and for more.
func TestKernelLogisticIsLinear(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		for _, classes := range []int{2, 4} {
			for _, noIntercept := range []bool{false, true} {
				t.Logf("seed 11, %d classes, no intercept %t", classes, noIntercept)
				x, y := wholeNumbers(80, 3, classes, 11)
				weights := make([]float64, 80)
				for i := range weights {
					weights[i] = float64(i % 4)
				}
				o := learners.Options{Weights: weights}
				a, err := learners.Logistic{Lambda: 2, NoIntercept: noIntercept, Tol: 1e-15}.Fit(t.Context(), dev, x, y, o)
				if err != nil {
					t.Fatal(err)
				}
				b, err := learners.KernelLogistic{Kernel: kernels.Linear{}, Lambda: 2, NoIntercept: noIntercept, Tol: 1e-7, MaxIter: 1000}.Fit(t.Context(), dev, x, y, o)
				if err != nil {
					t.Fatal(err)
				}
				p, err := a.Proba(t.Context(), dev, x)
				if err != nil {
					t.Fatal(err)
				}
				q, err := b.Proba(t.Context(), dev, x)
				if err != nil {
					t.Fatal(err)
				}
				n, k := p.Dims()
				for i := range n {
					for c := range k {
						// The tolerance is the residual, 1e-7, times the bound 80·3·4·49/2 on ‖XᵀX‖/λ.
						checkClose(t, "p", q.At(i, c), p.At(i, c), 1e-7*80*3*4*49/2)
					}
				}
				checkClose(t, "loss", fact(t, b, "loss").(float64), fact(t, a, "loss").(float64), 1e-9*fact(t, a, "loss").(float64))
			}
		}
	})
}

// TestKernelLogisticMinimum checks that λα = w(y − p), where p are the model's own predictions.
func TestKernelLogisticMinimum(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		x, y := wholeNumbers(60, 3, 3, 13)
		t.Log("seed 13")
		const lambda, tol = 0.1, 1e-8
		m, err := learners.KernelLogistic{Kernel: kernels.Gaussian{Sigma: 8}, Lambda: lambda, Tol: tol, MaxIter: 1000}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		p, err := m.Proba(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		alpha := m.Alpha()
		for c := range 3 {
			sum := 0.0
			for i := range 60 {
				g := -p.At(i, c)
				if y.At(i, 0) == float64(c) {
					g++
				}
				// The first term of the tolerance is tol times the bound √120 on the norm of y − p. The second term is
				// a bound on the rounding errors of Kα, whose elements are at most 60/λ.
				checkClose(t, "λα", lambda*alpha.At(i, c), g, tol*math.Sqrt(120)+1e3*0x1p-52*60/lambda)
				sum += alpha.At(i, c)
			}
			checkClose(t, "λΣα", lambda*sum, 0, 2*math.Sqrt(60)*tol*math.Sqrt(120)) // |Σg| and |Σ(λα − g)| are at most √n times the norms of g and of λα − g

		}
	})
}

// TestKernelLogisticXOR checks the probabilities of the points of XOR, which follow from symmetry, and the errors
// for invalid input.
func TestKernelLogisticXOR(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		x, y := xor()
		m, err := learners.KernelLogistic{Kernel: kernels.Polynomial{Degree: 2}, Lambda: 1, NoIntercept: true, Tol: 1e-12}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !mat.Equal(labels(t, dev, m, x), y) {
			t.Error("the model does not predict the classes of the points")
		}
		// By symmetry α = ±a and f = ±8a, with a = 1 − σ(8a) for the logistic function σ.
		alpha := m.Alpha()
		a := alpha.At(0, 0)
		checkClose(t, "a", a, 1/(1+math.Exp(8*a)), 1e-10)
		for i, sign := range []float64{1, -1, 1, -1} {
			checkClose(t, "alpha", alpha.At(i, 0), sign*a, 1e-10)
		}
		_, err = learners.KernelLogistic{Kernel: kernels.Polynomial{Degree: 2}}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err == nil || !strings.Contains(err.Error(), "lambda must be a finite number > 0, got 0") {
			t.Errorf("got %v", err)
		}
		_, err = learners.KernelLogistic{Kernel: kernels.Sigmoid{A: 1, C: -1}, Lambda: 1e-6}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err == nil || !strings.Contains(err.Error(), "K + λI is not positive definite") {
			t.Errorf("a kernel that is not positive semidefinite: %v", err)
		}
		m, err = learners.KernelLogistic{Lambda: 1e-3, Tol: 1e-12, MaxIter: 1, Kernel: kernels.Gaussian{Sigma: 1}}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if w := fact(t, m, "warning").(string); !strings.Contains(w, "did not converge within 1 Newton step") || !(fact(t, m, "residual").(float64) > 1e-12) {
			t.Errorf("got %q", w)
		}
		if fact(t, m, "loss").(float64) >= 4*math.Ln2 { // 4 ln 2 is the loss of α = 0
			t.Error("a step that was kept did not lower the loss")
		}
	})
}

// TestKernelLogisticManyClasses counts the products with K of a fit to 600 samples of six classes that overlap. A
// method that updates one class after another would take as many operations as 3000 products.
func TestKernelLogisticManyClasses(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	t.Log("seed 17")
	x, y := overlapping(600, 6, 1.5, 17)
	for _, lambda := range []float64{1, 1e-2} {
		m, err := learners.KernelLogistic{Lambda: lambda}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("lambda %g: %v", lambda, m.Facts())
		if r := fact(t, m, "residual").(float64); !(r <= 1e-6) {
			t.Errorf("lambda %g: residual %g", lambda, r)
		}
		if p := fact(t, m, "products with K").(int); p > 1000 {
			t.Errorf("lambda %g: %d products with K", lambda, p)
		}
	}
}

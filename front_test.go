package mercer_test

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/strings"
	"github.com/mercer-go/mercer/kernels/trees"
	"github.com/mercer-go/mercer/learners"
)

// TestLassoPath: with columns of XᵀX = I each weight is that of Xᵀy moved by λ/2 toward 0.
func TestLassoPath(t *testing.T) {
	x, y := mat.NewDense(3, 3, []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}), mat.NewVecDense(3, []float64{3, -2, 0.5})
	lambdas := []float64{8, 4, 2, 0.5}
	models, err := mercer.LassoPath(t.Context(), learners.Lasso{NoIntercept: true, Tol: 1e-14}, x, y, lambdas, mercer.Options{})
	if err != nil || len(models) != len(lambdas) {
		t.Fatal(len(models), err)
	}
	for i, m := range models {
		f, err := m.Predict(t.Context(), x) // the weights, as X = I
		if err != nil {
			t.Fatal(err)
		}
		for j := range 3 {
			want := math.Copysign(math.Max(math.Abs(y.AtVec(j))-lambdas[i]/2, 0), y.AtVec(j))
			// A duality gap of 1e-14‖y‖² bounds ‖w − w*‖² by it.
			if got := f.At(j, 0); !(math.Abs(got-want) <= 1e-7*mat.Norm(y, 2)) {
				t.Errorf("λ = %v: weight %d is %v, want %v", lambdas[i], j+1, got, want)
			}
		}
	}
	if _, err := mercer.LassoPath(t.Context(), learners.Lasso{}, x, y, []float64{-1}, mercer.Options{}); err == nil {
		t.Error("λ = -1: no error")
	}
}

func TestNeighborsOfAModel(t *testing.T) {
	m, err := mercer.Fit(t.Context(), learners.KernelKNN{K: 2}, mat.NewDense(3, 1, []float64{0, 1, 4}), mat.NewDense(3, 1, nil), mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	at := mat.NewDense(2, 1, []float64{0.75, 3})
	samples, squares, err := m.Neighbors(t.Context(), at)
	if err != nil || !slices.Equal(samples[0], []int{1, 0}) || !slices.Equal(samples[1], []int{2, 1}) {
		t.Fatal(samples, err)
	}
	if !slices.Equal(squares[0], []float64{0.0625, 0.5625}) || !slices.Equal(squares[1], []float64{1, 4}) {
		t.Error(squares)
	}
	if _, err := m.Pairs(t.Context(), at); err == nil || err.Error() != "mercer: this model of kernel-knn has no pairs of classes: svc has them" {
		t.Error(err)
	}
}

// TestPairsOfAModel: of samples at 0, 2 and 6 the machine of a pair at a and b is
// 2(x − (a + b)/2)/(b − a).
func TestPairsOfAModel(t *testing.T) {
	x := mat.NewDense(3, 1, []float64{0, 2, 6})
	m, err := mercer.Fit(t.Context(), learners.SVC{Kernel: kernels.Linear{}, C: 100, Tol: 1e-9}, x, mat.NewDense(3, 1, []float64{0, 1, 2}), mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := m.Pairs(t.Context(), mat.NewDense(1, 1, []float64{1}))
	if err != nil {
		t.Fatal(err)
	}
	for pair, want := range []float64{0, -2.0 / 3, -1.5} {
		if !(math.Abs(got.At(0, pair)-want) <= 1e-8) { // Tol bounds the gradient, of which values here are sums of a few
			t.Errorf("pair %d: %v, want %v", pair+1, got.At(0, pair), want)
		}
	}
	if _, _, err := m.Neighbors(t.Context(), x); err == nil {
		t.Error("an SVC has neighbors")
	}
}

// TestTableOfKernelValues: of texts and of their Gram matrix a table has the predictions
// Σ_i α_i k(x_i, x) with (K + λI)α = y, also after the model was saved. k counts the letters
// that two texts share.
func TestTableOfKernelValues(t *testing.T) {
	k := mat.NewSymDense(3, []float64{1, 0, 1, 0, 1, 1, 1, 1, 2})
	alpha, err := mercer.Solve(t.Context(), k, 0.5, mat.NewVecDense(3, []float64{1, -2, 3}), mercer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := 2*alpha.At(0, 0) + alpha.At(1, 0) + 3*alpha.At(2, 0) // of "aab"
	learner := learners.KernelRidge{Kernel: kernels.Precomputed{}, Lambda: 0.5, NoIntercept: true}
	letters := mercer.Options{Objects: strings.Spectrum{Length: 1, Raw: true}}
	text := dataset.Rules{Targets: []string{"y"}, Text: "text"}
	for name, c := range map[string]struct {
		table, row string
		rules      dataset.Rules
		o          mercer.Options
	}{
		"texts":         {"text,y\na,1\nb,-2\nab,3\n", "text\naab\n", text, letters},
		"a Gram matrix": {"a,b,ab,y\n1,0,1,1\n0,1,1,-2\n1,1,2,3\n", "a,b,ab\n2,1,3\n", dataset.Rules{Targets: []string{"y"}, Gram: true}, mercer.Options{}},
	} {
		t.Run(name, func(t *testing.T) {
			fitted, err := mercer.FitTable(t.Context(), learner, readTable(t, c.table), c.rules, c.o)
			if err != nil {
				t.Fatal(err)
			}
			m := reloaded(t, fitted)
			got, err := m.PredictRows(t.Context(), readTable(t, c.row), mercer.Wanted{})
			// Both solutions have a relative residual of 1e-8, and |α| and k are below 8.
			if err != nil || !(math.Abs(got[0].Values["y"]-want) <= 1e-6) {
				t.Errorf("%+v, %v, want %v", got, err, want)
			}
			if _, err := mercer.FitTable(t.Context(), learners.KernelRidge{Kernel: kernels.Linear{}, Lambda: 1, NoIntercept: true}, readTable(t, c.table), c.rules, c.o); err == nil {
				t.Error("a linear kernel on kernel values: no error")
			}
		})
	}
	table := readTable(t, "text,y\na,1\nb,-2\n")
	for name, o := range map[string]mercer.Options{"no kernel": {}, "a kernel on trees": {Objects: trees.Subtree{Decay: 1}}} {
		if _, err := mercer.FitTable(t.Context(), learner, table, text, o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := mercer.FitTable(t.Context(), learner, table, dataset.Rules{Targets: []string{"y"}}, letters); err == nil {
		t.Error("a kernel on texts without a column: no error")
	}
	if _, err := mercer.Fit(t.Context(), learner, mat.NewDense(1, 1, nil), mat.NewDense(1, 1, nil), letters); err == nil {
		t.Error("a kernel on texts for matrices: no error")
	}
}

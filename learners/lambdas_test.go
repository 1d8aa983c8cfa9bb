package learners_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// TestLambdasAgainstScikitLearn compares fits of kernel ridge and ridge that have a penalty for
// each target with those of scikit-learn. It also checks the penalties that a saved model reports.
func TestLambdasAgainstScikitLearn(t *testing.T) {
	x, target := table(t, true)
	n, _ := x.Dims()
	y := mat.NewDense(n, 3, nil)
	for i := range n {
		v := target.At(i, 0)
		y.SetRow(i, []float64{v, 300 - 2*v, math.Sqrt(v)})
	}
	lambdas := []float64{0.5, 20, 0.5}
	var want struct{ Kernel, Linear [][]float64 }
	scikit(t, map[string]any{"x": rowsOf(x), "y": rowsOf(y), "alpha": lambdas}, `
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
out["kernel"] = KernelRidge(kernel="rbf", gamma=1/18, alpha=a["alpha"]).fit(a["x"], a["y"]).predict(a["x"])
out["linear"] = Ridge(alpha=a["alpha"], solver="cholesky").fit(a["x"], a["y"]).predict(a["x"])
`, &want)
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		k, err := learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 3}, Lambdas: lambdas, NoIntercept: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := learners.Ridge{Lambdas: lambdas}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			m    learners.Model
			want [][]float64
		}{{k, want.Kernel}, {r, want.Linear}} {
			restored, err := learners.Restore(c.m.State())
			if err != nil {
				t.Fatal(err)
			}
			if got := restored.(interface{ Lambdas() []float64 }).Lambdas(); !slices.Equal(got, lambdas) {
				t.Errorf("%s: restored with %v", c.m.Learner(), got)
			}
			f, err := restored.Predict(t.Context(), dev, x)
			if err != nil {
				t.Fatal(err)
			}
			for j := range lambdas {
				size := mat.Norm(y.ColView(j), 2)
				for i := range n {
					// Both programs round sums of n terms; the condition number is at most 1 + n/0.5.
					checkClose(t, c.m.Learner(), f.At(i, j), c.want[i][j], 8*float64(n)*0x1p-52*(1+float64(n)/0.5)*size)
				}
			}
		}
		s := k.State()
		s.Arrays["lambdas"] = backend.Host[float64]{Rows: 1, Cols: 3, Stride: 3, Data: []float64{1, -1, 1}}
		if _, err := learners.Restore(s); err == nil || !strings.Contains(err.Error(), `array "lambdas": column 2 must be a finite number ≥ 0, got -1`) {
			t.Errorf("got %v", err)
		}
		_, err = learners.KernelRidge{Lambdas: lambdas[:2], NoIntercept: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err == nil || err.Error() != "learners: kernel-ridge: solvers: y has 3 columns, but lambda has 2 values: each column needs one value" {
			t.Errorf("got %v", err)
		}
		_, err = learners.KernelRidge{Kernel: kernels.Linear{}, Lambda: 1, Lambdas: []float64{1, 0, 1}}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err == nil || !strings.HasSuffix(err.Error(), "raise it, or use the learner ridge") {
			t.Errorf("got %v", err)
		}
	})
}

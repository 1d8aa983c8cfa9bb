package learners_test

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
)

// TestDependenceAgainstScikitLearn compares the partial dependence of kernel ridge regression with
// that of scikit-learn's partial_dependence, on the grid of scikit-learn.
func TestDependenceAgainstScikitLearn(t *testing.T) {
	x, y := table(t, true)
	n, d := x.Dims()
	var want struct{ Values, Average [][]float64 }
	scikit(t, map[string]any{"x": rowsOf(x), "y": mat.Col(nil, 0, y), "gamma": 1 / 32.}, `
from sklearn.kernel_ridge import KernelRidge
from sklearn.inspection import partial_dependence
m = KernelRidge(alpha=1, kernel="rbf", gamma=a["gamma"]).fit(a["x"], a["y"])
out["values"], out["average"] = [], []
for j in range(a["x"].shape[1]):
    p = partial_dependence(m, a["x"], [j], kind="average", method="brute", grid_resolution=25)
    out["values"].append(p["values"][0].tolist())
    out["average"].append(p["average"][0].tolist())
`, &want)
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		m, err := learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 4}, Lambda: 1, NoIntercept: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		// The condition number of K + I is at most n + 1, and ‖α‖₁ ≤ √n‖y‖. The bound is for the rounding errors of α
		// and of sums of n terms.
		bound := float64(n) * float64(n) * 0x1p-52 * math.Sqrt(float64(n)) * mat.Norm(y, 2)
		for j := range d {
			p := validate.DependenceParams{First: j}
			for _, v := range want.Values[j] {
				p.Grid = append(p.Grid, []float64{v})
			}
			means, err := validate.Dependence(t.Context(), dev, m, x, p)
			if err != nil {
				t.Fatal(err)
			}
			for g, v := range want.Average[j] {
				checkClose(t, "the average", means.At(g, 0), v, bound)
			}
		}
	})
}

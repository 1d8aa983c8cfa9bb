package learners_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// Leave-one-out errors of a path against scikit-learn's RidgeCV, which has
// closed forms of its own: with its intercept for a linear kernel, by each way
// through the samples or the features, and without one for a Gaussian kernel
// whose square root is handed over as features.
func TestPathAgainstScikitLearn(t *testing.T) {
	x, y, weights := diabetes(t)
	n, d := x.Dims()
	alphas := []float64{0.01, 0.3, 1, 25, 1000}
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = x.RawRowView(i)
	}
	var want struct {
		Linear, Weighted, Gaussian [][]float64
	}
	scikit(t, map[string]any{"x": rows, "y": mat.Col(nil, 0, y), "w": weights, "alphas": alphas}, `
from sklearn.linear_model import RidgeCV
from sklearn.metrics.pairwise import rbf_kernel
def errors(x, y, w=None, intercept=True):
    r = RidgeCV(alphas=a["alphas"], store_cv_values=True, gcv_mode="eigen", fit_intercept=intercept).fit(x, y, sample_weight=w)
    return r.cv_values_
out["linear"] = errors(a["x"], a["y"])
out["weighted"] = errors(a["x"], a["y"], a["w"])
s, u = np.linalg.eigh(rbf_kernel(a["x"], gamma=1 / 18))
out["gaussian"] = errors(u * np.sqrt(np.maximum(s, 0)), a["y"], None, False)
`, &want)
	hx := backend.Host[float64]{Rows: n, Cols: d, Stride: x.RawMatrix().Stride, Data: x.RawMatrix().Data}
	hy := backend.Host[float64]{Rows: n, Cols: 1, Stride: 1, Data: mat.Col(nil, 0, y)}
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		if strings.HasPrefix(dev.Info().Device, "ref") {
			t.Skip("442 samples are many for plain loops")
		}
		for _, c := range []struct {
			name     string
			p        solvers.Problem
			want     [][]float64
			weighted bool
			methods  []solvers.PathMethod
		}{
			{"linear", solvers.Problem{Kernel: kernels.Linear{}, Intercept: true}, want.Linear, false, []solvers.PathMethod{solvers.PathPrimal, solvers.PathBand}},
			{"weighted", solvers.Problem{Kernel: kernels.Linear{}, Intercept: true, Weights: weights}, want.Weighted, true, []solvers.PathMethod{solvers.PathPrimal, solvers.PathCholesky}},
			{"gaussian", solvers.Problem{Kernel: kernels.Gaussian{Sigma: 3}}, want.Gaussian, false, []solvers.PathMethod{solvers.PathBand, solvers.PathCholesky}},
		} {
			c.p.X, c.p.Y = hx, hy
			for _, method := range c.methods {
				points, err := solvers.SolvePath(context.Background(), dev, c.p, alphas, solvers.PathParams{Method: method, LeaveOneOut: true})
				if err != nil {
					t.Fatal(err)
				}
				for l, at := range points {
					if at.Err != nil {
						t.Fatal(at.Err)
					}
					// A condition of at most 1 + ‖K‖/λ, ‖K‖ ≤ 4·442, errors of some
					// 100, and a margin of 100 for scikit-learn's eigenvalues.
					tol := 100 * 0x1p-52 * (1 + 4*442/alphas[l]) * 100
					for i := range n {
						e := at.Errors.Row(i)[0]
						square := e * e
						if c.weighted { // scikit-learn 1.2 multiplies by the weight
							square *= weights[i]
						}
						if math.Abs(square-c.want[i][l]) > tol*(1+2*math.Abs(e)) {
							t.Fatalf("%s %s α=%g: the square of error %d is %v, scikit-learn's %v", c.name, method, alphas[l], i+1, square, c.want[i][l])
						}
					}
				}
			}
		}
	})
}

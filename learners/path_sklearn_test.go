package learners_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// TestPathAgainstScikitLearn compares the leave-one-out errors of a path with those of scikit-learn's RidgeCV: for a
// linear kernel with an intercept, by two methods, and for a Gaussian kernel. scikit-learn gets a square root of the
// Gaussian kernel matrix as features.
//
// For G = K + λI, error i is e_i = α_i/g_i with α = G⁻¹y and the diagonal g of G⁻¹. If rounding changes G by a matrix
// of norm δ, then e_i changes to first order by at most
//
//	δ(‖r_i‖‖α‖ + |e_i|‖r_i‖²)/g_i
//
// for column r_i of G⁻¹. For an intercept, scikit-learn also adds Σw·qqᵀ to K, where q_i = √(w_i/Σw), and removes the
// eigenvector nearest to q. This adds at most δm|q_i|(‖y‖ + 2|e_i|)/g_i, where m is the largest 1/((s+λ)|s − Σw|) for
// an eigenvalue s of K.
func TestPathAgainstScikitLearn(t *testing.T) {
	x, y, weights := diabetes(t)
	n, d := x.Dims()
	alphas := []float64{0.01, 0.3, 1, 25, 1000}
	rows := make([][]float64, n)
	for i := range rows {
		rows[i] = x.RawRowView(i)
	}
	type peer struct {
		Squares, Factors [][]float64 // one row for each sample and one column for each λ
		Size             float64     // ‖K‖
	}
	var want struct{ Linear, Weighted, Gaussian peer }
	scikit(t, map[string]any{"x": rows, "y": mat.Col(nil, 0, y), "w": weights, "alphas": alphas}, `
from sklearn.linear_model import RidgeCV
from sklearn.metrics.pairwise import rbf_kernel
def errors(x, y, w=None, intercept=True):
    r = RidgeCV(alphas=a["alphas"], store_cv_values=True, gcv_mode="eigen", fit_intercept=intercept).fit(x, y, sample_weight=w)
    w, q = np.ones(len(y)) if w is None else w, np.zeros(len(y))
    if intercept:
        x, y, q = x - w @ x / w.sum(), y - w @ y / w.sum(), np.sqrt(w / w.sum())
    x, y = np.sqrt(w)[:, None] * x, np.sqrt(w) * y
    s, u = np.linalg.eigh(x @ x.T)
    s, factors = np.maximum(s, 0), []
    for l in a["alphas"]:
        inverse = u / (s + l) @ u.T - np.outer(q, q) / l
        alpha, g, row = inverse @ y, inverse.diagonal(), np.linalg.norm(inverse, axis=0)
        e = abs(alpha) / g
        f = row * np.linalg.norm(alpha) + e * row**2
        if intercept:
            m = max(1 / ((s + l) * abs(s - w.sum()))[abs(q @ u) < 0.5])
            f += m * q * (np.linalg.norm(y) + 2 * e)
        factors.append(f / g)
    return dict(squares=r.cv_values_.tolist(), factors=np.transpose(factors).tolist(), size=max(s[-1], w.sum() * intercept))
out["linear"] = errors(a["x"], a["y"])
out["weighted"] = errors(a["x"], a["y"], a["w"])
s, u = np.linalg.eigh(rbf_kernel(a["x"], gamma=1 / 18))
out["gaussian"] = errors(u * np.sqrt(np.maximum(s, 0)), a["y"], None, False)
`, &want)
	hx := backend.Host[float64]{Rows: n, Cols: d, Stride: x.RawMatrix().Stride, Data: x.RawMatrix().Data}
	hy := backend.Host[float64]{Rows: n, Cols: 1, Stride: 1, Data: mat.Col(nil, 0, y)}
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		maxError := 0.0
		for _, c := range []struct {
			name     string
			p        solvers.Problem
			want     peer
			weighted bool
			methods  []solvers.Method
		}{
			{"linear", solvers.Problem{Kernel: kernels.Linear{}, Intercept: true}, want.Linear, false, []solvers.Method{solvers.Primal, solvers.Band}},
			{"weighted", solvers.Problem{Kernel: kernels.Linear{}, Intercept: true, Weights: weights}, want.Weighted, true, []solvers.Method{solvers.Primal, solvers.Dual}},
			{"gaussian", solvers.Problem{Kernel: kernels.Gaussian{Sigma: 3}}, want.Gaussian, false, []solvers.Method{solvers.Band, solvers.Dual}},
		} {
			c.p.X, c.p.Y = hx, hy
			for _, method := range c.methods {
				points, err := solvers.SolvePath(context.Background(), dev, c.p, alphas, solvers.PathParams{Method: method, LeaveOneOut: true})
				if err != nil {
					t.Fatal(err)
				}
				for l, point := range points {
					if point.Err != nil {
						t.Fatal(point.Err)
					}
					// Six steps, four of scikit-learn and two of Mercer, round sums of n terms, with errors that
					// grow with √n (Higham and Mary, SIAM J. Sci. Comput. 41, 2019).
					delta := 6 * math.Sqrt(float64(n)) * 0x1p-52 * (c.want.Size + alphas[l])
					for i := range n {
						e := point.Errors.Row(i)[0]
						square := e * e
						if c.weighted { // scikit-learn 1.2 multiplies the squared errors by the weights
							square *= weights[i]
						}
						// If an error e changes by tol, its square changes by at most (2|e| + tol)·tol.
						tol := delta * c.want.Factors[i][l]
						tol *= 2*math.Sqrt(c.want.Squares[i][l]) + tol
						maxError = max(maxError, checkClose(t, fmt.Sprintf("%s %s α=%g: the square of error %d", c.name, method, alphas[l], i+1), square, c.want.Squares[i][l], tol)/tol)
					}
				}
			}
		}
		t.Logf("differences are at most %.2g of what is allowed", maxError)
	}, "ref") // 442 samples take long on device ref
}

package learners_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// TestLassoAgainstScikitLearn checks that the weights for the penalty λ = 2n·alpha, and for the
// bound θ = ‖w(λ)‖₁, equal the weights of scikit-learn's Lasso.
func TestLassoAgainstScikitLearn(t *testing.T) {
	x, y := table(t, true)
	n, d := x.Dims()
	alphas := []float64{0.01, 1, 10, 100}
	var want struct{ Coef, Intercept [][]float64 }
	scikit(t, map[string]any{"x": rowsOf(x), "y": mat.Col(nil, 0, y), "alphas": alphas}, `
from sklearn.linear_model import Lasso
out["coef"], out["intercept"] = [], []
for alpha in a["alphas"]:
    m = Lasso(alpha=alpha, tol=1e-14, max_iter=1000000).fit(a["x"], a["y"])
    out["coef"].append(m.coef_.tolist())
    out["intercept"].append([float(m.intercept_)])
`, &want)
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		for _, method := range []learners.LassoMethod{learners.CoordinateDescent, learners.FISTA, learners.ISTA} {
			for i, alpha := range alphas {
				m, err := learners.Lasso{Lambda: 2 * float64(n) * alpha, Method: method, Tol: 1e-14, MaxIter: 1e6}.Fit(t.Context(), dev, x, y, learners.Options{})
				if err != nil {
					t.Fatal(err)
				}
				// With the bound θ = ‖w(λ)‖₁ the solution is that of the penalty λ, which the model reports.
				if theta := fact(t, m, "l1 norm").(float64); theta > 0 && method == learners.CoordinateDescent {
					bounded, err := learners.Lasso{Theta: theta, Tol: 1e-14, MaxIter: 1e6}.Fit(t.Context(), dev, x, y, learners.Options{})
					if err != nil {
						t.Fatal(err)
					}
					if norm := fact(t, bounded, "l1 norm").(float64); norm > theta*(1+float64(d)*0x1p-52) {
						t.Errorf("‖w‖₁ = %v exceeds %v", norm, theta)
					}
					checkClose(t, "λ(θ)", bounded.Lambda()[0], 2*float64(n)*alpha, 1e-5*2*float64(n)*alpha)
					m = bounded
				}
				// The duality gaps are at most 1e-14‖y‖², so the fitted values differ by at most 2e-7‖y‖. The smallest
				// singular value of x is 0.09√n.
				bound := 2e-7 * mat.Norm(y, 2) / (0.09 * math.Sqrt(float64(n)))
				maxError := 0.0
				for p := range d {
					maxError = max(maxError, checkClose(t, "weight", m.Coef().At(p, 0), want.Coef[i][p], bound))
				}
				checkClose(t, "intercept", m.Intercept()[0], want.Intercept[i][0], bound)
				t.Logf("%s, alpha %v: %d weights, differences up to %.2g; %v", method, alpha, len(m.Support(0)), maxError, m.Facts())
			}
		}
	})
}

// TestLassoOfIndicatorsAgainstScikitLearn compares the objectives of fits to many indicators of categories, whose
// weights are not unique, with those of scikit-learn, up to the duality gaps of both programs.
func TestLassoOfIndicatorsAgainstScikitLearn(t *testing.T) {
	const seed, n, columns, levels = 43, 400, 3, 60
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	x, y := mat.NewDense(n, columns*levels, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		y.Set(i, 0, 0.5*r.NormFloat64())
		for c := range columns {
			u := r.Float64()
			level := int(levels * u * u)
			x.Set(i, c*levels+level, 1)
			y.Set(i, 0, y.At(i, 0)+math.Sin(float64(1+7*c+level*level)))
		}
	}
	lambdas := []float64{10, 1, 0.3}
	objective := func(coef []float64, b, lambda float64) (sum float64) {
		var f mat.VecDense
		f.MulVec(x, mat.NewVecDense(len(coef), coef))
		for i := range n {
			sum += math.Pow(y.At(i, 0)-f.AtVec(i)-b, 2)
		}
		for _, w := range coef {
			sum += lambda * math.Abs(w)
		}
		return sum
	}
	total := objective(make([]float64, columns*levels), mat.Sum(y)/n, 0)
	var want struct {
		Coef      [][]float64
		Intercept []float64
	}
	scikit(t, map[string]any{"x": rowsOf(x), "y": mat.Col(nil, 0, y), "lambdas": lambdas}, `
from sklearn.linear_model import Lasso
out["coef"], out["intercept"] = [], []
for v in a["lambdas"]:
    m = Lasso(alpha=v / 2 / len(a["y"]), tol=1e-10, max_iter=1000000).fit(a["x"], a["y"])
    out["coef"].append(m.coef_.tolist())
    out["intercept"].append(float(m.intercept_))
`, &want)
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		for i, lambda := range lambdas {
			m, err := learners.Lasso{Lambda: lambda, Tol: 1e-10}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			minimized, peerObjective := objective(mat.Col(nil, 0, m.Coef()), m.Intercept()[0], lambda), objective(want.Coef[i], want.Intercept[i], lambda)
			t.Logf("λ %v: %v, scikit-learn %v; %v", lambda, minimized, peerObjective, m.Facts())
			checkClose(t, "objective", minimized, peerObjective, 2e-10*total+n*0x1p-52*total)
		}
	})
}

// TestBayesRidgeAgainstScikitLearn compares weights, precisions, evidence and standard deviations
// with those of scikit-learn's BayesianRidge. Both programs use flat priors for the precisions.
func TestBayesRidgeAgainstScikitLearn(t *testing.T) {
	for _, standard := range []bool{true, false} {
		x, y := table(t, standard)
		n, d := x.Dims()
		var want struct {
			Coef, Std, F                       []float64
			Intercept, Noise, Weight, Evidence float64
		}
		scikit(t, map[string]any{"x": rowsOf(x), "y": mat.Col(nil, 0, y)}, `
from sklearn.linear_model import BayesianRidge
m = BayesianRidge(n_iter=100000, tol=1e-12, alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0, compute_score=True).fit(a["x"], a["y"])
f, s = m.predict(a["x"], return_std=True)
out.update(coef=m.coef_, std=s, f=f, intercept=m.intercept_, noise=m.alpha_, weight=m.lambda_, evidence=m.scores_[-1])
`, &want)
		eachDevice(t, func(t *testing.T, dev backend.Device) {
			m, err := learners.BayesRidge{Tol: 1e-12}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			// Both programs stop when a step changes the weights by 1e-12. All later steps together would change them
			// by at most 1000 times as much.
			const bound = 1e-9
			for p := range d {
				checkClose(t, "weight", m.Coef().At(p, 0), want.Coef[p], bound*mat.Norm(m.Coef(), 2))
			}
			checkClose(t, "intercept", m.Intercept()[0], want.Intercept, bound*1e3)
			checkClose(t, "noise", m.Noise()[0], 1/want.Noise, bound/want.Noise)
			checkClose(t, "prior", m.Prior()[0], 1/want.Weight, bound/want.Weight)
			checkClose(t, "log evidence", m.LogEvidence()[0], want.Evidence, bound*math.Abs(want.Evidence))
			v, err := m.Variance(t.Context(), dev, x)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				if !standard {
					break // scikit-learn does not center x when it computes the standard deviation
				}
				checkClose(t, "deviation", math.Sqrt(v.At(i, 0)), want.Std[i], bound*want.Std[i])
			}
			t.Logf("%v", m.Facts())
		})
	}
}

// TestLeastSquaresAgainstScikitLearn compares fits to raw data whose condition number is 520.
func TestLeastSquaresAgainstScikitLearn(t *testing.T) {
	x, y := table(t, false)
	n, d := x.Dims()
	var want struct {
		Coef      []float64
		Intercept float64
	}
	scikit(t, map[string]any{"x": rowsOf(x), "y": mat.Col(nil, 0, y)}, `
from sklearn.linear_model import LinearRegression
m = LinearRegression().fit(a["x"], a["y"])
out.update(coef=m.coef_, intercept=m.intercept_)
`, &want)
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		m, err := learners.LeastSquares{}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		bound := float64(n+d) * 0x1p-52 * 520 * 520 * mat.Norm(m.Coef(), 2)
		for p := range d {
			checkClose(t, "weight", m.Coef().At(p, 0), want.Coef[p], bound)
		}
		checkClose(t, "intercept", m.Intercept()[0], want.Intercept, 10*190*bound)
	})
}

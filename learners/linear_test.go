package learners_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"gonum.org/v1/gonum/mat"
)

var noLinear = []learners.Model{&learners.LinearModel{}}

func linearTerms(model learners.Model, x []float64, j int) (float64, int) {
	m := model.(interface {
		Coef() *mat.Dense
		Intercept() []float64
	})
	sum, coef := math.Abs(m.Intercept()[j]), m.Coef()
	for p, v := range x {
		sum += math.Abs(v * coef.At(p, j))
	}
	return sum, len(x)
}

func TestLeastSquares(t *testing.T) {
	for name, l := range map[string]learners.LeastSquares{"default": {}, "origin": {NoIntercept: true}} {
		t.Run(name, func(t *testing.T) {
			learnertest.Run(t, learnertest.Suite{
				Learner: "least-squares", Fit: fitter(l.Fit), Unfitted: noLinear, Terms: linearTerms,
				Condition: 1000, // bound on the condition number for 30 standard normal samples
			})
		})
	}
}

func TestRidgeConstrained(t *testing.T) {
	for name, l := range map[string]learners.RidgeConstrained{"binding": {Theta: 1}, "free": {Theta: 1e4}, "origin": {Theta: 5, NoIntercept: true}} {
		t.Run(name, func(t *testing.T) {
			if name == "binding" {
				// For θ = 1, R² would be too low for the test: least squares has ‖w‖ = 3.7.
				l.Theta = 10
			}
			learnertest.Run(t, learnertest.Suite{
				Learner: "ridge-constrained", Fit: fitter(l.Fit), Unfitted: noLinear, Terms: linearTerms,
				Condition: 1e5, // ‖w‖² equals θ up to a relative error of 1e-10
			})
		})
	}
}

func TestBayesRidge(t *testing.T) {
	for name, l := range map[string]learners.BayesRidge{"default": {Tol: 1e-13}, "origin": {Tol: 1e-13, NoIntercept: true}} {
		t.Run(name, func(t *testing.T) {
			learnertest.Run(t, learnertest.Suite{
				Learner: "bayes-ridge", Fit: fitter(l.Fit), Terms: linearTerms,
				Unfitted:  []learners.Model{&learners.BayesRidgeModel{}},
				Condition: 1e4, // the steps end at a relative change of 1e-13, and a step may reduce the error by only 10 %
			})
		})
	}
}

func TestLasso(t *testing.T) {
	for name, l := range map[string]learners.Lasso{
		"default": {Lambda: 1, Tol: 1e-15},
		"fista":   {Lambda: 1, Tol: 1e-15, Method: learners.FISTA},
		"origin":  {Lambda: 0.1, Tol: 1e-15, NoIntercept: true},
		"free":    {Lambda: 0, Tol: 1e-15},
	} {
		t.Run(name, func(t *testing.T) {
			learnertest.Run(t, learnertest.Suite{
				Learner: "lasso", Fit: fitter(l.Fit), Unfitted: noLinear, Terms: linearTerms,
				Condition: 1e7, // ‖X(w−w*)‖² is at most the duality gap, 1e-15‖y‖²
			})
		})
	}
}

func TestL0(t *testing.T) {
	for name, l := range map[string]learners.L0{"penalty": {Lambda: 1e-3}, "support": {Support: 2}, "origin": {Support: 3, NoIntercept: true}} {
		t.Run(name, func(t *testing.T) {
			learnertest.Run(t, learnertest.Suite{
				Learner: "l0", Fit: fitter(l.Fit), Unfitted: noLinear, Terms: linearTerms,
				Condition: 1000, // the nonzero weights are a least-squares solution
			})
		})
	}
}

// TestMinimumNorm checks that for linearly dependent columns, with scales between 1e-6 and 1e6, w is orthogonal to
// the known null space of x, and Xᵀ(y − Xw − b) = 0.
func TestMinimumNorm(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		t.Log("seed 3")
		r := rand.New(rand.NewPCG(3, 0))
		const n, d = 40, 5
		base := mat.NewDense(n, d, nil)
		y := mat.NewDense(n, 1, nil)
		for i := range n {
			for p := range d {
				base.Set(i, p, r.NormFloat64()*math.Pow(10, float64(3*p-6)))
			}
			y.Set(i, 0, r.NormFloat64())
		}
		for _, test := range []struct {
			name   string
			change func(x *mat.Dense)
			null   [][]float64
		}{
			{"a constant column", func(x *mat.Dense) {
				for i := range n {
					x.Set(i, 2, 1e6/3)
				}
			}, [][]float64{{0, 0, 1, 0, 0}}},
			{"a sum", func(x *mat.Dense) {
				for i := range n {
					x.Set(i, 3, x.At(i, 0)-0.25*x.At(i, 1))
				}
			}, [][]float64{{1, -0.25, 0, -1, 0}}},
			{"two copies", func(x *mat.Dense) {
				for i := range n {
					x.Set(i, 3, x.At(i, 0))
					x.Set(i, 4, x.At(i, 0))
				}
			}, [][]float64{{1, 0, 0, -1, 0}, {0, 0, 0, 1, -1}}},
			{"no column varies", func(x *mat.Dense) {
				x.Zero()
			}, [][]float64{{1, 0, 0, 0, 0}, {0, 1, 0, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, 0, 1, 0}, {0, 0, 0, 0, 1}}},
		} {
			x := mat.DenseCopyOf(base)
			test.change(x)
			m, err := learners.LeastSquares{}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
				continue
			}
			if got, want := fact(t, m, "rank").(string), fmt.Sprintf("%d of 5 columns", d-len(test.null)); !strings.HasPrefix(got, want) {
				t.Errorf("%s: rank %q, want %q", test.name, got, want)
			}
			w := m.Coef()
			for _, v := range test.null {
				product, size := 0.0, 0.0
				for p := range d {
					product += v[p] * w.At(p, 0)
					size += math.Abs(v[p] * w.At(p, 0))
				}
				// The tolerance is the rounding error of the weights, for a condition number of 10 on the row space.
				checkClose(t, test.name+": product with the null space", product, 0, 1e2*0x1p-52*float64(n)*(size+mat.Norm(w, 2)))
			}
			noGradient(t, dev, m, x, y, test.name)
		}
		// With fewer rows than columns the residual is 0, and w = Xᵀv for some v.
		x, target := mat.DenseCopyOf(base.Slice(0, 4, 0, d)), y.Slice(0, 4, 0, 1)
		m, err := learners.LeastSquares{}.Fit(t.Context(), dev, x, target, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fact(t, m, "rank").(string); !strings.HasPrefix(got, "3 of 5 columns") {
			t.Errorf("four rows: rank %q", got)
		}
		f, err := m.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			sum, terms := linearTerms(m, x.RawRowView(i), 0)
			checkClose(t, "four rows", f.At(i, 0), target.At(i, 0), 1e2*0x1p-52*float64(terms)*sum)
		}
	})
}

// noGradient checks that Σ_i x_ip (y_i − f(x_i)) = 0 for every feature p.
func noGradient(t *testing.T, dev backend.Device, m *learners.LinearModel, x, y *mat.Dense, name string) {
	t.Helper()
	f, err := m.Predict(t.Context(), dev, x)
	if err != nil {
		t.Fatal(err)
	}
	n, d := x.Dims()
	for p := range d {
		sum, size := 0.0, 0.0
		for i := range n {
			sum += x.At(i, p) * (y.At(i, 0) - f.At(i, 0))
			terms, _ := linearTerms(m, x.RawRowView(i), 0)
			size += math.Abs(x.At(i, p)) * (math.Abs(y.At(i, 0)) + terms)
		}
		// The tolerance is that of a backward stable solution, with n·d roundings of each term.
		checkClose(t, name+": gradient", sum, 0, float64(n*d)*0x1p-52*size)
	}
}

// TestOneHotColumns checks that every linear learner converges for the indicators of all levels of a category, and
// predicts as without the indicator of one level.
func TestOneHotColumns(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		t.Log("seed 23")
		r := rand.New(rand.NewPCG(23, 0))
		const n = 60
		x, y := mat.NewDense(n, 6, nil), mat.NewDense(n, 1, nil)
		for i := range n {
			a, b := r.IntN(3), r.IntN(2)
			x.Set(i, 0, r.NormFloat64())
			x.Set(i, 1+a, 1)
			x.Set(i, 4+b, 1)
			y.Set(i, 0, 100+3*x.At(i, 0)+[]float64{0, 5, -4}[a]+2*float64(b)+0.1*r.NormFloat64())
		}
		reduced := mat.NewDense(n, 4, nil)
		for i := range n {
			reduced.SetRow(i, []float64{x.At(i, 0), x.At(i, 1), x.At(i, 2), x.At(i, 4)})
		}
		o := learners.Options{}
		full, err := learners.LeastSquares{}.Fit(t.Context(), dev, reduced, y, o)
		if err != nil {
			t.Fatal(err)
		}
		want, err := full.Predict(t.Context(), dev, reduced)
		if err != nil {
			t.Fatal(err)
		}
		// For lasso, the duality gap of 1e-10‖y − ȳ‖² bounds the squared difference of the predictions.
		centered := mat.DenseCopyOf(y)
		for i := range n {
			centered.Set(i, 0, y.At(i, 0)-mat.Sum(y)/n)
		}
		for name, fit := range map[string]struct {
			fit   learners.Fitter
			bound float64
		}{
			"least-squares":     {fitter(learners.LeastSquares{}.Fit), 1e3 * 0x1p-52 * 100},
			"ridge-constrained": {fitter(learners.RidgeConstrained{Theta: 1e6}.Fit), 1e3 * 0x1p-52 * 100},
			"l0":                {fitter(learners.L0{Lambda: 1e-6}.Fit), 1e3 * 0x1p-52 * 100},
			"l0 support":        {fitter(learners.L0{Support: 4}.Fit), 1e3 * 0x1p-52 * 100},
			"lasso":             {fitter(learners.Lasso{Lambda: 1e-9, Tol: 1e-10}.Fit), 1e-5 * mat.Norm(centered, 2)},
		} {
			m, err := fit.fit(t.Context(), dev, x, y, o)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			f, err := m.Predict(t.Context(), dev, x)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				checkClose(t, name, f.At(i, 0), want.At(i, 0), fit.bound)
			}
		}
	})
}

// TestIllConditionedPowers checks a fit of a polynomial of degree 10 to 11 points, whose matrix of powers has the
// condition number 7e7. The error of the weights is at most the forward error bound.
func TestIllConditionedPowers(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		const n, d = 11, 10
		x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
		for i := range n {
			v, power := float64(i)/10, 1.0
			for p := range d {
				power *= v
				x.Set(i, p, power)
			}
			y.Set(i, 0, math.Sin(2*math.Pi*v)+0.3*math.Cos(17*float64(i)))
		}
		m, err := learners.LeastSquares{}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := m.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		bound := fact(t, m, "forward error").(float64)
		if method, condition := fact(t, m, "method"), fact(t, m, "condition").(float64); method != "QR" || condition < 1e6 || condition > 1e9 || !(bound > 1e-10 && bound < 1e-6) {
			t.Errorf("method %v, condition %v, forward error %v", method, condition, bound)
		}
		sum, terms := linearTerms(m, x.RawRowView(n-1), 0) // the largest point: its powers are 1
		for i := range n {
			checkClose(t, "fitted value", f.At(i, 0), y.At(i, 0), float64(n*terms)*0x1p-52*sum)
		}
		// The weights are integers, and the powers of the grid points are exact.
		want := []float64{3, -2, 1, 5, -4, 2}
		x, y = mat.NewDense(n, 6, nil), mat.NewDense(n, 1, nil)
		for i := range n {
			v, power, sum := float64(i)/8, 1.0, 7.0
			for p := range 6 {
				power *= v
				x.Set(i, p, power)
				sum += want[p] * power
			}
			y.Set(i, 0, sum)
		}
		if m, err = (learners.LeastSquares{}).Fit(t.Context(), dev, x, y, learners.Options{}); err != nil {
			t.Fatal(err)
		}
		bound = fact(t, m, "forward error").(float64)
		difference, size := 0.0, 0.0
		for p, w := range want { // differences of the weights for columns scaled to norm 1
			scale := 0.0
			mean := mat.Sum(x.ColView(p)) / n
			for i := range n {
				scale = math.Hypot(scale, x.At(i, p)-mean)
			}
			difference = math.Hypot(difference, scale*(m.Coef().At(p, 0)-w))
			size = math.Hypot(size, scale*w)
		}
		if bound > 1e-8 || difference > bound*size*n {
			t.Errorf("the relative error of the weights is %g, the forward error %g", difference/size, bound)
		}
		t.Logf("the relative error of the weights is %g, the forward error %g", difference/size, bound)
	})
}

// TestConstraint checks that with an active constraint ‖w‖² equals θ, and that w is the solution of
// ridge with the reported λ, also with fewer rows than features.
func TestConstraint(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		x, y := table(t, true)
		for _, rows := range []int{442, 8} {
			xs, ys := x.Slice(0, rows, 0, 10), y.Slice(0, rows, 0, 1)
			for _, theta := range []float64{1e-3, 1, 100, 1000} {
				m, err := learners.RidgeConstrained{Theta: theta}.Fit(t.Context(), dev, xs, ys, learners.Options{})
				if err != nil {
					t.Fatal(err)
				}
				size := mat.Norm(m.Coef(), 2)
				checkClose(t, "‖w‖²", size*size, theta, 2e-10*theta)
				ridge, err := learners.Ridge{Lambda: m.Lambda()[0]}.Fit(t.Context(), dev, xs, ys, learners.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if !mat.EqualApprox(ridge.Coef(), m.Coef(), 1e-12*size) {
					t.Errorf("θ = %v: the weights are not those of ridge", theta)
				}
			}
		}
		// ‖w‖² of least squares is 5.3e3, so that the constraint is not active.
		m, err := learners.RidgeConstrained{Theta: 1e5}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil || m.Lambda()[0] != 0 {
			t.Errorf("θ = 1e5: λ %v, %v", m.Lambda(), err)
		}
		// By default θ is ‖w‖² of ridge with λ = 1, for y in any unit.
		for _, unit := range []float64{1e-6, 1, 1e6} {
			scaled := mat.DenseCopyOf(y)
			scaled.Scale(unit, y)
			bounded, err := learners.RidgeConstrained{}.Fit(t.Context(), dev, x, scaled, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ridge, err := learners.Ridge{Lambda: 1}.Fit(t.Context(), dev, x, scaled, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			theta := fact(t, bounded, "theta").(float64)
			if repeated, err := (learners.RidgeConstrained{Theta: theta}).Fit(t.Context(), dev, x, scaled.Slice(0, scaled.RawMatrix().Rows, 0, 1), learners.Options{}); err != nil {
				t.Fatal(err)
			} else {
				// ‖w‖² equals θ up to a relative error of 1e-10.
				checkClose(t, "λ at the default θ", repeated.Lambda()[0], 1, 1e-6)
			}
			if !mat.EqualApprox(ridge.Coef(), bounded.Coef(), 1e-12*unit*mat.Max(ridge.Coef())) && !mat.Equal(ridge.Coef(), bounded.Coef()) {
				t.Errorf("unit %v: the weights are not those of ridge", unit)
			}
		}
		// The oracle for the norm without the constraint is the minimum norm by QR, for fewer rows than features
		// and for linearly dependent columns.
		weights := slices.Repeat([]float64{2, 1, 0.5, 3}, 111)
		for _, c := range []struct {
			name   string
			rows   int
			change func(x *mat.Dense)
		}{
			{"442 rows", 442, func(*mat.Dense) {}},
			{"8 rows", 8, func(*mat.Dense) {}},
			{"unscaled columns and a constant one", 400, func(x *mat.Dense) {
				for i := range 400 {
					x.Set(i, 0, 1e6*x.At(i, 0))
					x.Set(i, 1, 5)
					x.Set(i, 2, 0.1*x.At(i, 2))
				}
			}},
			{"an unscaled column twice", 400, func(x *mat.Dense) {
				for i := range 400 {
					x.Set(i, 0, 1e4*x.At(i, 0))
					x.Set(i, 1, x.At(i, 0))
					x.Set(i, 2, 0.1*x.At(i, 2))
				}
			}},
			{"a copied column", 442, func(x *mat.Dense) { x.SetCol(3, mat.Col(nil, 2, x)) }},
			{"indicators", 100, func(x *mat.Dense) {
				for i := range 100 {
					for j := range 3 {
						x.Set(i, j, float64(max(0, 1-(i%3-j)*(i%3-j))))
					}
				}
			}},
		} {
			for _, w := range [][]float64{nil, weights[:c.rows]} {
				for _, noIntercept := range []bool{false, true} {
					xs, ys := mat.DenseCopyOf(x.Slice(0, c.rows, 0, 10)), y.Slice(0, c.rows, 0, 1)
					c.change(xs)
					unconstrained, err := learners.LeastSquares{NoIntercept: noIntercept}.Fit(t.Context(), dev, xs, ys, learners.Options{Weights: w})
					if err != nil {
						t.Fatal(err)
					}
					size := math.Pow(mat.Norm(unconstrained.Coef(), 2), 2)
					for _, theta := range []float64{0, size / 2, 2 * size} {
						m, err := learners.RidgeConstrained{Theta: theta, NoIntercept: noIntercept}.Fit(t.Context(), dev, xs, ys, learners.Options{Weights: w})
						if err != nil {
							t.Fatal(err)
						}
						// The tolerance is n·ε times the condition number of XᵀX with columns of unit norm, about
						// 1e4.
						checkClose(t, c.name+": ‖w‖² without the constraint", fact(t, m, "unconstrained squared norm").(float64), size, 1e-8*size)
						if active := fact(t, m, "constraint active"); active != (theta <= size) {
							t.Errorf("%s, weights %t, θ = %v of %v: active %v", c.name, w != nil, theta, size, active)
						}
					}
				}
			}
		}
		for _, theta := range []float64{-1, math.NaN(), math.Inf(1)} {
			if _, err := (learners.RidgeConstrained{Theta: theta}).Fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), "theta must be") {
				t.Errorf("θ = %v: %v", theta, err)
			}
		}
	})
}

// TestBayesRidgeClosedForm checks that the evidence is the density of the n-dimensional Gaussian
// distribution of y, and that variances near those of the fit have no larger evidence.
func TestBayesRidgeClosedForm(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		t.Log("seed 5")
		r := rand.New(rand.NewPCG(5, 0))
		for _, shape := range [][2]int{{20, 3}, {6, 9}} {
			n, d := shape[0], shape[1]
			x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
			for i := range n {
				for p := range d {
					x.Set(i, p, r.NormFloat64())
				}
				y.Set(i, 0, x.At(i, 0)-2*x.At(i, 1)+0.5*r.NormFloat64())
			}
			m, err := learners.BayesRidge{NoIntercept: true, Tol: 1e-10}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			evidence := func(noise, prior float64) (float64, *mat.Cholesky) {
				c := mat.NewSymDense(n, nil)
				for i := range n {
					for k := range i + 1 {
						c.SetSym(i, k, prior*mat.Dot(x.RowView(i), x.RowView(k)))
					}
					c.SetSym(i, i, c.At(i, i)+noise)
				}
				var chol mat.Cholesky
				if !chol.Factorize(c) {
					t.Fatal("not positive definite")
				}
				var v mat.VecDense
				if err := chol.SolveVecTo(&v, y.ColView(0)); err != nil {
					t.Fatal(err)
				}
				return -(mat.Dot(y.ColView(0), &v) + chol.LogDet() + float64(n)*math.Log(2*math.Pi)) / 2, &chol
			}
			noise, prior := m.Noise()[0], m.Prior()[0]
			maximum, chol := evidence(noise, prior)
			// The tolerance allows for n + d roundings of numbers as large as the log evidence, about n.
			checkClose(t, "log evidence", m.LogEvidence()[0], maximum, 1e3*0x1p-52*float64(n*(n+d)))
			for _, f := range []float64{0.9, 1.1} {
				if e, _ := evidence(f*noise, prior); e >= maximum {
					t.Errorf("%d×%d: noise·%v has the evidence %v, not below %v", n, d, f, e, maximum)
				}
				if e, _ := evidence(noise, f*prior); e >= maximum {
					t.Errorf("%d×%d: prior·%v has the evidence %v, not below %v", n, d, f, e, maximum)
				}
			}
			// For the covariance C of the targets and k(x, z) = prior·xᵀz, the variance is k(z, z) − kᵀC⁻¹k + noise
			// with k_i = k(x_i, z).
			z := mat.NewDense(4, d, nil)
			for i := range 4 {
				for p := range d {
					z.Set(i, p, 3*r.NormFloat64())
				}
			}
			v, err := m.Variance(t.Context(), dev, z)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 4 {
				k := mat.NewVecDense(n, nil)
				for j := range n {
					k.SetVec(j, prior*mat.Dot(z.RowView(i), x.RowView(j)))
				}
				var s mat.VecDense
				if err := chol.SolveVecTo(&s, k); err != nil {
					t.Fatal(err)
				}
				variance := prior * mat.Dot(z.RowView(i), z.RowView(i))
				// The tolerance is the rounding error of the difference, proportional to k(z, z), times the
				// condition number.
				checkClose(t, "variance", v.At(i, 0), variance-mat.Dot(k, &s)+noise, 1e4*0x1p-52*float64(n+d)*(variance+noise))
			}
		}
	})
}

// sparseTargets returns samples around 5 whose targets depend on two features.
func sparseTargets(r *rand.Rand, n, d int) (x, y *mat.Dense) {
	x, y = mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		for p := range d {
			x.Set(i, p, 5+r.NormFloat64())
		}
		y.Set(i, 0, 3*x.At(i, 0)-2*x.At(i, 1)+0.1*r.NormFloat64())
	}
	return x, y
}

// TestLassoOptimality checks the Karush-Kuhn-Tucker conditions for both methods, coordinate descent
// and FISTA, with and without XᵀX, and for the models of a path.
func TestLassoOptimality(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		t.Log("seed 7")
		r := rand.New(rand.NewPCG(7, 0))
		for _, shape := range [][2]int{{50, 8}, {30, 60}, {12, 2100}} {
			n, d := shape[0], shape[1]
			lambdas, tol := []float64{3, 30, 1}, 1e-10
			if n > d { // with λ = 0 and n ≤ d the solution would not be unique
				lambdas = append(lambdas, 0)
			}
			if d > 2048 && (testing.Short() || strings.HasPrefix(dev.Info().Device, "ref")) {
				continue // the fit takes seconds, and even longer on the device ref
			}
			if d > 2048 { // with 2100 features of standard deviation 1 and 12 samples, smaller values of λ hardly penalize
				lambdas, tol = []float64{30, 100, 20}, 1e-7
			}
			x, y := sparseTargets(r, n, d)
			for _, method := range []learners.LassoMethod{learners.CoordinateDescent, learners.FISTA} {
				l := learners.Lasso{Method: method, Tol: tol}
				path, err := l.Path(t.Context(), dev, x, y, lambdas, learners.Options{})
				if err != nil {
					t.Fatal(err)
				}
				for i, lambda := range lambdas {
					kkt(t, dev, path[i], x, y, lambda, tol)
					l.Lambda = lambda
					m, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
					if err != nil {
						t.Fatal(err)
					}
					kkt(t, dev, m, x, y, lambda, tol)
				}
			}
		}
	})
}

// kkt checks that x_pᵀ(y − f), for each feature p, is λ/2 times the sign of w_p if w_p ≠ 0, and is
// between −λ/2 and λ/2 if w_p = 0.
func kkt(t *testing.T, dev backend.Device, m *learners.LinearModel, x, y *mat.Dense, lambda, tol float64) {
	t.Helper()
	n, d := x.Dims()
	f, err := m.Predict(t.Context(), dev, x)
	if err != nil {
		t.Fatal(err)
	}
	total, mean := 0.0, mat.Sum(y)/float64(n)
	for i := range n {
		total += (y.At(i, 0) - mean) * (y.At(i, 0) - mean)
	}
	for p := range d {
		slope, norm, center := 0.0, 0.0, mat.Sum(x.ColView(p))/float64(n)
		for i := range n {
			v := x.At(i, p) - center
			slope += v * (y.At(i, 0) - f.At(i, 0))
			norm += v * v
		}
		// For the duality gap g of half the objective, ‖X(w − w*)‖ ≤ √(2g), where w* is the exact solution.
		bound := math.Sqrt(norm*tol*total) + 1e-9
		switch w := m.Coef().At(p, 0); {
		case w > 0:
			checkClose(t, "slope", slope, lambda/2, bound)
		case w < 0:
			checkClose(t, "slope", slope, -lambda/2, bound)
		case math.Abs(slope) > lambda/2+bound:
			t.Errorf("weight %d is 0, its slope %v", p, slope)
		}
	}
}

// TestLassoSettings checks which settings give an error, and the largest penalty of a path.
func TestLassoSettings(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := table(t, false)
	for want, l := range map[string]learners.Lasso{
		"lambda must be":                {Lambda: -1},
		"tol must be":                   {Tol: -1},
		"iterations must be":            {MaxIter: -1},
		"theta must be":                 {Theta: -1},
		"lambda works only without":     {Theta: 1, Lambda: 1},
		"rate works only with method":   {Rate: 1},
		"diverge at rate 1: lower":      {Lambda: 1, Rate: 1, Method: learners.ISTA},
		`method: "newton" is not known`: {Method: "newton"},
	} {
		if _, err := l.Fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	// If λ ≥ 2‖Xᵀ(y − ȳ)‖_∞ all weights are 0; this limit is the first penalty of a path.
	path, err := learners.Lasso{}.Path(t.Context(), dev, x, y, nil, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(path) != 100 || len(path[0].Support(0)) != 0 || len(path[1].Support(0)) != 1 {
		t.Errorf("%d models; weights not 0: %v, %v", len(path), path[0].Support(0), path[1].Support(0))
	}
}

// TestUnfinishedLasso checks that a fit with too few iterations returns a model, a warning, and a
// duality gap that bounds the distance of the objective from its minimum.
func TestUnfinishedLasso(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		x, y := table(t, true)
		const lambda = 1
		objective := func(m *learners.LinearModel) float64 {
			f, sum := labels(t, dev, m, x), 0.0
			for i := range 442 {
				sum += math.Pow(y.At(i, 0)-f.At(i, 0), 2)
			}
			for p := range 10 {
				sum += lambda * math.Abs(m.Coef().At(p, 0))
			}
			return sum
		}
		exact, err := learners.Lasso{Lambda: lambda, Tol: 1e-12}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for _, method := range []learners.LassoMethod{learners.CoordinateDescent, learners.FISTA} {
			m, err := learners.Lasso{Lambda: lambda, Method: method, MaxIter: 2, Tol: 1e-12}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			gap, excess := fact(t, m, "duality gap").(float64), objective(m)-objective(exact)
			if text := fact(t, m, "warning").(string); !strings.Contains(text, "has not converged") || !(excess > 0 && excess <= gap) {
				t.Errorf("%s: the objective is %v above its minimum, the gap is %v; %s", method, excess, gap, text)
			}
		}
	})
}

// TestTargetsOutOfRange checks that targets whose squares overflow or underflow give an error that
// says to scale y.
func TestTargetsOutOfRange(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x := mat.NewDense(6, 1, []float64{1, 2, 3, 4, 5, 6})
	for _, unit := range []float64{1e300, 1e-300} {
		y := mat.NewDense(6, 1, []float64{unit, 3 * unit, 2 * unit, 5 * unit, 4 * unit, 6 * unit})
		for name, fit := range map[string]learners.Fitter{"bayes-ridge": fitter(learners.BayesRidge{}.Fit), "rvm": fitter(learners.RVM{}.Fit)} {
			if _, err := fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), "scale y") {
				t.Errorf("%s: y near %v: %v", name, unit, err)
			}
		}
	}
}

// TestL0IsBestSubset checks by exhaustive search that no subset of the columns has a lower objective than the fit,
// for correlated, copied and dependent columns, and for fewer rows than columns.
func TestL0IsBestSubset(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		n, d := 30, 7
		if seed%4 == 3 {
			n = 6
		}
		x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
		for i := range n {
			common := r.NormFloat64()
			for p := range d {
				x.Set(i, p, common+0.3*r.NormFloat64())
				y.Set(i, 0, y.At(i, 0)+float64(p%3-1)*x.At(i, p))
			}
			switch seed % 4 {
			case 1: // the indicators of three categories
				for p := range 3 {
					x.Set(i, 4+p, 0)
				}
				x.Set(i, 4+i%3, 1)
				y.Set(i, 0, y.At(i, 0)+5*x.At(i, 5))
			case 2: // one column is a copy of another, and one column is the sum of two others
				x.Set(i, 3, x.At(i, 0))
				x.Set(i, 6, x.At(i, 1)+x.At(i, 2))
			}
			y.Set(i, 0, y.At(i, 0)+0.5*r.NormFloat64())
		}
		minima := make([]float64, d+1) // smallest sum of squares of the subsets of each size
		for size := range minima {
			minima[size] = math.Inf(1)
		}
		for set := range 1 << d {
			var list []int
			for p := range d {
				if set>>p&1 == 1 {
					list = append(list, p)
				}
			}
			minima[len(list)] = min(minima[len(list)], squaresOf(x, y, list))
		}
		total := minima[0]
		for size := 1; size <= d; size++ { // the columns of a larger subset may be dependent, and then do not lower the sum of squares
			minima[size] = min(minima[size], minima[size-1])
		}
		check := func(l learners.L0, want float64) {
			m, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			f := labels(t, dev, m, x)
			got := l.Lambda * float64(len(m.Support(0)))
			for i := range n {
				got += (y.At(i, 0) - f.At(i, 0)) * (y.At(i, 0) - f.At(i, 0))
			}
			if l.Support > 0 && len(m.Support(0)) > l.Support {
				t.Errorf("seed %d, %+v: the support is %v", seed, l, m.Support(0))
			}
			// The tolerance allows for the rounding of sums of n terms as large as ‖y‖².
			if got > want+float64(64*n)*0x1p-52*total || !fact(t, m, "best subset").(bool) {
				t.Errorf("seed %d, %+v: the objective is %v with %v, of the best subset %v; %v", seed, l, got, m.Support(0), want, m.Facts())
			}
		}
		for size := 1; size <= d; size++ {
			check(learners.L0{Support: size}, minima[size])
		}
		for _, lambda := range []float64{0, 1e-3, 0.1, 1, 10, 1e4} {
			want := math.Inf(1)
			for size, v := range minima {
				want = min(want, v+lambda*float64(size))
			}
			check(learners.L0{Lambda: lambda}, want)
		}
	}
}

// squaresOf returns the minimum of Σ(y − wᵀx − b)² over b and the weights of the columns in list, by the SVD.
func squaresOf(x, y *mat.Dense, list []int) float64 {
	n, _ := x.Dims()
	right := mat.NewVecDense(n, nil)
	for i := range n {
		right.SetVec(i, y.At(i, 0)-mat.Sum(y)/float64(n))
	}
	sum := mat.Dot(right, right)
	if len(list) == 0 {
		return sum
	}
	subset := mat.NewDense(n, len(list), nil)
	for s, p := range list {
		mean := mat.Sum(x.ColView(p)) / float64(n)
		for i := range n {
			subset.Set(i, s, x.At(i, p)-mean)
		}
	}
	var svd mat.SVD
	svd.Factorize(subset, mat.SVDThin)
	var u mat.Dense
	svd.UTo(&u)
	for k, v := range svd.Values(nil) {
		if v > 1e-10*svd.Values(nil)[0] {
			sum -= math.Pow(mat.Dot(u.ColView(k), right), 2)
		}
	}
	return max(sum, 0)
}

// TestL0OfCategories checks the RMSE for a numeric column, the indicators of a category, and noise with standard
// deviation 0.1. With a hundred levels there are too many columns for the exact search.
func TestL0OfCategories(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	for seed := range uint64(6) {
		for _, levels := range []int{3, 100} {
			r := rand.New(rand.NewPCG(seed, 5))
			n := max(200, 20*levels)
			x, y := mat.NewDense(n, 1+levels, nil), mat.NewDense(n, 1, nil)
			effect := []float64{0, 5, -4}
			for i := range n {
				level := r.IntN(levels)
				x.Set(i, 0, r.NormFloat64())
				x.Set(i, 1+level, 1)
				y.Set(i, 0, 100+3*x.At(i, 0)+effect[level%3]+0.1*r.NormFloat64())
			}
			for _, l := range []learners.L0{{Lambda: 1}, {Support: 1 + levels}} {
				m, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
				if err != nil {
					t.Fatal(err)
				}
				f, sum := labels(t, dev, m, x), 0.0
				for i := range n {
					sum += math.Pow(f.At(i, 0)-y.At(i, 0), 2)
				}
				// The mean square of n noise values has standard deviation 0.1²·√(2/n). The limit allows five of these.
				if rmse := math.Sqrt(sum / float64(n)); rmse > 0.1*(1+4/math.Sqrt(float64(n))) {
					t.Errorf("seed %d, %d levels, %+v: rmse %v, support %v", seed, levels, l, rmse, m.Support(0))
				}
			}
		}
	}
}

// TestL0Recovers checks that a fit finds the three features of the targets, for a given number of
// features and for a given penalty, with XᵀX and without.
func TestL0Recovers(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		t.Log("seed 9")
		r := rand.New(rand.NewPCG(9, 0))
		for _, shape := range [][2]int{{60, 20}, {100, 2200}} {
			n, d := shape[0], shape[1]
			x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
			support := []int{2, 7, 11}
			for i := range n {
				for p := range d {
					x.Set(i, p, math.Pow(2, float64(p%5))*r.NormFloat64())
				}
				for k, p := range support {
					y.Set(i, 0, y.At(i, 0)+float64(k+2)*x.At(i, p)*math.Pow(2, -float64(p%5)))
				}
				y.Set(i, 0, y.At(i, 0)+0.1*r.NormFloat64())
			}
			for _, l := range []learners.L0{{Support: 3}, {Lambda: 20}} {
				m, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(m.Support(0), support) {
					t.Errorf("%d×%d, %+v: the support is %v", n, d, l, m.Support(0))
				}
			}
		}
		x := mat.NewDense(3, 2, []float64{1, 2, 3, 4, 5, 7})
		if _, err := (learners.L0{Support: 3}).Fit(t.Context(), dev, x, x.ColView(0), learners.Options{}); err == nil || !strings.Contains(err.Error(), "support is 3, but x has 2 columns") {
			t.Errorf("got %v", err)
		}
	})
}

// TestL0EndsEarly checks that with more than 64 columns a fit of one step returns the least-squares model of its
// columns, and a warning with the decrease of the objective from w = 0. With more steps the fit has no warning and
// a lower objective.
func TestL0EndsEarly(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		t.Log("seed 41")
		r := rand.New(rand.NewPCG(41, 0))
		const n, d = 60, 100
		x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
		for i := range n {
			common := r.NormFloat64()
			for p := range d {
				x.Set(i, p, common+0.3*r.NormFloat64())
			}
			for p := range 12 {
				y.Set(i, 0, y.At(i, 0)+float64(p%3-1)*x.At(i, p))
			}
		}
		total := mat.Dot(y.ColView(0), y.ColView(0))
		fit := func(iterations int) (fall float64, warning string) {
			m, err := learners.L0{Support: 8, MaxIter: iterations, NoIntercept: true}.Fit(t.Context(), dev, x, y, learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := m.Predict(t.Context(), dev, x)
			if err != nil {
				t.Fatal(err)
			}
			var residual mat.Dense
			residual.Sub(y, p)
			for _, j := range m.Support(0) {
				c := x.ColView(j)
				if v := math.Abs(mat.Dot(c, residual.ColView(0))); v > 1e4*n*0x1p-52*mat.Norm(c, 2)*math.Sqrt(total) {
					t.Errorf("the residual is not orthogonal to column %d: %v", j, v)
				}
			}
			for _, f := range m.Facts() {
				if f.Name == "warning" {
					warning = f.Value.(string)
				}
			}
			return total - mat.Dot(residual.ColView(0), residual.ColView(0)), warning
		}
		first, warning := fit(1)
		if want := fmt.Sprintf("the last of 1 step decreased the objective by %.2g of ‖y‖²", first/total); !strings.Contains(warning, want) {
			t.Errorf("warning %q has no %q", warning, want)
		}
		if last, warning := fit(0); warning != "" || !(last > first) {
			t.Errorf("the objective falls by %v in one step and by %v in all steps; warning %q", first, last, warning)
		}
	})
}

// TestLassoBound checks that fits with ‖w‖₁ ≤ θ satisfy the bound, and the conditions of Karush, Kuhn and Tucker
// at the λ of the model. For orthonormal columns the solution is known in closed form.
func TestLassoBound(t *testing.T) {
	const tol = 1e-12
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		t.Log("seed 8")
		r := rand.New(rand.NewPCG(8, 0))
		for _, shape := range [][2]int{{50, 8}, {30, 60}} {
			n, d := shape[0], shape[1]
			x, y := sparseTargets(r, n, d)
			for _, method := range []learners.LassoMethod{learners.CoordinateDescent, learners.FISTA} {
				for _, theta := range []float64{1e-3, 1, 4.5, 100} {
					l := learners.Lasso{Theta: theta, Method: method, Tol: tol, MaxIter: 1e6}
					if theta == 100 && d > n {
						l.Tol = 1e-6 // for a large θ, λ tends to 0, where the least-squares solution is not unique
					}
					m, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
					if err != nil {
						t.Fatal(err)
					}
					norm, lambda := 0.0, m.Lambda()[0]
					for p := range d {
						norm += math.Abs(m.Coef().At(p, 0))
					}
					t.Logf("%d×%d, %s, θ = %v: ‖w‖₁ − θ = %.2g; %v", n, d, method, theta, norm-theta, m.Facts())
					checkClose(t, "fact", fact(t, m, "l1 norm").(float64), norm, 1e-15*float64(d)*norm)
					// The sum ‖w‖₁ has d rounding errors, by which it may exceed θ.
					if norm > theta*(1+float64(d)*0x1p-52) || lambda > 0 != (theta < 100) || lambda > 0 && math.Abs(norm-theta) > 1e-7*theta {
						t.Errorf("θ = %v: ‖w‖₁ = %v at λ = %v", theta, norm, lambda)
					}
					kkt(t, dev, m, x, y, lambda, l.Tol)
				}
			}
		}
		// XᵀX = I and Xᵀy = (3, −2, 1): w is Xᵀy soft-thresholded at λ/2. θ = 3 corresponds to λ/2
		// = 1 and w = (2, −1, 0).
		x, y := mat.NewDense(3, 3, []float64{1, 0, 0, 0, 1, 0, 0, 0, 1}), mat.NewDense(3, 1, []float64{3, -2, 1})
		m, err := learners.Lasso{Theta: 3, NoIntercept: true, Tol: tol}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for p, want := range []float64{2, -1, 0} {
			checkClose(t, "w", m.Coef().At(p, 0), want, 1e-7)
		}
		checkClose(t, "lambda", m.Lambda()[0], 2, 1e-7)
	})
}

// TestISTA compares a fit with a plain loop of steps w ← soft(w − η∇, ηλ) from w = 0, where ∇ is
// the gradient and soft is the soft threshold.
func TestISTA(t *testing.T) {
	x, y := gaussians(t, 40, 5, 9)
	const lambda, rate, steps = 4, 0.003, 7
	m, err := learners.Lasso{Lambda: lambda, Method: learners.ISTA, Rate: rate, MaxIter: steps, Tol: 1e-15, NoIntercept: true}.Fit(t.Context(), backendtest.Device(t, "cpu"), x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := make([]float64, 5)
	for range steps {
		slope := make([]float64, 5)
		for i := range 40 {
			f := mat.Dot(x.RowView(i), mat.NewVecDense(5, w))
			for p := range w {
				slope[p] += 2 * x.At(i, p) * (f - y.At(i, 0))
			}
		}
		for p := range w {
			v := w[p] - rate*slope[p]
			w[p] = math.Copysign(max(0, math.Abs(v)-rate*lambda), v)
		}
	}
	for p := range w {
		checkClose(t, "w", m.Coef().At(p, 0), w[p], 1e-12*mat.Max(y))
	}
}

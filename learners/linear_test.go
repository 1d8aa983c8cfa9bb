package learners_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"gonum.org/v1/gonum/mat"
)

var noLinear = []learners.Model{&learners.LinearModel{}, (*learners.LinearModel)(nil)}

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
				Condition: 1000, // of 30 standard normal samples, with a margin
			})
		})
	}
}

func TestRidgeConstrained(t *testing.T) {
	for name, l := range map[string]learners.RidgeConstrained{"binding": {Theta: 1}, "free": {Theta: 1e4}, "origin": {Theta: 5, NoIntercept: true}} {
		t.Run(name, func(t *testing.T) {
			if name == "binding" {
				// ‖w‖ is 1 where least squares has 3.7, so that R² is low.
				l.Theta = 10
			}
			learnertest.Run(t, learnertest.Suite{
				Learner: "ridge-constrained", Fit: fitter(l.Fit), Unfitted: noLinear, Terms: linearTerms,
				Condition: 1e5, // ‖w‖² meets θ to 1e-10
			})
		})
	}
}

func TestBayesRidge(t *testing.T) {
	for name, l := range map[string]learners.BayesRidge{"default": {Tol: 1e-13}, "origin": {Tol: 1e-13, NoIntercept: true}} {
		t.Run(name, func(t *testing.T) {
			learnertest.Run(t, learnertest.Suite{
				Learner: "bayes-ridge", Fit: fitter(l.Fit), Terms: linearTerms,
				Unfitted:  []learners.Model{&learners.BayesRidgeModel{}, (*learners.BayesRidgeModel)(nil)},
				Condition: 1e4, // steps to a relative change of 1e-13, at a rate that may be 0.9
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
				Condition: 1e7, // ‖X(w−w*)‖² ≤ gap, 1e-15‖y‖²
			})
		})
	}
}

func TestL0(t *testing.T) {
	for name, l := range map[string]learners.L0{"penalty": {Lambda: 1e-3}, "support": {Support: 2}, "origin": {Support: 3, NoIntercept: true}} {
		t.Run(name, func(t *testing.T) {
			learnertest.Run(t, learnertest.Suite{
				Learner: "l0", Fit: fitter(l.Fit), Unfitted: noLinear, Terms: linearTerms,
				Condition: 1000, // the weights kept are those of least squares
			})
		})
	}
}

// TestRankDeficiency: the rank and the columns are named; what QR can still
// solve is solved.
func TestRankDeficiency(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		t.Log("seed 3")
		r := rand.New(rand.NewPCG(3, 0))
		const n, d = 40, 5
		base := mat.NewDense(n, d, nil)
		y := mat.NewDense(n, 1, nil)
		for i := range n {
			for p := range d {
				base.Set(i, p, r.NormFloat64()*math.Pow(10, float64(3*p-6))) // in any units
			}
			y.Set(i, 0, r.NormFloat64())
		}
		for _, test := range []struct {
			name      string
			change    func(x *mat.Dense)
			rows      int
			rank      int
			dependent []int
			text      string
		}{
			{"a constant column", func(x *mat.Dense) {
				for i := range n {
					x.Set(i, 2, 1e6/3)
				}
			}, n, 4, []int{2}, "column 3 is constant or a combination"},
			{"a sum", func(x *mat.Dense) {
				for i := range n {
					x.Set(i, 3, x.At(i, 0)-3*x.At(i, 1))
				}
			}, n, 4, nil, "x has rank 4 of 5 columns"},
			{"two copies", func(x *mat.Dense) {
				for i := range n {
					x.Set(i, 3, x.At(i, 0))
					x.Set(i, 4, x.At(i, 0))
				}
			}, n, 3, nil, "are constant or combinations"},
			{"few rows", func(x *mat.Dense) {}, 4, 3, nil, "because only 4 rows take part"},
		} {
			x := mat.DenseCopyOf(base)
			test.change(x)
			_, err := learners.LeastSquares{}.Fit(t.Context(), dev, x.Slice(0, test.rows, 0, d), y.Slice(0, test.rows, 0, 1), learners.Options{})
			var rank *learners.RankError
			if !errors.As(err, &rank) {
				t.Errorf("%s: got %v", test.name, err)
				continue
			}
			if rank.Rank != test.rank || len(rank.Dependent) != d-test.rank || test.dependent != nil && !slices.Equal(rank.Dependent, test.dependent) ||
				!strings.Contains(err.Error(), test.text) {
				t.Errorf("%s: rank %d, dependent %v: %v", test.name, rank.Rank, rank.Dependent, err)
			}
		}
		// Nearly dependent: a condition of some 1e9, whose square is rounding.
		x := mat.DenseCopyOf(base)
		for i := range n {
			x.Set(i, 1, 1e-3*r.NormFloat64()) // of the size of base
			x.Set(i, 3, x.At(i, 4)*(1+1e-9*r.NormFloat64()))
			y.Set(i, 0, 2*x.At(i, 0)+3*x.At(i, 3)-3*x.At(i, 4))
		}
		m, err := learners.LeastSquares{}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := m.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		// A backward stable solution predicts to rounding of its own terms.
		for i := range n {
			sum, terms := linearTerms(m, x.RawRowView(i), 0)
			near(t, "prediction", f.At(i, 0), y.At(i, 0), float64(n*terms)*0x1p-52*(sum+1e6))
		}
		if facts := m.Facts(); facts[0].Value != "QR" {
			t.Errorf("solved by %v", facts)
		}
	})
}

// TestConstraint: ‖w‖² meets θ, and w is that of ridge with the λ that is told;
// also with fewer rows than features.
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
				near(t, "‖w‖²", size*size, theta, 2e-10*theta)
				ridge, err := learners.Ridge{Lambda: m.Lambda()[0]}.Fit(t.Context(), dev, xs, ys, learners.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if !mat.EqualApprox(ridge.Coef(), m.Coef(), 1e-12*size) {
					t.Errorf("θ = %v: the weights are not those of ridge", theta)
				}
			}
		}
		// ‖w‖² of least squares is 5.3e3 here: then the bound does not bind.
		m, err := learners.RidgeConstrained{Theta: 1e5}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil || m.Lambda()[0] != 0 {
			t.Errorf("θ = 1e5: λ %v, %v", m.Lambda(), err)
		}
		for _, theta := range []float64{0, -1, math.NaN(), math.Inf(1)} {
			if _, err := (learners.RidgeConstrained{Theta: theta}).Fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), "theta must be") {
				t.Errorf("θ = %v: %v", theta, err)
			}
		}
	})
}

// TestBayesRidgeClosedForm: the evidence is that of the n×n Gaussian, and no
// other variances have a larger one.
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
			best, chol := evidence(noise, prior)
			// Sums of n and d terms of the size of the evidence, which is about n.
			near(t, "log evidence", m.LogEvidence()[0], best, 1e3*0x1p-52*float64(n*(n+d)))
			for _, f := range []float64{0.9, 1.1} {
				if e, _ := evidence(f*noise, prior); e >= best {
					t.Errorf("%d×%d: noise·%v has the evidence %v, not below %v", n, d, f, e, best)
				}
				if e, _ := evidence(noise, f*prior); e >= best {
					t.Errorf("%d×%d: prior·%v has the evidence %v, not below %v", n, d, f, e, best)
				}
			}
			// Variance: k(z, z) − k_zᵀC⁻¹k_z + noise with k = prior·xᵀz.
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
				own := prior * mat.Dot(z.RowView(i), z.RowView(i))
				// A difference of numbers of the size of own, times the condition.
				near(t, "variance", v.At(i, 0), own-mat.Dot(k, &s)+noise, 1e4*0x1p-52*float64(n+d)*(own+noise))
			}
		}
	})
}

// TestLassoOptimality: the conditions of Karush, Kuhn and Tucker hold for both
// methods, with XᵀX and without, and on a path.
func TestLassoOptimality(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		t.Log("seed 7")
		r := rand.New(rand.NewPCG(7, 0))
		for _, shape := range [][2]int{{50, 8}, {30, 60}, {12, 2100}} {
			n, d := shape[0], shape[1]
			lambdas, tol := []float64{3, 30, 1}, 1e-10
			if n > d { // least squares, too
				lambdas = append(lambdas, 0)
			}
			if d > 2048 && (testing.Short() || strings.HasPrefix(dev.Info().Device, "ref")) {
				continue // takes seconds, in plain loops more
			}
			if d > 2048 { // with 2100 features of deviation 1 and 12 samples λ of any effect is larger
				lambdas, tol = []float64{30, 100, 20}, 1e-7
			}
			x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
			for i := range n {
				for p := range d {
					x.Set(i, p, 5+r.NormFloat64())
				}
				y.Set(i, 0, 3*x.At(i, 0)-2*x.At(i, 1)+0.1*r.NormFloat64())
			}
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

// kkt requires x_pᵀ(y − f) = ±λ/2 where the weight is not 0, with its sign, and
// within ±λ/2 elsewhere.
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
		slope, norm, centre := 0.0, 0.0, mat.Sum(x.ColView(p))/float64(n)
		for i := range n {
			v := x.At(i, p) - centre
			slope += v * (y.At(i, 0) - f.At(i, 0))
			norm += v * v
		}
		// A gap of g leaves ‖X(w − w*)‖ ≤ √(2g) in half of the objective.
		bound := math.Sqrt(norm*tol*total) + 1e-9
		switch w := m.Coef().At(p, 0); {
		case w > 0:
			near(t, "slope", slope, lambda/2, bound)
		case w < 0:
			near(t, "slope", slope, -lambda/2, bound)
		case math.Abs(slope) > lambda/2+bound:
			t.Errorf("weight %d is 0, its slope %v", p, slope)
		}
	}
}

// TestLassoSettings: what is refused, and what has no answer yet.
func TestLassoSettings(t *testing.T) {
	dev, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	x, y := table(t, false)
	for want, l := range map[string]learners.Lasso{
		"lambda must be":                  {Lambda: -1},
		"tol must be":                     {Tol: -1},
		"iterations must be":              {MaxIter: -1},
		`no method is called "newton"`:    {Method: "newton"},
		"after 1 sweeps the duality gap ": {Lambda: 1, MaxIter: 1, Tol: 1e-12},
		"after 2 steps the duality gap ":  {Lambda: 1, MaxIter: 2, Tol: 1e-12, Method: learners.FISTA},
	} {
		if _, err := l.Fit(t.Context(), dev, x, y, learners.Options{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	// From λ = 2‖Xᵀ(y − ȳ)‖_∞ on all weights are 0; the path begins there.
	path, err := learners.Lasso{}.Path(t.Context(), dev, x, y, nil, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(path) != 100 || len(path[0].Support(0)) != 0 || len(path[1].Support(0)) != 1 {
		t.Errorf("%d models; weights not 0: %v, %v", len(path), path[0].Support(0), path[1].Support(0))
	}
}

// TestL0Recovers: a sparse truth is found, by its size and by a penalty, with
// XᵀX and without; among all supports of the small problem none is better.
func TestL0Recovers(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		t.Log("seed 9")
		r := rand.New(rand.NewPCG(9, 0))
		for _, shape := range [][2]int{{60, 20}, {100, 2200}} {
			n, d := shape[0], shape[1]
			x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
			truth := []int{2, 7, 11}
			for i := range n {
				for p := range d {
					x.Set(i, p, math.Pow(2, float64(p%5))*r.NormFloat64())
				}
				for k, p := range truth {
					y.Set(i, 0, y.At(i, 0)+float64(k+2)*x.At(i, p)*math.Pow(2, -float64(p%5)))
				}
				y.Set(i, 0, y.At(i, 0)+0.1*r.NormFloat64())
			}
			for _, l := range []learners.L0{{Support: 3}, {Lambda: 20}} {
				m, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(m.Support(0), truth) {
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

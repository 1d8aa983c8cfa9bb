package learners_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// densePosterior is the posterior of a Gaussian process, computed with n×n matrices. The covariance of its samples is
// s² times the matrix Q of the function dtc.
type densePosterior struct {
	mean, variance []float64 // one element for each point of the predictions
	diagonal       []float64 // k(x, x) of each point
	scale, log     float64
	bound          float64
	condition      float64
}

// dtc evaluates the deterministic training conditional of Quiñonero-Candela and Rasmussen (2005), equation 20, with n×n
// matrices. For the samples n, the centers m and the points * of the predictions it is
//
//	mean Q_*C⁻¹y, variance k_** − Q_*C⁻¹Q_*ᵀ + λ,  Q = K_nm K_mm⁻¹ K_mn,  C = Q + λI
//
// The arguments are s = K_mm, phi = K_nm, phiStar = K_*m, and the values k(x, x) of the samples and of the points.
// Samples are repeated instead of weighted. An intercept has a flat prior (Rasmussen and Williams 2006, equation 2.42).
// The bound is that of Titsias (2009), equation 9.
func dtc(s mat.Symmetric, phi, phiStar *mat.Dense, diagonal, selfStar []float64, y []float64, lambda float64, intercept bool) densePosterior {
	n, _ := phi.Dims()
	r, _ := phiStar.Dims()
	var chol mat.Cholesky
	if !chol.Factorize(s) {
		panic("S is not positive definite")
	}
	var sInvPhi, q, qStar, qStarStar mat.Dense
	if err := chol.SolveTo(&sInvPhi, phi.T()); err != nil {
		panic(err)
	}
	q.Mul(phi, &sInvPhi)
	qStar.Mul(phiStar, &sInvPhi)
	var star mat.Dense
	if err := chol.SolveTo(&star, phiStar.T()); err != nil {
		panic(err)
	}
	qStarStar.Mul(phiStar, &star)
	c := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			c.SetSym(i, j, q.At(i, j))
		}
		c.SetSym(i, i, q.At(i, i)+lambda)
	}
	var cc mat.Cholesky
	if !cc.Factorize(c) {
		panic("C is not positive definite")
	}
	solve := func(v mat.Vector) *mat.VecDense {
		var u mat.VecDense
		if err := cc.SolveVecTo(&u, v); err != nil {
			panic(err)
		}
		return &u
	}
	ones := mat.NewVecDense(n, nil)
	for i := range n {
		ones.SetVec(i, 1)
	}
	target := mat.NewVecDense(n, append([]float64(nil), y...))
	p, count, b := densePosterior{condition: chol.Cond(), diagonal: selfStar}, float64(n), 0.0
	inv := solve(ones)
	information := mat.Dot(ones, inv)
	if intercept {
		b = mat.Dot(inv, target) / information
		target.AddScaledVec(target, -b, ones)
		count--
	}
	alpha := solve(target)
	quadratic := mat.Dot(target, alpha)
	p.log = -(count + count*math.Log(2*math.Pi*quadratic/count) + cc.LogDet()) / 2
	if intercept {
		p.log -= math.Log(information) / 2
	}
	traceError := 0.0
	for i := range n {
		traceError += diagonal[i] - q.At(i, i)
	}
	_, functions := phi.Dims()
	p.bound = p.log - traceError/(2*lambda)
	p.scale = quadratic / (count + traceError*max(0, 1-float64(functions)/count)/lambda)
	for i := range r {
		row := qStar.RowView(i)
		v := selfStar[i] - mat.Dot(row, solve(row)) + lambda
		if intercept {
			d := 1 - mat.Dot(inv, row)
			v += d * d / information
		}
		p.mean = append(p.mean, b+mat.Dot(row, alpha))
		p.variance = append(p.variance, p.scale*v)
	}
	return p
}

// features returns the kernel values of each row of x with each row of points, and of each row of x with itself.
func features(k kernels.Kernel, x, points *mat.Dense) (phi *mat.Dense, diagonal []float64) {
	n, _ := x.Dims()
	m, _ := points.Dims()
	phi = mat.NewDense(n, m, nil)
	for i := range n {
		for j := range m {
			phi.Set(i, j, kernels.Eval(k, x.RawRowView(i), points.RawRowView(j)))
		}
		diagonal = append(diagonal, kernels.Eval(k, x.RawRowView(i), x.RawRowView(i)))
	}
	return phi, diagonal
}

func symmetric(a *mat.Dense) *mat.SymDense {
	n, _ := a.Dims()
	s := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			s.SetSym(i, j, a.At(i, j))
		}
	}
	return s
}

// repeated returns a matrix in which row i of x is repeated weights[i] times.
func repeated(x *mat.Dense, weights []float64) *mat.Dense {
	_, d := x.Dims()
	var data []float64
	for i, w := range weights {
		for range int(w) {
			data = append(data, x.RawRowView(i)...)
		}
	}
	return mat.NewDense(len(data)/d, d, data)
}

// checkPosterior compares the posterior of a model with want. The error of the approximated Gram matrix, relative to
// its size of at most rows, is functions·2⁻⁵² times want.condition. The inverse covariance multiplies it by at most
// 1/λ.
func checkPosterior(t *testing.T, dev backend.Device, m learners.Uncertain, z *mat.Dense, want densePosterior, rows, functions int, lambda float64) {
	t.Helper()
	unit := float64(functions) * 0x1p-52 * want.condition * float64(rows) / lambda
	f, err := m.Predict(t.Context(), dev, z)
	if err != nil {
		t.Fatal(err)
	}
	v, err := m.Variance(t.Context(), dev, z)
	if err != nil {
		t.Fatal(err)
	}
	q, err := learners.Restore(m.State())
	if err != nil {
		t.Fatal(err)
	}
	restoredVariance, err := q.(learners.Uncertain).Variance(t.Context(), dev, z)
	if err != nil || !mat.Equal(v, restoredVariance) {
		t.Errorf("the restored model has other variances: %v", err)
	}
	p := m.(interface {
		Scale() []float64
		LogLikelihood() float64
	})
	checkClose(t, "scale", p.Scale()[0], want.scale, unit*want.scale)
	checkClose(t, "log likelihood", p.LogLikelihood(), want.log, unit*float64(rows))
	for i, mean := range want.mean {
		checkClose(t, "mean", f.At(i, 0), mean, unit*10*max(1, want.diagonal[i]))
		checkClose(t, "variance", v.At(i, 0), want.variance[i], unit*want.scale*max(1, want.diagonal[i]))
	}
}

// TestNystromPosterior compares the variances, the scale, the likelihood and its bound with
// formulas for n×n matrices, also for weighted samples and a kernel that is not stationary.
func TestNystromPosterior(t *testing.T) {
	x, y := wave(5, 60, 2)
	z, _ := wave(6, 15, 2)
	z.Scale(2, z) // some points are far from the samples
	weights := make([]float64, 60)
	for i := range weights {
		weights[i] = float64(i % 3)
	}
	for name, l := range map[string]learners.NystromRidge{
		"intercept":  {Kernel: kernels.Matern{Nu: 0.5, Sigma: 1}, Lambda: 0.2, Centers: 20},
		"none":       {Kernel: kernels.Matern{Nu: 1.5, Sigma: 2}, Lambda: 0.05, Centers: 12, NoIntercept: true},
		"polynomial": {Kernel: kernels.Polynomial{C: 1, Degree: 2}, Lambda: 0.5, Centers: 4},
	} {
		t.Run(name, func(t *testing.T) {
			eachFastDevice(t, func(t *testing.T, dev backend.Device) {
				for _, w := range [][]float64{nil, weights} {
					l.Std, l.Tol = true, 1e-12
					m, err := l.Fit(t.Context(), dev, x, y, learners.Options{Weights: w})
					if err != nil {
						t.Fatal(err)
					}
					points, targets := x, y
					if w != nil {
						points, targets = repeated(x, w), repeated(y, w)
					}
					centers := m.Centers()
					phi, diagonal := features(l.Kernel, points, centers)
					phiStar, selfStar := features(l.Kernel, z, centers)
					s, _ := features(l.Kernel, centers, centers)
					want := dtc(symmetric(s), phi, phiStar, diagonal, selfStar, mat.Col(nil, 0, targets), l.Lambda, !l.NoIntercept)
					rows, functions := phi.Dims()
					checkPosterior(t, dev, m, z, want, rows, functions, l.Lambda)
					unit := float64(functions) * 0x1p-52 * want.condition * float64(rows) / l.Lambda
					checkClose(t, "bound", m.LikelihoodBound(), want.bound, unit*float64(rows))
				}
			})
		})
	}
}

// TestFourierPosterior compares the posterior with that of Bayesian linear regression on the features.
func TestFourierPosterior(t *testing.T) {
	x, y := wave(5, 50, 2)
	z, _ := wave(6, 15, 2)
	weights := make([]float64, 50)
	for i := range weights {
		weights[i] = float64(i % 3)
	}
	for name, l := range map[string]learners.FourierRidge{
		"intercept": {Kernel: kernels.Scaled{Weight: 2, Kernel: kernels.Gaussian{Sigma: 1}}, Lambda: 0.2, Features: 30},
		"none":      {Kernel: kernels.Matern{Nu: 1.5, Sigma: 2}, Lambda: 0.05, Features: 70, NoIntercept: true},
	} {
		t.Run(name, func(t *testing.T) {
			eachFastDevice(t, func(t *testing.T, dev backend.Device) {
				for _, w := range [][]float64{nil, weights} {
					l.Std, l.Tol = true, 1e-12
					m, err := l.Fit(t.Context(), dev, x, y, learners.Options{Weights: w})
					if err != nil {
						t.Fatal(err)
					}
					points, targets := x, y
					if w != nil {
						points, targets = repeated(x, w), repeated(y, w)
					}
					waves := func(x *mat.Dense) (phi *mat.Dense, diagonal []float64) {
						omega := m.Frequencies()
						n, _ := x.Dims()
						pairs, _ := omega.Dims()
						scale := math.Sqrt(kernels.Eval(l.Kernel, []float64{0, 0}, []float64{0, 0}) / float64(pairs))
						phi = mat.NewDense(n, 2*pairs, nil)
						for i := range n {
							for j := range pairs {
								sin, cos := math.Sincos(mat.Dot(x.RowView(i), omega.RowView(j)))
								phi.Set(i, j, scale*cos)
								phi.Set(i, pairs+j, scale*sin)
							}
							diagonal = append(diagonal, mat.Dot(phi.RowView(i), phi.RowView(i)))
						}
						return phi, diagonal
					}
					phi, diagonal := waves(points)
					phiStar, selfStar := waves(z)
					rows, functions := phi.Dims()
					s := mat.NewDiagDense(functions, nil)
					for j := range functions {
						s.SetDiag(j, 1)
					}
					want := dtc(s, phi, phiStar, diagonal, selfStar, mat.Col(nil, 0, targets), l.Lambda, !l.NoIntercept)
					checkPosterior(t, dev, m, z, want, rows, functions, l.Lambda)
				}
			})
		})
	}
}

// TestNystromPosteriorIsExact checks that the posterior with every sample as a center equals that of
// GaussianProcess, and that with fewer centers the bound is below its likelihood.
func TestNystromPosteriorIsExact(t *testing.T) {
	x, y := wave(7, 80, 2)
	z, _ := wave(8, 20, 2)
	z.Scale(2, z)
	k := kernels.Matern{Nu: 1.5, Sigma: 1}
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		exact, err := learners.GaussianProcess{Kernel: k, Lambda: 0.1, Fixed: true, NoIntercept: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		want, err := exact.Variance(t.Context(), dev, z)
		if err != nil {
			t.Fatal(err)
		}
		l := learners.NystromRidge{Kernel: k, Lambda: 0.1, NoIntercept: true, Centers: 80, Tol: 1e-12, Std: true}
		m, err := l.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Variance(t.Context(), dev, z)
		if err != nil {
			t.Fatal(err)
		}
		// The diagonal of k(c, c) is increased by 4·2⁻⁵²·80. This changes the approximated Gram matrix by at most 80
		// times as much, and the inverse covariance by at most this change divided by λ².
		tol := 80 * 4 * 0x1p-52 * 80 / (0.1 * 0.1) * 80
		s := exact.Scale()[0]
		checkClose(t, "scale", m.Scale()[0], s, tol*s)
		checkClose(t, "log likelihood", m.LogLikelihood(), exact.LogLikelihood(), tol*80)
		checkClose(t, "bound", m.LikelihoodBound(), exact.LogLikelihood(), tol*80)
		for i := range 20 {
			checkClose(t, "variance", got.At(i, 0), want.At(i, 0), tol*s)
		}
		previous := math.Inf(-1)
		for _, centers := range []int{5, 20, 60} {
			l.Centers = centers
			if m, err = l.Fit(t.Context(), dev, x, y, learners.Options{}); err != nil {
				t.Fatal(err)
			}
			b := m.LikelihoodBound()
			if !(b < exact.LogLikelihood() && b > previous) { // the centers are nested, since they are the samples with the smallest keys
				t.Errorf("the bound with %d centers is %v, with fewer %v, and the likelihood %v", centers, b, previous, exact.LogLikelihood())
			}
			previous = b
		}
	})
}

// TestPosteriorSamples compares the moments of samples drawn from the posterior with Predict, with Variance minus
// the noise, and with the exact covariances (Rasmussen and Williams 2006, equation 2.24), up to five standard
// errors.
func TestPosteriorSamples(t *testing.T) {
	const n, draws, lambda = 40, 4000, 0.3
	x, y := wave(11, n, 2)
	z, _ := wave(12, 6, 2)
	z.SetRow(5, z.RawRowView(4)) // two equal points, at which a draw must have equal values
	k := kernels.Matern{Nu: 1.5, Sigma: 1}
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		type sampler interface {
			learners.Uncertain
			Scale() []float64
			Sample(ctx context.Context, dev backend.Device, x mat.Matrix, draws int, seed uint64) ([]*mat.Dense, error)
		}
		exact, err := learners.NystromRidge{Kernel: k, Lambda: lambda, Centers: n, NoIntercept: true, Std: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		coarse, err := learners.NystromRidge{Kernel: k, Lambda: lambda, Centers: 8, Std: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		waves, err := learners.FourierRidge{Kernel: k, Lambda: lambda, Features: 30, Std: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var solution, want mat.Dense
		phi, _ := features(k, x, x)
		phiStar, _ := features(k, z, x)
		prior, _ := features(k, z, z)
		for i := range n {
			phi.Set(i, i, phi.At(i, i)+lambda)
		}
		if err := solution.Solve(phi, phiStar.T()); err != nil {
			t.Fatal(err)
		}
		want.Mul(phiStar, &solution)
		want.Sub(prior, &want)
		for name, m := range map[string]sampler{"exact": exact, "few": coarse, "waves": waves} {
			list, err := m.Sample(t.Context(), dev, z, draws, 1)
			if err != nil {
				t.Fatal(err)
			}
			repeated, err := m.Sample(t.Context(), dev, z, draws, 1)
			if err != nil || !mat.Equal(list[draws-1], repeated[draws-1]) {
				t.Errorf("%s: the same seed gives other draws: %v", name, err)
			}
			f, err := m.Predict(t.Context(), dev, z)
			if err != nil {
				t.Fatal(err)
			}
			v, err := m.Variance(t.Context(), dev, z)
			if err != nil {
				t.Fatal(err)
			}
			s := m.Scale()[0]
			for i := range 6 {
				mean := 0.0
				for _, draw := range list {
					mean += draw.At(i, 0) / draws
				}
				variance := v.At(i, 0) - s*lambda
				checkClose(t, name+": mean", mean, f.At(i, 0), 5*math.Sqrt(variance/draws))
				for j := range i + 1 {
					moment := 0.0
					for _, draw := range list {
						moment += (draw.At(i, 0) - f.At(i, 0)) * (draw.At(j, 0) - f.At(j, 0)) / draws
					}
					product := variance * (v.At(j, 0) - s*lambda)
					if i == j {
						checkClose(t, name+": variance", moment, variance, 5*math.Sqrt(2*product/draws))
					}
					if name == "exact" {
						checkClose(t, name+": covariance", moment, s*want.At(i, j), 5*math.Sqrt(2*product/draws))
					}
				}
			}
			// The draws at equal points differ because of the jitter, at most 4·2⁻⁵²·6, whose square root is
			// 7.3e-8.
			checkClose(t, name+": difference of equal points", list[0].At(4, 0), list[0].At(5, 0), 100*7.3e-8*math.Sqrt(s))
		}
		if _, err := exact.Sample(t.Context(), dev, z, 0, 1); err == nil {
			t.Error("no draws: no error")
		}
	})
}

// TestPosteriorExtremes checks the fits that are refused, models without Std, a scale of 1, weights
// with a sum below 1, equal samples, constant targets and a fit to one sample.
func TestPosteriorExtremes(t *testing.T) {
	x, y := wave(9, 30, 2)
	dev := backendtest.Device(t, "cpu")
	k := kernels.Gaussian{Sigma: 1}
	for name, l := range map[string]learners.NystromRidge{
		"lambda = 0": {Kernel: k, Std: true},
		"falkon":     {Kernel: k, Lambda: 1, Std: true, Solver: solvers.Falkon},
	} {
		if _, err := l.Fit(t.Context(), dev, x, y, learners.Options{}); err == nil {
			t.Errorf("%s: no error", name)
		} else {
			t.Log(err)
		}
	}
	withoutStd, err := learners.NystromRidge{Kernel: k, Lambda: 1, Centers: 10}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := learners.As[learners.Uncertain](withoutStd); ok {
		t.Error("a model without a posterior is Uncertain")
	}
	if _, ok := learners.As[learners.Sampler](withoutStd); ok {
		t.Error("a model without Std is a Sampler")
	}
	if _, err := withoutStd.Variance(t.Context(), dev, x); err == nil {
		t.Error("a model without a posterior has a variance")
	}
	unit, err := learners.NystromRidge{Kernel: k, Lambda: 0.3, Std: true, UnitScale: true}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if s := unit.Scale(); len(s) != 1 || s[0] != 1 {
		t.Errorf("scale %v", s)
	}
	smallWeights := make([]float64, 30)
	for i := range smallWeights {
		smallWeights[i] = 0.5 / 30
	}
	// With an intercept, the effective number of targets is Σw − 1 < 0, so the targets do not determine s².
	lightModel, err := learners.NystromRidge{Kernel: k, Lambda: 0.3, Centers: 10, Std: true}.Fit(t.Context(), dev, x, y, learners.Options{Weights: smallWeights})
	if err != nil {
		t.Fatal(err)
	}
	if s := lightModel.Scale(); len(s) != 1 || s[0] != 1 {
		t.Errorf("the scale for weights with the sum 0.5 is %v", s)
	}
	equalRows, constant := mat.NewDense(3, 2, []float64{1, 2, 1, 2, 1, 2}), mat.NewDense(3, 1, []float64{5, 5, 5})
	for _, targets := range []*mat.Dense{constant, mat.NewDense(3, 1, []float64{4, 5, 6})} {
		m, err := learners.NystromRidge{Kernel: k, Lambda: 0.5, Std: true}.Fit(t.Context(), dev, equalRows, targets, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		v, err := m.Variance(t.Context(), dev, equalRows)
		if err != nil {
			t.Fatal(err)
		}
		// For three equal samples, only b and the noise are uncertain: the variance is s²(λ/3 + λ).
		s := 1.0
		if targets != constant {
			s = 2 / 0.5 / 2
		}
		checkClose(t, "variance of equal samples", v.At(0, 0), s*(0.5/3+0.5), 1e-14)
	}
	oneSample, err := learners.NystromRidge{Kernel: k, Lambda: 0.5, Std: true, NoIntercept: true}.Fit(t.Context(), dev, mat.NewDense(1, 1, []float64{1}), mat.NewDense(1, 1, []float64{3}), learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	v, err := oneSample.Variance(t.Context(), dev, mat.NewDense(1, 1, []float64{1}))
	if err != nil {
		t.Fatal(err)
	}
	checkClose(t, "variance of one sample", v.At(0, 0), 9/1.5*(1-1/1.5+0.5), 1e-13) // s² = y²/(1 + λ)
}

// TestOptimize checks that the searches of nystrom-ridge and fourier-ridge find a point at which no change of a
// parameter by 1 % increases their criterion. With ard they must also find the length scales for a target that
// depends only on the first feature.
func TestOptimize(t *testing.T) {
	const n = 150
	x, _ := wave(3, n, 2)
	y := mat.NewDense(n, 1, nil)
	for i := range n {
		y.Set(i, 0, math.Sin(2*x.At(i, 0))+0.05*math.Cos(40*float64(i)))
	}
	centers := x.Slice(0, 40, 0, 2)
	type model interface {
		learners.Model
		Kernel() kernels.Kernel
		Lambda() float64
	}
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		for name, fit := range map[string]func(k kernels.Kernel, lambda float64, optimize, ard bool) (model, func() float64, error){
			"nystrom-ridge": func(k kernels.Kernel, lambda float64, optimize, ard bool) (model, func() float64, error) {
				m, err := learners.NystromRidge{Kernel: k, Lambda: lambda, Optimize: optimize, ARD: ard, Std: true}.Fit(t.Context(), dev, x, y, learners.Options{Centers: centers})
				if err != nil {
					return nil, nil, err
				}
				return m, m.LikelihoodBound, nil
			},
			"fourier-ridge": func(k kernels.Kernel, lambda float64, optimize, ard bool) (model, func() float64, error) {
				m, err := learners.FourierRidge{Kernel: k, Lambda: lambda, Optimize: optimize, ARD: ard, Features: 60, Std: true}.Fit(t.Context(), dev, x, y, learners.Options{})
				if err != nil {
					return nil, nil, err
				}
				return m, m.LogLikelihood, nil
			},
		} {
			mustFit := func(k kernels.Kernel, lambda float64, optimize, ard bool) (model, float64) {
				m, criterion, err := fit(k, lambda, optimize, ard)
				if err != nil {
					t.Fatal(name, err)
				}
				return m, criterion()
			}
			m, maximum := mustFit(kernels.Gaussian{Sigma: 20}, 10, true, false)
			for _, factor := range []float64{0.99, 1.01} {
				k := m.Kernel().(kernels.Gaussian)
				k.Sigma *= factor
				for _, neighbor := range []struct {
					k      kernels.Kernel
					lambda float64
				}{{k, m.Lambda()}, {m.Kernel(), factor * m.Lambda()}} {
					// The search ends when the criterion changes by less than 1e-10, relatively.
					if _, v := mustFit(neighbor.k, neighbor.lambda, false, false); v > maximum+1e-6 {
						t.Errorf("%s: the criterion at %v, %v is %v, above %v at %v, %v", name, neighbor.k, neighbor.lambda, v, maximum, m.Kernel(), m.Lambda())
					}
				}
			}
			m, _ = mustFit(nil, 1, true, true)
			if sigmas := m.Kernel().(kernels.Gaussian).Sigmas; len(sigmas) != 2 || !(sigmas[1] > 5*sigmas[0]) {
				t.Errorf("%s: the length scales are %v", name, sigmas)
			}
		}
		// For targets without noise the best λ makes the equations singular to working precision.
		exact := mat.NewDense(n, 1, nil)
		for i := range n {
			exact.Set(i, 0, math.Sin(2*x.At(i, 0)))
		}
		nystrom, err := learners.NystromRidge{Lambda: 1, Optimize: true}.Fit(t.Context(), dev, x, exact, learners.Options{Centers: centers})
		if err != nil {
			t.Fatal(err)
		}
		fourier, err := learners.FourierRidge{Lambda: 1, Optimize: true, Features: 60}.Fit(t.Context(), dev, x, exact, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if !(nystrom.Lambda() < 1e-3 && fourier.Lambda() < 1e-3) {
			t.Errorf("lambda is %v and %v", nystrom.Lambda(), fourier.Lambda())
		}
	})
}

// TestNystromOptimizeOfAllRows checks that the search with all samples as centers finds the parameters
// of the exact process.
func TestNystromOptimizeOfAllRows(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := wave(3, 100, 2)
	process, err := learners.GaussianProcess{ARD: true, Lambda: 1}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, centers := range []int{0, 100} {
		m, err := learners.NystromRidge{Optimize: true, ARD: true, Lambda: 1, Centers: centers}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		// The searches end where no derivative exceeds 1e-5·√n.
		checkClose(t, "lambda", m.Lambda(), process.Lambda(), 1e-4*process.Lambda())
		for i, sigma := range process.Kernel().(kernels.Gaussian).Sigmas {
			checkClose(t, "sigma", m.Kernel().(kernels.Gaussian).Sigmas[i], sigma, 1e-4*sigma)
		}
	}
}

// TestNystromCoverage checks the 95 % intervals for draws from the prior process with fewer centers than the kernel
// needs. With the s² that maximizes the likelihood, nearly all targets would be within the intervals.
func TestNystromCoverage(t *testing.T) {
	const n, centers, points, draws, lambda = 300, 60, 100, 50, 0.05
	dev := backendtest.Device(t, "cpu")
	k := kernels.Matern{Nu: 1.5, Sigma: 0.5}
	inputs, _ := wave(7, n+points, 2)
	cov := mat.NewSymDense(n+points, nil)
	for i := range n + points {
		for j := range i + 1 {
			cov.SetSym(i, j, kernels.Eval(k, inputs.RawRowView(i), inputs.RawRowView(j)))
		}
		cov.SetSym(i, i, cov.At(i, i)+lambda)
	}
	var chol mat.Cholesky
	if !chol.Factorize(cov) {
		t.Fatal("the covariance is not positive definite")
	}
	var root mat.TriDense
	chol.LTo(&root)
	rng := rand.New(rand.NewPCG(20261128, 0))
	normals := mat.NewDense(n+points, draws, nil)
	for i := range n + points {
		for j := range draws {
			normals.Set(i, j, rng.NormFloat64())
		}
	}
	var y mat.Dense
	y.Mul(&root, normals)
	x, z := inputs.Slice(0, n, 0, 2), inputs.Slice(n, n+points, 0, 2)
	m, err := learners.NystromRidge{Kernel: k, Lambda: lambda, Centers: centers, NoIntercept: true, Std: true}.Fit(t.Context(), dev, x, y.Slice(0, n, 0, draws), learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	predicted, err := m.Predict(t.Context(), dev, z)
	if err != nil {
		t.Fatal(err)
	}
	variance, err := m.Variance(t.Context(), dev, z)
	if err != nil {
		t.Fatal(err)
	}
	// shares returns the fraction of the targets that are within their 95 % intervals if the variances are
	// multiplied by `factor`, and its standard error over the independent draws.
	shares := func(factor float64) (mean, deviation float64) {
		var list [draws]float64
		for j := range draws {
			for i := range points {
				if math.Abs(y.At(n+i, j)-predicted.At(i, j)) <= 1.959964*math.Sqrt(factor*variance.At(i, j)) {
					list[j] += 1.0 / points
				}
			}
		}
		mean, deviation = stat.MeanStdDev(list[:], nil)
		return mean, deviation / math.Sqrt(draws)
	}
	// larger is the s² that maximizes the likelihood, divided by the s² of the model.
	larger := 1 + (1-float64(centers)/n)*2*(m.LogLikelihood()-m.LikelihoodBound())/(n*draws)
	const limit = (1 - 0.95) / 2 // separates fractions near 95 % from fractions near 100 %
	covered, deviation := shares(1)
	if inflated, _ := shares(larger); !(5*deviation <= limit && inflated-0.95 > limit) {
		t.Fatalf("share %v ± %v, and %v for variances times %v: they are too close", covered, deviation, inflated, larger)
	}
	if t.Logf("share %.4f ± %.4f", covered, deviation); !(math.Abs(covered-0.95) <= limit) {
		t.Errorf("%.1f %% of the targets are within the 95 %% intervals", 100*covered)
	}
}

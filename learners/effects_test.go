package learners_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/kerneltest"
	"github.com/mercer-go/mercer/learners"
)

// These are results of the function krls of the R package KRLS 1.0-0 for testdata/diabetes.csv. Its Gaussian kernel,
// which is C++ code, was replaced by the same function in R:
//
//	t <- read.csv("diabetes.csv"); f <- krls(X=t[,1:10], y=t[,11], lambda=1, sigma=10)
//	f$avgderivatives; f$var.avgderivatives; f$derivatives[c(1,200,442),]; colSums(f$derivatives^2)
//
// The field sex holds the results of fdskrls(f) for column 2, which is 1 or 2: the average of the differences, the
// variance of the average, and the differences of rows 1, 200 and 442.
var krls = struct {
	mean, variance, squares []float64
	rows                    map[int][]float64
	sex                     []float64
}{
	sex:      []float64{-17.175132937683443, 40.377258909087665, -10.0000070477729821, 5.0410649453827148, 1.0279749565203815},
	mean:     []float64{0.092761475187039227, -18.041092091788745, 4.3317013214921127, 0.8232623053233904, -0.060531570776606002, -0.19087461450631482, -0.51929124595425658, 5.174537555358584, 38.658732740190857, 0.21917538017726224},
	variance: []float64{0.027962113375003046, 14.686229344130805, 0.31548479277684216, 0.030286519395447443, 0.0017096007457954629, 0.0040035442410260927, 0.045659586542390392, 7.47025750200602, 25.11025086136431, 0.042955854638105848},
	squares:  []float64{395.5296804201742, 347741.96386723948, 12453.955870277616, 451.69728788416103, 12.881381052063498, 43.804302743298564, 255.71170604186892, 28296.396055100697, 945108.28451006871, 347.29888041488948},
	rows: map[int][]float64{
		1:   {0.37812438754301358, -31.829582069757951, 9.1899017478308789, 2.1302871675520505, 0.10017971541633458, -0.09927153357622702, 0.34909992807185219, 11.698952098688149, 39.635110916772852, 1.1030490318173474},
		200: {0.7989542530350745, 8.2035938353943898, 6.9473416865758635, 0.32365289452759832, -0.31631001227470573, -0.14430893532610375, -0.56432685554662931, 0.71473140935037438, 12.673063758902174, 0.25762625496113395},
		442: {-0.6631056637920163, -18.343766275468123, 0.77001474648422019, -0.047319846833703744, 0.21482447924696357, 0.10588748885230632, 0.55550625924594677, 0.74559763793926681, 17.684674638953389, 0.73742751262101502},
	},
}

// standardized returns the numeric columns of a table, minus their means and divided by their
// standard deviations with the divisor n − 1. It also returns these deviations.
func standardized(t *testing.T, file string) (x *mat.Dense, sd []float64) {
	t.Helper()
	table, err := dataset.Read(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	x = mat.NewDense(table.Rows(), len(table.Names()), nil)
	for j, name := range table.Names() {
		v, err := table.Numbers(name)
		if err != nil {
			t.Fatal(err)
		}
		n, mean, sum := float64(len(v)), 0.0, 0.0
		for _, f := range v {
			mean += f / n
		}
		for _, f := range v {
			sum += (f - mean) * (f - mean)
		}
		sd = append(sd, math.Sqrt(sum/(n-1)))
		for i, f := range v {
			x.Set(i, j, (f-mean)/sd[j])
		}
	}
	return x, sd
}

// TestEffectsAgainstKRLS compares derivatives, averages and their variances with those of the R
// package KRLS, whose kernel exp(−‖x−z‖²/sigma) is the Gaussian with σ² = sigma/2.
func TestEffectsAgainstKRLS(t *testing.T) {
	backendtest.OnDevices(t, func(t *testing.T, dev backend.Device) {
		all, sd := standardized(t, "../testdata/diabetes.csv")
		n, d := all.Dims()
		d--
		x, y := mat.DenseCopyOf(all.Slice(0, n, 0, d)), mat.DenseCopyOf(all.Slice(0, n, d, d+1))
		m, err := learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: math.Sqrt(5)}, Lambda: 1, NoIntercept: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e, err := learners.MarginalEffects(t.Context(), dev, m, x, learners.EffectParams{})
		if err != nil {
			t.Fatal(err)
		}
		for p := range d {
			unit := sd[d] / sd[p]
			equal := func(name string, got, want float64) {
				t.Helper()
				if !(math.Abs(got-want) <= 1e-8*math.Abs(want)) {
					t.Errorf("feature %d: %s is %.12g, KRLS has %.12g", p, name, got, want)
				}
			}
			equal("the average", unit*e.Mean.At(0, p), krls.mean[p])
			equal("the variance", math.Pow(unit*e.StdErr.At(0, p), 2), krls.variance[p])
			sum := 0.0
			for i := range n {
				sum += math.Pow(unit*e.Rows[0].At(i, p), 2)
			}
			equal("the sum of the squares", sum, krls.squares[p])
			for i, row := range krls.rows {
				equal("a derivative", unit*e.Rows[0].At(i-1, p), row[p])
			}
		}
		const sex = 1
		if e, err = learners.MarginalEffects(t.Context(), dev, m, x, learners.EffectParams{Binary: []int{sex}}); err != nil {
			t.Fatal(err)
		}
		got := []float64{sd[d] * e.Mean.At(0, sex), math.Pow(sd[d]*e.StdErr.At(0, sex), 2)}
		for _, i := range []int{1, 200, 442} {
			got = append(got, sd[d]*e.Rows[0].At(i-1, sex))
		}
		for i, want := range krls.sex {
			// The tolerance allows for cancellation in the differences of predictions between 50 and 350.
			if !(math.Abs(got[i]-want) <= 1e-8*max(math.Abs(want), 1)) {
				t.Errorf("number %d of the differences of sex is %.12g, KRLS has %.12g", i+1, got[i], want)
			}
		}
	})
}

// effectsData returns n points with features between 0.1 and 1, and a smooth function of them.
func effectsData(r *rand.Rand, n, d int) (x, y *mat.Dense) {
	x, y = mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		for j := range d {
			x.Set(i, j, 0.1+0.9*r.Float64())
		}
		y.Set(i, 0, math.Sin(3*x.At(i, 0))+x.At(i, 1)*x.At(i, d-1)+0.1*r.NormFloat64())
	}
	return x, y
}

// TestEffectsOfEveryKernel compares the derivatives of kernel ridge regression with finite differences of the sum
// of kernel functions, evaluated by kernels.Eval, at rows that differ from the samples in every feature.
func TestEffectsOfEveryKernel(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const seed, step = 11, 0x1p-10
	r := rand.New(rand.NewPCG(seed, 0))
	x, y := effectsData(r, 24, 3)
	z, _ := effectsData(r, 7, 3)
	tested := 0
	for _, text := range append(kernelExamples(), "gaussian(sigma=[1,2,0.7])", "0.5*gaussian(sigma=1)*linear() + 2*matern52(sigma=1) + 3", "exp(0.2*linear())", "normalize(polynomial(degree=2,c=1))") {
		k, err := kernels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		m, err := learners.KernelRidge{Kernel: k, Lambda: 0.5}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			continue // the kernel is for precomputed values, or is not positive definite
		}
		e, err := learners.MarginalEffects(t.Context(), dev, m, z, learners.EffectParams{})
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		tested++
		parts := learners.PartsOf(m)
		points := parts.Points.(*mat.Dense)
		n, _ := points.Dims()
		for i := range e.Rows[0].RawMatrix().Rows {
			for p := range 3 {
				rounding, terms := 0.0, 0.0
				value := func(h float64) (f float64) {
					v := slices.Clone(z.RawRowView(i))
					v[p] += h
					for l := range n {
						a := parts.Coef.At(l, 0)
						value := kernels.Eval(k, v, points.RawRowView(l))
						f += a * value
						terms = max(terms, math.Abs(a*value))
						rounding = max(rounding, math.Abs(a)*kerneltest.Rounding(k, v, points.RawRowView(l)))
					}
					return f
				}
				cornerDistance := math.Inf(1) // distance from the nearest corner
				for l := range n {
					cornerDistance = min(cornerDistance, math.Abs(z.At(i, p)-points.At(l, p)))
				}
				if h := step; cornerDistance < 4*h && strings.Contains(text, "laplacian") {
					continue
				}
				fine := (8*(value(step)-value(-step)) - (value(2*step) - value(-2*step))) / (12 * step)
				coarse := (8*(value(2*step)-value(-2*step)) - (value(4*step) - value(-4*step))) / (24 * step)
				// The tolerance is the change of the finite difference when the step is doubled, plus the rounding
				// errors of n kernel values and n additions, divided by the step.
				tol := math.Abs(fine-coarse) + float64(n)*(4*rounding+float64(n)*terms*0x1p-52)/step
				if got := e.Rows[0].At(i, p); !(math.Abs(got-fine) <= tol) || tol > 1e-3*(1+math.Abs(fine)) {
					t.Errorf("seed %d: %s: row %d, feature %d: %v, by differences %v, allowed %g", seed, text, i+1, p+1, got, fine, tol)
				}
			}
		}
	}
	if tested < 15 {
		t.Errorf("only %d kernels were tested", tested)
	}
}

func kernelExamples() (list []string) {
	for _, d := range kernels.Catalogue() {
		list = append(list, d.Example)
	}
	return list
}

// TestEffectsOfEveryLearner compares the derivatives of the model of each learner with finite differences of its
// predictions or decision values. Learners whose outputs are votes or averages of neighbors must return an error.
func TestEffectsOfEveryLearner(t *testing.T) {
	dev := backendtest.Device(t, "ref")
	const seed, step, n, d = 12, 0x1p-8, 40, 3
	r := rand.New(rand.NewPCG(seed, 0))
	x, y := effectsData(r, n, d)
	z, _ := effectsData(r, 5, d)
	unsupported := map[string]bool{"kernel-knn": true, "kernel-vote": true, "voted-perceptron": true}
	for _, l := range learners.Catalogue() {
		for _, task := range l.Tasks {
			for _, classes := range []int{2, 3} {
				target := mat.DenseCopyOf(y)
				if task == learners.Classification {
					target.Apply(func(_, _ int, v float64) float64 { return math.Floor(min(max(v, 0), 1.999) / 2 * float64(classes)) }, y)
				} else if classes == 3 {
					continue
				}
				name := l.Name + ", " + string(task)
				values := map[string]string{}
				for _, p := range l.Parameters {
					switch p.Name {
					case "kernel":
						values[p.Name] = "gaussian(sigma=1)"
					case "lambda":
						values[p.Name] = "0.3"
					}
				}
				if l.Name == "ridge-constrained" {
					values["theta"] = "1"
				}
				fit, err := l.Make(task, values)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				m, err := fit(t.Context(), dev, x, target, learners.Options{})
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				e, err := learners.MarginalEffects(t.Context(), dev, m, z, learners.EffectParams{})
				if unsupported[l.Name] || l.Name == "svc" && classes == 3 {
					if !errors.Is(err, learners.ErrNoDerivative) {
						t.Errorf("%s: the error is %v", name, err)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				withErrors := map[string]bool{"kernel-ridge": true, "gaussian-process": true, "bayes-ridge": true, "rvm": true}
				if (e.StdErr != nil) != withErrors[l.Name] {
					t.Errorf("%s: standard errors %v", name, e.StdErr)
				}
				for p := range d {
					predict := func(h float64) *mat.Dense {
						shifted := mat.DenseCopyOf(z)
						for i := range z.RawMatrix().Rows {
							shifted.Set(i, p, shifted.At(i, p)+h)
						}
						f, err := m.Predict(t.Context(), dev, shifted)
						if c, ok := m.(learners.Classifier); ok {
							f, err = c.Decision(t.Context(), dev, shifted)
						}
						if err != nil {
							t.Fatalf("%s: %v", name, err)
						}
						return f
					}
					f, points := [4]*mat.Dense{predict(step), predict(-step), predict(2 * step), predict(-2 * step)}, [2]*mat.Dense{predict(4 * step), predict(-4 * step)}
					parts := learners.PartsOf(m)
					size := 1.0 // upper bound on Σ|α_i| + 1, from which the bound on the rounding errors of f follows
					if parts.Coef != nil {
						size += mat.Sum(absolute(parts.Coef))
					}
					for o, rows := range e.Rows {
						mean := 0.0
						for i := range rows.RawMatrix().Rows {
							fine := (8*(f[0].At(i, o)-f[1].At(i, o)) - (f[2].At(i, o) - f[3].At(i, o))) / (12 * step)
							coarse := (8*(f[2].At(i, o)-f[3].At(i, o)) - (points[0].At(i, o) - points[1].At(i, o))) / (24 * step)
							tol := math.Abs(fine-coarse) + 64*n*size*0x1p-52/step
							if got := rows.At(i, p); !(math.Abs(got-fine) <= tol) {
								t.Errorf("seed %d: %s: output %d, row %d, feature %d: %v, by differences %v, allowed %g", seed, name, o+1, i+1, p+1, got, fine, tol)
							}
							mean += rows.At(i, p) / 5
						}
						if got := e.Mean.At(o, p); !(math.Abs(got-mean) <= 16*0x1p-52*size*10) {
							t.Errorf("%s: the average of feature %d is %v, want %v", name, p+1, got, mean)
						}
					}
				}
			}
		}
	}
}

func absolute(m *mat.Dense) *mat.Dense {
	a := mat.DenseCopyOf(m)
	a.Apply(func(_, _ int, v float64) float64 { return math.Abs(v) }, a)
	return a
}

// TestEffectErrors compares the standard errors with their definition, computed from fits to unit vectors.
func TestEffectErrors(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n, d = 23, 2
	r := rand.New(rand.NewPCG(13, 0))
	x, y := effectsData(r, n, d)
	z, _ := effectsData(r, 6, d)
	weights, binary := make([]float64, n), make([]float64, 6)
	for i := range weights {
		weights[i] = 0.5 + r.Float64()
	}
	weights[3] = 0
	for i := range binary {
		binary[i] = float64(i)
	}
	for _, intercept := range []bool{false, true} {
		for _, w := range [][]float64{nil, weights} {
			for _, text := range []string{"matern32(sigma=1)", "polynomial(degree=2,c=1)", "normalize(polynomial(degree=2,c=1)) + linear()", "laplacian(sigma=1)"} {
				k, err := kernels.Parse(text)
				if err != nil {
					t.Fatal(err)
				}
				units := mat.NewDense(n, n+1, nil)
				for i := range n {
					units.Set(i, 0, y.At(i, 0))
					units.Set(i, i+1, 1)
				}
				m, err := learners.KernelRidge{Kernel: k, Lambda: 0.7, NoIntercept: !intercept}.Fit(t.Context(), dev, x, units, learners.Options{Weights: w})
				if err != nil {
					t.Fatal(err)
				}
				e, err := learners.MarginalEffects(t.Context(), dev, m, z, learners.EffectParams{Options: learners.Options{Weights: binary}})
				if err != nil {
					t.Fatal(err)
				}
				f, err := m.Predict(t.Context(), dev, x)
				if err != nil {
					t.Fatal(err)
				}
				weight := func(i int) float64 {
					if w == nil {
						return 1
					}
					return w[i]
				}
				noise, samples := 0.0, 0.0
				for i := range n {
					noise += weight(i) * math.Pow(y.At(i, 0)-f.At(i, 0), 2)
					if weight(i) > 0 {
						samples++
					}
				}
				for p := range d {
					sum := 0.0
					for i := range n {
						if weight(i) > 0 {
							sum += math.Pow(e.Mean.At(0+i+1, p), 2) / weight(i)
						}
					}
					want := math.Sqrt(noise / samples * sum)
					// The condition number of K + λV⁻¹ is at most n·max k(x, x)·max v/λ < 1000.
					if got := e.StdErr.At(0, p); !(math.Abs(got-want) <= 1000*n*0x1p-50*want) {
						t.Errorf("%s, intercept %t, weights %t: feature %d: %.15g, want %.15g", text, intercept, w != nil, p+1, got, want)
					}
				}
			}
		}
	}
}

// functionals returns the average, over the rows of z, of the derivative of h with respect to feature p, computed
// by finite differences with a step and with twice the step. For a binary feature both are the average difference
// of h.
func functionals(z *mat.Dense, p int, binary bool, h func(x []float64) float64) (fine, coarse float64) {
	n, _ := z.Dims()
	const step = 0x1p-7
	for i := range n {
		value := func(v float64) float64 {
			x := slices.Clone(z.RawRowView(i))
			x[p] = v
			return h(x)
		}
		if v := z.At(i, p); !binary {
			fine += (8*(value(v+step)-value(v-step)) - (value(v+2*step) - value(v-2*step))) / (12 * step) / float64(n)
			coarse += (8*(value(v+2*step)-value(v-2*step)) - (value(v+4*step) - value(v-4*step))) / (24 * step) / float64(n)
			continue
		}
		fine += (value(1) - value(0)) / float64(n)
		coarse = fine
	}
	return fine, coarse
}

// TestEffectDeviations compares the posterior deviations of the averages with their definitions,
// computed by dense matrices and finite differences of kernel values.
func TestEffectDeviations(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const seed, n, d, lambda = 15, 30, 3, 0.2
	r := rand.New(rand.NewPCG(seed, 0))
	x, y := effectsData(r, n, d)
	z, _ := effectsData(r, 6, d)
	for i := range n {
		x.Set(i, 2, float64(i%2))
	}
	for i := range 6 {
		z.Set(i, 2, float64(i%2))
	}
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = 0.5 + r.Float64()
	}
	o := learners.Options{Weights: weights}
	// quadratic returns aᵀB⁻¹a for the vectors a of the finite differences with the fine and the coarse step.
	quadratic := func(b *mat.Dense, a [2][]float64) (fine, coarse float64) {
		var values [2]float64
		for i, v := range a {
			var solution mat.VecDense
			u := mat.NewVecDense(len(v), v)
			if err := solution.SolveVec(b, u); err != nil {
				t.Fatal(err)
			}
			values[i] = mat.Dot(u, &solution)
		}
		return values[0], values[1]
	}
	forEachFunction := func(p int, count int, phi func(x []float64, l int) float64) (a [2][]float64) {
		for l := range count {
			fine, coarse := functionals(z, p, p == 2, func(x []float64) float64 { return phi(x, l) })
			a[0], a[1] = append(a[0], fine), append(a[1], coarse)
		}
		return a
	}
	check := func(name string, m learners.Model, variance func(p int) (fine, coarse float64)) {
		t.Helper()
		e, err := learners.MarginalEffects(t.Context(), dev, m, z, learners.EffectParams{Binary: []int{2}})
		if err != nil {
			t.Fatal(err)
		}
		if e.StdErr == nil {
			t.Fatalf("%s: no standard errors", name)
		}
		for p := range d {
			fine, coarse := variance(p)
			// The tolerance is the change of the finite differences when the step is doubled, plus their rounding
			// errors times a bound n/λ on the condition number.
			tol := 2*math.Abs(fine-coarse) + n/lambda*0x1p-52*0x1p14
			if got := math.Pow(e.StdErr.At(0, p), 2); !(math.Abs(got-fine) <= tol) || tol > 1e-3*max(fine, 1e-3) {
				t.Errorf("seed %d: %s: feature %d: the variance is %v, want %v ± %g", seed, name, p+1, got, fine, tol)
			}
		}
	}
	for _, text := range []string{"gaussian(sigma=0.8)", "matern52(sigma=1) + linear()", "normalize(polynomial(degree=3,c=1))"} {
		k, err := kernels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		prior := func(p int) (fine, coarse float64) {
			fine, _ = functionals(z, p, p == 2, func(v []float64) float64 {
				f, _ := functionals(z, p, p == 2, func(x []float64) float64 { return kernels.Eval(k, x, v) })
				return f
			})
			_, coarse = functionals(z, p, p == 2, func(v []float64) float64 {
				_, c := functionals(z, p, p == 2, func(x []float64) float64 { return kernels.Eval(k, x, v) })
				return c
			})
			return fine, coarse
		}
		gp, err := learners.GaussianProcess{Kernel: k, Lambda: lambda, Fixed: true}.Fit(t.Context(), dev, x, y, o)
		if err != nil {
			t.Fatal(err)
		}
		check("gaussian-process, "+text, gp, func(p int) (fine, coarse float64) {
			fine, coarse = prior(p)
			b := mat.NewDense(n, n, nil)
			b.Apply(func(i, j int, _ float64) float64 {
				v := kernels.Eval(k, x.RawRowView(i), x.RawRowView(j))
				if i == j {
					v += lambda / weights[i]
				}
				return v
			}, b)
			f, c := quadratic(b, forEachFunction(p, n, func(v []float64, l int) float64 { return kernels.Eval(k, v, x.RawRowView(l)) }))
			return gp.Scale()[0] * (fine - f), gp.Scale()[0] * (coarse - c)
		})
		centers := mat.DenseCopyOf(x.Slice(0, 8, 0, d))
		ny, err := learners.NystromRidge{Kernel: k, Lambda: lambda, Std: true}.Fit(t.Context(), dev, x, y, learners.Options{Weights: weights, Centers: centers})
		if err != nil {
			t.Fatal(err)
		}
		check("nystrom-ridge, "+text, ny, func(p int) (fine, coarse float64) {
			phi := func(v []float64, l int) float64 { return kernels.Eval(k, v, centers.RawRowView(l)) }
			s := mat.NewDense(8, 8, nil)
			s.Apply(func(i, j int, _ float64) float64 { return phi(centers.RawRowView(i), j) }, s)
			b := moments(x, weights, 8, phi)
			b.Apply(func(i, j int, v float64) float64 { return v + lambda*s.At(i, j) }, b)
			g := forEachFunction(p, 8, phi)
			fine, coarse = prior(p)
			f, c := quadratic(s, g)
			u, v := quadratic(b, g)
			return ny.Scale()[0] * (fine - f + lambda*u), ny.Scale()[0] * (coarse - c + lambda*v)
		})
	}
	fr, err := learners.FourierRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: lambda, Features: 12, Std: true}.Fit(t.Context(), dev, x, y, o)
	if err != nil {
		t.Fatal(err)
	}
	check("fourier-ridge", fr, func(p int) (fine, coarse float64) {
		omega := fr.Frequencies()
		pairs, _ := omega.Dims()
		phi := func(v []float64, l int) float64 {
			dot := 0.0
			for q, w := range omega.RawRowView(l % pairs) {
				dot += w * v[q]
			}
			sin, cos := math.Sincos(dot)
			if l < pairs {
				return cos / math.Sqrt(float64(pairs))
			}
			return sin / math.Sqrt(float64(pairs))
		}
		b := moments(x, weights, 2*pairs, phi)
		for i := range 2 * pairs {
			b.Set(i, i, b.At(i, i)+lambda)
		}
		fine, coarse = quadratic(b, forEachFunction(p, 2*pairs, phi))
		return fr.Scale()[0] * lambda * fine, fr.Scale()[0] * lambda * coarse
	})
	// For a linear model, twice the variance of coefficient p is V(e) + V(−e) − 2V(0), where V(x)
	// is the variance of a new target at x, and e is the unit vector p.
	linear := map[string]func() (learners.Model, error){
		"ridge": func() (learners.Model, error) {
			return learners.Ridge{Lambda: lambda, Std: true}.Fit(t.Context(), dev, x, y, o)
		},
		"bayes-ridge": func() (learners.Model, error) { return learners.BayesRidge{}.Fit(t.Context(), dev, x, y, o) },
		"rvm":         func() (learners.Model, error) { return learners.RVM{Features: true}.Fit(t.Context(), dev, x, y, o) },
	}
	for name, fit := range linear {
		m, err := fit()
		if err != nil {
			t.Fatal(err)
		}
		check(name, m, func(p int) (fine, coarse float64) {
			points := mat.NewDense(3, d, nil)
			points.Set(0, p, 1)
			points.Set(1, p, -1)
			v, err := m.(learners.Uncertain).Variance(t.Context(), dev, points)
			if err != nil {
				t.Fatal(err)
			}
			fine = (v.At(0, 0) + v.At(1, 0) - 2*v.At(2, 0)) / 2
			return fine, fine
		})
	}
	// The derivatives of 40,000 rows have too many covariances, n²(d + 10) > 2·10¹⁰.
	m, err := learners.GaussianProcess{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: lambda, Fixed: true}.Fit(t.Context(), dev, x, y, o)
	if err != nil {
		t.Fatal(err)
	}
	manyRows, _ := effectsData(r, 40_000, d)
	for _, c := range []struct {
		x        mat.Matrix
		noStdErr bool
	}{{manyRows, false}, {z, true}, {z, false}} {
		e, err := learners.MarginalEffects(t.Context(), dev, m, c.x, learners.EffectParams{NoStdErr: c.noStdErr})
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := c.x.Dims(); (e.StdErr == nil) != (c.noStdErr || n == 40_000) {
			t.Errorf("%d rows, NoStdErr %v: standard errors %v", n, c.noStdErr, e.StdErr)
		}
	}
	// The process of a Laplacian kernel has no derivatives.
	gp, err := learners.GaussianProcess{Kernel: kernels.Laplacian{Sigma: 1}, Lambda: lambda, Fixed: true}.Fit(t.Context(), dev, mat.DenseCopyOf(x.Slice(0, n, 0, 2)), y, o)
	if err != nil {
		t.Fatal(err)
	}
	if e, err := learners.MarginalEffects(t.Context(), dev, gp, z.Slice(0, 6, 0, 2), learners.EffectParams{}); err != nil || e.StdErr != nil {
		t.Errorf("laplacian: standard errors %v, %v", e, err)
	}
	for _, c := range []struct {
		binary []int
		want   string
	}{
		{[]int{3}, "binary: 3 is listed twice, or is not the index of a feature from 0 to 2"},
		{[]int{2, 2}, "binary: 2 is listed twice, or is not the index of a feature from 0 to 2"},
		{[]int{0}, "binary: the feature with index 0 has 6 values in x: a binary feature has 2"},
	} {
		if _, err := learners.MarginalEffects(t.Context(), dev, fr, z, learners.EffectParams{Binary: c.binary}); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%v: %v", c.binary, err)
		}
	}
}

// moments returns Σ_i w_i (φ(x_i) − φ̄)(φ(x_i) − φ̄)ᵀ for the functions φ and their weighted mean φ̄.
func moments(x *mat.Dense, weights []float64, count int, phi func(x []float64, l int) float64) *mat.Dense {
	n, _ := x.Dims()
	f, total := mat.NewDense(n, count, nil), 0.0
	mean := make([]float64, count)
	for i, w := range weights {
		total += w
		for l := range count {
			f.Set(i, l, phi(x.RawRowView(i), l))
			mean[l] += w * f.At(i, l)
		}
	}
	f.Apply(func(i, l int, v float64) float64 {
		return math.Sqrt(weights[i]) * (v - mean[l]/total)
	}, f)
	b := &mat.Dense{}
	b.Mul(f.T(), f)
	return b
}

func TestEffectsRefuse(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := effectsData(rand.New(rand.NewPCG(14, 0)), 20, 2)
	sharedCoordinate := mat.NewDense(2, 2, []float64{0.42, 0.43, x.At(7, 0), 0.44})
	zero := mat.NewDense(1, 2, nil)
	for _, c := range []struct {
		kernel string
		x      *mat.Dense
		want   string
	}{
		{"exponential(sigma=1)", x, "x: row 1: exponential(sigma=1) has no derivative there; usually the row"},
		{"2*exponential(sigma=1) + linear()", x, "x: row 1: 2*exponential(sigma=1) + linear() has no derivative there; usually the row"},
		{"exponential(sigma=1)", sharedCoordinate, ""},
		{"laplacian(sigma=1)", sharedCoordinate, "x: row 2: laplacian(sigma=1) has no derivative there; usually the row"},
		{"matern32(sigma=1)", x, ""},
		{"normalize(linear())", zero, "x: row 1: normalize(linear()) has no derivative there; usually the row"},
		{"gaussian(sigma=1)", mat.NewDense(1, 3, nil), "x has 3 columns, but the model was fitted to 2 columns"},
	} {
		k, err := kernels.Parse(c.kernel)
		if err != nil {
			t.Fatal(err)
		}
		m, err := learners.KernelRidge{Kernel: k, Lambda: 1}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = learners.MarginalEffects(t.Context(), dev, m, c.x, learners.EffectParams{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), "learners: kernel-ridge: effects: "+c.want)) {
			t.Errorf("%s: %v", c.kernel, err)
		}
	}
	for _, m := range []learners.Model{nil, (*learners.KernelRidgeModel)(nil), &learners.KernelRidgeModel{}, &learners.ClassifyModel{}, &learners.SVCModel{}, &learners.FourierRidgeModel{}} {
		if _, err := learners.MarginalEffects(t.Context(), dev, m, x, learners.EffectParams{}); err == nil {
			t.Errorf("%T: no error", m)
		}
	}
	m, err := learners.KernelRidge{Kernel: kernels.Gaussian{Sigma: 1}, Lambda: 1}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := learners.MarginalEffects(t.Context(), dev, m, x, learners.EffectParams{Options: learners.Options{Weights: []float64{1}}}); err == nil || !strings.HasSuffix(err.Error(), "1 weight for 20 rows") {
		t.Errorf("one weight: %v", err)
	}
	if _, err := learners.MarginalEffects(t.Context(), nil, m, x, learners.EffectParams{}); err == nil {
		t.Error("no device: no error")
	}
}

// TestEffectsOfBinaryFeatures checks kernels that have no derivative where a feature of a row equals that of a
// sample. The model has effects only if all such features are binary.
func TestEffectsOfBinaryFeatures(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n, d = 40, 3
	r := rand.New(rand.NewPCG(16, 0))
	for _, k := range []kernels.Kernel{kernels.Laplacian{Sigma: 1}, kernels.Matern{Nu: 0.5, Sigma: 1}, kernels.ChiSquared{Gamma: 1}} {
		x, y := effectsData(r, n, d)
		for i := range n {
			for p := range d {
				x.Set(i, p, float64(r.IntN(2)))
			}
		}
		weights := make([]float64, n)
		for i := range weights {
			weights[i] = r.Float64()
		}
		p := learners.EffectParams{Binary: []int{2, 0, 1}, Options: learners.Options{Weights: weights}}
		for _, fit := range []func() (learners.Model, error){
			func() (learners.Model, error) {
				return learners.KernelRidge{Kernel: k, Lambda: 0.3}.Fit(t.Context(), dev, x, y, learners.Options{})
			},
			func() (learners.Model, error) {
				return learners.GaussianProcess{Kernel: k, Lambda: 0.3, Fixed: true}.Fit(t.Context(), dev, x, y, learners.Options{})
			},
		} {
			m, err := fit()
			if err != nil {
				t.Fatal(err)
			}
			e, err := learners.MarginalEffects(t.Context(), dev, m, x, p)
			if err != nil {
				t.Fatalf("%v: %v", k, err)
			}
			if e.StdErr == nil {
				t.Errorf("%v: no standard errors", k)
			}
			for q := range d {
				var f [2]*mat.Dense
				for level := range f {
					replaced := mat.DenseCopyOf(x)
					for i := range n {
						replaced.Set(i, q, float64(level))
					}
					if f[level], err = m.Predict(t.Context(), dev, replaced); err != nil {
						t.Fatal(err)
					}
				}
				mean, total := 0.0, 0.0
				for i, w := range weights {
					want := f[1].At(i, 0) - f[0].At(i, 0)
					mean, total = mean+w*want, total+w
					// The bound is for two sums of n terms α_i k(x_i, x), where Σ|α_i| ≤ √n‖y‖/λ < 200.
					if got := e.Rows[0].At(i, q); !(math.Abs(got-want) <= 4*n*0x1p-53*200) {
						t.Errorf("%v: row %d, feature %d: %v, want %v", k, i+1, q+1, got, want)
					}
				}
				if got := e.Mean.At(0, q); !(math.Abs(got-mean/total) <= 4*n*0x1p-53*200) {
					t.Errorf("%v: feature %d: the average is %v, want %v", k, q+1, got, mean/total)
				}
			}
			// Feature 1 is not binary in this call, and its values coincide with those of the points.
			p := learners.EffectParams{Binary: []int{0, 2}}
			if _, err := learners.MarginalEffects(t.Context(), dev, m, x, p); !errors.Is(err, learners.ErrNoDerivative) {
				t.Errorf("%v: the error is %v", k, err)
			}
			replaced := mat.DenseCopyOf(x)
			for i := range n {
				replaced.Set(i, 1, 0.2+0.5*r.Float64())
			}
			e, err = learners.MarginalEffects(t.Context(), dev, m, replaced, p)
			if err != nil {
				t.Errorf("%v: %v", k, err)
				continue
			}
			withoutFeature, err := learners.MarginalEffects(t.Context(), dev, m, replaced, learners.EffectParams{Binary: []int{2}})
			if _, corners := k.(kernels.Matern); !corners { // these kernels have no derivative where feature 0 coincides
				if !errors.Is(err, learners.ErrNoDerivative) {
					t.Errorf("%v: the error is %v", k, err)
				}
			} else if err != nil || withoutFeature.Rows[0].At(3, 1) != e.Rows[0].At(3, 1) {
				t.Errorf("%v: %v", k, err)
			}
		}
	}
}

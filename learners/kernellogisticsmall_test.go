package learners_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"gonum.org/v1/gonum/mat"
)

// overlapping returns n points of three normal features, and their classes, which depend on the sum of the
// features plus noise.
func overlapping(n, classes int, noise float64, seed uint64) (x, y *mat.Dense) {
	r := rand.New(rand.NewPCG(seed, 0))
	x, y = mat.NewDense(n, 3, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		sum := 0.0
		for j := range 3 {
			v := r.NormFloat64()
			x.Set(i, j, v)
			sum += v
		}
		sum += noise * r.NormFloat64()
		y.Set(i, 0, min(max(math.Floor((sum/4+0.5)*float64(classes)), 0), float64(classes-1)))
	}
	return x, y
}

// gaps returns the indicators of the classes y minus the probabilities for the log odds f, without cancellation.
func gaps(f, y *mat.Dense) *mat.Dense {
	n, columns := f.Dims()
	g := mat.NewDense(n, columns, nil)
	for i := range n {
		class := int(y.At(i, 0))
		for c := range columns {
			if columns == 1 {
				sign := float64(2*class - 1)
				g.Set(i, 0, sign/(1+math.Exp(sign*f.At(i, 0))))
				continue
			}
			// 1 − p of the sample's own class is the sum of the probabilities of the other classes.
			sum := 0.0
			for j := range columns {
				if j != c {
					sum += math.Exp(f.At(i, j) - f.At(i, c))
				}
			}
			if v := 1 / (1 + sum); c != class {
				g.Set(i, c, -v)
			} else {
				g.Set(i, c, sum*v)
			}
		}
	}
	return g
}

// TestKernelLogisticSmallLambda checks that the decision values f of fits for small λ satisfy the conditions of a
// minimum, for separable and for overlapping classes.
func TestKernelLogisticSmallLambda(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		const n, seed = 60, 5
		t.Log("seed", seed)
		lambdas := []float64{1e-8, 1e-12, 1e-14, 1e-16}
		list := []kernels.Kernel{kernels.Linear{}, kernels.Gaussian{Sigma: 2}, kernels.Gaussian{Sigma: 0.3}, kernels.Polynomial{Degree: 2, C: 1}}
		if !strings.HasPrefix(dev.Info().Device, "cpu/avx") || testing.Short() {
			lambdas, list = lambdas[3:], list[:2] // on the device ref a fit takes a noticeable fraction of a second
		}
		for _, classes := range []int{2, 3} {
			for _, noise := range []float64{0, 1.5} {
				x, y := overlapping(n, classes, noise, seed)
				for _, k := range list {
					last := 0.0
					for _, lambda := range lambdas {
						name := fmt.Sprintf("%d classes, noise %v, %v, lambda %g", classes, noise, k, lambda)
						m, err := learners.KernelLogistic{Kernel: k, Lambda: lambda}.Fit(t.Context(), dev, x, y, learners.Options{})
						if err != nil {
							t.Errorf("%s: %v", name, err)
							continue
						}
						f, err := m.Decision(t.Context(), dev, x)
						if err != nil {
							t.Fatal(err)
						}
						stationary(t, name, m, k, x, f, gaps(f, y), lambda)
						// A smaller penalty gives a smaller minimum of the loss.
						loss := fact(t, m, "loss").(float64)
						if last > 0 && loss > last*(1+1e-6) {
							t.Errorf("%s: the loss is %v, %v of a larger penalty", name, loss, last)
						}
						last = loss
						separable := noise == 0 || classes == 2 && k.String() == "gaussian(sigma=0.3)"
						if separable && !mat.Equal(labels(t, dev, m, x), y) {
							t.Errorf("%s: separable samples are not separated", name)
						}
					}
				}
			}
		}
	})
}

// stationary reports an error unless Σ_i (g_i − λα_i)k(x_i, ·) and Σ g_i are near 0, relative to the size of their
// terms. g is the result of gaps for the model.
func stationary(t *testing.T, name string, m *learners.KernelLogisticModel, k kernels.Kernel, x, f, g *mat.Dense, lambda float64) {
	t.Helper()
	n, columns := f.Dims()
	b := m.Intercept()
	for c := range columns {
		size, sum := 0.0, 0.0
		for i := range n {
			size += math.Abs(g.At(i, c)) * math.Sqrt(kernels.Diag(k, x.RawRowView(i)))
			sum += g.At(i, c)
		}
		// The tolerance is 1e-3, because Fit may test the gradient in other coordinates: those of a factor of K.
		checkClose(t, name+": Σg", sum, 0, 1e-3*size)
		for i := range n {
			gradient := -lambda * (f.At(i, c) - b[c])
			for j := range n {
				gradient += g.At(j, c) * kernels.Eval(k, x.RawRowView(j), x.RawRowView(i))
			}
			checkClose(t, name, gradient, 0, 1e-3*size*math.Sqrt(kernels.Diag(k, x.RawRowView(i))))
		}
	}
}

// TestKernelLogisticSmallLambdaOfRealData checks, for several data sets and kernels, that the training loss of a
// fit does not exceed the loss of the fit with a larger λ.
func TestKernelLogisticSmallLambdaOfRealData(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: some seconds of fits")
	}
	dev := backendtest.Device(t, "cpu")
	for _, data := range []struct {
		path string
		raw  bool
	}{
		{filepath.Join("..", "testdata", "diabetes.csv"), false}, {filepath.Join("..", "testdata", "diabetes.csv"), true},
		{filepath.Join("..", "testdata", "breast_cancer.csv"), false},
		{"iris.csv", false},
	} {
		t.Run(fmt.Sprintf("%s raw=%t", filepath.Base(data.path), data.raw), func(t *testing.T) {
			path := data.path
			if filepath.Base(path) == path {
				path = required.Data(t, path)
			}
			table, err := dataset.ReadCSV(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			numbers := filepath.Base(path) == "diabetes.csv"
			x, y, _ := learnertest.Encode(t, table, dataset.Rules{Targets: []string{"target"}, Standardize: !data.raw, Labels: !numbers})
			if numbers {
				aboveMedian(y)
			}
			_, d := x.Dims()
			for _, k := range []kernels.Kernel{kernels.Linear{}, kernels.Gaussian{Sigma: float64(d)}, kernels.Polynomial{Degree: 3, C: 1}} {
				if linear := k.String() == "linear()"; data.raw && !linear || strings.HasPrefix(filepath.Base(path), "breast") && k.String() == "polynomial(degree=3,c=1)" {
					continue
				}
				last := 0.0
				for _, lambda := range []float64{1e-8, 1e-12, 1e-16} {
					m, err := learners.KernelLogistic{Kernel: k, Lambda: lambda}.Fit(t.Context(), dev, x, y, learners.Options{})
					if err != nil {
						t.Errorf("%v, lambda %g: %v", k, lambda, err)
						continue
					}
					loss := fact(t, m, "loss").(float64)
					if last > 0 && loss > last*(1+1e-6) {
						t.Errorf("%v, lambda %g: the loss is %v, %v of a larger penalty", k, lambda, loss, last)
					}
					last = loss
					t.Logf("%v, lambda %g: %v", k, lambda, m.Facts())
				}
			}
		})
	}
}

// aboveMedian replaces each number in y by its class: 1 above the median, otherwise 0.
func aboveMedian(y *mat.Dense) {
	n, _ := y.Dims()
	v := mat.Col(nil, 0, y)
	slices.Sort(v)
	y.Apply(func(_, _ int, a float64) float64 {
		if a > v[n/2] {
			return 1
		}
		return 0
	}, y)
}

// toMinimum returns a bound on the difference at the samples between f and the minimizer of Σ log loss + λ‖w‖²/2. It is
// twice Newton's step from f (Bach 2010, Self-concordant analysis for logistic regression), plus the rounding errors of
// f. size is the largest element of the gradient, divided by the sum of the absolute values of its terms.
func toMinimum(t *testing.T, x, y, f *mat.Dense, lambda float64) (bound, size float64) {
	t.Helper()
	n, d := x.Dims()
	_, columns := f.Dims()
	z := mat.NewDense(n, d+1, nil) // the matrix [X 1]
	for i := range n {
		copy(z.RawRowView(i), x.RawRowView(i))
		z.Set(i, d, 1)
	}
	var w, linear mat.Dense
	if err := w.Solve(z, f); err != nil {
		t.Fatal(err)
	}
	linear.Mul(z, &w)
	rounding := 0.0
	for i := range n {
		for c := range columns {
			rounding = max(rounding, math.Abs(linear.At(i, c)-f.At(i, c)))
		}
	}
	g := gaps(&linear, y) // [y = c] − p
	gradient, h := mat.NewDense((d+1)*columns, 1, nil), mat.NewDense((d+1)*columns, (d+1)*columns, nil)
	for c := range columns {
		for j := range d + 1 {
			component, terms := 0.0, 0.0
			for i := range n {
				component += g.At(i, c) * z.At(i, j)
				terms += math.Abs(g.At(i, c) * z.At(i, j))
			}
			if j < d {
				component -= lambda * w.At(j, c)
			}
			gradient.Set(c*(d+1)+j, 0, component)
			size = max(size, math.Abs(component)/terms)
			for e := range columns {
				for k := range d + 1 {
					sum := 0.0
					for i := range n {
						p, q := probability(g, y, i, c), probability(g, y, i, e)
						if c == e {
							sum += p * (1 - p) * z.At(i, j) * z.At(i, k)
						} else {
							sum -= p * q * z.At(i, j) * z.At(i, k)
						}
					}
					if c == e && j == k && j < d {
						sum += lambda
					}
					h.Set(c*(d+1)+j, e*(d+1)+k, sum)
				}
			}
		}
	}
	// Adding one vector to the weights of all classes does not change the probabilities. The step of smallest norm
	// contains no such vector.
	var svd mat.SVD
	if !svd.Factorize(h, mat.SVDThin) {
		t.Fatal("no singular values")
	}
	rank := (d + 1) * columns
	if columns > 1 {
		rank -= d + 1
	}
	var step mat.Dense
	svd.SolveTo(&step, gradient, rank)
	for i := range n {
		for c := range columns {
			change := 0.0
			for j := range d + 1 {
				change += z.At(i, j) * step.At(c*(d+1)+j, 0)
			}
			bound = max(bound, math.Abs(change))
		}
	}
	if bound > 0.25 {
		t.Fatalf("Newton's step moves the log odds by %v: far from the minimum", bound)
	}
	return 2*bound + rounding, size
}

// probability returns the probability p of class c at sample i, computed from the result g of gaps.
func probability(g, y *mat.Dense, i, c int) float64 {
	_, columns := g.Dims()
	v := math.Abs(g.At(i, c))
	if int(y.At(i, 0)) == c || columns == 1 {
		return 1 - v
	}
	return v
}

// TestKernelLogisticAgainstScikitLearn compares fits of the linear kernel with those of scikit-learn's
// LogisticRegression, for the two halves of the diabetes data and for three overlapping classes.
func TestKernelLogisticAgainstScikitLearn(t *testing.T) {
	x2, labels2 := table(t, true)
	aboveMedian(labels2)
	x3, labels3 := overlapping(100, 3, 1.5, 11)
	t.Log("seed 11")
	for _, data := range []struct {
		name   string
		x, y   *mat.Dense
		solver string
	}{{"diabetes above its median", x2, labels2, "newton-cholesky"}, {"three classes", x3, labels3, "newton-cg"}} {
		lambdas := []float64{1e-4, 1e-12, 1e-16}
		var peer struct{ F [][][]float64 }
		scikit(t, map[string]any{"x": rowsOf(data.x), "y": mat.Col(nil, 0, data.y), "lambdas": lambdas, "solver": data.solver}, `
from sklearn.linear_model import LogisticRegression
out["f"] = []
for l in a["lambdas"]:
    m = LogisticRegression(C=1/l, solver=a["solver"], tol=1e-12, max_iter=10000).fit(a["x"], a["y"])
    out["f"].append(m.decision_function(a["x"]).reshape(len(a["x"]), -1).tolist())
`, &peer)
		for index, lambda := range lambdas {
			want := peer.F[index]
			eachFastDevice(t, func(t *testing.T, dev backend.Device) {
				m, err := learners.KernelLogistic{Kernel: kernels.Linear{}, Lambda: lambda}.Fit(t.Context(), dev, data.x, data.y, learners.Options{})
				if err != nil {
					t.Fatal(err)
				}
				f, err := m.Decision(t.Context(), dev, data.x)
				if err != nil {
					t.Fatal(err)
				}
				n, columns := f.Dims()
				bound, size := toMinimum(t, data.x, data.y, f, lambda)
				checkClose(t, "gradient", size, 0, 1e-6)
				peerBound, _ := toMinimum(t, data.x, data.y, mat.NewDense(n, columns, slices.Concat(want...)), lambda)
				maxError := 0.0
				for i := range n {
					// For three classes the intercepts are unique only up to a common constant.
					shift := 0.0
					for c := range columns {
						if columns > 1 {
							shift += (f.At(i, c) - want[i][c]) / float64(columns)
						}
					}
					for c := range columns {
						maxError = max(maxError, checkClose(t, "f", f.At(i, c)-shift, want[i][c], bound+peerBound))
					}
				}
				t.Logf("%s, lambda %g: differences up to %.2g; %v", data.name, lambda, maxError, m.Facts())
			})
		}
	}
}

// TestKernelLogisticRounding checks fits with the linear kernel to raw features between 1e-3 and 1e3. If rounding
// errors prevent the requested accuracy, the fit must report this in one line.
func TestKernelLogisticRounding(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const want = "learners: kernel-logistic: rounding of the kernel's values leaves a relative residual of "
	data, err := dataset.ReadCSV(filepath.Join("..", "testdata", "breast_cancer.csv"), nil)
	if err != nil {
		t.Fatal(err)
	}
	x, y, _ := learnertest.Encode(t, data, dataset.Rules{Targets: []string{"target"}, Labels: true})
	_, err = learners.KernelLogistic{Kernel: kernels.Linear{}, Lambda: 1e-15, Tol: 1e-10}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "raise lambda or scale the features so that none is much larger than others") || strings.Contains(err.Error(), "\n") {
		t.Errorf("got %v", err)
	}
}

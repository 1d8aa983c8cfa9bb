package learners_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/learnertest"
	"github.com/mercer-go/mercer/solvers"
	"github.com/mercer-go/mercer/solvers/solvertest"
	"gonum.org/v1/gonum/mat"
)

// fitter converts the method Fit of a learner to a learners.Fitter, whose result is nil after an error.
func fitter[M learners.Model](fit func(context.Context, backend.Device, mat.Matrix, mat.Matrix, learners.Options) (M, error)) learners.Fitter {
	return func(ctx context.Context, dev backend.Device, x, y mat.Matrix, o learners.Options) (learners.Model, error) {
		m, err := fit(ctx, dev, x, y, o)
		if err != nil {
			return nil, err
		}
		return m, nil
	}
}

func ridgeTerms(model learners.Model, x []float64, j int) (float64, int) {
	m := model.(*learners.RidgeModel)
	sum, coef := math.Abs(m.Intercept()[j]), m.Coef()
	for p, v := range x {
		sum += math.Abs(v * coef.At(p, j))
	}
	return sum, len(x)
}

func kernelTerms(model learners.Model, x []float64, j int) (float64, int) {
	m := model.(*learners.KernelRidgeModel)
	h := m.State().Arrays["centers"]
	sum, alpha := math.Abs(m.Intercept()[j]), m.Alpha()
	for i := range h.Rows {
		sum += math.Abs(alpha.At(i, j) * kernels.Eval(m.Kernel(), h.Row(i), x))
	}
	return sum, h.Rows
}

func TestRidge(t *testing.T) {
	for name, l := range map[string]learners.Ridge{
		"default": {},
		"primal":  {Lambda: 1, Method: solvers.Primal},
		"dual":    {Lambda: 1, Method: solvers.Dual},
		"origin":  {Lambda: 1, NoIntercept: true},
	} {
		t.Run(name, func(t *testing.T) {
			learnertest.Run(t, learnertest.Suite{
				Learner:   "ridge",
				Fit:       fitter(l.Fit),
				Unfitted:  []learners.Model{&learners.RidgeModel{}},
				Terms:     ridgeTerms,
				Condition: 1000, // for λ = 1 the condition number is about ‖X‖² ≈ 90, and for λ = 0 it is smaller
			})
		})
	}
}

func TestKernelRidge(t *testing.T) {
	for name, l := range map[string]learners.KernelRidge{
		"gaussian":  {Kernel: kernels.Gaussian{Sigma: 2}, Lambda: 0.1, NoIntercept: true},
		"intercept": {Kernel: kernels.Matern{Nu: 1.5, Sigma: 3}, Lambda: 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			learnertest.Run(t, learnertest.Suite{
				Learner:   "kernel-ridge",
				Fit:       fitter(l.Fit),
				Unfitted:  []learners.Model{&learners.KernelRidgeModel{}},
				Terms:     kernelTerms,
				Condition: 1000, // a bound on ‖W^½KW^½‖/λ with ‖K‖ ≤ 30 and weights up to 2
			})
		})
	}
}

// TestDefaultKernel checks that the default sigma is half the median distance between different
// rows of weight > 0.
func TestDefaultKernel(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, test := range []struct {
			x, weights []float64
			want       float64
		}{
			{[]float64{0, 1, 3}, nil, 2},                       // distances 1, 2, 3
			{[]float64{0, 1, 3, 3}, nil, 2},                    // distances 1, 2, 2, 3, 3, and 0 for two equal rows
			{[]float64{0, 4}, nil, 4},                          // distance 4
			{[]float64{0, 1, 3, 7}, nil, 3.5},                  // distances 1, 2, 3, 4, 6, 7
			{[]float64{0, 1, 3, 99}, []float64{1, 2, 3, 0}, 2}, // distances 1, 2, 3; the last row has weight 0
		} {
			n := len(test.x)
			m, err := learners.KernelRidge{Lambda: 1, NoIntercept: true}.Fit(t.Context(), dev, mat.NewVecDense(n, test.x), mat.NewVecDense(n, make([]float64, n)), learners.Options{Weights: test.weights})
			if err != nil {
				t.Fatal(err)
			}
			g, ok := m.Kernel().(kernels.Gaussian)
			if !ok {
				t.Fatalf("the kernel is %v", m.Kernel())
			}
			checkClose(t, "sigma", g.Sigma, test.want/2, 4*0x1p-52*test.want)
		}
		for _, x := range [][]float64{{1}, {2, 2, 2}} {
			v := mat.NewVecDense(len(x), x)
			_, err := learners.KernelRidge{Lambda: 1, NoIntercept: true}.Fit(t.Context(), dev, v, v, learners.Options{})
			if err == nil || !strings.Contains(err.Error(), "learners: kernel-ridge: no length scale can be chosen") {
				t.Errorf("rows %v: %v", x, err)
			}
		}
	})
}

// TestScaleKernel checks on an example computed by hand that γ = 1/(2σ²) equals the gamma="scale" of
// scikit-learn's SVC, 1/(n_features·X.var()).
func TestScaleKernel(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		y := mat.NewVecDense(3, []float64{0, 1, 1})
		fits := map[string]learners.Fitter{
			"svc": fitter(learners.SVC{}.Fit), "svr": fitter(learners.SVR{NoStandardize: true}.Fit), "one-class-svm": fitter(learners.OneClassSVM{}.Fit),
		}
		for name, fit := range fits {
			for _, unit := range []float64{1, 1e-145, 1e150} {
				x := mat.NewDense(3, 2, []float64{0, 2 * unit, 0, 4 * unit, 99 * unit, 99 * unit})
				o := learners.Options{Weights: []float64{1, 1, 0}}
				if name == "svc" {
					y.SetVec(0, 1)
					y.SetVec(1, 0)
				}
				m, err := fit(t.Context(), dev, x, y, o)
				if err != nil {
					t.Errorf("%s, %g: %v", name, unit, err)
					continue
				}
				want := unit * math.Sqrt(11./4)
				checkClose(t, name+": sigma", m.(interface{ Kernel() kernels.Kernel }).Kernel().(kernels.Gaussian).Sigma, want, 16*0x1p-52*want)
			}
			_, err := fit(t.Context(), dev, mat.NewDense(3, 2, []float64{7, 7, 7, 7, 7, 7}), y, learners.Options{})
			if err == nil || !strings.Contains(err.Error(), "all entries of x are equal: give a kernel") {
				t.Errorf("%s of equal entries: %v", name, err)
			}
		}
	})
}

// TestSeed checks that for many rows the seed determines the rows from which the median distance is
// computed, and that the median depends little on the seed.
func TestSeed(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const n = 1200
	x, y := mat.NewDense(n, 2, nil), mat.NewDense(n, 1, nil)
	r := rand.New(rand.NewPCG(1, 0))
	t.Log("seed 1")
	for i := range n {
		x.SetRow(i, []float64{r.Float64(), r.Float64()})
	}
	sigma := func(seed uint64) float64 {
		m, err := learners.KernelRidge{Lambda: 1, Seed: seed, NoIntercept: true}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return m.Kernel().(kernels.Gaussian).Sigma
	}
	a, repeat, b := sigma(1), sigma(1), sigma(2)
	if a != repeat || a == b {
		t.Errorf("seed 1 gives %v and %v, seed 2 gives %v", a, repeat, b)
	}
	// The median distance in the unit square is 0.512. Its standard error is below 0.25/√500 = 0.011.
	for _, s := range []float64{a, b} {
		checkClose(t, "twice sigma", 2*s, 0.512, 5*0.011)
	}
}

// eachDevice runs f on every usable device except those named in except. With -short it runs f only on the best device
// and the device "ref".
func eachDevice(t *testing.T, f func(t *testing.T, dev backend.Device), except ...string) {
	solvertest.EachDevice(t, func(t *testing.T, open solvertest.Open) { f(t, open(t, backend.Config{})) }, except...)
}

// eachFastDevice is like eachDevice, but with -short it omits the device "ref".
func eachFastDevice(t *testing.T, f func(t *testing.T, dev backend.Device)) {
	if testing.Short() {
		eachDevice(t, f, "ref")
	} else {
		eachDevice(t, f)
	}
}

// checkClose reports an error unless |got − want| ≤ bound. It returns |got − want|.
func checkClose(t *testing.T, name string, got, want, bound float64) float64 {
	t.Helper()
	d := math.Abs(got - want)
	if !(d <= bound) {
		t.Errorf("%s: got %v, want %v: difference %.3g, allowed %.3g", name, got, want, d, bound)
	}
	return d
}

// TestClosedForms checks examples that can be solved by hand.
func TestClosedForms(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		const bound = 16 * 0x1p-52 // a few rounding errors of numbers near 1

		// For centered samples, XᵀX = Xᵀy = 2, so w = 2/(2+λ). Adding 7 to y and 100 to x changes only b.
		for _, method := range []solvers.Method{solvers.Primal, solvers.Dual} {
			m, err := learners.Ridge{Lambda: 2, Method: method}.Fit(t.Context(), dev,
				mat.NewDense(3, 1, []float64{99, 100, 101}), mat.NewDense(3, 1, []float64{6, 7, 8}), learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			checkClose(t, "w", m.Coef().At(0, 0), 0.5, bound)
			checkClose(t, "b", m.Intercept()[0], 7-0.5*100, 100*bound)
		}

		// φ(x) = (1, x, x², x³) at −1, 0, 1 gives K = [4 1 0; 1 1 1; 0 1 4], and (K + I)α = (1, 2, 3) is solved by
		// α = (1/20, 3/4, 9/20). At x = 2 the kernel's values are 1−2+4−8 = −5, 1 and 15.
		k, err := kernels.Parse("1 + linear() + polynomial(degree=2,c=0) + polynomial(degree=3,c=0)")
		if err != nil {
			t.Fatal(err)
		}
		m, err := learners.KernelRidge{Kernel: k, Lambda: 1, NoIntercept: true}.Fit(t.Context(), dev,
			mat.NewDense(3, 1, []float64{-1, 0, 1}), mat.NewDense(3, 1, []float64{1, 2, 3}), learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []float64{0.05, 0.75, 0.45} {
			checkClose(t, "alpha", m.Alpha().At(i, 0), want, bound)
		}
		f, err := m.Predict(t.Context(), dev, mat.NewDense(1, 1, []float64{2}))
		if err != nil {
			t.Fatal(err)
		}
		checkClose(t, "f(2)", f.At(0, 0), -5*0.05+0.75+15*0.45, 15*bound)
	})
}

// TestPrimalIsDual checks that ridge with the method primal, ridge with the method dual, and kernel
// ridge with a linear kernel give the same function, also for features far from the origin.
func TestPrimalIsDual(t *testing.T) {
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		x, y, weights := diabetes(t)
		n, d := x.Dims()
		for _, offset := range []float64{0, 1e6} {
			z := mat.NewDense(n, d, nil)
			z.Apply(func(_, _ int, v float64) float64 { return v + offset }, x)
			var models []*learners.RidgeModel
			for _, method := range []solvers.Method{solvers.Primal, solvers.Dual} {
				m, err := learners.Ridge{Lambda: 1, Method: method}.Fit(t.Context(), dev, z, y, learners.Options{Weights: weights})
				if err != nil {
					t.Fatal(err)
				}
				models = append(models, m)
			}
			// The condition number of XᵀWX + λI with λ = 1 is at most 3·n·d + 1.
			bound := 3 * float64(n*d) * float64(n+d) * 0x1p-52 * mat.Norm(models[0].Coef(), 2)
			maxError := 0.0
			for p := range d {
				maxError = max(maxError, checkClose(t, "coef", models[1].Coef().At(p, 0), models[0].Coef().At(p, 0), bound))
			}
			t.Logf("offset %g: weights differ by at most %.2g of %.3g; residuals %.2g, %.2g", offset, maxError, mat.Norm(models[0].Coef(), 2),
				models[0].Solved().Residual, models[1].Solved().Residual)
			if offset != 0 {
				continue
			}
			m, err := learners.KernelRidge{Kernel: kernels.Linear{}, Lambda: 1}.Fit(t.Context(), dev, x, y, learners.Options{Weights: weights})
			if err != nil {
				t.Fatal(err)
			}
			f, err := m.Predict(t.Context(), dev, x)
			if err != nil {
				t.Fatal(err)
			}
			g, err := models[0].Predict(t.Context(), dev, x)
			if err != nil {
				t.Fatal(err)
			}
			for i := range n {
				sum, _ := kernelTerms(m, x.RawRowView(i), 0)
				checkClose(t, "kernel ridge", f.At(i, 0), g.At(i, 0), mat.Norm(x.RowView(i), 2)*bound+float64(n)*0x1p-52*sum)
			}
		}
	})
}

// TestManyRows checks that predictions in several blocks neither lose nor repeat a row, and that the
// device holds one block at a time.
func TestManyRows(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	m, err := learners.Ridge{}.Fit(t.Context(), dev, mat.NewVecDense(3, []float64{0, 1, 2}), mat.NewVecDense(3, []float64{1, 3, 5}), learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const block = 1 << 22 / 2 // the rows of a block for one feature and one output
	const n = 2*block + 5
	x := mat.NewVecDense(n, nil)
	for i := range n {
		x.SetVec(i, float64(i))
	}
	f, err := m.Predict(t.Context(), dev, x)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		want := 2*float64(i) + 1
		if !(math.Abs(f.At(i, 0)-want) <= 16*0x1p-52*want) {
			t.Fatalf("row %d: got %v, want %v", i, f.At(i, 0), want)
		}
	}
	if inUse, peak := dev.InUse(); inUse != 0 || peak > 8*block+1<<20 {
		t.Errorf("%d bytes are left, there were up to %d", inUse, peak)
	}
}

// TestLinearWithoutPenalty checks the error of KernelRidge for λ = 0 if the centered K of a linear kernel is singular,
// and that Ridge can fit the samples, as the error advises.
func TestLinearWithoutPenalty(t *testing.T) {
	eachDevice(t, func(t *testing.T, dev backend.Device) {
		x, y := mat.NewDense(3, 1, []float64{1, 2, 4}), mat.NewDense(3, 1, []float64{3, 5, 9})
		_, err := learners.KernelRidge{Kernel: kernels.Linear{}}.Fit(t.Context(), dev, x, y, learners.Options{})
		if err == nil || !strings.HasSuffix(err.Error(), "singular at 0; raise it, or use the learner ridge") {
			t.Errorf("got %v", err)
		}
		if _, err := (learners.Ridge{}).Fit(t.Context(), dev, x, y, learners.Options{}); err != nil {
			t.Error(err)
		}
	})
}

package learners_test

import (
	"context"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// nuData returns n samples of two features with the classes 0, 1 and 2, a real target, and weights.
func nuData(n int) (x, classes, y *mat.Dense, weights []float64) {
	r := rand.New(rand.NewPCG(17, 0))
	x, classes, y = mat.NewDense(n, 2, nil), mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
	for i := range n {
		a, b := r.NormFloat64(), r.NormFloat64()
		x.SetRow(i, []float64{a, b})
		switch v := a + 0.5*b*b + 0.5*r.NormFloat64(); {
		case v > 1:
			classes.Set(i, 0, 2)
		case v > 0:
			classes.Set(i, 0, 1)
		}
		y.Set(i, 0, math.Sin(2*a)+0.3*b+0.2*r.NormFloat64())
		weights = append(weights, 0.5+r.Float64())
	}
	return x, classes, y, weights
}

// TestNuAgainstScikitLearn compares ν-support vector machines with scikit-learn's NuSVC and NuSVR, with and
// without weights.
func TestNuAgainstScikitLearn(t *testing.T) {
	const nu = 0.4
	x, classes, y, weights := nuData(150)
	binary := mat.NewDense(150, 1, nil)
	for i := range 150 {
		binary.Set(i, 0, min(classes.At(i, 0), 1))
	}
	type machines struct {
		Two, Regression []float64
		Pairs           [][]float64
		Support         []int
		Vectors         int
	}
	var want struct{ Plain, Weighted machines }
	scikit(t, map[string]any{"x": rowsOf(x), "two": mat.Col(nil, 0, binary), "three": mat.Col(nil, 0, classes), "y": mat.Col(nil, 0, y), "w": weights, "nu": nu}, `
from sklearn.svm import NuSVC, NuSVR
for name, w in (("plain", None), ("weighted", a["w"])):
    two = NuSVC(nu=a["nu"], gamma=0.5, tol=1e-8).fit(a["x"], a["two"], w)
    three = NuSVC(nu=a["nu"], gamma=0.5, tol=1e-8, decision_function_shape="ovo").fit(a["x"], a["three"], w)
    svr = NuSVR(nu=a["nu"], C=2, gamma=0.5, tol=1e-8).fit(a["x"], a["y"], w)
    out[name] = {"two": two.decision_function(a["x"]).tolist(), "pairs": three.decision_function(a["x"]).tolist(), "support": three.n_support_.tolist(),
        "regression": svr.predict(a["x"]).tolist(), "vectors": len(svr.support_)}
`, &want)
	k := kernels.Gaussian{Sigma: 1} // gamma = 0.5
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		ctx := context.Background()
		for _, c := range []struct {
			want    machines
			weights []float64
		}{{want.Plain, nil}, {want.Weighted, weights}} {
			o := learners.Options{Weights: c.weights}
			// Both programs end at violations of 1e-8 and divide the decision values by ρ (Schölkopf et al. 2000).
			l := learners.SVC{Kernel: k, Nu: nu, Tol: 1e-8}
			m, err := l.Fit(ctx, dev, x, binary, o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.Decision(ctx, dev, x)
			if err != nil {
				t.Fatal(err)
			}
			for i, v := range c.want.Two {
				checkClose(t, "decision value", got.At(i, 0), v, 1e-5)
			}
			threeClasses, err := l.Fit(ctx, dev, x, classes, o)
			if err != nil {
				t.Fatal(err)
			}
			if got, err = threeClasses.PairwiseDecision(ctx, dev, x); err != nil {
				t.Fatal(err)
			}
			for i, row := range c.want.Pairs {
				for j, v := range row {
					checkClose(t, "decision value of a pair", -got.At(i, j), v, 1e-5) // scikit-learn's decision values are positive for the first class
				}
			}
			if _, counts := threeClasses.Support(); counts[0] != c.want.Support[0] || counts[1] != c.want.Support[1] || counts[2] != c.want.Support[2] {
				t.Errorf("the numbers of support vectors are %v, scikit-learn's %v", counts, c.want.Support)
			}
			r, err := learners.SVR{Kernel: k, C: 2, Nu: nu, Tol: 1e-8, NoStandardize: true}.Fit(ctx, dev, x, y, o)
			if err != nil {
				t.Fatal(err)
			}
			if got, err = r.Predict(ctx, dev, x); err != nil {
				t.Fatal(err)
			}
			for i, v := range c.want.Regression {
				checkClose(t, "prediction", got.At(i, 0), v, 1e-5)
			}
			if n, _ := r.Support().Dims(); n != c.want.Vectors {
				t.Errorf("svr has %d support vectors, scikit-learn %d", n, c.want.Vectors)
			}
		}
	})
}

// TestNuIsEquivalent checks that a fit with the C or the ε that a ν formulation has found gives the same machine,
// and that the fraction of the samples with an error is at most ν.
func TestNuIsEquivalent(t *testing.T) {
	x, classes, y, weights := nuData(200)
	binary := mat.NewDense(200, 1, nil)
	for i := range 200 {
		binary.Set(i, 0, min(classes.At(i, 0), 1))
	}
	o := learners.Options{Weights: weights}
	total := 0.0
	for _, w := range weights {
		total += w
	}
	fact := func(m interface{ Facts() []learners.Fact }, name string) float64 {
		for _, f := range m.Facts() {
			if f.Name == name {
				return f.Value.(float64)
			}
		}
		t.Fatalf("there is no fact %q: %v", name, m.Facts())
		return 0
	}
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		ctx := context.Background()
		for _, nu := range []float64{0.35, 0.6} {
			k := kernels.Gaussian{Sigma: 1}
			nuModel, err := learners.SVC{Kernel: k, Nu: nu, Tol: 1e-7}.Fit(ctx, dev, x, binary, o)
			if err != nil {
				t.Fatal(err)
			}
			cModel, err := learners.SVC{Kernel: k, C: fact(nuModel, "C"), Tol: 1e-7}.Fit(ctx, dev, x, binary, o)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := nuModel.Decision(ctx, dev, x)
			b, _ := cModel.Decision(ctx, dev, x)
			beyond, scale := 0.0, fact(nuModel, "C")
			for i, w := range weights {
				// A ν-support vector machine divides the violations of 1e-7 by ρ = 1/C.
				checkClose(t, "decision value", a.At(i, 0), b.At(i, 0), 1e-5*scale)
				if (2*binary.At(i, 0)-1)*a.At(i, 0) < 1-1e-5*scale {
					beyond += w / total
				}
			}
			checkClose(t, "objective", fact(nuModel, "objective"), fact(cModel, "objective"), 1e-6*scale*fact(cModel, "objective"))
			if beyond > nu {
				t.Errorf("nu %v: a share of %v is beyond its margin", nu, beyond)
			}
			r, err := learners.SVR{Kernel: k, Nu: nu, Tol: 1e-7}.Fit(ctx, dev, x, y, o)
			if err != nil {
				t.Fatal(err)
			}
			epsilon := fact(r, "epsilon")
			epsilonModel, err := learners.SVR{Kernel: k, Epsilon: epsilon / fact(r, "target deviation"), Tol: 1e-7}.Fit(ctx, dev, x, y, o)
			if err != nil {
				t.Fatal(err)
			}
			a, _ = r.Predict(ctx, dev, x)
			b, _ = epsilonModel.Predict(ctx, dev, x)
			outsideWeight := 0.0
			for i, w := range weights {
				checkClose(t, "prediction", a.At(i, 0), b.At(i, 0), 1e-5)
				if math.Abs(a.At(i, 0)-y.At(i, 0)) > epsilon+1e-5 {
					outsideWeight += w / total
				}
			}
			if outsideWeight > nu {
				t.Errorf("nu %v: a share of %v has an error above ε", nu, outsideWeight)
			}
		}
	})
}

// TestNuRefuses checks the errors about ν.
func TestNuRefuses(t *testing.T) {
	x, classes, _, _ := nuData(60)
	rare := mat.NewDense(60, 1, nil)
	for i := range 6 {
		rare.Set(i, 0, 1)
	}
	eachFastDevice(t, func(t *testing.T, dev backend.Device) {
		for _, c := range []struct {
			l    learners.SVC
			y    *mat.Dense
			want string
		}{
			{learners.SVC{Nu: 0.3}, rare, `svc: nu is 0.3, but the classes "0" and "1" allow at most 0.2, twice the share of the smaller class: lower nu, or weight the classes equally`},
			{learners.SVC{Nu: 1.5}, classes, "svc: nu must be a number > 0 and ≤ 1, got 1.5"},
			{learners.SVC{Nu: 0.1, C: 3}, classes, "svc: nu: works only without C, because nu determines C"},
			{learners.SVC{Nu: 0.1, Lambda: 3}, classes, "svc: lambda works only without nu"},
			{learners.SVC{Nu: 0.2, Kernel: kernels.Constant{Value: 1}}, rare, "svc: the margin is 0: the classes have equal samples, or nu is too large: lower nu"},
		} {
			if _, err := c.l.Fit(context.Background(), dev, x, c.y, learners.Options{}); err == nil || !strings.HasSuffix(err.Error(), c.want) {
				t.Errorf("%+v: got %v, want %s", c.l, err, c.want)
			}
		}
	})
}

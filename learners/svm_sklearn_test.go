package learners_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// TestLetters checks that svc classifies 97 % of 4,000 letters correctly, and that the accuracy, the objective and
// the number of support vectors agree with those of scikit-learn's SVC.
func TestLetters(t *testing.T) {
	x, names := shared(t, "letter.csv", 16000)
	y, want := mat.NewDense(20000, 1, nil), make([]float64, 20000)
	for i, name := range names {
		want[i] = float64(name[0] - 'A')
		y.Set(i, 0, want[i])
	}
	var peer struct {
		Seconds, Objective, Accuracy float64
		Support                      int
		Steps                        float64
	}
	const c, sigma = 10, 2
	train, test := x.Slice(0, 16000, 0, 16).(*mat.Dense), x.Slice(16000, 20000, 0, 16).(*mat.Dense)
	scikit(t, map[string]any{"x": rowsOf(x), "y": want, "C": c, "sigma": sigma}, `
from sklearn.svm import SVC
from sklearn.metrics.pairwise import rbf_kernel
X, y, n = a["x"], a["y"], 16000
g = 1 / (2 * a["sigma"]**2)
start = time.perf_counter()
m = SVC(C=a["C"], gamma=g).fit(X[:n], y[:n])
best = time.perf_counter() - start
total, k = 0.0, len(m.classes_)
ends = np.cumsum(m.n_support_); starts = ends - m.n_support_
for p in range(k):
    for q in range(p + 1, k):
        rows = np.r_[starts[p]:ends[p], starts[q]:ends[q]]
        w = np.r_[m.dual_coef_[q - 1, starts[p]:ends[p]], m.dual_coef_[p, starts[q]:ends[q]]]
        rows, w = rows[w != 0], w[w != 0]
        total += abs(w).sum() - w @ rbf_kernel(m.support_vectors_[rows], gamma=g) @ w / 2
out.update(seconds=best, objective=total, accuracy=m.score(X[n:], y[n:]), support=int(m.n_support_.sum()), steps=float(m.n_iter_.sum()))
`, &peer)
	dev := backendtest.Device(t, "cpu")
	start := time.Now()
	m, err := learners.SVC{Kernel: kernels.Gaussian{Sigma: sigma}, C: c}.Fit(t.Context(), dev, train, y.Slice(0, 16000, 0, 1), learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	seconds := time.Since(start).Seconds()
	start = time.Now()
	f, err := m.Predict(t.Context(), dev, test)
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for i := range 4000 {
		if f.At(i, 0) == want[16000+i] {
			right++
		}
	}
	accuracy := float64(right) / 4000
	t.Logf("accuracy %v, scikit-learn %v; fit %.2f s, scikit-learn %.2f s; predict %.2f s; %v; scikit-learn %+v",
		accuracy, peer.Accuracy, seconds, peer.Seconds, time.Since(start).Seconds(), m.Facts(), peer)
	if accuracy < 0.97 {
		t.Errorf("accuracy %v", accuracy)
	}
	objective := fact(t, m, "objective").(float64)
	checkClose(t, "objective", objective, peer.Objective, 1e-3*math.Abs(peer.Objective))
	checkClose(t, "support vectors", float64(fact(t, m, "support vectors").(int)), float64(peer.Support), 0.01*float64(peer.Support))
	// The tolerance allows for ten of the 4000 letters near a decision boundary.
	checkClose(t, "accuracy", accuracy, peer.Accuracy, 10./4000)
}

// TestSVMAgainstScikitLearn compares the objectives and the decision values of svc, svr and
// one-class-svm with those of scikit-learn.
func TestSVMAgainstScikitLearn(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	x, y := table(t, true)
	n, _ := x.Dims()
	tests := []struct {
		kernel kernels.Kernel
		args   string
		c      float64
	}{
		{kernels.Gaussian{Sigma: 2}, "kernel='rbf', gamma=1/8", 1},
		{kernels.Gaussian{Sigma: 2}, "kernel='rbf', gamma=1/8", 100},
		{kernels.Linear{}, "kernel='linear'", 0.01},
		{kernels.Polynomial{Degree: 3, C: 1}, "kernel='poly', degree=3, gamma=1, coef0=1", 1e-4},
	}
	var cases strings.Builder
	for _, test := range tests {
		fmt.Fprintf(&cases, "dict(C=%v, %s),", test.c, test.args)
	}
	type machine struct {
		F         []float64
		Objective float64
		Support   int
	}
	var peer struct {
		Cases []struct{ Class, Regress, Novel machine }
	}
	scikit(t, map[string]any{"x": rowsOf(x), "y": mat.Col(nil, 0, y)}, `
from sklearn.svm import SVC, SVR, OneClassSVM
from sklearn.metrics.pairwise import pairwise_kernels
X, y = a["x"], a["y"]
out["cases"] = []
for args in [`+cases.String()+`]:
    def result(m, f, linear):
        c = np.zeros(len(X)); c[m.support_] = m.dual_coef_[0]
        return dict(f=f.tolist(), objective=float(linear(c) - c @ K @ c / 2), support=len(m.support_))
    C, name, case = args.pop("C"), args.pop("kernel"), {}
    K = pairwise_kernels(X, metric=name, **args)
    c, s = y > 140, y / 50
    m = SVC(C=C, tol=1e-6, kernel=name, **args).fit(X, c)
    case["class"] = result(m, m.decision_function(X), lambda c: abs(c).sum())
    m = SVR(C=C, epsilon=0.2, tol=1e-6, kernel=name, **args).fit(X, s)
    case["regress"] = result(m, m.predict(X), lambda c: c @ s - 0.2 * abs(c).sum())
    if name == "linear": # the optimum is 0, and scikit-learn does not get there
        name, K = "rbf", pairwise_kernels(X, metric="rbf", gamma=1/8)
        args = dict(gamma=1/8)
    m = OneClassSVM(nu=0.2, tol=1e-6, kernel=name, **args).fit(X)
    case["novel"] = result(m, m.decision_function(X), lambda c: 0)
    out["cases"].append(case)
`, &peer)
	for i, test := range tests {
		want := peer.Cases[i]
		class, target := mat.NewDense(n, 1, nil), mat.NewDense(n, 1, nil)
		for i := range n {
			if y.At(i, 0) > 140 {
				class.Set(i, 0, 1)
			}
			target.Set(i, 0, y.At(i, 0)/50)
		}
		const tol = 1e-6
		m, err := learners.SVC{Kernel: test.kernel, C: test.c, Tol: tol}.Fit(t.Context(), dev, x, class, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := m.Decision(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		r, err := learners.SVR{Kernel: test.kernel, C: test.c, Epsilon: 0.2, Tol: tol, NoStandardize: true}.Fit(t.Context(), dev, x, target, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		g, err := r.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		novel := test.kernel
		if _, linear := novel.(kernels.Linear); linear {
			novel = kernels.Gaussian{Sigma: 2}
		}
		o, err := learners.OneClassSVM{Kernel: novel, Nu: 0.2, Tol: tol}.Fit(t.Context(), dev, x, nil, learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := o.Predict(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			name  string
			model learners.Model
			f     *mat.Dense
			want  machine
		}{
			{"svc", m, f, want.Class},
			{"svr", r, g, want.Regress},
			{"one-class-svm", o, h, want.Novel},
		} {
			value := c.want.Objective
			got := fact(t, c.model, "objective").(float64)
			// The tolerance allows for violations of tol for n variables up to C, and for scikit-learn's float32
			// values of K.
			checkClose(t, c.name+": objective", got, value, tol*float64(n)*max(test.c, 1)+0x1p-23*math.Abs(value))
			// An α may be 0 in one solution and slightly positive in the other.
			checkClose(t, c.name+": support vectors", float64(fact(t, c.model, "support vectors").(int)), float64(c.want.Support), 0.02*float64(n))
			maxError, size := 0.0, 0.0
			for i, v := range c.want.F {
				maxError, size = max(maxError, math.Abs(c.f.At(i, 0)-v)), max(size, math.Abs(v))
			}
			// The error of a decision value is of the order of the square root of the relative difference tol of
			// the objectives.
			if maxError > math.Sqrt(tol)*size {
				t.Errorf("%s: %v: decision values differ by up to %.3g of %.3g", c.name, test.kernel, maxError, size)
			}
			t.Logf("%s, %v, C %v: objective %.10g, scikit-learn %.10g; values differ by %.2g of %.2g; %v",
				c.name, test.kernel, test.c, got, value, maxError, size, c.model.(learners.Describer).Facts())
		}
	}
}

// TestScaleKernelAgainstScikitLearn checks that fits without a given kernel agree with
// scikit-learn's defaults kernel="rbf" and gamma="scale".
func TestScaleKernelAgainstScikitLearn(t *testing.T) {
	x, y := table(t, true)
	x.Scale(3, x)
	classes := mat.DenseCopyOf(y)
	aboveMedian(classes)
	var peer struct {
		Gamma                 float64
		Class, Regress, Novel []float64
	}
	scikit(t, map[string]any{"x": rowsOf(x), "y": mat.Col(nil, 0, y), "c": mat.Col(nil, 0, classes)}, `
from sklearn.svm import SVC, SVR, OneClassSVM
X, y = a["x"], a["y"]
c = SVC(tol=1e-9).fit(X, a["c"])
out.update(gamma=c._gamma, novel=OneClassSVM(tol=1e-9).fit(X).decision_function(X),
    **{"class": c.decision_function(X), "regress": SVR(tol=1e-9).fit(X, y).predict(X)})
`, &peer)
	dev := backendtest.Device(t, "cpu")
	const tol = 1e-9
	svc, err := learners.SVC{Tol: tol}.Fit(t.Context(), dev, x, classes, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	svr, err := learners.SVR{Tol: tol, Epsilon: 0.1, NoStandardize: true}.Fit(t.Context(), dev, x, y, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	m, err := learners.OneClassSVM{Tol: tol}.Fit(t.Context(), dev, x, nil, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	sigma := svc.Kernel().(kernels.Gaussian).Sigma
	checkClose(t, "gamma", 1/(2*sigma*sigma), peer.Gamma, float64(len(peer.Novel))*0x1p-52*peer.Gamma)
	for _, c := range []struct {
		name string
		f    func(context.Context, backend.Device, mat.Matrix) (*mat.Dense, error)
		want []float64
	}{{"svc", svc.Decision, peer.Class}, {"svr", svr.Predict, peer.Regress}, {"one-class-svm", m.Predict, peer.Novel}} {
		f, err := c.f(t.Context(), dev, x)
		if err != nil {
			t.Fatal(err)
		}
		// Both programs stop at violations of 1e-9; the objective is flat near the minimum.
		scale := 1.0
		for _, v := range c.want {
			scale = max(scale, math.Abs(v))
		}
		for i, v := range c.want {
			checkClose(t, c.name, f.At(i, 0), v, tol*svmCondition*scale)
		}
	}
}

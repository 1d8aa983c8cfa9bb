package learners_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

// TestDefaultsAgainstScikitLearn: svr, svc and kernel-vote with the defaults of the
// catalogue on held-out halves of public data. None has an error above that of the mean
// or the majority by more than two standard errors; svr and svc are no worse than
// scikit-learn's SVR and SVC by more than that on two thirds of their sets.
func TestDefaultsAgainstScikitLearn(t *testing.T) {
	dev, err := backend.Open("cpu", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	const seed, most = 3, 1000
	t.Log("seed", seed)
	worse, compared := 0, 0
	for _, data := range []struct {
		name, svm string
		task      learners.Task
	}{
		{"diabetes.csv", "svr", learners.Regression}, {"airfoil.csv", "svr", learners.Regression}, {"power_plant.csv", "svr", learners.Regression},
		{"breast_cancer.csv", "svc", learners.Classification}, {"wine.csv", "svc", learners.Classification}, {"iris.csv", "svc", learners.Classification},
	} {
		all, texts := shared(t, data.name, 100)
		perm := rand.New(rand.NewPCG(seed, 0)).Perm(len(texts))
		perm = perm[:min(len(perm), most)]
		_, d := all.Dims()
		n := len(perm)
		train := n / 2
		x, y := mat.NewDense(n, d, nil), mat.NewDense(n, 1, nil)
		names := slices.Compact(slices.Sorted(slices.Values(texts)))
		for r, i := range perm {
			x.SetRow(r, all.RawRowView(i))
			v := float64(slices.Index(names, texts[i]))
			if data.task == learners.Regression {
				if v, err = strconv.ParseFloat(texts[i], 64); err != nil {
					t.Fatal(err)
				}
			}
			y.Set(r, 0, v)
		}
		standardize(x, train)
		var peer struct{ SVM, Base []float64 }
		scikit(t, map[string]any{"x": rowsOf(x), "y": mat.Col(nil, 0, y), "train": train, "classes": data.svm == "svc"}, `
from sklearn.svm import SVC, SVR
from sklearn.dummy import DummyClassifier, DummyRegressor
X, y, n = a["x"], a["y"], a["train"]
svm, base = (SVC(), DummyClassifier()) if a["classes"] else (SVR(), DummyRegressor())
out.update(SVM=svm.fit(X[:n], y[:n]).predict(X[n:]), Base=base.fit(X[:n], y[:n]).predict(X[n:]))
`, &peer)
		// excess is the mean of the losses of f less those of g, and its standard error.
		excess := func(f, g []float64) (mean, se float64) {
			m := float64(n - train)
			loss := func(f float64, i int) float64 {
				e := f - y.At(train+i, 0)
				if data.task == learners.Classification && e != 0 {
					return 1
				}
				return e * e
			}
			square := 0.0
			for i := range f {
				e := loss(f[i], i) - loss(g[i], i)
				mean, square = mean+e/m, square+e*e/m
			}
			return mean, math.Sqrt(max(square-mean*mean, 0) / m)
		}
		for _, name := range []string{data.svm, "kernel-vote"} {
			l, err := learners.Find(name)
			if err != nil {
				t.Fatal(err)
			}
			fit, err := l.Make(data.task, nil)
			if err != nil {
				t.Fatal(err)
			}
			m, err := fit(t.Context(), dev, x.Slice(0, train, 0, d), y.Slice(0, train, 0, 1), learners.Options{})
			if err != nil {
				t.Fatal(err)
			}
			p, err := m.Predict(t.Context(), dev, x.Slice(train, n, 0, d))
			if err != nil {
				t.Fatal(err)
			}
			f := mat.Col(nil, 0, p)
			mean, se := excess(f, peer.Base)
			t.Logf("%s, %s: loss less that of the mean or majority %.4g ± %.2g", data.name, name, mean, se)
			if mean > 2*se {
				t.Errorf("%s: %s is worse than the mean or the majority", data.name, name)
			}
			if name == data.svm {
				mean, se := excess(f, peer.SVM)
				t.Logf("%s, %s: loss less that of scikit-learn %.4g ± %.2g", data.name, name, mean, se)
				compared++
				if mean > 2*se {
					worse++
				}
			}
		}
	}
	if 3*worse > compared {
		t.Errorf("worse than scikit-learn on %d of %d sets", worse, compared)
	}
}

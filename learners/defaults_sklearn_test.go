package learners_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/mat"
)

var writeScores = flag.Bool("write-scores", false, "write the scores of TestDefaultsAgainstScikitLearn into docs/learners.md")

// defaultsSets are the public data of the comparison of defaults.
var defaultsSets = map[learners.Task][]string{
	learners.Regression:     {"diabetes.csv", "airfoil.csv", "power_plant.csv", "california_housing.csv", "kin40k.csv.gz", "protein.csv.gz"},
	learners.Classification: {"iris.csv", "wine.csv", "breast_cancer.csv", "ionosphere.csv", "digits.csv", "letter.csv"},
}

// defaultsPeer is scikit-learn's estimator for a learner, "" where there is none.
type defaultsPeer struct{ learner, peer string }

var defaultsPeers = map[learners.Task][]defaultsPeer{
	learners.Regression: {
		{"least-squares", "LinearRegression()"}, {"ridge", "Ridge()"}, {"bayes-ridge", "BayesianRidge()"},
		{"lasso", "Lasso()"}, {"l0", "OrthogonalMatchingPursuit()"}, {"kernel-ridge", "KernelRidge()"},
		{"gaussian-process", "GaussianProcessRegressor()"}, {"nystrom-ridge", "make_pipeline(Nystroem(), Ridge())"},
		{"fourier-ridge", "make_pipeline(RBFSampler(), Ridge())"}, {"rvm", "ARDRegression()"}, {"svr", "SVR()"},
		{"kernel-knn", "KNeighborsRegressor()"}, {"kernel-vote", ""},
	},
	learners.Classification: {
		{"ridge", "RidgeClassifier()"}, {"logistic", "LogisticRegression()"}, {"perceptron", "Perceptron()"},
		{"averaged-perceptron", `SGDClassifier(loss="perceptron", average=True)`}, {"voted-perceptron", ""},
		{"kernel-perceptron", ""}, {"kernel-ridge", ""}, {"nystrom-ridge", "make_pipeline(Nystroem(), RidgeClassifier())"},
		{"fourier-ridge", "make_pipeline(RBFSampler(), RidgeClassifier())"},
		{"kernel-logistic", "make_pipeline(Nystroem(), LogisticRegression())"}, {"rvc", "GaussianProcessClassifier()"},
		{"svc", "SVC()"}, {"kernel-knn", "KNeighborsClassifier()"}, {"kernel-vote", ""},
	},
}

// TestDefaultsAgainstScikitLearn: learners with the defaults of the catalogue and
// scikit-learn's with its own, on the same standardized features of one half of public
// data, scored on the other half; at most 1000 rows of a set. The standard error is that
// of the mean of paired differences of losses, the squared error or 1 for a wrong class.
// No learner is above the mean or the largest class of the training half by more than two
// standard errors, and each is no more than two above its peer on two thirds of the sets.
// A difference below a millionth of the loss, where both solve one problem, is rounding and
// their tolerances. The scores are in docs/learners.md, which -args -write-scores writes;
// without it each of Mercer's there is within two of its own standard errors.
func TestDefaultsAgainstScikitLearn(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const seed, most = 3, 1000
	t.Log("seed", seed)
	const page, begin, end = "../docs/learners.md", "<!-- scores: written by TestDefaultsAgainstScikitLearn -->\n", "<!-- end of scores -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	old, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatalf("%s has no place for the scores", page)
	}
	var table strings.Builder
	for _, task := range []learners.Task{learners.Regression, learners.Classification} {
		sets, peers := defaultsSets[task], defaultsPeers[task]
		worse, compared, cells := map[string]int{}, map[string]int{}, map[string][]string{}
		for _, name := range sets {
			x, y := defaultsData(t, name, task, seed, most)
			n, d := x.Dims()
			train := n / 2
			standardize(x, train)
			var code strings.Builder
			base := "DummyRegressor()"
			if task == learners.Classification {
				base = "DummyClassifier()"
			}
			fmt.Fprintf(&code, "%s", `
from sklearn.linear_model import *
from sklearn.kernel_ridge import KernelRidge
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.gaussian_process import GaussianProcessRegressor, GaussianProcessClassifier
from sklearn.neighbors import KNeighborsRegressor, KNeighborsClassifier
from sklearn.svm import SVC, SVR
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import make_pipeline
X, y, n = a["x"], a["y"], a["train"]
def run(name, e):
	np.random.seed(3)
	out[name] = e.fit(X[:n], y[:n]).predict(X[n:])
`)
			fmt.Fprintf(&code, "run('', %s)\n", base)
			for _, p := range peers {
				if p.peer != "" {
					fmt.Fprintf(&code, "run(%q, %s)\n", p.learner, p.peer)
				}
			}
			predictions := map[string][]float64{}
			scikit(t, map[string]any{"x": rowsOf(x), "y": mat.Col(nil, 0, y), "train": train}, code.String(), &predictions)
			loss := func(f float64, i int) float64 {
				e := f - y.At(train+i, 0)
				if task == learners.Classification && e != 0 {
					return 1
				}
				return e * e
			}
			// moments are the mean of the losses of f, less those of g where it is not nil,
			// and its standard error.
			moments := func(f, g []float64) (mean, se float64) {
				m, square := float64(len(f)), 0.0
				for i := range f {
					e := loss(f[i], i)
					if g != nil {
						e -= loss(g[i], i)
					}
					mean, square = mean+e/m, square+e*e/m
				}
				return mean, math.Sqrt(max(square-mean*mean, 0) / (m - 1))
			}
			// score is the RMSE or the share of wrong classes, and its standard error.
			score := func(f []float64) (value, se float64) {
				value, se = moments(f, nil)
				if task == learners.Regression {
					value = math.Sqrt(value)
					se /= 2 * value
				}
				return value, se
			}
			// excess is the mean of the losses of f less those of g in standard errors.
			excess := func(f, g []float64) float64 {
				mean, se := moments(f, g)
				if own, _ := moments(g, nil); mean <= 1e-6*own {
					return 0
				}
				return mean / se
			}
			base0, _ := score(predictions[""])
			cells[""] = append(cells[""], fmt.Sprintf("%.4g", base0))
			for _, p := range peers {
				l, err := learners.Find(p.learner)
				if err != nil {
					t.Fatal(err)
				}
				fit, err := l.Make(task, nil)
				if err != nil {
					t.Fatal(err)
				}
				m, err := fit(t.Context(), dev, x.Slice(0, train, 0, d), y.Slice(0, train, 0, 1), learners.Options{})
				if err != nil {
					t.Errorf("%s, %s: %v", name, p.learner, err)
					continue
				}
				pr, err := m.Predict(t.Context(), dev, x.Slice(train, n, 0, d))
				if err != nil {
					t.Fatal(err)
				}
				f := mat.Col(nil, 0, pr)
				if v := excess(f, predictions[""]); v > 2 {
					t.Errorf("%s, %s is worse than the mean or the largest class by %.1f standard errors", name, p.learner, v)
				}
				value, se := score(f)
				cell := fmt.Sprintf("%.4g", value)
				if p.peer != "" {
					compared[p.learner]++
					peer, _ := score(predictions[p.learner])
					cell += fmt.Sprintf(" / %.4g", peer)
					if v := excess(f, predictions[p.learner]); v > 2 {
						worse[p.learner]++
						t.Logf("%s, %s: %s: worse by %.1f standard errors", name, p.learner, cell, v)
						cell += " *"
					}
				}
				cells[p.learner] = append(cells[p.learner], cell)
				if *writeScores {
					continue
				}
				if was, ok := scoreOf(old, p.learner, name); !ok || math.Abs(was-value) > 2*se {
					t.Errorf("%s, %s: the score is %s ± %.2g; %s has %v: run go test ./learners -run TestDefaultsAgainst -args -write-scores", name, p.learner, cell, se, page, was)
				}
			}
		}
		what, base := "RMSE", "mean"
		if task == learners.Classification {
			what, base = "share of wrong classes", "largest class"
		}
		fmt.Fprintf(&table, "\n| %s | scikit-learn | %s |\n|---|---|%s\n| %s | | %s |\n", what, strings.Join(sets, " | "), strings.Repeat("---|", len(sets)), base, strings.Join(cells[""], " | "))
		for _, p := range peers {
			peer := ""
			if p.peer != "" {
				peer = "`" + p.peer + "`"
			}
			fmt.Fprintf(&table, "| `%s` | %s | %s |\n", p.learner, peer, strings.Join(cells[p.learner], " | "))
		}
		for _, p := range peers {
			if 3*worse[p.learner] > compared[p.learner] {
				t.Errorf("%s, %s: worse than scikit-learn on %d of %d sets", p.learner, task, worse[p.learner], compared[p.learner])
			}
		}
	}
	if *writeScores {
		if err := os.WriteFile(page, []byte(before+begin+table.String()+"\n"+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// scoreOf is Mercer's score in the last table that has the learner and the set.
func scoreOf(tables, learner, set string) (score float64, ok bool) {
	var sets []string
	for line := range strings.Lines(tables) {
		cells := strings.Split(strings.TrimSpace(line), " | ")
		if i := slices.Index(sets, set); i > 0 && len(cells) > i && cells[0] == "| `"+learner+"`" {
			text, _, _ := strings.Cut(strings.TrimSuffix(cells[i], " |"), " ")
			v, err := strconv.ParseFloat(text, 64)
			return v, err == nil
		}
		if strings.HasPrefix(line, "| RMSE") || strings.HasPrefix(line, "| share") {
			cells[len(cells)-1] = strings.TrimSuffix(cells[len(cells)-1], " |")
			sets = cells
		}
	}
	return 0, false
}

// defaultsData are at most most rows of a set, in a random order.
func defaultsData(t *testing.T, name string, task learners.Task, seed uint64, most int) (x, y *mat.Dense) {
	all, texts := shared(t, name, 100)
	perm := rand.New(rand.NewPCG(seed, 0)).Perm(len(texts))
	perm = perm[:min(len(perm), most)]
	_, d := all.Dims()
	x, y = mat.NewDense(len(perm), d, nil), mat.NewDense(len(perm), 1, nil)
	names := slices.Compact(slices.Sorted(slices.Values(texts)))
	for r, i := range perm {
		x.SetRow(r, all.RawRowView(i))
		v := float64(slices.Index(names, texts[i]))
		if task == learners.Regression {
			var err error
			if v, err = strconv.ParseFloat(texts[i], 64); err != nil {
				t.Fatal(err)
			}
		}
		y.Set(r, 0, v)
	}
	return x, y
}

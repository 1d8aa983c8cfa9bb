package learners_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

var writeScores = flag.Bool("write-scores", false, "write the scores of TestDefaultsAgainstScikitLearn into docs/learners.md")

// defaultsSets are the public data sets on which defaults are compared.
var defaultsSets = map[learners.Task][]string{
	learners.Regression:     {"diabetes.csv", "airfoil.csv", "power_plant.csv", "california_housing.csv", "kin40k.csv.gz", "protein.csv.gz", "nycflights13.csv.gz", "penguins_mixed.csv"},
	learners.Classification: {"iris.csv", "wine.csv", "breast_cancer.csv", "ionosphere.csv", "digits.csv", "letter.csv", "skin_segmentation.csv.gz", mnist},
}

// mnist names the test part of MNIST, which has the same distribution as the training part.
const mnist = "mnist-t10k-images-idx3-ubyte.gz"

// notCompared lists the files in the folder of data that are not compared, each with the reason.
var notCompared = map[string]string{
	"README.md":                       "no data",
	"mnist-t10k-labels-idx1-ubyte.gz": "the labels of mnist", "mnist-train-images-idx3-ubyte.gz": "mnist", "mnist-train-labels-idx1-ubyte.gz": "mnist",
	"promoters_dna.csv": "a column of texts", "sms_spam.csv": "a column of texts", "surnames_by_language.csv": "a column of texts", "ewt_genre_trees.csv.gz": "a column of trees",
}

// TestDefaultsAreComparedOnAllData checks that each data set in the folder is compared or listed in notCompared.
func TestDefaultsAreComparedOnAllData(t *testing.T) {
	files, err := os.ReadDir(filepath.Dir(required.Data(t, "iris.csv")))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		compared := slices.Contains(defaultsSets[learners.Regression], f.Name()) || slices.Contains(defaultsSets[learners.Classification], f.Name())
		if compared == (notCompared[f.Name()] != "") {
			t.Errorf("%s belongs either to defaultsSets or to notCompared", f.Name())
		}
	}
}

// otherRule names the pairs of a learner and a data set for which scikit-learn solves another problem and makes
// fewer errors: its perceptron learns each class against the rest, and Mercer's learns all classes together.
var otherRule = map[string]bool{"perceptron wine.csv": true}

// A defaultsPeer is a learner and a Python expression for the scikit-learn estimator with which it
// is compared, or "" if scikit-learn has no such estimator.
type defaultsPeer struct{ learner, peer string }

var defaultsPeers = map[learners.Task][]defaultsPeer{
	learners.Regression: {
		{"least-squares", "LinearRegression()"}, {"ridge", "Ridge()"}, {"ridge-constrained", "Ridge()"}, {"bayes-ridge", "BayesianRidge()"},
		{"lasso", "Lasso()"}, {"l0", "OrthogonalMatchingPursuit()"}, {"kernel-ridge", `TransformedTargetRegressor(KernelRidge(kernel="rbf"), transformer=StandardScaler())`},
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

// TestDefaultsAgainstScikitLearn compares learners with the defaults of the catalogue and scikit-learn's
// estimators with their own defaults, fitted to one half of at most 1000 rows of each public data set and scored
// on the other half. The loss of a row is the squared error, or 1 for a wrong class.
//
//   - No learner may be worse than predicting the mean or the largest class of the training half.
//   - A learner may be worse than its peer on at most a third of the sets.
//   - The RMSE, the fraction of wrong classes and the Brier score of a learner must not exceed 1.1 times the value
//     of its peer, except that otherRule lists sets without a limit on the fraction of wrong classes.
//
// Each limit has a tolerance of two standard errors of the paired difference. Perceptrons are averaged over 20
// orders of the samples. With -args -write-scores the test writes the scores into docs/learners.md; otherwise each
// of Mercer's scores in that page must be within two standard errors of the new score.
func TestDefaultsAgainstScikitLearn(t *testing.T) {
	dev := backendtest.Device(t, "cpu")
	const seed, maxRows = 3, 1000
	t.Log("seed", seed)
	const page, begin, end = "../docs/learners.md", "<!-- scores: written by TestDefaultsAgainstScikitLearn -->\n", "<!-- end of scores -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, remaining, found := strings.Cut(string(text), begin)
	oldScores, after, closed := strings.Cut(remaining, end)
	if !found || !closed {
		t.Fatalf("%s has no marks around the scores", page)
	}
	var table strings.Builder
	for _, task := range []learners.Task{learners.Regression, learners.Classification} {
		sets, peers := defaultsSets[task], defaultsPeers[task]
		worse, compared, cells := map[string]int{}, map[string]int{}, map[string][]string{}
		for _, name := range sets {
			x, y := defaultsData(t, name, task, seed, maxRows)
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
from sklearn.neighbors import *
from sklearn.svm import *
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.pipeline import make_pipeline
from sklearn.compose import TransformedTargetRegressor
from sklearn.preprocessing import StandardScaler
X, y, n = a["x"], a["y"], a["train"]
def run(name, e):
	np.random.seed(3)
	out[name] = e.fit(X[:n], y[:n]).predict(X[n:])
	if hasattr(e, 'random_state') and name.endswith('perceptron'):
		out[name + ' mean'] = np.mean([e.set_params(random_state=s).fit(X[:n], y[:n]).predict(X[n:]) != y[n:] for s in range(20)], axis=0)
	if hasattr(e, 'predict_proba') and name in ('logistic', 'kernel-logistic', 'rvc'):
		p = e.predict_proba(X[n:])
		p[:, :] -= y[n:, None] == e.classes_
		out[name + ' Brier'] = (p*p).sum(axis=1)
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
			// moments returns the mean of the losses of f, minus those of g if g is not nil, and the standard
			// error of the mean.
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
			// score returns the RMSE of f, or the fraction of wrong classes, and its standard error.
			score := func(f []float64) (value, se float64) {
				value, se = moments(f, nil)
				if task == learners.Regression {
					value = math.Sqrt(value)
					se /= 2 * value
				}
				return value, se
			}
			// excess returns the mean difference between the losses of f and of g, divided by its standard error.
			excess := func(f, g []float64) float64 {
				mean, se := moments(f, g)
				if ownMean, _ := moments(g, nil); mean <= 1e-6*ownMean {
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
				if peer := predictions[p.learner]; p.peer != "" {
					// peerErrors are the losses of the peer, multiplied so that the peer's score becomes 1.1 times
					// as large.
					errors, peerErrors, factor := make([]float64, len(f)), make([]float64, len(f)), 1.1
					if task == learners.Regression {
						factor = 1.1 * 1.1
					}
					for i := range f {
						errors[i], peerErrors[i] = loss(f[i], i), factor*loss(peer[i], i)
					}
					if mean := predictions[p.learner+" mean"]; mean != nil {
						errors = meanLoss(t, l, dev, x, y, train, 20)
						for i, v := range mean {
							peerErrors[i] = factor * v
						}
						t.Logf("%s, %s: mean of 20 orders %.4f / %.4f", name, p.learner, floats.Sum(errors)/float64(len(errors)), floats.Sum(mean)/float64(len(errors)))
					}
					if v := beyond(errors, peerErrors); v > 2 && !otherRule[p.learner+" "+name] {
						t.Errorf("%s, %s is worse than 1.1 times %s by %.1f standard errors", name, p.learner, p.peer, v)
					}
				}
				if k, ok := learners.As[learners.Prober](m); ok && predictions[p.learner+" Brier"] != nil {
					proba, err := k.Proba(t.Context(), dev, x.Slice(train, n, 0, d))
					if err != nil {
						t.Fatal(err)
					}
					errors, peerErrors := make([]float64, len(f)), slices.Clone(predictions[p.learner+" Brier"])
					sum, peer := 0.0, 0.0
					for i := range f {
						for c, label := range k.Classes().Labels {
							e := proba.At(i, c)
							if label == y.At(train+i, 0) {
								e--
							}
							errors[i] += e * e
						}
						sum, peer = sum+errors[i], peer+peerErrors[i]
						peerErrors[i] *= 1.1
					}
					t.Logf("%s, %s: Brier score %.4f / %.4f", name, p.learner, sum/float64(len(f)), peer/float64(len(f)))
					if v := beyond(errors, peerErrors); v > 2 {
						t.Errorf("%s, %s: the Brier score is above 1.1 times that of %s by %.1f standard errors", name, p.learner, p.peer, v)
					}
				}
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
				if previous, ok := scoreOf(oldScores, p.learner, name); !ok || math.Abs(previous-value) > 2*se {
					t.Errorf("%s, %s: the score is %s ± %.2g; %s has %v: run go test ./learners -run TestDefaultsAgainst -args -write-scores", name, p.learner, cell, se, page, previous)
				}
			}
		}
		measure, base := "RMSE", "mean"
		if task == learners.Classification {
			measure, base = "share of wrong classes", "largest class"
		}
		fmt.Fprintf(&table, "\n| %s | scikit-learn | %s |\n|---|---|%s\n| %s | | %s |\n", measure, strings.Join(sets, " | "), strings.Repeat("---|", len(sets)), base, strings.Join(cells[""], " | "))
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

// meanLoss fits the learner to the first `train` rows with the seeds 0 to orders − 1. For each of the other rows
// it returns the fraction of these fits that classify the row wrongly.
func meanLoss(t *testing.T, l learners.Description, dev backend.Device, x, y *mat.Dense, train, orders int) []float64 {
	t.Helper()
	n, d := x.Dims()
	mistakes := make([]float64, n-train)
	for seed := range orders {
		fit, err := l.Make(learners.Classification, map[string]string{"seed": strconv.Itoa(seed)})
		if err != nil {
			t.Fatal(err)
		}
		m, err := fit(t.Context(), dev, x.Slice(0, train, 0, d), y.Slice(0, train, 0, 1), learners.Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := m.Predict(t.Context(), dev, x.Slice(train, n, 0, d))
		if err != nil {
			t.Fatal(err)
		}
		for i := range mistakes {
			if f.At(i, 0) != y.At(train+i, 0) {
				mistakes[i] += 1 / float64(orders)
			}
		}
	}
	return mistakes
}

// beyond returns the mean of a − b divided by the standard error of this mean.
func beyond(a, b []float64) float64 {
	n, mean, square := float64(len(a)), 0.0, 0.0
	for i := range a {
		d := a[i] - b[i]
		mean, square = mean+d/n, square+d*d/n
	}
	if mean <= 0 {
		return 0
	}
	return mean / math.Sqrt(max(square-mean*mean, 0)/(n-1))
}

// scoreOf returns Mercer's score of the learner on the data set, from a text of Markdown tables.
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

// defaultsData returns at most maxRows rows of a set, in a random order.
func defaultsData(t *testing.T, name string, task learners.Task, seed uint64, maxRows int) (x, y *mat.Dense) {
	features, texts := encodedData(t, name)
	perm := rand.New(rand.NewPCG(seed, 0)).Perm(len(texts))
	perm = perm[:min(len(perm), maxRows)]
	_, d := features.Dims()
	x, y = mat.NewDense(len(perm), d, nil), mat.NewDense(len(perm), 1, nil)
	names := slices.Compact(slices.Sorted(slices.Values(texts)))
	for r, i := range perm {
		x.SetRow(r, features.RawRowView(i))
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

// encodedData returns the features and the targets of a set. Texts and missing cells are
// encoded as mercer fit encodes them.
func encodedData(t *testing.T, name string) (x *mat.Dense, target []string) {
	t.Helper()
	if name != mnist && name != "penguins_mixed.csv" {
		return shared(t, name, 100)
	}
	table, err := dataset.Read(required.Data(t, name), nil)
	if err != nil {
		t.Fatal(err)
	}
	label := table.Names()[len(table.Names())-1]
	e, err := dataset.Learn(table, dataset.Rules{Targets: []string{label}})
	if err != nil {
		t.Fatal(err)
	}
	if x, err = e.Features(table); err != nil {
		t.Fatal(err)
	}
	target, err = table.Cells(label)
	if err != nil {
		t.Fatal(err)
	}
	return x, target
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
)

// rareClasses returns rows of three classes. The argument rare is the number of rows of the last class.
func rareClasses(rare int) (x [][]float64, class []int, csv string) {
	random := rand.New(rand.NewPCG(7, uint64(rare)))
	var b strings.Builder
	b.WriteString("a,b,y\n")
	names := []string{"cow", "fox", "hen"}
	for k, n := range []int{8, 8, rare} {
		for range n {
			row := []float64{random.NormFloat64() + float64(k), random.NormFloat64()}
			fmt.Fprintf(&b, "%v,%v,%s\n", row[0], row[1], names[k])
			x, class = append(x, row), append(class, k)
		}
	}
	return x, class, b.String()
}

// rankAUC returns the mean AUC of the classes: the probability that a row of the class has a higher score for the
// class than another row has, where ties count as one half (Mann and Whitney 1947; sklearn.metrics.roc_auc_score
// with multi_class="ovr"). The result is NaN if a class has no rows or no score.
func rankAUC(proba *mat.Dense, truth []int, classes int) float64 {
	_, scored := proba.Dims()
	if scored < classes {
		return math.NaN()
	}
	sum := 0.0
	for c := range classes {
		wins, pairs := 0.0, 0.0
		for i, ti := range truth {
			for j, tj := range truth {
				if ti == c && tj != c {
					pairs++
					switch p, q := proba.At(i, c), proba.At(j, c); {
					case p > q:
						wins++
					case p == q:
						wins += 0.5
					}
				}
			}
		}
		sum += wins / pairs / float64(classes) // NaN if no row has class c
	}
	return sum
}

// TestMeansAreOverModelsWithAValue checks the AUC if some folds and bootstrap rounds lack a class (scikit-learn
// #11777 and #28178). The scores must be in the order of the folds, with null where the AUC is not defined. The mean
// must be over the other folds, and the report must give their number.
func TestMeansAreOverModelsWithAValue(t *testing.T) {
	t.Chdir(t.TempDir())
	dev, err := backend.Open("ref", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	for _, rare := range []int{1, 2, 3} {
		x, class, csv := rareClasses(rare)
		if err := os.WriteFile("rare.csv", []byte(csv), 0o666); err != nil {
			t.Fatal(err)
		}
		// want fits a model to the rows of train and returns its AUC on the rows of test.
		want := func(train, test []int) float64 {
			subset := func(rows []int) (*mat.Dense, *mat.Dense, []int) {
				px, py, list := mat.NewDense(len(rows), 2, nil), mat.NewDense(len(rows), 1, nil), []int{}
				for r, i := range rows {
					px.SetRow(r, x[i])
					py.Set(r, 0, float64(class[i]))
					list = append(list, class[i])
				}
				return px, py, list
			}
			if len(test) == 0 {
				return math.NaN()
			}
			px, py, _ := subset(train)
			m, err := learners.Logistic{Lambda: 1}.Fit(context.Background(), dev, px, py, learners.Options{Classes: []string{"cow", "fox", "hen"}})
			if err != nil {
				t.Fatal(err)
			}
			tx, _, truth := subset(test)
			proba, err := m.Proba(context.Background(), dev, tx)
			if err != nil {
				t.Fatal(err)
			}
			return rankAUC(proba, truth, 3)
		}
		check := func(args []string, models string, want []float64) {
			t.Helper()
			args = append(args, "--device", "ref", "--lambda", "1", "--no-standardize", "--target", "y", "--quiet", "rare.csv")
			var out, errs bytes.Buffer
			if code := run(append(args, "--json"), nil, &out, &errs); code != 0 {
				t.Fatalf("mercer %q: %s", args, errs.String())
			}
			type measure struct {
				Name   string
				Mean   *float64
				Scores []*float64
			}
			type figures struct{ Measures []measure }
			var report struct {
				figures
				Learners []figures
			}
			if err := json.Unmarshal(out.Bytes(), &report); err != nil {
				t.Fatal(err)
			}
			list := append(report.Learners, report.figures)[0].Measures
			index := slices.IndexFunc(list, func(m measure) bool { return m.Name == "auc" })
			if index < 0 {
				t.Fatalf("%d rare rows, mercer %q: no AUC in %s", rare, args, out.String())
			}
			auc := list[index]
			var defined []float64
			for i, w := range want {
				got := math.NaN()
				if i < len(auc.Scores) && auc.Scores[i] != nil {
					got = *auc.Scores[i]
				}
				// The fits are the same. The tolerance 1e-12 allows for another order of summation over 3 classes.
				if math.Abs(got-w) > 1e-12 || math.IsNaN(got) != math.IsNaN(w) {
					t.Errorf("%d rare rows, mercer %q: model %d: AUC %v, want %v", rare, args, i+1, got, w)
				}
				if !math.IsNaN(w) {
					defined = append(defined, w)
				}
			}
			if len(auc.Scores) != len(want) {
				t.Errorf("%d rare rows, mercer %q: %d scores, want %d", rare, args, len(auc.Scores), len(want))
			}
			switch {
			case (auc.Mean == nil) != (len(defined) == 0):
				t.Errorf("%d rare rows, mercer %q: mean %v of %d scores", rare, args, auc.Mean, len(defined))
			case auc.Mean != nil && math.Abs(*auc.Mean-stat.Mean(defined, nil)) > 1e-12:
				t.Errorf("%d rare rows, mercer %q: mean %v, want %v", rare, args, *auc.Mean, stat.Mean(defined, nil))
			}
			out.Reset()
			if code := run(args, nil, &out, &errs); code != 0 {
				t.Fatalf("mercer %q: %s", args, errs.String())
			}
			says := fmt.Sprintf("(%d of %d %ss)", len(defined), len(want), models)
			if strings.Contains(out.String(), says) != (len(defined) < len(want)) {
				t.Errorf("%d rare rows, mercer %q: want %q in\n%s", rare, args, says, out.String())
			}
		}
		anyDefined := false
		for _, folds := range []int{2, 3, 5} {
			fold, err := validate.Folds(len(class), folds, class, 1)
			if err != nil {
				t.Fatal(err)
			}
			var aucs []float64
			for k := range folds {
				var train, test []int
				for i, f := range fold {
					if f == k {
						test = append(test, i)
					} else {
						train = append(train, i)
					}
				}
				aucs = append(aucs, want(train, test))
			}
			anyDefined = anyDefined || slices.ContainsFunc(aucs, func(v float64) bool { return !math.IsNaN(v) })
			check([]string{"cv", "--learner", "logistic", "--folds", fmt.Sprint(folds)}, "fold", aucs)
			check([]string{"compare", "--learner", "logistic,ridge", "--task", "classification", "--folds", fmt.Sprint(folds)}, "fold", aucs)
		}
		if anyDefined != (rare > 1) {
			t.Errorf("%d rare rows: an AUC is defined: %v", rare, anyDefined)
		}
		var aucs []float64
		for round := range 12 {
			aucs = append(aucs, want(validate.Bootstrap(len(class), 1)(round)))
		}
		check([]string{"bootstrap", "--learner", "logistic", "--rounds", "12"}, "round", aucs)
	}
}

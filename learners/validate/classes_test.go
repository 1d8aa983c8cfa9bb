package validate_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
	"gonum.org/v1/gonum/mat"
)

// TestScoreClassification compares scores with values that were computed with log_loss,
// roc_auc_score(multi_class="ovr"), accuracy_score and confusion_matrix of scikit-learn 1.2.1.
func TestScoreClassification(t *testing.T) {
	const bound = 16 * 0x1p-52 // a few roundings of numbers near 1
	three := learners.Classes{Labels: []float64{0, 1, 2}, Names: []string{"a", "b", "c"}}
	proba := mat.NewDense(8, 3, []float64{.7, .2, .1, .3, .4, .3, .1, .1, .8, .5, .2, .3, .2, .5, .3, .3, .3, .4, .05, .15, .8, .6, .4, 0})
	y, pred := mat.NewDense(8, 1, []float64{0, 1, 2, 2, 1, 0, 2, 0}), mat.NewDense(8, 1, []float64{0, 1, 2, 0, 1, 2, 2, 0})
	s, err := validate.ScoreClassification(three, nil, y, validate.Outcome{Values: pred, Proba: proba}, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkClose(t, "accuracy", *s.Accuracy, 0.75, 0)
	checkClose(t, "log loss", *s.LogLoss, 0.6663963989273893, bound)
	checkClose(t, "AUC", *s.AUC, 0.9083333333333333, bound)
	if d := cmp.Diff([][]int{{2, 0, 1}, {0, 2, 0}, {1, 0, 2}}, s.Confusion); d != "" || s.N != 8 {
		t.Errorf("confusion of %d: %s", s.N, d)
	}

	// The next case has two classes, samples with equal scores, and no probabilities.
	two := learners.Classes{Labels: []float64{-1, 1}, Names: []string{"-1", "1"}}
	y, pred = mat.NewDense(6, 1, []float64{-1, 1, 1, -1, 1, -1}), mat.NewDense(6, 1, []float64{-1, 1, -1, 1, 1, -1})
	decision := mat.NewDense(6, 1, []float64{-1, .5, -.2, .5, 2, -.3})
	if s, err = validate.ScoreClassification(two, nil, y, validate.Outcome{Values: pred, Decision: decision}, nil); err != nil {
		t.Fatal(err)
	}
	checkClose(t, "AUC", *s.AUC, 0.8333333333333334, bound)
	checkClose(t, "accuracy", *s.Accuracy, 4.0/6, bound)
	if s.LogLoss != nil {
		t.Errorf("log loss %v without probabilities", *s.LogLoss)
	}

	// A class that the model does not contain is never predicted correctly.
	y.Set(0, 0, 0)
	if s, err = validate.ScoreClassification(two, nil, y, validate.Outcome{Values: pred, Decision: decision}, nil); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Classes, []string{"-1", "0", "1"}) || s.Confusion[1][0] != 1 {
		t.Errorf("%+v", s)
	}
	// The AUC is undefined if only one class occurs.
	y = mat.NewDense(6, 1, []float64{1, 1, 1, 1, 1, 1})
	if s, err = validate.ScoreClassification(two, nil, y, validate.Outcome{Values: pred, Decision: decision}, nil); err != nil || s.AUC != nil {
		t.Errorf("AUC %v, %v", s.AUC, err)
	}
	for want, f := range map[string]func() error{
		"y is missing": func() error {
			_, err := validate.ScoreClassification(two, nil, nil, validate.Outcome{Values: pred}, nil)
			return err
		},
		"prediction is missing": func() error {
			_, err := validate.ScoreClassification(two, nil, y, validate.Outcome{}, nil)
			return err
		},
		"decision is 6×1, want 6×3": func() error {
			_, err := validate.ScoreClassification(three, nil, y, validate.Outcome{Values: pred, Decision: decision}, nil)
			return err
		},
		"row 1 is 5, which is not a class": func() error {
			_, err := validate.ScoreClassification(two, nil, y, validate.Outcome{Values: mat.NewDense(6, 1, []float64{5, 1, 1, 1, 1, 1})}, nil)
			return err
		},
		"y: row 2, column 1 is NaN": func() error {
			_, err := validate.ScoreClassification(two, nil, mat.NewDense(6, 1, []float64{1, math.NaN(), 1, 1, 1, 1}), validate.Outcome{Values: pred}, nil)
			return err
		},
	} {
		if err := f(); err == nil || !strings.HasPrefix(err.Error(), "validate: score: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

package validate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/elementary"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/learners"
	"gonum.org/v1/gonum/integrate"
	"gonum.org/v1/gonum/mat"
)

// ScoreClassification returns the score of the predicted labels o.Values for the n×1 labels y. The decision values, n×1
// for two classes and n×K for more, and the n×K probabilities are in the order of the classes c; each of these two
// matrices may be nil. The argument names is the list learners.Options.Classes, or nil: it has the names of labels in
// y that c does not contain. Weights apply to all parts of the score except Confusion; nil weights are all 1.
func ScoreClassification(c learners.Classes, names []string, y mat.Matrix, o Outcome, weights []float64) (s Score, err error) {
	defer wrapError(&s, &err)
	if y = nilIfEmpty(y); y == nil {
		return s, errors.New("y is missing")
	}
	n, cols := y.Dims()
	if cols != 1 {
		return s, fmt.Errorf("y has %s; classes must be in one column", count.Of(cols, "column"))
	}
	for _, m := range []struct {
		name string
		m    **mat.Dense
		cols int
	}{{"prediction", &o.Values, 1}, {"decision", &o.Decision, c.Columns()}, {"proba", &o.Proba, c.Len()}} {
		if *m.m == nil || (*m.m).IsEmpty() {
			if *m.m = nil; m.name == "prediction" {
				return s, errors.New("prediction is missing")
			}
			continue
		}
		if r, k := (*m.m).Dims(); r != n || k != m.cols {
			return s, fmt.Errorf("%s is %d×%d, want %d×%d", m.name, r, k, n, m.cols)
		}
		h, err := gonum.Host(m.name, *m.m)
		if err == nil {
			err = finite(m.name, h)
		}
		if err != nil {
			return s, err
		}
	}
	extended, err := withLabels(c, y, names)
	if err != nil {
		return s, err
	}
	weight, total, err := scoreWeights(weights, n)
	if err != nil {
		return s, err
	}
	s.N, s.ModelClasses, s.Classes = n, c, extended.Names
	s.Confusion = make([][]int, extended.Len())
	for i := range s.Confusion {
		s.Confusion[i] = make([]int, extended.Len())
	}
	truth := make([]int, n)
	correct, loss := 0.0, 0.0
	for i := range n {
		truth[i] = extended.Index(y.At(i, 0))
		predicted := extended.Index(o.Values.At(i, 0))
		if predicted < 0 {
			return s, fmt.Errorf("prediction: row %d is %v, which is not a class", i+1, o.Values.At(i, 0))
		}
		s.Confusion[truth[i]][predicted]++
		if predicted == truth[i] {
			correct += weight(i)
		}
		if o.Proba != nil {
			p := 0.0
			if column := c.Index(y.At(i, 0)); column >= 0 {
				p = o.Proba.At(i, column)
			}
			loss -= weight(i) * elementary.Log(min(max(p, 0x1p-52), 1-0x1p-52)) / total
		}
	}
	accuracy := correct / total
	s.Accuracy, s.AUC = &accuracy, numeric.NilIfNaN(meanAUC(c, extended, truth, o, weights))
	if o.Proba != nil {
		s.LogLoss = &loss
	}
	return s, nil
}

// nilIfEmpty returns m, or nil if m is a nil pointer or an empty matrix.
func nilIfEmpty(m mat.Matrix) mat.Matrix {
	if d, ok := m.(*mat.Dense); ok && (d == nil || d.IsEmpty()) {
		return nil
	}
	return m
}

// withLabels returns c with further classes for the labels in y that c does not contain.
func withLabels(c learners.Classes, y mat.Matrix, names []string) (learners.Classes, error) {
	extended := learners.Classes{Labels: slices.Clone(c.Labels), Names: slices.Clone(c.Names)}
	n, _ := y.Dims()
	for i := range n {
		v := y.At(i, 0)
		if v-v != 0 {
			return c, fmt.Errorf("y: row %d, column 1 is %v", i+1, v)
		}
		index, found := slices.BinarySearch(extended.Labels, v)
		if found {
			continue
		}
		name := strconv.FormatFloat(v, 'g', -1, 64)
		if k := int(v); names != nil && float64(k) == v && k >= 0 && k < len(names) {
			name = names[k]
		}
		extended.Labels, extended.Names = slices.Insert(extended.Labels, index, v), slices.Insert(extended.Names, index, name)
	}
	return extended, nil
}

// meanAUC returns the AUC of the outcome o, as described for Score.AUC. truth holds the class of each sample as an
// index into extended; the columns of o are in the order of the classes c.
func meanAUC(c, extended learners.Classes, truth []int, o Outcome, weights []float64) float64 {
	scores := o.Proba
	if scores == nil || c.Len() == 2 && o.Decision != nil {
		scores = o.Decision
	}
	if scores == nil || extended.Len() > c.Len() {
		return math.NaN()
	}
	auc := func(class, column int) float64 {
		positive := make([]bool, len(truth))
		for i, t := range truth {
			positive[i] = t == class
		}
		return NewROC(mat.Col(nil, column, scores), positive, weights).AUC()
	}
	if c.Len() == 2 {
		_, cols := scores.Dims()
		return auc(extended.Index(c.Labels[1]), cols-1)
	}
	sum := 0.0
	for j, label := range c.Labels {
		sum += auc(extended.Index(label), j) / float64(c.Len())
	}
	return sum
}

// ROC is the receiver operating characteristic. For each threshold, in decreasing order, it has the
// weighted fractions of the negative and of the positive samples whose score is at least the
// threshold. The curve begins at (0, 0) and ends at (1, 1).
type ROC struct {
	FPR, TPR []float64
}

// NewROC returns the curve of scores, which must be finite. Nil weights are all 1. The curve is
// empty unless there are positive and negative samples.
func NewROC(scores []float64, positive []bool, weights []float64) ROC {
	var order []int
	totals := map[bool]float64{}
	weight := func(i int) float64 { return weightAt(weights, i) }
	for i := range scores {
		if weight(i) > 0 {
			order = append(order, i)
			totals[positive[i]] += weight(i)
		}
	}
	if totals[true] == 0 || totals[false] == 0 {
		return ROC{}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	r := ROC{FPR: []float64{0}, TPR: []float64{0}}
	cumulative := map[bool]float64{}
	for k, i := range order {
		cumulative[positive[i]] += weight(i)
		// Samples with equal scores belong to the same point of the curve.
		if k+1 < len(order) && scores[order[k+1]] == scores[i] {
			continue
		}
		r.TPR = append(r.TPR, cumulative[true]/totals[true])
		r.FPR = append(r.FPR, cumulative[false]/totals[false])
	}
	return r
}

// AUC returns the area under the curve: the probability that a positive sample has a higher score
// than a negative one, where ties count one half. AUC returns NaN for an empty curve.
func (r ROC) AUC() float64 {
	if len(r.TPR) == 0 {
		return math.NaN()
	}
	return integrate.Trapezoidal(r.FPR, r.TPR)
}

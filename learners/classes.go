package learners

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/numeric"
	"gonum.org/v1/gonum/mat"
)

// Classifier is a Model that predicts classes. Its Predict returns n×1 labels, which are values of the y of the fit.
type Classifier interface {
	Model
	// Classes returns the classes, in the order of the columns of Decision.
	Classes() Classes
	// Decision returns the decision values of the rows of x. For two classes they are n×1: a value >
	// 0 means the second class, a value < 0 the first, and for 0 see Classes.ZeroIsPositive. For K >
	// 2 classes they are n×K: the class with the largest value is predicted, and among equal values
	// the first class. An SVCModel with probabilities predicts the most probable class instead.
	Decision(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error)
}

// Prober is a Classifier with probabilities.
type Prober interface {
	Classifier
	// Proba returns the n×K probabilities of the classes; each row sums to 1.
	Proba(ctx context.Context, dev backend.Device, x mat.Matrix) (*mat.Dense, error)
}

// As returns m as a T, and true, if m can compute the results of the interface T, such as Prober, Uncertain,
// Sampler or Jackknife. A type assertion does not suffice, because some methods work only after a fit with an
// option: SVC.Probabilities, the field Std of Ridge, NystromRidge and FourierRidge, or Ridge.Intervals.
func As[T any](m Model) (T, bool) {
	t, ok := m.(T)
	if !ok || numeric.IsNil(m) {
		return *new(T), false
	}
	supported := true
	switch any(&t).(type) {
	case *Prober:
		if s, isSVC := m.(*SVCModel); isSVC {
			supported = s.sigmoid.Cols > 0
		}
	case *Uncertain, *Sampler:
		if p, optional := m.(interface{ hasPosterior() bool }); optional {
			supported = p.hasPosterior()
		}
	case *Jackknife:
		if r, isRidge := m.(*RidgeModel); isRidge {
			supported = r.hasSamples()
		}
	}
	if !supported {
		return *new(T), false
	}
	return t, true
}

// MaxClasses is the largest number of classes. A y with more different values probably holds the
// targets of a regression.
const MaxClasses = 1000

// Classes are the classes that occur in y among samples of weight > 0, in the order of their labels.
type Classes struct {
	Labels []float64 // the value of y for each class: −1 and 1, or 0, 1, 2, …
	Names  []string  // from Options.Classes, or the labels as texts
	// If ZeroIsPositive is set, which is an option of the perceptrons, the decision value 0
	// predicts the second of two classes: sgn(0) = +1. Otherwise 0 predicts the first class.
	ZeroIsPositive bool
}

// positive reports whether a decision value means the second of two classes.
func (c Classes) positive(f float64) bool { return f > 0 || f == 0 && c.ZeroIsPositive }

// Len returns the number of classes.
func (c Classes) Len() int { return len(c.Labels) }

// Columns returns the number of columns of Decision: 1 for two classes.
func (c Classes) Columns() int {
	if len(c.Labels) == 2 {
		return 1
	}
	return len(c.Labels)
}

// Index returns the index of a label, or −1 if no class has it.
func (c Classes) Index(label float64) int {
	i, found := slices.BinarySearch(c.Labels, label)
	if !found {
		return -1
	}
	return i
}

type classified struct{ classes Classes }

// Classes implements Classifier.
func (c *classified) Classes() Classes { return c.classes }

// classesOf returns the classes of the n×1 matrix y: the different values in its rows of weight > 0. index[i] is
// the class of row i, or −1 if this class occurs only in rows of weight 0.
func classesOf(y backend.Host[float64], weights []float64, names []string) (c Classes, index []int, err error) {
	if y.Rows == 0 {
		return c, nil, errors.New("y is missing")
	}
	if y.Cols != 1 {
		return c, nil, fmt.Errorf("y has %s; classes must be in one column", count.Of(y.Cols, "column"))
	}
	if err := checkFinite("y", y); err != nil {
		return c, nil, err
	}
	for i := range y.Rows {
		v := y.Row(i)[0]
		if names != nil && (v != float64(int(v)) || v < 0 || v >= float64(len(names))) {
			return c, nil, fmt.Errorf("y: row %d is %v: with %d named classes, y must be an integer from 0 to %d", i+1, v, len(names), len(names)-1)
		}
		if i < len(weights) && weights[i] == 0 {
			continue
		}
		if pos, found := slices.BinarySearch(c.Labels, v); !found {
			if len(c.Labels) == MaxClasses {
				return c, nil, fmt.Errorf("y has more than %d different values, too many for classes: use a learner of regression for numbers", MaxClasses)
			}
			c.Labels = slices.Insert(c.Labels, pos, v+0) // −0 becomes 0
		}
	}
	c.Names = make([]string, len(c.Labels))
	for i, v := range c.Labels {
		if names != nil {
			c.Names[i] = names[int(v)]
		} else {
			c.Names[i] = strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	if len(c.Labels) < 2 {
		suffix := ""
		if len(c.Names) == 1 {
			suffix = fmt.Sprintf(": %q", c.Names[0])
		}
		return c, nil, fmt.Errorf("y has one class only%s; at least two are needed", suffix)
	}
	index = make([]int, y.Rows)
	for i := range index {
		index[i] = c.Index(y.Row(i)[0])
	}
	return c, index, nil
}

// Signs returns the ±1 targets that Classify makes from the classes in y. The argument names is as in Options.Classes.
func Signs(y mat.Matrix, names []string) (*mat.Dense, error) {
	h, err := gonum.Host("y", y)
	if err != nil {
		return nil, fmt.Errorf("learners: %w", err)
	}
	classes, index, err := classesOf(h, nil, names)
	if err != nil {
		return nil, fmt.Errorf("learners: %w", err)
	}
	signs := classes.targets(index)
	return mat.NewDense(signs.Rows, signs.Cols, signs.Data), nil
}

// targets returns ±1 targets, one class versus the rest. For two classes they are n×1, with 1 for
// the second class; for K > 2 they are n×K, with 1 in the column of the sample's class.
func (c Classes) targets(index []int) backend.Host[float64] {
	h := backend.NewHost[float64](len(index), c.Columns())
	for i, class := range index {
		row := h.Row(i)
		for j := range row {
			row[j] = -1
		}
		if len(row) > 1 && class >= 0 {
			row[class] = 1
		} else if class == 1 {
			row[0] = 1
		}
	}
	return h
}

// Decide returns the n×1 labels for decision values or probabilities, without modifying them. The
// label of a row is NaN if c has no label for the class of the row.
func (c Classes) Decide(values mat.Matrix) *mat.Dense {
	decision := asDense(values)
	n, cols := decision.Dims()
	y := mat.NewDense(n, 1, nil)
	for i := range n {
		row, class := decision.RawRowView(i), 0
		if cols == 1 {
			if c.positive(row[0]) {
				class = 1
			}
		} else {
			for j, v := range row {
				if v > row[class] {
					class = j
				}
			}
		}
		label := math.NaN()
		if class < len(c.Labels) {
			label = c.Labels[class]
		}
		y.Set(i, 0, label)
	}
	return y
}

// decide returns c.Decide(values), or err if it is not nil.
func (c Classes) decide(values *mat.Dense, err error) (*mat.Dense, error) {
	if err != nil {
		return nil, err
	}
	return c.Decide(values), nil
}

// save stores the classes in s for load.
func (c *Classes) save(s State) {
	text, _ := json.Marshal(c.Names) // encoding strings cannot fail
	s.Params["classes"] = string(text)
	s.Arrays["labels"] = numeric.Row(c.Labels)
	if c.ZeroIsPositive {
		s.Params["zero"] = true
	}
}

// load reads the classes that save stored in s.
func (c *Classes) load(s State) error {
	text, err := param[string](s, "classes")
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), &c.Names); err != nil {
		return fmt.Errorf("parameter \"classes\": %w", err)
	}
	if len(c.Names) < 2 || len(c.Names) > MaxClasses {
		return fmt.Errorf("parameter \"classes\" names %s, not 2 to %d", count.Of(len(c.Names), "class"), MaxClasses)
	}
	h, err := s.array("labels", 1, len(c.Names))
	if err != nil {
		return err
	}
	c.Labels = h.Row(0)
	if _, ok := s.Params["zero"]; ok {
		if c.ZeroIsPositive, err = param[bool](s, "zero"); err != nil {
			return err
		}
	}
	for i := range c.Labels[1:] {
		if !(c.Labels[i] < c.Labels[i+1]) {
			return errors.New("array \"labels\" is not in ascending order")
		}
	}
	return nil
}

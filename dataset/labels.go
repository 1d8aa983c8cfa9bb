package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/internal/count"
)

// Classes returns the labels of the classes, as the training table spells them. The value i in the matrix of
// Targets stands for the class Classes()[i]. Classes returns nil if the target is numeric.
//
// If all labels are numbers, they are sorted numerically, and two spellings of one number, such as 1 and 1.0, are one
// class with the shorter label. Otherwise labels are sorted by their bytes. Labels are compared without rounding.
func (e *Encoder) Classes() []string { return slices.Clone(e.Labels) }

// learnLabels learns the classes of the only target.
func (e *Encoder) learnLabels(t *Table, anyLabels bool) error {
	if len(e.Outputs) != 1 {
		return t.newError("", fmt.Sprintf("classification needs exactly one target column, not %d", len(e.Outputs)))
	}
	c := t.find(e.Outputs[0])
	if c == nil {
		return t.noColumn("target column", e.Outputs[0], t.Names())
	}
	var err error
	e.Labels, err = t.summarizeColumn(c, t.plainNumbers(c), nil, statistics{counts: true, storedNumbers: true}).classes(t, c.name, int64(t.rows), anyLabels)
	return err
}

// labelsRule returns the rule that a target with the given distinct labels violates, or "". Numbers must be integers.
// More than 20 labels need on average two rows each, or ten if they are numbers. See Rules.AnyLabels.
func labelsRule(labels []string, rows int, texts, anyLabels bool) string {
	rowsPerClass := 10
	if texts {
		rowsPerClass = 2
	}
	numClasses, advice := len(labels), "; {if they are classes, $task=classification}"
	if !texts && !anyLabels && numClasses <= MaxCategories {
		if i := slices.IndexFunc(labels, func(s string) bool { return !exactOf(s).integer() }); i >= 0 {
			return fmt.Sprintf("has values that are not integers, such as %s: a target of numbers needs a learner for regression%s", quote(slices.MinFunc(labels[i:], notIntegerFirst)), advice)
		}
	}
	if numClasses <= MaxCategories && (anyLabels || numClasses <= alwaysCategories || numClasses <= rows/rowsPerClass) {
		return ""
	}
	description := fmt.Sprintf("%d distinct values in %s", numClasses, count.Of(rows, "row"))
	if numClasses > MaxCategories {
		description, advice = fmt.Sprintf("more than %d distinct values", MaxCategories), ""
	}
	return fmt.Sprintf("has %s: too many to be classes; a target of numbers needs a learner for regression%s", description, advice)
}

// notIntegerFirst compares numeric labels. It puts numbers that are not integers before integers,
// and otherwise sorts by number.
func notIntegerFirst(a, b string) int {
	x, y := exactOf(a), exactOf(b)
	if x.integer() != y.integer() {
		if y.integer() {
			return -1
		}
		return 1
	}
	return x.compare(y)
}

// classesOf returns the classes for a list of labels, in the order of Encoder.Classes.
func classesOf(list []string, texts bool) []string {
	if texts {
		slices.Sort(list)
		return list
	}
	spelling := map[exactNumber]string{} // the shortest spelling of each number
	for _, text := range list {
		v := exactOf(text)
		if current, ok := spelling[v]; !ok || shorter(text, current) {
			spelling[v] = text
		}
	}
	return slices.SortedFunc(maps.Values(spelling), byNumber)
}

const (
	needsClass = "a target needs a class: give it one or drop the row"
	asLabels   = ", as the other labels are"
)

// spelledLabel is the end of the error text about a label that is a number in an unsupported spelling.
const spelledLabel = "{; if it is a class, $task=classification}"

// shorter reports whether a is shorter than b, or has the same length and precedes b in the order of bytes.
func shorter(a, b string) bool {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) < 0
}

func byNumber(a, b string) int { return exactOf(a).compare(exactOf(b)) }

// A classifier finds the class of a cell.
type classifier struct {
	labels     []string
	texts      map[string]int
	numbers    map[exactNumber]int // class of each label if every label is a number, otherwise nil
	classCache map[float64]int     // cache of classes of numbers below 2⁵³
	open       bool                // an unknown class is added, and is not an error
}

func newClassifier(labels []string) *classifier {
	f := &classifier{labels: labels, texts: make(map[string]int, len(labels)), numbers: map[exactNumber]int{}, classCache: map[float64]int{}}
	for i, label := range labels {
		f.texts[label] = i
		if _, k := parseCell(label); k != number {
			f.numbers = nil
		} else if f.numbers != nil {
			f.numbers[exactOf(label)] = i
		}
	}
	return f
}

// find returns the class of a text. Several goroutines may call it.
func (f *classifier) find(text string) (class int, ok bool) {
	if class, ok = f.texts[text]; ok || f.numbers == nil {
		return class, ok
	}
	if _, k := parseCell(text); k == number {
		class, ok = f.numbers[exactOf(text)]
	}
	return class, ok
}

// class returns the class of a cell, compared as a number if all labels are numbers and as a text otherwise.
func (f *classifier) class(t *Table, c *column, row int) (int, error) {
	v, k := c.number(row)
	exact := c.plain && k == number && math.Abs(v) < 1<<53
	if exact {
		if i, ok := f.classCache[v]; ok {
			return i, nil
		}
	}
	text := c.cell(row)
	if c.plain && c.rounded && k == number && !exact {
		return 0, t.cellError(c, row, text, fmt.Sprintf("is too large to be compared exactly in a column of more than %d distinct numbers", MaxCategories))
	}
	if i, ok := f.find(text); ok {
		if exact {
			f.classCache[v] = i
		}
		return i, nil
	}
	if k < number {
		return 0, t.missingError(c, row, needsClass)
	}
	if f.open {
		class, ok := f.add(text)
		if !ok {
			return 0, t.newError(c.name, tooManyClasses)
		}
		return class, nil
	}
	return 0, t.cellError(c, row, text, fmt.Sprintf("is an unknown class; known are %s%s", list(f.labels), nearest(text, f.labels)))
}

// tooManyClasses is the error text of ScoredTargets for a column with too many classes.
var tooManyClasses = fmt.Sprintf("has more than %d classes, including the classes of the model", MaxCategories)

// add returns the class of a text. A new text becomes a class; ok is false if there are already MaxCategories classes.
func (f *classifier) add(text string) (class int, ok bool) {
	if class, ok = f.find(text); ok || len(f.labels) >= MaxCategories {
		return class, ok
	}
	class = len(f.labels)
	f.labels = append(slices.Clip(f.labels), text)
	f.texts[text] = class
	if _, k := parseCell(text); f.numbers != nil && k == number {
		f.numbers[exactOf(text)] = class
	}
	return class, true
}

// ScoredTargets returns the targets of a table, as Targets does, to compare them with predictions. Classes that the
// training table lacks have the indices len(Classes()), len(Classes()) + 1, …, in order of first occurrence.
// ScoredTargets also returns the labels of all indices, or nil for a numeric target.
func (e *Encoder) ScoredTargets(t *Table) (y *mat.Dense, classes []string, err error) {
	if e == nil || e.Labels == nil || t.Rows() == 0 {
		y, err = e.Targets(t)
		return y, nil, err
	}
	if err := e.Check(); err != nil {
		return nil, nil, err
	}
	f := newClassifier(e.Labels)
	f.open = true
	y, err = e.indices(t, f)
	return y, f.labels, err
}

// indices does the work of Encoder.targets for a target of classes. f finds the class of a cell.
func (e *Encoder) indices(t *Table, f *classifier) (*mat.Dense, error) {
	c := t.find(e.Outputs[0])
	if c == nil {
		return nil, t.noColumn("target column", e.Outputs[0], t.Names())
	}
	y := mat.NewDense(t.rows, 1, nil)
	var classes []int // for each entry of a coded column, 1 + its class, or 0 if the class is not known yet
	if !c.plain {
		classes = make([]int, len(c.entries))
	}
	for i := range t.rows {
		if !c.plain && c.codes[i] >= 0 && classes[c.codes[i]] > 0 {
			y.Set(i, 0, float64(classes[c.codes[i]]-1))
			continue
		}
		class, err := f.class(t, c, i)
		if err != nil {
			return nil, err
		}
		if !c.plain {
			classes[c.codes[i]] = class + 1
		}
		y.Set(i, 0, float64(class))
	}
	return y, nil
}

// checkLabels is the part of Check about classes.
func (e *Encoder) checkLabels() error {
	if e.Labels == nil {
		return nil
	}
	if len(e.Outputs) != 1 {
		return fmt.Errorf("dataset: encoder: must have exactly one target if it has classes, has %s", count.Of(len(e.Outputs), "target"))
	}
	if len(e.Labels) == 0 || len(e.Labels) > MaxCategories {
		return fmt.Errorf("dataset: encoder: must have 1 to %d classes, has %d", MaxCategories, len(e.Labels))
	}
	for _, label := range e.Labels {
		if label == "" || !utf8.ValidString(label) || strings.TrimSpace(label) != label {
			return fmt.Errorf("dataset: encoder: %s is not a class", quote(label))
		}
	}
	compare := strings.Compare
	if newClassifier(e.Labels).numbers != nil {
		compare = byNumber
	}
	for i, label := range e.Labels[1:] {
		if compare(e.Labels[i], label) >= 0 {
			return errors.New("dataset: encoder: classes must be sorted and distinct, but " + quote(e.Labels[i]) + " precedes " + quote(label))
		}
	}
	return nil
}

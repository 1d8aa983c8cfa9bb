package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/gonum/mat"
)

// Classes returns the labels of the classes that the target names, as they
// were written in the training table: class i of the matrix that Targets makes
// is Classes()[i]. It is nil when the target is a number to be predicted, not
// a class.
//
// Labels that are all numbers are in the order of the numbers, and two
// spellings of one number, such as 1 and 1.0, are one class, called by the
// shortest; other labels are in the order of their bytes. The order does not
// depend on that of the rows.
func (e *Encoder) Classes() []string { return slices.Clone(e.Labels) }

// learnLabels learns the classes of the one target.
func (e *Encoder) learnLabels(t *Table) error {
	if len(e.Outputs) != 1 {
		return t.fault("", fmt.Sprintf("classes are told from one target column, %d are named", len(e.Outputs)))
	}
	c := t.find(e.Outputs[0])
	if c == nil {
		return t.noColumn("target column", e.Outputs[0], t.Names())
	}
	labels, err := t.labels(c)
	if err != nil {
		return err
	}
	if kinds := len(labels); kinds > MaxCategories || kinds > few && kinds > t.rows/2 {
		return t.fault(c.name, fmt.Sprintf("has %s different values in %d rows: too many to be classes; a target of numbers needs a learner for regression", atMost(kinds), t.rows))
	}
	e.Labels = labels
	return nil
}

// atMost is n, or that it is more than what is counted.
func atMost(n int) string {
	if n > MaxCategories {
		return fmt.Sprintf("more than %d", MaxCategories)
	}
	return fmt.Sprint(n)
}

// labels returns the different labels of a column in the order of Classes; it
// stops looking when there are more than MaxCategories. A missing cell is an
// error.
func (t *Table) labels(c *column) ([]string, error) {
	texts := c.hasTexts()
	seen := map[string]bool{}
	spelling := map[float64]string{} // the shortest of each number
	for i := range t.rows {
		v, text, err := t.label(c, i, texts)
		if err != nil {
			return nil, err
		}
		if seen[text] {
			continue
		}
		if len(seen) > MaxCategories {
			break
		}
		seen[text] = true
		if old, ok := spelling[v]; !texts && (!ok || shorter(text, old)) {
			spelling[v] = text
		}
	}
	var list []string
	if texts {
		for text := range seen {
			list = append(list, text)
		}
		slices.Sort(list)
		return list, nil
	}
	for _, text := range spelling {
		list = append(list, text)
	}
	slices.SortFunc(list, byNumber)
	return list, nil
}

// hasTexts tells whether a column holds texts, so that its cells are compared
// as such; entries that occur in no row do not count.
func (c *column) hasTexts() bool {
	if c.plain || !c.texts {
		return false
	}
	for code, n := range c.census() {
		if n > 0 && c.entries[code].kind == text {
			return true
		}
	}
	return false
}

// label reads a cell of a column of labels. v is its number, where there are
// no texts.
func (t *Table) label(c *column, row int, texts bool) (v float64, label string, err error) {
	v, k := c.number(row)
	switch {
	case k == missing, k == marker && !texts:
		return 0, "", t.missingFault(c, row, "a target needs a class: give it one or drop the row")
	case k != number && !texts:
		return 0, "", t.cellFault(c, row, c.cell(row), k.rule()+", as the other labels are")
	}
	return v, c.cell(row), nil
}

// shorter orders the spellings of a number.
func shorter(a, b string) bool {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) < 0
}

// byNumber orders two labels that are numbers.
func byNumber(a, b string) int {
	x, _ := parseCell(a)
	y, _ := parseCell(b)
	return cmp.Compare(x, y)
}

// A classifier tells the class of a cell.
type classifier struct {
	labels  []string
	texts   map[string]int
	numbers map[float64]int // nil unless every label is a number
}

func newClassifier(labels []string) *classifier {
	f := &classifier{labels: labels, texts: make(map[string]int, len(labels)), numbers: map[float64]int{}}
	for i, label := range labels {
		f.texts[label] = i
		v, k := parseCell(label)
		if k != number {
			f.numbers = nil
		} else if f.numbers != nil {
			f.numbers[v] = i
		}
	}
	return f
}

// class returns the class of a cell, by its text or, where all labels are
// numbers, by its number.
func (f *classifier) class(t *Table, c *column, row int) (int, error) {
	v, k := c.number(row)
	if k == number && f.numbers != nil {
		if i, ok := f.numbers[v]; ok {
			return i, nil
		}
	}
	text := c.cell(row)
	if i, ok := f.texts[text]; ok {
		return i, nil
	}
	if k == missing || k == marker && f.numbers != nil {
		return 0, t.missingFault(c, row, "a target needs a class: give it one or drop the row")
	}
	return 0, t.cellFault(c, row, text, fmt.Sprintf("is an unknown class; known are %s%s", list(f.labels), nearest(text, f.labels)))
}

// indices is targets where the target names classes.
func (e *Encoder) indices(t *Table) (*mat.Dense, error) {
	c := t.find(e.Outputs[0])
	if c == nil {
		return nil, t.noColumn("target column", e.Outputs[0], t.Names())
	}
	f := newClassifier(e.Labels)
	y := mat.NewDense(t.rows, 1, nil)
	var known []int // coded: entry → class + 1, 0 when not looked up yet
	if !c.plain {
		known = make([]int, len(c.entries))
	}
	for i := range t.rows {
		if !c.plain && c.codes[i] >= 0 && known[c.codes[i]] > 0 {
			y.Set(i, 0, float64(known[c.codes[i]]-1))
			continue
		}
		class, err := f.class(t, c, i)
		if err != nil {
			return nil, err
		}
		if !c.plain {
			known[c.codes[i]] = class + 1
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
		return fmt.Errorf("dataset: encoder: has classes and %d targets, not one", len(e.Outputs))
	}
	if len(e.Labels) == 0 || len(e.Labels) > MaxCategories {
		return fmt.Errorf("dataset: encoder: must have 1 to %d classes, has %d", MaxCategories, len(e.Labels))
	}
	for _, label := range e.Labels {
		if label == "" || !utf8.ValidString(label) || strings.TrimSpace(label) != label {
			return fmt.Errorf("dataset: encoder: %s is no class", quote(label))
		}
	}
	ordered := strings.Compare
	if newClassifier(e.Labels).numbers != nil {
		ordered = byNumber
	}
	for i, label := range e.Labels[1:] {
		if ordered(e.Labels[i], label) >= 0 {
			return errors.New("dataset: encoder: classes must be sorted and different: " + quote(e.Labels[i]) + ", " + quote(label))
		}
	}
	return nil
}

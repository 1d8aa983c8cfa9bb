package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/internal/count"
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
func (e *Encoder) learnLabels(t *Table, anyLabels bool) error {
	if len(e.Outputs) != 1 {
		return t.fault("", fmt.Sprintf("classes are told from one target column, %d are named", len(e.Outputs)))
	}
	c := t.find(e.Outputs[0])
	if c == nil {
		return t.noColumn("target column", e.Outputs[0], t.Names())
	}
	texts := c.hasTexts()
	for i := range t.rows {
		if err := t.checkLabel(c, i, texts); err != nil {
			return err
		}
	}
	list := c.spellings(t.rows)
	if rule := labelsRule(len(list), t.rows, texts, anyLabels); rule != "" {
		return t.fault(c.name, rule)
	}
	e.Labels = classesOf(list, texts)
	return nil
}

// labelsRule returns what is wrong with a target of that many different labels,
// or "". More than a few are classes when there are two rows for each of them, of
// numbers ten: a measured number has about as many values as rows. See
// Rules.AnyLabels.
func labelsRule(kinds, rows int, texts, anyLabels bool) string {
	each := 10
	if texts {
		each = 2
	}
	if kinds <= MaxCategories && (anyLabels || kinds <= few || kinds <= rows/each) {
		return ""
	}
	some, way := fmt.Sprint(kinds), "; if they are classes, say so"
	if kinds > MaxCategories {
		some, way = fmt.Sprintf("more than %d", MaxCategories), ""
	}
	return fmt.Sprintf("has %s different values in %s: too many to be classes; a target of numbers needs a learner for regression%s", some, count.Of(rows, "row"), way)
}

// spellings returns the different cells of a column that are not empty; it
// stops at one more than MaxCategories.
func (c *column) spellings(rows int) []string {
	var list []string
	if !c.plain {
		for code, n := range c.census() {
			if n > 0 {
				list = append(list, c.entries[code].text)
			}
		}
		return list
	}
	seen := map[float64]bool{}
	for i := range rows {
		if v, k := c.number(i); k == number && !seen[v] && len(seen) <= MaxCategories {
			seen[v] = true
			list = append(list, c.cell(i))
		}
	}
	return list
}

// classesOf puts different labels into the order of Classes.
func classesOf(list []string, texts bool) []string {
	if texts {
		slices.Sort(list)
		return list
	}
	spelling := map[float64]string{} // the shortest of each number
	for _, text := range list {
		v, _ := parseCell(text)
		if old, ok := spelling[v]; !ok || shorter(text, old) {
			spelling[v] = text
		}
	}
	return slices.SortedFunc(maps.Values(spelling), byNumber)
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

// checkLabel returns what is wrong with a cell of a column of labels.
func (t *Table) checkLabel(c *column, row int, texts bool) error {
	switch _, k := c.number(row); {
	case k == missing, k == marker && !texts:
		return t.missingFault(c, row, "a target needs a class: give it one or drop the row")
	case k != number && !texts:
		return t.cellFault(c, row, c.cell(row), k.rule()+", as the other labels are")
	}
	return nil
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
		return fmt.Errorf("dataset: encoder: has classes and %s, not one", count.Of(len(e.Outputs), "target"))
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

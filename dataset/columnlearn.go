package dataset

import (
	"maps"
	"slices"
)

// A columnLearner accumulates what Learn needs of a column, one part of a file at a time. Like a
// column it is coded until it has more than MaxCategories distinct cells, and plain afterwards.
type columnLearner struct {
	name  string
	plain bool
	seen  int // rows
	empty int // rows without a value
	place int // position of the column in the sample

	// Coded: the distinct cells, and how often each occurs.
	index    map[string]int
	entries  []entry
	counts   []int
	weights  []float64 // for each distinct cell, the sum of the weights of its rows
	texts    bool
	declared bool                      // the user named it as categorical
	first    [text + 1]firstOccurrence // the first row with a cell of each kind

	moments Moments // plain: the moments of the numbers

	labelSet map[string]bool // labels in plain columns

	unordered bool    // the cells are not integers in increasing order
	last      float64 // of them
}

// A firstOccurrence records where a cell first occurred, with the error to report if the cell turns
// out to be faulty.
type firstOccurrence struct {
	row   int
	fault *Error
}

// record stores the first cell of each kind in a coded column. before is the number of rows that
// precede t.
func (f *columnLearner) record(t *Table, c *column, before int) {
	open := [text + 1]bool{}
	left := 0
	for k := range f.first {
		if open[k] = f.first[k].fault == nil && kind(k) != number; open[k] {
			left++
		}
	}
	rare := slices.Contains(c.codes, -1)
	for _, e := range c.entries {
		rare = rare || e.kind != number && open[e.kind]
	}
	for i := 0; rare && i < t.rows && left > 0; i++ {
		if _, k := c.number(i); open[k] {
			f.first[k] = firstOccurrence{before + i, t.cellFault(c, i, c.cell(i), "")}
			open[k] = false
			left--
		}
	}
}

// asError returns the error for a recorded cell that breaks the given rule.
func (s firstOccurrence) asError(rule string) *Error {
	e := *s.fault
	e.Rule = rule
	return &e
}

// missingFault is Table.missingFault for a recorded cell.
func (s firstOccurrence) missingFault(rule string) *Error {
	if s.fault.Value != "" {
		return s.asError("stands for a missing cell; " + rule)
	}
	return s.asError("the cell is empty; " + rule)
}

// earlier returns the occurrence that comes first in the file. Either argument may be absent.
func earlier(a, b firstOccurrence) firstOccurrence {
	if a.fault == nil || b.fault != nil && b.row < a.row {
		return b
	}
	return a
}

// add adds the cells of a part. m holds their moments if c is plain.
func (f *columnLearner) add(s *summary, c *column, m Moments, before int) error {
	t := s.t
	if c.plain && !f.plain {
		if f.texts {
			return f.tooMany(t, before+t.rows)
		}
		f.makePlain()
	}
	switch {
	case c.plain:
		f.moments.add(m)
	case f.plain:
		values, err := t.numbers(c)
		if err != nil {
			return err
		}
		f.moments.add(momentsOf(values, s.weights))
	default:
		f.addEntries(t, c, s.weights, before)
		if len(f.entries) > MaxCategories {
			if f.texts {
				return f.tooMany(t, before+t.rows)
			}
			if odd := earlier(f.first[notFinite], f.first[outOfRange]); odd.fault != nil {
				return f.oddFault()
			}
			f.makePlain()
		}
	}
	return nil
}

// addEntries adds a coded column to a coded one.
func (f *columnLearner) addEntries(t *Table, c *column, weights []float64, before int) {
	if f.index == nil {
		f.index = map[string]int{}
	}
	counts := c.valueCounts()
	valueWeights := c.valueWeights(counts, weights)
	for code, n := range counts {
		if n == 0 {
			continue
		}
		e := c.entries[code]
		at, ok := f.index[e.text]
		if !ok {
			at = len(f.entries)
			f.index[e.text] = at
			f.entries = append(f.entries, e)
			f.counts, f.weights = append(f.counts, 0), append(f.weights, 0)
			f.texts = f.texts || e.kind >= spelled
		}
		f.counts[at] += n
		f.weights[at] += valueWeights[code]
	}
	f.record(t, c, before)
}

// makePlain drops the distinct cells, which are all numbers or missing.
func (f *columnLearner) makePlain() {
	f.plain = true
	for i, e := range f.entries {
		if e.kind == number {
			f.moments.add(repeated(f.weights[i], e.value))
		}
	}
	f.index, f.entries, f.counts, f.weights = nil, nil, nil, nil
}

// tooMany returns the error for a column with too many distinct texts.
func (f *columnLearner) tooMany(t *Table, rows int) error {
	present := 0
	for _, n := range f.counts {
		present += n
	}
	return f.textFault(t, max(len(f.entries), MaxCategories+1), present, rows)
}

// textFault returns the error for the rule that textRule finds broken, or nil.
func (f *columnLearner) textFault(t *Table, kinds, present, rows int) error {
	example := f.first[text]
	value := ""
	if example.fault != nil {
		value = example.fault.Value
	}
	switch rule, k := textRule(f.entries, f.counts, kinds, present, rows, f.declared, value); {
	case k == spelled:
		return f.spelledFault(t, rule)
	case k == text:
		return example.asError(rule)
	case rule != "":
		return t.fault(f.name, rule)
	}
	return nil
}

// spelledFault returns the error for the first cell that is a number in an unsupported spelling.
func (f *columnLearner) spelledFault(t *Table, declare string) error {
	odd := f.first[spelled]
	return odd.asError(spellingRule(t.reading, odd.fault.Value, spelled) + declare)
}

// oddFault returns the error for the first cell of a column of numbers that is not a number, or
// nil.
func (f *columnLearner) oddFault() error {
	for _, k := range []kind{notFinite, outOfRange} {
		if odd := f.first[k]; odd.fault != nil && odd == earlier(f.first[notFinite], f.first[outOfRange]) {
			return odd.asError(k.rule())
		}
	}
	return nil
}

// input returns the encoding of the column, learned from the whole file. j is the column's position
// in the sample.
func (f *columnLearner) input(l *learner, j int) (*Input, error) {
	if f.declared && f.plain {
		return nil, l.p.t.fault(f.name, notCategorical)
	}
	if f.texts || f.declared {
		x, present := learnCategories(f.entries, f.counts, f.weights)
		if len(x.Categories) == 0 {
			return nil, l.p.t.fault(f.name, noValues)
		}
		if err := f.textFault(l.p.t, len(x.Categories), present, l.rows); err != nil {
			return nil, err
		}
		if empty := earlier(f.first[missing], f.first[marker]); l.rules.RefuseMissing && empty.fault != nil {
			return nil, empty.missingFault(refused)
		}
		return &Input{Name: f.name, Text: x}, nil
	}
	if err := f.oddFault(); err != nil {
		return nil, err
	}
	if empty := earlier(f.first[missing], f.first[marker]); l.rules.RefuseMissing && empty.fault != nil {
		return nil, empty.missingFault(refused)
	}
	n, rule := f.number(l, j)
	if rule != "" {
		return nil, l.p.t.fault(f.name, rule)
	}
	return &Input{Name: f.name, Number: n}, nil
}

// number learns the encoding of a column of numbers: from the sample if the sample is the whole
// file, otherwise from the counts of the cells or from the moments.
func (f *columnLearner) number(l *learner, j int) (*Number, string) {
	if l.rows <= l.keep {
		return numberOf(l.values(j), l.weights, l.rules.Standardize)
	}
	var fill float64
	var ok bool
	if f.plain {
		values := l.values(j)
		fill, ok = momentsOf(values, l.weights).median(values, l.weights)
	} else {
		fill, ok = f.countedMedian()
		f.makePlain()
	}
	if !ok && f.moments.N > 0 { // the sample missed every row that has a value
		fill = f.moments.Mean
	}
	return f.moments.Number(fill, l.weight-f.moments.N, l.rules.Standardize)
}

// countedMedian returns the median computed from the counts of the cells.
func (f *columnLearner) countedMedian() (m float64, ok bool) {
	var values, weights []float64
	for i, e := range f.entries {
		if e.kind == number {
			values, weights = append(values, e.value), append(weights, f.weights[i])
		}
	}
	return weightedMedian(values, weights)
}

// addLabels adds the cells of a part of the file, for a target that names classes.
func (f *columnLearner) addLabels(t *Table, c *column, before int) error {
	if !c.plain {
		f.addEntries(t, c, nil, before)
	} else {
		if f.labelSet == nil {
			f.labelSet = map[string]bool{}
		}
		for _, s := range c.labels(t.rows) {
			f.labelSet[s] = true
		}
		for i := 0; i < t.rows && len(f.entries)+len(f.labelSet) <= MaxCategories; i++ {
			if err := t.checkLabel(c, i, false, true); err != nil {
				return err
			}
		}
	}
	if len(f.entries)+len(f.labelSet) > MaxCategories {
		if f.first[spelled].fault != nil {
			return f.spelledFault(t, "")
		}
		return t.fault(f.name, labelsRule(f.labelList(), before+t.rows, f.texts, true))
	}
	return nil
}

// labelList returns the labels that occur.
func (f *columnLearner) labelList() []string {
	for _, e := range f.entries {
		if f.labelSet == nil {
			f.labelSet = map[string]bool{}
		}
		f.labelSet[e.text] = true
	}
	return slices.Collect(maps.Keys(f.labelSet))
}

// labels returns the classes, learned from the labels of the whole file.
func (f *columnLearner) labels(t *Table, rows int, anyLabels bool) ([]string, error) {
	const rule = "a target needs a class: give it one or drop the row"
	empty := earlier(f.first[missing], f.first[marker])
	if !f.texts {
		if odd := earlier(f.first[notFinite], f.first[outOfRange]); odd.fault != nil && (empty.fault == nil || odd.row < empty.row) {
			err := f.oddFault().(*Error)
			err.Rule += ", as the other labels are"
			return nil, err
		}
	}
	if odd := f.first[spelled]; odd.fault != nil && !anyLabels && (empty.fault == nil || odd.row < empty.row) {
		return nil, f.spelledFault(t, spelledLabel)
	}
	if empty.fault != nil {
		return nil, empty.missingFault(rule)
	}
	list := f.labelList()
	if rule := labelsRule(list, rows, f.texts, anyLabels); rule != "" {
		return nil, t.fault(f.name, rule)
	}
	return classesOf(list, f.texts), nil
}

package dataset

import (
	"maps"
	"math"
	"slices"
)

// Cells are the counts from which Learn, Stream.Learn and Beam decide whether a column
// holds numbers, categories or classes. Counts of different rows merge in any order.
type Cells struct {
	Numbers, Texts, Missing int64
	NotFinite               int64 // infinities, and numbers outside the range of float64
	Spelled                 int64 // numbers in a spelling that is not supported, such as 12%

	// Counts maps each distinct cell that is not missing to the number of times it occurs. If there
	// are more than MaxCategories distinct cells, Many is set. Counts then holds no numbers, and at
	// least the first MaxCategories texts in sorted order.
	Counts map[string]int64
	Many   bool
}

// Add counts the cells of a column of t. A name that t does not have is an *Error.
func (c *Cells) Add(t *Table, name string) error {
	column, err := t.column(name)
	if err != nil {
		return err
	}
	if !column.plain {
		for code, n := range column.valueCounts() {
			c.count(column.entries[code].text, column.entries[code].kind, int64(n))
		}
		for _, code := range column.codes {
			c.Missing += int64(one(code < 0))
		}
		return nil
	}
	exact := map[float64]int64{} // below 2⁵³, where no other cell rounds to the same number
	for i := range t.rows {
		v, k := column.number(i)
		switch {
		case k == missing:
			c.Missing++
		case k == number && c.Many:
			c.Numbers++
		case k == number && math.Abs(v) < 1<<53:
			if exact[v]++; len(exact) > MaxCategories {
				c.addNumbers(exact)
			}
		default:
			c.count(column.cell(i), k, 1)
		}
	}
	c.addNumbers(exact)
	return nil
}

// addNumbers adds counts of numbers, and clears them.
func (c *Cells) addNumbers(counts map[float64]int64) {
	for v, n := range counts {
		c.count(numberText(v), number, n)
	}
	clear(counts)
}

// AddZeros adds n cells of 0, which a sparse format leaves out.
func (c *Cells) AddZeros(n int64) { c.count("0", number, n) }

func (c *Cells) count(cell string, k kind, n int64) {
	switch {
	case n == 0:
		return
	case k == number:
		c.Numbers += n
	case k == text:
		c.Texts += n
	case k == spelled:
		c.Spelled += n
	case k > number:
		c.NotFinite += n
	default:
		c.Missing += n
		return
	}
	if c.Many && k == number {
		return
	}
	if c.Counts == nil {
		c.Counts = map[string]int64{}
	}
	c.Counts[cell] += n
	c.limit()
}

// Merge adds the counts of other rows to c.
func (c *Cells) Merge(o *Cells) {
	c.Numbers, c.Texts, c.Missing = c.Numbers+o.Numbers, c.Texts+o.Texts, c.Missing+o.Missing
	c.NotFinite, c.Spelled = c.NotFinite+o.NotFinite, c.Spelled+o.Spelled
	if c.Counts == nil {
		c.Counts = map[string]int64{}
	}
	for cell, n := range o.Counts {
		c.Counts[cell] += n
	}
	if c.Many = c.Many || o.Many; c.Many {
		c.leaveNumbersOut()
	}
	c.limit()
}

// limit keeps the size of Counts bounded. It sorts Counts once per MaxCategories new texts, not at
// every new text.
func (c *Cells) limit() {
	if !c.Many && len(c.Counts) > MaxCategories {
		c.Many = true
		c.leaveNumbersOut()
	}
	if len(c.Counts) > 2*MaxCategories {
		for _, cell := range slices.Sorted(maps.Keys(c.Counts))[MaxCategories:] {
			delete(c.Counts, cell)
		}
	}
}

func (c *Cells) leaveNumbersOut() {
	maps.DeleteFunc(c.Counts, func(cell string, _ int64) bool {
		_, k := parseCell(cell)
		return k == number
	})
}

// entries returns the distinct cells as the entries of a coded column. If there are too many, one
// entry represents all numbers, and the last text represents the texts that Counts lacks.
func (c *Cells) entries() (entries []entry, counts []int) {
	left := c.Texts + c.Spelled
	for _, cell := range slices.Sorted(maps.Keys(c.Counts)) {
		v, k := parseCell(cell)
		if c.Many && len(entries) == MaxCategories {
			break
		}
		if k == text { // a number in an unsupported spelling, when parsed without the settings of its file
			left -= c.Counts[cell]
		}
		entries, counts = append(entries, entry{cell, v, k}), append(counts, int(c.Counts[cell]))
	}
	if c.Many {
		if left > 0 {
			counts[len(counts)-1] += int(left)
		}
		entries, counts = append(entries, entry{kind: number}), append(counts, int(c.Numbers))
	}
	return entries, counts
}

// A Fault is an error found in the counts of a column's cells.
type Fault struct {
	rule string // the rule that the column breaks; "" if one cell breaks a rule
	find func(t *Table, c *column) error
}

// Rule returns the rule that the column as a whole breaks, or "" if In finds the faulty cell.
func (f *Fault) Rule() string { return f.rule }

// In returns the error for the first faulty cell in a part of the table, or nil if the part has
// none.
func (f *Fault) In(t *Table, name string) error {
	c, err := t.column(name)
	if err != nil {
		return err
	}
	return f.find(t, c)
}

// ofFirst returns the Fault whose In reports the first cell for which broken returns an error.
func ofFirst(broken func(t *Table, c *column, row int) error) *Fault {
	return &Fault{find: func(t *Table, c *column) error {
		for i := range t.rows {
			if err := broken(t, c, i); err != nil {
				return err
			}
		}
		return nil
	}}
}

// FirstText reports the first cell that is a text, for a column where texts break the given rule.
func FirstText(rule string) *Fault { return firstOf(text, rule) }

// firstOf reports the first cell of the given kind. If the cell breaks a rule of its own, the error
// states that rule instead of the given one.
func firstOf(kind kind, rule string) *Fault {
	return ofFirst(func(t *Table, c *column, row int) error {
		_, k := c.number(row)
		switch {
		case k != kind:
			return nil
		case k == spelled:
			return t.cellFault(c, row, c.cell(row), c.rule(row, k)+rule)
		}
		return t.cellFault(c, row, c.cell(row), rule)
	})
}

// FirstMissing reports the first missing cell, for columns where missing cells are refused.
func FirstMissing() *Fault {
	return ofFirst(func(t *Table, c *column, row int) error {
		if _, k := c.number(row); k < number {
			return t.missingFault(c, row, refused)
		}
		return nil
	})
}

// FirstNotNumber reports the first cell of a column of numbers that is not a finite number.
func FirstNotNumber() *Fault {
	return ofFirst(func(t *Table, c *column, row int) error {
		if _, k := c.number(row); k > number {
			return t.notNumber(c, row, k)
		}
		return nil
	})
}

// FirstNoTarget reports the first cell of a numeric target that is missing or not a number.
func FirstNoTarget() *Fault {
	return ofFirst(func(t *Table, c *column, row int) error { _, err := t.targetCell(c, row); return err })
}

// Categories returns the categories that Learn derives from a column of texts in a table of the
// given number of rows, or nil if the column holds numbers. example returns the first text, for the
// message.
func (c *Cells) Categories(rows int64, example func() string) (*Text, *Fault) {
	if c.Texts+c.Spelled == 0 {
		return nil, nil
	}
	entries, counts := c.entries()
	weights := make([]float64, len(counts))
	for i, n := range counts {
		weights[i] = float64(n)
	}
	x, present := learnCategories(entries, counts, weights)
	kinds := len(x.Categories)
	if c.Many {
		kinds = MaxCategories + 1
	}
	if c.Spelled > 0 {
		entries, counts = append(entries, entry{kind: spelled}), append(counts, int(c.Spelled))
	}
	rule, k := textRule(entries, counts, kinds, present, int(rows), false, "")
	switch {
	case k != missing:
		return nil, firstOf(k, rule)
	case rule != "":
		rule, _ = textRule(entries, counts, kinds, present, int(rows), false, example())
		return nil, &Fault{rule: rule}
	}
	return x, nil
}

// Classes returns the classes of a target in a table of the given number of rows, as
// Encoder.Classes would.
func (c *Cells) Classes(rows int64, anyLabels bool) ([]string, *Fault) {
	texts := c.Texts+c.Spelled > 0
	if !c.Many && (c.Missing > 0 || c.NotFinite > 0 && !texts || c.Spelled > 0 && !anyLabels) {
		return nil, ofFirst(func(t *Table, column *column, row int) error { return t.checkLabel(column, row, texts, anyLabels) })
	}
	entries, _ := c.entries()
	if c.Many {
		entries = make([]entry, MaxCategories+1)
	}
	list := make([]string, len(entries))
	for i, e := range entries {
		list[i] = e.text
	}
	if rule := labelsRule(list, int(rows), texts, anyLabels); rule != "" {
		return nil, &Fault{rule: rule}
	}
	return classesOf(list, texts), nil
}

package dataset

import (
	"errors"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// DefaultNAValues returns the cells of a CSV file that stand for a missing value
// besides the empty one: those of pandas.read_csv, compared with upper and lower case.
func DefaultNAValues() []string {
	return []string{
		"#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
		"<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
	}
}

// MissingValues returns what to set File.NAValues to so that a file is read as the
// training table was. An encoder of before the list was stored took these, in any
// case, for missing in columns of numbers.
func (e *Encoder) MissingValues() []string {
	if e.NAValues != nil {
		return e.NAValues
	}
	return []string{"?", "NA", "na", "Na", "N/A", "n/a", "NULL", "null", "Null", "NaN", "nan", "NAN", "Nan"}
}

// naValues are the cells that stand for a missing value; nil for none.
type naValues struct {
	list    []string
	texts   map[string]bool
	numbers map[float64]bool // those of them that are numbers, however they are written
}

func newNAValues(list []string) *naValues {
	if list == nil {
		list = DefaultNAValues()
	}
	m := &naValues{list: []string{}, texts: map[string]bool{}, numbers: map[float64]bool{}}
	for _, s := range list {
		if s = strings.TrimSpace(s); s == "" || m.texts[s] {
			continue // an empty cell is always missing
		}
		m.list, m.texts[s] = append(m.list, s), true
		if v, k := parseCell(s); k == number {
			m.numbers[v] = true
		}
	}
	slices.Sort(m.list)
	return m
}

// parse is parseCell, by which a cell of the list is a marker.
func (m *naValues) parse(s string) (float64, kind) {
	v, k := parseCell(s)
	if m != nil && k != missing && (m.texts[s] || k == number && m.numbers[v]) {
		return math.NaN(), marker
	}
	return v, k
}

// plain reports whether every number stands for itself.
func (m *naValues) plain() bool { return m == nil || len(m.numbers) == 0 }

func (e *Encoder) checkNAValues() error {
	for _, s := range e.NAValues {
		if s == "" || strings.TrimSpace(s) != s || !utf8.ValidString(s) {
			return errors.New("dataset: encoder: " + quote(s) + " is no marker of missing values")
		}
	}
	return nil
}

// notNumber is the error for a cell of a column of numbers that is none.
func (t *Table) notNumber(c *column, row int, k kind) *Error {
	rule := k.rule()
	if c.na != nil && k == text {
		rule += "; correct it{, or $na-values}"
	}
	return t.cellFault(c, row, c.cell(row), rule)
}

// isOdd reports whether the texts of a column are faults in a column of numbers, and
// not categories: when they have neither a letter nor a digit and are not more than
// the numbers, when they are at most a tenth of the cells, or when there is one without
// a digit and at least two numbers. 12a is a house number among nine of 12 or fewer.
func isOdd(entries []entry, counts []int) (odd bool, numbers, cells int) {
	texts, words, digits := 0, false, false
	for code, e := range entries {
		switch n := counts[code]; {
		case n == 0:
		case e.kind == number:
			numbers += n
		case e.kind == text:
			texts += n
			digits = digits || strings.ContainsFunc(e.text, unicode.IsDigit)
			words = words || digits || strings.ContainsFunc(e.text, unicode.IsLetter)
		}
	}
	cells = texts + numbers
	odd = texts > 0 && (!words && texts <= numbers || 10*texts <= cells || texts == 1 && !digits && numbers >= 2)
	return odd, numbers, cells
}

package dataset

import (
	"errors"
	"math"
	"slices"
	"strings"
	"unicode/utf8"
)

// defaultNAValues returns the defaults of pandas.read_csv for texts of missing cells.
func defaultNAValues() []string {
	return []string{
		"#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
		"<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
	}
}

// missingValues returns the texts of missing cells in the training table, besides the empty cell. Encoders of older
// versions do not store them: for these, missingValues returns the defaults of these versions.
func (e *Encoder) missingValues() []string {
	if e.NAValues != nil {
		return e.NAValues
	}
	return []string{"?", "NA", "na", "Na", "N/A", "n/a", "NULL", "null", "Null", "NaN", "nan", "NAN", "Nan"}
}

// TrainingDialect returns d with the decimal mark, the thousands mark and the texts of missing cells of the
// training table, where d does not set them.
func (e *Encoder) TrainingDialect(d Dialect) Dialect {
	if d.Decimal == "" && d.Thousands == "" {
		d.Decimal, d.Thousands = e.Decimal, e.Thousands
	}
	if d.NAValues == nil && !d.NoDefaultNA {
		d.NAValues, d.NoDefaultNA = e.missingValues(), true
	}
	return d
}

// A reading specifies how the cells of a table of texts are parsed. A nil reading accepts only plain numbers.
type reading struct {
	marks
	specified bool             // the user specified the decimal mark
	list      []string         // texts of missing cells
	texts     map[string]bool  // the set of the elements of list
	numbers   map[float64]bool // the numbers in list, which match all spellings
}

func newReading(list []string, m marks) *reading {
	r := &reading{marks: m, list: []string{}, texts: map[string]bool{}, numbers: map[float64]bool{}}
	for _, s := range list {
		if s = strings.TrimSpace(s); s == "" || r.texts[s] {
			continue // an empty cell is always missing
		}
		r.list, r.texts[s] = append(r.list, s), true
		if v, k := r.number(s); k == number {
			r.numbers[v] = true
		}
	}
	slices.Sort(r.list)
	return r
}

// parse reads a trimmed cell. The value is NaN unless the kind is number.
func (r *reading) parse(s string) (float64, kind) {
	v, k := r.number(s)
	if r != nil && k != missing && (r.texts[s] || k == number && r.numbers[v]) {
		return math.NaN(), marker
	}
	return v, k
}

// number does the work of the method parse without the check for texts of missing cells.
func (r *reading) number(s string) (v float64, k kind) {
	m := r.marksOr(pointMarks)
	if m.decimal == '.' {
		if v, k = parseCell(s); k != text {
			return v, k
		}
	} else if s == "" {
		return math.NaN(), missing
	} else if v, ok := commaDecimal(s); ok {
		return v, number
	}
	normalized, rule := m.parseSpelling(s)
	switch {
	case normalized != "":
		return parseCell(normalized)
	case rule != "":
		return math.NaN(), otherSpelling
	case m.decimal == '.':
		return math.NaN(), text
	}
	return parseCell(s) // the cell is a word for infinity, or a text
}

// normalize converts a cell that is a number to plain spelling, and returns any other cell unchanged.
func (r *reading) normalize(s string) string {
	m := r.marksOr(pointMarks)
	if m.decimal == '.' {
		if _, k := parseCell(s); k != text {
			return s
		}
	}
	if normalized, _ := m.parseSpelling(s); normalized != "" {
		return normalized
	}
	return s
}

func (r *reading) marksOr(m marks) marks {
	if r == nil {
		return m
	}
	return r.marks
}

// pointOnly reports whether the decimal mark is the point, and no number stands for a missing cell.
func (r *reading) pointOnly() bool {
	return r == nil || len(r.numbers) == 0 && r.marks.decimal == '.'
}

// commaDecimal does the work of the function decimal for numbers whose only mark is a decimal comma.
func commaDecimal[S string | []byte](s S) (v float64, ok bool) {
	var b [32]byte
	if len(s) > len(b) {
		return 0, false
	}
	for i := range len(s) {
		switch c := s[i]; c {
		case '.':
			return 0, false
		case ',':
			b[i] = '.'
		default:
			b[i] = c
		}
	}
	return decimal(b[:len(s)])
}

func (e *Encoder) checkNAValues() error {
	for _, s := range e.NAValues {
		if s == "" || strings.TrimSpace(s) != s || !utf8.ValidString(s) {
			return errors.New("dataset: encoder: " + quote(s) + " cannot represent a missing value")
		}
	}
	return nil
}

// notNumber returns the error for a cell that is not a number, in a column of numbers.
func (t *Table) notNumber(c *column, row int, k kind) *Error {
	rule := c.rule(row, k)
	if c.reading != nil && k == text {
		rule = notANumber
	}
	return t.cellError(c, row, c.cell(row), rule)
}

// rule says what is wrong with a cell of kind k in a column of numbers.
func (c *column) rule(row int, k kind) string { return spellingRule(c.reading, c.cell(row), k) }

func spellingRule(r *reading, cell string, k kind) string {
	if k != otherSpelling {
		return k.rule()
	}
	_, rule := r.marksOr(pointMarks).parseSpelling(cell)
	return rule
}

// notANumber is the error text for a text among numbers.
const notANumber = "is not a number; correct it{, or $na-values}"

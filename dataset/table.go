package dataset

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/mercer-go/mercer/internal/count"
)

// A Table is a set of named columns of equal length. It is immutable, and several goroutines may
// use it. A nil *Table is a table without columns.
type Table struct {
	// Source is the name of the table in errors: the name of the file as given by the caller.
	Source string

	columns      []*column
	found        atomic.Int32 // index after that of the column that find returned last
	rows         int
	lines        []int32  // number of the line at which each row begins; nil if the file has no lines
	origin       []int32  // index of each row in the file or in the original table; nil if the table has all rows
	first        int      // number of rows in the file before the first row of the table
	note         string   // end of the error text about an absent column
	sparse       bool     // features after the last column are 0 in every row
	reading      *reading // how texts, such as the cells of a CSV file, are parsed
	comma        byte     // CSV: the delimiter
	index        bool     // CSV: each row begins with a cell that belongs to no column
	keep         []string // names of columns: see File.Keep
	unnamedCells int      // CSV: number of empty cells at the end of the header
	warnings     []string // see the method ReadWarnings
	peak         int64    // see the method ReadBytes

	features *csr // features of a sparse table; the field columns does not have them
	expand   sync.Once
	expanded []*column // the result of the method allColumns, computed once
}

// ReadBytes returns the approximate number of bytes that the table and the parts of its text file took at the peak
// of reading, or 0 if the table was not read from text.
func (t *Table) ReadBytes() int64 { return t.orEmpty().peak }

// Column is a named column for NewTable. The functions Numbers and Texts return Columns.
type Column struct {
	name    string
	numbers []float64
	texts   []string
	isText  bool
}

// Numbers returns a column of numbers, in which NaN is a missing cell. The column refers to values,
// which must not be changed while the table is in use.
func Numbers(name string, values []float64) Column { return Column{name: name, numbers: values} }

// Texts returns a column of texts, which are parsed like the cells of a file: "" is a missing cell,
// and if every text is a number, the column holds numbers.
func Texts(name string, values []string) Column {
	return Column{name: name, texts: values, isText: true}
}

func (c Column) len() int {
	if c.isText {
		return len(c.texts)
	}
	return len(c.numbers)
}

// NewTable returns a table of columns. source is the name of the table in errors, and may be empty.
// NewTable returns an *Error unless the columns have equal lengths and different, nonempty names,
// and no number is infinite.
func NewTable(source string, columns ...Column) (*Table, error) {
	return Dialect{}.NewTable(source, columns...)
}

// NewTable does the work of the function NewTable, with the texts of missing cells that d specifies.
func (d Dialect) NewTable(source string, columns ...Column) (*Table, error) {
	t := &Table{Source: source, reading: d.pointReading()}
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	if err := t.setNames(names); err != nil {
		return nil, err
	}
	for i, in := range columns {
		if i == 0 {
			t.rows = in.len()
		}
		if in.len() != t.rows {
			return nil, t.newError(in.name, fmt.Sprintf("has %s, but column %s has %d", count.Of(in.len(), "cell"), quote(columns[0].name), t.rows))
		}
		c := t.columns[i]
		if !in.isText {
			c.plain, c.numbers = true, in.numbers
			if row := slices.IndexFunc(in.numbers, isInf); row >= 0 {
				return nil, t.cellError(c, row, fmt.Sprint(in.numbers[row]), notFinite.rule())
			}
			continue
		}
		for row, s := range in.texts {
			if !utf8.ValidString(s) {
				return nil, t.cellError(c, row, s, "is not valid UTF-8")
			}
			c.add(s)
		}
		c.finish()
	}
	return t, nil
}

func isInf(v float64) bool { return math.IsInf(v, 0) }

// setNames checks the names and adds an empty column to t for each of them.
func (t *Table) setNames(names []string) *Error {
	if len(names) == 0 {
		return t.newError("", "has no columns")
	}
	first := make(map[string]int, len(names))
	for i, name := range names {
		name = strings.TrimSpace(name)
		if rule := nameRule(name); rule != "" {
			return t.newError("", fmt.Sprintf("the name %s of column %d %s", quote(name), i+1, rule))
		}
		if j, ok := first[name]; ok {
			return t.newError(name, fmt.Sprintf("the name is used twice, for columns %d and %d", j+1, i+1))
		}
		first[name] = i
		t.columns = append(t.columns, &column{name: strings.Clone(name), reading: t.reading, exact: slices.Contains(t.keep, name)})
	}
	return nil
}

// nameRule returns the rule that the name of a column violates, or "".
func nameRule(name string) string {
	switch {
	case name == "":
		return "is empty"
	case !utf8.ValidString(name):
		return "is not valid UTF-8"
	case strings.ContainsFunc(name, unicode.IsControl):
		return "contains a control character"
	case strings.TrimSpace(name) != name:
		return "begins or ends with a space"
	}
	return ""
}

// OmittedIndex reports whether the first column of a CSV file was omitted because it has no name,
// like the index in files of pandas and the row names in files of R.
func (t *Table) OmittedIndex() bool { return t.orEmpty().index }

// ReadWarnings returns one line for each decision made while reading the file that the user may want
// to change. Pass each line to message.Expand.
func (t *Table) ReadWarnings() []string { return slices.Clone(t.orEmpty().warnings) }

// Rows returns the number of rows.
func (t *Table) Rows() int { return t.orEmpty().rows }

// Sparse reports whether the table comes from a format that omits zeros. Its columns are then x1, x2, … or x0, x1,
// … up to the highest index in the file, followed by label. Features after the last column are 0 in every row.
func (t *Table) Sparse() bool { return t.orEmpty().sparse }

// Names returns the names of the columns in their order.
func (t *Table) Names() []string {
	t = t.orEmpty()
	names := make([]string, 0, t.width()+len(t.columns))
	for j := range t.width() {
		names = append(names, t.features.name(j))
	}
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	return names
}

// Numbers returns a copy of a column of numbers, with NaN for a missing cell. It returns an *Error
// if the column does not exist or a cell is not a number.
func (t *Table) Numbers(name string) ([]float64, error) {
	c, err := t.column(name)
	if err != nil {
		return nil, err
	}
	values, err := t.numbers(c)
	return slices.Clone(values), err
}

// Texts returns the cells of a column, and "" for a missing cell. If the column has more than MaxCategories
// distinct numbers, each number has its shortest form. Texts returns an *Error if the column does not exist.
func (t *Table) Texts(name string) ([]string, error) {
	c, err := t.column(name)
	if err != nil {
		return nil, err
	}
	texts := make([]string, t.rows)
	for i := range texts {
		if _, k := c.number(i); k >= number {
			texts[i] = c.cell(i)
		}
	}
	return texts, nil
}

// OnlyTexts reports whether a column has texts and no number in any spelling. It is false if the column does not exist.
func (t *Table) OnlyTexts(name string) bool {
	c := t.find(name)
	found := false
	for i := 0; c != nil && i < t.rows; i++ {
		_, k := c.number(i)
		if k >= number && k != text {
			return false
		}
		found = found || k == text
	}
	return found
}

// Cells returns the cells of a column as in the file, with "" for an empty cell. In columns that File.Keep does
// not name, each number has its shortest form. Cells returns an *Error if the column does not exist.
func (t *Table) Cells(name string) ([]string, error) {
	c, err := t.column(name)
	if err != nil {
		return nil, err
	}
	cells := make([]string, t.rows)
	for i := range cells {
		cells[i] = c.cell(i)
	}
	return cells, nil
}

// orEmpty returns t, or a table without columns if t is nil.
func (t *Table) orEmpty() *Table {
	if t == nil {
		return &Table{}
	}
	return t
}

// find returns the column with the given name, or nil if the column is absent or cannot be read.
func (t *Table) find(name string) *column {
	t = t.orEmpty()
	first := int(t.found.Load()) // columns are mostly looked up in their order
	for k := range t.columns {
		i := (first + k) % len(t.columns)
		if c := t.columns[i]; c.name == name && c.unreadable == "" {
			t.found.Store(int32(i + 1))
			return c
		}
	}
	return t.sparseColumn(name)
}

// column returns a column, or an *Error that lists the columns of t.
func (t *Table) column(name string) (*column, error) {
	if c := t.find(name); c != nil {
		return c, nil
	}
	return nil, t.noColumn("column", name, t.Names())
}

// selectRows returns a table of the given rows, in the given order.
func (t *Table) selectRows(rows []int) *Table {
	t = t.orEmpty()
	s := &Table{Source: t.Source, rows: len(rows), origin: make([]int32, len(rows)), first: t.first, note: t.note, sparse: t.sparse, features: t.features, reading: t.reading}
	for i, r := range rows {
		s.origin[i] = int32(t.sourceRow(r))
	}
	for _, c := range t.columns {
		s.columns = append(s.columns, c.selectRows(rows, s.origin))
	}
	if t.lines != nil {
		s.lines = make([]int32, len(rows))
		for i, r := range rows {
			s.lines[i] = t.lines[r]
		}
	}
	return s
}

// noColumn returns the error for a column that t lacks. It proposes the most similar candidate.
func (t *Table) noColumn(role, name string, candidates []string) *Error {
	t = t.orEmpty()
	for _, c := range t.columns {
		if c.name == name && c.unreadable != "" {
			return t.columnError(c)
		}
	}
	return t.newError("", fmt.Sprintf("has no %s %s; it has %s%s", role, quote(name), list(t.Names()), nearest(name, candidates))+t.note)
}

// columnError returns the error for a column that cannot be read.
func (t *Table) columnError(c *column) *Error { return t.newError(c.name, c.unreadable+", {or $drop}") }

// noColumnAmong returns the error of noColumn for a table that has names, but no columns yet.
func (t *Table) noColumnAmong(role, name string, names []string) *Error {
	return t.newError("", fmt.Sprintf("has no %s %s; it has %s%s", role, quote(name), list(names), nearest(name, names))+t.note)
}

// sourceRow returns the index of row i in the original table, or in the file.
func (t *Table) sourceRow(i int) int {
	if t.origin != nil {
		return int(t.origin[i])
	}
	return i
}

// newError returns an error about a column, or about the whole table if name is empty.
func (t *Table) newError(name, rule string) *Error {
	return &Error{Source: t.Source, Column: name, Rule: rule}
}

// cellError returns an error about one cell.
func (t *Table) cellError(c *column, row int, value, rule string) *Error {
	e := &Error{Source: t.Source, Column: c.name, Value: value, Rule: rule}
	if t.lines != nil {
		e.Line = int(t.lines[row])
	} else {
		e.Row = t.first + t.sourceRow(row) + 1
	}
	return e
}

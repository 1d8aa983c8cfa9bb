package dataset

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A LIBSVM file (Chang and Lin 2011; svmlight, Joachims 1999) has a line for
// each row: its label, a number, and index:value for the features that are not
// 0, in increasing order of the indices. Indices start at 1, or at 0 if the index 0 occurs in the
// file (as written by dump_svmlight_file of scikit-learn); the column of index i is xi in both
// cases. A query qid:number before the features is ignored, because nothing here learns rankings. A
// # begins a comment, and empty lines are skipped.

// csr is a sparse matrix that stores its nonzero values by rows. All values are finite.
type csr struct {
	begin   []int   // row → position of its first index; one more element for the end
	indices []int32 // increasing in each row
	values  []float64

	once    sync.Once
	columns []int   // column → position of its first element in order; one more element for the end
	order   []int   // positions in values, sorted by column and then by row
	rows    []int32 // the row of each value
}

// column returns all cells of a column, or its cells in the given rows. Its cost depends on the
// column's nonzero values, not on the whole table.
func (m *csr) column(at int, rows []int32) []float64 {
	m.once.Do(m.byColumns)
	all := make([]float64, len(m.begin)-1)
	if at+1 < len(m.columns) { // a column past the end holds only zeros, which the file states explicitly
		for i := m.columns[at]; i < m.columns[at+1]; i++ {
			all[m.rows[i]] = m.values[m.order[i]]
		}
	}
	if rows == nil {
		return all
	}
	some := make([]float64, len(rows))
	for i, r := range rows {
		some[i] = all[r]
	}
	return some
}

// byColumns sorts the values by column, with a counting sort.
func (m *csr) byColumns() {
	width := 0
	for _, j := range m.indices {
		width = max(width, int(j)+1)
	}
	next := make([]int, width+2)
	for _, j := range m.indices {
		next[j+2]++
	}
	for j := range width {
		next[j+2] += next[j+1]
	}
	m.order, m.rows = make([]int, len(m.values)), make([]int32, len(m.values))
	for r := range len(m.begin) - 1 {
		for k := m.begin[r]; k < m.begin[r+1]; k++ {
			at := &next[m.indices[k]+1]
			m.order[*at], m.rows[*at] = k, int32(r)
			*at++
		}
	}
	m.columns = next[:width+1]
}

func (m *csr) number(row, column int) float64 {
	begin := m.begin[row]
	if i, ok := slices.BinarySearch(m.indices[begin:m.begin[row+1]], int32(column)); ok {
		return m.values[begin+i]
	}
	return 0
}

// has reports whether a column has a nonzero value in one of the given rows, or in any row if rows
// is nil.
func (m *csr) has(column int, rows []int32) bool {
	if rows == nil {
		return slices.Contains(m.indices, int32(column))
	}
	return slices.ContainsFunc(rows, func(r int32) bool { return m.number(int(r), column) != 0 })
}

func (m *csr) text(row, column int) string { return numberText(m.number(row, column)) }

// labelName is the column of the labels in LIBSVM and IDX files.
const labelName = "label"

// libsvm is a table under construction.
type libsvm struct {
	t     *Table
	label *column
	rows  csr
	last  int32 // the largest index
	first int   // 0 if the index 0 occurs, otherwise 1
}

func newLIBSVM(t *Table) *libsvm {
	return &libsvm{t: t, label: &column{name: labelName}, rows: csr{begin: []int{0}}, first: 1}
}

// ReadLIBSVM reads a table from a LIBSVM file or a part of one, whatever its name and its first
// line. Otherwise it is like ReadCSV.
func ReadLIBSVM(path string, stdin io.Reader) (*Table, error) {
	in, err := File{Path: path, Stdin: stdin}.open()
	if err != nil {
		return nil, err
	}
	defer in.close()
	return readLIBSVM(in)
}

// readLIBSVM reads a whole file.
func readLIBSVM(in *input) (*Table, error) {
	if mark, _ := in.r.Peek(3); bytes.Equal(mark, byteOrderMark) {
		in.r.Discard(3)
	}
	s := newLIBSVM(in.t)
	for p := (&pieces{in: in, line: 1}); ; {
		part, err := p.next()
		if err == io.EOF {
			return s.table()
		}
		if err != nil {
			return nil, err
		}
		if err := s.add(part); err != nil {
			return nil, err
		}
		if size := 12*int64(cap(s.rows.values)) + 12*int64(cap(s.rows.begin)) + s.label.size(); !in.allowance.fits(size) {
			return nil, in.t.fault("", in.allowance.rule())
		}
	}
}

// add reads the lines of a piece.
func (s *libsvm) add(p piece) error {
	line := p.line
	for text := p.text; len(text) > 0; line++ {
		var record []byte
		record, text, _ = bytes.Cut(text, newline)
		if i := bytes.IndexByte(record, '#'); i >= 0 {
			record = record[:i]
		}
		if record = bytes.TrimSpace(record); len(record) == 0 {
			continue
		}
		if line > math.MaxInt32 || s.t.rows == math.MaxInt32 {
			return s.t.fault("", fmt.Sprintf("has more than %d lines", math.MaxInt32))
		}
		if err := s.record(record); err != nil {
			err.Line = line
			return err
		}
		s.t.lines = append(s.t.lines, int32(line))
		s.t.rows++
	}
	return nil
}

// record reads a line that is not empty.
func (s *libsvm) record(b []byte) *Error {
	label, b := field(b)
	if rule := labelRule(label); rule != "" {
		return &Error{Source: s.t.Source, Column: s.label.name, Value: string(label), Rule: rule}
	}
	last := int32(-1)
	for len(b) > 0 {
		var cell []byte
		cell, b = field(b)
		colon := bytes.IndexByte(cell, ':')
		if colon < 0 {
			return s.fault(cell, "has no colon; index:value is needed")
		}
		index, ok := featureIndex(cell[:colon])
		switch {
		case string(cell[:colon]) == "qid" && last < 0: // the query of a ranking task
			continue
		case !ok:
			return s.fault(cell, "has no index before its colon: an integer ≥ 0")
		case index > MaxFeatures:
			return s.fault(cell, fmt.Sprintf("has too large an index; at most %d features can be read", MaxFeatures))
		case index == last:
			return s.fault(cell, "has the same index as the value before it; each may occur once in a line")
		case index < last:
			return s.fault(cell, fmt.Sprintf("comes after index %d; indices must increase", last))
		}
		v, ok := decimal(cell[colon+1:])
		if !ok {
			var k kind
			if v, k = parseCell(string(cell[colon+1:])); k != number {
				if k < number {
					k = text // LIBSVM omits missing values instead of writing them
				}
				return s.fault(cell, "has a value that "+k.rule())
			}
		}
		if last = index; index == 0 {
			s.first = 0
		}
		if v != 0 {
			s.rows.indices = append(s.rows.indices, index)
			s.rows.values = append(s.rows.values, v)
		}
	}
	s.label.add(string(label))
	s.last = max(s.last, last)
	s.rows.begin = append(s.rows.begin, len(s.rows.indices))
	return nil
}

// fault returns an error about a part of a line.
func (s *libsvm) fault(cell []byte, rule string) *Error {
	e := s.t.fault("", rule)
	e.Value = strings.ToValidUTF8(string(cell), "\ufffd")
	return e
}

// labelRule returns the rule that a label breaks, or "".
func labelRule(label []byte) string {
	_, k := parseCell(string(label))
	switch {
	case k == number:
		return ""
	case bytes.IndexByte(label, ':') >= 0:
		return "is in the place of the label; a line must begin with the label"
	case bytes.IndexByte(label, ',') >= 0:
		return "names several classes; a row may have only one"
	case k < number:
		return "is not a number"
	}
	return k.rule()
}

// field splits b at its first space.
func field(b []byte) (cell, rest []byte) {
	for i, c := range b {
		if c == ' ' || c == '\t' {
			rest = b[i:]
			for len(rest) > 0 && (rest[0] == ' ' || rest[0] == '\t') {
				rest = rest[1:]
			}
			return b[:i], rest
		}
	}
	return b, nil
}

// featureIndex parses an integer; values above MaxFeatures are clamped to MaxFeatures + 1.
func featureIndex(b []byte) (index int32, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		index = min(index*10+int32(c-'0'), MaxFeatures+1)
	}
	return index, len(b) > 0
}

// table returns the table of all lines read.
func (s *libsvm) table() (*Table, error) {
	if s.t.rows == 0 {
		return nil, s.t.fault("", "is empty; a line label index:value … is needed")
	}
	return s.finish(), nil
}

func (s *libsvm) finish() *Table {
	s.label.finish()
	s.t.sparse = true
	columns := make([]column, max(0, int(s.last)+1-s.first))
	for j := range columns {
		at := s.first + j
		columns[j] = column{name: "x" + strconv.Itoa(at), plain: true, cells: &s.rows, at: at}
		s.t.columns = append(s.t.columns, &columns[j])
	}
	s.t.columns = append(s.t.columns, s.label)
	return s.t
}

// absent returns a column of zeros, for a feature that does not occur in t, if the name is a valid
// feature name.
func (t *Table) absent(name string) *column {
	index, ok := featureIndex([]byte(strings.TrimPrefix(name, "x")))
	if !ok || name != "x"+strconv.Itoa(int(index)) {
		return nil
	}
	return &column{name: name, plain: true, cells: zeros{}}
}

// An indexBase records the evidence in a sparse table, or a part of one, on whether its indices
// start at the same number as in the encoder's training table.
type indexBase struct {
	zero bool // the index 0 occurs
	past bool // the index after the encoder's last one occurs
}

func (e *Encoder) indexBase(t *Table) (b indexBase) {
	if !t.sparse {
		return b
	}
	last := -1
	for _, in := range e.Inputs {
		if index, ok := featureIndex([]byte(strings.TrimPrefix(in.Name, "x"))); ok {
			last = max(last, int(index))
		}
	}
	if last < 0 { // the encoder was learned from named columns
		return b
	}
	past := "x" + strconv.Itoa(last+1)
	for _, c := range t.columns {
		if m, ok := c.cells.(*csr); ok {
			b.zero = b.zero || c.at == 0
			b.past = b.past || c.name == past && m.has(c.at, c.rows)
		}
	}
	return b
}

// checkBase refuses a table whose indices start at another number than in e's training table: every
// feature would be mistaken for its neighbor.
func (e *Encoder) checkBase(t *Table, b indexBase) error {
	zero := slices.ContainsFunc(e.Inputs, func(in Input) bool { return in.Name == "x0" })
	switch {
	case b.zero && !zero:
		return t.fault("", "has the index 0, so its indices start at 0, but the indices of the training table start at 1: write both files in the same way")
	case b.past && zero && !b.zero:
		return t.fault("", "has one index more than the training table and no index 0: its indices seem to start at 1, not at 0; write both files in the same way, or add 0:0 to a line if they do start at 0")
	}
	return nil
}

// zeros is a column whose cells are all 0.
type zeros struct{}

func (zeros) number(int, int) float64 { return 0 }
func (zeros) text(int, int) string    { return "0" }

// tooSparse reports whether the dense matrix of the features would be too large in proportion to
// the values in the file: a single index in one line can imply millions of columns.
func (t *Table) tooSparse(width int) bool {
	const small, sparse = 1 << 27, 10_000 // numbers
	if !t.sparse || t.rows*width <= small {
		return false
	}
	for _, c := range t.columns {
		if m, ok := c.cells.(*csr); ok {
			return t.rows*width/sparse > len(m.values)
		}
	}
	return true
}

// looksLIBSVM reports whether a text begins with a number followed by index:value, or by nothing on
// that line. A CSV header does not.
func looksLIBSVM(r *bufio.Reader) bool {
	head, _ := r.Peek(4096)
	head = bytes.TrimPrefix(head, byteOrderMark)
	for len(head) > 0 {
		var line []byte
		line, head, _ = bytes.Cut(head, newline)
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		label, rest := field(line)
		cell, _ := field(rest)
		colon := bytes.IndexByte(cell, ':')
		if colon <= 0 || labelRule(label) != "" {
			return false
		}
		_, ok := featureIndex(cell[:colon])
		return ok || string(cell[:colon]) == "qid"
	}
	return false
}

// A libsvmPart is a part of a LIBSVM file.
type libsvmPart struct {
	piece
	source string
}

func (p *libsvmPart) table() (*Table, error) {
	s := newLIBSVM(&Table{Source: p.source})
	if err := s.add(p.piece); err != nil {
		return nil, err
	}
	return s.finish(), nil
}

func (p *pass) beginLIBSVM(in *input, lines int) {
	if mark, _ := in.r.Peek(3); bytes.Equal(mark, byteOrderMark) {
		in.r.Discard(3)
	}
	cut := &pieces{in: in, line: 1, lines: lines}
	p.parts = func() (part, error) {
		next, err := cut.next()
		if err != nil {
			return nil, err
		}
		return &libsvmPart{next, in.t.Source}, nil
	}
}

package dataset

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/internal/count"
)

// A Matrix Market file (Boisvert, Pozo and Remington 1996) in coordinate format has the line
//
//	%%MatrixMarket matrix coordinate real general
//
// where the field is real, integer or pattern and the symmetry is general or symmetric. Then follow
// comment lines, which begin with %, the line "rows columns entries", and a line "row column value"
// for each entry. If the field is pattern, these lines have no value and all entries are 1. Indices
// start at 1. A symmetric matrix stores only its lower triangle.

// marketMark is the beginning of a Matrix Market file, in upper or lower case.
const marketMark = "%%MatrixMarket"

// triples holds entries of a sparse matrix in any order. Indices start at 0.
type triples struct {
	rows, columns []int32
	values        []float64
}

// A marketReader is a Matrix Market file that the package is reading.
type marketReader struct {
	t                   *Table
	pattern, symmetric  bool
	rows, columns, size int64
	entries             triples
}

// readMarket reads a whole file. Its entries are parsed in pieces on all processors.
func readMarket(in *input) (*Table, error) {
	m := &marketReader{t: in.t}
	pieces := &pieceReader{in: in, line: 1}
	first, err := m.readHead(pieces)
	if err != nil {
		return nil, err
	}
	next := func() (piece, error) {
		if p := first; len(p.text) > 0 {
			first = piece{}
			return p, nil
		}
		return pieces.next()
	}
	err = runOrdered(context.Background(), in.allowance.workers(), next, m.parse, func(part triples) error {
		m.entries.rows = append(m.entries.rows, part.rows...)
		m.entries.columns = append(m.entries.columns, part.columns...)
		m.entries.values = append(m.entries.values, part.values...)
		if int64(len(m.entries.values)) > m.size {
			return in.t.newError("", fmt.Sprintf("has more than the %s that its size line names", count.Of(m.size, "entry")))
		}
		// The triples and the CSR matrix made of them must fit into memory at the same time.
		if !in.allowance.fits(16*int64(cap(m.entries.values)) + 12*int64(len(m.entries.values))) {
			return in.t.newError("", in.allowance.rule())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if n := int64(len(m.entries.values)); n < m.size {
		return nil, in.t.newError("", fmt.Sprintf("is truncated: its size line names %s, it has %d", count.Of(m.size, "entry"), n))
	}
	if m.symmetric {
		m.mirror()
	}
	in.t.rows = int(m.rows)
	return in.t, in.t.setTriples(m.entries, int(m.columns), in.allowance)
}

// mirror adds the upper triangle of a symmetric matrix whose lower triangle is in the file.
func (m *marketReader) mirror() {
	e := &m.entries
	for k := range len(e.values) {
		if i, j := e.rows[k], e.columns[k]; i != j {
			e.rows, e.columns, e.values = append(e.rows, j), append(e.columns, i), append(e.values, e.values[k])
		}
	}
}

// readHead reads the lines before the entries. rest is the part of the last piece after these lines.
func (m *marketReader) readHead(pieces *pieceReader) (rest piece, err error) {
	banner := true
	for p := (piece{}); ; {
		if len(p.text) == 0 {
			if p, err = pieces.next(); err == io.EOF {
				return p, m.t.newError("", "has no size line: rows columns entries")
			}
			if err != nil {
				return p, err
			}
		}
		line, text, _ := bytes.Cut(p.text, newline)
		number := p.line
		p.text, p.line = text, p.line+1
		fields := strings.Fields(string(line[:min(len(line), 1<<12)]))
		if banner {
			banner = false
			if rule := m.bannerRule(fields); rule != "" {
				return p, m.newError(number, line, rule)
			}
			continue
		}
		if len(fields) == 0 || fields[0][0] == '%' {
			continue
		}
		sizes := [3]int64{}
		for k := range sizes {
			if len(fields) != 3 {
				return p, m.newError(number, line, "is not the size line: rows columns entries")
			}
			n, ok := parseInteger(fields[k])
			if !ok {
				return p, m.newError(number, line, "is not the size line: rows columns entries")
			}
			sizes[k] = n
		}
		m.rows, m.columns, m.size = sizes[0], sizes[1], sizes[2]
		rule := checkSparseShape(m.rows, m.columns)
		if rule == "" && m.symmetric && m.rows != m.columns {
			rule = fmt.Sprintf("has %s and %s, but a symmetric matrix must be square", count.Of(m.rows, "row"), count.Of(m.columns, "column"))
		}
		if rule != "" {
			return p, m.newError(number, line, rule)
		}
		return p, nil
	}
}

// bannerRule parses the words of the first line. It returns the rule that they violate, or "".
func (m *marketReader) bannerRule(words []string) string {
	if len(words) != 5 || !strings.EqualFold(words[0], marketMark) || !strings.EqualFold(words[1], "matrix") {
		return "is not the first line of a Matrix Market file: " + marketMark + " matrix coordinate real general"
	}
	layout, field, symmetry := strings.ToLower(words[2]), strings.ToLower(words[3]), strings.ToLower(words[4])
	switch {
	case layout != "coordinate":
		return "has the format " + quote(layout) + ": only coordinate is supported; save a dense matrix as an NPY or CSV file"
	case !slices.Contains([]string{"real", "integer", "pattern", "double"}, field):
		return "has the field " + quote(field) + "; real, integer and pattern are supported"
	case symmetry != "general" && symmetry != "symmetric":
		return "has the symmetry " + quote(symmetry) + "; general and symmetric are supported"
	}
	m.pattern, m.symmetric = field == "pattern", symmetry == "symmetric"
	return ""
}

// parseInteger parses an integer of digits. It returns 2⁵³ for larger integers.
func parseInteger(s string) (n int64, ok bool) {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = min(n*10+int64(c-'0'), 1<<53)
	}
	return n, s != ""
}

// parse reads the entries of a piece.
func (m *marketReader) parse(p piece) (e triples, err error) {
	lines := bytes.Count(p.text, newline) + 1
	e = triples{make([]int32, 0, lines), make([]int32, 0, lines), make([]float64, 0, lines)}
	line := p.line
	for rest := p.text; len(rest) > 0; line++ {
		var record []byte
		record, rest, _ = bytes.Cut(rest, newline)
		pos := blank(record, 0)
		if pos == len(record) || record[pos] == '%' {
			continue
		}
		i, pos := digits(record, pos)
		j, pos := digits(record, blank(record, pos))
		if i < 1 || i > m.rows || j < 1 || j > m.columns {
			return e, m.newError(line, record, fmt.Sprintf("is not an entry of a %d×%d matrix whose indices start at 1: %s", m.rows, m.columns, m.entry()))
		}
		v := 1.0
		if !m.pattern {
			var isDecimal bool
			begin := blank(record, pos)
			if v, pos, isDecimal = scanDecimal(record, begin); !isDecimal || blank(record, pos) < len(record) {
				var k kind
				if v, k = parseCell(string(bytes.TrimSpace(record[begin:]))); k != number {
					if k < number {
						k = text
					}
					return e, m.newError(line, record, "has a value that "+k.rule())
				}
				pos = len(record)
			}
		}
		switch {
		case blank(record, pos) < len(record):
			return e, m.newError(line, record, "is not an entry: "+m.entry())
		case m.symmetric && j > i:
			return e, m.newError(line, record, "is above the diagonal: a symmetric file lists only entries on or below the diagonal")
		}
		e.rows, e.columns, e.values = append(e.rows, int32(i-1)), append(e.columns, int32(j-1)), append(e.values, v)
	}
	return e, nil
}

func (m *marketReader) entry() string {
	if m.pattern {
		return "row column"
	}
	return "row column value"
}

// blank returns the first index ≥ i at which b has no space, tab or CR.
func blank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// digits parses a positive integer of at most ten digits at index i of b. A blank or the end of b
// must follow. For any other text it returns 0.
func digits(b []byte, i int) (n int64, end int) {
	for end = i; end < len(b) && b[end]-'0' <= 9 && end-i < 10; end++ {
		n = n*10 + int64(b[end]-'0')
	}
	if end < len(b) && blank(b, end) == end {
		return 0, end
	}
	return n, end
}

func (m *marketReader) newError(line int, text []byte, rule string) *Error {
	e := m.t.newError("", rule)
	e.Line, e.Value = line, strings.ToValidUTF8(string(bytes.TrimSpace(text[:min(len(text), 1<<8)])), "\ufffd")
	return e
}

// setTriples sets the sparse features of t from entries. t.rows must be set.
func (t *Table) setTriples(e triples, columns int, memory *allowance) error {
	if rule := checkRows(t.rows, len(e.values)); rule != "" {
		return t.newError("", rule)
	}
	m := host.CSR[float64]{Rows: t.rows, Cols: columns, Indptr: make([]int, t.rows+1), Indices: make([]int32, len(e.values)), Data: make([]float64, len(e.values))}
	for _, i := range e.rows {
		m.Indptr[i]++
	}
	end := 0
	for i, n := range m.Indptr {
		m.Indptr[i], end = end, end+n
	}
	for k, i := range e.rows { // m.Indptr[i] advances from the start of row i to its end
		pos := m.Indptr[i]
		m.Indices[pos], m.Data[pos] = e.columns[k], e.values[k]
		m.Indptr[i] = pos + 1
	}
	copy(m.Indptr[1:], m.Indptr)
	m.Indptr[0] = 0
	return t.setMatrix(m, memory)
}

// checkRows returns the rule that a number of rows violates, or "". It bounds the memory of a matrix from a small file.
func checkRows(rows, entries int) string {
	const uncheckedRows, rowsPerEntry = 1 << 22, 64
	if rows > uncheckedRows && rows/rowsPerEntry > entries {
		return fmt.Sprintf("claims %s, but has only %s: drop the empty rows", count.Of(rows, "row"), count.Of(entries, "entry"))
	}
	return ""
}

// setMatrix sets the sparse features x1, x2, … of t to the columns of m, sorted and without zeros. It returns an
// error for a value that is not finite, and for a column that occurs twice in a row.
func (t *Table) setMatrix(m host.CSR[float64], memory *allowance) error {
	if !memory.fits(12*int64(len(m.Data)) + 8*int64(len(m.Indptr))) {
		return t.newError("", memory.rule())
	}
	x := &csr{CSR: m, first: 1}
	newError := func(row, column int, value, rule string) error {
		return &Error{Source: t.Source, Row: row + 1, Column: x.name(column), Value: value, Rule: rule}
	}
	n := 0
	var order []int
	for i := range m.Rows {
		columns, values := m.Row(i)
		if !slices.IsSorted(columns) {
			order = order[:0]
			for k := range columns {
				order = append(order, k)
			}
			slices.SortFunc(order, func(a, b int) int { return int(columns[a]) - int(columns[b]) })
			sortedColumns, sortedValues := make([]int32, len(order)), make([]float64, len(order))
			for k, from := range order {
				sortedColumns[k], sortedValues[k] = columns[from], values[from]
			}
			copy(columns, sortedColumns)
			copy(values, sortedValues)
		}
		x.Indptr[i] = n
		for k, j := range columns {
			v := values[k]
			switch {
			case k > 0 && columns[k-1] == j:
				return newError(i, int(j), "", "occurs twice in the row; sum the duplicates first, as sum_duplicates does in SciPy")
			case math.IsNaN(v):
				return newError(i, int(j), "NaN", "is not a number; a sparse table has no missing cells")
			case math.IsInf(v, 0):
				return newError(i, int(j), fmt.Sprint(v), notFinite.rule())
			case v != 0:
				x.Indices[n], x.Data[n] = j, v // n is at most the index of the entry just read
				n++
			}
		}
	}
	x.Indptr[m.Rows] = n
	x.Indices, x.Data = x.Indices[:n], x.Data[:n]
	t.addSparse(x)
	return nil
}

package dataset

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/host"
)

// A LIBSVM file (Chang and Lin 2011; svmlight, Joachims 1999) has a line for each row: a number, which is the label,
// and index:value for each nonzero feature, in increasing order of the indices. Indices start at 0 if the index 0
// occurs in the file, and otherwise at 1. In both cases the column of index i is xi. The identifier qid:number of a
// query in a ranking task is ignored. The character # begins a comment, and empty lines are skipped.

// labelName is the name of the label column of LIBSVM and IDX files.
const labelName = "label"

// libsvm is a table, or a part of a table, that is being read.
type libsvm struct {
	t     *Table
	label *column
	rows  host.CSR[float64] // column indices as in the file
	last  int32             // the largest index so far
	first int               // the first index: 0 if the index 0 occurs, otherwise 1
	limit int32             // the largest index that may occur
}

func newLIBSVM(t *Table, limit int32) *libsvm {
	return &libsvm{t: t, label: &column{name: labelName}, rows: host.CSR[float64]{Indptr: []int{0}}, first: 1, limit: limit}
}

// ReadLIBSVM reads a table from a LIBSVM file or a part of one, without detecting the format. path and stdin are as
// in ReadCSV.
func ReadLIBSVM(path string, stdin io.Reader) (*Table, error) {
	in, err := File{Path: path, Stdin: stdin}.open()
	if err != nil {
		return nil, err
	}
	defer in.close()
	return readLIBSVM(in)
}

// readLIBSVM reads a whole file in pieces, on all processors, and joins the pieces in order.
func readLIBSVM(in *input) (*Table, error) {
	if prefix, _ := in.r.Peek(3); bytes.Equal(prefix, byteOrderMark) {
		in.r.Discard(3)
	}
	type decoded struct {
		*libsvm
		text int
	}
	s := newLIBSVM(in.t, maxSparseFeatures)
	text, partCount := 0, 0
	pieces := &pieceReader{in: in, line: 1}
	err := runOrdered(context.Background(), in.allowance.workers(), pieces.next, func(p piece) (decoded, error) {
		d := newLIBSVM(&Table{Source: in.t.Source}, maxSparseFeatures)
		return decoded{d, len(p.text)}, d.add(p)
	}, func(d decoded) error {
		text += d.text
		partCount++
		percent := 125
		if in.size > 0 { // estimate the size of the whole file in percent of the parts read so far
			percent = int(min(400, 102*float64(in.size)/float64(text)))
		}
		var partGrowth growth
		d.grow(&partGrowth, newLIBSVM(&Table{}, 0), 100)
		pending := in.allowance.pendingBytes(partCount, partGrowth.size+int64(d.text))
		percent, ok := in.allowance.capacityFor(100, max(percent, 100), func(g *growth, percent int) {
			g.size = pending
			s.grow(g, d.libsvm, percent)
		})
		if !ok {
			return in.t.newError("", in.allowance.rule())
		}
		return s.join(d.libsvm, percent, in.allowance)
	})
	if err != nil {
		return nil, err
	}
	if s.t.rows == 0 {
		return nil, s.t.newError("", "is empty; a line label index:value … is needed")
	}
	s.t.peak = in.allowance.peak
	return s.finish(), nil
}

// grow adds to g the lists that join(d, percent, …) enlarges.
func (s *libsvm) grow(g *growth, d *libsvm, percent int) {
	values, rows := d.rows.NNZ(), d.t.rows
	entries, rowCapacity := capacityOf(len(s.rows.Data)+values, percent), capacityOf(s.t.rows+rows, percent)
	g.list(8, len(s.rows.Data), cap(s.rows.Data), values, entries)
	g.list(4, len(s.rows.Indices), cap(s.rows.Indices), values, entries)
	g.list(8, len(s.rows.Indptr), cap(s.rows.Indptr), rows, rowCapacity+1)
	g.list(4, len(s.t.lines), cap(s.t.lines), rows, rowCapacity)
	g.column(s.label, rows, rowCapacity)
}

// capacityOf returns the given percentage of a length.
func capacityOf(length, percent int) int { return length/100*percent + length%100*percent/100 }

// join appends the rows of the next part. A list that join must reallocate gets the given percentage of its new
// length as capacity.
func (s *libsvm) join(d *libsvm, percent int, a *allowance) error {
	if s.t.rows > math.MaxInt32-d.t.rows {
		return s.t.newError("", fmt.Sprintf("has more than %d lines", math.MaxInt32))
	}
	capacity := func(length, added int) int { return capacityOf(length+added, percent) }
	oldLen, values := len(s.rows.Data), d.rows.NNZ()
	s.rows.Data = appended(a, s.rows.Data, d.rows.Data, capacity(oldLen, values))
	s.rows.Indices = appended(a, s.rows.Indices, d.rows.Indices, capacity(oldLen, values))
	rowCapacity := capacity(s.t.rows, d.t.rows)
	first := len(s.rows.Indptr)
	s.rows.Indptr = appended(a, s.rows.Indptr, d.rows.Indptr[1:], rowCapacity+1)
	for i := range s.rows.Indptr[first:] {
		s.rows.Indptr[first+i] += oldLen
	}
	s.t.lines = appended(a, s.t.lines, d.t.lines, rowCapacity)
	oldBytes := s.label.listBytes()
	s.label.join(d.label, rowCapacity)
	a.recordReplaced(oldBytes, s.label.listBytes())
	s.t.rows += d.t.rows
	s.last, s.first = max(s.last, d.last), min(s.first, d.first)
	return nil
}

// add reads the lines of p.
func (s *libsvm) add(p piece) error {
	values := bytes.Count(p.text, []byte{':'})
	s.rows.Data, s.rows.Indices = make([]float64, 0, values), make([]int32, 0, values)
	line := p.line
	for pos := 0; pos < len(p.text); line++ {
		if line > math.MaxInt32 {
			return s.t.newError("", fmt.Sprintf("has more than %d lines", math.MaxInt32))
		}
		if end, ok := s.addFast(p.text, pos); ok {
			pos = end
		} else {
			record, _, _ := bytes.Cut(p.text[pos:], newline)
			pos += len(record) + 1
			if i := bytes.IndexByte(record, '#'); i >= 0 {
				record = record[:i]
			}
			if record = bytes.TrimSpace(record); len(record) == 0 {
				continue
			}
			if err := s.record(record); err != nil {
				err.Line = line
				return err
			}
		}
		s.rows.Indptr = append(s.rows.Indptr, len(s.rows.Data))
		s.t.lines = append(s.t.lines, int32(line))
		s.t.rows++
	}
	return nil
}

// addFast is a fast version of record for a plain line: a number and index:value in increasing order of the
// indices, with a space before each. The line begins at index i of text. For any other line addFast adds nothing,
// and ok is false.
func (s *libsvm) addFast(text []byte, i int) (next int, ok bool) {
	label, last, first := i, int32(-1), s.first
	indices, values := s.rows.Indices, s.rows.Data // local copies, because a store to a field of s needs a write barrier
	_, i, ok = scanDecimal(text, i)
	labelEnd := i
	for {
		if !ok {
			return 0, false
		}
		for i < len(text) && text[i] == ' ' {
			i++
		}
		if i+1 < len(text) && text[i] == '\r' && text[i+1] == '\n' {
			i++
		}
		if i == len(text) || text[i] == '\n' {
			break
		}
		index, start := uint32(0), i
		for i < len(text) && text[i]-'0' <= 9 && i-start < 9 {
			index = index*10 + uint32(text[i]-'0')
			i++
		}
		if text[start-1] != ' ' || i == start || i == len(text) || text[i] != ':' || int32(index) <= last || int32(index) > s.limit {
			return 0, false
		}
		if last = int32(index); last == 0 {
			first = 0
		}
		var v float64
		if v, i, ok = scanDecimal(text, i+1); v != 0 {
			indices, values = append(indices, last), append(values, v)
		}
	}
	s.rows.Indices, s.rows.Data = indices, values
	s.addLabel(text[label:labelEnd])
	s.first, s.last = first, max(s.last, last)
	return i + 1, true
}

func (s *libsvm) addLabel(label []byte) {
	if !s.label.addBytes(label) {
		s.label.add(string(label))
	}
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
			return s.newError(cell, "has no colon; index:value is needed")
		}
		index, ok := featureIndex(cell[:colon])
		switch {
		case string(cell[:colon]) == "qid" && last < 0: // the identifier of a query in a ranking task is ignored
			continue
		case !ok:
			return s.newError(cell, "has no index, an integer ≥ 0, before its colon")
		case index > s.limit:
			return s.newError(cell, fmt.Sprintf("has too large an index; at most %d features can be read", s.limit))
		case index == last:
			return s.newError(cell, "has the same index as the value before it; an index may occur only once in a line")
		case index < last:
			return s.newError(cell, fmt.Sprintf("comes after index %d; indices must increase, as LIBSVM requires", last))
		}
		v, ok := decimal(cell[colon+1:])
		if !ok {
			var k kind
			if v, k = parseCell(string(cell[colon+1:])); k != number {
				if k < number {
					k = text // a cell such as NaN is an error: LIBSVM files omit missing values
				}
				return s.newError(cell, "has a value that "+k.rule())
			}
		}
		if last = index; index == 0 {
			s.first = 0
		}
		if v != 0 {
			s.rows.Indices = append(s.rows.Indices, index)
			s.rows.Data = append(s.rows.Data, v)
		}
	}
	s.addLabel(label)
	s.last = max(s.last, last)
	return nil
}

// newError returns an error about cell, a part of a line.
func (s *libsvm) newError(cell []byte, rule string) *Error {
	e := s.t.newError("", rule)
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
		return "stands where the label is needed: begin the line with a label"
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

// featureIndex parses an index. Above maxSparseFeatures it returns maxSparseFeatures + 1.
func featureIndex(b []byte) (index int32, ok bool) {
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		index = min(index*10+int32(c-'0'), maxSparseFeatures+1)
	}
	return index, len(b) > 0
}

func (s *libsvm) finish() *Table {
	s.label.finish()
	if s.first == 1 {
		for p := range s.rows.Indices {
			s.rows.Indices[p]--
		}
	}
	s.rows.Rows, s.rows.Cols = s.t.rows, max(0, int(s.last)+1-s.first)
	s.t.addSparse(&csr{CSR: s.rows, first: s.first})
	s.t.columns = append(s.t.columns, s.label)
	return s.t
}

// absentColumn returns a column of zeros for a feature that does not occur in t, or nil if name is not the name of
// a feature.
func (t *Table) absentColumn(name string) *column {
	if _, ok := sparseIndex(name); !ok {
		return nil
	}
	return &column{name: name, plain: true, cells: zeros{}}
}

// An indexBase shows whether the indices of a sparse table start at the same number as in the encoder's training table.
type indexBase struct {
	zero          bool // the table has the index 0
	hasExtraIndex bool // the table has the index after the encoder's last index
}

func (e *Encoder) indexBase(t *Table) (b indexBase) {
	if !t.sparse {
		return b
	}
	last := -1
	for _, in := range e.Inputs {
		if in.Sparse != nil {
			last = max(last, in.Sparse.First+in.Sparse.Columns-1)
		} else if index, ok := sparseIndex(in.Name); ok {
			last = max(last, index)
		}
	}
	m := t.features
	if last < 0 || m == nil { // the encoder was learned from columns with names
		return b
	}
	extra := last + 1 - m.first
	return indexBase{zero: m.first == 0 && m.Cols > 0, hasExtraIndex: extra < m.Cols && m.has(extra, t.origin)}
}

// checkBase returns an error if the indices of a table do not start at the same number as in the training table.
func (e *Encoder) checkBase(t *Table, b indexBase) error {
	zero := slices.ContainsFunc(e.Inputs, func(in Input) bool {
		return in.Name == "x0" || in.Sparse != nil && in.Sparse.First == 0
	})
	switch {
	case b.zero && !zero:
		return t.newError("", "has the index 0, so its indices start at 0, but the indices of the training table start at 1: write both files in the same way")
	case b.hasExtraIndex && zero && !b.zero:
		return t.newError("", "has one index more than the training table and no index 0: its indices seem to start at 1, not at 0; write both files in the same way, or add 0:0 to a line if they do start at 0")
	}
	return nil
}

// zeros is a column whose cells are all 0.
type zeros struct{}

func (zeros) number(int, int) float64 { return 0 }
func (zeros) text(int, int) string    { return "0" }

// tooSparse reports whether the features are too sparse for a dense matrix.
func (e *Encoder) tooSparse(t *Table, width int) bool {
	const smallSize, sparse = 1 << 27, 10_000 // a small matrix may have any sparsity
	if !t.sparse && !e.Sparse() || t.rows*width <= smallSize {
		return false
	}
	if !t.sparse {
		return int64(t.rows*width/sparse) > e.Nonzeros(t)
	}
	return t.features == nil || t.rows*width/sparse > t.features.NNZ()
}

// looksLIBSVM reports whether the first line that is neither empty nor a comment begins with a number, followed by
// index:value or qid:value.
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
	s := newLIBSVM(&Table{Source: p.source}, MaxFeatures)
	if err := s.add(p.piece); err != nil {
		return nil, err
	}
	return s.finish(), nil
}

func (p *pass) beginLIBSVM(in *input, lines int) {
	if prefix, _ := in.r.Peek(3); bytes.Equal(prefix, byteOrderMark) {
		in.r.Discard(3)
	}
	pieces := &pieceReader{in: in, line: 1, lines: lines}
	p.nextPart = func() (part, error) {
		next, err := pieces.next()
		if err != nil {
			return nil, err
		}
		return &libsvmPart{next, in.t.Source}, nil
	}
}

package dataset

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/mercer-go/mercer/internal/count"
)

// ReadCSV reads a table from a CSV file. The text is UTF-8, or UTF-16 with a byte-order mark, with quotation by RFC
// 4180. Lines end in LF, CR LF or CR, and the first line has the names of the columns. The delimiter is the comma,
// semicolon, tab or vertical bar that occurs most often in the header, unless a first line such as "sep=;" names
// it. If the header has no delimiter, and some column of the first rows holds only numbers, runs of spaces and tabs
// separate the cells. ReadCSV skips blank lines, a first column without a name (the index of pandas, or the row
// names of R), and empty cells after the last named column. Spaces around quoted cells are ignored. A file that
// begins with the gzip signature is decompressed; a file named .gz must begin with it. The path "-" reads stdin.
//
// A file with a header and no rows gives a table without rows. Every failure is an *Error, which
// names the line of the fault if there is one.
func ReadCSV(path string, stdin io.Reader) (*Table, error) {
	return File{Path: path, Stdin: stdin}.ReadCSV()
}

// ReadCSV reads f as a CSV file, whatever the name and the first line of the file are.
func (f File) ReadCSV() (*Table, error) {
	in, err := f.open()
	if err != nil {
		return nil, err
	}
	defer in.close()
	return readCSV(in)
}

// byteOrderMark is the byte-order mark of UTF-8.
var byteOrderMark = []byte{0xef, 0xbb, 0xbf}

// readCSV reads the whole file in pieces, on all processors, and joins the columns of the pieces in order.
func readCSV(in *input) (*Table, error) {
	t := in.t
	p := &pass{t: t}
	if err := p.beginCSV(in, 0); err != nil {
		return nil, err
	}
	type decoded struct {
		part part
		t    *Table
	}
	text, partCount := 0, 0
	err := runOrdered(context.Background(), in.allowance.workers(), p.next, func(next part) (d decoded, err error) {
		d.part = next
		d.t, err = next.table()
		if err == nil && next.(*csvPart).isFirst { // the first part shows which columns are plain
			for j, c := range d.t.columns {
				p.plain[j].Store(c.plain)
			}
		}
		return d, err
	}, func(d decoded) error {
		next := d.part.(*csvPart)
		for j, c := range t.columns {
			if c.texts && d.t.columns[j].plain { // the part is plain: read it again as texts
				var err error
				if d.t, err = next.read(func(j int) column { return column{plain: t.columns[j].plain, texts: t.columns[j].texts} }); err != nil {
					return err
				}
				break
			}
		}
		t.rows += d.t.rows
		if t.rows > math.MaxInt32 {
			return t.newError("", fmt.Sprintf("has more than %d lines", math.MaxInt32))
		}
		text += len(next.text)
		partCount++
		capacity := t.rows + t.rows/4
		if in.size > 0 { // estimate the total number of rows from the mean length of the rows read so far
			capacity = int(min(4*float64(t.rows), 1.02*float64(t.rows)*float64(in.size)/float64(text)))
		}
		var partGrowth growth
		partGrowth.list(4, 0, cap(d.t.lines), 0, 0)
		for _, c := range d.t.columns {
			partGrowth.column(c, 0, 0)
		}
		pending := in.allowance.pendingBytes(partCount, partGrowth.size+int64(len(next.text)))
		capacity, ok := in.allowance.capacityFor(t.rows, max(capacity, t.rows), func(g *growth, capacity int) {
			g.size = pending
			g.list(4, len(t.lines), cap(t.lines), len(d.t.lines), capacity)
			for _, c := range t.columns {
				g.column(c, d.t.rows, capacity)
			}
		})
		if !ok {
			return t.newError("", in.allowance.rule())
		}
		t.lines = appended(in.allowance, t.lines, d.t.lines, capacity)
		for j, c := range t.columns {
			oldBytes := c.listBytes()
			c.join(d.t.columns[j], capacity)
			in.allowance.recordReplaced(oldBytes, c.listBytes())
			p.plain[j].Store(c.plain)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, c := range t.columns {
		c.finish()
	}
	t.peak = in.allowance.peak
	return t, nil
}

// readHeader reads the header. rest holds bytes that were read beyond the header. pieces splits the
// remainder of the file into pieces of at most the given number of lines.
func (in *input) readHeader(lines int) (h head, rest piece, pieces *pieceReader, err error) {
	if h, err = in.readHead(); err != nil {
		return h, rest, nil, err
	}
	in.t.comma = h.comma
	pieces = &pieceReader{in: in, quotes: true, line: 1, lines: lines}
	first := piece{line: 1}
	for first.line <= h.skip || len(first.text) == 0 {
		if len(first.text) == 0 {
			if first, err = pieces.next(); err == io.EOF {
				break
			} else if err != nil {
				return h, rest, nil, err
			}
			continue
		}
		first.text = first.text[lineLength(first.text):]
		first.line++
	}
	first.text = tightQuotes(first.text, h.comma)
	r := newCSVReader(bytes.NewReader(first.text), h.comma)
	if err := in.t.readNames(r, first.line-1, h.rowNames); err != nil {
		return h, rest, nil, err
	}
	end := int(r.InputOffset())
	return h, piece{first.text[end:], first.line + bytes.Count(first.text[:end], newline)}, pieces, nil
}

func newCSVReader(in io.Reader, comma byte) *csv.Reader {
	r := csv.NewReader(in)
	r.Comma = rune(comma)
	r.ReuseRecord = true
	r.FieldsPerRecord = -1 // checkCells counts the cells, because its message is better
	return r
}

// readNames reads the header. Its result is an error, not an *Error, so that it equals nil if there is no error.
func (t *Table) readNames(r *csv.Reader, linesBefore int, rowNames bool) error {
	header, err := r.Read()
	if err == io.EOF {
		return t.newError("", "is empty; a header line with the names of the columns is needed")
	}
	if err != nil {
		return t.recordError(linesBefore, linesBefore+1, err)
	}
	if err := t.setHeader(header, rowNames); err != nil {
		err.Line, _ = r.FieldPos(0)
		err.Line += linesBefore
		if strings.HasSuffix(err.Rule, "is not valid UTF-8") {
			err.Rule += "; save the file as UTF-8, if it is a table at all"
		}
		return err
	}
	if !slices.ContainsFunc(header, func(name string) bool { _, k := parseCell(strings.TrimSpace(name)); return k != number }) {
		t.note = "; the first line is taken for the names of the columns: put a line of names above these numbers"
	}
	return nil
}

// readRows reads all rows of a text. linesBefore is the number of lines in the file before it.
func (t *Table) readRows(text []byte, linesBefore int) error {
	text = tightQuotes(text, t.comma)
	r := newCSVReader(bytes.NewReader(text), t.comma)
	for line, begin := linesBefore, int64(0); ; {
		record, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return t.recordError(linesBefore, line+1, err)
		}
		raw := text[begin:r.InputOffset()]
		if begin = r.InputOffset(); t.blank(raw) {
			continue
		}
		line, _ = r.FieldPos(0)
		line += linesBefore
		if err := t.checkCells(line, len(record), record[len(record)-1]); err != nil {
			return err
		}
		if err := t.addLine(line); err != nil {
			return err
		}
		cells := record[t.indexCells():]
		for i, c := range t.columns {
			if !c.addBytes([]byte(cells[i])) {
				if !utf8.ValidString(cells[i]) {
					return t.cellError(c, t.rows, cells[i], notUTF8)
				}
				c.add(cells[i])
			}
		}
		for _, cell := range cells[len(t.columns):] {
			if strings.TrimSpace(cell) != "" {
				return t.namelessError(line, cell)
			}
		}
		t.rows++
	}
}

// blank reports whether all characters of a text are line ends, spaces or, if the delimiter is not the tab, tabs.
func (t *Table) blank(lines []byte) bool {
	white := " \t\r\n"
	if t.comma == '\t' {
		white = " \r\n"
	}
	return len(bytes.Trim(lines, white)) == 0
}

const notUTF8 = "is not valid UTF-8; save the file as UTF-8"

func (t *Table) addLine(line int) error {
	if t.rows == math.MaxInt32 || line > math.MaxInt32 {
		return t.newError("", fmt.Sprintf("has more than %d lines", math.MaxInt32))
	}
	t.lines = append(t.lines, int32(line))
	return nil
}

// indexCells returns the number of cells in a row before the first column of the table.
func (t *Table) indexCells() int {
	if t.index {
		return 1
	}
	return 0
}

// checkCells returns an error for a row of n cells if the header has another number of names. A row
// may omit trailing cells without a name.
func (t *Table) checkCells(line, n int, last string) error {
	want := t.indexCells() + len(t.columns)
	if want <= n && n <= want+t.unnamedCells {
		return nil
	}
	rule := fmt.Sprintf("has %s where the header has %d", count.Of(n, "cell"), want+t.unnamedCells)
	if n == want+t.unnamedCells+1 && strings.TrimSpace(last) == "" {
		rule += ": the line ends with a delimiter and the header does not; remove this delimiter, or name the column"
	}
	e := t.newError("", rule)
	e.Line = line
	return e
}

// namelessError returns the error for a cell that is not empty in a column without a name.
func (t *Table) namelessError(line int, cell string) *Error {
	e := t.newError("", "is in a column without a name; name the column in the header")
	e.Line, e.Value = line, strings.TrimSpace(cell)
	return e
}

// indexName is the name by which File.Keep selects a first column without a name.
const indexName = "index"

// setHeader names the columns. It ignores empty names at the end of the header.
func (t *Table) setHeader(names []string, rowNames bool) *Error {
	for n := len(names); n > 1 && strings.TrimSpace(names[n-1]) == ""; n-- {
		names = names[:n-1]
		t.unnamedCells++
	}
	if t.index = len(names) > 1 && strings.TrimSpace(names[0]) == ""; t.index {
		names = names[1:]
	}
	t.index = t.index || rowNames
	if t.index && slices.Contains(t.keep, indexName) && !slices.Contains(names, indexName) {
		t.index, names = false, append([]string{indexName}, names...)
	}
	return t.setNames(names)
}

// recordError does the work of readError for errors of a csv.Reader. linesBefore is the number of lines in the file
// before the reader's input.
func (t *Table) recordError(linesBefore, next int, err error) *Error {
	var syntax *csv.ParseError
	if !errors.As(err, &syntax) {
		return t.readError(next, err)
	}
	e := t.newError("", "")
	e.Line = linesBefore + syntax.StartLine
	switch {
	case !errors.Is(err, csv.ErrQuote):
		e.Rule = `broken quoting: a cell with a quotation mark must be quoted as a whole, its marks doubled: "6"" pipe"`
	case syntax.Line > syntax.StartLine:
		e.Rule = fmt.Sprintf("broken quoting: a quotation mark is not closed properly by line %d", linesBefore+syntax.Line)
	default:
		e.Rule = fmt.Sprintf("broken quoting: a quotation mark is not closed properly at byte %d of the line", syntax.Column)
	}
	return e
}

// readError converts an error of a reader to an *Error. next is the line on which the next record should begin.
func (t *Table) readError(next int, err error) *Error {
	var corrupt flate.CorruptInputError
	e := t.newError("", "")
	switch {
	case errors.As(err, new(zstdError)):
		e.Rule = "the zstd data is damaged or cut short: " + err.Error()
	case errors.Is(err, io.ErrUnexpectedEOF):
		e.Rule = "the gzip data is cut short"
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		e.Rule = "the gzip data is damaged"
	default:
		e.Line = next
		e.Rule = "cannot be read: " + err.Error()
	}
	return e
}

// beginCSV reads the header and prepares the reading of the parts below it.
func (p *pass) beginCSV(in *input, lines int) error {
	_, first, pieces, err := in.readHeader(lines)
	if err != nil {
		return err
	}
	p.names = in.t.Names()
	p.plain = make([]atomic.Bool, len(p.names))
	isFirst := true
	p.nextPart = func() (part, error) {
		next := first
		if first = (piece{}); len(next.text) == 0 {
			if next, err = pieces.next(); err != nil {
				return nil, err
			}
		}
		defer func() { isFirst = false }()
		return &csvPart{piece: next, isFirst: isFirst, source: in.t.Source, reading: in.t.reading, names: p.names, comma: in.t.comma, index: in.t.index, keep: in.t.keep, unnamedCells: in.t.unnamedCells, plain: p.plain}, nil
	}
	return nil
}

// A csvPart is a part of the rows of a CSV file. Any goroutine may decode it.
type csvPart struct {
	piece
	isFirst      bool // whether the part is the first of the file
	source       string
	reading      *reading
	names        []string
	comma        byte
	index        bool
	keep         []string
	unnamedCells int
	plain        []atomic.Bool // plain[j] reports whether column j is known to hold only numbers
}

// table returns the rows of the part. A column that is known to hold only numbers is plain.
func (p *csvPart) table() (*Table, error) {
	return p.read(func(j int) column { return column{plain: p.plain[j].Load()} })
}

// read returns the rows of the part. begin(j) returns an empty column j in plain or coded form.
func (p *csvPart) read(begin func(j int) column) (*Table, error) {
	rows := maxRows(p.text, len(p.names))
	t := &Table{Source: p.source, reading: p.reading, comma: p.comma, index: p.index, unnamedCells: p.unnamedCells, lines: make([]int32, 0, rows)}
	for j, name := range p.names {
		c := begin(j)
		c.name, c.reading, c.rounded, c.exact = name, p.reading, true, slices.Contains(p.keep, name)
		if c.plain = c.plain && !c.exact; c.plain {
			c.numbers = make([]float64, 0, rows)
		} else {
			c.codes = make([]int32, 0, rows)
		}
		t.columns = append(t.columns, &c)
	}
	if bytes.IndexByte(p.text, '"') >= 0 {
		return t, t.readRows(p.text, p.line-1)
	}
	return t, t.addLines(p.text, p.line)
}

// maxRows returns an upper bound on the number of rows in a text, from its line ends and delimiters.
func maxRows(text []byte, columns int) int {
	return min(bytes.Count(text, newline), len(text)/max(columns, 2)) + 1
}

// addLines is a fast version of readRows for a text without quotation marks.
func (t *Table) addLines(text []byte, line int) error {
	comma, numbers, cells := []byte{t.comma}, t.reading.pointOnly(), t.indexCells()+len(t.columns)
	for next := 0; next < len(text); line++ {
		begin, end := next, len(text)
		if n := bytes.IndexByte(text[begin:], '\n'); n >= 0 {
			end = begin + n
		}
		next = end + 1
		if end > begin && text[end-1] == '\r' {
			end--
		}
		if begin == end || text[begin] <= ' ' && t.blank(text[begin:end]) {
			continue
		}
		if n := bytes.Count(text[begin:end], comma) + 1; n != cells {
			if err := t.checkCells(line, n, string(text[bytes.LastIndex(text[:end], comma)+1:end])); err != nil {
				return err
			}
		}
		if err := t.addLine(line); err != nil {
			return err
		}
		if t.index {
			begin += bytes.IndexByte(text[begin:end], t.comma) + 1
		}
		for _, c := range t.columns {
			if c.plain && numbers {
				// scanDecimal stops at a byte that is not part of a number.
				if v, stop, ok := scanDecimal(text, begin); ok && (stop == end || text[stop] == t.comma) {
					c.numbers = append(c.numbers, v)
					begin = min(stop+1, end)
					continue
				}
			}
			cell, _, _ := bytes.Cut(text[begin:end], comma)
			begin = min(begin+len(cell)+1, end)
			if !c.addBytes(cell) {
				if !utf8.Valid(cell) {
					return t.cellError(c, t.rows, string(cell), notUTF8)
				}
				c.add(string(cell))
			}
		}
		if begin < end && t.unnamedCells > 0 {
			if cell := bytes.Trim(text[begin:end], " \t"+string(t.comma)); len(cell) > 0 {
				return t.namelessError(line, string(cell))
			}
		}
		t.rows++
	}
	return nil
}

package dataset

import (
	"bufio"
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

// ReadCSV reads a table from a CSV file: UTF-8 with or without a byte order
// mark, quotation by RFC 4180, LF or CRLF, one header line with the names of the
// columns. The delimiter is the comma, semicolon, tab or vertical bar, whichever
// occurs most often in the header. A first column without a name is the index that
// pandas and R write, and is left out. Empty lines are skipped. A file that begins as gzip
// does is decompressed; one whose name ends in .gz must begin so. The path "-"
// reads stdin.
//
// A file with a header and no rows gives a table without rows. Everything that
// cannot be read is an *Error, with the line where there is one.
func ReadCSV(path string, stdin io.Reader) (*Table, error) {
	return File{Path: path, Stdin: stdin}.ReadCSV()
}

// ReadCSV is Read for a CSV file, whatever its name and its first line.
func (f File) ReadCSV() (*Table, error) {
	in, err := f.open()
	if err != nil {
		return nil, err
	}
	defer in.close()
	return readCSV(in)
}

// byteOrderMark is that of UTF-8.
var byteOrderMark = []byte{0xef, 0xbb, 0xbf}

// readCSV reads a whole file, by pieces on all processors, whose columns are joined in
// their order: what has no quotation marks is cut at its commas without encoding/csv.
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
	text := 0
	err := ordered(context.Background(), in.allowance.workers(), p.next, func(next part) (d decoded, err error) {
		d.part = next
		d.t, err = next.table()
		return d, err
	}, func(d decoded) error {
		next := d.part.(*csvPart)
		for j, c := range t.columns {
			if c.texts && d.t.columns[j].plain { // whose cells it must keep then
				var err error
				if d.t, err = next.read(func(j int) column { return column{plain: t.columns[j].plain, texts: t.columns[j].texts} }); err != nil {
					return err
				}
				break
			}
		}
		t.rows += d.t.rows
		if t.rows > math.MaxInt32 {
			return t.fault("", fmt.Sprintf("has more than %d lines", math.MaxInt32))
		}
		text += len(next.text)
		room := t.rows
		if in.size > 0 { // for as many rows in all as there will be if they go on as they are
			room = int(min(4*float64(t.rows), 1.02*float64(t.rows)*float64(in.size)/float64(text)))
		}
		t.lines = append(withRoom(t.lines, len(d.t.lines), room), d.t.lines...)
		for j, c := range t.columns {
			c.join(d.t.columns[j], room)
			p.plain[j].Store(c.plain)
		}
		return in.allowance.fitsTable(t)
	})
	if err != nil {
		return nil, err
	}
	for _, c := range t.columns {
		c.finish()
	}
	return t, nil
}

// readHeader reads the header. It returns what comes after it, and what cuts the
// rest of the file into pieces of that many lines at most.
func (in *input) readHeader(lines int) (rest piece, cut *pieces, err error) {
	if err := in.t.skipMark(in.r); err != nil {
		return rest, nil, err
	}
	if c := in.comment; c >= 0x80 || c > 0 && (c <= ' ' || c == '"' || c == in.delimiter) {
		return rest, nil, in.t.fault("", fmt.Sprintf("the character %q cannot begin comments: use # or another mark", c))
	} else if c > 0 {
		in.r = bufio.NewReaderSize(&commentReader{r: in.r, mark: c}, bufferSize)
	}
	cut = &pieces{in: in, quotes: true, line: 1, lines: lines}
	first, err := cut.next()
	for skipped := 0; err == nil; { // empty lines, and those of comments
		begin := len(first.text) - len(bytes.TrimLeft(first.text, "\r\n"))
		skipped += bytes.Count(first.text[:begin], newline)
		first = piece{first.text[begin:], 1 + skipped}
		if len(first.text) > 0 {
			break
		}
		first, err = cut.next()
	}
	if err != nil && err != io.EOF {
		return rest, nil, err
	}
	if in.t.comma = in.delimiter; in.t.comma == 0 {
		in.t.comma = delimiterOf(first.text)
	} else if d := in.t.comma; d >= 0x80 || d < ' ' && d != '\t' || 'a' <= d|0x20 && d|0x20 <= 'z' || '0' <= d && d <= '9' || strings.IndexByte("\"+-._ ", d) >= 0 {
		return rest, nil, in.t.fault("", fmt.Sprintf("the delimiter %q cannot be one: use , ; | or a tab", d))
	}
	r := newCSVReader(bytes.NewReader(first.text), in.t.comma)
	if err := in.t.readNames(r, first.line-1); err != nil {
		return rest, nil, err
	}
	end := int(r.InputOffset())
	return piece{first.text[end:], first.line + bytes.Count(first.text[:end], newline)}, cut, nil
}

// skipMark drops a byte order mark, if it is that of UTF-8.
func (t *Table) skipMark(in *bufio.Reader) error {
	mark, _ := in.Peek(3)
	switch {
	case bytes.Equal(mark, byteOrderMark):
		in.Discard(3)
	case bytes.HasPrefix(mark, []byte{0xff, 0xfe}), bytes.HasPrefix(mark, []byte{0xfe, 0xff}):
		return t.fault("", "is UTF-16; save it as UTF-8")
	}
	return nil
}

func newCSVReader(in io.Reader, comma byte) *csv.Reader {
	r := csv.NewReader(in)
	r.Comma = rune(comma)
	r.ReuseRecord = true
	r.FieldsPerRecord = -1 // counted here, for a better message
	return r
}

// readNames reads the header. It returns an error, not an *Error, for nil to be
// nil.
func (t *Table) readNames(r *csv.Reader, before int) error {
	header, err := r.Read()
	if err == io.EOF {
		return t.fault("", "is empty; a header line with the names of the columns is needed")
	}
	if err != nil {
		return t.recordFault(before, before+1, err)
	}
	if err := t.setHeader(header); err != nil {
		err.Line, _ = r.FieldPos(0)
		err.Line += before
		if strings.HasSuffix(err.Rule, "is not valid UTF-8") {
			err.Rule += "; save the file as UTF-8, if it is a table at all"
		}
		return err
	}
	if !slices.ContainsFunc(header, func(name string) bool { _, k := parseCell(name); return k != number }) {
		t.note = "; the first line is taken for the names of the columns: put one above these numbers"
	}
	return nil
}

// readRows reads rows to the end; before is how many lines of the file come
// before those that r reads.
func (t *Table) readRows(r *csv.Reader, before int) error {
	for line := before; ; {
		record, err := r.Read()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return t.recordFault(before, line+1, err)
		}
		line, _ = r.FieldPos(0)
		line += before
		if len(record) != t.cellsOfRow() {
			return t.cellsFault(line, len(record))
		}
		record = record[len(record)-len(t.columns):]
		if err := t.addLine(line); err != nil {
			return err
		}
		for i, c := range t.columns {
			if !c.addBytes([]byte(record[i])) {
				if !utf8.ValidString(record[i]) {
					return t.cellFault(c, t.rows, record[i], notUTF8)
				}
				c.add(record[i])
			}
		}
		t.rows++
	}
}

const notUTF8 = "is not valid UTF-8; save the file as UTF-8"

// addLine notes the line of the next row.
func (t *Table) addLine(line int) error {
	if t.rows == math.MaxInt32 || line > math.MaxInt32 {
		return t.fault("", fmt.Sprintf("has more than %d lines", math.MaxInt32))
	}
	t.lines = append(t.lines, int32(line))
	return nil
}

// cellsFault is the error for a row with another number of cells than the
// header.
func (t *Table) cellsFault(line, n int) *Error {
	e := t.fault("", fmt.Sprintf("has %s where the header has %d", count.Of(n, "cell"), t.cellsOfRow()))
	e.Line = line
	return e
}

// setHeader names the columns.
func (t *Table) setHeader(names []string) *Error {
	if t.index = len(names) > 1 && strings.TrimSpace(names[0]) == ""; t.index {
		names = names[1:]
	}
	return t.setNames(names)
}

// recordFault is readFault for what reads records; before is how many lines of
// the file come before those that it reads.
func (t *Table) recordFault(before, next int, err error) *Error {
	var syntax *csv.ParseError
	if !errors.As(err, &syntax) {
		return t.readFault(next, err)
	}
	e := t.fault("", "")
	e.Line = before + syntax.StartLine
	switch {
	case !errors.Is(err, csv.ErrQuote):
		e.Rule = `broken quoting: a cell with a quotation mark must be quoted as a whole, its marks doubled: "6"" pipe"`
	case syntax.Line > syntax.StartLine:
		e.Rule = fmt.Sprintf("broken quoting: a quotation mark is not closed properly by line %d", before+syntax.Line)
	default:
		e.Rule = fmt.Sprintf("broken quoting: a quotation mark is not closed properly at byte %d of the line", syntax.Column)
	}
	return e
}

// readFault turns an error of the readers into one line. next is the line on
// which the next record should begin.
func (t *Table) readFault(next int, err error) *Error {
	var corrupt flate.CorruptInputError
	e := t.fault("", "")
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

// beginCSV reads the header.
func (p *pass) beginCSV(in *input, lines int) error {
	first, cut, err := in.readHeader(lines)
	if err != nil {
		return err
	}
	p.names = in.t.Names()
	p.plain = make([]atomic.Bool, len(p.names))
	p.parts = func() (part, error) {
		next := first
		if first = (piece{}); len(next.text) == 0 {
			if next, err = cut.next(); err != nil {
				return nil, err
			}
		}
		return &csvPart{piece: next, source: in.t.Source, na: in.t.na, names: p.names, comma: in.t.comma, index: in.t.index, plain: p.plain}, nil
	}
	return nil
}

// A csvPart is a part of a CSV file below its header. It is read on any goroutine.
type csvPart struct {
	piece
	source string
	na     *naValues
	names  []string
	comma  byte
	index  bool
	plain  []atomic.Bool // columns that are known to be of numbers only
}

// table returns the rows of the part. A column may be plain from the start.
func (p *csvPart) table() (*Table, error) {
	return p.read(func(j int) column { return column{plain: p.plain[j].Load()} })
}

// read returns the rows of the part in columns that begin as given.
func (p *csvPart) read(begin func(j int) column) (*Table, error) {
	rows := mostRows(p.text, len(p.names))
	t := &Table{Source: p.source, na: p.na, comma: p.comma, index: p.index, lines: make([]int32, 0, rows)}
	for j, name := range p.names {
		c := begin(j)
		c.name, c.na, c.rounded = name, p.na, true
		if c.plain {
			c.numbers = make([]float64, 0, rows)
		} else {
			c.codes = make([]int32, 0, rows)
		}
		t.columns = append(t.columns, &c)
	}
	if bytes.IndexByte(p.text, '"') >= 0 {
		return t, t.readRows(newCSVReader(bytes.NewReader(p.text), t.comma), p.line-1)
	}
	return t, t.addLines(p.text, p.line)
}

// mostRows is how many rows a text may have: each has a byte for every cell but the last,
// and for the end of the line.
func mostRows(text []byte, columns int) int {
	return min(bytes.Count(text, newline), len(text)/max(columns, 2)) + 1
}

// addLines is readRows for a text without quotation marks.
func (t *Table) addLines(text []byte, line int) error {
	comma, numbers := []byte{t.comma}, t.na.plain()
	for next := 0; next < len(text); line++ {
		at, end := next, len(text)
		if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n
		}
		next = end + 1
		if end > at && text[end-1] == '\r' {
			end--
		}
		if at == end {
			continue
		}
		if n := bytes.Count(text[at:end], comma) + 1; n != t.cellsOfRow() {
			return t.cellsFault(line, n)
		}
		if err := t.addLine(line); err != nil {
			return err
		}
		if t.index {
			at += bytes.IndexByte(text[at:end], t.comma) + 1
		}
		for _, c := range t.columns {
			if c.plain && numbers {
				// What no number goes on with ends it, the end of the line too.
				if v, stop, ok := scanDecimal(text, at); ok && (stop == end || text[stop] == t.comma) {
					c.numbers = append(c.numbers, v)
					at = min(stop+1, end)
					continue
				}
			}
			cell, _, _ := bytes.Cut(text[at:end], comma)
			at = min(at+len(cell)+1, end)
			if !c.addBytes(cell) {
				if !utf8.Valid(cell) {
					return t.cellFault(c, t.rows, string(cell), notUTF8)
				}
				c.add(string(cell))
			}
		}
		t.rows++
	}
	return nil
}

// delimiters are those that are recognized in a header, in order of preference.
const delimiters = ",;\t|"

// delimiterOf returns the delimiter that occurs most often in the first line of a
// text, outside quotation marks; a comma where there is none.
func delimiterOf(text []byte) byte {
	var counts [256]int
	quoted := false
	for _, c := range text {
		if c == '"' {
			quoted = !quoted
		}
		if c == '\n' && !quoted {
			break
		}
		if !quoted {
			counts[c]++
		}
	}
	best := delimiters[0]
	for _, d := range []byte(delimiters) {
		if counts[d] > counts[best] {
			best = d
		}
	}
	return best
}

// cellsOfRow is the number of cells that a row of a CSV file has.
func (t *Table) cellsOfRow() int {
	if t.index {
		return len(t.columns) + 1
	}
	return len(t.columns)
}

package dataset

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A head holds the properties of a CSV file that are detected from its beginning.
type head struct {
	comma          byte // the delimiter between cells
	skip           int  // number of lines before the names: empty lines, comments and a line such as sep=;
	rowNames       bool // each row begins with a row name that the header does not count, as in files of R
	crLines        bool // lines end in CR
	blankSeparated bool // any number of spaces and tabs separates the cells; comma is then the tab
}

// delimiters lists the delimiters that are detected, in order of preference.
const delimiters = ",;\t|"

// readHead detects the properties of the file from its first bytes. It replaces in.r by a reader whose lines end in
// LF and whose cells are separated by one delimiter.
func (in *input) readHead() (h head, err error) {
	if err := in.checkDialect(); err != nil {
		return h, err
	}
	if prefix, _ := in.r.Peek(len(byteOrderMark)); bytes.Equal(prefix, byteOrderMark) {
		in.r.Discard(len(byteOrderMark))
	}
	sample, complete, err := in.sample()
	if err != nil {
		return h, err
	}
	prefix, _ := in.r.Peek(bufferSize)
	h.crLines = hasCRLines(prefix)
	if in.comment > 0 || h.crLines {
		in.clean(cleaner{char: in.comment, crLines: h.crLines})
		if sample, complete, err = in.sample(); err != nil {
			return h, err
		}
	}
	var first []byte
	first, h.skip = skipBlank(sample)
	h.comma = in.delimiter
	if delimiter, ok := separator(first); ok {
		var skipped int
		first, skipped = skipBlank(first[lineLength(first):])
		h.skip += 1 + skipped
		if h.comma == 0 {
			h.comma = delimiter
		}
	}
	if h.comma == 0 {
		h.comma = delimiterOf(first)
	}
	switch {
	case h.comma == ' ', h.comma == 0 && complete && in.aligned(first):
		h.blankSeparated, h.comma = true, '\t'
		in.clean(cleaner{collapseBlanks: true})
		if sample, complete, err = in.sample(); err != nil {
			return h, err
		}
		first = sample
		for range h.skip {
			first = first[lineLength(first):]
		}
	case h.comma == 0:
		if h.comma = ','; in.t.reading.decimal == ',' {
			h.comma = ';'
		}
		if bytes.ContainsRune(bytes.TrimSpace(first[:lineLength(first)]), ' ') {
			in.t.note = "{; if spaces separate the columns, give $delimiter=space}"
		}
	}
	if complete && !in.headerRead {
		in.learn(&h, first)
	}
	return h, nil
}

// checkDialect returns an error for an invalid delimiter, comment character, decimal mark or thousands separator.
func (in *input) checkDialect() error {
	if c := in.comment; c >= 0x80 || c > 0 && (c <= ' ' || c == '"' || c == in.delimiter) {
		return in.t.newError("", fmt.Sprintf("the character %q cannot begin comments: use # or another mark", c))
	}
	if d := in.delimiter; d >= 0x80 || d > 0 && d < ' ' && d != '\t' || 'a' <= d|0x20 && d|0x20 <= 'z' || '0' <= d && d <= '9' || d > 0 && strings.IndexByte("\"+-._", d) >= 0 {
		return in.t.newError("", fmt.Sprintf("the character %q cannot be a delimiter: use , ; | a tab or a space", d))
	}
	if rule := in.t.reading.check(); rule != "" {
		return in.t.newError("", rule)
	}
	return nil
}

// sample returns the beginning of in.r: complete lines of at most 1 MiB, or the first 1 MiB of a longer first line.
func (in *input) sample() (sample []byte, complete bool, err error) {
	sample, peekErr := in.r.Peek(bufferSize)
	if peekErr == nil && bytes.IndexByte(sample, '\n') < 0 {
		in.r = bufio.NewReaderSize(in.r, 1<<20)
		sample, peekErr = in.r.Peek(1 << 20)
	}
	end := bytes.LastIndexByte(sample, '\n') + 1
	if complete = end > 0 || peekErr != nil; complete && peekErr == nil {
		sample = sample[:end]
	}
	if complete && bytes.IndexByte(sample[:lineLength(sample)], 0) >= 0 {
		return nil, false, in.t.newError("", "contains zero bytes: it is not a text file, or it is UTF-16 without a byte-order mark; save it as UTF-8")
	}
	return slices.Clone(sample), complete, nil
}

func (in *input) clean(c cleaner) {
	c.r = in.r
	in.r = bufio.NewReaderSize(&c, bufferSize)
}

// hasCRLines reports whether at least one line ends in CR without LF.
func hasCRLines(sample []byte) bool {
	quoted := false
	for i, c := range sample {
		switch {
		case c == '"':
			quoted = !quoted
		case c == '\r' && !quoted && i+1 < len(sample) && sample[i+1] != '\n':
			return true
		}
	}
	return len(sample) > 0 && bytes.IndexByte(sample, '\n') < 0 && sample[len(sample)-1] == '\r'
}

// skipBlank returns a text without its leading blank lines, and the number of these lines.
func skipBlank(text []byte) (rest []byte, lines int) {
	for len(text) > 0 {
		n := lineLength(text)
		if len(bytes.TrimSpace(text[:n])) > 0 {
			break
		}
		lines += bytes.Count(text[:n], newline)
		text = text[n:]
	}
	return text, lines
}

func lineLength(text []byte) int {
	if n := bytes.IndexByte(text, '\n'); n >= 0 {
		return n + 1
	}
	return len(text)
}

// separator returns the delimiter named by a first line such as "sep=;", which Excel writes.
func separator(text []byte) (delimiter byte, ok bool) {
	line := strings.Trim(string(text[:lineLength(text)]), "\r\n")
	if quoted := strings.Trim(line, " \""); len(quoted) >= 5 && strings.EqualFold(quoted[:4], "sep=") {
		line = quoted
	}
	if len(line) == 5 && strings.EqualFold(line[:4], "sep=") {
		return line[4], true
	}
	return 0, false
}

// delimiterOf returns the delimiter that occurs most often in the first line of a text, outside quotation marks, or 0.
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
	best := byte(0)
	for _, d := range []byte(delimiters) {
		if counts[d] > counts[best] {
			best = d
		}
	}
	return best
}

// aligned reports whether a text without a delimiter is a table whose columns are separated by spaces. The header
// must have at least two names. All rows must have as many cells as the header has names, or all one more, and a
// column must hold only numbers.
func (in *input) aligned(text []byte) bool {
	clean, _ := io.ReadAll(&cleaner{r: bufio.NewReader(bytes.NewReader(text)), collapseBlanks: true})
	records := recordsOf(clean, '\t', bufferSize)
	if len(records) < 2 || len(records[0].cells) < 2 {
		return false
	}
	width := len(records[1].cells)
	if extra := width - len(records[0].cells); extra != 0 && extra != 1 {
		return false
	}
	numbers := slices.Repeat([]bool{true}, width)
	for _, r := range records[1:] {
		if len(r.cells) != width {
			return false
		}
		for j, cell := range r.cells {
			_, k := in.t.reading.parse(cell)
			numbers[j] = numbers[j] && k <= otherSpelling
		}
	}
	return slices.Contains(numbers, true)
}

// A record holds the cells of a row in a sample.
type record struct {
	cells  []string
	quoted bool // the first cell is quoted
}

// recordsOf returns the first n records of a sample, or fewer if a record is malformed.
func recordsOf(text []byte, comma byte, n int) (list []record) {
	text = tightQuotes(text, comma)
	r := newCSVReader(bytes.NewReader(text), comma)
	r.ReuseRecord = false
	for offset := int64(0); len(list) < n; {
		cells, err := r.Read()
		if err != nil {
			return list
		}
		raw := bytes.TrimSpace(text[offset:r.InputOffset()])
		offset = r.InputOffset()
		if len(raw) == 0 {
			continue
		}
		for j := range cells {
			cells[j] = strings.TrimSpace(cells[j])
		}
		list = append(list, record{cells, raw[0] == '"'})
	}
	return list
}

// learn detects row names and decimal commas in a sample, which begins with the header.
func (in *input) learn(h *head, sample []byte) {
	semicolons := h.comma == ';' && !in.t.reading.specified
	records := recordsOf(sample, h.comma, 2)
	if len(records) < 2 || !semicolons && len(records[1].cells) != len(records[0].cells)+1 {
		return
	}
	records = recordsOf(sample, h.comma, bufferSize)
	h.rowNames = areRowNames(records)
	if example := in.decimalComma(records[1:]); semicolons && example != "" {
		in.t.reading = newReading(in.t.reading.list, newMarks(',', in.t.reading.thousands))
		in.t.warnings = append(in.t.warnings, "the decimal mark is taken to be a comma, as in "+quote(example)+"{; for a point give $decimal=point}")
	}
}

// areRowNames reports whether every row has one cell more than the header, and begins with a row name. Row names are
// distinct: quoted cells, texts that are not numbers, or row numbers. If the last cell of every row is empty, the
// additional cell is due to a superfluous delimiter, and the result is false.
func areRowNames(records []record) bool {
	header, rows := records[0].cells, records[1:]
	empty, quoted, numbers := true, true, false
	seen := make(map[string]bool, len(rows))
	counting := len(rows) > 2
	from := 0
	for i, r := range rows {
		if len(r.cells) != len(header)+1 || seen[r.cells[0]] || r.cells[0] == "" {
			return false
		}
		seen[r.cells[0]] = true
		n, err := strconv.Atoi(r.cells[0])
		if i == 0 {
			from = n
		}
		counting = counting && err == nil && n == from+i && (from == 0 || from == 1)
		_, k := parseCell(r.cells[0])
		numbers = numbers || k == number
		quoted = quoted && r.quoted
		empty = empty && r.cells[len(header)] == ""
	}
	return !empty && header[0] != "" && header[len(header)-1] != "" && (quoted || counting || !numbers)
}

// decimalComma returns the first number with a decimal comma, or "" if there is none or if a number
// has a decimal point. It ignores ambiguous cells such as 1,000 and 1.000.
func (in *input) decimalComma(rows []record) (example string) {
	comma, point := newMarks(',', '.'), newMarks('.', ',')
	for _, r := range rows {
		for _, cell := range r.cells {
			if !strings.ContainsAny(cell, ",.") {
				continue
			}
			asComma, _ := comma.parseSpelling(cell)
			asPoint, _ := point.parseSpelling(cell)
			switch {
			case asPoint != "" && asComma == "":
				return ""
			case asComma != "" && asPoint == "" && example == "":
				example = cell
			}
		}
	}
	return example
}

// tightQuotes removes spaces between a delimiter and a quotation mark, which RFC 4180 does not allow.
func tightQuotes(text []byte, comma byte) []byte {
	if !bytes.Contains(text, []byte(` "`)) && !bytes.Contains(text, []byte(`" `)) {
		return text
	}
	tight := make([]byte, 0, len(text))
	for pos := 0; pos < len(text); { // here, pos is the position at which a cell begins
		if next := pos + spaces(text[pos:]); next < len(text) && text[next] == '"' {
			end := quotedEnd(text, next)
			tight = append(tight, text[next:end]...)
			if pos = end + spaces(text[end:]); pos < len(text) && text[pos] != comma && text[pos] != '\n' && text[pos] != '\r' {
				pos = end // another text follows the quotation: keep the spaces
			}
		}
		n := bytes.IndexAny(text[pos:], string([]byte{comma, '\n'}))
		if n < 0 {
			n = len(text) - pos - 1
		}
		tight = append(tight, text[pos:pos+n+1]...)
		pos += n + 1
	}
	return tight
}

// quotedEnd returns the index after the end of the quotation that begins at index i.
func quotedEnd(text []byte, i int) int {
	for i++; i < len(text); i += 2 {
		n := bytes.IndexByte(text[i:], '"')
		if n < 0 {
			break
		}
		if i += n; i+1 == len(text) || text[i+1] != '"' { // a doubled quotation mark represents one mark
			return i + 1
		}
	}
	return len(text)
}

// spaces counts the spaces at the beginning of a text.
func spaces(text []byte) int { return len(text) - len(bytes.TrimLeft(text, " ")) }

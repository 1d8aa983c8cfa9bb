package dataset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// JSON text is a sequence of objects, as in JSON lines, or one array of objects. An object is a row, and its keys
// are the names of the columns. The keys of the first object are the columns of the table, in their order. A value
// is a number, a text, true, false or null; null and an absent key are missing cells. The text is converted to CSV
// while it is read.

// looksJSON reports whether a text begins like an object, or like an array of objects.
func looksJSON(r *bufio.Reader) bool {
	prefix, _ := r.Peek(256)
	prefix = bytes.TrimLeft(bytes.TrimPrefix(prefix, byteOrderMark), " \t\r\n")
	for _, char := range []byte("[{\"") {
		switch {
		case len(prefix) > 0 && prefix[0] == char:
			prefix = bytes.TrimLeft(prefix[1:], " \t\r\n")
		case char != '[':
			return false
		}
	}
	return true
}

// readJSON reads a JSON text. Its errors give numbers of rows, because a row may take several lines.
func readJSON(in *input) (*Table, error) {
	if prefix, _ := in.r.Peek(len(byteOrderMark)); bytes.Equal(prefix, byteOrderMark) {
		in.r.Discard(len(byteOrderMark))
	}
	c := &jsonRows{t: in.t, d: jsontext.NewDecoder(in.r)}
	in.r = bufio.NewReaderSize(c, bufferSize)
	in.delimiter, in.comment, in.size, in.headerRead = ',', 0, -1, true
	in.t.reading = Dialect{}.reading()
	t, err := readCSV(in)
	if c.err != nil && c.err != io.EOF {
		return nil, c.err
	}
	if err != nil {
		return nil, err
	}
	t.lines, t.note = nil, ""
	return t, nil
}

// jsonRows is a reader that converts the rows of a JSON text to CSV.
type jsonRows struct {
	t      *Table
	d      *jsontext.Decoder
	names  []string
	quoted [][]byte // the names of the columns as in the JSON text of the first row, with quotation marks
	cells  [][]byte // the cells of the current row as in the JSON text; a missing cell is empty
	rows   int
	array  bool
	csv    bytes.Buffer // CSV text that the caller has not read yet
	text   []byte       // buffer for the value of a JSON string
	err    error        // io.EOF after the last row
}

func (c *jsonRows) Read(p []byte) (int, error) {
	for c.csv.Len() < len(p) && c.err == nil {
		c.err = c.next()
	}
	if c.csv.Len() > 0 {
		return c.csv.Read(p)
	}
	return 0, c.err
}

// next converts the next row to CSV. Before the first row it writes the names.
func (c *jsonRows) next() error {
	kind := c.d.PeekKind()
	if c.rows == 0 && !c.array && kind == '[' {
		c.array = true
		_, _ = c.d.ReadToken()
		kind = c.d.PeekKind()
	}
	if c.array && kind == ']' {
		_, _ = c.d.ReadToken()
		if kind = c.d.PeekKind(); kind != 0 {
			return c.newError("", "must be one array of objects, with nothing after it")
		}
		c.array = false
	}
	if kind != '{' {
		v, err := c.d.ReadValue()
		switch {
		case err == io.EOF && !c.array && c.rows > 0:
			return io.EOF
		case err == io.EOF && !c.array:
			return c.t.newError("", "has no rows: an object whose keys are the names of the columns is needed")
		case err != nil:
			return c.syntax(err)
		}
		return c.newError("", fmt.Sprintf("must be an object whose keys are the names of the columns, got %.40s", v))
	}
	c.rows++
	_, _ = c.d.ReadToken()
	for j := range c.cells {
		c.cells[j] = c.cells[j][:0]
	}
	for index := 0; c.d.PeekKind() == '"'; index++ {
		key, err := c.d.ReadValue()
		if err != nil {
			return c.syntax(err)
		}
		j := index
		if j >= len(c.quoted) || !bytes.Equal(c.quoted[j], key) { // the key is not the next key of the first row
			if j, err = c.column(key); err != nil {
				return err
			}
		}
		v, err := c.d.ReadValue()
		switch {
		case err != nil:
			return c.syntax(err)
		case v.Kind() == '{' || v.Kind() == '[':
			return c.newError(c.names[j], "must be a number, a text, true, false or null")
		case v.Kind() != 'n':
			c.cells[j] = append(c.cells[j], v...)
		}
	}
	if _, err := c.d.ReadToken(); err != nil {
		return c.syntax(err)
	}
	if len(c.names) == 0 {
		return c.newError("", "has no keys")
	}
	if c.rows == 1 {
		c.write(c.quoted)
	}
	c.write(c.cells)
	return nil
}

// column returns the index of the column for a key. In the first row it adds the column.
func (c *jsonRows) column(key []byte) (int, error) {
	text, err := jsontext.AppendUnquote(nil, key)
	if err != nil {
		return 0, c.syntax(err)
	}
	name := string(text)
	j := slices.Index(c.names, name)
	switch {
	case strings.TrimSpace(name) == "":
		return 0, c.newError("", "has a value without a name: give it a key")
	case j < 0 && c.rows > 1:
		return 0, c.newError(name, "is not a key of the first row: give each row the same keys, with null for a missing value")
	case j < 0:
		j = len(c.names)
		c.names, c.quoted, c.cells = append(c.names, name), append(c.quoted, bytes.Clone(key)), append(c.cells, nil)
	}
	return j, nil
}

// write writes a line of CSV. It quotes a cell only if necessary, because quotation slows decoding.
func (c *jsonRows) write(cells [][]byte) {
	for j, cell := range cells {
		if j > 0 {
			c.csv.WriteByte(',')
		}
		switch {
		case len(cell) > 0 && cell[0] == '"':
			c.text, _ = jsontext.AppendUnquote(c.text[:0], cell) // no error, because the decoder has checked the string
			if len(c.text) == 0 || bytes.ContainsAny(c.text, ",\"\r\n") || c.text[0] <= ' ' {
				c.csv.WriteByte('"')
				c.csv.Write(bytes.ReplaceAll(c.text, []byte{'"'}, []byte(`""`)))
				c.csv.WriteByte('"')
			} else {
				c.csv.Write(c.text)
			}
		case len(cell) == 0 && len(cells) == 1:
			c.csv.WriteString(`""`) // an empty line would be skipped
		default:
			c.csv.Write(cell)
		}
	}
	c.csv.WriteByte('\n')
}

// newError returns an error about the current row.
func (c *jsonRows) newError(name, rule string) *Error {
	e := c.t.newError(name, rule)
	e.Row = c.rows
	return e
}

// syntax returns the error for a text that is not valid JSON, or that cannot be read.
func (c *jsonRows) syntax(err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case err == io.EOF, errors.Is(err, io.ErrUnexpectedEOF):
		return c.newError("", "is not valid JSON: the file is cut short")
	case errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName):
		return c.newError(syntax.JSONPointer.LastToken(), "occurs twice in the object: give each key once")
	case syntax != nil && (strings.Contains(syntax.Err.Error(), "'N'") || strings.Contains(syntax.Err.Error(), "'I'")):
		return c.newError("", "is not valid JSON, which has neither NaN nor Infinity: write null for a missing value")
	case syntax != nil:
		return c.newError("", "is not valid JSON: "+syntax.Err.Error())
	}
	return c.t.readError(0, err)
}

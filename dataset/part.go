package dataset

import (
	"bytes"
	"errors"
	"io"
)

// Header returns the lines of a CSV file up to and including the line with the names, and the
// dialect of the file. The argument begin is the beginning of the file. ReadLines reads later lines
// with this header and dialect. ok is false if the names are not found, or if lines cannot be read
// separately because the file has UTF-16, CR line ends, or row names.
func (d Dialect) Header(begin []byte) (header []byte, detected Dialect, ok bool) {
	f := File{Path: "-", Stdin: bytes.NewReader(begin), Dialect: d}
	in, err := f.open()
	if err != nil {
		return nil, d, false
	}
	defer in.close()
	h, first, _, err := in.readHeader(0)
	if err != nil || in.converted || h.returns || h.rowNames {
		return nil, d, false
	}
	rest := begin
	for range first.line - 1 {
		n := bytes.IndexByte(rest, '\n')
		if n < 0 {
			return nil, d, false
		}
		rest = rest[n+1:]
	}
	detected = d
	switch {
	case h.blanks:
		detected.Delimiter = " "
	case h.comma == '\t':
		detected.Delimiter = "tab"
	default:
		detected.Delimiter = string(h.comma)
	}
	detected.Decimal = string(in.t.reading.decimal)
	return begin[:len(begin)-len(rest)], detected, true
}

// ReadLines reads lines of a CSV file below its header. The header and the dialect are results of
// Header. In errors, the first of the lines has the number 1.
func (d Dialect) ReadLines(header []byte, lines io.Reader) (*Table, error) {
	in, err := File{Path: "-", Stdin: io.MultiReader(bytes.NewReader(header), lines), Dialect: d}.open()
	if err != nil {
		return nil, err
	}
	in.part = true
	t, err := readCSV(in)
	above := bytes.Count(header, newline)
	if fault := new(Error); errors.As(err, &fault) && fault.Line > above {
		fault.Line -= above
	}
	if err != nil {
		return nil, err
	}
	for i := range t.lines {
		t.lines[i] -= int32(above)
	}
	return t, nil
}

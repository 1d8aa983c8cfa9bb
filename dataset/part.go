package dataset

import (
	"bytes"
	"errors"
	"io"
)

// Header returns the lines of a CSV file up to and including the line with the names, and the dialect of the file,
// with which ReadLines reads later lines. begin is the beginning of the file. ok is false if the names are not
// found, or if lines cannot be read separately because the file has UTF-16, CR line ends, or row names.
func (d Dialect) Header(begin []byte) (header []byte, detected Dialect, ok bool) {
	f := File{Path: "-", Stdin: bytes.NewReader(begin), Dialect: d}
	in, err := f.open()
	if err != nil {
		return nil, d, false
	}
	defer in.close()
	h, first, _, err := in.readHeader(0)
	if err != nil || in.converted || h.crLines || h.rowNames {
		return nil, d, false
	}
	remaining := begin
	for range first.line - 1 {
		n := bytes.IndexByte(remaining, '\n')
		if n < 0 {
			return nil, d, false
		}
		remaining = remaining[n+1:]
	}
	detected = d
	switch {
	case h.blankSeparated:
		detected.Delimiter = " "
	case h.comma == '\t':
		detected.Delimiter = "tab"
	default:
		detected.Delimiter = string(h.comma)
	}
	detected.Decimal = string(in.t.reading.decimal)
	return begin[:len(begin)-len(remaining)], detected, true
}

// ReadLines reads lines of a CSV file below its header. The header and the dialect are results of
// Header. In errors, the first of the lines has the number 1.
func (d Dialect) ReadLines(header []byte, lines io.Reader) (*Table, error) {
	in, err := File{Path: "-", Stdin: io.MultiReader(bytes.NewReader(header), lines), Dialect: d}.open()
	if err != nil {
		return nil, err
	}
	in.headerRead = true
	t, err := readCSV(in)
	headerLines := bytes.Count(header, newline)
	if dataErr := new(Error); errors.As(err, &dataErr) && dataErr.Line > headerLines {
		dataErr.Line -= headerLines
	}
	if err != nil {
		return nil, err
	}
	for i := range t.lines {
		t.lines[i] -= int32(headerLines)
	}
	return t, nil
}

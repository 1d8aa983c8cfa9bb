package dataset

import (
	"bytes"
	"io"
)

// Header returns the lines of a CSV file up to the one with the names, of which begin is
// the beginning, and the dialect of the file with what the beginning says about it: later
// lines are read by ReadLines. It is not ok where no lines can be read on their own, or the
// names are not found: a file in UTF-16, with line ends of CR, or with row names.
func (d Dialect) Header(begin []byte) (header []byte, of Dialect, ok bool) {
	f := d.Apply(File{Path: "-", Stdin: bytes.NewReader(begin)})
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
	of = d
	switch {
	case h.blanks:
		of.Delimiter = " "
	case h.comma == '\t':
		of.Delimiter = "tab"
	default:
		of.Delimiter = string(h.comma)
	}
	of.Decimal = string(in.t.reading.decimal)
	return begin[:len(begin)-len(rest)], of, true
}

// ReadLines reads lines of a CSV file behind its header, in the dialect, both of which
// Header returned.
func (d Dialect) ReadLines(header []byte, lines io.Reader) (*Table, error) {
	in, err := d.Apply(File{Path: "-", Stdin: io.MultiReader(bytes.NewReader(header), lines)}).open()
	if err != nil {
		return nil, err
	}
	in.part = true
	return readCSV(in)
}

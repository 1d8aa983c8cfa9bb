package dataset

import (
	"fmt"
	"io"
	"strconv"

	"github.com/mercer-go/mercer/internal/count"
)

// A packedPart is a range of rows of the feature array and of the target array, if there is one.
type packedPart struct {
	source, note string
	names        []string // names of all columns
	first, rows  int
	width        int // number of features
	x, y         *packed
	texts        *column // the column of targets if they are texts, otherwise nil
}

func (p *packedPart) table() (*Table, error) {
	t := &Table{Source: p.source, first: p.first, rows: p.rows, note: p.note}
	columns := make([]column, len(p.names))
	for j, name := range p.names {
		columns[j] = column{name: name, plain: true, cells: p.x, cellColumn: j}
		switch {
		case j >= p.width && p.texts != nil:
			columns[j] = *p.texts
		case j >= p.width:
			columns[j].cells, columns[j].cellColumn = p.y, j-p.width
		}
		t.columns = append(t.columns, &columns[j])
	}
	return t, nil
}

// An array is read from a binary file in ranges of its rows.
type array struct {
	in       *input
	h        npyHeader
	start    int64   // offset of the numbers in the file
	rowsRead int64   // number of rows read
	full     *packed // the whole array if it is in Fortran order and in.file is nil, otherwise nil
}

// read reads the given number of rows, beginning with row a.rowsRead.
func (a *array) read(rows int64) (*packed, error) {
	width := int64(a.h.width)
	header := a.h
	header.rows = rows
	if !a.h.fortran {
		m, err := a.in.npyCells(header)
		a.rowsRead += rows
		return m, err
	}
	if a.in.file == nil {
		if a.full == nil {
			m, err := a.in.npyCells(a.h)
			if err != nil {
				return nil, err
			}
			a.full = m
		}
		m := *a.full
		m.data = m.data[a.rowsRead*width:]
		a.rowsRead += rows
		return &m, nil
	}
	if size := a.start + a.h.rows*a.h.columns*width; size > a.in.size {
		_, err := a.in.npyCells(a.h) // returns the error for a truncated file
		return nil, err
	}
	m := &packed{data: make([]byte, rows*a.h.columns*width), kind: a.h.kind, bigEndian: a.h.bigEndian, byRow: int(width), byIndex: int(rows * width)}
	for j := range a.h.columns {
		to := m.data[j*rows*width : (j+1)*rows*width]
		if _, err := a.in.file.ReadAt(to, a.start+(j*a.h.rows+a.rowsRead)*width); err != nil {
			return nil, a.in.readError(err)
		}
	}
	a.rowsRead += rows
	return m, nil
}

// end returns an error if the file has bytes after the array.
func (a *array) end() error {
	if a.h.fortran && a.in.file != nil {
		if size := a.start + a.h.rows*a.h.columns*int64(a.h.width); size != a.in.size {
			e := a.in.t.newError("", "has more bytes than its header describes")
			e.Offset = size
			return e
		}
		return nil
	}
	return a.in.end()
}

// newArray reads the header of an array of numbers or texts.
func newArray(in *input) (*array, error) {
	h, err := in.npyHeader()
	return &array{in: in, h: h, start: in.offset}, err
}

// idxArray returns the array of an IDX file.
func idxArray(in *input) (*array, error) {
	h, err := in.idxHeader()
	return &array{in: in, start: in.offset, h: npyHeader{kind: h.kind, bigEndian: true, width: h.kind.size(), rank: h.rank, rows: h.rows, columns: h.columns}}, err
}

// beginBinary starts a pass over the arrays of a binary file.
func (s *Stream) beginBinary(p *pass, in *input) error {
	x, y, target, err := s.arrays(p, in)
	if err != nil {
		return err
	}
	width := int(x.h.columns)
	for j := range width {
		p.names = append(p.names, featureName(j))
	}
	if p.form == formIDX && x.h.rank == 1 {
		p.names = []string{labelName}
	}
	if y != nil {
		if y.h.rows != x.h.rows {
			return in.t.newError("", fmt.Sprintf("has %s of features and %d of targets", count.Of(x.h.rows, "row"), y.h.rows))
		}
		for j := range y.h.columns {
			name := target
			if y.h.columns > 1 {
				name += strconv.Itoa(int(j) + 1)
			}
			p.names = append(p.names, name)
		}
	}
	if y == nil && p.form == formIDX {
		in.t.note = noLabels
	}
	const partBytes = 1 << 22 // maximum size in bytes of the float64 features of a part
	step := max(1, partBytes/8/max(1, x.h.columns))
	done := false
	p.nextPart = func() (part, error) {
		first := x.rowsRead
		if first == x.h.rows {
			if done {
				return nil, io.EOF
			}
			done = true
			if err := x.end(); err != nil {
				return nil, err
			}
			if y != nil {
				if err := y.end(); err != nil {
					return nil, err
				}
			}
			return nil, io.EOF
		}
		n := min(step, x.h.rows-first)
		part := &packedPart{source: in.t.Source, note: in.t.note, names: p.names, first: int(first), rows: int(n), width: width}
		var err error
		if part.x, err = x.read(n); err != nil || y == nil {
			return part, err
		}
		if y.h.char != 0 {
			h := y.h
			h.rows = n
			part.texts = &column{name: target}
			return part, y.in.npyTexts(h, part.texts)
		}
		part.y, err = y.read(n)
		return part, err
	}
	return nil
}

// arrays opens the feature array and the target array, which is nil if there is none.
func (s *Stream) arrays(p *pass, in *input) (x, y *array, target string, err error) {
	switch p.form {
	case formIDX:
		x, err = idxArray(in)
		if err == nil && x.h.rank > 1 {
			y, err = s.labels(p)
		}
		return x, y, labelName, err
	case formNPY:
		x, err = newArray(in)
	case formNPZ:
		files, err := in.zipFiles()
		if err != nil {
			return nil, nil, "", err
		}
		if len(s.file.Arrays) == 0 && isSparseNPZ(files) {
			return nil, nil, "", in.t.newError("", notInBlocks)
		}
		features, targets, err := in.chooseArrays(files, s.file.Arrays)
		if err != nil {
			return nil, nil, "", err
		}
		member, err := in.member(features)
		if err != nil {
			return nil, nil, "", err
		}
		p.cleanups = append(p.cleanups, member.close)
		if x, err = newArray(member); err != nil || targets == nil {
			return x, nil, "", err
		}
		if member, err = in.member(targets); err != nil {
			return nil, nil, "", err
		}
		p.cleanups = append(p.cleanups, member.close)
		y, err = newArray(member)
		if err != nil {
			return nil, nil, "", err
		}
	}
	if err == nil && x.h.char != 0 {
		err = in.t.newError("", "holds texts; features that are read in blocks must be numbers")
	}
	return x, y, "y", err
}

// labels opens the labels of an IDX file.
func (s *Stream) labels(p *pass) (*array, error) {
	path := s.file.Labels
	if path == "" {
		if path = s.file.findLabels(); path == "" {
			return nil, nil
		}
	}
	in, err := File{Path: path, Memory: s.file.Memory}.open()
	if err != nil {
		return nil, err
	}
	in.allowance.inParts = true
	p.cleanups = append(p.cleanups, in.close)
	y, err := idxArray(in)
	if err == nil && y.h.rank != 1 {
		err = in.t.newError("", fmt.Sprintf("has %s; a file of labels has one", count.Of(y.h.rank, "dimension")))
	}
	return y, err
}

package dataset

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mercer-go/mercer/internal/count"
)

// An NPY file (numpy.lib.format, versions 1.0 to 3.0) consists of the text \x93NUMPY, two bytes of version, the length
// of the header (little endian, 2 bytes, or 4 bytes from version 2.0 on), the header, which is a Python literal such as
//
//	{'descr': '<f8', 'fortran_order': False, 'shape': (150, 4), }
//
// and the numbers. The header must be checked against the size of the file before memory is allocated.

// npyHeader holds the header of an array.
type npyHeader struct {
	descr              string
	kind               dtype
	char               byte // U or S for texts of fixed width; 0 for numbers
	width              int  // size of an element in bytes
	bigEndian, fortran bool
	minRank, rank      int // the minimum rank (number of dimensions) that is accepted, and the rank of the array
	shapeText          string
	rows, columns      int64
}

// maxNPYHeader is the maximum length of a header. By default numpy.load reads at most 10,000 bytes.
const maxNPYHeader = 1 << 16

// npyHeader reads the header of an array of one or two dimensions.
func (in *input) npyHeader() (h npyHeader, err error) {
	return in.npyHead(1)
}

// npyScalar reads the header of an array of at most two dimensions. A scalar has rank 0.
func (in *input) npyScalar() (h npyHeader, err error) {
	return in.npyHead(0)
}

func (in *input) npyHead(minRank int) (h npyHeader, err error) {
	h.minRank = minRank
	head, err := in.readBytes(8, "the header")
	if err != nil {
		return h, err
	}
	if string(head[:6]) != "\x93NUMPY" {
		return h, in.t.newError("", "is not an NPY array: it does not begin with \\x93NUMPY")
	}
	sizeBytes := int64(4)
	switch head[6] {
	case 1:
		sizeBytes = 2
	case 2, 3:
	default:
		return h, in.t.newError("", fmt.Sprintf("has NPY version %d.%d; versions 1.0 to 3.0 are supported", head[6], head[7]))
	}
	sizes, err := in.readBytes(sizeBytes, "the header's length")
	if err != nil {
		return h, err
	}
	n := int64(binary.LittleEndian.Uint32(append(sizes, 0, 0)))
	if n > maxNPYHeader {
		return h, in.t.newError("", fmt.Sprintf("has a header of %d bytes; at most %d can be read", n, maxNPYHeader))
	}
	offset := in.offset
	text, err := in.readBytes(n, "the header")
	if err != nil {
		return h, err
	}
	if err := h.parse(string(text)); err != nil {
		e := in.t.newError("", "its header "+err.Error())
		e.Offset = offset
		return h, e
	}
	if rule := checkShape(h.rows, h.columns); rule != "" {
		return h, in.t.newError("", rule)
	}
	return h, nil
}

// parse parses the Python literal of a header.
func (h *npyHeader) parse(text string) error {
	p := literal{strings.TrimRight(text, " \n\x00")}
	seen := map[string]bool{}
	if !p.accept("{") {
		return errors.New("does not begin with {")
	}
	for !p.accept("}") {
		key, ok := p.quoted()
		if !ok || !p.accept(":") || seen[key] {
			return fmt.Errorf("has no key and value at %s", quote(p.remaining))
		}
		seen[key] = true
		switch key {
		case "descr":
			if strings.HasPrefix(p.remaining, "[") {
				return errors.New("describes a structured array; save the columns as one array of numbers, or as a CSV file")
			}
			h.descr, ok = p.quoted()
		case "fortran_order":
			h.fortran = p.accept("True")
			ok = h.fortran || p.accept("False")
		case "shape":
			text := p.remaining
			ok = h.shape(&p)
			h.shapeText = strings.TrimRight(strings.TrimSuffix(text, p.remaining), " ")
		default:
			ok = false
		}
		if !ok {
			return fmt.Errorf("has an unknown %s", quote(key))
		}
		if !p.accept(",") && !strings.HasPrefix(p.remaining, "}") {
			return fmt.Errorf("has no comma at %s", quote(p.remaining))
		}
	}
	if p.remaining != "" || !seen["descr"] || !seen["fortran_order"] || !seen["shape"] {
		return errors.New("must have the keys descr, fortran_order and shape")
	}
	if h.rank < h.minRank || h.rank > 2 {
		return fmt.Errorf("has the shape %s, but a table has one or two dimensions: save a.reshape(rows, columns)", h.shapeText)
	}
	return h.element()
}

// shape parses the tuple of the dimensions.
func (h *npyHeader) shape(p *literal) bool {
	if !p.accept("(") {
		return false
	}
	h.columns = 1
	for !p.accept(")") {
		n, ok := p.number()
		if !ok {
			return false
		}
		h.rank++
		switch {
		case h.rank == 1:
			h.rows = n
		case n > MaxFeatures: // with this limit, products of dimensions cannot overflow
			h.columns = n
		case h.columns <= MaxFeatures:
			h.columns *= n
		}
		if !p.accept(",") && !strings.HasPrefix(p.remaining, ")") {
			return false
		}
	}
	return true
}

// element parses the type of the elements.
func (h *npyHeader) element() error {
	d := h.descr
	if len(d) > 1 && d[1] == 'O' {
		return errors.New("describes Python objects, which are not supported: save numbers (astype(float)) or texts (astype(str))")
	}
	if len(d) > 1 && (d[1] == 'M' || d[1] == 'm') {
		return errors.New("describes dates, which are not supported: save numbers, such as astype('M8[D]').astype(float)")
	}
	if len(d) < 3 {
		return fmt.Errorf("has the unknown type %s", quote(d))
	}
	width, err := strconv.Atoi(d[2:])
	if err != nil || !strings.ContainsRune("<>|=", rune(d[0])) || width < 0 || width > 1<<20 {
		return fmt.Errorf("has the unknown type %s", quote(d))
	}
	h.bigEndian, h.width = d[0] == '>', width
	if kind, ok := map[string]dtype{"b1": u8, "u1": u8, "i1": i8, "u2": u16, "i2": i16, "u4": u32, "i4": i32, "u8": u64, "i8": i64, "f2": f16, "f4": f32, "f8": f64}[d[1:]]; ok {
		h.kind = kind
		return nil
	}
	switch {
	case d[1] == 'S', d[1] == 'U':
		if h.char = d[1]; h.char == 'U' {
			h.width *= 4
		}
		if h.rank > 1 {
			return fmt.Errorf("has texts (%s) in %s; an array of texts must have one dimension", quote(d), count.Of(h.rank, "dimension"))
		}
		return nil
	}
	return fmt.Errorf("has the type %s; supported are f2, f4, f8, i1 to i8, u1 to u8, b1, U and S", quote(d))
}

// A literal is the part of a Python literal that is not parsed yet.
type literal struct{ remaining string }

// accept removes a token and the spaces after it from the beginning of p.remaining. It reports whether the token
// was there.
func (p *literal) accept(token string) bool {
	rest, ok := strings.CutPrefix(p.remaining, token)
	if ok {
		p.remaining = strings.TrimLeft(rest, " ")
	}
	return ok
}

func (p *literal) quoted() (string, bool) {
	if p.remaining == "" || p.remaining[0] != '\'' && p.remaining[0] != '"' {
		return "", false
	}
	s, rest, ok := strings.Cut(p.remaining[1:], p.remaining[:1])
	p.remaining = strings.TrimLeft(rest, " ")
	return s, ok && !strings.Contains(s, `\`)
}

func (p *literal) number() (int64, bool) {
	n := 0
	for n < len(p.remaining) && p.remaining[n] >= '0' && p.remaining[n] <= '9' {
		n++
	}
	v, err := strconv.ParseInt(p.remaining[:n], 10, 64)
	p.remaining = strings.TrimLeft(strings.TrimPrefix(p.remaining[n:], "L"), " ") // Python 2 writes the suffix L
	return v, err == nil
}

// npyCells reads all numbers of an array.
func (in *input) npyCells(h npyHeader) (*packed, error) {
	width := int64(h.width)
	data, err := in.readBytes(h.rows*h.columns*width, count.Of(h.rows, "row"))
	if err != nil {
		return nil, err
	}
	m := &packed{data: data, kind: h.kind, bigEndian: h.bigEndian, byRow: int(h.columns * width), byIndex: int(width)}
	if h.fortran {
		m.byRow, m.byIndex = m.byIndex, int(h.rows*width)
	}
	return m, nil
}

// npyTexts reads a column of texts.
func (in *input) npyTexts(h npyHeader, c *column) error {
	rowError := func(row int64, rule string) error {
		e := in.t.newError(c.name, rule)
		e.Row = int(row) + 1
		return e
	}
	if h.width == 0 && h.rows > 0 {
		return in.t.newError(c.name, "holds texts of length 0")
	}
	data, err := in.readBytes(h.rows*int64(h.width), count.Of(h.rows, "text"))
	if err != nil {
		return err
	}
	var text []byte
	for row := range h.rows {
		cell := data[row*int64(h.width) : (row+1)*int64(h.width)]
		text = text[:0]
		if h.char == 'S' {
			text = append(text, strings.TrimRight(string(cell), "\x00")...)
		}
		for i := 0; h.char == 'U' && i < len(cell); i += 4 {
			r := binary.LittleEndian.Uint32(cell[i:])
			if h.bigEndian {
				r = binary.BigEndian.Uint32(cell[i:])
			}
			if r == 0 && strings.Trim(string(cell[i:]), "\x00") == "" {
				break
			}
			if r > utf8.MaxRune || !utf8.ValidRune(rune(r)) {
				return rowError(row, fmt.Sprintf("%#x is not a Unicode character", r))
			}
			text = utf8.AppendRune(text, rune(r))
		}
		if !utf8.Valid(text) {
			return rowError(row, quote(string(text))+" is not valid UTF-8")
		}
		c.add(string(text))
	}
	c.finish()
	return nil
}

// addArray appends an array with the header h to the table: as features if target is "", and otherwise as targets
// of this name.
func (in *input) addArray(t *Table, h npyHeader, target string) error {
	if h.char != 0 {
		c := &column{name: target}
		if target == "" {
			c.name = featureName(0)
		}
		if err := in.npyTexts(h, c); err != nil {
			return err
		}
		t.columns = append(t.columns, c)
		return in.end()
	}
	m, err := in.npyCells(h)
	if err != nil {
		return err
	}
	if target == "" {
		t.addFeatures(m, int(h.columns))
	} else {
		t.addTargets(target, m, int(h.columns))
	}
	return in.end()
}

// readNPY reads an array of features, in two dimensions or one.
func readNPY(in *input) (*Table, error) {
	h, err := in.npyHeader()
	if err != nil {
		return nil, err
	}
	in.t.rows = int(h.rows)
	return in.t, in.addArray(in.t, h, "")
}

// WriteNPY writes an array in C order as an NPY file of format 1.0. The type is <f8 for a
// []float64, <i8 for an []int64, and <U with the width of the longest text for a []string. The
// product of shape must be the number of elements.
func WriteNPY(w io.Writer, data any, shape ...int) error {
	out := bufio.NewWriter(w)
	switch data := data.(type) {
	case []float64:
		writeNPYHead(out, "<f8", shape)
		for _, v := range data {
			out.Write(binary.LittleEndian.AppendUint64(out.AvailableBuffer(), math.Float64bits(v))) // Flush returns the first error of Write
		}
	case []int64:
		writeNPYHead(out, "<i8", shape)
		for _, v := range data {
			out.Write(binary.LittleEndian.AppendUint64(out.AvailableBuffer(), uint64(v)))
		}
	case []string:
		width := 1
		for _, text := range data {
			width = max(width, utf8.RuneCountInString(text))
		}
		writeNPYHead(out, fmt.Sprintf("<U%d", width), shape)
		for _, text := range data {
			letters := append([]rune(text), make([]rune, width-utf8.RuneCountInString(text))...)
			for _, r := range letters {
				out.Write(binary.LittleEndian.AppendUint32(out.AvailableBuffer(), uint32(r)))
			}
		}
	default:
		return fmt.Errorf("dataset: npy: a %T cannot be written", data)
	}
	return out.Flush()
}

// writeNPYHead writes the beginning of a file up to the numbers, padded to a multiple of 64 bytes.
func writeNPYHead(out *bufio.Writer, descr string, shape []int) {
	sizes := ""
	for _, size := range shape {
		sizes += strconv.Itoa(size) + ", "
	}
	if len(shape) > 1 {
		sizes = strings.TrimSuffix(sizes, ", ")
	}
	head := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, strings.TrimSuffix(sizes, " "))
	head += strings.Repeat(" ", 63-(10+len(head))%64) + "\n"
	out.Write(binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(head))))
	out.WriteString(head)
}

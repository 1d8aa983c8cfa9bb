package dataset

import (
	"archive/zip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"math/bits"
	"strconv"

	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/pages"
)

// dtype is the storage type of a number in a binary file.
type dtype uint8

const (
	u8 dtype = iota
	i8
	u16
	i16
	u32
	i32
	u64
	i64
	f16
	f32
	f64
)

// size returns the size of one number in bytes.
func (d dtype) size() int {
	return [...]int{u8: 1, i8: 1, u16: 2, i16: 2, u32: 4, i32: 4, u64: 8, i64: 8, f16: 2, f32: 4, f64: 8}[d]
}

// packed is a matrix of numbers in the binary encoding of its file. An integer beyond 2⁵³ is rounded if it is read
// as a number, and exact if it is read as a class label.
type packed struct {
	data           []byte
	kind           dtype
	bigEndian      bool // the numbers are big endian
	byRow, byIndex int  // distance in bytes between adjacent rows, and between adjacent columns
}

// raw returns the bits of a number as an unsigned integer.
func (m *packed) raw(row, column int) (v uint64) {
	p := m.data[row*m.byRow+column*m.byIndex:]
	switch m.kind {
	case u8, i8:
		return uint64(p[0])
	case u16, i16, f16:
		v = uint64(binary.LittleEndian.Uint16(p))
	case u32, i32, f32:
		v = uint64(binary.LittleEndian.Uint32(p))
	default:
		v = binary.LittleEndian.Uint64(p)
	}
	if m.bigEndian {
		v = bits.ReverseBytes64(v) >> (64 - 8*m.kind.size())
	}
	return v
}

func (m *packed) number(row, column int) float64 {
	v := m.raw(row, column)
	switch m.kind {
	case i8:
		return float64(int8(v))
	case i16:
		return float64(int16(v))
	case i32:
		return float64(int32(v))
	case i64:
		return float64(int64(v))
	case f16:
		return halfToFloat(uint16(v))
	case f32:
		return float64(math.Float32frombits(uint32(v)))
	case f64:
		return math.Float64frombits(v)
	}
	return float64(v)
}

// read fills the slice `to` with numbers of a column, beginning with the given row.
func (m *packed) read(to []float64, row, column int) {
	if m.bigEndian || m.kind != f64 && m.kind != f32 {
		for i := range to {
			to[i] = m.number(row+i, column)
		}
		return
	}
	pos, step := row*m.byRow+column*m.byIndex, m.byRow
	if m.kind == f32 {
		for i := range to {
			to[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(m.data[pos:])))
			pos += step
		}
		return
	}
	data := m.data
	for i := range to {
		to[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[pos:]))
		pos += step
	}
}

// text returns the number as text, without rounding integers.
func (m *packed) text(row, column int) string {
	switch m.kind {
	case u64:
		return strconv.FormatUint(m.raw(row, column), 10)
	case i64:
		return strconv.FormatInt(int64(m.raw(row, column)), 10)
	}
	return numberText(m.number(row, column))
}

// halfToFloat returns the value of a float16 (IEEE 754 binary16).
func halfToFloat(v uint16) float64 {
	exponent, fraction := int(v>>10&31), float64(v&1023)
	var x float64
	switch exponent {
	case 0:
		x = math.Ldexp(fraction, -24)
	case 31:
		x = math.Inf(1)
		if fraction != 0 {
			x = math.NaN()
		}
	default:
		x = math.Ldexp(1024+fraction, exponent-25)
	}
	if v>>15 == 1 {
		return -x
	}
	return x
}

// addFeatures appends the d columns of m to t, with the names x1 … xd.
func (t *Table) addFeatures(m cells, d int) {
	columns := make([]column, d)
	for j := range columns {
		columns[j] = column{name: featureName(j), plain: true, cells: m, cellColumn: j}
		t.columns = append(t.columns, &columns[j])
	}
}

// featureName returns the name of column j of a file without names.
func featureName(j int) string { return "x" + strconv.Itoa(j+1) }

// addTargets appends the d columns of m to t. The argument name is the name of a single column.
// Several columns get the names name1, name2, ….
func (t *Table) addTargets(name string, m cells, d int) {
	for j := range d {
		c := &column{name: name, plain: true, cells: m, cellColumn: j}
		if d > 1 {
			c.name += strconv.Itoa(j + 1)
		}
		t.columns = append(t.columns, c)
	}
}

// checkShape returns the rule that a matrix of the given size violates, or "". Call it before
// allocating memory for the matrix.
func checkShape(rows, columns int64) string {
	switch {
	case rows > math.MaxInt32:
		return fmt.Sprintf("has %s; at most %d can be read", count.Of(rows, "row"), math.MaxInt32)
	case columns > MaxFeatures:
		return fmt.Sprintf("has %s in a row; at most %d can be read", count.Of(columns, "number"), MaxFeatures)
	case rows > 0 && columns == 0:
		return "has no numbers in its rows"
	}
	return ""
}

// readBytes reads n bytes. The error for a truncated file describes these bytes by name. If the length of the file
// is not known, readBytes allocates memory only for bytes that exist.
func (in *input) readBytes(n int64, name string) ([]byte, error) {
	truncated := func(available int64) error {
		e := in.t.newError("", fmt.Sprintf("is truncated: %d bytes are needed for %s, but the file ends after %d", n, name, available))
		e.Offset = in.offset
		return e
	}
	if in.size >= 0 && n > in.size-in.offset {
		return nil, truncated(max(0, in.size-in.offset))
	}
	if !in.allowance.reserve(n) {
		e := in.t.newError("", in.allowance.rule())
		e.Offset = in.offset
		return nil, e
	}
	if in.readerAt != nil && n >= storedBytes {
		return in.readStored(n)
	}
	step := n
	if in.size < 0 {
		step = min(n, 1<<20)
	}
	data := make([]byte, 0, step)
	for int64(len(data)) < n {
		if len(data) == cap(data) {
			data = append(make([]byte, 0, min(n, 2*int64(cap(data)))), data...)
		}
		k, err := io.ReadFull(in.r, data[len(data):cap(data)])
		data = data[:len(data)+k]
		if err == io.EOF || err == io.ErrUnexpectedEOF && !in.truncated() {
			return nil, truncated(int64(len(data)))
		}
		if err != nil {
			e := in.readError(err)
			e.Offset = in.offset + int64(len(data))
			return nil, e
		}
	}
	in.offset += n
	return data, nil
}

// storedBytes is the number of bytes that readStored reads at a time.
const storedBytes = 1 << 20

// readStored does the work of readBytes for bytes of in.readerAt, which it reads on all processors.
// The caller must have checked the size of the file and the memory allowance.
func (in *input) readStored(n int64) ([]byte, error) {
	data, begin := pages.Zeros[byte](int(n)), in.offset
	if err := in.checkTo(begin); err != nil {
		return nil, err
	}
	var summed []chan struct{} // summed[k] is closed when the checksum includes all parts before part k
	if in.zip {
		summed = make([]chan struct{}, (n+storedBytes-1)/storedBytes+1)
		for k := range summed {
			summed[k] = make(chan struct{})
		}
		close(summed[0])
	}
	err := parallel(int(n), storedBytes, func(first, last int) error {
		for ; first < last; first += storedBytes {
			block, k := data[first:min(first+storedBytes, last)], first/storedBytes
			read, err := in.readerAt.ReadAt(block, begin+int64(first))
			if in.zip {
				<-summed[k]
				in.sum = crc32.Update(in.sum, crc32.IEEETable, block[:read])
				close(summed[k+1])
			}
			if read < len(block) {
				e := in.readError(err)
				e.Offset = begin + int64(first+read)
				return e
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	in.offset += n
	in.summed = in.offset
	in.r.Reset(io.NewSectionReader(in.readerAt, in.offset, in.size-in.offset))
	return data, nil
}

// checkTo includes the bytes up to offset in the checksum of a member of a zip file.
func (in *input) checkTo(offset int64) error {
	if !in.zip {
		return nil
	}
	gap := make([]byte, offset-in.summed)
	if read, err := in.readerAt.ReadAt(gap, in.summed); read < len(gap) {
		return in.readError(err)
	}
	in.sum, in.summed = crc32.Update(in.sum, crc32.IEEETable, gap), offset
	return nil
}

// truncated reports whether the source ended with an error other than io.EOF.
func (in *input) truncated() bool {
	_, err := in.r.Peek(1)
	return err != io.EOF
}

// end returns an error if the file has more bytes, or if its checksum is wrong.
func (in *input) end() error {
	_, err := in.r.Peek(1)
	if err == io.EOF && in.zip && in.summed > 0 { // readStored has read a part, whose checksum no other reader checks
		if err := in.checkTo(in.offset); err != nil {
			return err
		}
		if in.expectedSum != 0 && in.sum != in.expectedSum { // like archive/zip, take a checksum of 0 for a missing checksum
			err = zip.ErrChecksum
		}
	}
	if err == io.EOF {
		return nil
	}
	e := in.t.newError("", "has more bytes than its header describes")
	if err != nil {
		e = in.readError(err)
	}
	e.Offset = in.offset
	return e
}

// readError converts an error of reading the source to an *Error.
func (in *input) readError(err error) *Error {
	if in.zip {
		return in.t.newError("", "the zip data is damaged: "+trimZipPrefix(err))
	}
	return in.t.readError(0, err)
}

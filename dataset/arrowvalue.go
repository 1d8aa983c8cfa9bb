package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/big"
	"slices"

	"github.com/klauspost/compress/zstd"
)

// arrowValues holds the values of a column of a batch or a dictionary in one of three lists.
type arrowValues struct {
	rows    int
	present []bool // whether each cell has a value; nil if no cell is missing
	numbers []float64
	ints    []int64
	texts   [][]byte
}

func (v *arrowValues) bytes() int64 {
	size := int64(cap(v.present)) + 8*int64(cap(v.numbers)+cap(v.ints)) + 24*int64(cap(v.texts))
	for _, text := range v.texts {
		size += int64(len(text))
	}
	return size
}

// concat returns the values of v followed by the values of other.
func (v arrowValues) concat(other arrowValues) arrowValues {
	sum := arrowValues{rows: v.rows + other.rows, numbers: slices.Concat(v.numbers, other.numbers), ints: slices.Concat(v.ints, other.ints), texts: slices.Concat(v.texts, other.texts)}
	if v.present != nil || other.present != nil {
		sum.present = make([]bool, sum.rows)
		for i := range sum.present {
			if i < v.rows {
				sum.present[i] = v.present == nil || v.present[i]
			} else {
				sum.present[i] = other.present == nil || other.present[i-v.rows]
			}
		}
	}
	return sum
}

// addTo appends the values to a column of a table.
func (v *arrowValues) addTo(t *Table, c *column) error {
	switch {
	case v.texts != nil:
		for i, text := range v.texts {
			if v.present != nil && !v.present[i] {
				text = nil
			}
			if err := t.addText(c, text); err != nil {
				return err
			}
		}
	case v.ints != nil:
		m := c.cells.(*integers)
		for i, k := range v.ints {
			if v.present != nil && !v.present[i] {
				m.addMissing()
			} else {
				m.values = append(m.values, k)
			}
		}
	default:
		for i := range v.numbers {
			if v.present != nil && !v.present[i] {
				v.numbers[i] = math.NaN()
			}
		}
		c.addNumbers(v.numbers)
	}
	return nil
}

// node returns the number of rows of the next column, and of its missing cells.
func (b *arrowBatch) node() (rows, nulls int64, err error) {
	if len(b.lengths) == 0 {
		return 0, 0, b.damaged("it lacks columns")
	}
	rows, nulls = b.lengths[0], b.nulls[0]
	b.lengths, b.nulls = b.lengths[1:], b.nulls[1:]
	if rows < 0 || rows > math.MaxInt32 || nulls < 0 || nulls > rows {
		return 0, 0, b.damaged(fmt.Sprintf("a column claims %d rows, %d of them missing", rows, nulls))
	}
	return rows, nulls, nil
}

// buffer returns the next buffer, decompressed.
func (b *arrowBatch) buffer() ([]byte, error) {
	if len(b.buffers) == 0 {
		return nil, b.damaged("it lacks buffers")
	}
	packed := b.buffers[0]
	b.buffers = b.buffers[1:]
	if b.codec < 0 || len(packed) == 0 {
		return packed, nil
	}
	if len(packed) < 8 {
		return nil, b.damaged("a buffer is too short")
	}
	size := int64(binary.LittleEndian.Uint64(packed))
	packed = packed[8:]
	switch {
	case size == -1:
		return packed, nil
	case size < 0 || !b.a.in.allowance.fits(size):
		return nil, b.a.t.newError("", b.a.in.allowance.rule())
	}
	var out []byte
	ok := false
	switch b.codec {
	case 0:
		out, ok = lz4Frame(packed, size)
	case 1:
		z, err := zstd.NewReader(bytes.NewReader(packed), zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, b.damaged("its zstd data")
		}
		defer z.Close()
		buf := bytes.NewBuffer(make([]byte, 0, min(size, 1<<20)+bytes.MinRead))
		n, err := io.Copy(buf, io.LimitReader(z, size+1))
		out, ok = buf.Bytes(), err == nil && n == size
	default:
		return nil, b.a.t.newError("", fmt.Sprintf("is compressed by the unknown codec %d; write it with LZ4 or zstd, or without compression", b.codec))
	}
	if !ok {
		return nil, b.damaged("a compressed buffer cannot be unpacked")
	}
	return out, nil
}

// lz4Frame decompresses an LZ4 frame (Collet, "LZ4 Frame Format"). size is the decompressed size.
// Checksums are not verified.
func lz4Frame(b []byte, size int64) (out []byte, ok bool) {
	if len(b) < 7 || binary.LittleEndian.Uint32(b) != 0x184d2204 || b[4]>>6 != 1 {
		return nil, false
	}
	flags := b[4]
	head := 7
	if flags&8 != 0 { // the header contains the size of the content
		head += 8
	}
	if flags&1 != 0 || len(b) < head { // the frame needs a dictionary, which is not supported
		return nil, false
	}
	for b = b[head:]; len(b) >= 4; {
		n := binary.LittleEndian.Uint32(b)
		if b = b[4:]; n == 0 {
			return out, int64(len(out)) == size
		}
		uncompressed := n>>31 == 1
		if n &= 1<<31 - 1; int64(n) > int64(len(b)) || uncompressed && int64(n) > size-int64(len(out)) {
			return nil, false
		}
		if uncompressed {
			out = append(out, b[:n]...)
		} else if out, ok = lz4(out, b[:n], int(size)); !ok {
			return nil, false
		}
		if b = b[n:]; flags&16 != 0 { // skip the checksum of the block
			b = b[min(4, len(b)):]
		}
	}
	return nil, false
}

// skip skips the nodes and the buffers of a column that is not read.
func (b *arrowBatch) skip(c *arrowColumn) error {
	if _, _, err := b.node(); err != nil {
		return err
	}
	n, ok := c.buffers()
	children := c.children
	if c.index != nil {
		n, ok, children = 2, true, nil
	}
	if !ok {
		return b.a.t.newError(c.name, fmt.Sprintf("has the unknown type %d, and the columns after it cannot be read: write the file without this column", c.kind))
	}
	if c.index == nil && (c.kind == arrowTextView || c.kind == arrowBinaryView) {
		count, err := b.viewBuffers()
		if err != nil {
			return err
		}
		n += count
	}
	if n > len(b.buffers) {
		return b.damaged("it lacks buffers")
	}
	b.buffers = b.buffers[n:]
	for i := range children {
		if err := b.skip(&children[i]); err != nil {
			return err
		}
	}
	return nil
}

// viewBuffers returns the number of buffers with texts for the next column of type Utf8View.
func (b *arrowBatch) viewBuffers() (int, error) {
	if len(b.views) == 0 || b.views[0] < 0 || b.views[0] > int64(len(b.buffers)) {
		return 0, b.damaged("a column of views")
	}
	n := int(b.views[0])
	b.views = b.views[1:]
	return n, nil
}

// column reads the values of the next column, and resolves indices into a dictionary.
func (b *arrowBatch) column(c *arrowColumn) (arrowValues, error) {
	if c.index == nil {
		return b.values(&c.arrowType)
	}
	v, err := b.values(c.index)
	if err != nil {
		return v, err
	}
	d, ok := b.dictionaries[c.dictionary]
	if !ok && v.rows > 0 {
		return v, b.a.t.newError(c.name, fmt.Sprintf("is damaged: its dictionary is missing before batch %d", b.number))
	}
	n := len(d.numbers)
	if c.text() {
		n = len(d.texts)
	} else if c.kind == arrowInt {
		n = len(d.ints)
	}
	if n != d.rows {
		return v, b.a.t.newError(c.name, "is damaged: it shares its dictionary with a column of another type")
	}
	out := arrowValues{rows: v.rows, present: v.present}
	if out.present == nil {
		out.present = slices.Repeat([]bool{true}, v.rows)
	}
	for i, k := range v.ints {
		if !out.present[i] {
			k = 0
		} else if k < 0 || k >= int64(d.rows) {
			return v, b.a.t.newError(c.name, fmt.Sprintf("batch %d is damaged: it has the index %d, but its dictionary has %d values", b.number, k, d.rows))
		} else if d.present != nil && !d.present[k] {
			out.present[i] = false
		}
		switch missing := !out.present[i]; {
		case c.text() && missing:
			out.texts = append(out.texts, nil)
		case c.text():
			out.texts = append(out.texts, d.texts[k])
		case c.kind == arrowInt && missing:
			out.ints = append(out.ints, 0)
		case c.kind == arrowInt:
			out.ints = append(out.ints, d.ints[k])
		case missing:
			out.numbers = append(out.numbers, math.NaN())
		default:
			out.numbers = append(out.numbers, d.numbers[k])
		}
	}
	return out, nil
}

// values reads the next column as values of type t.
func (b *arrowBatch) values(t *arrowType) (v arrowValues, err error) {
	rows, nulls, err := b.node()
	if err != nil {
		return v, err
	}
	v.rows = int(rows)
	width := int64(8)
	if t.text() {
		width = 24 // size of a []byte
	}
	if !b.a.in.allowance.fits(width * rows) {
		return v, b.a.t.newError("", b.a.in.allowance.rule())
	}
	if t.kind == arrowNull {
		if rows > maxGroupRows { // a column of type Null takes no bytes of the file: the file size does not limit rows
			return v, b.damaged(fmt.Sprintf("a column without values claims %d rows; at most %d can be read", rows, maxGroupRows))
		}
		v.numbers = slices.Repeat([]float64{math.NaN()}, v.rows)
		return v, nil
	}
	valid, err := b.buffer()
	if err != nil {
		return v, err
	}
	errShort := b.damaged(fmt.Sprintf("a buffer is too short for %d rows", rows))
	if nulls > 0 {
		if int64(len(valid)) < (rows+7)/8 {
			return v, errShort
		}
		v.present = make([]bool, rows)
		for i := range v.present {
			v.present[i] = valid[i/8]>>(i%8)&1 == 1
		}
	}
	if t.kind == arrowTextView {
		v.texts, err = b.viewTexts(v.rows, v.present)
		return v, err
	}
	data, err := b.buffer()
	if err != nil {
		return v, err
	}
	if t.kind == arrowText || t.kind == arrowLargeText {
		texts, err := b.buffer()
		if err != nil {
			return v, err
		}
		var ok bool
		if v.texts, ok = arrowTexts(data, texts, v.rows, t.kind == arrowLargeText); !ok {
			return v, b.damaged("the positions of the texts of a column")
		}
		return v, nil
	}
	if int64(len(data)) < (rows*int64(t.bits)+7)/8 {
		return v, errShort
	}
	switch {
	case t.kind == arrowBool:
		v.numbers = make([]float64, rows)
		for i := range v.numbers {
			v.numbers[i] = float64(data[i/8] >> (i % 8) & 1)
		}
	case t.kind == arrowFloat:
		v.numbers = make([]float64, rows)
		m := packed{data: data, kind: map[int]dtype{16: f16, 32: f32, 64: f64}[t.bits], byRow: t.bits / 8}
		for i := range v.numbers {
			v.numbers[i] = m.number(i, 0)
		}
	case t.kind == arrowDecimal:
		v.numbers = arrowDecimals(data, v.rows, t.bits/8, t.scale)
	default:
		v.ints = make([]int64, rows)
		for i := range v.ints {
			v.ints[i] = integerAt(data, i, t.bits, t.unsigned)
		}
		if t.time.unit != 0 {
			v.texts = make([][]byte, rows)
			for i, k := range v.ints {
				v.texts[i] = []byte(t.time.text(k))
			}
			v.ints = nil
		}
	}
	return v, nil
}

// integerAt returns element i of an array of integers with the given number of bits. An unsigned
// 64-bit integer ≥ 2⁶³ becomes negative.
func integerAt(data []byte, i, bits int, unsigned bool) int64 {
	switch bits {
	case 8:
		if unsigned {
			return int64(data[i])
		}
		return int64(int8(data[i]))
	case 16:
		v := binary.LittleEndian.Uint16(data[2*i:])
		if unsigned {
			return int64(v)
		}
		return int64(int16(v))
	case 32:
		v := binary.LittleEndian.Uint32(data[4*i:])
		if unsigned {
			return int64(v)
		}
		return int64(int32(v))
	}
	return int64(binary.LittleEndian.Uint64(data[8*i:]))
}

// arrowTexts splits data into texts. Text i has the bytes from starts[i] up to, but not including, starts[i+1].
func arrowTexts(starts, data []byte, rows int, large bool) ([][]byte, bool) {
	bits := 32
	if large {
		bits = 64
	}
	texts := make([][]byte, 0)
	if rows == 0 {
		return texts, true
	}
	if (rows+1)*bits/8 > len(starts) {
		return nil, false
	}
	texts = make([][]byte, rows)
	last := integerAt(starts, 0, bits, false)
	for i := range texts {
		next := integerAt(starts, i+1, bits, false)
		if last < 0 || next < last || next > int64(len(data)) {
			return nil, false
		}
		texts[i], last = data[last:next], next
	}
	return texts, true
}

// viewTexts reads texts of type Utf8View. Each text has a view of 16 bytes, which begins with the length. A text of
// up to 12 bytes follows; otherwise its first 4 bytes, the number of a buffer and a position in this buffer follow.
func (b *arrowBatch) viewTexts(rows int, present []bool) ([][]byte, error) {
	count, err := b.viewBuffers()
	if err != nil {
		return nil, err
	}
	views, err := b.buffer()
	if err != nil {
		return nil, err
	}
	data := make([][]byte, count)
	for i := range data {
		if data[i], err = b.buffer(); err != nil {
			return nil, err
		}
	}
	if len(views) < 16*rows {
		return nil, b.damaged(fmt.Sprintf("a buffer is too short for %d rows", rows))
	}
	texts := make([][]byte, rows)
	for i := range texts {
		v := views[16*i : 16*i+16]
		n := int64(int32(binary.LittleEndian.Uint32(v)))
		buffer, offset := int64(binary.LittleEndian.Uint32(v[8:])), int64(binary.LittleEndian.Uint32(v[12:]))
		switch {
		case present != nil && !present[i]:
		case n >= 0 && n <= 12:
			texts[i] = v[4 : 4+n]
		case n < 0 || buffer >= int64(len(data)) || offset > int64(len(data[buffer])) || n > int64(len(data[buffer]))-offset:
			return nil, b.damaged("the view of a text")
		default:
			texts[i] = data[buffer][offset : offset+n]
		}
	}
	return texts, nil
}

// arrowDecimals returns decimals, stored as little-endian two's complement integers of width bytes.
func arrowDecimals(data []byte, rows, width int, scale int64) []float64 {
	numbers := make([]float64, rows)
	var v, power big.Int
	text := make([]byte, width)
	for i := range numbers {
		copy(text, data[i*width:(i+1)*width])
		slices.Reverse(text)
		if v.SetBytes(text); text[0] >= 0x80 {
			v.Sub(&v, power.Lsh(big.NewInt(1), uint(8*width)))
		}
		numbers[i] = decimalOf(v.String(), scale)
	}
	return numbers
}

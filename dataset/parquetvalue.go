package dataset

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"strconv"

	"github.com/mercer-go/mercer/internal/count"
)

// These constants number the encodings of values in parquet.thrift.
const (
	encPlain           = 0
	encPlainDictionary = 2
	encRLE             = 3
	encDelta           = 5
	encDeltaLength     = 6
	encDeltaBytes      = 7
	encRLEDictionary   = 8
	encSplit           = 9
)

// dictionary reads a page with a dictionary. Later pages refer to its values by indices.
func (d *pageReader) dictionary(h pageHeader, body []byte) error {
	if h.encoding != encPlain && h.encoding != encPlainDictionary {
		return d.newError(fmt.Sprintf("a dictionary has the encoding %d", h.encoding))
	}
	if d.numbers != nil || d.texts != nil || d.ints != nil {
		return d.newError("is damaged: a row group has two dictionaries")
	}
	var ok bool
	switch {
	case d.column.bytes():
		d.texts, ok = d.plainBytes(body, int(h.values))
		if ok && d.column.decimal {
			d.numbers, ok = d.column.decimals(d.texts)
			d.texts = nil
		}
	case d.column.physical == parquetInt32, d.column.physical == parquetInt64:
		d.ints, _ = d.integers(encPlain, body, int(h.values))
		ok = len(d.ints) == int(h.values)
		if ok && d.column.decimal {
			d.numbers, d.ints = d.column.unscaled(d.ints), nil
		}
	default:
		d.numbers, ok = d.plainNumbers(body, int(h.values))
	}
	if !ok {
		return d.newError("a dictionary is damaged")
	}
	return nil
}

// fromDictionary reports whether a page stores indices into a dictionary.
func fromDictionary(encoding int64) bool {
	return encoding == encPlainDictionary || encoding == encRLEDictionary
}

// values appends a row for each element of present: the next of the page's n values if the element is true, and
// otherwise a missing cell. If present is nil, values appends all n values.
func (d *pageReader) values(encoding int64, body []byte, n int, present []bool) error {
	if n == 0 && present == nil {
		return nil
	}
	var indices []uint64
	if fromDictionary(encoding) {
		size := len(d.numbers) + len(d.texts) + len(d.ints)
		ok := n == 0 || len(body) > 0 && body[0] <= 32
		if n > 0 && ok {
			indices, ok = hybrid(body[1:], int(body[0]), n)
		}
		for _, k := range indices {
			ok = ok && k < uint64(size)
		}
		if !ok {
			return d.newError(fmt.Sprintf("a page has an index past the %s of its dictionary, or is damaged", count.Of(size, "value")))
		}
	}
	if d.column.temporal() {
		return d.addTimes(encoding, body, n, indices, present)
	}
	if d.column.text() {
		return d.addTexts(encoding, body, n, indices, present)
	}
	return d.addNumbers(encoding, body, n, indices, present)
}

func (d *pageReader) addTexts(encoding int64, body []byte, n int, indices []uint64, present []bool) error {
	var texts [][]byte
	if indices == nil && n > 0 {
		var err error
		if texts, err = d.byteArrays(encoding, body, n); err != nil {
			return err
		}
	}
	index := 0
	next := func() (text []byte) {
		if text = nil; indices != nil {
			text = d.texts[indices[index]]
		} else {
			text = texts[index]
		}
		index++
		return text
	}
	for i := range max(len(present), n) {
		var text []byte
		if present == nil || present[i] {
			if text = next(); d.column.uuid {
				text = uuidText(text)
			}
		}
		if err := d.t.addText(d.to, text); err != nil {
			return err
		}
	}
	return nil
}

// byteArrays reads the n byte arrays of a page that does not use a dictionary.
func (d *pageReader) byteArrays(encoding int64, body []byte, n int) (values [][]byte, err error) {
	ok := false
	switch {
	case encoding == encPlain:
		values, ok = d.plainBytes(body, n)
	case encoding == encDeltaLength && d.column.physical == parquetBytes:
		values, _, ok = deltaTexts(body, n)
	case encoding == encDeltaBytes:
		values, ok = prefixedTexts(body, n)
	case encoding == encSplit && d.column.physical == parquetFixed:
		values, ok = fixedBytes(deinterleave(body, n, d.column.width), n, d.column.width)
	default:
		return nil, d.newError(fmt.Sprintf("has the encoding %d, which is not supported", encoding))
	}
	if !ok {
		return nil, d.newError("the texts of a page are damaged")
	}
	return values, nil
}

// plainBytes reads byte arrays in the encoding PLAIN.
func (d *pageReader) plainBytes(b []byte, n int) ([][]byte, bool) {
	if d.column.physical == parquetFixed {
		return fixedBytes(b, n, d.column.width)
	}
	return plainTexts(b, n)
}

// fixedBytes splits b into n parts of the given width.
func fixedBytes(b []byte, n, width int) ([][]byte, bool) {
	if n > len(b)/width {
		return nil, false
	}
	values := make([][]byte, n)
	for i := range values {
		values[i] = b[i*width : (i+1)*width]
	}
	return values, true
}

// decimals returns decimal numbers stored as byte arrays, which are big-endian two's complement integers.
func (c *parquetColumn) decimals(values [][]byte) ([]float64, bool) {
	numbers := make([]float64, len(values))
	var v, power big.Int
	for i, b := range values {
		if len(b) > maxDecimalBytes {
			return nil, false
		}
		v.SetBytes(b)
		if len(b) > 0 && b[0] >= 0x80 {
			v.Sub(&v, power.Lsh(big.NewInt(1), uint(8*len(b))))
		}
		numbers[i] = decimalOf(v.String(), c.scale)
	}
	return numbers, true
}

// decimalOf returns the integer digits divided by 10^scale, rounded once.
func decimalOf(digits string, scale int64) float64 {
	v, _ := strconv.ParseFloat(digits+"e-"+strconv.FormatInt(scale, 10), 64) // at most 64 bytes: no error
	return v
}

func (d *pageReader) addNumbers(encoding int64, body []byte, n int, indices []uint64, present []bool) error {
	var values []float64
	ok := true
	switch {
	case fromDictionary(encoding) && d.column.integer():
		list := make([]int64, n)
		for i, k := range indices {
			list[i] = d.ints[k]
		}
		d.to.cells.(*integers).addAll(list, present)
		return nil
	case fromDictionary(encoding):
		values = make([]float64, n)
		for i, k := range indices {
			values[i] = d.numbers[k]
		}
	case d.column.bytes():
		list, err := d.byteArrays(encoding, body, n)
		if err != nil {
			return err
		}
		values, ok = d.column.decimals(list)
	case d.column.physical == parquetInt32, d.column.physical == parquetInt64:
		list, supported := d.integers(encoding, body, n)
		if !supported {
			return d.newError(fmt.Sprintf("has the encoding %d, which is not supported", encoding))
		}
		if ok = len(list) == n; ok && d.column.integer() {
			d.to.cells.(*integers).addAll(list, present)
			return nil
		}
		values = d.column.unscaled(list)
	case encoding == encPlain:
		values, ok = d.plainNumbers(body, n)
	case encoding == encSplit && d.column.physical != parquetBoolean:
		values, ok = d.plainNumbers(deinterleave(body, n, d.column.kind().size()), n)
	case encoding == encRLE && d.column.physical == parquetBoolean:
		var list []uint64
		if ok = len(body) >= 4; ok {
			list, ok = hybrid(body[4:], 1, n)
		}
		values = make([]float64, len(list))
		for i, v := range list {
			values[i] = float64(v)
		}
	default:
		return d.newError(fmt.Sprintf("has the encoding %d, which is not supported", encoding))
	}
	if !ok {
		return d.newError("the numbers of a page are damaged")
	}
	if present == nil {
		d.to.addNumbers(values)
		return nil
	}
	expanded := make([]float64, len(present))
	for i, isPresent := range present {
		expanded[i] = math.NaN()
		if isPresent {
			expanded[i], values = values[0], values[1:]
		}
	}
	d.to.addNumbers(expanded)
	return nil
}

// integers reads the n integers of a page that does not use a dictionary, or fewer if the page is damaged.
// supported is false if integers cannot have the encoding.
func (d *pageReader) integers(encoding int64, body []byte, n int) (list []int64, supported bool) {
	size := d.column.kind().size()
	switch encoding {
	case encDelta:
		list, _, _ = deltas(body, n)
		for i, v := range list {
			list[i] = d.column.extended(v)
		}
		return list, true
	case encSplit:
		body = deinterleave(body, n, size)
	case encPlain:
	default:
		return nil, false
	}
	if n > len(body)/size {
		return nil, true
	}
	list = make([]int64, n)
	for i := range list {
		if size == 8 {
			list[i] = int64(binary.LittleEndian.Uint64(body[8*i:]))
		} else {
			list[i] = d.column.extended(int64(binary.LittleEndian.Uint32(body[4*i:])))
		}
	}
	return list, true
}

// extended extends an integer of the column to 64 bits, with zeros if the column is unsigned.
func (c *parquetColumn) extended(v int64) int64 {
	switch {
	case c.physical == parquetInt64:
		return v
	case c.unsigned:
		return int64(uint32(v))
	}
	return int64(int32(v))
}

// unscaled returns decimal numbers that are stored as integers. Each number is rounded once.
func (c *parquetColumn) unscaled(list []int64) []float64 {
	values := make([]float64, len(list))
	for i, v := range list {
		if c.scale < int64(len(powersOfTen)) && -1<<53 <= v && v <= 1<<53 {
			values[i] = float64(v) / powersOfTen[c.scale]
		} else {
			values[i] = decimalOf(strconv.FormatInt(v, 10), c.scale)
		}
	}
	return values
}

// plainNumbers reads numbers in the encoding PLAIN.
func (d *pageReader) plainNumbers(b []byte, n int) ([]float64, bool) {
	if d.column.physical == parquetBoolean {
		if n > 8*len(b) {
			return nil, false
		}
		values := make([]float64, n)
		for i := range values {
			values[i] = float64(b[i/8] >> (i % 8) & 1)
		}
		return values, true
	}
	kind := d.column.kind()
	if n > len(b)/kind.size() {
		return nil, false
	}
	m := packed{data: b, kind: kind, byRow: kind.size()}
	values := make([]float64, n)
	if d.column.physical == parquetDouble {
		for i := range values {
			values[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		}
		return values, true
	}
	for i := range values {
		values[i] = m.number(i, 0)
	}
	return values, true
}

// deinterleave returns n values of size bytes from b, which has the first bytes of all values first, then all
// second bytes, and so on (BYTE_STREAM_SPLIT). The result is nil if b is too short.
func deinterleave(b []byte, n, size int) []byte {
	if n > len(b)/size {
		return nil
	}
	out := make([]byte, n*size)
	for k := range size {
		for i := range n {
			out[i*size+k] = b[k*n+i]
		}
	}
	return out
}

// plainTexts reads texts in the encoding PLAIN, each after its length in 4 bytes.
func plainTexts(b []byte, n int) ([][]byte, bool) {
	if n > len(b)/4 {
		return nil, false
	}
	texts := make([][]byte, n)
	for i := range texts {
		if len(b) < 4 {
			return nil, false
		}
		size := binary.LittleEndian.Uint32(b)
		if b = b[4:]; uint64(size) > uint64(len(b)) {
			return nil, false
		}
		texts[i], b = b[:size], b[size:]
	}
	return texts, true
}

// deltaTexts reads texts in the encoding DELTA_LENGTH_BYTE_ARRAY: the lengths, as in deltas, and then the texts.
func deltaTexts(b []byte, n int) (texts [][]byte, rest []byte, ok bool) {
	sizes, rest, ok := deltas(b, n)
	if !ok {
		return nil, nil, false
	}
	texts = make([][]byte, n)
	for i, size := range sizes {
		if size < 0 || size > int64(len(rest)) {
			return nil, nil, false
		}
		texts[i], rest = rest[:size], rest[size:]
	}
	return texts, rest, true
}

// prefixedTexts reads texts in the encoding DELTA_BYTE_ARRAY, each as the length of its common prefix with the
// previous text, and the rest. The total length may not exceed maxPage.
func prefixedTexts(b []byte, n int) ([][]byte, bool) {
	shared, rest, ok := deltas(b, n)
	if !ok {
		return nil, false
	}
	texts, _, ok := deltaTexts(rest, n)
	if !ok {
		return nil, false
	}
	var last []byte
	total := int64(0)
	for i, text := range texts {
		if shared[i] < 0 || shared[i] > int64(len(last)) {
			return nil, false
		}
		if total += shared[i]; total > maxPage {
			return nil, false
		}
		if shared[i] > 0 {
			text = append(append(make([]byte, 0, int(shared[i])+len(text)), last[:shared[i]]...), text...)
		}
		texts[i], last = text, text
	}
	return texts, true
}

// hybrid reads n numbers of width bits in the RLE/bit-packing hybrid encoding: runs of equal
// numbers, and groups of eight bit-packed numbers.
func hybrid(b []byte, width, n int) ([]uint64, bool) {
	out := make([]uint64, 0, min(n, 8*len(b)))
	bytesOf := (width + 7) / 8
	for len(out) < n {
		head, k := binary.Uvarint(b)
		if k <= 0 {
			return nil, false
		}
		b = b[k:]
		if head&1 == 0 {
			if head == 0 || len(b) < bytesOf {
				return nil, false
			}
			var v uint64
			for i := range bytesOf {
				v |= uint64(b[i]) << (8 * i)
			}
			b = b[bytesOf:]
			for range min(head>>1, uint64(n-len(out))) {
				out = append(out, v)
			}
			continue
		}
		groups := head >> 1
		if groups == 0 || groups > uint64(n) {
			groups = min(groups, uint64(n)) // limits the padding of the last run
			if groups == 0 {
				return nil, false
			}
		}
		size := min(int(groups)*width, len(b))
		count := min(8*int(groups), n-len(out))
		if 8*size < count*width {
			return nil, false
		}
		for i := range count {
			out = append(out, bitsAt(b, i*width, width))
		}
		b = b[size:]
	}
	return out, true
}

// bitsAt reads a number of width ≤ 64 bits, lowest bit first, from bit start of b.
func bitsAt(b []byte, start, width int) uint64 {
	var v uint64
	for count := 0; count < width; {
		shift := (start + count) % 8
		v |= uint64(b[(start+count)/8]>>shift) << count
		count += 8 - shift
	}
	if width < 64 {
		v &= 1<<width - 1
	}
	return v
}

// deltas reads n numbers in the encoding DELTA_BINARY_PACKED. A block stores its smallest difference of adjacent
// numbers, and the excess of each difference over the smallest.
func deltas(b []byte, n int) (out []int64, rest []byte, ok bool) {
	invalid := false
	next := func() uint64 {
		v, k := binary.Uvarint(b)
		if k <= 0 {
			invalid = true
			return 0
		}
		b = b[k:]
		return v
	}
	signed := func() int64 {
		v := next()
		return int64(v>>1) ^ -int64(v&1)
	}
	block, minis, count, first := next(), next(), next(), signed()
	if invalid || count != uint64(n) || block == 0 || block > 1<<16 || minis == 0 || minis > block || block%minis != 0 || block/minis%8 != 0 {
		return nil, nil, false
	}
	if n == 0 {
		return nil, b, true
	}
	out = append(make([]int64, 0, min(n, 8*len(b)+1)), first)
	perMini := int(block / minis)
	for len(out) < n {
		minDelta := signed()
		if invalid || uint64(len(b)) < minis {
			return nil, nil, false
		}
		widths := b[:minis]
		b = b[minis:]
		for _, width := range widths {
			if len(out) == n {
				break
			}
			size := perMini / 8 * int(width)
			if width > 64 || size > len(b) {
				return nil, nil, false
			}
			for i := range min(perMini, n-len(out)) {
				out = append(out, out[len(out)-1]+minDelta+int64(bitsAt(b, i*int(width), int(width))))
			}
			b = b[size:]
		}
	}
	return out, b, true
}

package dataset

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
)

// A page ends when it has at least maxWritten bytes, and a group has at most groupRows rows.
const (
	groupRows  = 1 << 17
	maxWritten = 1 << 19
)

// WriteParquet writes a Parquet file. names[j] is the name of columns[j]: a []float64, written as DOUBLE, an
// []int64, written as INT64, or a []string of valid UTF-8, written as BYTE_ARRAY with the logical type STRING. The
// columns must have the same length, which may be 0. A missing number is written as NaN, and a text cannot be
// missing. Pages are PLAIN, have checksums and are not compressed.
func WriteParquet(w io.Writer, names []string, columns []any) error {
	out := &countingWriter{w: bufio.NewWriter(w)}
	rows := -1
	schema := &thriftWriter{}
	for j, name := range names {
		physical, n := physicalOf(columns[j])
		if physical < 0 {
			return fmt.Errorf("dataset: parquet: column %q: a %T cannot be written", name, columns[j])
		}
		if rows >= 0 && n != rows {
			return fmt.Errorf("dataset: parquet: column %q has %d rows, and the columns before it have %d", name, n, rows)
		}
		rows = n
		schema.open()
		schema.integer(1, thriftI32, physical)
		schema.integer(3, thriftI32, 0) // repetition REQUIRED: no cell is missing
		schema.text(4, name)
		if physical == parquetBytes {
			schema.integer(6, thriftI32, 0) // ConvertedType UTF8, for programs that do not read logical types
			schema.field(10, thriftStruct)
			schema.open()
			schema.field(1, thriftStruct) // logical type STRING
			schema.open()
			schema.close()
			schema.close()
		}
		schema.close()
	}
	out.Write([]byte("PAR1")) // Flush returns the first error of Write
	groups, count := &thriftWriter{}, 0
	for begin := 0; begin < rows; begin += groupRows {
		count++
		writeGroup(out, groups, names, columns, begin, min(rows, begin+groupRows))
	}
	footer := &thriftWriter{}
	footer.open()
	footer.integer(1, thriftI32, 2) // version of the file format
	footer.list(2, thriftStruct, len(names)+1)
	footer.open() // the root of the schema
	footer.text(4, "schema")
	footer.integer(5, thriftI32, int64(len(names)))
	footer.close()
	footer.b = append(footer.b, schema.b...)
	footer.integer(3, thriftI64, int64(max(rows, 0)))
	footer.list(4, thriftStruct, count)
	footer.b = append(footer.b, groups.b...)
	footer.text(6, "mercer")
	footer.close()
	out.Write(footer.b)
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(footer.b))))
	out.Write([]byte("PAR1"))
	return out.w.Flush()
}

// writeGroup writes rows begin to end − 1 as a group, and appends its RowGroup to groups.
func writeGroup(out *countingWriter, groups *thriftWriter, names []string, columns []any, begin, end int) {
	groups.open()
	groups.list(1, thriftStruct, len(names))
	total := int64(0)
	for j, name := range names {
		first := out.n
		for row := begin; row < end; {
			var body []byte
			from := row
			for ; row < end && len(body) < maxWritten; row++ {
				body = appendPlain(body, columns[j], row)
			}
			h := &thriftWriter{}
			h.open()
			h.integer(1, thriftI32, dataPage)
			h.integer(2, thriftI32, int64(len(body)))
			h.integer(3, thriftI32, int64(len(body)))
			h.integer(4, thriftI32, int64(int32(crc32.ChecksumIEEE(body))))
			h.field(5, thriftStruct)
			h.open()
			h.integer(1, thriftI32, int64(row-from))
			h.integer(2, thriftI32, encPlain)
			h.integer(3, thriftI32, encRLE) // encoding of definition levels, which the page does not have
			h.integer(4, thriftI32, encRLE)
			h.close()
			h.close()
			out.Write(h.b)
			out.Write(body)
		}
		physical, _ := physicalOf(columns[j])
		size := out.n - first
		total += size
		groups.open()
		groups.integer(2, thriftI64, first)
		groups.field(3, thriftStruct)
		groups.open()
		groups.integer(1, thriftI32, physical)
		groups.list(2, thriftI32, 1)
		groups.zigzag(encPlain)
		groups.list(3, thriftBinary, 1)
		groups.binary(name)
		groups.integer(4, thriftI32, 0) // codec UNCOMPRESSED
		groups.integer(5, thriftI64, int64(end-begin))
		groups.integer(6, thriftI64, size)
		groups.integer(7, thriftI64, size)
		groups.integer(9, thriftI64, first)
		groups.close()
		groups.close()
	}
	groups.integer(2, thriftI64, total)
	groups.integer(3, thriftI64, int64(end-begin))
	groups.close()
}

// physicalOf returns the physical type of a column, or −1 for another Go type, and its length.
func physicalOf(column any) (physical int64, n int) {
	switch c := column.(type) {
	case []float64:
		return parquetDouble, len(c)
	case []int64:
		return parquetInt64, len(c)
	case []string:
		return parquetBytes, len(c)
	}
	return -1, 0
}

// appendPlain appends an element of a column in the encoding PLAIN.
func appendPlain(b []byte, column any, row int) []byte {
	switch c := column.(type) {
	case []float64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(c[row]))
	case []int64:
		return binary.LittleEndian.AppendUint64(b, uint64(c[row]))
	}
	text := column.([]string)[row]
	return append(binary.LittleEndian.AppendUint32(b, uint32(len(text))), text...)
}

// A countingWriter counts the bytes that were written.
type countingWriter struct {
	w *bufio.Writer
	n int64
}

func (c *countingWriter) Write(b []byte) {
	c.w.Write(b) // Flush returns the first error of Write
	c.n += int64(len(b))
}

// A thriftWriter writes values in the compact protocol of Thrift, which the type thrift reads.
type thriftWriter struct {
	b    []byte
	last []byte // number of the last written field of each open struct
}

func (t *thriftWriter) open() { t.last = append(t.last, 0) }

func (t *thriftWriter) close() {
	t.b = append(t.b, 0)
	t.last = t.last[:len(t.last)-1]
}

// field begins a field of the innermost open struct. Call it in ascending order of the fields.
func (t *thriftWriter) field(id, kind byte) {
	last := &t.last[len(t.last)-1]
	t.b = append(t.b, (id-*last)<<4|kind)
	*last = id
}

func (t *thriftWriter) zigzag(v int64) { t.b = binary.AppendVarint(t.b, v) }

func (t *thriftWriter) integer(id, kind byte, v int64) {
	t.field(id, kind)
	t.zigzag(v)
}

func (t *thriftWriter) binary(text string) {
	t.b = append(binary.AppendUvarint(t.b, uint64(len(text))), text...)
}

func (t *thriftWriter) text(id byte, text string) {
	t.field(id, thriftBinary)
	t.binary(text)
}

func (t *thriftWriter) list(id, kind byte, n int) {
	t.field(id, thriftList)
	if n < 15 {
		t.b = append(t.b, byte(n)<<4|kind)
		return
	}
	t.b = binary.AppendUvarint(append(t.b, 0xf0|kind), uint64(n))
}

package dataset

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"

	flatbuffers "github.com/google/flatbuffers/go"
)

// arrowVersion is the number for version V5 of the metadata.
const arrowVersion = 4

// WriteArrow writes an Arrow file, which is also a Feather file of version 2. names[j] is the name of columns[j]: a
// []float64, written as Float64, an []int64, written as Int64, or a []string of valid UTF-8, written as Utf8. The
// columns must have the same length, which may be 0. A missing number is written as NaN. A record batch has at most
// 131,072 rows and is not compressed.
func WriteArrow(w io.Writer, names []string, columns []any) error {
	rows := -1
	for j, name := range names {
		physical, n := physicalOf(columns[j])
		if physical < 0 {
			return fmt.Errorf("dataset: arrow: column %q: a %T cannot be written", name, columns[j])
		}
		if rows >= 0 && n != rows {
			return fmt.Errorf("dataset: arrow: column %q has %d rows, and the columns before it have %d", name, n, rows)
		}
		rows = n
	}
	out := &arrowWriter{countingWriter: countingWriter{w: bufio.NewWriter(w)}}
	out.Write([]byte("ARROW1\x00\x00")) // Flush returns the first error of Write
	b := flatbuffers.NewBuilder(0)
	out.message(b, arrowSchema, schemaOf(b, names, columns), nil)
	var blocks [][3]int64
	for begin := 0; begin < rows; begin += groupRows {
		block, err := out.records(names, columns, begin, min(rows, begin+groupRows))
		if err != nil {
			return err
		}
		blocks = append(blocks, block)
	}
	out.Write(arrowContinues)
	out.Write(make([]byte, 4))

	b = flatbuffers.NewBuilder(0)
	b.StartVector(24, len(blocks), 8)
	for j := len(blocks) - 1; j >= 0; j-- {
		b.Prep(8, 24)
		b.PrependInt64(blocks[j][2])
		b.Pad(4)
		b.PrependInt32(int32(blocks[j][1]))
		b.PrependInt64(blocks[j][0])
	}
	list := b.EndVector(len(blocks))
	b.StartVector(24, 0, 8)
	dictionaries := b.EndVector(0)
	schema := schemaOf(b, names, columns)
	b.StartObject(5)
	b.PrependInt16Slot(0, arrowVersion, 0)
	b.PrependUOffsetTSlot(1, schema, 0)
	b.PrependUOffsetTSlot(2, dictionaries, 0)
	b.PrependUOffsetTSlot(3, list, 0)
	b.Finish(b.EndObject())
	out.Write(b.FinishedBytes())
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(b.FinishedBytes()))))
	out.Write(arrowMark)
	return out.w.Flush()
}

// schemaOf adds a Schema to a flatbuffer.
func schemaOf(b *flatbuffers.Builder, names []string, columns []any) flatbuffers.UOffsetT {
	fields := make([]flatbuffers.UOffsetT, len(names))
	for j, name := range names {
		text := b.CreateString(name)
		var kind byte
		switch columns[j].(type) {
		case []float64:
			kind = arrowFloat
			b.StartObject(1)
			b.PrependInt16Slot(0, 2, 0) // float64
		case []int64:
			kind = arrowInt
			b.StartObject(2)
			b.PrependInt32Slot(0, 64, 0)
			b.PrependBoolSlot(1, true, false)
		default:
			kind = arrowText
			b.StartObject(0)
		}
		typeTable := b.EndObject()
		b.StartVector(4, 0, 4)
		children := b.EndVector(0) // some readers fail without a list of children
		b.StartObject(7)
		b.PrependUOffsetTSlot(0, text, 0)
		b.PrependByteSlot(2, kind, 0)
		b.PrependUOffsetTSlot(3, typeTable, 0)
		b.PrependUOffsetTSlot(5, children, 0)
		fields[j] = b.EndObject()
	}
	b.StartVector(4, len(fields), 4)
	for j := len(fields) - 1; j >= 0; j-- {
		b.PrependUOffsetT(fields[j])
	}
	list := b.EndVector(len(fields))
	b.StartObject(4)
	b.PrependUOffsetTSlot(1, list, 0)
	return b.EndObject()
}

// An arrowWriter writes the messages of a stream.
type arrowWriter struct{ countingWriter }

// message writes a message whose header is in the flatbuffer, and returns its Block for the footer.
func (out *arrowWriter) message(b *flatbuffers.Builder, kind byte, header flatbuffers.UOffsetT, body [][]byte) (block [3]int64) {
	size := int64(0)
	for _, buffer := range body {
		size += int64(padded(len(buffer)))
	}
	b.StartObject(5)
	b.PrependInt16Slot(0, arrowVersion, 0)
	b.PrependByteSlot(1, kind, 0)
	b.PrependUOffsetTSlot(2, header, 0)
	b.PrependInt64Slot(3, size, 0)
	b.Finish(b.EndObject())
	metadata := b.FinishedBytes()
	block = [3]int64{out.n, int64(8 + padded(len(metadata))), size}
	out.Write(arrowContinues)
	out.Write(binary.LittleEndian.AppendUint32(nil, uint32(padded(len(metadata)))))
	for _, section := range append([][]byte{metadata}, body...) {
		out.Write(section)
		out.Write(make([]byte, padded(len(section))-len(section)))
	}
	return block
}

// padded returns the smallest multiple of 8 that is ≥ n.
func padded(n int) int { return (n + 7) &^ 7 }

// records writes rows begin to end − 1 as a record batch, and returns its Block for the footer.
func (out *arrowWriter) records(names []string, columns []any, begin, end int) (block [3]int64, err error) {
	var body [][]byte
	for j, name := range names {
		body = append(body, nil) // an empty buffer of missing cells: no cell is missing
		var data []byte
		switch c := columns[j].(type) {
		case []float64:
			for _, v := range c[begin:end] {
				data = binary.LittleEndian.AppendUint64(data, math.Float64bits(v))
			}
		case []int64:
			for _, v := range c[begin:end] {
				data = binary.LittleEndian.AppendUint64(data, uint64(v))
			}
		case []string:
			starts := make([]byte, 4, 4*(end-begin+1))
			for i, text := range c[begin:end] {
				if data = append(data, text...); len(data) > math.MaxInt32 {
					return block, fmt.Errorf("dataset: arrow: column %q: the texts of rows %d to %d have more than 2 GiB", name, begin+1, begin+i+1)
				}
				starts = binary.LittleEndian.AppendUint32(starts, uint32(len(data)))
			}
			body = append(body, starts)
		}
		body = append(body, data)
	}
	b := flatbuffers.NewBuilder(0)
	offsets := make([]int64, len(body))
	for i := 1; i < len(body); i++ {
		offsets[i] = offsets[i-1] + int64(padded(len(body[i-1])))
	}
	b.StartVector(16, len(body), 8)
	for i := len(body) - 1; i >= 0; i-- {
		b.Prep(8, 16)
		b.PrependInt64(int64(len(body[i])))
		b.PrependInt64(offsets[i])
	}
	buffers := b.EndVector(len(body))
	b.StartVector(16, len(names), 8)
	for range names {
		b.Prep(8, 16)
		b.PrependInt64(0)
		b.PrependInt64(int64(end - begin))
	}
	nodes := b.EndVector(len(names))
	b.StartObject(5)
	b.PrependInt64Slot(0, int64(end-begin), 0)
	b.PrependUOffsetTSlot(1, nodes, 0)
	b.PrependUOffsetTSlot(2, buffers, 0)
	return out.message(b, arrowRecords, b.EndObject(), body), nil
}

package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"

	flatbuffers "github.com/google/flatbuffers/go"

	"github.com/mercer-go/mercer/internal/count"
)

// An Arrow stream (arrow.apache.org/docs/format/Columnar.html, "IPC Streaming Format") is a sequence of messages:
// the schema, dictionaries, and record batches, which are groups of rows. A message consists of metadata in a
// flatbuffer and a body with the buffers of all columns. An Arrow file, also called a Feather file of version 2,
// begins and ends with ARROW1, and contains a stream and then a footer that lists the batches.
//
// This package does not use github.com/apache/arrow-go, because v18.8.0 trusts the sizes in the
// metadata: it allocates 34 GB if byte 22 of testdata/arrow/small-go-none.arrow is inverted.

// An Arrow file begins with arrowMark, and each message begins with arrowContinues.
var arrowMark, arrowContinues = []byte("ARROW1"), []byte{0xff, 0xff, 0xff, 0xff}

// These constants number the types of values in the format's Schema.fbs.
const (
	arrowNull        = 1
	arrowInt         = 2
	arrowFloat       = 3
	arrowBinary      = 4
	arrowText        = 5
	arrowBool        = 6
	arrowDecimal     = 7
	arrowDate        = 8
	arrowTime        = 9
	arrowTimestamp   = 10
	arrowInterval    = 11
	arrowStruct      = 13
	arrowUnion       = 14
	arrowFixedBinary = 15
	arrowFixedList   = 16
	arrowDuration    = 18
	arrowLargeBinary = 19
	arrowLargeText   = 20
	arrowRuns        = 22 // RunEndEncoded
	arrowBinaryView  = 23
	arrowTextView    = 24
	arrowListView    = 25
	arrowLargeView   = 26 // LargeListView
)

// These constants number the kinds of messages in the format's Message.fbs.
const (
	arrowSchema     = 1
	arrowDictionary = 2
	arrowRecords    = 3
)

const (
	maxArrowMetadata = 1 << 28
	maxArrowFields   = 1 << 20 // maximum number of fields in a schema, including nested fields
	maxArrowDepth    = 64
)

// arrowType is the type of the values in a column.
type arrowType struct {
	kind     byte
	bits     int // size of a number in bits
	unsigned bool
	scale    int64
	time     storedTime
	dense    bool // a union is stored in its dense form
}

// arrowColumn is a field of the schema.
type arrowColumn struct {
	arrowType
	name       string
	index      *arrowType // type of the indices if the column stores indices into a dictionary; nil if it stores values
	dictionary int64
	children   []arrowColumn
	unreadable string // why the column cannot be read, or ""
}

// arrowFile is the state of reading a stream.
type arrowFile struct {
	in           *input
	t            *Table
	file         bool // the stream is part of an Arrow file
	columns      []arrowColumn
	dictionaries map[int64]arrowValues
	shared       bool          // a batch refers to the map dictionaries, which must therefore be copied before a change
	pending      *arrowMessage // the next message, if its metadata have already been read
	batches      int
	rows         int64
}

func openArrow(in *input) (*arrowFile, error) {
	a := &arrowFile{in: in, t: in.t, dictionaries: map[int64]arrowValues{}}
	if prefix, _ := in.r.Peek(len(arrowMark)); bytes.Equal(prefix, arrowMark) {
		a.file = true
		if _, err := in.r.Discard(8); err != nil {
			return nil, a.damaged("its first bytes")
		}
	}
	m, err := a.next()
	if err == io.EOF {
		return nil, a.damaged("its schema")
	}
	if err != nil {
		return nil, err
	}
	schema := m.header
	if m.kind != arrowSchema {
		if schema, err = a.footerSchema(); err != nil {
			return nil, err
		}
		a.pending = &m
	}
	bigEndian := false
	if !parsed(func() {
		bigEndian = int16At(schema, 0, 0) != 0
		fields := 0
		a.columns = readFields(schema, 1, &fields, 0)
	}) {
		return nil, a.damaged("its schema")
	}
	if bigEndian {
		return nil, a.t.newError("", "has numbers in big-endian order, which is not supported: write it on another machine")
	}
	if len(a.columns) > MaxFeatures {
		return nil, a.t.newError("", fmt.Sprintf("has %s; at most %d can be read", count.Of(len(a.columns), "column"), MaxFeatures))
	}
	var names []string
	for i := range a.columns {
		names = append(names, a.columns[i].name)
		a.columns[i].unreadable = a.columns[i].check()
	}
	if e := a.t.setNames(names); e != nil {
		return nil, e
	}
	a.t.columns = nil
	return a, nil
}

// footerSchema returns the schema in the footer of a file. Files of Arrow for JavaScript have it only there.
func (a *arrowFile) footerSchema() (schema flatbuffers.Table, err error) {
	if !a.file {
		return schema, a.damaged("its schema")
	}
	if a.in.file == nil {
		return schema, a.t.newError("", "has its schema at its end: it can be read only from an uncompressed file, not from a pipe")
	}
	tail := make([]byte, 10)
	if _, err := a.in.file.ReadAt(tail, max(0, a.in.size-10)); err != nil {
		return schema, a.in.readError(err)
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if !bytes.Equal(tail[4:], arrowMark) || n > a.in.size-10 || n > maxArrowMetadata {
		return schema, a.damaged("its footer")
	}
	footer := make([]byte, n)
	if _, err := a.in.file.ReadAt(footer, a.in.size-10-n); err != nil {
		return schema, a.in.readError(err)
	}
	if !parsed(func() {
		schema = tableAt(flatbuffers.Table{Bytes: footer, Pos: flatbuffers.GetUOffsetT(footer)}, 1)
	}) {
		return schema, a.damaged("its footer")
	}
	return schema, nil
}

func (a *arrowFile) damaged(component string) error {
	return a.t.newError("", "is not a complete Arrow file or stream: "+component+" cannot be read")
}

// parsed calls f, which reads a flatbuffer. It returns false if f panics, as package flatbuffers does at invalid
// offsets.
func parsed(f func()) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			ok = false
		}
	}()
	f()
	return true
}

// slotAt returns the position of the field with index id of the table t, or 0 if t lacks the field.
func slotAt(t flatbuffers.Table, id int) flatbuffers.UOffsetT {
	o := t.Offset(flatbuffers.VOffsetT(4 + 2*id))
	if o == 0 {
		return 0
	}
	return flatbuffers.UOffsetT(o) + t.Pos
}

func int16At(t flatbuffers.Table, id int, otherwise int16) int16 {
	return t.GetInt16Slot(flatbuffers.VOffsetT(4+2*id), otherwise)
}

func int32At(t flatbuffers.Table, id int, otherwise int32) int32 {
	return t.GetInt32Slot(flatbuffers.VOffsetT(4+2*id), otherwise)
}

func int64At(t flatbuffers.Table, id int) int64 {
	return t.GetInt64Slot(flatbuffers.VOffsetT(4+2*id), 0)
}

func byteAt(t flatbuffers.Table, id int) byte {
	return t.GetByteSlot(flatbuffers.VOffsetT(4+2*id), 0)
}

// tableAt returns the field with index id, which is a table, or an empty table if t lacks the field.
func tableAt(t flatbuffers.Table, id int) flatbuffers.Table {
	pos := slotAt(t, id)
	if pos == 0 {
		return flatbuffers.Table{Bytes: []byte{4, 0, 4, 0, 4, 0, 0, 0}, Pos: 4} // the encoding of a table without fields
	}
	return flatbuffers.Table{Bytes: t.Bytes, Pos: pos + flatbuffers.GetUOffsetT(t.Bytes[pos:])}
}

// vectorAt returns the bytes of the field with index id, a list whose elements have size bytes each.
func vectorAt(t flatbuffers.Table, id, size int) []byte {
	pos := slotAt(t, id)
	if pos == 0 {
		return nil
	}
	begin := uint64(t.Vector(pos - t.Pos))
	return t.Bytes[begin : begin+uint64(t.VectorLen(pos-t.Pos))*uint64(size)]
}

// readFields returns the columns that the field of t with index id describes, and adds their number to *count.
func readFields(t flatbuffers.Table, id int, count *int, depth int) (columns []arrowColumn) {
	pos := slotAt(t, id)
	if pos == 0 {
		return nil
	}
	for i := range t.VectorLen(pos - t.Pos) {
		if *count++; *count > maxArrowFields || depth > maxArrowDepth {
			panic("too many fields")
		}
		element := t.Vector(pos-t.Pos) + flatbuffers.UOffsetT(4*i)
		f := flatbuffers.Table{Bytes: t.Bytes, Pos: element + flatbuffers.GetUOffsetT(t.Bytes[element:])}
		c := arrowColumn{arrowType: readType(byteAt(f, 2), tableAt(f, 3)), children: readFields(f, 5, count, depth+1)}
		if name := slotAt(f, 0); name != 0 {
			c.name = f.String(name)
		}
		if slotAt(f, 4) != 0 {
			d := tableAt(f, 4)
			c.dictionary = int64At(d, 0)
			c.index = &arrowType{kind: arrowInt, bits: 32}
			if slotAt(d, 1) != 0 {
				*c.index = readType(arrowInt, tableAt(d, 1))
			}
		}
		columns = append(columns, c)
	}
	return columns
}

// readType parses t, a member of the union Type of Schema.fbs. kind is the number of the member.
func readType(kind byte, t flatbuffers.Table) arrowType {
	a := arrowType{kind: kind}
	units := []timeUnit{seconds, millis, micros, nanos}
	switch kind {
	case arrowInt:
		a.bits, a.unsigned = int(int32At(t, 0, 0)), byteAt(t, 1) == 0
	case arrowFloat:
		a.bits = []int{16, 32, 64}[int16At(t, 0, 0)]
	case arrowBool:
		a.bits = 1
	case arrowDecimal:
		a.bits, a.scale = int(int32At(t, 2, 128)), int64(int32At(t, 1, 0))
	case arrowDate:
		a.bits, a.time = 32, storedTime{unit: days}
		if int16At(t, 0, 1) == 1 {
			a.bits, a.time = 64, storedTime{unit: dayMillis}
		}
	case arrowTime:
		a.bits, a.time = int(int32At(t, 1, 32)), storedTime{unit: units[int16At(t, 0, 1)], timeOfDay: true}
	case arrowTimestamp:
		a.bits, a.time = 64, storedTime{unit: units[int16At(t, 0, 0)], utc: slotAt(t, 1) != 0}
	case arrowUnion:
		a.dense = int16At(t, 0, 0) == 1
	}
	return a
}

// check returns the reason why a column cannot be read, or "".
func (c *arrowColumn) check() string {
	if c.index != nil && (c.index.bits%8 != 0 || c.index.bits < 8 || c.index.bits > 64) {
		return fmt.Sprintf("has indices of %d bits into a dictionary", c.index.bits)
	}
	switch c.kind {
	case arrowInt, arrowTime:
		if c.bits != 8 && c.bits != 16 && c.bits != 32 && c.bits != 64 {
			return fmt.Sprintf("has integers of %d bits", c.bits)
		}
	case arrowDecimal:
		if c.bits != 32 && c.bits != 64 && c.bits != 128 && c.bits != 256 || c.scale < 0 || c.scale > maxScale {
			return fmt.Sprintf("is a decimal of %d bits and scale %d; at most 256 bits and a scale from 0 to %d can be read", c.bits, c.scale, maxScale)
		}
	case arrowNull, arrowFloat, arrowBool, arrowText, arrowLargeText, arrowTextView, arrowDate, arrowTimestamp:
	case arrowBinary, arrowFixedBinary, arrowLargeBinary, arrowBinaryView:
		return "holds byte arrays that are neither texts nor numbers; write them as numbers"
	case arrowInterval, arrowDuration:
		return "holds durations; write them as numbers"
	default:
		return "is nested; only flat columns can be read"
	}
	return ""
}

func (t *arrowType) text() bool {
	return t.kind == arrowText || t.kind == arrowLargeText || t.kind == arrowTextView || t.time.unit != 0
}

// buffers returns the number of buffers of a column, not counting its children. ok is false for an unknown type.
func (t *arrowType) buffers() (n int, ok bool) {
	switch t.kind {
	case arrowNull, arrowRuns:
		return 0, true
	case arrowStruct, arrowFixedList:
		return 1, true
	case arrowUnion:
		if t.dense {
			return 2, true
		}
		return 1, true
	case arrowBinary, arrowText, arrowLargeBinary, arrowLargeText, arrowListView, arrowLargeView:
		return 3, true
	}
	return 2, t.kind > 0 && t.kind <= arrowLargeView
}

// arrowMessage is a message. Its metadata have been read, but not its body.
type arrowMessage struct {
	kind   byte
	header flatbuffers.Table
	size   int64 // size of the body in bytes
}

// next reads the metadata of the next message. It returns io.EOF after the last message.
func (a *arrowFile) next() (m arrowMessage, err error) {
	var begin [8]byte
	switch n, err := io.ReadFull(a.in.r, begin[:]); {
	case err == io.EOF && !a.file:
		return m, io.EOF // a stream may end without a marker
	case n == 8 && !bytes.Equal(begin[:4], arrowContinues), err == io.EOF, err == io.ErrUnexpectedEOF:
		return m, a.damaged(fmt.Sprintf("the message after batch %d", a.batches))
	case err != nil:
		return m, a.in.readError(err)
	}
	n := int64(int32(binary.LittleEndian.Uint32(begin[4:])))
	if n == 0 {
		return m, a.end()
	}
	metadata, err := a.bytes(n, maxArrowMetadata)
	if err != nil {
		return m, err
	}
	if !parsed(func() {
		t := flatbuffers.Table{Bytes: metadata, Pos: flatbuffers.GetUOffsetT(metadata)}
		m = arrowMessage{kind: byteAt(t, 1), header: tableAt(t, 2), size: int64At(t, 3)}
	}) || m.size < 0 {
		return m, a.damaged(fmt.Sprintf("the message after batch %d", a.batches))
	}
	return m, nil
}

// bytes reads n bytes. It allocates memory only for bytes that exist, in case n is wrong.
func (a *arrowFile) bytes(n, limit int64) ([]byte, error) {
	switch {
	case n < 0 || n > limit:
		return nil, a.damaged(fmt.Sprintf("the message after batch %d", a.batches))
	case !a.in.allowance.fits(n):
		return nil, a.t.newError("", a.in.allowance.rule())
	}
	var buf bytes.Buffer
	if capacity := n + bytes.MinRead; capacity <= 1<<20 || capacity <= a.in.size {
		buf.Grow(int(capacity))
	}
	switch got, err := io.CopyN(&buf, a.in.r, n); {
	case err == io.EOF:
		return nil, a.damaged(fmt.Sprintf("the message after batch %d, which claims %d bytes although only %d follow,", a.batches, n, got))
	case err != nil:
		return nil, a.in.readError(err)
	}
	return buf.Bytes(), nil
}

// end checks the bytes after the last message, and returns io.EOF if they are valid.
func (a *arrowFile) end() error {
	if !a.file {
		if _, err := a.in.r.Peek(1); err != io.EOF {
			return a.t.newError("", "has more bytes after the end of its stream: only one stream can be read")
		}
		return io.EOF
	}
	remaining, err := io.ReadAll(io.LimitReader(a.in.r, maxArrowMetadata))
	if err != nil {
		return a.in.readError(err)
	}
	batches := -1
	if n := len(remaining) - 10; n >= 0 && bytes.Equal(remaining[n+4:], arrowMark) && int64(binary.LittleEndian.Uint32(remaining[n:])) == int64(n) {
		parsed(func() {
			batches = len(vectorAt(flatbuffers.Table{Bytes: remaining, Pos: flatbuffers.GetUOffsetT(remaining)}, 3, 24)) / 24
		})
	}
	switch {
	case batches < 0:
		return a.damaged("its footer")
	case batches != a.batches:
		return a.t.newError("", fmt.Sprintf("is damaged: its footer lists %s, but it has %d", count.Of(batches, "batch"), a.batches))
	}
	return io.EOF
}

// arrowBatch is a record batch of the table, or of a dictionary.
type arrowBatch struct {
	a            *arrowFile
	number       int   // number of the batch, from 1
	first        int64 // number of rows before the batch
	rows         int64
	codec        int // compression method; −1 means none
	lengths      []int64
	nulls        []int64
	buffers      [][]byte
	views        []int64 // number of buffers with texts, for each column of type Utf8View
	dictionaries map[int64]arrowValues
}

// batch reads the body of a message that is a record batch.
func (a *arrowFile) batch(m arrowMessage, header flatbuffers.Table) (*arrowBatch, error) {
	body, err := a.bytes(m.size, math.MaxInt64)
	if err != nil {
		return nil, err
	}
	b := &arrowBatch{a: a, number: a.batches + 1, first: a.rows, codec: -1}
	inBounds, unused := true, m.size // unused: bytes that no buffer has used; negative if buffers overlap
	if !parsed(func() {
		b.rows = int64At(header, 0)
		for nodes := vectorAt(header, 1, 16); len(nodes) > 0; nodes = nodes[16:] {
			b.lengths = append(b.lengths, flatbuffers.GetInt64(nodes))
			b.nulls = append(b.nulls, flatbuffers.GetInt64(nodes[8:]))
		}
		for list := vectorAt(header, 2, 16); len(list) > 0; list = list[16:] {
			offset, n := flatbuffers.GetInt64(list), flatbuffers.GetInt64(list[8:])
			if unused -= n; offset < 0 || n < 0 || offset > m.size || n > m.size-offset || unused < 0 {
				inBounds = false
				return
			}
			b.buffers = append(b.buffers, body[offset:offset+n])
		}
		if slotAt(header, 3) != 0 {
			b.codec = int(byteAt(tableAt(header, 3), 0))
		}
		for list := vectorAt(header, 4, 8); len(list) > 0; list = list[8:] {
			b.views = append(b.views, flatbuffers.GetInt64(list))
		}
	}) || !inBounds || b.rows < 0 {
		return nil, b.damaged("its metadata")
	}
	return b, nil
}

func (b *arrowBatch) damaged(detail string) error {
	return b.a.t.newError("", fmt.Sprintf("batch %d is damaged: %s", b.number, detail))
}

// nextBatch reads dictionaries up to the next batch of rows, and returns this batch. It returns
// io.EOF after the last batch.
func (a *arrowFile) nextBatch() (*arrowBatch, error) {
	for {
		var m arrowMessage
		if a.pending != nil {
			m, a.pending = *a.pending, nil
		} else {
			var err error
			if m, err = a.next(); err != nil {
				return nil, err
			}
		}
		switch m.kind {
		case arrowDictionary:
			if err := a.addDictionary(m); err != nil {
				return nil, err
			}
		case arrowRecords:
			b, err := a.batch(m, m.header)
			if err != nil {
				return nil, err
			}
			a.batches++
			if a.rows += b.rows; a.rows > math.MaxInt32 || b.rows > math.MaxInt32 {
				return nil, a.t.newError("", fmt.Sprintf("has more than %d rows", math.MaxInt32))
			}
			b.dictionaries, a.shared = a.dictionaries, true
			return b, nil
		default:
			return nil, a.damaged(fmt.Sprintf("the message after batch %d, of the unknown kind %d,", a.batches, m.kind))
		}
	}
}

// addDictionary reads a message that defines a dictionary, or that adds values to a dictionary.
func (a *arrowFile) addDictionary(m arrowMessage) error {
	var id int64
	var header flatbuffers.Table
	var delta bool
	if !parsed(func() { id, header, delta = int64At(m.header, 0), tableAt(m.header, 1), byteAt(m.header, 2) != 0 }) {
		return a.damaged(fmt.Sprintf("a dictionary after batch %d", a.batches))
	}
	b, err := a.batch(m, header)
	if err != nil {
		return err
	}
	for i := range a.columns {
		c := &a.columns[i]
		if c.index == nil || c.unreadable != "" || c.dictionary != id {
			continue
		}
		v, err := b.values(&c.arrowType)
		if err != nil {
			return err
		}
		if previous, ok := a.dictionaries[id]; ok && delta {
			v = previous.concat(v)
		}
		if !a.in.allowance.fits(v.bytes()) {
			return a.t.newError("", a.in.allowance.rule())
		}
		if a.shared {
			a.dictionaries, a.shared = maps.Clone(a.dictionaries), false
		}
		a.dictionaries[id] = v
		return nil
	}
	return nil // no column of the table uses the dictionary: it belongs to a nested column
}

func (a *arrowFile) newTable() *Table {
	t := &Table{Source: a.t.Source}
	for i := range a.columns {
		c := &a.columns[i]
		name := strings.TrimSpace(c.name)
		to := &column{name: name, plain: c.unreadable != "" || !c.text(), exact: slices.Contains(a.t.keep, name), unreadable: c.unreadable}
		if c.unreadable == "" && c.kind == arrowInt {
			to.cells = &integers{unsigned: c.unsigned && c.bits == 64}
		}
		t.columns = append(t.columns, to)
	}
	return t
}

// add appends the rows of the batch to a table.
func (b *arrowBatch) add(t *Table) error {
	for i := range b.a.columns {
		c := &b.a.columns[i]
		if c.unreadable != "" {
			if err := b.skip(c); err != nil {
				return err
			}
			continue
		}
		v, err := b.column(c)
		if err == nil && int64(v.rows) != b.rows {
			err = b.damaged(fmt.Sprintf("column %s has %s, not %d", quote(c.name), count.Of(v.rows, "row"), b.rows))
		}
		if err == nil {
			err = v.addTo(t, t.columns[i])
		}
		if err != nil {
			return err
		}
		if !b.a.in.allowance.fits(t.columns[i].size()) {
			return b.a.t.newError("", b.a.in.allowance.rule())
		}
	}
	t.rows += int(b.rows)
	return nil
}

func readArrow(in *input) (*Table, error) {
	a, err := openArrow(in)
	if err != nil {
		return nil, err
	}
	t := a.newTable()
	for {
		b, err := a.nextBatch()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = b.add(t)
		}
		if err != nil {
			return nil, err
		}
		size := int64(0)
		for _, c := range t.columns {
			size += c.size()
		}
		if !in.allowance.fits(size) {
			return nil, in.t.newError("", in.allowance.rule())
		}
	}
	for _, c := range t.columns {
		c.finish()
	}
	return t, nil
}

func (b *arrowBatch) table() (*Table, error) {
	t := b.a.newTable()
	t.first = int(b.first)
	return t, b.add(t)
}

// beginArrow starts a pass over an Arrow file.
func (p *pass) beginArrow(in *input) error {
	a, err := openArrow(in)
	if err != nil {
		return err
	}
	for _, c := range a.columns {
		p.names = append(p.names, strings.TrimSpace(c.name))
	}
	p.nextPart = func() (part, error) {
		b, err := a.nextBatch()
		if err != nil {
			return nil, err
		}
		return b, nil
	}
	return nil
}

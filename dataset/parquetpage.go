package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"

	"github.com/mercer-go/mercer/internal/count"
)

// These constants number the kinds of pages in parquet.thrift.
const (
	dataPage       = 0
	indexPage      = 1
	dictionaryPage = 2
	dataPageV2     = 3
)

const (
	maxPage       = 1 << 28 // maximum size in bytes of a page, both compressed and decompressed
	maxPageValues = 1 << 24
	maxPageHeader = 1 << 16
)

// A pageReader reads the pages of a column for one group of rows.
type pageReader struct {
	p          *parquetFile
	t          *Table
	column     *parquetColumn
	to         *column
	rowsBefore int // number of rows in t before the group

	codec   int64
	numbers []float64 // the dictionary is in one of the lists numbers, texts and ints
	texts   [][]byte
	ints    []int64
	offset  int64 // offset of the page in the file
	zstd    *zstd.Decoder
	body    []byte // buffer that is used again for each page of numbers
}

// pageHeader is a PageHeader of parquet.thrift.
type pageHeader struct {
	kind, unpacked, packed int64
	values, encoding       int64
	levels                 int64 // encoding of the definition levels
	defBytes, repBytes     int64 // version 2: sizes in bytes of the definition and repetition levels
	compressed             bool
	crc                    int64
	hasCRC                 bool
}

func readPageHeader(m *thrift) (h pageHeader) {
	h.compressed, h.levels = true, encRLE
	page := func(values, encoding, levels int64) func(int64, byte) {
		return func(id int64, kind byte) {
			switch {
			case id == values && kind == thriftI32:
				h.values = m.integer()
			case id == encoding && kind == thriftI32:
				h.encoding = m.integer()
			case id == levels && kind == thriftI32:
				h.levels = m.integer()
			case levels == 0 && id == 5 && kind == thriftI32:
				h.defBytes = m.integer()
			case levels == 0 && id == 6 && kind == thriftI32:
				h.repBytes = m.integer()
			case levels == 0 && id == 7:
				h.compressed = kind == thriftTrue
			}
		}
	}
	m.fields(func(id int64, kind byte) {
		switch {
		case id == 1 && kind == thriftI32:
			h.kind = m.integer()
		case id == 2 && kind == thriftI32:
			h.unpacked = m.integer()
		case id == 3 && kind == thriftI32:
			h.packed = m.integer()
		case id == 4 && kind == thriftI32:
			h.crc, h.hasCRC = m.integer(), true
		case id == 5 && kind == thriftStruct:
			m.fields(page(1, 2, 3))
		case id == 7 && kind == thriftStruct:
			m.fields(page(1, 2, -1))
		case id == 8 && kind == thriftStruct:
			m.fields(page(1, 4, 0))
		}
	})
	return h
}

// newError returns an error about the current page.
func (d *pageReader) newError(rule string) *Error {
	e := d.t.newError(d.column.name, rule)
	e.Offset = d.offset
	return e
}

// chunk reads all pages of a column in a group. Together they must have the given number of rows.
func (d *pageReader) chunk(c *parquetChunk, rows int) error {
	d.codec, d.offset = c.codec, c.data
	defer func() {
		if d.zstd != nil {
			d.zstd.Close()
		}
	}()
	section := io.NewSectionReader(d.p.r, c.data, c.len)
	r := bufio.NewReaderSize(section, int(min(c.len, maxPageHeader)))
	remaining := c.len
	for rows > 0 {
		head, err := r.Peek(int(min(remaining, maxPageHeader)))
		if err != nil && err != io.EOF {
			return d.newError("cannot be read: " + err.Error())
		}
		if len(head) == 0 {
			return d.newError(fmt.Sprintf("its pages lack the last %s", count.Of(rows, "row")))
		}
		m := &thrift{b: head}
		h := readPageHeader(m)
		remaining -= int64(m.pos)
		if m.invalid || h.packed < 0 || h.unpacked < 0 {
			return d.newError("the header of a page is damaged")
		}
		if h.packed > remaining || h.packed > maxPage || h.unpacked > maxPage {
			return d.newError(fmt.Sprintf("a page claims %d bytes (%d decompressed), but only %d bytes of the column remain, and a page may have at most %d", h.packed, h.unpacked, remaining, maxPage))
		}
		if !d.p.memory.fits(h.packed + h.unpacked + 8*h.values) {
			return d.t.newError("", d.p.memory.rule())
		}
		r.Discard(m.pos)
		var body []byte
		if d.column.text() { // texts refer to the memory of their page, which must therefore not be used again
			body = make([]byte, h.packed)
		} else {
			d.body = slices.Grow(d.body[:0], int(h.packed))[:h.packed]
			body = d.body
		}
		if _, err := io.ReadFull(r, body); err != nil {
			return d.newError("a page cannot be read: " + err.Error())
		}
		if h.hasCRC && crc32.ChecksumIEEE(body) != uint32(h.crc) {
			return d.newError("a page is damaged: its checksum does not match")
		}
		n, err := d.page(h, body, rows)
		if err != nil {
			return err
		}
		if !d.p.memory.fits(d.to.size()) {
			return d.t.newError("", d.p.memory.rule())
		}
		rows -= n
		remaining -= h.packed
		d.offset = c.data + c.len - remaining
	}
	return nil
}

// page reads a page and returns the number of its rows.
func (d *pageReader) page(h pageHeader, body []byte, rows int) (int, error) {
	switch h.kind {
	case indexPage:
		return 0, nil
	case dictionaryPage, dataPage, dataPageV2:
	default:
		return 0, d.newError(fmt.Sprintf("a page has the unknown kind %d", h.kind))
	}
	if h.values < 0 || h.values > maxPageValues || h.kind != dictionaryPage && h.values > int64(rows) {
		return 0, d.newError(fmt.Sprintf("a page claims %s, but only %d rows of the row group remain, and a page may have at most %d values", count.Of(h.values, "value"), rows, maxPageValues))
	}
	var levels []byte
	if h.kind == dataPageV2 {
		if h.repBytes != 0 || h.defBytes < 0 || h.defBytes > int64(len(body)) {
			return 0, d.newError("the header of a page is damaged")
		}
		levels, body = body[:h.defBytes], body[h.defBytes:]
		if h.unpacked -= h.defBytes; h.unpacked < 0 {
			return 0, d.newError("the header of a page is damaged")
		}
	}
	if h.compressed {
		var err error
		if body, err = d.unpack(body, h.unpacked); err != nil {
			return 0, err
		}
	}
	if h.kind == dictionaryPage {
		return 0, d.dictionary(h, body)
	}
	n := int(h.values)
	var present []bool // whether the cell of each row has a value; nil if no cell is missing
	if d.column.repetition == optional {
		if h.kind == dataPage {
			if len(body) < 4 || uint64(binary.LittleEndian.Uint32(body)) > uint64(len(body)-4) || h.levels != encRLE {
				return 0, d.newError("the definition levels of a page are damaged")
			}
			size := 4 + int(binary.LittleEndian.Uint32(body))
			levels, body = body[4:size], body[size:]
		}
		list, ok := hybrid(levels, 1, n)
		if !ok {
			return 0, d.newError("the definition levels of a page are damaged")
		}
		present = make([]bool, len(list))
		n = 0
		for i, v := range list {
			if present[i] = v == 1; present[i] {
				n++
			}
		}
	}
	return int(h.values), d.values(h.encoding, body, n, present)
}

// unpack decompresses the body of a page.
func (d *pageReader) unpack(body []byte, size int64) ([]byte, error) {
	damaged := func(codec string) error {
		return d.newError("the " + codec + " data of a page is damaged")
	}
	switch d.codec {
	case 0: // UNCOMPRESSED
		return body, nil
	case 1:
		n, err := snappy.DecodedLen(body)
		if err != nil || int64(n) != size || size > 32*int64(len(body)) { // in Snappy, 3 bytes can expand to 64 bytes
			return nil, damaged("snappy")
		}
		out, err := snappy.Decode(nil, body)
		if err != nil {
			return nil, damaged("snappy")
		}
		return out, nil
	case 2:
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, damaged("gzip")
		}
		return d.inflate(z, size, "gzip")
	case 4:
		return d.inflate(brotli.NewReader(bytes.NewReader(body)), size, "brotli")
	case 6:
		if d.zstd == nil {
			var err error
			if d.zstd, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxPage)); err != nil {
				return nil, err
			}
		}
		if d.zstd.Reset(bytes.NewReader(body)) != nil {
			return nil, damaged("zstd")
		}
		return d.inflate(d.zstd, size, "zstd")
	case 7:
		out, ok := lz4(nil, body, int(size))
		ok = ok && len(out) == int(size)
		if !ok {
			return nil, damaged("LZ4")
		}
		return out, nil
	}
	name := fmt.Sprintf("codec %d", d.codec)
	switch d.codec {
	case 3:
		name = "LZO"
	case 5:
		name = "LZ4 of Hadoop"
	}
	return nil, d.newError("is compressed by " + name + ", which is not supported; write the file with snappy, gzip, brotli, zstd or LZ4_RAW")
}

// inflate reads size decompressed bytes from r. It allocates memory only for bytes that exist.
func (d *pageReader) inflate(r io.Reader, size int64, codec string) ([]byte, error) {
	out := bytes.NewBuffer(make([]byte, 0, min(size, 1<<20)+bytes.MinRead))
	n, err := io.Copy(out, io.LimitReader(r, size+1))
	if err != nil || n != size {
		return nil, d.newError("the " + codec + " data of a page is damaged")
	}
	return out.Bytes(), nil
}

// lz4 decompresses an LZ4 block (Collet) and appends it to out, up to a length of size bytes. A match may refer to
// the bytes already in out.
func lz4(out, b []byte, size int) ([]byte, bool) {
	out = slices.Grow(out, min(size-len(out), 256*len(b)))
	length := func(n int) (int, bool) {
		if n < 15 {
			return n, true
		}
		for n <= size && len(b) > 0 {
			c := b[0]
			b = b[1:]
			if n += int(c); c < 255 {
				return n, true
			}
		}
		return 0, false
	}
	for len(b) > 0 {
		token := b[0]
		b = b[1:]
		n, ok := length(int(token >> 4))
		if !ok || n > len(b) || n > size-len(out) {
			return nil, false
		}
		out = append(out, b[:n]...)
		if b = b[n:]; len(b) == 0 {
			break // the last run of literals has no match after it
		}
		if len(b) < 2 {
			return nil, false
		}
		distance := int(binary.LittleEndian.Uint16(b))
		b = b[2:]
		n, ok = length(int(token & 15))
		if n += 4; !ok || distance == 0 || distance > len(out) || n > size-len(out) {
			return nil, false
		}
		for range n {
			out = append(out, out[len(out)-distance])
		}
	}
	return out, len(out) <= size
}

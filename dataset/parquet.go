package dataset

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/mercer-go/mercer/internal/count"
)

// A Parquet file (parquet.thrift, format 2.x) begins and ends with the text PAR1. In between are the pages of
// values, column by column for each group of rows, the metadata, and the length of the metadata in 4 bytes. This
// package supports flat columns, all encodings, and all types except INT96 and byte arrays that are neither texts
// nor decimals. It supports the codecs UNCOMPRESSED, SNAPPY, GZIP, BROTLI, ZSTD and LZ4_RAW.
//
// This package does not use github.com/parquet-go/parquet-go, whose version v0.32.0 fails TestParquetDamage: if
// byte 12880 of arrow-brotli.parquet is inverted, it allocates 4 GiB for the footer of a 13 kB file.

// parquetFile is an open file and the contents of its footer.
type parquetFile struct {
	t       *Table
	r       io.ReaderAt
	size    int64
	memory  *allowance
	columns []parquetColumn
	groups  []parquetGroup
	rows    int64
}

// These are the physical types of parquet.thrift.
const (
	parquetBoolean = iota
	parquetInt32
	parquetInt64
	parquetInt96
	parquetFloat
	parquetDouble
	parquetBytes
	parquetFixed
)

// parquetColumn is a column. It has the properties of an element of the schema.
type parquetColumn struct {
	name       string
	physical   int64
	width      int // size of a value of type parquetFixed in bytes
	repetition int64
	children   int64
	unsigned   bool
	float16    bool
	decimal    bool
	scale      int64
	time       storedTime
	uuid       bool
	leaf       int    // index of the column in parquetGroup.chunks
	unreadable string // why the column cannot be read, or ""
}

// parquetGroup is a group of rows.
type parquetGroup struct {
	first  int64 // number of rows before the group
	rows   int64
	chunks []parquetChunk
}

// parquetChunk holds the position in the file of the pages of a column in one group of rows.
type parquetChunk struct {
	inOtherFile     bool // the pages are in another file
	codec           int64
	data, dict, len int64
}

const (
	optional      = 1
	repeatedField = 2

	maxFooter = 1 << 28
	// Other programs write decimals of at most 38 digits (16 bytes) or 76 digits (32 bytes).
	maxScale        = 100
	maxDecimalBytes = 64
	maxGroupRows    = 1 << 26
)

func openParquet(in *input) (*parquetFile, error) {
	p := &parquetFile{t: in.t, r: in.file, size: in.size, memory: in.allowance}
	if in.file == nil {
		data, err := in.readAll()
		if err != nil {
			return nil, err
		}
		p.r, p.size = bytes.NewReader(data), int64(len(data))
	}
	var tail [8]byte
	if p.size < 12 {
		return nil, p.newError(0, fmt.Sprintf("is truncated: %d bytes are too short for a Parquet file", p.size))
	}
	if err := p.readAt(tail[:], p.size-8); err != nil {
		return nil, err
	}
	if string(tail[4:]) != "PAR1" {
		if string(tail[4:]) == "PARE" {
			return nil, p.newError(p.size-4, "is encrypted")
		}
		return nil, p.newError(p.size-4, "is truncated: a Parquet file ends with PAR1")
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > p.size-12 || n > maxFooter {
		return nil, p.newError(p.size-8, fmt.Sprintf("claims a footer of %d bytes, but is only %d bytes long", n, p.size))
	}
	if !p.memory.fits(n) {
		return nil, p.newError(p.size-8, p.memory.rule())
	}
	footer := make([]byte, n)
	if err := p.readAt(footer, p.size-8-n); err != nil {
		return nil, err
	}
	m := &thrift{b: footer}
	if err := p.metadata(m); err != nil {
		return nil, err
	}
	if m.invalid {
		return nil, p.newError(p.size-8-n+int64(m.pos), "the footer is damaged")
	}
	return p, p.check()
}

func (p *parquetFile) newError(offset int64, rule string) *Error {
	e := p.t.newError("", rule)
	e.Offset = offset
	return e
}

func (p *parquetFile) readAt(b []byte, offset int64) error {
	if _, err := p.r.ReadAt(b, offset); err != nil {
		return p.newError(offset, "cannot be read: "+err.Error())
	}
	return nil
}

// metadata parses a FileMetaData of parquet.thrift.
func (p *parquetFile) metadata(m *thrift) error {
	encrypted := false
	m.fields(func(id int64, kind byte) {
		switch {
		case id == 2 && kind == thriftList:
			m.forEach(func() { p.columns = append(p.columns, readSchema(m)) })
		case id == 4 && kind == thriftList:
			m.forEach(func() { p.groups = append(p.groups, readGroup(m)) })
		case id == 8:
			encrypted = true
		}
	})
	if encrypted {
		return p.t.newError("", "is encrypted")
	}
	return nil
}

func readSchema(m *thrift) (c parquetColumn) {
	m.fields(func(id int64, kind byte) {
		switch {
		case id == 1 && kind == thriftI32:
			c.physical = m.integer()
		case id == 2 && kind == thriftI32:
			c.width = int(m.integer())
		case id == 3 && kind == thriftI32:
			c.repetition = m.integer()
		case id == 4 && kind == thriftBinary:
			c.name = string(m.binary())
		case id == 5 && kind == thriftI32:
			c.children = m.integer()
		case id == 6 && kind == thriftI32:
			converted := m.integer()
			c.time.converted(converted)
			c.decimal = c.decimal || converted == 5
			c.unsigned = c.unsigned || converted >= 11 && converted <= 14
		case id == 7 && kind == thriftI32:
			c.scale = m.integer()
		case id == 10 && kind == thriftStruct:
			m.fields(func(id int64, kind byte) { c.readLogical(m, id) })
		}
	})
	return c
}

// readLogical parses the member with number id of the union LogicalType of parquet.thrift.
func (c *parquetColumn) readLogical(m *thrift, id int64) {
	switch id {
	case 5:
		c.decimal = true
		m.fields(func(id int64, kind byte) {
			if id == 1 && kind == thriftI32 {
				c.scale = m.integer()
			}
		})
	case 6:
		c.time = storedTime{unit: days}
	case 7, 8:
		c.time.readLogical(m, id == 7)
	case 14:
		c.uuid = true
	case 10:
		m.fields(func(id int64, kind byte) {
			if id == 2 {
				c.unsigned = kind == thriftFalse
			}
		})
	case 15:
		c.float16 = true
	}
}

func readGroup(m *thrift) (g parquetGroup) {
	m.fields(func(id int64, kind byte) {
		switch {
		case id == 1 && kind == thriftList:
			m.forEach(func() { g.chunks = append(g.chunks, readChunk(m)) })
		case id == 3 && kind == thriftI64:
			g.rows = m.integer()
		}
	})
	return g
}

func readChunk(m *thrift) (c parquetChunk) {
	m.fields(func(id int64, kind byte) {
		switch {
		case id == 1 && kind == thriftBinary:
			c.inOtherFile = len(m.binary()) > 0
		case id == 3 && kind == thriftStruct:
			m.fields(func(id int64, kind byte) {
				switch {
				case id == 4 && kind == thriftI32:
					c.codec = m.integer()
				case id == 7 && kind == thriftI64:
					c.len = m.integer()
				case id == 9 && kind == thriftI64:
					c.data = m.integer()
				case id == 11 && kind == thriftI64:
					c.dict = m.integer()
				}
			})
		}
	})
	return c
}

// check returns an error if the footer exceeds a limit of this package or the size of the file.
func (p *parquetFile) check() error {
	leaves, ok := p.flatten()
	if !ok {
		return p.t.newError("", "the schema in its footer is damaged")
	}
	var names []string
	for i := range p.columns {
		c := &p.columns[i]
		names = append(names, c.name)
		c.unreadable = c.check()
	}
	if len(names) > MaxFeatures {
		return p.t.newError("", fmt.Sprintf("has %s; at most %d can be read", count.Of(len(names), "column"), MaxFeatures))
	}
	if err := p.t.setNames(names); err != nil {
		return err
	}
	p.t.columns = nil
	for i := range p.groups {
		g := &p.groups[i]
		g.first = p.rows
		if g.rows < 0 || g.rows > maxGroupRows || len(g.chunks) != leaves {
			return p.t.newError("", fmt.Sprintf("row group %d claims %s in %s; at most %d rows in %d columns can be read", i+1, count.Of(g.rows, "row"), count.Of(len(g.chunks), "column"), maxGroupRows, leaves))
		}
		if p.rows += g.rows; p.rows > math.MaxInt32 {
			return p.t.newError("", fmt.Sprintf("has more than %d rows", math.MaxInt32))
		}
		for j := range p.columns {
			if p.columns[j].unreadable != "" {
				continue
			}
			c := &g.chunks[p.columns[j].leaf]
			if c.inOtherFile {
				return p.t.newError(p.columns[j].name, "is stored in another file, which is not supported")
			}
			begin := c.data
			if c.dict > 0 && c.dict < c.data {
				begin = c.dict
			}
			if c.data = begin; begin < 4 || c.len < 0 || c.len > p.size-8-begin {
				return p.t.newError(p.columns[j].name, fmt.Sprintf("row group %d is damaged: it claims %d bytes from byte %d on, but the file has %d", i+1, c.len, begin, p.size))
			}
		}
	}
	return nil
}

// flatten creates a column for each child of the schema's root. It returns the number of leaves of
// the schema, and ok = false if the schema is damaged.
func (p *parquetFile) flatten() (leaves int, ok bool) {
	if len(p.columns) == 0 {
		return 0, false
	}
	root, elements := p.columns[0], p.columns[1:]
	var flattened []parquetColumn
	for pos := 0; pos < len(elements); {
		c := elements[pos]
		c.leaf = leaves
		for open := int64(1); open > 0; open-- { // open is the number of elements of the subtree of c not yet visited
			if pos == len(elements) || elements[pos].children < 0 || elements[pos].children > int64(len(elements)) {
				return 0, false
			}
			if open += elements[pos].children; elements[pos].children == 0 {
				leaves++
			}
			pos++
		}
		flattened = append(flattened, c)
	}
	p.columns = flattened
	return leaves, int64(len(flattened)) == root.children
}

// check returns the reason why a column cannot be read, or "".
func (c *parquetColumn) check() string {
	switch {
	case c.children > 0:
		return "is nested; only flat columns can be read"
	case c.repetition == repeatedField:
		return "holds lists; only flat columns can be read"
	case c.physical == parquetInt96:
		return "has the deprecated timestamp type INT96; write it as TIMESTAMP or as a number"
	case c.physical < 0 || c.physical > parquetFixed:
		return fmt.Sprintf("has the unknown type %d", c.physical)
	case c.decimal && (c.scale < 0 || c.scale > maxScale):
		return fmt.Sprintf("is a decimal of scale %d; at most %d can be read", c.scale, maxScale)
	case c.decimal && c.physical == parquetFixed && (c.width < 1 || c.width > maxDecimalBytes):
		return fmt.Sprintf("is a decimal of %s; at most %d can be read", count.Of(c.width, "byte"), maxDecimalBytes)
	case c.uuid && (c.physical != parquetFixed || c.width != 16):
		return "is a UUID whose size is not 16 bytes"
	case c.physical == parquetFixed && !c.decimal && !c.uuid && !(c.float16 && c.width == 2):
		return "holds byte arrays that are neither texts nor numbers; write them as numbers"
	}
	return ""
}

func (c *parquetColumn) text() bool {
	return c.physical == parquetBytes && !c.decimal || c.uuid || c.temporal()
}

// bytes reports whether the values are byte arrays: texts, UUIDs, or decimals with any number of digits.
func (c *parquetColumn) bytes() bool {
	return c.physical == parquetBytes || c.physical == parquetFixed && (c.decimal || c.uuid)
}

// integer reports whether the column holds integers that are not decimals.
func (c *parquetColumn) integer() bool {
	return !c.decimal && !c.temporal() && (c.physical == parquetInt32 || c.physical == parquetInt64)
}

// kind returns the type in which a PLAIN page stores numbers.
func (c *parquetColumn) kind() dtype {
	switch c.physical {
	case parquetInt32:
		return i32
	case parquetInt64:
		return i64
	case parquetFloat:
		return f32
	case parquetFixed:
		return f16
	}
	return f64
}

func readParquet(in *input) (*Table, error) {
	p, err := openParquet(in)
	if err != nil {
		return nil, err
	}
	t := p.newTable(p.rows)
	if !p.memory.fits(p.bytesOf(p.rows)) {
		return nil, p.t.newError("", p.memory.rule())
	}
	for i := range p.groups {
		if err := p.addGroup(t, &p.groups[i]); err != nil {
			return nil, err
		}
	}
	for _, c := range t.columns {
		c.finish()
	}
	return t, nil
}

// bytesOf returns a lower bound on the memory of a table of the given number of rows.
func (p *parquetFile) bytesOf(rows int64) int64 {
	size := int64(0)
	for i := range p.columns {
		if size += 8 * rows; p.columns[i].text() {
			size -= 4 * rows
		}
	}
	return size
}

// newTable returns an empty table with capacity for the given number of rows, unless the file is much smaller.
func (p *parquetFile) newTable(rows int64) *Table {
	const expansion = 16
	t := &Table{Source: p.t.Source}
	fits := p.bytesOf(rows) <= expansion*p.size
	for _, c := range p.columns {
		to := &column{name: strings.TrimSpace(c.name), plain: !c.text(), exact: slices.Contains(p.t.keep, strings.TrimSpace(c.name)), unreadable: c.unreadable}
		if c.unreadable != "" {
			to.plain = true
		} else if c.integer() {
			to.cells = &integers{unsigned: c.unsigned && c.physical == parquetInt64}
		} else if fits && to.plain {
			to.numbers = make([]float64, 0, rows)
		}
		t.columns = append(t.columns, to)
	}
	return t
}

// addGroup appends a group of rows to a table. Several workers read the columns in parallel if none has texts.
func (p *parquetFile) addGroup(t *Table, g *parquetGroup) error {
	workers := p.memory.workers()
	for _, c := range p.columns {
		if c.text() {
			workers = 1 // texts change the remaining allowance, and only one goroutine may change it
		}
	}
	errs := make([]error, len(p.columns))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for j := int(next.Add(1)) - 1; j < len(errs); j = int(next.Add(1)) - 1 {
				if p.columns[j].unreadable != "" {
					continue
				}
				d := &pageReader{p: p, column: &p.columns[j], to: t.columns[j], t: t, rowsBefore: t.rows}
				errs[j] = d.chunk(&g.chunks[p.columns[j].leaf], int(g.rows))
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	t.rows += int(g.rows)
	return nil
}

// A parquetPart implements the interface part for one row group of a Parquet file.
type parquetPart struct {
	p     *parquetFile
	group *parquetGroup
}

func (q *parquetPart) table() (*Table, error) {
	if !q.p.memory.fits(q.p.bytesOf(q.group.rows)) {
		return nil, q.p.t.newError("", q.p.memory.rule())
	}
	t := q.p.newTable(q.group.rows)
	t.first = int(q.group.first)
	return t, q.p.addGroup(t, q.group)
}

// beginParquet starts a pass.
func (p *pass) beginParquet(in *input) error {
	f, err := openParquet(in)
	if err != nil {
		return err
	}
	for _, c := range f.columns {
		p.names = append(p.names, strings.TrimSpace(c.name))
	}
	groups := f.groups
	p.nextPart = func() (part, error) {
		if len(groups) == 0 {
			return nil, io.EOF
		}
		g := &groups[0]
		groups = groups[1:]
		return &parquetPart{f, g}, nil
	}
	return nil
}

// addNumbers appends numbers to a plain column. NaN is a missing cell.
func (c *column) addNumbers(values []float64) {
	begin := len(c.numbers)
	c.numbers = append(c.numbers, values...)
	for i, v := range c.numbers[begin:] {
		if math.Abs(v) > math.MaxFloat64 {
			if c.otherTexts == nil {
				c.otherTexts = map[int]string{}
			}
			c.otherTexts[begin+i] = fmt.Sprint(v)
			c.numbers[begin+i] = math.NaN()
		}
	}
}

// addText appends a text. It returns an error unless the text is UTF-8.
func (t *Table) addText(c *column, text []byte) error {
	if !utf8.Valid(text) {
		e := t.newError(c.name, "is not valid UTF-8")
		e.Row, e.Value = t.first+len(c.codes)+len(c.numbers)+1, string(text)
		return e
	}
	if text = bytes.TrimSpace(text); !c.addBytes(text) {
		c.add(string(text))
	}
	return nil
}

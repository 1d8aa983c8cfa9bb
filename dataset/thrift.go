package dataset

// A thrift decodes the compact protocol of Apache Thrift, in which Parquet encodes its headers. It never reads
// beyond the end of b. After the first error all methods return 0.
type thrift struct {
	b       []byte
	pos     int
	invalid bool
}

// These constants number the types of the compact protocol.
const (
	thriftTrue   = 1
	thriftFalse  = 2
	thriftByte   = 3
	thriftI16    = 4
	thriftI32    = 5
	thriftI64    = 6
	thriftDouble = 7
	thriftBinary = 8
	thriftList   = 9
	thriftSet    = 10
	thriftMap    = 11
	thriftStruct = 12
)

func (t *thrift) byte() byte {
	if t.pos >= len(t.b) {
		t.invalid = true
	}
	if t.invalid {
		return 0
	}
	t.pos++
	return t.b[t.pos-1]
}

func (t *thrift) unsigned() uint64 {
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		c := t.byte()
		v |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return v
		}
	}
	t.invalid = true
	return 0
}

// integer decodes a number of type i16, i32 or i64.
func (t *thrift) integer() int64 {
	v := t.unsigned()
	return int64(v>>1) ^ -int64(v&1)
}

// binary decodes a byte string. The result shares memory with the header.
func (t *thrift) binary() []byte {
	n := t.unsigned()
	if n > uint64(len(t.b)-t.pos) {
		t.invalid = true
		return nil
	}
	t.pos += int(n)
	return t.b[t.pos-int(n) : t.pos]
}

// fields calls f for each field of a struct, and skips a field that f does not decode.
func (t *thrift) fields(f func(id int64, kind byte)) { t.nested(f, 0) }

// maxDepth is the maximum depth of nested structs.
const maxDepth = 32

func (t *thrift) nested(f func(id int64, kind byte), depth int) {
	id := int64(0)
	for {
		head := t.byte()
		if head == 0 || t.invalid {
			return
		}
		if step := int64(head >> 4); step > 0 {
			id += step
		} else {
			id = t.integer()
		}
		kind := head & 15
		start := t.pos
		if f != nil {
			f(id, kind)
		}
		if t.pos == start && kind != thriftTrue && kind != thriftFalse {
			t.skip(kind, depth)
		}
	}
}

// forEach calls f for each element of a list. f must decode the element.
func (t *thrift) forEach(f func()) {
	n, _ := t.list()
	for ; n > 0 && !t.invalid; n-- {
		f()
	}
}

func (t *thrift) list() (n uint64, kind byte) {
	head := t.byte()
	if n = uint64(head >> 4); n == 15 {
		n = t.unsigned()
	}
	if n > uint64(len(t.b)-t.pos) { // each element takes at least one byte, so that n is wrong
		t.invalid = true
		return 0, 0
	}
	return n, head & 15
}

func (t *thrift) skip(kind byte, depth int) {
	if depth++; depth > maxDepth {
		t.invalid = true
		return
	}
	switch kind {
	case thriftTrue, thriftFalse, thriftByte:
		t.byte() // an element of a list; a boolean element takes one byte, too
	case thriftI16, thriftI32, thriftI64:
		t.unsigned()
	case thriftDouble:
		for range 8 {
			t.byte()
		}
	case thriftBinary:
		t.binary()
	case thriftList, thriftSet:
		n, kind := t.list()
		for ; n > 0 && !t.invalid; n-- {
			t.skip(kind, depth)
		}
	case thriftMap:
		n := t.unsigned()
		if n > uint64(len(t.b)-t.pos) {
			t.invalid = true
		}
		if n == 0 {
			return
		}
		kinds := t.byte()
		for ; n > 0 && !t.invalid; n-- {
			t.skip(kinds>>4, depth)
			t.skip(kinds&15, depth)
		}
	case thriftStruct:
		t.nested(nil, depth)
	default:
		t.invalid = true
	}
}

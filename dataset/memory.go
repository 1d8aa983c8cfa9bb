package dataset

import (
	"fmt"
	"io"
	"runtime"
	"sort"
	"unsafe"
)

// An allowance is the memory that File.Memory allows for arrays, reduced by the arrays read so far.
type allowance struct {
	limit, left int64 // in bytes; limit 0 means no limit
	inParts     bool  // each part is freed before the next part is read
	garbage     int64 // bytes of replaced lists that may not be freed yet: see replaced
	peak        int64 // see Table.ReadBytes
}

func newAllowance(limit int64) *allowance { return &allowance{limit: limit, left: limit} }

// take subtracts n bytes from the remaining memory, and reports whether n bytes were available.
func (a *allowance) take(bytes int64) bool {
	if a == nil || a.limit == 0 {
		return true
	}
	if bytes > a.left {
		return false
	}
	if !a.inParts {
		a.left -= bytes
	}
	return true
}

// put adds bytes that take has subtracted to the remaining memory again.
func (a *allowance) put(bytes int64) {
	if a != nil && a.limit > 0 && !a.inParts {
		a.left += bytes
	}
}

// workers returns the number of pieces of text that may be decoded at the same time. Decoding a
// piece takes several times the memory of its text.
func (a *allowance) workers() int {
	n := runtime.GOMAXPROCS(0)
	if a.limit > 0 {
		n = int(max(1, min(int64(n), a.left/(16*pieceSize))))
	}
	return n
}

// fits reports whether the given number of bytes remains, without subtracting it.
func (a *allowance) fits(bytes int64) bool { return a == nil || a.limit == 0 || bytes <= a.left }

// rule returns the error text if take or fits returns false.
func (a *allowance) rule() string {
	return fmt.Sprintf("takes more than its limit of %.1f MiB of memory: {use fewer rows or columns|$memory}", float64(a.limit)/(1<<20))
}

// A growth holds the bytes of lists while they grow. size counts all lists. old is the largest old
// array: when a list is reallocated, its old array exists until the elements have been copied.
type growth struct{ size, old int64 }

// list adds to g a list with elements of width bytes, to which more elements are appended. If it
// must be reallocated, its new capacity is room, or length + more if that is larger.
func (g *growth) list(width, length, capacity, more, room int) {
	if length+more > capacity {
		g.old = max(g.old, int64(width)*int64(capacity))
		capacity = max(room, length+more)
	}
	g.size += int64(width) * int64(capacity)
}

// column adds to g the lists of a column to which more cells are appended.
func (g *growth) column(c *column, more, room int) {
	g.size += c.size() - c.listBytes()
	if c.plain {
		g.list(8, len(c.numbers), cap(c.numbers), more, room)
	} else {
		g.list(4, len(c.codes), cap(c.codes), more, room)
	}
}

// roomFor returns the largest capacity room between low and high for which growing lists fit into
// the remaining memory. If none fits, ok is false. The function lists adds to g all lists with the
// capacity room.
func (a *allowance) roomFor(low, high int, lists func(g *growth, room int)) (room int, ok bool) {
	needed := func(room int) int64 {
		var g growth
		lists(&g, room)
		return g.size + g.old
	}
	room = high
	if !a.fits(needed(high)) {
		room = low - 1 + sort.Search(high-low, func(k int) bool { return !a.fits(needed(low + k)) })
	}
	a.peak = max(a.peak, needed(room))
	return room, room >= low
}

// replaced records that a list was copied, and its size changed from old to now bytes. If old lists
// may take more than a twentieth of the limit, it runs the garbage collector.
func (a *allowance) replaced(old, now int64) {
	if a.limit == 0 || old == now {
		return
	}
	if a.garbage += old; a.garbage > a.limit/20 {
		runtime.GC()
		a.garbage = 0
	}
}

// appended returns list followed by more. If it must reallocate list, the new capacity is room, and
// it calls a.replaced.
func appended[T any](a *allowance, list, more []T, room int) []T {
	var element T
	width, old := int64(unsafe.Sizeof(element)), cap(list)
	list = append(withRoom(list, len(more), room), more...)
	a.replaced(width*int64(old), width*int64(cap(list)))
	return list
}

// flight returns the memory of the parts of a text that are not yet joined. parts is the number of
// parts so far, and size the size of the last part.
func (a *allowance) flight(parts int, size int64) int64 {
	return int64(min(parts, 2*a.workers()+1)) * size
}

// listBytes returns the memory of the lists in a column with an element for each row.
func (c *column) listBytes() int64 { return 8*int64(cap(c.numbers)) + 4*int64(cap(c.codes)) }

// size returns the approximate memory of a column that does not refer to the cells of a file.
func (c *column) size() int64 {
	const (
		oddBytes   = 64 // bytes of a map entry with its text
		entryBytes = 80 // bytes of an entry and its slot in the index
	)
	size := c.listBytes() + oddBytes*int64(len(c.odd)) + entryBytes*int64(len(c.entries)) + c.textBytes
	if m, ok := c.cells.(*integers); ok {
		size += 8 * int64(cap(m.values)+cap(m.missing))
	}
	return size
}

// all reads the remaining bytes of a source that does not support ReadAt.
func (in *input) all() ([]byte, error) {
	data := make([]byte, 0, bufferSize)
	for {
		n, err := in.r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF && in.allowance.take(int64(cap(data))):
			return data, nil
		case err != nil && err != io.EOF:
			return nil, in.t.readFault(0, err)
		case err == nil && len(data) < cap(data):
			continue
		}
		room, ok := in.allowance.roomFor(len(data)+1, len(data)+len(data)/4+1, func(g *growth, room int) { g.list(1, len(data), cap(data), 1, room) })
		if err == io.EOF || !ok {
			return nil, in.t.fault("", in.allowance.rule())
		}
		data = withRoom(data, 1, room)
	}
}

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
	limit, available int64 // in bytes; limit 0 means no limit
	inParts          bool  // each part is freed before the next part is read
	garbage          int64 // bytes of replaced lists that may not be freed yet: see recordReplaced
	peak             int64 // see Table.ReadBytes
}

func newAllowance(limit int64) *allowance { return &allowance{limit: limit, available: limit} }

// reserve subtracts bytes from a.available. If fewer bytes are available, it returns false and subtracts nothing.
func (a *allowance) reserve(bytes int64) bool {
	if a == nil || a.limit == 0 {
		return true
	}
	if bytes > a.available {
		return false
	}
	if !a.inParts {
		a.available -= bytes
	}
	return true
}

// release makes bytes available again that reserve has subtracted.
func (a *allowance) release(bytes int64) {
	if a != nil && a.limit > 0 && !a.inParts {
		a.available += bytes
	}
}

// workers returns the number of pieces of text that may be decoded at the same time.
func (a *allowance) workers() int {
	n := runtime.GOMAXPROCS(0)
	if a.limit > 0 {
		n = int(max(1, min(int64(n), a.available/(16*pieceSize))))
	}
	return n
}

// fits reports whether the given number of bytes remains, without subtracting it.
func (a *allowance) fits(bytes int64) bool { return a == nil || a.limit == 0 || bytes <= a.available }

// rule returns the error text for the case that reserve or fits returns false.
func (a *allowance) rule() string {
	return fmt.Sprintf("takes more than its limit of %.1f MiB of memory: {use fewer rows or columns|$memory}", float64(a.limit)/(1<<20))
}

// A growth sums the sizes in bytes of lists that grow. maxOld is the size of the largest array to be replaced, which
// exists until its elements have been copied.
type growth struct{ size, maxOld int64 }

// list adds to g a list with elements of width bytes, to which `added` elements are appended. If it must be
// reallocated, its new capacity is newCapacity, or length + added if that is larger.
func (g *growth) list(width, length, capacity, added, newCapacity int) {
	if length+added > capacity {
		g.maxOld = max(g.maxOld, int64(width)*int64(capacity))
		capacity = max(newCapacity, length+added)
	}
	g.size += int64(width) * int64(capacity)
}

// column adds to g the lists of a column to which `added` cells are appended.
func (g *growth) column(c *column, added, capacity int) {
	g.size += c.size() - c.listBytes()
	if c.plain {
		g.list(8, len(c.numbers), cap(c.numbers), added, capacity)
	} else {
		g.list(4, len(c.codes), cap(c.codes), added, capacity)
	}
}

// capacityFor returns the largest capacity between low and high for which growing lists fit into the remaining
// memory. If none fits, ok is false. lists(g, capacity) adds the lists to g.
func (a *allowance) capacityFor(low, high int, lists func(g *growth, capacity int)) (capacity int, ok bool) {
	bytesFor := func(capacity int) int64 {
		var g growth
		lists(&g, capacity)
		return g.size + g.maxOld
	}
	capacity = high
	if !a.fits(bytesFor(high)) {
		capacity = low - 1 + sort.Search(high-low, func(k int) bool { return !a.fits(bytesFor(low + k)) })
	}
	a.peak = max(a.peak, bytesFor(capacity))
	return capacity, capacity >= low
}

// recordReplaced records that a list of oldBytes bytes was copied to a list of newBytes bytes. If old lists may take
// more than a twentieth of the limit, it runs the garbage collector.
func (a *allowance) recordReplaced(oldBytes, newBytes int64) {
	if a.limit == 0 || oldBytes == newBytes {
		return
	}
	if a.garbage += oldBytes; a.garbage > a.limit/20 {
		runtime.GC()
		a.garbage = 0
	}
}

// appended returns list followed by added. A list that it must reallocate gets the given capacity.
func appended[T any](a *allowance, list, added []T, capacity int) []T {
	var element T
	width, oldCapacity := int64(unsafe.Sizeof(element)), cap(list)
	list = append(withCapacity(list, len(added), capacity), added...)
	a.recordReplaced(width*int64(oldCapacity), width*int64(cap(list)))
	return list
}

// pendingBytes returns the memory of the parts of a text that are not yet joined. partCount is the
// number of parts so far, and size the size of the last part.
func (a *allowance) pendingBytes(partCount int, size int64) int64 {
	return int64(min(partCount, 2*a.workers()+1)) * size
}

// listBytes returns the memory of the lists of a column that have one element for each row.
func (c *column) listBytes() int64 { return 8*int64(cap(c.numbers)) + 4*int64(cap(c.codes)) }

// size returns the approximate memory of a column that does not refer to the cells of a file.
func (c *column) size() int64 {
	const (
		otherTextBytes = 64 // bytes of a map entry with its text
		entryBytes     = 80 // bytes of an entry and its slot in the index
	)
	size := c.listBytes() + otherTextBytes*int64(len(c.otherTexts)) + entryBytes*int64(len(c.entries)) + c.textBytes
	if m, ok := c.cells.(*integers); ok {
		size += 8 * int64(cap(m.values)+cap(m.missing))
	}
	return size
}

// readAll reads the remaining bytes of a source that does not support ReadAt.
func (in *input) readAll() ([]byte, error) {
	data := make([]byte, 0, bufferSize)
	for {
		n, err := in.r.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF && in.allowance.reserve(int64(cap(data))):
			return data, nil
		case err != nil && err != io.EOF:
			return nil, in.t.readError(0, err)
		case err == nil && len(data) < cap(data):
			continue
		}
		capacity, ok := in.allowance.capacityFor(len(data)+1, len(data)+len(data)/4+1, func(g *growth, capacity int) { g.list(1, len(data), cap(data), 1, capacity) })
		if err == io.EOF || !ok {
			return nil, in.t.newError("", in.allowance.rule())
		}
		data = withCapacity(data, 1, capacity)
	}
}

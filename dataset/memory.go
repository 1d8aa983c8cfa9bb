package dataset

import (
	"fmt"
	"io"
	"runtime"
)

// An allowance tracks how much of File.Memory remains for arrays that keep the encoding of their
// file.
type allowance struct {
	limit, left int64 // bytes; no limit where limit is 0
	inParts     bool  // each part is freed before the next is read
}

func newAllowance(limit int64) *allowance { return &allowance{limit: limit, left: limit} }

// take subtracts n bytes from the remaining memory, and reports whether they were available.
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

// put gives back n bytes that take subtracted.
func (a *allowance) put(bytes int64) {
	if a != nil && a.limit > 0 && !a.inParts {
		a.left += bytes
	}
}

// workers returns the number of pieces of text that may be decoded at once. Decoding takes several
// times the memory of the text.
func (a *allowance) workers() int {
	n := runtime.GOMAXPROCS(0)
	if a.limit > 0 {
		n = int(max(1, min(int64(n), a.left/(16*pieceSize))))
	}
	return n
}

// fits reports whether n bytes remain, without taking them.
func (a *allowance) fits(bytes int64) bool { return a == nil || a.limit == 0 || bytes <= a.left }

// rule returns the rule that is broken if take or fits returns false.
func (a *allowance) rule() string {
	return fmt.Sprintf("takes more than its limit of %.1f MiB of memory: {use fewer rows or columns|$memory}", float64(a.limit)/(1<<20))
}

// fitsTable returns an error if a table under construction exceeds the limit.
func (a *allowance) fitsTable(t *Table) error {
	if a == nil || a.limit == 0 {
		return nil
	}
	size := 4 * int64(cap(t.lines))
	for _, c := range t.columns {
		size += c.size()
	}
	if size > a.left {
		return t.fault("", a.rule())
	}
	return nil
}

// size returns the approximate memory of a column that is not a view of the file's cells.
func (c *column) size() int64 {
	const (
		oddBytes   = 64 // of a map entry, including its text
		entryBytes = 80 // of an entry, including its slot in the index
	)
	size := 8*int64(cap(c.numbers)) + 4*int64(cap(c.codes)) + oddBytes*int64(len(c.odd)) + entryBytes*int64(len(c.entries)) + c.textBytes
	if m, ok := c.cells.(*integers); ok {
		size += 8 * int64(cap(m.values)+cap(m.missing))
	}
	return size
}

// all reads the rest of a source that does not support ReadAt.
func (in *input) all() ([]byte, error) {
	r := io.Reader(in.r)
	if in.allowance.limit > 0 {
		r = io.LimitReader(r, in.allowance.left+1)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, in.t.readFault(0, err)
	}
	if !in.allowance.take(int64(len(data))) {
		return nil, in.t.fault("", in.allowance.rule())
	}
	return data, nil
}

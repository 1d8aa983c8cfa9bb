package dataset

import (
	"fmt"
	"io"
	"runtime"
)

// An allowance is what is left of File.Memory for arrays that are read as they stand.
type allowance struct {
	limit, left int64 // bytes; no limit where limit is 0
	inParts     bool  // what was taken is given back before more is
}

func newAllowance(limit int64) *allowance { return &allowance{limit: limit, left: limit} }

// take uses some of what is left.
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

// workers is how many pieces of text may be decoded at once: each takes some times as
// much as its text.
func (a *allowance) workers() int {
	n := runtime.GOMAXPROCS(0)
	if a.limit > 0 {
		n = int(max(1, min(int64(n), a.left/(16*pieceSize))))
	}
	return n
}

// fits reports whether so much is left, without using it.
func (a *allowance) fits(bytes int64) bool { return a == nil || a.limit == 0 || bytes <= a.left }

// rule is the rule that is broken where take or fits is false.
func (a *allowance) rule() string {
	return fmt.Sprintf("takes more memory than the %.1f MiB that may be used for it: {use fewer rows or columns|$memory}", float64(a.limit)/(1<<20))
}

// fitsTable returns an error when a table under construction takes too much.
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

// size is about what a column takes that is not of cells of a file.
func (c *column) size() int64 {
	const (
		oddBytes   = 64 // of an entry of a map, its text included
		entryBytes = 80 // of an entry, and of its place in the index
	)
	size := 8*int64(cap(c.numbers)) + 4*int64(cap(c.codes)) + oddBytes*int64(len(c.odd)) + entryBytes*int64(len(c.entries)) + c.textBytes
	if m, ok := c.cells.(*integers); ok {
		size += 8 * int64(cap(m.values)+cap(m.missing))
	}
	return size
}

// all reads what is left of a source that cannot be read at any place.
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

package dataset

import (
	"hash/maphash"
	"math"
	"strconv"
	"strings"
	"unsafe"
)

// MaxCategories is the maximum number of distinct texts in a column that becomes one-hot features.
const MaxCategories = 1000

// kind classifies a cell that is parsed as a number.
type kind uint8

const (
	missing       kind = iota
	marker             // a text that represents a missing value, such as NA
	number             // a finite number
	notFinite          // ±Inf, spelled as a word
	outOfRange         // a number that float64 cannot hold
	otherSpelling      // a number whose spelling needs other settings, such as a decimal comma
	text               // any other text
)

// rule describes the error of a cell of kind k in a column of numbers.
func (k kind) rule() string {
	switch k {
	case notFinite:
		return "is not a finite number"
	case outOfRange:
		return "is outside the range of float64"
	}
	return "is not a number"
}

// parseCell reads a trimmed cell as a number. The value is NaN unless the kind is number.
func parseCell(s string) (float64, kind) {
	if v, ok := decimal(unsafe.Slice(unsafe.StringData(s), len(s))); ok { // the function decimal does not retain the bytes
		return v, number
	}
	return parseOther(s)
}

// parseOther does the work of parseCell for cells that the function decimal rejects.
func parseOther(s string) (float64, kind) {
	switch {
	case s == "":
		return math.NaN(), missing
	case strings.IndexByte(s, '_') >= 0, len(s) > 1 && s[1]|0x20 == 'x', len(s) > 2 && s[2]|0x20 == 'x':
		return math.NaN(), text // ParseFloat would accept hexadecimal digits and underscores, but such texts are not numbers here
	}
	v, err := strconv.ParseFloat(s, 64)
	switch {
	case err == nil && !math.IsNaN(v) && !math.IsInf(v, 0):
		return v, number
	case err == nil:
		return math.NaN(), notFinite
	case err.(*strconv.NumError).Err == strconv.ErrRange:
		return math.NaN(), outOfRange
	}
	return math.NaN(), text
}

// An entry is a distinct cell of a column in coded form.
type entry struct {
	text  string
	value float64
	kind  kind // the kind of the text; it is never the constant missing
}

// A column has one of three forms. At first it is coded: it stores each distinct cell once as an entry, and for each
// row the index of its entry. With more than MaxCategories entries, none of which is a text, it becomes plain and
// stores only numbers. If the file stores numbers, the column is plain and refers to the cells of the whole table.
type column struct {
	name    string
	reading *reading // how cells of text are parsed as numbers

	quoted []bool // whether the cell of each row was a string in JSON; nil if unknown

	codes   []int32 // coded form: for each row, the index of its entry, or −1 for a missing cell
	entries []entry
	index   index // finds an entry by its text; used while cells are added
	texts   bool  // whether at least one entry is a text, or a number with an unsupported spelling

	textBytes int64 // total length of the texts of entries, in bytes

	plain      bool
	numbers    []float64      // plain form: the number of each row, or NaN for a missing cell
	otherTexts map[int]string // plain form: the texts of cells that are neither numbers nor missing, by row
	rounded    bool           // plain form: the numbers were parsed from texts, which are no longer stored
	unreadable string         // why the column cannot be read, or ""; an unreadable column has no cells
	exact      bool           // the column always stays coded, and its cells keep their exact texts: see File.Keep

	cells      cells   // cells of the whole table, if a plain column has no field numbers of its own
	cellColumn int     // index of the column in cells
	rows       []int32 // for each row of the column, its row in cells; nil if both are the same
}

// cells holds the cells of a table whose format stores numbers, not texts. NaN represents a missing
// cell. An infinite number is an error.
type cells interface {
	number(row, column int) float64
	text(row, column int) string // returns the cell as text, without rounding, or "" if it is missing
}

// add appends a cell. It does not retain s.
func (c *column) add(s string) {
	s = strings.TrimSpace(s)
	if c.plain {
		v, k := c.reading.parse(s)
		if k > number {
			if c.otherTexts == nil {
				c.otherTexts = map[int]string{}
			}
			c.otherTexts[len(c.numbers)] = strings.Clone(s)
		}
		c.numbers = append(c.numbers, v)
		return
	}
	if s == "" {
		c.codes = append(c.codes, -1)
		return
	}
	code, ok := c.index.find(c.entries, s)
	if !ok {
		v, k := c.reading.parse(s)
		text := s
		if k < otherSpelling && !c.exact {
			text = c.reading.normalize(s)
		}
		code = c.entryOf(entry{strings.Clone(text), v, k})
	}
	c.codes = append(c.codes, code)
	if len(c.entries) > MaxCategories && !c.texts && !c.exact {
		c.makePlain()
	}
}

// addBytes appends the cell b if c has the plain form and b is a number, or if c has the coded form and an entry with
// this text. It reports whether it has appended the cell, and does not retain b.
func (c *column) addBytes(b []byte) bool {
	if c.plain {
		v, ok := decimal(b)
		if !c.reading.pointOnly() {
			v, ok = commaDecimal(b)
			ok = ok && c.reading.decimal == ',' && len(c.reading.numbers) == 0
		}
		if ok {
			c.numbers = append(c.numbers, v)
		}
		return ok
	}
	code, ok := c.index.find(c.entries, unsafe.String(unsafe.SliceData(b), len(b)))
	if ok {
		c.codes = append(c.codes, code)
	}
	return ok
}

// join appends the cells of other. A list that join must reallocate gets the given capacity. If c contains texts, other
// must have the coded form: see column.
func (c *column) join(other *column, capacity int) {
	if other.plain && !c.plain {
		c.makePlain()
	}
	if !c.plain {
		codes := make([]int32, len(other.entries))
		for k, e := range other.entries {
			codes[k] = c.entryOf(e)
			if len(c.entries) > MaxCategories && !c.texts && !c.exact {
				c.makePlain()
				break
			}
		}
		if !c.plain {
			c.codes = withCapacity(c.codes, len(other.codes), capacity)
			for _, k := range other.codes {
				if k >= 0 {
					k = codes[k]
				}
				c.codes = append(c.codes, k)
			}
			return
		}
	}
	if !other.plain {
		other.makePlain()
	}
	c.numbers = withCapacity(c.numbers, len(other.numbers), capacity)
	for i, cell := range other.otherTexts {
		if c.otherTexts == nil {
			c.otherTexts = map[int]string{}
		}
		c.otherTexts[len(c.numbers)+i] = cell
	}
	c.numbers = append(c.numbers, other.numbers...)
}

// withCapacity returns list with capacity for `added` more elements. If it must reallocate the list, the new capacity
// is at least the argument capacity.
func withCapacity[T any](list []T, added, capacity int) []T {
	if len(list)+added <= cap(list) {
		return list
	}
	return append(make([]T, 0, max(capacity, len(list)+added)), list...)
}

// entryOf returns the index of the entry with the text of e. It adds e if there is no such entry.
func (c *column) entryOf(e entry) int32 {
	code, ok := c.index.find(c.entries, e.text)
	if !ok {
		code = c.addEntry(e)
	}
	return code
}

func (c *column) addEntry(e entry) int32 {
	code := int32(len(c.entries))
	c.entries = append(c.entries, e)
	c.textBytes += int64(len(e.text))
	c.index.add(c.entries)
	c.texts = c.texts || e.kind >= otherSpelling
	return code
}

func (c *column) makePlain() {
	c.plain, c.rounded = true, true
	c.numbers = make([]float64, len(c.codes), max(2*len(c.codes), cap(c.codes)))
	for i, code := range c.codes {
		c.numbers[i] = math.NaN()
		if code < 0 {
			continue
		}
		e := c.entries[code]
		c.numbers[i] = e.value
		if e.kind > number {
			if c.otherTexts == nil {
				c.otherTexts = map[int]string{}
			}
			c.otherTexts[i] = e.text
		}
	}
	c.codes, c.entries, c.index, c.textBytes = nil, nil, nil, 0
}

// number returns the cell of row i as a number. If k is not number, v is NaN.
func (c *column) number(i int) (v float64, k kind) {
	if c.cells != nil {
		v = c.cells.number(c.cellsRow(i), c.cellColumn)
		switch {
		case v-v == 0:
			return v, number
		case v == v:
			return math.NaN(), notFinite
		}
		return v, missing
	}
	if c.plain {
		v = c.numbers[i]
		if v == v {
			return v, number
		}
		if s, ok := c.otherTexts[i]; ok {
			_, k = c.reading.parse(s)
		}
		return v, k
	}
	if c.codes[i] < 0 {
		return math.NaN(), missing
	}
	e := &c.entries[c.codes[i]]
	return e.value, e.kind
}

// values returns the cells of rows first to last − 1 as numbers, in a part of c.numbers or in the slice `to`. A cell
// that is not a finite number becomes infinite or NaN.
func (c *column) values(to []float64, first, last int) []float64 {
	if c.plain && c.cells == nil {
		return c.numbers[first:last]
	}
	to = to[:last-first]
	switch m, ok := c.cells.(*packed); {
	case ok && c.rows == nil:
		m.read(to, first, c.cellColumn)
	case c.cells != nil:
		for i := range to {
			to[i] = c.cells.number(c.cellsRow(first+i), c.cellColumn)
		}
	default:
		for i, code := range c.codes[first:last] {
			to[i] = math.NaN()
			if code >= 0 {
				to[i] = c.entries[code].value
			}
		}
	}
	return to
}

// cellsRow returns the index in c.cells of row i of the column.
func (c *column) cellsRow(i int) int {
	if c.rows != nil {
		return int(c.rows[i])
	}
	return i
}

// cell returns the cell in row i as text for messages.
func (c *column) cell(i int) string {
	if c.cells != nil {
		return c.cells.text(c.cellsRow(i), c.cellColumn)
	}
	if !c.plain {
		if c.codes[i] < 0 {
			return ""
		}
		return c.entries[c.codes[i]].text
	}
	if v := c.numbers[i]; v == v {
		return numberText(v)
	}
	return c.otherTexts[i]
}

// selectRows returns a column of the given rows, in the given order. If c.cells is not nil, inCells holds the
// indices of these rows in c.cells.
func (c *column) selectRows(rows []int, inCells []int32) *column {
	s := &column{name: c.name, reading: c.reading, entries: c.entries, texts: c.texts, plain: c.plain, rounded: c.rounded, exact: c.exact}
	if s.unreadable = c.unreadable; c.unreadable != "" {
		return s
	}
	if c.cells != nil {
		s.cells, s.cellColumn, s.rows = c.cells, c.cellColumn, inCells
		return s
	}
	if !c.plain {
		s.codes = make([]int32, len(rows))
		for i, r := range rows {
			s.codes[i] = c.codes[r]
		}
		return s
	}
	s.numbers = make([]float64, len(rows))
	for i, r := range rows {
		s.numbers[i] = c.numbers[r]
		if text, ok := c.otherTexts[r]; ok {
			if s.otherTexts == nil {
				s.otherTexts = map[int]string{}
			}
			s.otherTexts[i] = text
		}
	}
	return s
}

// valueCounts returns the number of rows with each element of c.entries. c is in coded form. A count may be 0, because
// selectRows copies all entries.
func (c *column) valueCounts() []int {
	counts := make([]int, len(c.entries))
	for _, code := range c.codes {
		if code >= 0 {
			counts[code]++
		}
	}
	return counts
}

// finish frees the memory that only the method add uses.
func (c *column) finish() {
	c.index = nil
	c.entries, c.codes = trimmed(c.entries), trimmed(c.codes)
}

// trimmed returns list without unused capacity.
func trimmed[T any](list []T) []T {
	if cap(list) == len(list) {
		return list
	}
	return append(make([]T, 0, len(list)), list...)
}

// An index is a hash table with open addressing, which maps a text to the number of its entry without a copy of the
// text.
type index []slot

// A slot of an index is free if next is 0.
type slot struct {
	hash uint32 // hash of the entry's text; find compares texts only if their hashes are equal
	next int32  // 1 + the index of the entry in column.entries
}

var indexSeed = maphash.MakeSeed()

func hashOf(text string) uint32 { return uint32(maphash.String(indexSeed, text)) }

func (x index) find(entries []entry, text string) (int32, bool) {
	if len(x) == 0 {
		return 0, false
	}
	s := x[x.slot(entries, hashOf(text), text)]
	return s.next - 1, s.next > 0
}

// slot returns the index of the slot of a text, or of the free slot where the text belongs.
func (x index) slot(entries []entry, hash uint32, text string) uint32 {
	mask := uint32(len(x) - 1)
	i := hash & mask
	for s := x[i]; s.next > 0 && (s.hash != hash || entries[s.next-1].text != text); s = x[i] {
		i = (i + 1) & mask
	}
	return i
}

// add adds the last element of entries. It keeps the index at most 3/4 full.
func (x *index) add(entries []entry) {
	last := len(entries)
	if previous := *x; 4*last > 3*len(previous) {
		*x = make(index, max(8, 2*len(previous)))
		mask := uint32(len(*x) - 1)
		for _, s := range previous {
			if s.next > 0 {
				i := s.hash & mask
				for ; (*x)[i].next > 0; i = (i + 1) & mask {
				}
				(*x)[i] = s
			}
		}
	}
	text := entries[last-1].text
	hash := hashOf(text)
	(*x)[x.slot(entries, hash, text)] = slot{hash, int32(last)}
}

// storedNumbers returns all cells of a column of t as numbers, like column.values. The result may
// share memory with the column.
func (t *Table) storedNumbers(c *column) []float64 {
	if m, ok := c.cells.(*csr); ok {
		return m.column(c.cellColumn, c.rows)
	}
	if c.plain && c.cells == nil {
		return c.numbers
	}
	return c.values(make([]float64, t.rows), 0, t.rows)
}

// plainNumbers returns storedNumbers(c) for a plain column, and nil for any other column.
func (t *Table) plainNumbers(c *column) []float64 {
	if !c.plain {
		return nil
	}
	return t.storedNumbers(c)
}

// A numbersReader returns the same numbers as plainNumbers for several columns. It reads the columns of a matrix
// together, to load each cache line only once.
type numbersReader struct {
	t     *Table
	list  [lineNumbers][]float64 // the numbers of the columns; valid until the next call of read
	space [lineNumbers][]float64
}

// lineNumbers is the number of float64 in a cache line, and the maximum number of columns that are read together.
const lineNumbers = 8

func (r *numbersReader) read(columns []*column) {
	const blockRows = 64 // number of rows read at a time; their cache lines fit into the first-level cache
	var packs []int
	for j, c := range columns {
		if _, ok := c.cells.(*packed); !c.plain || !ok {
			r.list[j] = r.t.plainNumbers(c)
			continue
		}
		if packs = append(packs, j); r.space[j] == nil {
			r.space[j] = make([]float64, r.t.rows)
		}
		r.list[j] = r.space[j]
	}
	for first := 0; len(packs) > 0 && first < r.t.rows; first += blockRows {
		last := min(first+blockRows, r.t.rows)
		for _, j := range packs {
			columns[j].values(r.list[j][first:last], first, last)
		}
	}
}

// numbers returns the result of Numbers for a column of t. The result may share memory with c.
func (t *Table) numbers(c *column) ([]float64, error) {
	values := t.storedNumbers(c)
	if c.plain && c.cells == nil && len(c.otherTexts) == 0 {
		return values, nil
	}
	for i, v := range values {
		if v-v != 0 {
			if _, k := c.number(i); k > number {
				return nil, t.notNumber(c, i, k)
			}
		}
	}
	return values, nil
}

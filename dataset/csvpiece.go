package dataset

import (
	"bytes"
	"sync/atomic"
	"unicode/utf8"
)

// A csvPart is a piece of a CSV file below its header. It is read on any goroutine.
type csvPart struct {
	piece
	source string
	na     *naValues
	names  []string
	comma  byte
	index  bool
	plain  []atomic.Bool // columns that are known to be of numbers only
}

// table returns the rows of the part. A column may be plain from the start.
func (p *csvPart) table() (*Table, error) {
	return p.read(func(j int) column { return column{plain: p.plain[j].Load()} })
}

// read returns the rows of the part in columns that begin as given.
func (p *csvPart) read(begin func(j int) column) (*Table, error) {
	rows := mostRows(p.text, len(p.names))
	t := &Table{Source: p.source, na: p.na, comma: p.comma, index: p.index, lines: make([]int32, 0, rows)}
	for j, name := range p.names {
		c := begin(j)
		c.name, c.na, c.rounded = name, p.na, true
		if c.plain {
			c.numbers = make([]float64, 0, rows)
		} else {
			c.codes = make([]int32, 0, rows)
		}
		t.columns = append(t.columns, &c)
	}
	if bytes.IndexByte(p.text, '"') >= 0 {
		return t, t.readRows(newCSVReader(bytes.NewReader(p.text), t.comma), p.line-1)
	}
	return t, t.addLines(p.text, p.line)
}

// mostRows is how many rows a text may have: each has a byte for every cell but the last,
// and for the end of the line.
func mostRows(text []byte, columns int) int {
	return min(bytes.Count(text, newline), len(text)/max(columns, 2)) + 1
}

// addLines is readRows for a text without quotation marks.
func (t *Table) addLines(text []byte, line int) error {
	comma, numbers := []byte{t.comma}, t.na.plain()
	for next := 0; next < len(text); line++ {
		at, end := next, len(text)
		if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n
		}
		next = end + 1
		if end > at && text[end-1] == '\r' {
			end--
		}
		if at == end {
			continue
		}
		if n := bytes.Count(text[at:end], comma) + 1; n != t.cellsOfRow() {
			return t.cellsFault(line, n)
		}
		if err := t.addLine(line); err != nil {
			return err
		}
		if t.index {
			at += bytes.IndexByte(text[at:end], t.comma) + 1
		}
		for _, c := range t.columns {
			if c.plain && numbers {
				// What no number goes on with ends it, the end of the line too.
				if v, stop, ok := scanDecimal(text, at); ok && (stop == end || text[stop] == t.comma) {
					c.numbers = append(c.numbers, v)
					at = min(stop+1, end)
					continue
				}
			}
			cell, _, _ := bytes.Cut(text[at:end], comma)
			at = min(at+len(cell)+1, end)
			if !c.addBytes(cell) {
				if !utf8.Valid(cell) {
					return t.cellFault(c, t.rows, string(cell), notUTF8)
				}
				c.add(string(cell))
			}
		}
		t.rows++
	}
	return nil
}

package dataset

import (
	"bytes"
	"math"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"
)

// A csvPart is a piece of a CSV file below its header. It is read on any
// goroutine, into a table, or with no table between straight into features.
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

// A csvOp says what becomes of the cells of one column of a CSV file.
type csvOp struct {
	number  *Number // one feature, at place at of a row
	at      int
	text    *textOp // features from place at on
	target  bool    // a number, at place at of the targets
	classes *classifier
}

// textOp makes the features of a column of texts.
type textOp struct {
	categories map[string]int
	fill       int
	na         *naValues // nil where markers are texts as others are
}

// csvPlan is how an Encoder encodes the columns of a CSV file.
type csvPlan struct {
	ops         []csvOp
	width, outs int
	refuse      bool
	comma       byte
	index       bool
	na          *naValues
}

// csvPlan makes a plan, or none where numbers may stand for missing values. It says nothing of columns that are missing: the
// encoding of a table does.
func (e *Encoder) csvPlan(names []string, na *naValues) *csvPlan {
	if !na.plain() {
		return nil
	}
	p := &csvPlan{na: na, ops: make([]csvOp, len(names)), outs: len(e.Outputs), refuse: e.RefuseMissing}
	place := make(map[string]int, len(names))
	for j, name := range names {
		place[name] = j
	}
	found := true
	op := func(name string) *csvOp {
		j, ok := place[name]
		if !ok {
			found = false
			return &csvOp{}
		}
		return &p.ops[j]
	}
	for i := range e.Inputs {
		in := &e.Inputs[i]
		o := op(in.Name)
		o.at, o.number = p.width, in.Number
		if in.Text != nil {
			o.text = &textOp{categories: make(map[string]int, len(in.Text.Categories))}
			if e.NAValues != nil {
				o.text.na = na
			}
			for k, v := range in.Text.Categories {
				o.text.categories[v] = k
				if v == in.Text.Fill {
					o.text.fill = k
				}
			}
		}
		p.width += in.width()
	}
	for i, name := range e.Outputs {
		o := op(name)
		o.at, o.target = i, true
		if e.Labels != nil {
			o.classes = newClassifier(e.Labels)
		}
	}
	if !found {
		return nil
	}
	return p
}

// encode writes the features and the targets of a part without quotation marks.
// It is not ok when there is anything that needs a second look, the faults
// among them: the part is then encoded by way of a table, which gives the same
// bits or says what is wrong.
func (plan *csvPlan) encode(text []byte) (e encoded, ok bool) {
	if bytes.IndexByte(text, '"') >= 0 {
		return e, false
	}
	most := mostRows(text, len(plan.ops))
	x, y := make([]float64, most*plan.width), make([]float64, most*plan.outs)
	last := len(plan.ops) - 1
	for i := 0; i < len(text); {
		if text[i] == '\n' {
			i++
			continue
		}
		if text[i] == '\r' && (i+1 == len(text) || text[i+1] == '\n') {
			i += 2
			continue
		}
		row, out := x[e.rows*plan.width:(e.rows+1)*plan.width], y[e.rows*plan.outs:(e.rows+1)*plan.outs]
		if plan.index {
			for i < len(text) && text[i] != plan.comma && text[i] != '\n' {
				i++
			}
			if i == len(text) || text[i] == '\n' {
				return e, false
			}
			i++
		}
		for j := range plan.ops {
			op := &plan.ops[j]
			var v float64
			end, read := i, false
			if op.text == nil && op.classes == nil {
				v, end, read = scanDecimal(text, i)
			}
			if !read || end < len(text) && text[end] != plan.comma && text[end] != '\n' {
				for end = i; end < len(text) && text[end] != plan.comma && text[end] != '\n'; {
					end++
				}
				if v, ok = op.slow(row, bytes.TrimSpace(text[i:end]), plan); !ok {
					return e, false
				}
			}
			if (end < len(text) && text[end] == plan.comma) != (j < last) {
				return e, false // too many cells or too few
			}
			i = end + 1
			switch {
			case op.number != nil:
				if v = (v - op.number.Mean) / op.number.Scale; math.IsInf(v, 0) {
					return e, false
				}
				row[op.at] = v
			case op.classes != nil:
				out[op.at] = v
			case op.target:
				out[op.at] = v
			}
		}
		e.rows++
	}
	e.x, e.y = x[:e.rows*plan.width], y[:e.rows*plan.outs]
	return e, true
}

// slow reads a cell that is not a plain number: a text, an empty cell, a number
// with spaces around it. It returns the number or the class, and writes the
// features of a text itself.
func (op *csvOp) slow(row []float64, cell []byte, plan *csvPlan) (v float64, ok bool) {
	switch {
	case op.text != nil:
		k := op.text.fill
		if len(cell) > 0 && (op.text.na == nil || !op.text.na.texts[string(cell)]) {
			if k, ok = op.text.categories[string(cell)]; !ok {
				return 0, false
			}
		} else if plan.refuse {
			return 0, false
		}
		row[op.at+k] = 1
		return 0, true
	case op.classes != nil:
		class, ok := op.classes.find(string(cell))
		return float64(class), ok
	case op.number == nil && !op.target:
		return 0, true
	}
	v, k := plan.na.parse(unsafe.String(unsafe.SliceData(cell), len(cell))) // which keeps no part of it
	switch {
	case k == number:
		return v, true
	case k < number && op.number != nil && !plan.refuse:
		return op.number.Fill, true
	}
	return 0, false
}

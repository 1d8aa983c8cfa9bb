package pipeline

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strconv"

	"github.com/mercer-go/mercer/beam/sums"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/rowkey"
)

// Census summarizes a set of rows of the table: it holds the statistics for the encoder and a
// sample of the rows. Censuses of different pieces are merged in any order, and the result does not
// depend on the order.
type Census struct {
	First   Piece    // the first of the pieces in order: its column order is the order of the features
	Names   []string // of the columns, in the order of First
	Sparse  bool     // the formats of all pieces omit zeros
	Columns map[string]*Column
	Rows    int64
	Keep    int   // maximum number of rows in the sample
	Sample  []Row // by priority, each only once
}

// Column summarizes one column.
type Column struct {
	dataset.Cells
	Present int64     // how many numbers are in Sums
	Sums    sums.Sums // for each unit, the sum of the numbers with that unit and the sum of their squares
	Low     float64
	High    float64

	// The first pieces that contain a text, a missing cell, a number that is not finite, and a
	// number in an unsupported spelling. Path is "" if no piece contains one.
	FirstText, FirstMissing, FirstNotFinite, FirstSpelled Piece
}

// Row is a sampled row: its cells, in the sorted order of the column names, and its priority.
type Row struct {
	Priority uint64
	Cells    []string
}

func newColumn() *Column {
	return &Column{Low: math.Inf(1), High: math.Inf(-1), Sums: *sums.NewSums(2 * len(units))}
}

// newCensus returns the census of no rows.
func newCensus(keep int) *Census { return &Census{Columns: map[string]*Column{}, Keep: keep} }

// add adds the rows of a table of the piece.
func (c *Census) add(piece Piece, t *dataset.Table, p Params) error {
	names := t.Names()
	if len(c.Columns) == 0 {
		c.First, c.Names, c.Sparse = piece, names, t.Sparse()
		for _, name := range names {
			c.Columns[name] = newColumn()
		}
	} else if err := c.align(piece, names, t.Sparse()); err != nil {
		return err
	}
	for _, name := range without(c.Names, names) {
		c.Columns[name].addZeros(int64(t.Rows()))
	}
	for _, name := range names {
		if slices.Contains(p.Drop, name) {
			continue
		}
		if err := c.Columns[name].add(piece, t, name); err != nil {
			return err
		}
	}
	c.Rows += int64(t.Rows())
	return c.draw(t, p)
}

// add adds the cells of a column of a table of the piece.
func (c *Column) add(p Piece, t *dataset.Table, name string) error {
	before := c.Cells
	if err := c.Cells.Add(t, name); err != nil {
		return err
	}
	for _, of := range []struct {
		now, before int64
		first       *Piece
	}{{c.Texts, before.Texts, &c.FirstText}, {c.Missing, before.Missing, &c.FirstMissing}, {c.NotFinite, before.NotFinite, &c.FirstNotFinite}, {c.Spelled, before.Spelled, &c.FirstSpelled}} {
		if of.now > of.before {
			*of.first = least(*of.first, p)
		}
	}
	if numbers, err := t.Numbers(name); err == nil {
		c.addNumbers(numbers)
	}
	return nil
}

// units lists powers of two by which numbers are divided before they are summed, so that neither
// the square of a number nor the rounding error of the square overflows or underflows. A number is
// divided by the first unit whose limit exceeds its absolute value.
var units = [...]struct {
	limit    float64
	exponent int
}{{0x1p-400, -600}, {0x1p400, 0}, {math.Inf(1), 600}}

// addNumbers adds numbers to the moments. Each square is added exactly, as the sum of two float64.
func (c *Column) addNumbers(numbers []float64) {
	for _, v := range numbers {
		if v != v {
			continue
		}
		c.Present++
		c.Low, c.High = min(c.Low, v), max(c.High, v)
		i := 0
		for math.Abs(v) >= units[i].limit {
			i++
		}
		if e := units[i].exponent; e != 0 {
			v = math.Ldexp(v, -e)
		}
		square := v * v
		c.Sums.Add(2*i, v)
		c.Sums.Add(2*i+1, square)
		c.Sums.Add(2*i+1, math.FMA(v, v, -square))
	}
}

// addZeros adds n zeros.
func (c *Column) addZeros(n int64) {
	if n == 0 {
		return
	}
	c.AddZeros(n)
	c.Present += n
	c.Low, c.High = min(c.Low, 0), max(c.High, 0)
}

// keys returns the keys of the rows, computed from their features.
func (p Params) keys(t *dataset.Table) ([]uint64, error) {
	return t.Keys(slices.DeleteFunc(t.Names(), func(name string) bool { return !p.isFeature(name) }))
}

// draw adds rows to the sample and keeps the rows with the smallest priorities. A priority is a
// random function of the features and of p.Seed. Every set of distinct rows is therefore equally
// likely, and the sample depends neither on the order of the rows nor on the pieces. Mercer's
// learners draw the same rows.
func (c *Census) draw(t *dataset.Table, p Params) error {
	h, err := p.keys(t)
	if err != nil {
		return err
	}
	most := uint64(math.MaxUint64)
	full := len(c.Sample) >= c.Keep
	if full {
		most = c.Sample[len(c.Sample)-1].Priority
	}
	var rows []int
	for i := range h {
		if h[i] = rowkey.Priority(h[i], p.Seed); !full || h[i] < most {
			rows = append(rows, i)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(a, b int) int { return cmp.Compare(h[a], h[b]) })
	rows = slices.CompactFunc(rows, func(a, b int) bool { return h[a] == h[b] })
	rows = rows[:min(len(rows), c.Keep)]
	drawn := make([]Row, len(rows))
	names := slices.Sorted(slices.Values(c.Names))
	absent := without(c.Names, t.Names())
	for k, i := range rows {
		drawn[k] = Row{Priority: h[i], Cells: make([]string, len(names))}
	}
	for j, name := range names {
		if slices.Contains(p.Drop, name) {
			continue
		}
		if slices.Contains(absent, name) {
			for k := range rows {
				drawn[k].Cells[j] = "0"
			}
			continue
		}
		if numbers, err := t.Numbers(name); err == nil {
			for k, i := range rows {
				if v := numbers[i]; v == v {
					drawn[k].Cells[j] = strconv.FormatFloat(v, 'g', -1, 64)
				}
			}
			continue
		}
		texts, err := t.Texts(name)
		if err != nil {
			return err
		}
		for k, i := range rows {
			drawn[k].Cells[j] = texts[i]
		}
	}
	c.join(drawn)
	return nil
}

// join merges two samples.
func (c *Census) join(o []Row) {
	all := slices.Concat(c.Sample, o)
	slices.SortFunc(all, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), slices.Compare(a.Cells, b.Cells))
	})
	all = slices.CompactFunc(all, func(a, b Row) bool { return a.Priority == b.Priority })
	c.Sample = slices.Clip(all[:min(len(all), c.Keep)])
}

// merge adds the rows of o, which it may keep.
func (c *Census) merge(o *Census) error {
	if o.Rows == 0 {
		return nil
	}
	if c.Rows == 0 {
		*c = *o
		return nil
	}
	if err := c.align(o.First, o.Names, o.Sparse); err != nil {
		return err
	}
	o.widen(without(c.Names, o.Names))
	if o.First.before(c.First) {
		c.First, c.Names = o.First, o.Names
	}
	c.Rows += o.Rows
	for name, column := range c.Columns {
		if err := column.merge(o.Columns[name]); err != nil {
			return err
		}
	}
	c.join(o.Sample)
	return nil
}

// least returns the piece that comes first, ignoring pieces without a path.
func least(a, b Piece) Piece {
	if a.Path == "" || b.Path != "" && b.before(a) {
		return b
	}
	return a
}

func (c *Column) merge(o *Column) error {
	c.Cells.Merge(&o.Cells)
	c.FirstText, c.FirstMissing = least(c.FirstText, o.FirstText), least(c.FirstMissing, o.FirstMissing)
	c.FirstNotFinite, c.FirstSpelled = least(c.FirstNotFinite, o.FirstNotFinite), least(c.FirstSpelled, o.FirstSpelled)
	c.Present += o.Present
	c.Low, c.High = min(c.Low, o.Low), max(c.High, o.High)
	return c.Sums.Merge(&o.Sums)
}

// censusOf returns the census of a piece.
func censusOf(ctx context.Context, p Params, piece Piece) (*Census, error) {
	c := newCensus(p.keep())
	err := piece.tables(ctx, func(t *dataset.Table) error { return c.add(piece, t, p) })
	if err != nil {
		return nil, err
	}
	return c, nil
}

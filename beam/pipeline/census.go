package pipeline

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/rowkey"
)

// census holds statistics of a set of rows for the encoder, and a sample of the rows. Merging the censuses of
// pieces gives the same result in every order.
type census struct {
	Summary dataset.Summary
	Keep    int          // maximum number of rows in the sample
	Sample  []sampledRow // the sampled rows in the order of their priorities, which are distinct
	Cells   []string     // the sorted names of the columns, one for each cell of a sampled row
}

// sampledRow is a row of the sample: its cells and its priority.
type sampledRow struct {
	Priority uint64
	Cells    []string
}

func (p Params) rules() dataset.Rules {
	return dataset.Rules{Targets: p.Targets, Drop: p.Drop, Labels: p.Classify, AnyLabels: true, Standardize: !p.NoStandardize, RefuseMissing: p.RefuseMissing}
}

// add adds the rows of a table. from is the byte offset of the table's line 1 in the file.
func (c *census) add(from int64, t *dataset.Table, p Params) error {
	if err := c.align(t.Source, t.Names(), t.Sparse()); err != nil {
		return err
	}
	if err := c.Summary.Add(t, p.rules(), from); err != nil {
		return err
	}
	c.widen(c.Summary.AllNames())
	return c.draw(t, p)
}

func (p Params) keys(t *dataset.Table) ([]uint64, error) {
	return t.Keys(slices.DeleteFunc(t.Names(), func(name string) bool { return !p.isFeature(name) }))
}

// draw adds rows to the sample and keeps the rows with the smallest priorities. A priority is a random function of the
// features and of p.Seed, so that the sample does not depend on the order of the rows or their division into pieces.
func (c *census) draw(t *dataset.Table, p Params) error {
	h, err := p.keys(t)
	if err != nil {
		return err
	}
	maxPriority := uint64(math.MaxUint64)
	full := len(c.Sample) >= c.Keep
	if full {
		maxPriority = c.Sample[len(c.Sample)-1].Priority
	}
	var rows []int
	for i := range h {
		if h[i] = rowkey.Priority(h[i], p.Seed); !full || h[i] < maxPriority {
			rows = append(rows, i)
		}
	}
	if len(rows) == 0 {
		return nil
	}
	slices.SortFunc(rows, func(a, b int) int { return cmp.Compare(h[a], h[b]) })
	rows = slices.CompactFunc(rows, func(a, b int) bool { return h[a] == h[b] })
	rows = rows[:min(len(rows), c.Keep)]
	sampled := make([]sampledRow, len(rows))
	for k, i := range rows {
		sampled[k] = sampledRow{Priority: h[i], Cells: make([]string, len(c.Cells))}
	}
	selected := t.Select(rows)
	absent := difference(c.Cells, t.Names())
	for j, name := range c.Cells {
		switch {
		case slices.Contains(p.Drop, name):
			continue
		case slices.Contains(absent, name):
			for k := range rows {
				sampled[k].Cells[j] = "0"
			}
			continue
		}
		texts, err := selected.Texts(name)
		if err != nil {
			return err
		}
		for k := range rows {
			sampled[k].Cells[j] = texts[k]
		}
	}
	c.join(sampled)
	return nil
}

// join merges the sample o into the sample of c.
func (c *census) join(o []sampledRow) {
	merged := slices.Concat(c.Sample, o)
	slices.SortFunc(merged, func(a, b sampledRow) int {
		return cmp.Or(cmp.Compare(a.Priority, b.Priority), slices.Compare(a.Cells, b.Cells))
	})
	merged = slices.CompactFunc(merged, func(a, b sampledRow) bool { return a.Priority == b.Priority })
	c.Sample = slices.Clip(merged[:min(len(merged), c.Keep)])
}

// merge merges the census o into c. Afterwards c may use the memory of o.
func (c *census) merge(o *census) error {
	if o.Summary.Rows == 0 {
		return nil
	}
	if c.Summary.Rows == 0 {
		*c = *o
		return nil
	}
	if err := c.align(o.Summary.Source, o.Summary.AllNames(), o.Summary.Sparse); err != nil {
		return err
	}
	c.Summary.Merge(&o.Summary)
	c.widen(c.Summary.AllNames())
	o.widen(c.Cells)
	c.join(o.Sample)
	return nil
}

func censusOf(ctx context.Context, p Params, piece filePiece) (*census, error) {
	c := &census{Keep: p.sampleSize()}
	err := piece.tables(ctx, func(t *dataset.Table, from int64) error { return c.add(from, t, p) })
	if err != nil {
		return nil, err
	}
	return c, nil
}

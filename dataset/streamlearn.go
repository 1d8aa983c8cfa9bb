package dataset

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
)

// sampleNumbers is the size of the sample, in numbers.
const sampleNumbers = 1 << 22

// Learn does the work of the function Learn for a file. It reads the file once, in bounded memory.
// It uses a sample of 2²² / features rows, but at least 256 and at most 65,536. If all rows fit in
// the sample, the result is bitwise equal to the result of the function Learn. For a larger file:
//
//   - means and standard deviations differ from the results of the function Learn by rounding errors;
//   - the median that replaces missing cells is exact for a column with at most MaxCategories distinct numbers in a
//     text file. Otherwise it is the median of the sample, drawn uniformly from the rows (Vitter 1985, algorithm R,
//     with a fixed seed): with 65,536 rows the standard deviation of its rank is 0.2 % of the number of rows.
//
// A column of texts must be a column of categories: Rules.Text, Rules.Tree and Rules.TFIDF give an error. If the
// file has several errors, Learn returns the first.
func (s *Stream) Learn(ctx context.Context, r Rules) (*Encoder, error) {
	if s == nil {
		_, err := s.begin(0)
		return nil, err
	}
	t := &Table{Source: s.file.Path}
	if unsupported := slices.Concat(nonEmpty(r.Text), nonEmpty(r.Tree), r.TFIDF); len(unsupported) > 0 {
		return nil, t.newError(unsupported[0], "is a column of texts or trees, which cannot be learned in blocks; read the whole file")
	}
	if r.Labels && len(r.Targets) != 1 {
		return nil, t.newError("", fmt.Sprintf("classification needs exactly one target column, not %d", len(r.Targets)))
	}
	p, err := s.begin(0)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if err := p.t.checkRoles(r, p.names); err != nil {
		return nil, err
	}
	l := &learner{p: p, rules: r, random: rand.New(rand.NewPCG(1, learnStream))}
	if err := runOrdered(ctx, runtime.GOMAXPROCS(0), p.next, l.summarize, l.merge); err != nil {
		return nil, err
	}
	sum := &l.sum
	switch {
	case sum.Rows == 0 && sum.zeroWeight > 0:
		return nil, p.t.newError(r.Weight, noWeight)
	case sum.Rows == 0:
		return nil, p.t.noRows()
	}
	e, err := sum.encoder(p.t, r, sum.Rows <= int64(l.sampleSize), l.values)
	if err != nil {
		return nil, err
	}
	s.rows, s.zeroWeight = int(sum.Rows), sum.zeroWeight
	s.columnWarnings = e.columnWarnings(s.rows, func(in Input) columnFacts {
		c := sum.column(in.Name)
		if c == nil { // the input is all features of a sparse file together
			return columnFacts{}
		}
		facts := columnFacts{rising: c.Rising, missingFraction: float64(c.Kinds[missing]+c.Kinds[marker]) / float64(sum.Rows)}
		if first := c.Faults[marker]; first != nil && len(c.Counts) > 0 {
			facts.marker = first.Value
		}
		return facts
	})
	return e, nil
}

// learnStream selects the random stream of Learn.
const learnStream = 0x6c6561726e // "learn"

// A summarized is a part of the file, its summary, and the weights of its rows; nil weights are all 1.
type summarized struct {
	t       *Table
	weights []float64
	sum     *Summary
}

// A learner merges the summaries of the parts of a file, and draws a sample of the rows.
type learner struct {
	p     *pass
	rules Rules
	sum   Summary

	sampleSize int         // maximum number of rows in the sample
	dense      []string    // names of the features, except the sparse features of a file
	sample     [][]float64 // rows of the features in dense, then x0, x1, … of a sparse file; omitted ones are 0
	weights    []float64   // weights of the sampled rows; nil means all 1
	random     *rand.Rand
}

// summarize returns the summary of a part. Any goroutine may call it.
func (l *learner) summarize(part part) (s summarized, err error) {
	table, err := part.table()
	if err != nil {
		return s, err
	}
	if s.t, s.weights, err = l.rules.weighted(table); err != nil {
		return s, err
	}
	s.sum, err = s.t.summarize(s.weights, l.rules, 0, func(name string) statistics {
		feature := l.rules.isFeature(name)
		return statistics{counts: true, storedNumbers: !feature && l.rules.Labels, moments: feature}
	})
	if err == nil {
		s.sum.zeroWeight = table.rows - s.t.rows
	}
	return s, err
}

func (l *learner) merge(s summarized) error {
	if l.sum.Rows > int64(math.MaxInt32-s.t.rows) {
		return s.t.newError("", fmt.Sprintf("has more than %d rows", math.MaxInt32))
	}
	rowsBefore := int(l.sum.Rows)
	if l.sum.Merge(s.sum); s.t.rows == 0 {
		return nil
	}
	if err := l.sum.check(l.p.t, l.rules, false); err != nil {
		return err
	}
	var features []*column
	for j, c := range s.t.columns {
		if l.rules.isFeature(c.name) {
			features = append(features, c)
		}
		if sum := l.sum.columns[c.name]; l.p.plain != nil && sum != nil && sum.Many {
			l.p.plain[j].Store(true)
		}
	}
	l.addSample(features, s, rowsBefore)
	return nil
}

// addSample adds the rows of s to the sample, which then contains each row of the file read so far with equal
// probability. rowsBefore is the number of rows of the file before s.
func (l *learner) addSample(features []*column, s summarized, rowsBefore int) {
	first, end := 0, 0
	if s.t.features != nil {
		first, end = s.t.features.first, s.t.features.first+s.t.width()
	}
	if l.sampleSize == 0 {
		for _, c := range features {
			l.dense = append(l.dense, c.name)
		}
		width := len(features) + end - first
		for _, name := range l.rules.excluded() {
			width -= boolToInt(s.t.sparseColumn(name) != nil)
		}
		l.sampleSize = min(max(sampleNumbers/max(width, 1), 256), 1<<16)
	}
	for i := range s.t.rows {
		slot := rowsBefore + i
		if slot >= l.sampleSize {
			if slot = l.random.IntN(slot + 1); slot >= l.sampleSize {
				continue
			}
		} else {
			l.sample = append(l.sample, nil)
			if s.weights != nil {
				l.weights = append(l.weights, 0)
			}
		}
		if s.weights != nil {
			l.weights[slot] = s.weights[i]
		}
		row := slices.Grow(l.sample[slot][:0], len(features)+end)[:len(features)+end]
		clear(row)
		for j, c := range features {
			row[j], _ = c.number(i)
		}
		if end > first {
			columns, values := s.t.features.Row(s.t.sourceRow(i))
			for k, j := range columns {
				row[len(features)+first+int(j)] = values[k]
			}
		}
		l.sample[slot] = row
	}
}

// values returns the values of a column in the sample, and the weights of the sampled rows.
func (l *learner) values(name string) (values, weights []float64) {
	j := slices.Index(l.dense, name)
	if j < 0 {
		k, _ := sparseIndex(name)
		j = len(l.dense) + k
	}
	values = make([]float64, len(l.sample))
	for i, row := range l.sample {
		if j < len(row) {
			values[i] = row[j] // after the end of a sparse row, values are 0
		}
	}
	return values, l.weights
}

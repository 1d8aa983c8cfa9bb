package dataset

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
)

// SampleNumbers is how many numbers Stream.Learn keeps for the medians of a
// file whose rows are not all kept.
const SampleNumbers = 1 << 22

// Learn is the function Learn for a file that is read once, in bounded memory.
// What it learns is, to the bit, what Learn makes of the same table as long as
// the table has no more rows than are kept: SampleNumbers / features, and at
// least 256 and at most 65,536. Past that
//
//   - means and standard deviations are put together from those of parts of the
//     file (Chan, Golub and LeVeque 1983), and differ by roundings;
//   - the median that stands for missing cells is exact for a column with at
//     most MaxCategories different numbers in a file of texts, and otherwise
//     that of a uniform sample of the rows of the size above (Vitter 1985,
//     algorithm R, with a fixed seed): of 65,536 rows its rank is wrong by
//     0.2 % of n (one standard deviation).
//
// A column of texts must be a column of categories; Rules.Text and Rules.Tree
// are refused. Of several faults the first in the file is reported, so that
// another one may come first than from Learn.
func (s *Stream) Learn(ctx context.Context, r Rules) (*Encoder, error) {
	t := &Table{Source: s.file.Path}
	if r.Text != "" || r.Tree != "" {
		return nil, t.fault(r.Text+r.Tree, "is a column of texts or trees, which is not read in blocks; read the whole file")
	}
	if r.Labels && len(r.Targets) != 1 {
		return nil, t.fault("", fmt.Sprintf("classes are told from one target column, %d are named", len(r.Targets)))
	}
	p, err := s.begin(0)
	if err != nil {
		return nil, err
	}
	defer p.close()
	if err := p.t.checkRoles(r, p.names); err != nil {
		return nil, err
	}
	l := &learner{p: p, rules: r, byName: map[string]*columnLearner{}, others: map[string]bool{}, random: rand.New(rand.NewPCG(1, learnStream))}
	if !r.Labels {
		l.targets = r.Targets
	}
	decode := func(part part) (*summary, error) {
		t, err := part.table()
		if err != nil {
			return nil, err
		}
		return l.summarize(t)
	}
	if err := ordered(ctx, runtime.GOMAXPROCS(0), p.next, decode, l.merge); err != nil {
		return nil, err
	}
	e, err := l.encoder()
	if err != nil {
		return nil, err
	}
	s.rows, s.left = l.rows, l.left
	s.remarks = e.remarks(l.rows, func(in Input) bool { f := l.byName[in.Name]; return !f.unordered && f.seen == l.rows })
	return e, nil
}

// learnStream keeps the numbers of Learn apart from other uses of a seed.
const learnStream = 0x6c6561726e // "learn"

// A summary is a part of the file, with what could be worked out about it alone.
type summary struct {
	t       *Table
	weights []float64 // of its rows; nil: all 1
	left    int       // rows of weight 0, which t does not have
	moments []Moments // of each column that is plain
}

// A learner puts the parts of a file together.
type learner struct {
	p       *pass
	rules   Rules
	targets []string // that must be numbers

	columns []*columnLearner // features, in the order of the file
	label   *columnLearner
	byName  map[string]*columnLearner
	others  map[string]bool // columns that became no features
	sparse  bool
	rows    int
	left    int     // rows of weight 0, which are not counted
	weight  float64 // of the rows

	keep    int         // rows in the sample at most
	sample  [][]float64 // the features of some rows; a sparse row may be shorter
	weights []float64   // of these rows; nil: all 1
	random  *rand.Rand
}

// summarize does the part of the work that can be done on any goroutine.
func (l *learner) summarize(all *Table) (*summary, error) {
	t, weights, err := l.rules.weighted(all)
	if err != nil {
		return nil, err
	}
	if len(l.targets) > 0 && t.rows > 0 {
		if _, err := (&Encoder{Outputs: l.targets}).targets(t); err != nil {
			return nil, err
		}
	}
	s := &summary{t: t, weights: weights, left: all.rows - t.rows, moments: make([]Moments, len(t.columns))}
	for j, c := range t.columns {
		if !c.plain || c.broken != "" || !l.rules.isFeature(c.name) {
			continue
		}
		values, err := t.numbers(c)
		if err != nil {
			return nil, err
		}
		s.moments[j] = momentsOf(values, weights)
		if row := slices.IndexFunc(values, math.IsNaN); row >= 0 && l.rules.RefuseMissing {
			return nil, t.missingFault(c, row, refused)
		}
	}
	return s, nil
}

// merge adds the next part of the file.
func (l *learner) merge(s *summary) error {
	if l.left += s.left; s.t.rows == 0 {
		return nil
	}
	if l.rows > math.MaxInt32-s.t.rows {
		return s.t.fault("", fmt.Sprintf("has more than %d rows", math.MaxInt32))
	}
	l.sparse = s.t.sparse
	features := make([]*column, len(l.columns), len(s.t.columns)) // as l.columns; nil: zeros
	for j, c := range s.t.columns {
		if l.rules.Labels && c.name == l.rules.Targets[0] {
			if l.label == nil {
				l.label = &columnLearner{name: c.name}
			}
			if err := l.label.addLabels(s.t, c, l.rows); err != nil {
				return err
			}
			continue
		}
		if !l.rules.isFeature(c.name) {
			l.others[c.name] = true
			continue
		}
		if c.broken != "" {
			return s.t.brokenFault(c)
		}
		f := l.byName[c.name]
		if f == nil {
			f = &columnLearner{name: c.name, plain: c.plain, place: len(l.columns), declared: slices.Contains(l.rules.Categorical, c.name)}
			f.moments.add(repeated(l.weight, 0)) // none but in a sparse file
			l.byName[c.name] = f
			l.columns = append(l.columns, f)
			features = append(features, nil)
		}
		if err := f.add(s, c, s.moments[j], l.rows); err != nil {
			return err
		}
		if !f.unordered {
			f.unordered = f.seen != l.rows || !c.rising(s.t.rows, &f.last, l.rows == 0)
		}
		if f.plain && l.p.plain != nil {
			l.p.plain[j].Store(true)
		}
		f.seen = l.rows + s.t.rows
		features[f.place] = c
	}
	weight := totalWeight(s.weights, s.t.rows)
	for _, f := range l.columns {
		if f.seen == l.rows {
			f.moments.add(repeated(weight, 0))
			f.seen += s.t.rows
		}
	}
	l.addSample(features, s)
	l.rows, l.weight = l.rows+s.t.rows, l.weight+weight
	return nil
}

// addSample lets each row into the sample with the probability that the rows
// before it have.
func (l *learner) addSample(features []*column, s *summary) {
	if l.keep == 0 {
		l.keep = min(max(SampleNumbers/max(len(features), 1), 256), 1<<16)
	}
	for i := range s.t.rows {
		place := l.rows + i
		if place >= l.keep {
			if place = l.random.IntN(place + 1); place >= l.keep {
				continue
			}
		} else {
			l.sample = append(l.sample, nil)
			if s.weights != nil {
				l.weights = append(l.weights, 0)
			}
		}
		if s.weights != nil {
			l.weights[place] = s.weights[i]
		}
		row := l.sample[place]
		if cap(row) < len(features) {
			row = make([]float64, len(features))
		}
		row = row[:len(features)]
		done := sparseRow(row, features, i)
		for j, c := range features[done:] {
			if row[done+j] = 0; c != nil {
				row[done+j], _ = c.number(i)
			}
		}
		l.sample[place] = row
	}
}

// sparseRow writes row i of the columns of a sparse table, as far as they come
// first and are all there, and returns how many they are.
func sparseRow(row []float64, features []*column, i int) int {
	var m *csr
	n, first := 0, 0
	if len(features) > 0 && features[0] != nil {
		first = features[0].at
	}
	for ; n < len(features) && features[n] != nil && features[n].at == first+n; n++ {
		cells, ok := features[n].cells.(*csr)
		if !ok {
			break
		}
		m = cells
	}
	clear(row[:n])
	for k := 0; m != nil && k < m.begin[i+1]-m.begin[i]; k++ {
		if at := int(m.indices[m.begin[i]+k]) - first; at >= 0 && at < n {
			row[at] = m.values[m.begin[i]+k]
		}
	}
	return n
}

// values returns column j of the sample.
func (l *learner) values(j int) []float64 {
	values := make([]float64, len(l.sample))
	for i, row := range l.sample {
		if j < len(row) {
			values[i] = row[j] // 0 past the end of a sparse row
		}
	}
	return values
}

// encoder is what was learned from the whole file.
func (l *learner) encoder() (*Encoder, error) {
	t := l.p.t
	if l.rows == 0 && l.left > 0 {
		return nil, t.fault(l.rules.Weight, noWeight)
	}
	if l.rows == 0 {
		return nil, t.noRows()
	}
	for _, name := range slices.Concat(l.rules.Drop, named(l.rules.Weight)) {
		if !l.others[name] {
			return nil, t.noColumnAmong("column", name, l.names())
		}
	}
	e := t.newEncoder(l.rules)
	if l.rules.Labels {
		if l.label == nil {
			return nil, l.noTarget()
		}
		labels, err := l.label.labels(t, l.rows, l.rules.AnyLabels)
		if err != nil {
			return nil, err
		}
		e.Labels = labels
	}
	if l.sparse { // x0 comes first and the label last, whatever is found after them
		if i := slices.IndexFunc(l.columns, func(f *columnLearner) bool { return f.name == "x0" }); i > 0 {
			x0 := l.columns[i]
			l.columns = slices.Insert(slices.Delete(l.columns, i, i+1), 0, x0)
		}
		if i := slices.IndexFunc(l.columns, func(f *columnLearner) bool { return f.name == labelName }); i >= 0 {
			label := l.columns[i]
			l.columns = append(slices.Delete(l.columns, i, i+1), label)
		}
	}
	for _, f := range l.columns {
		in, err := f.input(l, f.place)
		if err != nil {
			return nil, err
		}
		e.Inputs = append(e.Inputs, *in)
	}
	if len(e.Inputs) == 0 {
		return nil, t.fault("", "has no column besides the target; at least one feature is needed")
	}
	if err := e.Check(); err != nil {
		return nil, err
	}
	return e, nil
}

// noTarget is the error for a target that no part of the file has.
func (l *learner) noTarget() error {
	return l.p.t.noColumnAmong("target column", l.rules.Targets[0], l.names())
}

// names are those of the columns that were seen.
func (l *learner) names() []string {
	if l.p.names != nil {
		return l.p.names
	}
	var names []string
	for _, f := range l.columns {
		names = append(names, f.name)
	}
	return names
}

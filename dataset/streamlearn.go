package dataset

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
)

// SampleNumbers is the size, in numbers, of the sample from which Stream.Learn computes the medians
// of a file too large to keep all rows.
const SampleNumbers = 1 << 22

// Learn is the function Learn for a file that is read once, in bounded memory. The result is
// bitwise equal to the result of the function as long as the sample keeps all rows. The sample
// keeps SampleNumbers / features rows, but at least 256 and at most 65,536. For larger files:
//
//   - means and standard deviations are combined from parts of the file (Chan, Golub and LeVeque 1983), and differ by rounding errors;
//   - the median that replaces missing cells is exact for a column with at most MaxCategories distinct numbers in a text file. Otherwise it is the median of the sample, drawn uniformly from the rows (Vitter 1985, algorithm R, with a fixed seed): with 65,536 rows the standard deviation of its rank is 0.2 % of n.
//
// A column of texts must be a column of categories; Rules.Text, Rules.Tree and Rules.TFIDF are refused. If there
// are several errors, the first in the file is reported, which may differ from the error that the
// function Learn reports.
func (s *Stream) Learn(ctx context.Context, r Rules) (*Encoder, error) {
	t := &Table{Source: s.file.Path}
	if whole := slices.Concat(named(r.Text), named(r.Tree), r.TFIDF); len(whole) > 0 {
		return nil, t.fault(whole[0], "is a column of texts or trees, which cannot be learned in blocks; read the whole file")
	}
	if r.Labels && len(r.Targets) != 1 {
		return nil, t.fault("", fmt.Sprintf("classification needs exactly one target column, not %d", len(r.Targets)))
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
	s.remarks = e.remarks(l.rows, func(in Input) columnFacts {
		f := l.byName[in.Name]
		if f == nil { // the features of a sparse file
			return columnFacts{}
		}
		facts := columnFacts{rising: !f.unordered && f.seen == l.rows, missing: float64(f.empty) / float64(l.rows)}
		if first := f.first[marker].fault; first != nil {
			facts.marker = first.Value
		}
		return facts
	})
	return e, nil
}

// learnStream makes the random numbers of Learn independent of other uses of the same seed.
const learnStream = 0x6c6561726e // "learn"

// A summary is a part of the file with the statistics that depend on that part alone.
type summary struct {
	t       *Table
	weights []float64 // of its rows; nil: all 1
	left    int       // rows of weight 0, which t does not have
	moments []Moments // moments of each plain column
	missing []int     // number of rows without a value in each feature column
}

// A learner merges the parts of a file.
type learner struct {
	p       *pass
	rules   Rules
	targets []string // targets that must be numbers

	columns []*columnLearner // features, in the order of the file
	label   *columnLearner
	byName  map[string]*columnLearner
	others  map[string]bool // columns that did not become features
	sparse  bool
	nonzero int // nonzero values of the features of a sparse file
	rows    int
	left    int     // rows of weight 0, which are not counted
	weight  float64 // of the rows

	keep    int         // maximum number of rows in the sample
	sample  [][]float64 // the features of the sampled rows; a sparse row may be shorter
	weights []float64   // of these rows; nil: all 1
	random  *rand.Rand
}

// summarize computes the statistics of one part. Any goroutine may call it.
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
	s := &summary{t: t, weights: weights, left: all.rows - t.rows, moments: make([]Moments, len(t.all())), missing: make([]int, len(t.all()))}
	for j, c := range t.all() {
		if c.broken != "" || !l.rules.isFeature(c.name) {
			continue
		}
		s.missing[j] = c.missing(t.rows)
		if !c.plain {
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
	if l.sparse = s.t.sparse; s.t.features != nil {
		l.nonzero += s.t.nonzeros()
	}
	features := make([]*column, len(l.columns), len(s.t.all())) // in the order of l.columns; nil: all zeros
	for j, c := range s.t.all() {
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
			f.moments.add(repeated(l.weight, 0)) // only in a sparse file
			l.byName[c.name] = f
			l.columns = append(l.columns, f)
			features = append(features, nil)
		}
		if err := f.add(s, c, s.moments[j], l.rows); err != nil {
			return err
		}
		f.empty += s.missing[j]
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

// addSample adds the rows to the sample, so that every row seen so far is in it with equal
// probability.
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

// sparseRow writes row i of the leading columns of a sparse table, up to the first absent column,
// and returns their number.
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
	if m == nil {
		return n
	}
	columns, values := m.Row(features[0].cellsRow(i))
	for k, at := range columns {
		if at := int(at) - first; at >= 0 && at < n {
			row[at] = values[k]
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

// encoder returns the encoder learned from the whole file.
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
	if l.sparse { // x0 comes first and the label last, in whatever order they were found
		if i := slices.IndexFunc(l.columns, func(f *columnLearner) bool { return f.name == "x0" }); i > 0 {
			x0 := l.columns[i]
			l.columns = slices.Insert(slices.Delete(l.columns, i, i+1), 0, x0)
		}
		if i := slices.IndexFunc(l.columns, func(f *columnLearner) bool { return f.name == labelName }); i >= 0 {
			label := l.columns[i]
			l.columns = append(slices.Delete(l.columns, i, i+1), label)
		}
	}
	columns, sparse, err := l.sparseInput()
	if err != nil {
		return nil, err
	}
	if sparse != nil {
		e.Inputs = append(e.Inputs, *sparse)
	}
	for _, f := range columns {
		in, err := f.input(l, f.place)
		if err != nil {
			return nil, err
		}
		e.Inputs = append(e.Inputs, *in)
	}
	if len(e.Inputs) == 0 {
		return nil, t.fault("", "has no column except the target; at least one feature is needed")
	}
	if err := e.Check(); err != nil {
		return nil, err
	}
	return e, nil
}

// noTarget returns the error for a target that no part of the file has.
func (l *learner) noTarget() error {
	return l.p.t.noColumnAmong("target column", l.rules.Targets[0], l.names())
}

// names returns the names of the columns that occurred.
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

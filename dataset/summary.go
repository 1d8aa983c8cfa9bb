package dataset

import (
	"bytes"
	"cmp"
	"encoding/gob"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode"

	"github.com/mercer-go/mercer/internal/count"
)

// A Summary holds statistics of a set of rows. Merging summaries of parts gives the same bits in any order. The
// zero value is the summary of no rows. encoding/gob encodes a Summary.
type Summary struct {
	Rows   int64
	Source string // name of the file of the first rows
	Sparse bool   // all rows are from formats that omit zeros

	names      []string // names of the columns in the order of the first table, except the features of sparse tables
	columns    map[string]*columnSummary
	from       int64 // byte offset in Source at which the numbers of lines of the first rows begin
	weight     float64
	zeroWeight int // number of rows of weight 0; all other fields ignore them

	// These fields are for sparse tables, whose columnSummary is only about nonzero values.
	sparseFirst bool // the first rows are from a format that omits zeros
	first, end  int  // the numbers in the names of sparse features are first to end − 1
	nonzeros    int64
}

func (s *Summary) fields() []any {
	return []any{&s.Rows, &s.Source, &s.Sparse, &s.names, &s.columns, &s.from, &s.weight, &s.zeroWeight, &s.sparseFirst, &s.first, &s.end, &s.nonzeros}
}

// GobEncode implements gob.GobEncoder.
func (s Summary) GobEncode() ([]byte, error) {
	var b bytes.Buffer
	e := gob.NewEncoder(&b)
	for _, f := range s.fields() {
		if err := e.Encode(f); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// GobDecode implements gob.GobDecoder.
func (s *Summary) GobDecode(data []byte) error {
	if s == nil {
		return errNoSummary
	}
	d := gob.NewDecoder(bytes.NewReader(data))
	for _, f := range s.fields() {
		if err := d.Decode(f); err != nil {
			return err
		}
	}
	return nil
}

// A columnSummary holds the statistics of a column.
type columnSummary struct {
	Kinds         [text + 1]int64 // number of cells of each kind
	Faults        map[kind]*Error // error for the first cell of each kind except number
	Words, Digits bool            // Words: a text has a letter or a digit; Digits: a text has a digit

	// Counts maps each distinct cell that is not missing to the sum of the weights of its rows. Many is set if
	// there are more than MaxCategories of these cells, or if numbers are not counted; Counts then omits numbers,
	// and may omit texts after the first MaxCategories in sorted order.
	Counts  map[string]float64
	Many    bool
	Numbers total // moments of the numbers that Counts does not have

	Weight      float64 // sum of the weights of the rows
	Rising      bool    // the cells, in the order of merging, are integers in increasing order
	Begin, Last float64 // the first and the last cell if Rising is set
}

// statistics says which statistics of a column are computed.
type statistics struct {
	counts        bool // count the cells of each distinct number, up to MaxCategories numbers; texts are always counted
	storedNumbers bool // count numbers even if the format of the table stores numbers, not texts
	moments       bool
}

var errNoSummary = errors.New("dataset: the Summary is nil")

// Add adds the rows of a table, which will be encoded by the rules r. r must not name a weight column. from is the
// byte offset in the file t.Source at which the line numbers of t begin.
func (s *Summary) Add(t *Table, r Rules, from int64) error {
	if s == nil {
		return errNoSummary
	}
	o, err := t.orEmpty().summarize(nil, r, from, func(name string) statistics {
		c := s.columns[name]
		return statistics{counts: c == nil || !c.Many, storedNumbers: true, moments: true}
	})
	if err == nil {
		s.Merge(o)
	}
	return err
}

// summarize returns the summary of a table whose rows have the given weights. statsOf selects statistics.
func (t *Table) summarize(weights []float64, r Rules, from int64, statsOf func(name string) statistics) (*Summary, error) {
	s := &Summary{Rows: int64(t.rows), columns: map[string]*columnSummary{}, Sparse: t.sparse, sparseFirst: t.sparse, Source: t.Source, from: from, weight: totalWeight(weights, t.rows)}
	isUsed := func(name string) bool { return r.isFeature(name) || slices.Contains(r.Targets, name) }
	for _, c := range t.columns {
		s.names = append(s.names, c.name)
		switch {
		case !isUsed(c.name) || t.rows == 0:
		case c.unreadable != "":
			return nil, t.columnError(c)
		default:
			s.columns[c.name] = t.summarizeColumn(c, t.plainNumbers(c), weights, statsOf(c.name))
			for _, e := range s.columns[c.name].Faults {
				e.Offset = from
			}
		}
	}
	if t.features == nil || t.rows == 0 {
		return s, nil
	}
	s.first, s.end, s.nonzeros = t.features.first, t.features.first+t.width(), int64(t.nonzeros())
	byColumn := t.matrix().Transposed()
	for j := range t.width() {
		rows, values := byColumn.Row(j)
		name := t.features.name(j)
		if len(values) == 0 || !isUsed(name) {
			continue
		}
		var columnWeights []float64
		for _, i := range rows {
			if weights != nil {
				columnWeights = append(columnWeights, weights[i])
			}
		}
		c := &columnSummary{Weight: totalWeight(columnWeights, len(rows))}
		c.addNumbers(values, columnWeights, statsOf(name), func(k int) string { return numberText(values[k]) })
		if s.columns[name] = c; len(values) >= t.rows-1 {
			c.setRising(t.sparseColumn(name), t.rows)
		}
	}
	return s, nil
}

func (s *columnSummary) setRising(c *column, rows int) {
	s.Rising = c.rising(rows, &s.Last, true)
	s.Begin, _ = c.number(0)
}

// summarizeColumn returns the summary of a column. The table must have rows, and values is plainNumbers(c).
func (t *Table) summarizeColumn(c *column, values, weights []float64, stats statistics) *columnSummary {
	s := &columnSummary{Weight: totalWeight(weights, t.rows)}
	s.setRising(c, t.rows)
	if c.plain {
		s.addNumbers(values, weights, stats, c.cell)
		for i := 0; i < len(values) && s.Kinds[missing] > 0; i++ {
			if values[i]-values[i] == 0 {
				continue
			}
			_, k := c.number(i)
			s.Kinds[missing]--
			s.Kinds[k]++
			s.addCell(c.cell(i), k, values[i], 1)
		}
	} else {
		s.addCodes(c, weights, stats)
	}
	open := 0
	for k, n := range s.Kinds {
		open += boolToInt(n > 0 && kind(k) != number)
	}
	for i := 0; open > 0; i++ {
		_, k := c.number(i)
		if k == number || s.Faults[k] != nil {
			continue
		}
		if s.Faults == nil {
			s.Faults = map[kind]*Error{}
		}
		rule := c.rule(i, k)
		if k < number {
			rule = missingRule(c.cell(i))
		}
		s.Faults[k] = t.cellError(c, i, c.cell(i), rule)
		open--
	}
	return s
}

// addCodes adds the cells of a column in coded form to an empty summary.
func (s *columnSummary) addCodes(c *column, weights []float64, stats statistics) {
	s.Many = !stats.counts
	var numbers, numberWeights []float64
	counts := c.valueCounts()
	s.Kinds[missing] = int64(len(c.codes))
	for code, w := range c.valueWeights(counts, weights) {
		e, n := c.entries[code], int64(counts[code])
		if c.exact && e.kind == number {
			e.text = c.reading.normalize(e.text)
		}
		s.Kinds[missing] -= n
		s.Kinds[e.kind] += n
		switch {
		case n == 0:
		case e.kind == number && !stats.counts:
			numbers, numberWeights = append(numbers, e.value), append(numberWeights, w)
		default:
			s.addCell(e.text, e.kind, e.value, w)
		}
	}
	if stats.moments {
		s.Numbers.addAll(numbers, numberWeights)
	}
}

// addNumbers adds numbers to an empty summary. Cells that are not finite numbers count as missing.
func (s *columnSummary) addNumbers(values, weights []float64, stats statistics, cell func(i int) string) {
	s.Many = !stats.counts || !stats.storedNumbers
	exact := map[float64]float64{} // only numbers below 2⁵³, to which no other integer is rounded
	for i, v := range values {
		if v-v != 0 {
			s.Kinds[missing]++
			continue
		}
		s.Kinds[number]++
		if s.Many {
			continue
		}
		w := 1.0
		if weights != nil {
			w = weights[i]
		}
		if math.Abs(v) >= 1<<53 {
			s.addCell(cell(i), number, v, w)
			continue
		}
		exact[v] += w
		s.Many = len(exact) > MaxCategories
	}
	for v, w := range exact {
		s.addCell(numberText(v), number, v, w)
	}
	if s.Many {
		s.Counts, s.Numbers = nil, total{}
		if stats.moments {
			s.Numbers.addAll(values, weights)
		}
	}
}

// addCell adds a distinct cell. weight is the sum of the weights of its rows.
func (s *columnSummary) addCell(cell string, k kind, value, weight float64) {
	switch {
	case k <= marker:
		return
	case k == text:
		s.Digits = s.Digits || strings.ContainsFunc(cell, unicode.IsDigit)
		s.Words = s.Words || s.Digits || strings.ContainsFunc(cell, unicode.IsLetter)
	case k == number && s.Many:
		if !s.texts() { // moments are useless for a column with texts
			s.Numbers.add(repeated(weight, value))
		}
		return
	}
	if s.Counts == nil {
		s.Counts = map[string]float64{}
	}
	if s.Counts[cell] += weight; len(s.Counts) > MaxCategories {
		s.overflow()
	}
	if len(s.Counts) > 2*MaxCategories { // sort only after each MaxCategories new texts
		for _, cell := range slices.Sorted(maps.Keys(s.Counts))[MaxCategories:] {
			delete(s.Counts, cell)
		}
	}
}

// overflow moves the numbers from Counts to Numbers.
func (s *columnSummary) overflow() {
	if s.Many {
		return
	}
	s.Many = true
	for cell, w := range s.Counts {
		if v, k := parseCell(cell); k == number {
			delete(s.Counts, cell)
			s.addCell(cell, k, v, w)
		}
	}
}

func (s *columnSummary) merge(o *columnSummary) {
	for k, n := range o.Kinds {
		s.Kinds[k] += n
	}
	if s.Faults == nil {
		s.Faults = o.Faults
	}
	for k, e := range o.Faults {
		s.Faults[k] = firstErr(s.Faults[k], e)
	}
	s.Words, s.Digits = s.Words || o.Words, s.Digits || o.Digits
	if o.Many {
		s.overflow()
	}
	for cell, w := range o.Counts {
		v, k := parseCell(cell) // here a number in an unsupported spelling has the kind text
		s.addCell(cell, k, v, w)
	}
	s.Numbers.merge(&o.Numbers)
	s.Weight += o.Weight
	s.Rising, s.Last = s.Rising && o.Rising && s.Last < o.Begin, o.Last
}

// firstErr returns the error that comes first in the file. One error or both may be nil.
func firstErr(a, b *Error) *Error {
	if a == nil || b != nil && cmp.Or(strings.Compare(b.Source, a.Source), cmp.Compare(b.Offset, a.Offset), cmp.Compare(b.Line, a.Line), cmp.Compare(b.Row, a.Row)) < 0 {
		return b
	}
	return a
}

// emptyErr returns the error for the first missing cell, or nil.
func (s *columnSummary) emptyErr() *Error { return firstErr(s.Faults[missing], s.Faults[marker]) }

// rangeErr returns the error for the first number that is not finite, or nil.
func (s *columnSummary) rangeErr() *Error { return firstErr(s.Faults[notFinite], s.Faults[outOfRange]) }

// withRule(rule) returns a copy of e with rule appended to its Rule, or nil if e is nil.
func (e *Error) withRule(rule string) *Error {
	if e == nil {
		return nil
	}
	longer := *e
	longer.Rule += rule
	return &longer
}

// texts reports whether the column has texts, or numbers in an unsupported spelling.
func (s *columnSummary) texts() bool { return s.Kinds[text]+s.Kinds[otherSpelling] > 0 }

// targetError returns the error for the first cell that cannot be a numeric target, or nil.
func (s *columnSummary) targetError() *Error {
	first := s.emptyErr().withRule(needsValue)
	for k := notFinite; k <= text; k++ {
		e := s.Faults[k]
		if k != otherSpelling {
			e = e.withRule(asTarget)
		}
		first = firstErr(first, e)
	}
	return first
}

// classes returns the classes of a target with the given name.
func (s *columnSummary) classes(t *Table, name string, rows int64, anyLabels bool) ([]string, error) {
	list, texts := slices.Collect(maps.Keys(s.Counts)), s.texts()
	if s.Many {
		list = make([]string, MaxCategories+1)
	} else {
		first := s.emptyErr().withRule(needsClass)
		if !texts {
			first = firstErr(first, s.rangeErr().withRule(asLabels))
		}
		if !anyLabels {
			first = firstErr(first, s.Faults[otherSpelling].withRule(spelledLabel))
		}
		if first != nil {
			return nil, first
		}
	}
	if rule := labelsRule(list, int(rows), texts, anyLabels); rule != "" {
		return nil, t.newError(name, rule)
	}
	return classesOf(list, texts), nil
}

// categories returns an encoding by the distinct cells. The cell with the largest weight replaces missing cells.
func (s *columnSummary) categories() *Text {
	x := &Text{Categories: slices.Sorted(maps.Keys(s.Counts))}
	maxWeight := 0.0
	for _, cell := range x.Categories {
		if w := s.Counts[cell]; w > maxWeight {
			maxWeight, x.Fill = w, cell
		}
	}
	return x
}

// check returns an error if the column cannot be used as features. name is the name of the column.
func (s *columnSummary) check(t *Table, name string, rows int64, r Rules) error {
	declared := slices.Contains(r.Categorical, name)
	switch texts := s.texts(); {
	case declared && s.Many && !texts:
		return t.newError(name, notCategorical)
	case texts || declared:
		if err := s.textError(t, name, rows, declared); err != nil {
			return err
		}
	default:
		if e := s.rangeErr(); e != nil {
			return e
		}
	}
	if e := s.emptyErr(); r.RefuseMissing && e != nil {
		return e.withRule(missingRefused)
	}
	return nil
}

// textError returns the error, or nil, for a column of features with texts. If declared is set, numbers are categories.
func (s *columnSummary) textError(t *Table, name string, rows int64, declared bool) error {
	distinct, present := len(s.Counts), int64(0)
	for _, n := range s.Kinds[number:] {
		present += n
	}
	first, example := s.Faults[text], s.categories().Fill
	if first != nil {
		copied := *first
		first, example = &copied, first.Value
	}
	numbers, cells, textsAreErrors := s.Kinds[number], s.Kinds[number]+s.Kinds[text], s.textsAreErrors()
	tooMany := distinct > alwaysCategories && int64(distinct) > present/2
	switch {
	case distinct == 0:
		return t.newError(name, noValues)
	case declared && !s.Many:
	case s.Many && (textsAreErrors || 2*numbers > cells): // this is a column of numbers with errors
		if first != nil {
			first.Rule = notANumber
		}
		return firstErr(first, firstErr(s.Faults[otherSpelling], s.rangeErr()))
	case !declared && s.Kinds[otherSpelling] > 0:
		return s.Faults[otherSpelling].withRule("{, or $categorical}")
	case s.Many:
		return t.newError(name, fmt.Sprintf("has more than %d distinct texts, such as %s: too many to be categories; {$drop|$tfidf}", MaxCategories, quote(example)))
	case textsAreErrors, tooMany && 2*numbers > cells:
		first.Rule = fmt.Sprintf("is not a number, but %d of the %d cells of the column are; {correct it|$na-values|$categorical}", numbers, cells)
		return first
	case tooMany:
		return t.newError(name, fmt.Sprintf("has %d distinct texts, such as %s, in %s: too many to be categories; {$drop|$tfidf}", distinct, quote(example), count.Of(int(rows), "row")))
	}
	return nil
}

// textsAreErrors reports whether the texts in a column are probably errors among numbers, not categories. This is so if
// no text has a letter or a digit and there are at least as many numbers, if the texts are at most a tenth of the
// cells, or if the only text has no digit and there are at least two numbers.
func (s *columnSummary) textsAreErrors() bool {
	texts, numbers := s.Kinds[text], s.Kinds[number]
	return texts > 0 && (!s.Words && texts <= numbers || 10*texts <= texts+numbers || texts == 1 && !s.Digits && numbers >= 2)
}

// input returns the encoding of a column of features. The function number returns the encoding of numbers.
func (s *columnSummary) input(t *Table, name string, rows int64, r Rules, number func() (*Number, string)) (*Input, error) {
	if err := s.check(t, name, rows, r); err != nil {
		return nil, err
	}
	if s.texts() || slices.Contains(r.Categorical, name) {
		return &Input{Name: name, Text: s.categories()}, nil
	}
	n, rule := number()
	if rule != "" {
		return nil, t.newError(name, rule)
	}
	return &Input{Name: name, Number: n}, nil
}

// numbers returns the sums over all numbers, and their median if Counts has all numbers.
func (s *columnSummary) numbers() (sum total, median float64, ok bool) {
	sum.merge(&s.Numbers)
	var values, weights []float64
	for cell, w := range s.Counts {
		if v, k := parseCell(cell); k == number {
			sum.add(repeated(w, v))
			values, weights = append(values, v), append(weights, w)
		}
	}
	if !s.Many {
		median, ok = weightedMedian(values, weights)
	}
	return sum, median, ok
}

// A total holds sums of numbers. Rounded to float64, the sums do not depend on the order of the numbers.
type total struct {
	N, Low, High float64
	Sum, Squares big.Float // Σ wv and Σ wv² over numbers v with weights w
}

// totalBits is the number of bits of each sum. The variance of 2⁴⁰ numbers needs 2·53 bits for a square, 2·53 bits for
// cancellation and 40 bits for the number of terms.
const totalBits = 256

func bigFloat(v float64) *big.Float { return new(big.Float).SetPrec(totalBits).SetFloat64(v) }

// addAll adds the finite numbers among values.
func (s *total) addAll(values, weights []float64) {
	m := momentsOf(values, weights)
	if size := m.Mean + m.SD; size-size == 0 {
		s.add(m)
		return
	}
	for i, v := range values {
		if w := 1.0; v-v == 0 {
			if weights != nil {
				w = weights[i]
			}
			s.add(repeated(w, v))
		}
	}
}

// add adds a set of numbers whose moments are m.
func (s *total) add(m moments) {
	if m.N <= 0 {
		return
	}
	n, mean, sd := bigFloat(m.N), bigFloat(m.Mean), bigFloat(m.SD)
	mean.Add(mean, bigFloat(m.remainder))
	o := total{N: m.N, Low: m.Low, High: m.High}
	o.Sum.Mul(n, mean)
	o.Squares.Mul(n, mean.Add(mean.Mul(mean, mean), sd.Mul(sd, sd)))
	s.merge(&o)
}

func (s *total) merge(o *total) {
	if o.N == 0 {
		return
	}
	if s.N == 0 {
		s.Low, s.High = o.Low, o.High
	}
	s.N += o.N
	s.Low, s.High = min(s.Low, o.Low), max(s.High, o.High)
	s.Sum.SetPrec(totalBits).Add(&s.Sum, &o.Sum)
	s.Squares.SetPrec(totalBits).Add(&s.Squares, &o.Squares)
}

func (s *total) moments() moments {
	m := moments{N: s.N, Low: s.Low, High: s.High}
	if m.N == 0 {
		return m
	}
	mean, square := bigFloat(0).Quo(&s.Sum, bigFloat(s.N)), bigFloat(0).Quo(&s.Squares, bigFloat(s.N))
	m.Mean, _ = mean.Float64()
	if square.Sub(square, mean.Mul(mean, mean)); square.Sign() > 0 {
		m.SD, _ = square.Sqrt(square).Float64()
	}
	return m
}

// Merge adds the rows of o to s. It may modify o and share memory with it. Features of a sparse table are 0 in the
// rows of a summary that lacks them. Both summaries must have all other columns.
func (s *Summary) Merge(o *Summary) {
	zeroWeight := s.zeroWeight + o.zeroWeight
	switch {
	case s.Rows == 0:
		*s, s.zeroWeight = *o, zeroWeight
		return
	case o.Rows == 0:
		s.zeroWeight = zeroWeight
		return
	}
	if cmp.Or(strings.Compare(o.Source, s.Source), cmp.Compare(o.from, s.from)) < 0 {
		s.Source, s.from, s.names, s.sparseFirst, o.names = o.Source, o.from, o.names, o.sparseFirst, s.names
	}
	for _, name := range o.names {
		if !slices.Contains(s.names, name) {
			s.names = append(slices.Clip(s.names), name)
		}
	}
	if s.end == 0 {
		s.first, s.end = o.first, o.end
	} else if o.end > 0 {
		s.first, s.end = min(s.first, o.first), max(s.end, o.end)
	}
	for name, c := range o.columns {
		if current := s.columns[name]; current != nil {
			current.merge(c)
		} else {
			s.columns[name] = c
		}
	}
	s.Rows, s.nonzeros, s.weight, s.zeroWeight = s.Rows+o.Rows, s.nonzeros+o.nonzeros, s.weight+o.weight, zeroWeight
	s.Sparse = s.Sparse && o.Sparse
}

// AllNames returns the names of all columns in the order of the first rows. Features that only later sparse tables
// have are inserted before the label.
func (s *Summary) AllNames() []string {
	isKnown := make(map[string]bool, len(s.names))
	for _, name := range s.names {
		isKnown[name] = !s.sparseFirst
	}
	var features, names []string
	for k := s.first; k < s.end; k++ {
		if name := sparseName(k); !isKnown[name] {
			features = append(features, name)
		}
	}
	for _, name := range s.names {
		if _, ok := s.index(name); !s.sparseFirst || !ok {
			names = append(names, name)
		}
	}
	labelIndex := slices.Index(names, labelName)
	switch {
	case s.sparseFirst:
		labelIndex = 0
	case labelIndex < 0:
		labelIndex = len(names)
	}
	if len(features) > 0 && features[0] == "x0" {
		names, features, labelIndex = slices.Insert(names, 0, "x0"), features[1:], labelIndex+1
	}
	return slices.Insert(names, labelIndex, features...)
}

// index returns the number in the name of a sparse feature. For any other name ok is false.
func (s *Summary) index(name string) (k int, ok bool) {
	k, ok = sparseIndex(name)
	return k, ok && k >= s.first && k < s.end
}

// column returns the summary of a column, with the zeros of a sparse feature, or nil if there is no such column.
func (s *Summary) column(name string) *columnSummary {
	c := s.columns[name]
	if _, ok := s.index(name); !ok {
		return c
	}
	if c == nil {
		c = &columnSummary{}
		s.columns[name] = c
	}
	rows := s.Rows
	for _, n := range c.Kinds {
		rows -= n
	}
	if c.Kinds[number] += rows; rows > 0 {
		c.addCell("0", number, 0, s.weight-c.Weight)
	}
	c.Weight, c.Rising = s.weight, c.Rising && rows <= 1 // two or more zeros are not increasing
	return c
}

// check returns an error about a target or a feature that further rows cannot correct, or nil. In a sparse table, a
// missing target may occur in further rows; it is an error only if complete is set.
func (s *Summary) check(t *Table, r Rules, complete bool) error {
	for _, name := range r.Targets {
		c := s.column(name)
		switch {
		case c == nil && s.Sparse && !complete:
		case c == nil:
			return t.noColumnAmong("target column", name, s.AllNames())
		case !r.Labels:
			if e := c.targetError(); e != nil {
				return e
			}
		case c.Many:
			_, err := c.classes(t, name, s.Rows, r.AnyLabels)
			return err
		}
	}
	for _, name := range s.names {
		if c := s.columns[name]; r.isFeature(name) && c.Many {
			if err := c.check(t, name, s.Rows, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// OnlyTexts returns the result of Table.OnlyTexts for all summarized rows.
func (s *Summary) OnlyTexts(name string) bool {
	c := s.columns[name]
	return c != nil && c.Kinds[text] > 0 && c.Kinds[number]+c.Kinds[notFinite]+c.Kinds[outOfRange]+c.Kinds[otherSpelling] == 0
}

// Encoder returns the encoder that Learn would learn from all rows with the rules r, up to rounding. r must not name a
// weight column. sample returns the numbers of a column in a sample of the rows, with NaN for a missing cell; it
// determines the median of a column with more than MaxCategories distinct numbers. source is the name of the table in
// errors, and d is its dialect. In an error about a cell, Offset is the byte offset that was given to Add.
func (s *Summary) Encoder(source string, d Dialect, r Rules, sample func(name string) []float64) (*Encoder, error) {
	if s == nil {
		return nil, errNoSummary
	}
	t := &Table{Source: source, reading: d.pointReading()}
	if s.Rows == 0 {
		return nil, t.noRows()
	}
	e, err := s.encoder(t, r, false, func(name string) (values, weights []float64) { return sample(name), nil })
	if err != nil {
		return nil, err
	}
	e.Decimal, e.Thousands = d.Decimal, d.Thousands
	return e, nil
}

// encoder returns the result of Encoder for a weighted sample. complete means that the sample contains all rows in
// order.
func (s *Summary) encoder(t *Table, r Rules, complete bool, sample func(name string) (values, weights []float64)) (*Encoder, error) {
	names := s.AllNames()
	if err := t.checkRoles(r, names); err != nil {
		return nil, err
	}
	if err := s.check(t, r, true); err != nil {
		return nil, err
	}
	e := t.newEncoder(r)
	if r.Labels {
		var err error
		if e.Labels, err = s.column(r.Targets[0]).classes(t, r.Targets[0], s.Rows, r.AnyLabels); err != nil {
			return nil, err
		}
	}
	sparse := s.takesSparse(r)
	if sparse {
		in := newSparse(s.first, s.end-s.first)
		for k := 0; k < in.Sparse.Columns && r.Standardize; k++ {
			name := sparseName(s.first + k)
			var m moments
			if complete {
				values, weights := sample(name)
				zeros := 0
				for i, v := range values {
					if v == 0 {
						values[i] = math.NaN()
						zeros++
					}
				}
				m = sparseMoments(values, weights, zeros, totalWeight(weights, len(values)))
			} else {
				sum, _, _ := s.column(name).numbers()
				m = sum.moments()
			}
			scale, rule := scaleOf(m)
			if rule != "" {
				return nil, t.newError(name, rule)
			}
			in.Sparse.Scale = append(in.Sparse.Scale, scale)
		}
		e.Inputs = append(e.Inputs, *in)
	}
	for _, name := range names {
		if _, ok := s.index(name); !r.isFeature(name) || sparse && ok {
			continue
		}
		c := s.column(name)
		in, err := c.input(t, name, s.Rows, r, func() (*Number, string) {
			values, weights := sample(name)
			if complete {
				return numberOf(values, weights, r.Standardize)
			}
			sum, fill, ok := c.numbers()
			if !ok {
				fill, ok = momentsOf(values, weights).median(values, weights)
			}
			if !ok { // the sample has no value in this column
				fill = sum.moments().Mean
			}
			if sum.N > 0 {
				sum.add(repeated(s.weight-sum.N, fill))
			}
			return sum.moments().number(fill, 0, r.Standardize)
		})
		if err != nil {
			return nil, err
		}
		e.Inputs = append(e.Inputs, *in)
	}
	if len(e.Inputs) == 0 {
		return nil, t.newError("", "has no column except the target; at least one feature is needed")
	}
	return e, e.Check()
}

// takesSparse returns the result of Table.takesSparse for all summarized rows.
func (s *Summary) takesSparse(r Rules) bool {
	if !s.Sparse || s.end == s.first || r.Gram {
		return false
	}
	for _, name := range slices.Concat(r.excluded(), r.Categorical) {
		if _, ok := s.index(name); ok {
			return false
		}
	}
	return isSparse(int(s.Rows), s.end-s.first, int(s.nonzeros))
}

package dataset

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/pages"
)

// MaxFeatures is the largest number of features that an Encoder makes.
const MaxFeatures = 1 << 20

// Rules specifies how to encode a table. The zero value makes every column a feature, replaces
// missing cells and does not standardize.
type Rules struct {
	Targets       []string // columns to predict, which hold numbers unless Labels is set; no cell may be missing
	Drop          []string // columns to ignore
	Weight        string   // column with the weights of the rows; it is not a feature: see Weighted
	Labels        bool     // the cells of the only target, texts or numbers, are class labels: see Encoder.Classes
	AnyLabels     bool     // with Labels: accept up to MaxCategories classes, and any numbers
	Text, Tree    string   // name of a column that is the only input and is not encoded: see Encoder.Texts
	TFIDF         []string // columns of texts that become tf-idf features of their n-grams
	NGrams        NGrams   // settings of the features of TFIDF
	Standardize   bool     // transform numeric features to mean 0 and population standard deviation 1
	RefuseMissing bool     // a missing cell of a feature is an error
	Categorical   []string // columns of a CSV file whose cells are categories even if they are numbers
	Gram          bool     // the columns are a Gram matrix: see Encoder.Gram

	dropEmpty bool     // drop columns without values: see LearnPart
	full      *Encoder // in LearnPart: the encoder of the whole table
}

// An Encoder holds the encoding that Learn derives from a training table. It marshals to JSON and
// back without loss. Call Check for an Encoder that was read from a file.
type Encoder struct {
	Inputs        []Input  `json:"inputs"`  // the columns that become features, in the order of the training table
	Outputs       []string `json:"outputs"` // the target columns, in the order of Rules.Targets
	Dropped       []string `json:"dropped,omitempty"`
	Weight        string   `json:"weight,omitempty"` // the column with the weights of the rows: see Weighted
	Labels        []string `json:"labels,omitempty"` // the classes of the only target: see Classes
	RefuseMissing bool     `json:"refuse_missing"`
	RefuseUnknown bool     `json:"refuse_unknown,omitempty"` // an unknown category or text is an error: see Unknown
	Gram          bool     `json:"gram,omitempty"`           // input j is the kernel value with training row j
	NAValues      []string `json:"na_values"`                // texts of missing cells; nil in older encoders
	Decimal       string   `json:"decimal,omitempty"`        // see Dialect.Decimal; "" means detection
	Thousands     string   `json:"thousands,omitempty"`      // see Dialect.Thousands
}

// Input specifies how one column, or the features of a sparse table, become features. Exactly one of
// Number, Text, Sparse, TFIDF and Raw is set.
type Input struct {
	Name   string      `json:"name"`
	Number *Number     `json:"number,omitempty"`
	Text   *Text       `json:"text,omitempty"`
	Sparse *Sparse     `json:"sparse,omitempty"`
	TFIDF  *Vocabulary `json:"tfidf,omitempty"` // one feature for each n-gram
	Raw    Raw         `json:"raw,omitempty"`   // set if the column is the only input, and is not encoded
}

// Number makes the feature (x − Mean) / Scale of a number x. The feature is 0 if |x − Mean| ≤ Rounding. Fill
// replaces a missing x. Without standardization, Mean and Rounding are 0 and Scale is 1.
type Number struct {
	Fill     float64 `json:"fill"`
	Mean     float64 `json:"mean"`
	Scale    float64 `json:"scale"`
	Rounding float64 `json:"rounding,omitempty"` // positive if the training column is constant up to rounding, otherwise 0
	Low      float64 `json:"low,omitempty"`      // the smallest number of the training table
	High     float64 `json:"high,omitempty"`     // the largest number; in encoders of older versions Low and High are 0
}

// Slope returns the derivative of the feature with respect to the number in the cell.
func (n Number) Slope() float64 {
	if n.Rounding > 0 { // the feature is 0 for every number of the training table
		return 0
	}
	return 1 / n.Scale
}

// Text makes one feature for each category. The feature is 1 if the cell is this category, and 0
// otherwise. Fill replaces a missing cell. For a text that is not among Categories, all features
// are 0 and Encoder.Unknown reports the text. With RefuseUnknown such a text is an error.
type Text struct {
	Fill       string   `json:"fill"`
	Categories []string `json:"categories"` // the categories in ascending order
}

// Learn learns from a training table how to encode this and later tables. Columns that are not targets become features:
//
//   - A column of numbers becomes one feature. The median replaces a missing cell. With r.Standardize the feature
//     is (x − mean) / sd, with the divisor n, computed after the replacement. A constant column is divided by 1,
//     and a column that is constant up to rounding (see Number) becomes 0. The median, mean and sd are weighted.
//   - A column of texts becomes one feature, 0 or 1, for each text in it, in sorted order. The most frequent text,
//     and of equally frequent texts the first, replaces a missing cell. r.Categorical must name a column of
//     categories whose texts are all or mostly numbers. In any other column with numbers, texts are an *Error if they
//     are at most a tenth of the cells, if none has a letter or a digit and they do not outnumber the numbers, if
//     the only text has no digit and there are two or more numbers, or if they are numbers such as 12%.
//
// With r.Gram the columns that are not targets are the Gram matrix of the rows, column j for row j,
// and Features returns it unchanged. The matrix must have as many columns as rows, and every cell
// must be a number. Setting r.Standardize or r.Categorical is an error.
//
// With r.Text or r.Tree the named column is the only input, and Texts replaces Features. Other
// columns are ignored. With r.Labels the classes of the target are learned: see Classes. Unless
// r.AnyLabels is set, Learn rejects numbers that are not integers as classes, and more than 20
// classes with on average fewer than ten rows per class if the labels are numbers, or two if they are texts.
//
// Each column that r.TFIDF names becomes tf-idf features, one for each n-gram that r.NGrams selects. A feature is
// the number of times that its n-gram occurs in the text, multiplied by log((1 + n) / (1 + m)) + 1, where m of the
// n training texts have the n-gram. The features of each text are then divided by their norm. Tf-idf features are
// not standardized and do not depend on the weights of the rows. They are 0 for a text without a known n-gram: see
// Encoder.Unknown. Encoder.Sparse is then true.
//
// Learn returns an *Error for a column without any value, for a column with too many distinct texts
// to be categories, and for every cell for which Features, Texts or Targets would return an error.
func Learn(t *Table, r Rules) (*Encoder, error) {
	if t.rows == 0 {
		return nil, t.noRows()
	}
	if err := t.checkRoles(r, t.Names()); err != nil {
		return nil, err
	}
	if err := t.checkTFIDF(r); err != nil {
		return nil, err
	}
	if r.Gram {
		if err := t.checkGram(r); err != nil {
			return nil, err
		}
		r.RefuseMissing = true
	}
	e := t.newEncoder(r)
	t, weights, err := r.Weighted(t)
	if err != nil {
		return nil, err
	}
	if r.Labels {
		if err := e.learnLabels(t, r.AnyLabels); err != nil {
			return nil, err
		}
	} else if len(r.Targets) > 0 {
		if _, err := e.targets(t); err != nil {
			return nil, err
		}
	}
	if r.Text != "" || r.Tree != "" {
		if err := e.learnRaw(t, r); err != nil {
			return nil, err
		}
		return e, nil
	}
	columns := t.columns
	if sparse, err := t.learnSparse(weights, r); err != nil {
		return nil, err
	} else if sparse != nil {
		e.Inputs = []Input{*sparse}
	} else {
		columns = t.allColumns()
	}
	oldLen := len(e.Inputs)
	features := slices.DeleteFunc(slices.Clone(columns), func(c *column) bool { return !r.isFeature(c.name) })
	e.Inputs = slices.Grow(e.Inputs, len(features))[:oldLen+len(features)]
	blockColumns := min(lineNumbers, max(1, len(features)/(2*runtime.GOMAXPROCS(0))))
	err = parallel(len(features), blockColumns, func(first, last int) error {
		numbers := numbersReader{t: t}
		for j, c := range features[first:last] {
			if j%blockColumns == 0 {
				numbers.read(features[first+j : min(first+j+blockColumns, last)])
			}
			if row := c.firstText(); r.Gram && row >= 0 {
				return t.cellError(c, row, c.cell(row), "is not a number: every column except the target must belong to the Gram matrix")
			}
			in, err := t.learnInput(c, numbers.list[j%blockColumns], weights, r)
			if dataErr := new(Error); r.dropEmpty && errors.As(err, &dataErr) && dataErr.Rule == noValues {
				in, err = &Input{Name: c.name}, nil
			}
			if err != nil {
				return err
			}
			e.Inputs[oldLen+first+j] = *in
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	e.Inputs = slices.DeleteFunc(e.Inputs, func(in Input) bool {
		empty := in.Number == nil && in.Text == nil && in.Sparse == nil && in.TFIDF == nil
		if empty {
			e.Dropped = append(e.Dropped, in.Name)
		}
		return empty
	})
	if len(e.Inputs) == 0 {
		return nil, t.newError("", "has no column except the target; at least one feature is needed")
	}
	if err := e.Check(); err != nil {
		return nil, err
	}
	return e, nil
}

// LearnPart learns from some rows of the table that e was learned from, such as the training rows of a fold. The
// classes and the type of each column are those of e. A column without values in the part is dropped, and its name
// is added to Dropped.
func (e *Encoder) LearnPart(part *Table, r Rules) (*Encoder, error) {
	r.dropEmpty, r.full, r.AnyLabels = true, e, true // the classes were checked when e was learned
	p, err := Learn(part, r)
	if err != nil {
		return nil, err
	}
	p.Labels = e.Labels
	for i, in := range p.Inputs {
		index := slices.IndexFunc(e.Inputs, func(w Input) bool { return w.Name == in.Name })
		if index < 0 {
			return nil, part.newError(in.Name, "is not a column of the table that the encoder was learned from")
		}
		if in.Number != nil && e.Inputs[index].Number == nil {
			p.Inputs[i] = e.Inputs[index] // in the part, this column of texts has only numbers
		}
	}
	return p, nil
}

// learnInput learns the encoding of c as numbers or as texts. The argument numbers is plainNumbers(c).
func (t *Table) learnInput(c *column, numbers, weights []float64, r Rules) (*Input, error) {
	if c.unreadable != "" {
		return nil, t.columnError(c)
	}
	if slices.Contains(r.TFIDF, c.name) {
		return t.learnTFIDF(c, r)
	}
	s := t.summarizeColumn(c, numbers, weights, statistics{counts: true})
	return s.input(t, c.name, int64(t.rows), r, func() (*Number, string) {
		if !c.plain {
			numbers = t.storedNumbers(c)
		}
		return numberOf(numbers, weights, r.Standardize)
	})
}

// newEncoder returns an encoder without inputs.
func (t *Table) newEncoder(r Rules) *Encoder {
	cells := t.reading
	if cells == nil {
		cells = defaultPoints()
	}
	e := &Encoder{Outputs: slices.Clone(r.Targets), Dropped: slices.Clone(r.Drop), Weight: r.Weight, RefuseMissing: r.RefuseMissing, Gram: r.Gram, NAValues: cells.list}
	if cells.specified || cells.decimal != '.' || cells.thousands != 0 {
		e.Decimal, e.Thousands = string(cells.decimal), strings.Trim(string(cells.thousands), "\x00")
	}
	return e
}

// notCategorical is the error text for a column in Rules.Categorical that cannot be categorical.
const notCategorical = "cannot be categorical: its format stores numbers, not texts, or it has more than 1000 distinct numbers"

func (t *Table) noRows() *Error { return t.newError("", "has no rows below its header") }

// FeatureNames returns the names of the columns of Features: the name of the column for numbers,
// column=value for a category, and column=n-gram for a tf-idf feature. A column of texts or trees
// that is the only input counts as one feature.
func (e *Encoder) FeatureNames() []string {
	var names []string
	for _, in := range e.Inputs {
		switch {
		case in.Text != nil:
			for _, v := range in.Text.Categories {
				names = append(names, in.Name+"="+v)
			}
		case in.Sparse != nil:
			names = in.Sparse.appendNames(names)
		case in.TFIDF != nil:
			names = appendGrams(names, in.Name, in.TFIDF)
		default:
			names = append(names, in.Name)
		}
	}
	return names
}

// TargetNames returns the names of the columns of Targets.
func (e *Encoder) TargetNames() []string { return slices.Clone(e.Outputs) }

// width returns the number of features of in, which is 1 for a column that is not encoded.
func (in *Input) width() int {
	switch {
	case in.Text != nil:
		return len(in.Text.Categories)
	case in.Sparse != nil:
		return in.Sparse.Columns
	case in.TFIDF != nil:
		return in.TFIDF.Len()
	}
	return 1
}

// Check returns nil if Learn could have returned e, so that e is safe to use. Otherwise it returns
// an error that describes the first fault.
func (e *Encoder) Check() error {
	if e == nil {
		return errors.New("dataset: the Encoder is nil")
	}
	if len(e.Inputs) == 0 {
		return errors.New("dataset: encoder: has no inputs")
	}
	names := make(map[string]bool, len(e.Inputs)+len(e.Outputs)+len(e.Dropped))
	use := func(name string) error {
		if rule := nameRule(name); rule != "" {
			return fmt.Errorf("dataset: encoder: the name %s %s", quote(name), rule)
		}
		if names[name] {
			return fmt.Errorf("dataset: encoder: column %s occurs twice", quote(name))
		}
		names[name] = true
		return nil
	}
	width, maxWidth := 0, MaxFeatures
	if e.Sparse() {
		maxWidth = maxSparseFeatures
	}
	for i := range e.Inputs {
		if width += e.Inputs[i].width(); width > maxWidth {
			return fmt.Errorf("dataset: encoder: makes more than %d features", maxWidth)
		}
		if err := use(e.Inputs[i].Name); err != nil {
			return err
		}
		if err := e.Inputs[i].check(); err != nil {
			return fmt.Errorf("dataset: encoder: column %s: %w", quote(e.Inputs[i].Name), err)
		}
		if e.Inputs[i].Raw != "" && len(e.Inputs) > 1 {
			return fmt.Errorf("dataset: encoder: column %s: a %s must be the only input", quote(e.Inputs[i].Name), e.Inputs[i].Raw)
		}
	}
	if err := e.checkNAValues(); err != nil {
		return err
	}
	if rule := newMarks(firstByte(e.Decimal), firstByte(e.Thousands)).check(); rule != "" || len(e.Decimal) > 1 || len(e.Thousands) > 1 {
		return fmt.Errorf("dataset: encoder: %q and %q cannot be the decimal mark and the thousands separator", e.Decimal, e.Thousands)
	}
	if err := e.checkGram(); err != nil {
		return err
	}
	for _, name := range e.excluded() {
		if err := use(name); err != nil {
			return err
		}
	}
	return e.checkLabels()
}

func (in *Input) check() error {
	count := 0
	for _, set := range []bool{in.Number != nil, in.Text != nil, in.Sparse != nil, in.TFIDF != nil, in.Raw != ""} {
		if set {
			count++
		}
	}
	switch {
	case count != 1:
		return errors.New("must be either a number or a text")
	case in.Number != nil:
		return in.Number.check()
	case in.Text != nil:
		return in.Text.check()
	case in.Sparse != nil:
		return in.Sparse.check()
	case in.TFIDF != nil:
		return in.TFIDF.Check()
	}
	return in.Raw.check()
}

func (n *Number) check() error {
	for _, p := range []struct {
		name  string
		value float64
	}{{"fill", n.Fill}, {"mean", n.Mean}, {"scale", n.Scale}, {"rounding", n.Rounding}, {"low", n.Low}, {"high", n.High}} {
		if math.IsNaN(p.value) || math.IsInf(p.value, 0) {
			return fmt.Errorf("%s must be finite, but is %v", p.name, p.value)
		}
	}
	if n.Scale <= 0 {
		return fmt.Errorf("scale must be > 0, but is %v", n.Scale)
	}
	if n.Rounding < 0 {
		return fmt.Errorf("rounding must be ≥ 0, but is %v", n.Rounding)
	}
	if n.Low > n.High {
		return fmt.Errorf("low must not exceed high, but low is %v and high is %v", n.Low, n.High)
	}
	return nil
}

func (x *Text) check() error {
	if len(x.Categories) == 0 || len(x.Categories) > MaxCategories {
		return fmt.Errorf("must have 1 to %d categories, has %d", MaxCategories, len(x.Categories))
	}
	for i, v := range x.Categories {
		if v == "" || !utf8.ValidString(v) || strings.TrimSpace(v) != v {
			return fmt.Errorf("%s is not a valid category", quote(v))
		}
		if i > 0 && v <= x.Categories[i-1] {
			return fmt.Errorf("categories must be sorted and distinct, but %s precedes %s", quote(x.Categories[i-1]), quote(v))
		}
	}
	if _, ok := slices.BinarySearch(x.Categories, x.Fill); !ok {
		return fmt.Errorf("the fill value %s is not a category", quote(x.Fill))
	}
	return nil
}

// A writer writes the features of one column.
type writer interface {
	// write writes the features of rows first to last − 1 to the writer's columns of x, whose rows have the given
	// width and are initially 0. It stops at the first error and returns its row.
	write(x []float64, width, first, last int) (row int, err error)
}

// blockNumbers is the number of feature values in a block. Writers write a block column by column.
const blockNumbers = 1 << 15

// An inputColumn specifies the column that a writer encodes, and the features that the writer sets.
type inputColumn struct {
	table     *Table
	column    *column
	refuse    bool // a missing cell is an error
	naInTexts bool // a text such as NA is a missing cell in columns of texts too
	offset    int  // index of the first feature in a row
}

// Features encodes the columns of t from which e was learned, in any order. The result has t.Rows() rows and the
// columns that FeatureNames lists. Other columns of t, including the target, are ignored.
//
// Features returns an *Error for a column that t lacks, for a table without rows, and for a cell that
// breaks a rule: a cell that is not a number in a column of numbers, or, if the rules refuse them,
// an unknown category or a missing cell. It reports the first error by line, and then by column.
func (e *Encoder) Features(t *Table) (*mat.Dense, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	if err := e.checkBase(t, e.indexBase(t)); err != nil {
		return nil, err
	}
	return e.features(t)
}

func (e *Encoder) features(t *Table) (*mat.Dense, error) {
	if kind := e.Raw(); kind != "" {
		return nil, t.newError(e.Inputs[0].Name, fmt.Sprintf("was learned as a column of %ss, not numbers", kind))
	}
	writers, width, err := e.writers(t)
	if err != nil {
		return nil, err
	}
	if t.rows == 0 {
		return nil, t.noRows()
	}
	if t.rows > math.MaxInt/8/width || e.tooSparse(t, width) {
		return nil, t.newError("", fmt.Sprintf("%s of %d features, zeros included, are too many for a dense matrix", count.Of(t.rows, "row"), width))
	}
	data := pages.Zeros[float64](t.rows * width)
	writers = joinSparse(t, writers, width)
	block := max(1, blockNumbers/width)
	err = parallel(t.rows, block, func(first, last int) (blockErr error) {
		for begin := first; begin < last; begin += block {
			end := min(begin+block, last)
			for _, w := range writers {
				row, err := w.write(data[begin*width:end*width], width, begin, end)
				if err != nil { // after this, only an error in an earlier row replaces the error
					blockErr, end, last = err, row, row
				}
			}
		}
		return blockErr
	})
	if err != nil {
		return nil, err
	}
	return mat.NewDense(t.rows, width, data), nil
}

// writers returns a writer for the column of each input.
func (e *Encoder) writers(t *Table) (writers []writer, width int, err error) {
	columns := make(map[string]*column, len(t.columns))
	for _, c := range t.columns {
		if c.unreadable == "" {
			columns[c.name] = c
		}
	}
	for i := range e.Inputs {
		in := &e.Inputs[i]
		if in.Sparse != nil {
			w, err := in.Sparse.writer(t, width, e.RefuseMissing)
			if err != nil {
				return nil, 0, err
			}
			writers = append(writers, w)
			width += in.width()
			continue
		}
		c := columns[in.Name]
		if c == nil {
			c = t.sparseColumn(in.Name)
		}
		if c == nil && t.sparse {
			c = t.absentColumn(in.Name)
		}
		if c == nil {
			return nil, 0, t.noColumn("feature column", in.Name, e.unused(t))
		}
		col := inputColumn{table: t, column: c, refuse: e.RefuseMissing, naInTexts: e.NAValues != nil, offset: width}
		switch {
		case in.TFIDF != nil:
			w, err := newGramWriter(col, in.TFIDF, e.RefuseUnknown)
			if err != nil {
				return nil, 0, err
			}
			writers = append(writers, w)
		case in.Number != nil:
			writers = append(writers, &numberWriter{col, in.Number})
		case c.plain:
			return nil, 0, t.newError(c.name, fmt.Sprintf("holds numbers, but the training column holds texts: %s", list(in.Text.Categories)))
		default:
			writers = append(writers, newTextWriter(col, in.Text, e.RefuseUnknown))
		}
		width += in.width()
	}
	return writers, width, nil
}

// unused returns the names of the columns of t that e does not use, such as misspelled names.
func (e *Encoder) unused(t *Table) []string {
	return slices.DeleteFunc(t.Names(), func(name string) bool {
		return slices.ContainsFunc(e.Inputs, func(in Input) bool { return in.Name == name || in.Sparse.has(name) }) || slices.Contains(e.Dropped, name) || name == e.Weight
	})
}

// Targets returns the target columns of t, with one row for each row of t and one column for each
// target. Targets are not standardized. A target of classes is returned as indices into Classes.
// Targets returns an error for an encoder without targets, a table without rows or without a target
// column, a cell that is missing or not a number, and a class that the training table lacks.
func (e *Encoder) Targets(t *Table) (*mat.Dense, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	if len(e.Outputs) == 0 {
		return nil, t.newError("", "no target column was named when the features were learned")
	}
	return e.targets(t)
}

func (e *Encoder) targets(t *Table) (*mat.Dense, error) {
	if t.rows == 0 {
		return nil, t.noRows()
	}
	if e.Labels != nil {
		return e.indices(t, newClassifier(e.Labels))
	}
	y := mat.NewDense(t.rows, len(e.Outputs), nil)
	for j, name := range e.Outputs {
		c := t.find(name)
		if c == nil {
			return nil, t.noColumn("target column", name, t.Names())
		}
		for i := range t.rows {
			v, err := t.targetCell(c, i)
			if err != nil {
				return nil, err
			}
			y.Set(i, j, v)
		}
	}
	return y, nil
}

const (
	needsValue = "a target needs a value: give it one or drop the row"
	asTarget   = ", as a target must be"
)

func (t *Table) targetCell(c *column, row int) (float64, error) {
	v, k := c.number(row)
	switch {
	case k < number:
		return v, t.missingError(c, row, needsValue)
	case k > number:
		rule := c.rule(row, k)
		if k != otherSpelling {
			rule += asTarget
		}
		return v, t.cellError(c, row, c.cell(row), rule)
	}
	return v, nil
}

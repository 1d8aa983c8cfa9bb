package dataset

import (
	"errors"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/mat"
)

// begin opens the file for a pass. If lines > 0, a part of a text has at most that number of lines.
func (s *Stream) begin(lines int) (*pass, error) {
	if s == nil {
		return nil, errors.New("dataset: the Stream is nil")
	}
	in, err := s.file.open()
	if err != nil {
		return nil, err
	}
	in.allowance.inParts = true
	p := &pass{t: in.t, cleanups: []func(){in.close}}
	if err := s.start(p, in, lines); err != nil {
		p.close()
		return nil, err
	}
	return p, nil
}

// notInBlocks is the error text for a format that does not store its values by rows.
const notInBlocks = "holds a sparse matrix in a format that cannot be read in blocks: read the whole file, or save it in LIBSVM format"

// start reads the beginning of the file and prepares p.
func (s *Stream) start(p *pass, in *input, lines int) (err error) {
	if p.form, err = s.file.format(in); err != nil {
		return err
	}
	if s.form != "" && p.form != s.form {
		return in.t.newError("", fmt.Sprintf("has changed since it was opened: it was %s file", article(s.form)))
	}
	switch p.form {
	case formCSV:
		err = p.beginCSV(in, lines)
	case formLIBSVM:
		p.beginLIBSVM(in, lines)
	case formParquet:
		err = p.beginParquet(in)
	case formArrow:
		err = p.beginArrow(in)
	case formMarket:
		err = in.t.newError("", notInBlocks)
	case formJSON:
		err = in.t.newError("", "is a JSON file, which cannot be read in blocks: read the whole file, or convert it to CSV or Parquet")
	default:
		err = s.beginBinary(p, in)
	}
	if err == nil && s.names != nil && !slices.Equal(s.names, p.names) {
		err = in.t.newError("", fmt.Sprintf("has changed since it was opened: its columns were %s, now they are %s", list(s.names), list(p.names)))
	}
	return err
}

// encode encodes a part with e. If a CSV part has an error, encode decodes it again with columns in coded form, which
// store the text of the cell for the error.
func (p *pass) encode(part part, e *Encoder) (encoded, error) {
	t, err := part.table()
	r, err := p.encodeTable(t, err, e)
	if text, ok := part.(*csvPart); ok && err != nil {
		t, err = text.read(func(int) column { return column{} })
		return p.encodeTable(t, err, e)
	}
	return r, err
}

func (p *pass) encodeTable(t *Table, err error, e *Encoder) (encoded, error) {
	if err != nil {
		return encoded{}, err
	}
	t, weights, err := Rules{Weight: e.Weight}.weighted(t)
	if err != nil || t.rows == 0 {
		return encoded{}, err
	}
	x, err := e.features(t)
	if err != nil {
		return encoded{}, err
	}
	r := encoded{rows: t.rows, weights: weights, x: x.RawMatrix().Data, unknown: e.Unknown(t), base: e.indexBase(t)}
	if len(e.Outputs) > 0 {
		var y *mat.Dense
		if p.rules.classes == nil {
			y, err = e.targets(t)
		} else {
			y, r.classes, err = e.ScoredTargets(t)
		}
		if err != nil {
			return encoded{}, err
		}
		r.y = y.RawMatrix().Data
	}
	if p.rules.keyed {
		r.keys, err = e.Keys(t)
	}
	return r, err
}

// mergeClasses renumbers the classes that e lacks, so that all parts number them alike. Call mergeClasses for the
// parts in order.
func (p *pass) mergeClasses(r encoded, e *Encoder) error {
	labelCount := len(e.Labels)
	if len(r.classes) <= labelCount {
		return nil
	}
	index := make([]float64, len(r.classes)-labelCount)
	for i, label := range r.classes[labelCount:] {
		class, ok := p.rules.classes.add(label)
		if !ok {
			return p.t.newError(e.Outputs[0], tooManyClasses)
		}
		index[i] = float64(class)
	}
	for i, class := range r.y {
		if int(class) >= labelCount {
			r.y[i] = index[int(class)-labelCount]
		}
	}
	return nil
}

// isNumber reports whether e takes the column of the given name as numbers.
func (e *Encoder) isNumber(name string) bool {
	return name == e.Weight || e.Labels == nil && slices.Contains(e.Outputs, name) ||
		slices.ContainsFunc(e.Inputs, func(in Input) bool { return in.Name == name && in.Number != nil })
}

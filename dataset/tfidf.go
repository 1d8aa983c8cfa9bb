package dataset

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/mercer-go/mercer/internal/tfidf"
)

// NGrams holds the settings of tf-idf features: see Rules.TFIDF. A Vocabulary is the encoding that
// Learn learns for a column in Rules.TFIDF.
type (
	NGrams     = tfidf.Params
	Vocabulary = tfidf.Vocabulary
)

// checkTFIDF returns an error for rules that contradict r.TFIDF, whose columns must exist in t.
func (t *Table) checkTFIDF(r Rules) error {
	if len(r.TFIDF) == 0 {
		if r.NGrams != (NGrams{}) {
			return t.newError("", "n-grams are specified, but no column of texts is named")
		}
		return nil
	}
	newError := func(err error) error { return t.newError(r.TFIDF[0], noTFIDF+err.Error()) }
	if r.Gram {
		return newError(errors.New("the columns are a Gram matrix"))
	}
	if err := r.NGrams.Check(); err != nil {
		return newError(err)
	}
	for _, name := range r.TFIDF {
		if c := t.find(name); c.plain {
			return t.noTexts(c, RawText)
		}
	}
	return nil
}

const noTFIDF = "cannot become tf-idf features: "

// learnTFIDF learns the vocabulary of a column of texts.
func (t *Table) learnTFIDF(c *column, r Rules) (*Input, error) {
	texts, err := t.textCells(c, RawText, r.RefuseMissing)
	if err != nil {
		return nil, err
	}
	v, err := tfidf.Learn(texts, r.NGrams)
	if err != nil {
		return nil, t.newError(c.name, noTFIDF+err.Error())
	}
	return &Input{Name: c.name, TFIDF: v}, nil
}

// unknownTexts returns the indices of the entries of a column of texts that have no n-gram of v, except entries
// without rows. counts is c.valueCounts().
func unknownTexts(c *column, counts []int, v *Vocabulary) (codes []int) {
	row, err := v.NewRow()
	if err != nil {
		return nil
	}
	var indices []int32
	var data []float64
	for code, n := range counts {
		if n == 0 {
			continue
		}
		if indices, data = row.Append(c.entries[code].text, 0, indices[:0], data[:0]); len(data) == 0 {
			codes = append(codes, code)
		}
	}
	return codes
}

// appendGrams appends the names of the tf-idf features of a column: column=n-gram.
func appendGrams(names []string, column string, v *Vocabulary) []string {
	for _, gram := range v.Grams {
		names = append(names, column+"="+gram)
	}
	return names
}

// A gramWriter writes the tf-idf features of a column of texts.
type gramWriter struct {
	inputColumn
	strict bool      // a text without a known n-gram is an error
	rows   sync.Pool // a pool of *tfidf.Row
}

// newGramWriter returns the writer for a column with the vocabulary v, or an error if the column holds numbers.
func newGramWriter(p inputColumn, v *Vocabulary, strict bool) (*gramWriter, error) {
	first, err := v.NewRow()
	if err != nil {
		return nil, fmt.Errorf("dataset: encoder: column %s: %w", quote(p.column.name), err)
	}
	if p.column.plain {
		return nil, p.table.noTexts(p.column, RawText)
	}
	w := &gramWriter{inputColumn: p, strict: strict}
	w.rows.Put(first)
	w.rows.New = func() any { row, _ := v.NewRow(); return row } // NewRow cannot fail, because v has been checked
	return w, nil
}

func (w *gramWriter) row(i int, indices []int32, data []float64) ([]int32, []float64, error) {
	text, err := w.table.textCell(w.column, i, RawText, w.refuse)
	if err != nil {
		return nil, nil, err
	}
	row, oldLen := w.rows.Get().(*tfidf.Row), len(data)
	indices, data = row.Append(text, w.offset, indices, data)
	w.rows.Put(row)
	if w.strict && text != "" && len(data) == oldLen {
		return nil, nil, w.table.cellError(w.column, i, text, "has no n-gram of the training texts")
	}
	return indices, data, nil
}

func (w *gramWriter) write(x []float64, width, first, last int) (int, error) {
	return writeRows(w, x, width, first, last)
}

// writeRows implements the method write of a rowWriter: it copies the features of each row into x.
func writeRows(w rowWriter, x []float64, width, first, last int) (int, error) {
	var indices []int32
	var data []float64
	for i := first; i < last; i++ {
		var err error
		if indices, data, err = w.row(i, indices[:0], data[:0]); err != nil {
			return i, err
		}
		row := x[(i-first)*width:][:width]
		for k, j := range indices {
			row[j] = data[k]
		}
	}
	return last, nil
}

// Nonzeros estimates the number of nonzero elements of SparseFeatures(t) without encoding t. It assumes that
// numbers are not 0, and that each text has the mean number of features of the training texts. It returns 0 if
// e.Sparse() is false.
func (e *Encoder) Nonzeros(t *Table) int64 {
	if !e.Sparse() {
		return 0
	}
	var n int64
	for _, in := range e.Inputs {
		switch {
		case in.TFIDF != nil:
			n += int64(math.Ceil(float64(in.TFIDF.Nonzeros()) / float64(in.TFIDF.Texts) * float64(t.rows)))
		case in.Sparse != nil && t.features != nil:
			n += int64(t.nonzeros())
		case in.Sparse != nil:
			n += int64(t.rows) * int64(min(in.Sparse.Columns, len(t.columns)))
		default:
			n += int64(t.rows)
		}
	}
	return n
}

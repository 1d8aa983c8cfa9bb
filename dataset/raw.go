package dataset

import (
	"fmt"
)

// Raw is the type of the cells of a column that is the only input and is not encoded.
type Raw string

const (
	RawText Raw = "text" // any text
	RawTree Raw = "tree" // a tree in brackets, such as (S (NP she) (VP ran))
)

func (r Raw) check() error {
	if r != RawText && r != RawTree {
		return fmt.Errorf("the type of its cells is %s; it must be text or tree", quote(string(r)))
	}
	return nil
}

// Raw returns RawText or RawTree if the only input is a column of texts or trees, and "" otherwise.
func (e *Encoder) Raw() Raw {
	if len(e.Inputs) != 1 {
		return ""
	}
	return e.Inputs[0].Raw
}

// Texts returns the cells of the column of texts or trees that e was learned from, one for each row of t, without
// surrounding spaces. A missing text is "", or an error if the rules refuse missing cells. A missing tree is an
// error. Texts also returns an error for an encoder whose inputs become features, for a table without rows or
// without the column, and for a column of numbers.
func (e *Encoder) Texts(t *Table) ([]string, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	kind := e.Raw()
	if kind == "" {
		return nil, t.newError("", "the features are numbers: no column of texts or trees was named when they were learned")
	}
	return e.texts(t)
}

// texts returns the result of Texts, but does not check e.
func (e *Encoder) texts(t *Table) ([]string, error) {
	in := e.Inputs[0]
	c := t.find(in.Name)
	switch {
	case c == nil:
		return nil, t.noColumn(string(in.Raw)+" column", in.Name, t.Names())
	case t.rows == 0:
		return nil, t.noRows()
	}
	return t.textCells(c, in.Raw, e.RefuseMissing)
}

// textCells returns the cells of a column of texts or trees. If refuse is set, a missing text is an error. A missing
// tree is always an error.
func (t *Table) textCells(c *column, kind Raw, refuse bool) ([]string, error) {
	if c.unreadable != "" {
		return nil, t.columnError(c)
	}
	if c.plain {
		return nil, t.noTexts(c, kind)
	}
	texts := make([]string, t.rows)
	for i := range texts {
		var err error
		if texts[i], err = t.textCell(c, i, kind, refuse); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func (t *Table) textCell(c *column, row int, kind Raw, refuse bool) (string, error) {
	switch {
	case c.codes[row] >= 0:
		return c.entries[c.codes[row]].text, nil
	case refuse:
		return "", t.missingError(c, row, missingRefused)
	case kind == RawTree:
		return "", t.missingError(c, row, "a tree is needed, such as (S (NP she) (VP ran))")
	}
	return "", nil
}

// noTexts returns the error for a column of numbers that was named as a column of texts or trees.
func (t *Table) noTexts(c *column, kind Raw) *Error {
	return t.newError(c.name, fmt.Sprintf("holds numbers, not %ss", kind))
}

// learnRaw learns the rules for a column of texts or trees that is the only input.
func (e *Encoder) learnRaw(t *Table, r Rules) error {
	name, kind := r.Text, RawText
	if r.Tree != "" {
		name, kind = r.Tree, RawTree
	}
	if r.Text != "" && r.Tree != "" {
		return t.newError("", fmt.Sprintf("the input is a single column: name either %s of texts or %s of trees, not both", quote(r.Text), quote(r.Tree)))
	}
	e.Inputs = []Input{{Name: name, Raw: kind}}
	if _, err := e.texts(t); err != nil {
		return err
	}
	return e.Check()
}

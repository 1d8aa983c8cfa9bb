package dataset

import (
	"slices"
)

// isFeature reports whether the column is not a target, not the weight column, and not dropped.
func (r Rules) isFeature(name string) bool { return !slices.Contains(r.excluded(), name) }

// excluded returns the names of the columns that the rules exclude from the features.
func (r Rules) excluded() []string {
	return slices.Concat(r.Targets, r.Drop, nonEmpty(r.Weight))
}

// excluded returns the names of the columns of the training table that did not become features.
func (e *Encoder) excluded() []string {
	return Rules{Targets: e.Outputs, Drop: e.Dropped, Weight: e.Weight}.excluded()
}

// checkRoles returns an error for a column that is named in the rules but not in the table, and for a column with
// two roles. names lists the columns of the table, or is nil if they are not known.
func (t *Table) checkRoles(r Rules, names []string) error {
	roles := map[string]string{}
	assign := func(name, role string) error {
		switch previous := roles[name]; {
		case previous == role:
			return t.newError(name, "is named twice as "+role)
		case previous != "":
			return t.newError(name, "is named both as "+previous+" and as "+role)
		case names != nil && !slices.Contains(names, name) && !slices.Contains([]string{"a target", "the text", "the tree"}, role): // for these roles, other functions report a missing column
			return t.noColumnAmong("column", name, names)
		}
		roles[name] = role
		return nil
	}
	for _, group := range []struct {
		role  string
		names []string
	}{{"a target", r.Targets}, {"the weight", nonEmpty(r.Weight)}, {"dropped", r.Drop}, {"the text", nonEmpty(r.Text)}, {"the tree", nonEmpty(r.Tree)}, {"a text for tf-idf features", r.TFIDF}, {"categorical", r.Categorical}} {
		for _, name := range group.names {
			if r.Text+r.Tree != "" && slices.Contains([]string{"a text for tf-idf features", "categorical"}, group.role) {
				return t.newError(name, "is named as "+group.role+", but the whole input is the column "+quote(r.Text+r.Tree))
			}
			if err := assign(name, group.role); err != nil {
				return err
			}
		}
	}
	return nil
}

// nonEmpty returns a list of only this name, or an empty list for "".
func nonEmpty(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// Select returns the result of Table.Select for a table with the rules r. From a Gram matrix it also selects the
// columns of these rows. A Gram matrix that is not square is an error.
func (r Rules) Select(t *Table, rows []int) (*Table, error) {
	s := t.selectRows(rows)
	if !r.Gram {
		return s, nil
	}
	if err := t.checkGram(Rules{Targets: r.Targets, Drop: r.Drop, Weight: r.Weight}); err != nil {
		return nil, err
	}
	columns := t.gramColumns(r)
	features := s.allColumns()
	s.columns, s.features = nil, nil
	for _, row := range rows {
		s.columns = append(s.columns, features[columns[row]])
	}
	for _, c := range features {
		if !r.isFeature(c.name) {
			s.columns = append(s.columns, c)
		}
	}
	return s, nil
}

// Weighted returns the rows of t with a positive weight in the column r.Weight, and their weights. If r.Weight is
// "", Weighted returns t and nil. It returns an *Error for a weight that is missing, negative or not finite, and if
// all weights are 0.
func (r Rules) Weighted(t *Table) (*Table, []float64, error) {
	selected, weights, err := r.weighted(t)
	if err == nil && selected.rows == 0 && t.rows > 0 {
		return nil, nil, t.newError(r.Weight, noWeight)
	}
	return selected, weights, err
}

const noWeight = "has no weight above 0: give at least one row a weight above 0"

// weighted returns the result of Weighted for a part of a table, in which all weights may be 0.
func (r Rules) weighted(t *Table) (*Table, []float64, error) {
	weights, err := t.weights(r.Weight)
	if err != nil || !slices.Contains(weights, 0) {
		return t, weights, err
	}
	var rows []int
	for i, w := range weights {
		if w > 0 {
			weights[len(rows)] = w
			rows = append(rows, i)
		}
	}
	selected, err := r.Select(t, rows)
	return selected, weights[:len(rows)], err
}

// weights returns the weights of the rows as a copy, or nil if there is no weight column.
func (t *Table) weights(name string) ([]float64, error) {
	if name == "" {
		return nil, nil
	}
	c := t.find(name)
	if c == nil {
		return nil, t.noColumn("weight column", name, t.Names())
	}
	weights := make([]float64, t.rows)
	for i := range weights {
		v, k := c.number(i)
		switch {
		case k < number:
			return nil, t.missingError(c, i, "a weight must be a finite number ≥ 0")
		case k > number:
			return nil, t.cellError(c, i, c.cell(i), c.rule(i, k)+"; a weight must be a finite number ≥ 0")
		case v < 0:
			return nil, t.cellError(c, i, c.cell(i), "is negative; a weight must be a finite number ≥ 0")
		}
		weights[i] = v
	}
	return weights, nil
}

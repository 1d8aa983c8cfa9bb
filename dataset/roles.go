package dataset

import (
	"slices"
)

// isFeature reports whether the column of the given name becomes features: it is not a target, does
// not hold the weights, and is not dropped.
func (r Rules) isFeature(name string) bool { return !slices.Contains(r.others(), name) }

// others returns the columns that the rules exclude from the features.
func (r Rules) others() []string {
	return slices.Concat(r.Targets, r.Drop, named(r.Weight))
}

// others returns the columns of the training table that did not become features.
func (e *Encoder) others() []string {
	return Rules{Targets: e.Outputs, Drop: e.Dropped, Weight: e.Weight}.others()
}

// checkRoles returns an error for a column that the rules name but the table lacks, and for a
// column with two roles. names lists the columns of the table, or is nil if they are not known yet.
func (t *Table) checkRoles(r Rules, names []string) error {
	roles := map[string]string{}
	take := func(name, role string) error {
		switch old := roles[name]; {
		case old == role:
			return t.fault(name, "is named twice as "+role)
		case old != "":
			return t.fault(name, "is named both as "+old+" and as "+role)
		case names != nil && !slices.Contains(names, name) && !slices.Contains([]string{"a target", "the text", "the tree"}, role): // other functions report a missing column with these roles
			return t.noColumnAmong("column", name, names)
		}
		roles[name] = role
		return nil
	}
	for _, of := range []struct {
		role  string
		names []string
	}{{"a target", r.Targets}, {"the weight", named(r.Weight)}, {"dropped", r.Drop}, {"the text", named(r.Text)}, {"the tree", named(r.Tree)}, {"a text for tf-idf features", r.TFIDF}, {"categorical", r.Categorical}} {
		for _, name := range of.names {
			if r.Text+r.Tree != "" && slices.Contains([]string{"a text for tf-idf features", "categorical"}, of.role) {
				return t.fault(name, "is named as "+of.role+", but the whole input is the column "+quote(r.Text+r.Tree))
			}
			if err := take(name, of.role); err != nil {
				return err
			}
		}
	}
	return nil
}

// named returns a list with the name, or an empty list if the name is "".
func named(name string) []string {
	if name == "" {
		return nil
	}
	return []string{name}
}

// Select is like Table.Select, for a table with the rules r. For each selected row of a Gram matrix
// it also selects the column of the same index. All columns that are not kernel values are
// selected. It returns an error if a Gram matrix does not have as many columns as rows.
func (r Rules) Select(t *Table, rows []int) (*Table, error) {
	s := t.selectRows(rows)
	if !r.Gram {
		return s, nil
	}
	if err := t.checkGram(Rules{Targets: r.Targets, Drop: r.Drop, Weight: r.Weight}); err != nil {
		return nil, err
	}
	columns := t.gramColumns(r)
	all := s.all()
	s.columns, s.features = nil, nil
	for _, row := range rows {
		s.columns = append(s.columns, all[columns[row]])
	}
	for _, c := range all {
		if !r.isFeature(c.name) {
			s.columns = append(s.columns, c)
		}
	}
	return s, nil
}

// Weighted returns the rows of t whose weight, the number in the column r.Weight, is positive, and
// their weights. If r names no weight column, it returns t and nil. It returns an *Error for a
// weight that is missing, negative or not finite, and if all weights are 0.
func (r Rules) Weighted(t *Table) (*Table, []float64, error) {
	some, weights, err := r.weighted(t)
	if err == nil && some.rows == 0 && t.rows > 0 {
		return nil, nil, t.fault(r.Weight, noWeight)
	}
	return some, weights, err
}

const noWeight = "has no weight above 0: a row counts by its weight"

// weighted is like Weighted, for a part of a table, in which all weights may be 0.
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
	some, err := r.Select(t, rows)
	return some, weights[:len(rows)], err
}

// weights returns a copy of the weights of the rows, or nil if r names no weight column.
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
			return nil, t.missingFault(c, i, "a weight must be a finite number ≥ 0")
		case k > number:
			return nil, t.cellFault(c, i, c.cell(i), c.rule(i, k)+"; a weight must be a finite number ≥ 0")
		case v < 0:
			return nil, t.cellFault(c, i, c.cell(i), "is negative; a weight must be a finite number ≥ 0")
		}
		weights[i] = v
	}
	return weights, nil
}

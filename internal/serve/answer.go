package serve

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"slices"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/learners"
)

// outputs returns the names of the predicted values: the targets, or "f" for a novelty detector.
func (m *served) outputs() []string {
	if names := m.Model.Encoder().TargetNames(); len(names) > 0 {
		return names
	}
	return []string{"f"}
}

// novelty reports whether the model is a novelty detector, which predicts inlier (f ≥ 0) or outlier.
func (m *served) novelty() bool {
	d, err := learners.Find(m.Model.Model().Learner())
	return err == nil && d.Supports(learners.Novelty)
}

// format writes predictions in the format of the request.
func (m *served) format(f form, list []mercer.Prediction, want RequestOptions) ([]byte, error) {
	novelty := m.novelty()
	for i := range list {
		if novelty {
			list[i].Class = "outlier"
			if list[i].Values["f"] >= 0 {
				list[i].Class = "inlier"
			}
		}
		if !want.Proba {
			list[i].Probabilities = nil
		}
	}
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	switch f {
	case object:
		err := e.Encode(list[0])
		return buf.Bytes(), err
	case array:
		err := e.Encode(list)
		return buf.Bytes(), err
	case lines:
		for i := range list {
			if err := e.Encode(list[i]); err != nil {
				return nil, err
			}
		}
		return buf.Bytes(), nil
	}
	return m.csv(list)
}

// csv writes predictions as a table with the columns of mercer predict.
func (m *served) csv(list []mercer.Prediction) ([]byte, error) {
	var names []string
	var cells []func(p *mercer.Prediction) string
	add := func(prefix string, keys []string, cell func(p *mercer.Prediction, key string) string) {
		for _, key := range keys {
			name := prefix
			if len(keys) > 1 {
				name += "_" + key
			}
			names, cells = append(names, name), append(cells, func(p *mercer.Prediction) string { return cell(p, key) })
		}
	}
	numbers := func(prefix string, keys []string, valuesOf func(p *mercer.Prediction) map[string]float64) {
		if len(list) > 0 && valuesOf(&list[0]) != nil {
			add(prefix, keys, func(p *mercer.Prediction, key string) string { return number(valuesOf(p)[key]) })
		}
	}
	classes, outputs := m.Model.Classes().Names, m.outputs()
	if classes != nil || m.novelty() {
		add("prediction", []string{""}, func(p *mercer.Prediction, _ string) string { return p.Class })
	} else {
		numbers("prediction", outputs, func(p *mercer.Prediction) map[string]float64 { return p.Values })
	}
	numbers("probability", classes, func(p *mercer.Prediction) map[string]float64 { return p.Probabilities })
	numbers("std", outputs, func(p *mercer.Prediction) map[string]float64 { return p.Std })
	numbers("bound", outputs, func(p *mercer.Prediction) map[string]float64 { return p.Bound })
	numbers("lower", outputs, func(p *mercer.Prediction) map[string]float64 { return p.Lower })
	numbers("upper", outputs, func(p *mercer.Prediction) map[string]float64 { return p.Upper })
	if slices.ContainsFunc(list, func(p mercer.Prediction) bool { return p.Set != nil }) {
		add("in_set", classes, func(p *mercer.Prediction, key string) string {
			if slices.Contains(p.Set, key) {
				return "1"
			}
			return "0"
		})
	}
	var buf bytes.Buffer
	w := csv.NewWriter(&buf)
	_ = w.Write(names) // writing to a buffer cannot fail
	row := make([]string, len(cells))
	for i := range list {
		for j, cell := range cells {
			row[j] = cell(&list[i])
		}
		_ = w.Write(row)
	}
	w.Flush()
	return buf.Bytes(), w.Error()
}

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/internal/process"
	"github.com/mercer-go/mercer/internal/texttable"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/spf13/cobra"
)

// showFlags are the flags of `mercer show`.
type showFlags struct {
	rows int
}

func (a *app) showCommand() *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "show [flags] MODEL",
		Short: "Show what a model consists of",
		Long: `Show what a model consists of: the learner with its formula and parameters, the report of
the fit, the columns, the weight of each column (for standardized columns, and in the
units of the table), or the points of the kernel functions with their coefficients, the
largest first. mercer explain shows the importance of each column.`,
		Args: maxArgs(1),
		RunE: a.work(func(ctx context.Context, args []string) error {
			if len(args) == 0 {
				return usagef("show needs MODEL: a file that mercer fit wrote")
			}
			return a.show(ctx, f, args[0])
		}),
	}
	intFlag(c.Flags(), &f.rows, "rows", 20, 0, "`NUMBER` of weights and points to print; 0 prints all")
	return c
}

// shownModel is the output of `mercer show --json`.
type shownModel struct {
	Program      string               `json:"program"` // "show"
	Learner      learners.Description `json:"learner"`
	Targets      []string             `json:"targets,omitempty"`
	Classes      []string             `json:"classes,omitempty"`
	Kernel       string               `json:"kernel,omitempty"`
	Fit          *fitReport           `json:"fit,omitempty"`
	Columns      []dataset.Input      `json:"columns,omitempty"`
	Weights      []weightOfFeature    `json:"weights,omitempty"`
	Points       []weightedPoint      `json:"points,omitempty"`
	Intercept    []float64            `json:"intercept,omitempty"`
	RawIntercept []float64            `json:"intercept_raw,omitempty"`
	Calibration  int                  `json:"calibration_rows,omitempty"`

	Unlisted string `json:"unlisted,omitempty"` // which part of the model is not listed because it is too large

	cells []string // names of the columns whose values are printed for each point
}

// maxWeights limits the weights that show stores, and the coefficients from which it computes them, to 96 MiB in total.
var maxWeights = 1 << 22

// weightOfFeature is a row in the table of weights of a linear model.
type weightOfFeature struct {
	Feature      string    `json:"feature"`
	Standardized []float64 `json:"standardized"` // one standardized weight for each output
	Raw          []float64 `json:"raw"`
}

// weightedPoint is a point of a kernel expansion with its coefficients.
type weightedPoint struct {
	Coef   []float64      `json:"coef,omitempty"`
	Values map[string]any `json:"values"` // values of the columns, in the units of the table
	cells  []string
}

func (a *app) show(ctx context.Context, f showFlags, file string) error {
	b, err := modelfile.Load(file)
	if err != nil {
		return err
	}
	s, err := newShown(b, 0)
	if err != nil {
		return err
	}
	return a.printJSONOrText(ctx, s, func() string { return s.text(f.rows) })
}

// newShown collects what mercer show prints about a model, with at most maxPoints points, or all if maxPoints is 0.
func newShown(b modelfile.Bundle, maxPoints int) (*shownModel, error) {
	d, err := learners.Find(b.Model.Learner())
	if err != nil {
		return nil, err
	}
	s := &shownModel{Program: "show", Learner: d}
	if b.Fit != nil {
		var saved savedReport
		if err := json.Unmarshal(b.Fit, &saved); err != nil {
			return nil, fmt.Errorf("the report of the fit: %w", err)
		}
		s.Fit = saved.report()
	}
	if c, ok := b.Model.(learners.Classifier); ok {
		s.Classes = c.Classes().Names
	}
	if b.Calibration != nil {
		s.Calibration = b.Calibration.Scores.Cols
	}
	parts := learners.PartsOf(b.Model)
	s.Intercept = parts.Intercept
	switch {
	case b.Objects != nil:
		s.Kernel = b.Objects.Kernel
	case parts.Kernel != nil:
		s.Kernel = parts.Kernel.String()
	}
	columns := plainColumns(b)
	if b.Encoder != nil {
		s.Targets = b.Encoder.TargetNames()
		s.Columns = b.Encoder.Inputs
	}
	switch {
	case parts.Points != nil:
		s.Points = weightedPoints(parts, columns, b, maxPoints)
		if x, ok := parts.Points.(backend.CSR[float64]); ok {
			s.cells = []string{"nonzero features"}
			_, linear := parts.Kernel.(kernels.Linear)
			if size := (min(len(x.Data), x.Cols) + x.Rows) * len(parts.Intercept); linear && size > maxWeights {
				s.Unlisted = fmt.Sprintf("weights of %s in %s: more than %d numbers", count(x.Cols, "feature"), count(len(parts.Intercept), "output"), maxWeights)
			} else if features, w := parts.Weights(); w != nil {
				usedColumns := make([]column, len(features))
				for k, j := range features {
					usedColumns[k] = columns[j]
				}
				parts.Coef = w
				s.Weights, s.RawIntercept = featureWeights(parts, usedColumns)
				s.Weights = slices.DeleteFunc(s.Weights, func(w weightOfFeature) bool { return largest(w.Standardized) == 0 })
			}
		} else if b.Encoder != nil && b.Encoder.Gram {
			s.cells = []string{"row"}
		} else {
			for _, c := range columns {
				s.cells = append(s.cells, c.name)
			}
		}
	case parts.Coef != nil:
		s.Weights, s.RawIntercept = featureWeights(parts, columns)
	}
	return s, nil
}

// A column is a feature. In units of the table, the value v of the feature is mean + scale·v.
type column struct {
	name        string
	mean, scale float64
}

// plainColumns returns the features of a model. Without an encoder their names are x1, x2, ….
func plainColumns(b modelfile.Bundle) []column {
	var list []column
	if b.Encoder == nil {
		d, _ := b.Model.Dims()
		for j := range d {
			list = append(list, column{"x" + strconv.Itoa(j+1), 0, 1})
		}
		return list
	}
	for _, name := range b.Encoder.FeatureNames() {
		list = append(list, column{name, 0, 1})
	}
	features := list
	for _, in := range b.Encoder.Inputs {
		width := 1
		switch {
		case in.Number != nil:
			features[0].mean, features[0].scale = in.Number.Mean, in.Number.Scale
		case in.Text != nil:
			width = len(in.Text.Categories)
		case in.Sparse != nil:
			width = in.Sparse.Columns
			for j, scale := range in.Sparse.Scale {
				features[j].scale = scale
			}
		case in.TFIDF != nil:
			width = in.TFIDF.Len()
		}
		features = features[width:]
	}
	return list
}

// featureWeights returns the weights of a linear model, largest first, and the intercept in units of the table.
func featureWeights(parts learners.Parts, columns []column) ([]weightOfFeature, []float64) {
	list := make([]weightOfFeature, len(columns))
	intercept := slices.Clone(parts.Intercept)
	for j, c := range columns {
		w := slices.Clone(parts.Coef.RawRowView(j))
		raw := slices.Clone(w)
		for k := range raw {
			raw[k] /= c.scale
			intercept[k] -= raw[k] * c.mean
		}
		list[j] = weightOfFeature{c.name, w, raw}
	}
	slices.SortStableFunc(list, func(p, q weightOfFeature) int { return cmp.Compare(largest(q.Standardized), largest(p.Standardized)) })
	return list, intercept
}

// largest returns the largest absolute value.
func largest(v []float64) float64 {
	m := 0.0
	for _, x := range v {
		m = max(m, math.Abs(x))
	}
	return m
}

// weightedPoints returns the points of a kernel expansion in the units of the table, sorted by decreasing magnitude of
// the coefficients. If maxPoints > 0, it returns only the first maxPoints. A sparse point has only nonzero features.
func weightedPoints(parts learners.Parts, columns []column, b modelfile.Bundle, maxPoints int) []weightedPoint {
	n, _ := parts.Points.Dims()
	order, size := make([]int, n), make([]float64, n)
	for i := range order {
		order[i] = i
		if parts.Coef != nil {
			size[i] = largest(parts.Coef.RawRowView(i))
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(size[j], size[i]) })
	order = firstOf(order, maxPoints)
	sparse, isSparse := parts.Points.(backend.CSR[float64])
	list := make([]weightedPoint, len(order))
	for pos, i := range order {
		p := weightedPoint{Values: map[string]any{}}
		if parts.Coef != nil {
			p.Coef = slices.Clone(parts.Coef.RawRowView(i))
		}
		if isSparse {
			p.cells = []string{sparseCell(p.Values, sparse, i, columns)}
			list[pos] = p
			continue
		}
		row := mat.Row(nil, i, parts.Points)
		switch {
		case b.Objects != nil:
			text := b.Objects.Training[int(row[0])]
			p.Values[b.Encoder.Inputs[0].Name] = text
			p.cells = []string{text}
		case b.Encoder != nil && b.Encoder.Gram:
			p.Values["row"] = int(row[0]) + 1
			p.cells = []string{strconv.Itoa(int(row[0]) + 1)}
		default:
			for j, c := range columns {
				v := c.mean + c.scale*row[j]
				p.Values[c.name] = v
				p.cells = append(p.cells, fourDigits(v))
			}
		}
		list[pos] = p
	}
	return list
}

// sparseCell adds the nonzero features of row i of x to values, and returns the four largest in magnitude as text.
func sparseCell(values map[string]any, x backend.CSR[float64], i int, columns []column) string {
	indices, stored := x.Row(i)
	order := make([]int, len(indices))
	for k, j := range indices {
		c := columns[j]
		values[c.name], order[k] = c.mean+c.scale*stored[k], k
	}
	slices.SortStableFunc(order, func(p, q int) int { return cmp.Compare(math.Abs(stored[q]), math.Abs(stored[p])) })
	var texts []string
	for n, k := range order {
		if n == 4 {
			texts = append(texts, fmt.Sprintf("and %d more", len(order)-n))
			break
		}
		c := columns[indices[k]]
		texts = append(texts, fmt.Sprintf("%s: %s", quoteIfNeeded(c.name), fourDigits(c.mean+c.scale*stored[k])))
	}
	return strings.Join(texts, ", ")
}

// quoteIfNeeded quotes a name that begins or ends with a space, or contains unprintable characters.
func quoteIfNeeded(name string) string {
	if strings.TrimSpace(name) != name || strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}

// maxWidth is the approximate maximum number of characters for the values of a point in a line.
const maxWidth = 60

func (s *shownModel) text(rows int) string {
	head := [][]string{{"learner", s.Learner.Name}}
	if s.Kernel != "" {
		head = append(head, []string{"kernel", s.Kernel})
	}
	if len(s.Classes) > 0 {
		head = append(head, []string{"classes", strconv.Itoa(len(s.Classes))})
	}
	text := texttable.Format("ll", head)
	if s.Fit != nil {
		text = s.Fit.text()
	}
	text += "\n" + texttable.Format("ll", wrapRows([][]string{{"formula", s.Learner.Formula}, {"source", s.Learner.Source}}))
	text += s.columnsText(rows) + s.weightsText(rows) + s.pointsText(rows)
	return text
}

func (s *shownModel) columnsText(rows int) string {
	if len(s.Columns) == 0 {
		return ""
	}
	table := [][]string{{"column", "mean", "scale", "empty cells become"}}
	for _, in := range firstOf(s.Columns, rows) {
		switch {
		case in.Number != nil:
			table = append(table, []string{in.Name, fourDigits(in.Number.Mean), fourDigits(in.Number.Scale), fourDigits(in.Number.Fill)})
		case in.Text != nil:
			table = append(table, []string{in.Name, count(len(in.Text.Categories), "value"), "", in.Text.Fill})
		case in.Sparse != nil:
			table = append(table, []string{in.Name, count(in.Sparse.Columns, "feature"), "", "0"})
		case in.TFIDF != nil:
			table = append(table, []string{in.Name, count(in.TFIDF.Len(), "n-gram")})
		default:
			table = append(table, []string{in.Name, string(in.Raw) + "s"})
		}
	}
	return "\n" + texttable.Format("lrrl", table) + omittedText(len(s.Columns), rows, "column")
}

func (s *shownModel) weightsText(rows int) string {
	if len(s.Weights) == 0 {
		if s.Unlisted != "" {
			return "\nNot listed: " + s.Unlisted + "\n"
		}
		return ""
	}
	outputs := s.outputs(len(s.Intercept))
	var table [][]string
	align := "l"
	if len(outputs) == 1 {
		table, align = [][]string{{"feature", "standardized", "raw units"}, {"(intercept)", fourDigits(s.Intercept[0]), fourDigits(s.RawIntercept[0])}}, "lrr"
	} else {
		table = [][]string{append([]string{"feature, standardized"}, outputs...), {"(intercept)"}}
		for j := range outputs {
			align += "r"
			table[1] = append(table[1], fourDigits(s.Intercept[j]))
		}
	}
	for _, w := range firstOf(s.Weights, rows) {
		line := []string{quoteIfNeeded(w.Feature)}
		for j := range outputs {
			line = append(line, fourDigits(w.Standardized[j]))
		}
		if len(outputs) == 1 {
			line = append(line, fourDigits(w.Raw[0]))
		}
		table = append(table, line)
	}
	return "\n" + texttable.Format(align, table) + omittedText(len(s.Weights), rows, "feature")
}

// outputs returns the names of the coefficient columns that fit in a line.
func (s *shownModel) outputs(n int) []string {
	const widest = 6
	names := s.Targets
	switch {
	case s.Learner.Name == "svc" && len(s.Classes) > 2: // each decision value is about a pair of classes, and predicts the second one if it is positive
		names = nil
		for a, first := range s.Classes {
			for _, second := range s.Classes[a+1:] {
				names = append(names, second+", not "+first)
			}
		}
	case len(s.Classes) == n:
		names = s.Classes
	}
	var list []string
	for j := range min(n, widest) {
		name := fmt.Sprintf("output %d", j+1)
		if len(names) == n {
			name = names[j]
		}
		list = append(list, name)
	}
	return list
}

func (s *shownModel) pointsText(rows int) string {
	if len(s.Points) == 0 {
		return ""
	}
	var head []string
	align := ""
	coefs := 0
	if c := s.Points[0].Coef; c != nil {
		coefs = min(len(c), 6)
		for j := range coefs {
			name := "coefficient"
			if coefs > 1 {
				name += " " + strconv.Itoa(j+1)
			}
			head, align = append(head, name), align+"r"
		}
	}
	names, cells := s.cells, len(s.cells)
	shownCells, width := 0, 0
	for shownCells < cells && width < maxWidth {
		width += 2 + max(len(names[shownCells]), 9)
		head, align = append(head, names[shownCells]), align+"r"
		shownCells++
	}
	table := [][]string{head}
	for _, p := range firstOf(s.Points, rows) {
		var line []string
		for _, v := range p.Coef[:coefs] {
			line = append(line, fourDigits(v))
		}
		table = append(table, append(line, p.cells[:shownCells]...))
	}
	text := "\n"
	if len(s.Weights) == 0 && len(s.Intercept) == 1 {
		text += "intercept  " + fourDigits(s.Intercept[0]) + "\n\n"
	}
	text += texttable.Format(align, table)
	if shownCells < cells {
		text += fmt.Sprintf("… and %s; --json prints them.\n", count(cells-shownCells, "more column"))
	}
	return text + omittedText(len(s.Points), rows, "point")
}

// firstOf returns the first n elements of a list, or the whole list if n is 0.
func firstOf[T any](list []T, n int) []T {
	if n == 0 {
		return list
	}
	return list[:min(n, len(list))]
}

// omittedText returns a phrase with the number of elements that firstOf omitted.
func omittedText(n, rows int, word string) string {
	if rows == 0 || n <= rows {
		return ""
	}
	return fmt.Sprintf("… and %s; --rows 0 prints all.\n", count(n-rows, "more "+word))
}

// savedReport is the part of a fitReport that is saved with the model. It has no times: equal fits give equal files.
type savedReport struct {
	Report fitReport       `json:"report"`
	Order  []string        `json:"order"`
	Facts  []learners.Fact `json:"facts"`
}

// savedJSON returns the report for the file of the model.
func (r fitReport) savedJSON() json.RawMessage {
	s := savedReport{r, r.order, r.facts}
	s.Report.Facts, s.Report.Seconds, s.Report.Planned, s.Report.Model = nil, fitSeconds{}, 0, ""
	s.Report.Used = process.Used{}
	text, err := json.Marshal(s)
	if err != nil {
		return nil // a value in the report is not finite: the model is saved without the report
	}
	return text
}

func (s savedReport) report() *fitReport {
	r := s.Report
	r.order, r.facts, r.Facts = s.Order, s.Facts, map[string]any{}
	for i, f := range r.facts {
		if v, ok := f.Value.(float64); ok && v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			r.facts[i].Value = int(v) // JSON does not distinguish integers from other numbers
		}
		r.Facts[f.Key()] = f.Value
	}
	return &r
}

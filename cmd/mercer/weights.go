package main

import (
	"context"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/solvers"
)

// weightFlags are the flags for the weights of rows: a column of weights, and weights of classes.
type weightFlags struct {
	weight  string
	classes []string // values of --class-weight: balanced, or CLASS=W for some classes
}

const balanced = "balanced"

func (f *weightFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.weight, "weight", "", "`COLUMN` of the weights of the rows, finite numbers ≥ 0: a row of weight w counts as w rows")
	flags.StringSliceVar(&f.classes, "class-weight", nil, "weights of the classes, which multiply the weights of the rows: balanced means n/(k n_c) for n rows and k classes of n_c rows each; `CLASS=W,…` gives weights, and 1 to all other classes")
}

func (f *weightFlags) check() error {
	if slices.Equal(f.classes, []string{balanced}) {
		return nil
	}
	var seen []string
	for _, text := range f.classes {
		sep := strings.LastIndex(text, "=")
		if sep < 0 {
			return usagef("--class-weight: want %s, or CLASS=W for each of some classes, got %q", balanced, text)
		}
		name, number := strings.TrimSpace(text[:sep]), text[sep+1:]
		w, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		switch {
		case err != nil || !(w > 0) || math.IsInf(w, 1):
			return usagef("--class-weight: the weight of a class must be a finite number > 0, got %q", text)
		case slices.Contains(seen, name):
			return usagef("--class-weight: class %q is given twice", name)
		}
		seen = append(seen, name)
	}
	return nil
}

// classFactors returns a weight for each class in names, or nil without --class-weight. totals holds the sums of
// the weights of the rows of each class.
func (f *weightFlags) classFactors(names []string, totals []float64) ([]float64, error) {
	if len(f.classes) == 0 {
		return nil, nil
	}
	if len(names) == 0 {
		return nil, usagef("--class-weight: needs a target of classes: texts, or numbers with --task classification")
	}
	factors := slices.Repeat([]float64{1}, len(names))
	if f.classes[0] == balanced {
		sum, present := 0.0, 0.0
		for _, w := range totals {
			if sum += w; w > 0 {
				present++
			}
		}
		for k, w := range totals {
			if w > 0 {
				factors[k] = sum / (present * w)
			}
		}
		return factors, nil
	}
	for _, text := range f.classes {
		sep := strings.LastIndex(text, "=")
		name := strings.TrimSpace(text[:sep])
		k := slices.IndexFunc(names, func(class string) bool { return sameLabel(class, name) })
		if k < 0 {
			return nil, usagef("--class-weight: no class is called %q%s; the classes are: %s", name, didYouMean("", name, names), strings.Join(names[:min(len(names), maxShownClasses)], ", "))
		}
		factors[k], _ = strconv.ParseFloat(strings.TrimSpace(text[sep+1:]), 64)
	}
	return factors, nil
}

// sameLabel reports whether a class label equals a text. Two numbers are compared as numbers.
func sameLabel(class, text string) bool {
	v, err := strconv.ParseFloat(class, 64)
	w, err2 := strconv.ParseFloat(text, 64)
	return class == text || err == nil && err2 == nil && v == w
}

// reweight returns a copy of the weights of rows, each multiplied by the weight of the row's class. nil weights are
// all 1. y holds the classes as indices of names.
func (f *weightFlags) reweight(weights []float64, names []string, y *mat.Dense) ([]float64, error) {
	if len(f.classes) == 0 {
		return weights, nil
	}
	var class []float64
	if len(names) > 0 {
		class = mat.Col(nil, 0, y)
	}
	totals := make([]float64, len(names))
	for i, k := range class {
		totals[int(k)] += weightAt(weights, i)
	}
	factors, err := f.classFactors(names, totals)
	if err != nil {
		return nil, err
	}
	product := make([]float64, len(class))
	for i, k := range class {
		product[i] = weightAt(weights, i) * factors[int(k)]
	}
	return product, nil
}

// weighted holds samples that are read in passes, with factors for the weights of each class.
type weighted struct {
	solvers.Rows
	factors []float64
}

// reweightRows is the method reweight for samples read in passes. --class-weight balanced takes an extra pass.
func (f *weightFlags) reweightRows(ctx context.Context, data solvers.Rows, names []string) (solvers.Rows, error) {
	if len(f.classes) == 0 {
		return data, nil
	}
	totals := make([]float64, len(names))
	if f.classes[0] == balanced && len(names) > 0 {
		err := data.Pass(ctx, false, func(b solvers.Block) error {
			for i := range b.Y.Rows {
				totals[int(b.Y.Row(i)[0])] += weightAt(b.Weights, i)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	factors, err := f.classFactors(names, totals)
	return weighted{data, factors}, err
}

func (w weighted) Pass(ctx context.Context, keyed bool, use func(b solvers.Block) error) error {
	return w.Rows.Pass(ctx, keyed, w.reweight(use))
}

// reweight returns a function that multiplies the weights of a block by the weights of the classes, and calls use.
func (w weighted) reweight(use func(b solvers.Block) error) func(b solvers.Block) error {
	return func(b solvers.Block) error {
		weights := make([]float64, b.Y.Rows)
		for i := range weights {
			weights[i] = weightAt(b.Weights, i) * w.factors[int(b.Y.Row(i)[0])]
		}
		b.Weights = weights
		return use(b)
	}
}

// weightAt returns the weight of a row. nil weights are all 1.
func weightAt(weights []float64, row int) float64 {
	if weights == nil {
		return 1
	}
	return weights[row]
}

// weightsAt returns the weights of the rows with the given indices.
func weightsAt(weights []float64, rows []int) []float64 {
	if weights == nil {
		return nil
	}
	selected := make([]float64, len(rows))
	for i, row := range rows {
		selected[i] = weights[row]
	}
	return selected
}

// scoreWeights returns the rows of t from which a score is computed. For a model fitted with weights, these are the
// rows of positive weight, with their weights and the name of the weight column. If t does not have this column,
// scoreWeights prints a notice, and returns all rows and no weights, as for a model fitted without weights.
func (a *app) scoreWeights(enc *dataset.Encoder, t *dataset.Table) (rows *dataset.Table, weights []float64, column string, err error) {
	if enc.Weight == "" || !slices.Contains(t.Names(), enc.Weight) {
		a.noWeights(enc, t.Source)
		return t, nil, "", nil
	}
	rows, weights, err = dataset.Rules{Weight: enc.Weight}.Weighted(t)
	return rows, weights, enc.Weight, err
}

// noWeights prints a notice if the model was fitted with weights but the table has none.
func (a *app) noWeights(enc *dataset.Encoder, source string) {
	if enc.Weight != "" {
		a.notice("%s: has no column %.60q of weights; every row has the weight 1", source, enc.Weight)
	}
}

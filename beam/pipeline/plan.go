package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/beam/sums"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// Plan is what all workers need to know to sum their pieces.
type Plan struct {
	Encoder     []byte // a dataset.Encoder, JSON
	Rows        int64
	Features    int
	Targets     int          // columns of y: of K > 2 classes K, otherwise one for each target column
	Bases       []sums.Basis // one for each kernel
	Kernels     []string     // of the bases; "" of ridge
	TargetShift []float64    // nil without an intercept
}

// sampleRows is how many rows are drawn at least: for medians and the distance.
const (
	sampleRows = 4096
	sigmaRows  = 500
)

// keep is the number of rows in the sample.
func (p Params) keep() int {
	if p.Learner == "nystrom-ridge" {
		return max(sampleRows, p.Functions)
	}
	return sampleRows
}

// planOf makes the plan.
func planOf(ctx context.Context, p Params, c *Census) (*Plan, error) {
	if c.Rows == 0 {
		return nil, fmt.Errorf("pipeline: there is no row in %s", strings.Join(p.Inputs, ", "))
	}
	enc, err := c.encoder(ctx, p)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(enc)
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	plan := &Plan{Encoder: text, Rows: c.Rows, Features: len(enc.FeatureNames()), Targets: columnsOf(enc)}
	if p.Intercept {
		plan.TargetShift = c.targetMeans(enc)
	}
	if p.Learner == "ridge" {
		var shift []float64
		if p.Intercept {
			shift = c.featureMeans(enc)
		}
		plan.Bases, plan.Kernels = []sums.Basis{sums.LinearBasis(plan.Features, shift)}, []string{""}
		return plan, nil
	}
	if p.Functions == 0 { // as many as solvers take, up to a limit
		p.Functions = max(1, int(min(10*math.Sqrt(float64(c.Rows)), mostFunctions)))
	}
	x, err := c.sampled(p, enc)
	if err != nil {
		return nil, err
	}
	plan.Kernels = p.Kernels
	if len(plan.Kernels) == 0 {
		some := solvers.Different(hostOf(x.Slice(0, min(x.RawMatrix().Rows, sigmaRows), 0, plan.Features).(*mat.Dense)))
		sigma, err := learners.DefaultSigma(ctx, mat.NewDense(some.Rows, some.Cols, some.Data), nil, p.Seed)
		if err != nil {
			return nil, fmt.Errorf("pipeline: %w", err)
		}
		plan.Kernels = []string{kernels.Gaussian{Sigma: sigma}.String()}
	}
	for _, text := range plan.Kernels {
		k, err := kernels.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("pipeline: %w", err)
		}
		basis, err := p.basis(ctx, k, x)
		if err != nil {
			return nil, err
		}
		if err := basis.Check(); err != nil {
			return nil, fmt.Errorf("pipeline: %w", err)
		}
		plan.Bases = append(plan.Bases, basis)
	}
	return plan, nil
}

// basis is that of one kernel; x is the sample.
func (p Params) basis(ctx context.Context, k kernels.Kernel, x *mat.Dense) (sums.Basis, error) {
	rows, d := x.Dims()
	if p.Learner == "fourier-ridge" {
		return sums.FourierBasis(ctx, k, d, p.Functions, p.Orthogonal, p.Seed)
	}
	return sums.CentersBasis(k, solvers.Different(hostOf(x.Slice(0, min(rows, p.Functions), 0, d).(*mat.Dense)))), nil
}

// columnsOf is the number of columns of y.
func columnsOf(enc *dataset.Encoder) int {
	if k := len(enc.Labels); k > 2 {
		return k
	}
	return len(enc.Outputs)
}

// encoder is what dataset.Learn would learn from all rows: means and deviations to
// rounding, categories exactly; the median that stands for missing numbers is that
// of their counts where they have few values, and of the sample where not.
func (c *Census) encoder(ctx context.Context, p Params) (*dataset.Encoder, error) {
	e := &dataset.Encoder{Outputs: slices.Clone(p.Targets), RefuseMissing: p.RefuseMissing, NAValues: p.Dialect.Markers(), Decimal: p.Dialect.Decimal, Thousands: p.Dialect.Thousands}
	for _, name := range p.Targets {
		column := c.Columns[name]
		if column == nil {
			return nil, fmt.Errorf("pipeline: %s has no target column %q; it has %s", c.First.Path, name, some(c.Names))
		}
		if column.Missing > 0 {
			missing := fmt.Errorf("pipeline: the target %q is missing in %d rows: give it a value or drop the rows", name, column.Missing)
			return nil, column.FirstMissing.fault(ctx, missing, func(t *dataset.Table) error { return missingIn(t, name) })
		}
		if p.Classify {
			labels, err := column.labels(name, p.Dialect)
			if err != nil {
				return nil, err
			}
			e.Labels = labels
		} else if column.Texts {
			texts := fmt.Errorf("pipeline: the target %q has cells that are no numbers", name)
			texts = column.FirstText.fault(ctx, texts, func(t *dataset.Table) error { return textIn(t, name) })
			return nil, fmt.Errorf("%w; to learn classes, say so", texts)
		}
	}
	for _, name := range c.Names {
		if slices.Contains(p.Targets, name) {
			continue
		}
		in, err := c.input(ctx, p, name)
		if err != nil {
			return nil, err
		}
		e.Inputs = append(e.Inputs, *in)
	}
	if err := e.Check(); err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	return e, nil
}

// input learns one column.
func (c *Census) input(ctx context.Context, p Params, name string) (*dataset.Input, error) {
	column := c.Columns[name]
	if p.RefuseMissing && column.Missing > 0 {
		missing := fmt.Errorf("pipeline: column %q: %d cells are missing, which was refused: give them values or drop the rows", name, column.Missing)
		return nil, column.FirstMissing.fault(ctx, missing, func(t *dataset.Table) error { return missingIn(t, name) })
	}
	if column.Texts {
		return column.categories(ctx, name)
	}
	n, rule := column.moments().Number(c.median(name), float64(column.Missing), !p.NoStandardize)
	if rule != "" {
		return nil, fmt.Errorf("pipeline: column %q %s", name, rule)
	}
	return &dataset.Input{Name: name, Number: n}, nil
}

// textIn is the fault of the first cell of a column that is no number.
func textIn(t *dataset.Table, name string) error {
	_, err := t.Numbers(name)
	return err
}

// missingIn is the fault of the first cell of a column that is missing.
func missingIn(t *dataset.Table, name string) error {
	at := -1
	if numbers, err := t.Numbers(name); err == nil {
		at = slices.IndexFunc(numbers, math.IsNaN)
	} else if texts, err := t.Texts(name); err == nil {
		at = slices.Index(texts, "")
	}
	if at < 0 {
		return nil
	}
	alone := dataset.Encoder{Inputs: []dataset.Input{{Name: name, Number: &dataset.Number{Scale: 1}}}, RefuseMissing: true}
	_, err := alone.Features(t.Select([]int{at}))
	return err
}

// categories learns a column of texts.
func (c *Column) categories(ctx context.Context, name string) (*dataset.Input, error) {
	if c.Over {
		many := fmt.Errorf("pipeline: column %q has texts", name)
		many = c.FirstText.fault(ctx, many, func(t *dataset.Table) error { return textIn(t, name) })
		return nil, fmt.Errorf("%w; the column has more than %d different cells, too many to be categories", many, dataset.MaxCategories)
	}
	x := &dataset.Text{}
	for text := range c.Counts {
		x.Categories = append(x.Categories, text)
	}
	slices.Sort(x.Categories)
	for _, text := range x.Categories {
		if x.Fill == "" || c.Counts[text] > c.Counts[x.Fill] {
			x.Fill = text
		}
	}
	return &dataset.Input{Name: name, Text: x}, nil
}

// labels are the classes of a target, in the order of dataset.Encoder.Classes.
func (c *Column) labels(name string, d dataset.Dialect) ([]string, error) {
	if c.Over {
		return nil, fmt.Errorf("pipeline: the target %q has more than %d different values: too many to be classes", name, dataset.MaxCategories)
	}
	var list []string
	for text := range c.Counts {
		list = append(list, text)
	}
	slices.Sort(list)
	// A table of the labels alone, each often enough: the order is that of dataset.
	t, err := d.NewTable("", dataset.Texts(name, repeat(list, 10)), dataset.Numbers("row", make([]float64, 10*len(list))))
	if err != nil {
		return nil, fmt.Errorf("pipeline: the target %q: %w", name, err)
	}
	e, err := dataset.Learn(t, dataset.Rules{Targets: []string{name}, Labels: true})
	if err != nil {
		return nil, fmt.Errorf("pipeline: the target %q: %w", name, err)
	}
	if len(e.Labels) < 2 {
		return nil, fmt.Errorf("pipeline: the target %q has one class only, %q; at least two are needed", name, e.Labels)
	}
	return e.Labels, nil
}

func repeat(list []string, times int) []string {
	var all []string
	for range times {
		all = append(all, list...)
	}
	return all
}

// moments are those of the numbers: Σv²/n − mean² from sums of 106 bits, so that an offset
// of 10⁷ deviations costs no digit that float64 has.
func (c *Column) moments() dataset.Moments {
	m := dataset.Moments{N: float64(c.Present), Low: c.Low, High: c.High}
	if m.N == 0 {
		return m
	}
	wide := func() *big.Float { return new(big.Float).SetPrec(200) }
	n := wide().SetInt64(c.Present)
	sum, squares := wide(), wide()
	for i, u := range units {
		for power, total := range []*big.Float{sum, squares} {
			high, low := c.Sums.Exact(2*i + power)
			v := wide().SetFloat64(high)
			v.Add(v, wide().SetFloat64(low))
			total.Add(total, v.SetMantExp(v, (power+1)*u.exponent))
		}
	}
	sum.Quo(sum, n)
	squares.Quo(squares, n)
	squares.Sub(squares, wide().Mul(sum, sum))
	m.Mean, _ = sum.Float64()
	if squares.Sign() > 0 {
		m.SD, _ = squares.Sqrt(squares).Float64()
	}
	return m
}

// median is that of the numbers of a column, 0 where there is none.
func (c *Census) median(name string) float64 {
	column := c.Columns[name]
	if column.Present == 0 {
		return 0
	}
	var values []float64
	if !column.Over {
		type counted struct {
			value float64
			n     int64
		}
		var list []counted
		for text, n := range column.Counts {
			if v, err := strconv.ParseFloat(text, 64); err == nil {
				list = append(list, counted{v, n})
			}
		}
		slices.SortFunc(list, func(a, b counted) int {
			if a.value < b.value {
				return -1
			}
			return 1
		})
		at := func(k int64) float64 {
			for _, e := range list {
				if k -= e.n; k < 0 {
					return e.value
				}
			}
			return list[len(list)-1].value
		}
		low, high := at((column.Present-1)/2), at(column.Present/2)
		return low + (high-low)/2
	}
	j := slices.Index(slices.Sorted(slices.Values(c.Names)), name)
	for _, row := range c.Sample {
		if v, err := strconv.ParseFloat(row.Cells[j], 64); err == nil {
			values = append(values, v)
		}
	}
	if len(values) == 0 { // none of few values was drawn
		return column.moments().Mean
	}
	slices.Sort(values)
	low, high := values[(len(values)-1)/2], values[len(values)/2]
	return low + (high-low)/2
}

// targetMeans are those of the columns of y.
func (c *Census) targetMeans(enc *dataset.Encoder) []float64 {
	means := make([]float64, columnsOf(enc))
	if enc.Labels == nil {
		for j, name := range enc.Outputs {
			means[j] = c.Columns[name].moments().Mean
		}
		return means
	}
	counts := make([]int64, len(enc.Labels))
	for text, n := range c.Columns[enc.Outputs[0]].Counts {
		if i := slices.Index(enc.Labels, strings.TrimSpace(text)); i >= 0 {
			counts[i] += n
		}
	}
	if len(means) == 1 {
		counts = counts[1:]
	}
	for j := range means {
		means[j] = 2*float64(counts[j])/float64(c.Rows) - 1
	}
	return means
}

// featureMeans are those of the features. They are taken out to keep digits, so
// they need not be exact.
func (c *Census) featureMeans(enc *dataset.Encoder) []float64 {
	var means []float64
	for _, in := range enc.Inputs {
		column := c.Columns[in.Name]
		if n := in.Number; n != nil {
			known := float64(column.Present) / float64(column.Present+column.Missing)
			means = append(means, (known*column.moments().Mean+(1-known)*n.Fill-n.Mean)/n.Scale)
			continue
		}
		for _, text := range in.Text.Categories {
			n := column.Counts[text]
			if text == in.Text.Fill {
				n += column.Missing
			}
			means = append(means, float64(n)/float64(c.Rows))
		}
	}
	return means
}

// sampled are the features of the sample, in the order of the priorities.
func (c *Census) sampled(p Params, enc *dataset.Encoder) (*mat.Dense, error) {
	names := slices.Sorted(slices.Values(c.Names))
	var columns []dataset.Column
	for j, name := range names {
		if slices.Contains(p.Targets, name) {
			continue
		}
		cells := make([]string, len(c.Sample))
		for i, row := range c.Sample {
			cells[i] = row.Cells[j]
		}
		columns = append(columns, dataset.Texts(name, cells))
	}
	t, err := p.Dialect.NewTable("the sample", columns...)
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	x, err := enc.Features(t)
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	return x, nil
}

package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/beam/sums"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/solvers"
)

// Plan holds what every worker needs to sum its pieces.
type Plan struct {
	Encoder     []byte // a dataset.Encoder, JSON
	Rows        int64
	Features    int
	Targets     int          // columns of y: K for K > 2 classes, otherwise one for each target column
	Bases       []sums.Basis // one per kernel
	Kernels     []string     // of the bases; "" for ridge
	TargetShift []float64    // nil without an intercept
}

// sampleRows is the minimum size of the sample, from which medians and distances are computed.
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
	if p.Functions == 0 { // the default of package solvers, up to a limit
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

// basis returns the basis of one kernel; x is the sample.
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

// encoder returns the encoder that dataset.Learn would learn from all rows: categories are exact,
// means and standard deviations agree up to rounding. The median that replaces missing numbers is
// computed from their counts if the column has at most dataset.MaxCategories distinct values,
// otherwise from the sample. Errors are the same as those of Learn.
func (c *Census) encoder(ctx context.Context, p Params) (*dataset.Encoder, error) {
	if err := (dataset.Rules{Targets: p.Targets, Drop: p.Drop}).CheckNames(strings.Join(p.Inputs, ", "), c.Names); err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	e := &dataset.Encoder{Outputs: slices.Clone(p.Targets), Dropped: slices.Clone(p.Drop), RefuseMissing: p.RefuseMissing, NAValues: p.Dialect.Markers(), Decimal: p.Dialect.Decimal, Thousands: p.Dialect.Thousands}
	for _, name := range p.Targets {
		column := c.Columns[name]
		if column == nil {
			return nil, fmt.Errorf("pipeline: %s has no target column %q; it has %s", c.First.Path, name, some(c.Names))
		}
		if p.Classify {
			labels, fault := column.Classes(c.Rows, true) // as mercer fit --task classification does
			if fault != nil {
				return nil, c.fault(ctx, p, name, fault, column.FirstMissing, column.FirstNotFinite, column.FirstSpelled)
			}
			if len(labels) < 2 {
				return nil, fmt.Errorf("pipeline: the target %q has only one class, %q; at least two are needed", name, labels)
			}
			e.Labels = labels
			continue
		}
		if column.Missing+column.Texts+column.NotFinite+column.Spelled > 0 {
			err := c.fault(ctx, p, name, dataset.FirstNoTarget(), column.FirstMissing, column.FirstText, column.FirstNotFinite, column.FirstSpelled)
			if column.Numbers == 0 {
				err = fmt.Errorf("%w; to learn classes, say so", err)
			}
			return nil, err
		}
	}
	for _, name := range c.Names {
		if !p.isFeature(name) {
			continue
		}
		in, err := c.input(ctx, p, name)
		if err != nil {
			return nil, err
		}
		e.Inputs = append(e.Inputs, *in)
	}
	if len(e.Inputs) == 0 {
		return nil, c.refused(p, "", "has no column except the target; at least one feature is needed")
	}
	if err := e.Check(); err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	return e, nil
}

// input learns one column. It makes its decisions in the same order as dataset.Learn.
func (c *Census) input(ctx context.Context, p Params, name string) (*dataset.Input, error) {
	column := c.Columns[name]
	example := func() string {
		var found *dataset.Error
		if !errors.As(c.fault(ctx, p, name, dataset.FirstText(""), column.FirstText), &found) {
			return ""
		}
		return found.Value
	}
	faulty := column.FirstText
	if column.Spelled > 0 {
		faulty = column.FirstSpelled
	}
	x, fault := column.Categories(c.Rows, example)
	switch {
	case fault != nil:
		return nil, c.fault(ctx, p, name, fault, faulty)
	case x == nil && column.NotFinite > 0:
		return nil, c.fault(ctx, p, name, dataset.FirstNotNumber(), column.FirstNotFinite)
	case p.RefuseMissing && column.Missing > 0:
		return nil, c.fault(ctx, p, name, dataset.FirstMissing(), column.FirstMissing)
	case x != nil:
		return &dataset.Input{Name: name, Text: x}, nil
	}
	n, rule := column.moments().Number(c.median(name), float64(column.Missing), !p.NoStandardize)
	if rule != "" {
		return nil, c.refused(p, name, rule)
	}
	return &dataset.Input{Name: name, Number: n}, nil
}

// refused returns the error for a rule that a column breaks, or the whole table if name is empty.
func (c *Census) refused(p Params, name, rule string) error {
	return fmt.Errorf("pipeline: %w", &dataset.Error{Source: strings.Join(p.Inputs, ", "), Column: name, Rule: rule})
}

// fault returns the error for the first faulty cell of a column, which is in the first of the
// pieces. It reads that piece again. It omits advice of package dataset for which a pipeline has no
// parameter.
func (c *Census) fault(ctx context.Context, p Params, name string, f *dataset.Fault, pieces ...Piece) error {
	if f.Rule() != "" {
		return c.refused(p, name, f.Rule())
	}
	var first Piece
	for _, piece := range pieces {
		first = least(first, piece)
	}
	var found *dataset.Error
	err := first.tables(ctx, func(t *dataset.Table) error { return f.In(t, name) })
	switch {
	case errors.As(err, &found):
		return fmt.Errorf("pipeline: %w", message.Within(found, parameter))
	case err != nil:
		return fmt.Errorf("pipeline: %w", err)
	}
	return fmt.Errorf("pipeline: %s has changed since it was first read", first.Path)
}

// parameter returns the pipeline parameter for a name in the advice of package dataset, or "" if
// there is none. The parameters in Params.Dialect are supported.
func parameter(name string) string {
	if name == "categorical" || name == "task=classification" {
		return ""
	}
	return name
}

// moments returns the moments of the numbers, with Σv²/n − mean² computed from sums of 106 bits. An
// offset of 10⁷ standard deviations therefore costs no digit of the float64 result.
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

// median returns the median of the numbers of a column, or 0 if it has none.
func (c *Census) median(name string) float64 {
	column := c.Columns[name]
	if column.Present == 0 {
		return 0
	}
	var values []float64
	if !column.Many {
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
		return middle(at((column.Present-1)/2), at(column.Present/2))
	}
	j := slices.Index(slices.Sorted(slices.Values(c.Names)), name)
	for _, row := range c.Sample {
		if v, err := strconv.ParseFloat(row.Cells[j], 64); err == nil {
			values = append(values, v)
		}
	}
	if len(values) == 0 { // the sample missed every row that has a value
		return column.moments().Mean
	}
	slices.Sort(values)
	return middle(values[(len(values)-1)/2], values[len(values)/2])
}

// middle returns (a + b)/2 without overflow of the sum.
func middle(a, b float64) float64 {
	if m := (a + b) / 2; !math.IsInf(m, 0) {
		return m
	}
	return a/2 + b/2
}

// targetMeans returns the means of the columns of y.
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

// featureMeans returns the means of the features. They are subtracted only to avoid cancellation,
// so they need not be exact.
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

// sampled returns the features of the sampled rows, in the order of their priorities.
func (c *Census) sampled(p Params, enc *dataset.Encoder) (*mat.Dense, error) {
	names := slices.Sorted(slices.Values(c.Names))
	var columns []dataset.Column
	for j, name := range names {
		if !p.isFeature(name) {
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

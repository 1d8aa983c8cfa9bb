package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/beam/internal/sums"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/learners"
)

// fitPlan holds what every worker needs to sum its pieces.
type fitPlan struct {
	Encoder     []byte // a dataset.Encoder as JSON
	Rows        int64
	Features    int
	Targets     int          // number of columns of y: K for K > 2 classes, otherwise one for each target column
	Bases       []sums.Basis // one basis per kernel
	Kernels     []string     // the kernel of each basis; "" for ridge
	TargetShift []float64    // the shifts of the targets; nil without an intercept
}

// sampleRows is the minimum number of rows in the sample.
const (
	sampleRows = 4096
	sigmaRows  = 500
)

// sampleSize returns the number of rows in the sample.
func (p Params) sampleSize() int {
	if p.Learner == "nystrom-ridge" {
		return max(sampleRows, p.Functions)
	}
	return sampleRows
}

func planOf(ctx context.Context, p Params, c *census) (*fitPlan, error) {
	if c.Summary.Rows == 0 {
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
	plan := &fitPlan{Encoder: text, Rows: c.Summary.Rows, Features: enc.Width(), Targets: columnsOf(enc)}
	x, y, err := c.sampled(p, enc)
	if err != nil {
		return nil, err
	}
	if p.Intercept {
		plan.TargetShift = means(y)
	}
	if p.Learner == "ridge" {
		var shift []float64
		if p.Intercept {
			shift = means(hostOf(x))
		}
		plan.Bases, plan.Kernels = []sums.Basis{sums.LinearBasis(plan.Features, shift)}, []string{""}
		return plan, nil
	}
	if p.Functions == 0 { // the default of package solvers, but at most mostFunctions
		p.Functions = max(1, int(min(10*math.Sqrt(float64(c.Summary.Rows)), mostFunctions)))
	}
	plan.Kernels = p.Kernels
	if len(plan.Kernels) == 0 {
		distinct := stream.DistinctRows(hostOf(x.Slice(0, min(x.RawMatrix().Rows, sigmaRows), 0, plan.Features).(*mat.Dense)))
		sigma, err := learners.DefaultSigma(ctx, mat.NewDense(distinct.Rows, distinct.Cols, distinct.Data), nil, p.Seed)
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
		if p.Std && basis.Kind == sums.Centers {
			dev, err := device(p.Device)
			if err != nil {
				return nil, err
			}
			if basis, err = basis.Whitened(ctx, dev); err != nil {
				return nil, fmt.Errorf("pipeline: %w", err)
			}
		}
		plan.Bases = append(plan.Bases, basis)
	}
	return plan, nil
}

// basis returns the basis of one kernel; x is the sample.
func (p Params) basis(ctx context.Context, k kernels.Kernel, x *mat.Dense) (sums.Basis, error) {
	rows, d := x.Dims()
	if p.Learner == "fourier-ridge" {
		return sums.FourierBasis(ctx, k, d, p.Functions, p.Seed)
	}
	return sums.CentersBasis(k, stream.DistinctRows(hostOf(x.Slice(0, min(rows, p.Functions), 0, d).(*mat.Dense)))), nil
}

func columnsOf(enc *dataset.Encoder) int {
	if k := len(enc.Labels); k > 2 {
		return k
	}
	return len(enc.Outputs)
}

// encoder returns the encoder that dataset.Learn would learn from all rows, up to rounding. The median of a column
// with more than dataset.MaxCategories distinct values is that of the sample. The errors are those of Learn,
// without advice about parameters that a pipeline lacks.
func (c *census) encoder(ctx context.Context, p Params) (*dataset.Encoder, error) {
	e, err := c.Summary.Encoder(strings.Join(p.Inputs, ", "), p.Dialect, p.rules(), c.numbers)
	var dataErr *dataset.Error
	switch {
	case errors.As(err, &dataErr) && dataErr.Line+dataErr.Row > 0:
		err = fmt.Errorf("pipeline: %w", message.Within(withFileLine(ctx, err, dataErr.Source, dataErr.Offset), parameter))
		if !p.Classify && slices.Contains(p.Targets, dataErr.Column) && c.Summary.OnlyTexts(dataErr.Column) {
			err = fmt.Errorf("%w; to learn classes, set Classify", err)
		}
	case err != nil:
		err = fmt.Errorf("pipeline: %w", err)
	case len(e.Labels) == 1:
		err = fmt.Errorf("pipeline: the target %q has only one class, %q; at least two are needed", p.Targets[0], e.Labels)
	}
	return e, err
}

// parameter returns name, a parameter that package dataset advises to set, or "" if a pipeline has no such parameter.
func parameter(name string) string {
	if name == "categorical" || name == "task=classification" {
		return ""
	}
	return name
}

// numbers returns the numbers of a column in the sample; other cells are NaN.
func (c *census) numbers(name string) []float64 {
	j, _ := slices.BinarySearch(c.Cells, name)
	values := make([]float64, len(c.Sample))
	for i, row := range c.Sample {
		v, err := strconv.ParseFloat(row.Cells[j], 64)
		if err != nil {
			v = math.NaN()
		}
		values[i] = v
	}
	return values
}

// sampled returns the features and the targets of the sampled rows, in the order of their priorities.
func (c *census) sampled(p Params, enc *dataset.Encoder) (x *mat.Dense, y backend.Host[float64], err error) {
	var columns []dataset.Column
	for j, name := range c.Cells {
		if slices.Contains(p.Drop, name) {
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
		return nil, y, fmt.Errorf("pipeline: %w", err)
	}
	if x, err = enc.Features(t); err != nil {
		return nil, y, fmt.Errorf("pipeline: %w", err)
	}
	targets, err := enc.Targets(t)
	if err != nil {
		return nil, y, fmt.Errorf("pipeline: %w", err)
	}
	return x, signs(hostOf(targets), enc.Labels), nil
}

// means returns the means of the columns of a sample, by which features or targets are shifted to avoid cancellation.
func means(x backend.Host[float64]) []float64 {
	m := make([]float64, x.Cols)
	for i := range x.Rows {
		for j, v := range x.Row(i) {
			m[j] += v / float64(x.Rows)
		}
	}
	return m
}

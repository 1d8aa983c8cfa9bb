package main

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/modelfile"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/validate"
	"github.com/mercer-go/mercer/solvers"
)

// streamBytes is the approximate size of the features of one block of rows.
const streamBytes = 16 << 20

const streamHelp = "read the table in blocks of rows, for a table larger than the memory"

// extraResults selects the results to compute in addition to the predictions.
type extraResults struct {
	proba, std, bound, truth bool
	interval                 float64 // level of the prediction intervals; 0 means no intervals
	samples                  int     // number of functions to draw from the posterior distribution
	seed                     uint64  // seed of the draws
}

// modelOutput holds what a model computes for rows; a field that was not requested is nil.
type modelOutput struct {
	validate.Outcome
	variance *mat.Dense // variance of a new target in each row
	draws    []*mat.Dense
	bounds   *mat.Dense // proven bounds on the errors of the predicted values
	cover
	truth   *mat.Dense
	classes []string  // names of the classes; truth holds their indices
	weights []float64 // weights of the rows of truth; nil means all 1
	weight  string    // name of the column of the weights
}

// matrices returns pointers to the matrices of p, except draws. Row i of each matrix is for row i of the table.
func (p *modelOutput) matrices() []**mat.Dense {
	return []**mat.Dense{&p.Values, &p.Decision, &p.Proba, &p.variance, &p.bounds, &p.lower, &p.upper, &p.sets, &p.truth}
}

// add appends the rows of q to the rows of p. Arrays grow as in the builtin append.
func (p *modelOutput) add(q modelOutput) {
	added := q.matrices()
	for i, m := range p.matrices() {
		switch {
		case *added[i] == nil:
		case *m == nil:
			*m = mat.DenseCopyOf(*added[i])
		default:
			dst, src := (*m).RawMatrix(), (*added[i]).RawMatrix()
			for r := range src.Rows {
				dst.Data = append(dst.Data, src.Data[r*src.Stride:r*src.Stride+src.Cols]...)
			}
			*m = mat.NewDense(dst.Rows+src.Rows, dst.Cols, dst.Data)
		}
	}
}

// peakBytes returns the largest memory of p in bytes during a call of add, which copies each array to one of 5/4
// the size.
func (p *modelOutput) peakBytes() (bytes int64) {
	for _, m := range p.matrices() {
		if *m != nil {
			bytes += 9 * 8 * int64(len((*m).RawMatrix().Data)) / 4
		}
	}
	return bytes
}

// applyTo applies a model to encoded rows.
func (a *app) applyTo(ctx context.Context, dev backend.Device, b modelfile.Bundle, x mat.Matrix, w extraResults) (p modelOutput, err error) {
	if m, ok := b.Model.(learners.Bounded); w.bound && ok { // a model with bounds predicts numbers, not classes
		p.Values, p.bounds, err = m.PredictBound(ctx, dev, x)
	} else {
		p.Outcome, err = a.outcomes(ctx, dev, b.Model, x, w.proba)
	}
	if err != nil {
		return p, err
	}
	if m, ok := learners.As[learners.Uncertain](b.Model); w.std && ok { // one call for all rows, because each call may factor a matrix
		if p.variance, err = m.Variance(ctx, dev, x); err != nil {
			return p, err
		}
	}
	if m, ok := learners.As[learners.Sampler](b.Model); w.samples > 0 && ok {
		if p.draws, err = m.Sample(ctx, dev, x, w.samples, w.seed); err != nil {
			return p, err
		}
	}
	p.cover, err = a.coverOf(ctx, dev, b, x, p.Values, w.interval)
	return p, err
}

// apply applies a model to the table t. If t is nil, it reads the table from the file in blocks.
func (a *app) apply(ctx context.Context, dev backend.Device, b modelfile.Bundle, t *dataset.Table, file string, w extraResults, memory *budget) (out modelOutput, err error) {
	if t == nil {
		return a.applyToFile(ctx, dev, b, file, w, memory)
	}
	if err := memory.planEncoding(t, b.Encoder, "; use --stream"); err != nil {
		return out, err
	}
	var weights []float64
	weight := ""
	if !w.truth {
		b.Encoder = withoutTargets(b.Encoder)
	} else if t, weights, weight, err = a.scoreWeights(b.Encoder, t); err != nil {
		return out, err
	}
	x, truth, names, err := a.encodeScored(ctx, b, t)
	if err != nil {
		return out, err
	}
	if b.Objects == nil {
		a.reportOutOfRange(t.Source, b.Encoder.OutOfRange(nil, x))
	}
	out, err = a.applyTo(memory.fitting(ctx, &learners.Options{}), dev, b, x, w)
	out.truth, out.classes, out.weights, out.weight = truth, names, weights, weight
	return out, err
}

// withoutTargets returns an encoder that ignores the targets of rows.
func withoutTargets(e *dataset.Encoder) *dataset.Encoder {
	enc := *e
	enc.Outputs, enc.Labels, enc.Weight = nil, nil, ""
	return &enc
}

func (a *app) applyToFile(ctx context.Context, dev backend.Device, b modelfile.Bundle, file string, w extraResults, memory *budget) (out modelOutput, err error) {
	s, err := a.stream(file)
	if err != nil {
		return out, err
	}
	enc := *b.Encoder
	if !w.truth {
		enc = *withoutTargets(&enc)
	} else if names := s.Names(); names != nil && !slices.Contains(names, enc.Weight) {
		a.noWeights(&enc, file)
		enc.Weight = ""
	}
	out.weight = enc.Weight
	p := a.newProgress()
	defer p.close()
	p.report(solvers.Progress{Stage: "predict"})
	quiet := &app{stderr: a.stderr, quiet: true} // applies the model to one block without printing progress
	rows := max(1, streamBytes/(8*enc.Width()))
	work := memory.fitting(ctx, &learners.Options{})
	var outside []dataset.OutOfRange
	out.classes, err = s.ScoredBlocks(ctx, &enc, rows, func(x, y *mat.Dense, weights []float64, _ []uint64) error {
		if out.Values == nil {
			memory.blocks(x)
		}
		outside = enc.OutOfRange(outside, x)
		points, err := b.Points(file, x)
		if err != nil {
			return err
		}
		block, err := quiet.applyTo(work, dev, b, points, w)
		if y != nil { // the next block overwrites y
			block.truth = mat.DenseCopyOf(y)
		}
		out.add(block)
		memory.note(memory.data + out.peakBytes())
		out.weights = append(out.weights, weights...)
		return err
	})
	if err == nil {
		a.reportNewClasses(file, out.classes, len(enc.Labels), out.truth)
		a.reportUnknown(file, "row", s.Unknown())
		a.reportOutOfRange(file, outside)
	}
	return out, err
}

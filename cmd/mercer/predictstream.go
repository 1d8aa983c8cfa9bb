package main

import (
	"context"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/learners"
	"github.com/mercer-go/mercer/learners/modelfile"
	"github.com/mercer-go/mercer/solvers"
)

// streamBytes is about what the features of a block take that is predicted at
// once.
const streamBytes = 16 << 20

const streamHelp = "leave the table in its file and read it a block of rows at a time, for one larger than the memory"

// gathered are the rows of several matrices, one below the other.
type gathered struct {
	rows, cols int
	data       []float64
}

func (g *gathered) add(m *mat.Dense) {
	if m == nil {
		return
	}
	n, cols := m.Dims()
	g.rows, g.cols = g.rows+n, cols
	for i := range n {
		g.data = append(g.data, m.RawRowView(i)...)
	}
}

// dense is nil where nothing was added.
func (g *gathered) dense() *mat.Dense {
	if g.rows == 0 {
		return nil
	}
	return mat.NewDense(g.rows, g.cols, g.data)
}

// streamOutcomes applies a model to a table that stays in its file. Without truth
// the targets are not looked at and y is nil. each gets the rows of a block.
func (a *app) streamOutcomes(ctx context.Context, dev backend.Device, b modelfile.Bundle, file string, proba, truth bool, each func(x, values *mat.Dense) error) (o outcome, y *mat.Dense, err error) {
	s, err := a.stream(file)
	if err != nil {
		return o, nil, err
	}
	enc := *b.Encoder
	if !truth {
		enc.Outputs, enc.Labels = nil, nil
	}
	var values, decision, probabilities, targets gathered
	p := a.newProgress()
	defer p.close()
	p.report(solvers.Progress{Stage: "predict"})
	quiet := &app{stderr: a.stderr, quiet: true} // of the parts
	rows := max(1, streamBytes/(8*len(enc.FeatureNames())))
	err = s.Blocks(ctx, &enc, rows, func(x, yPart *mat.Dense) error {
		x, err := b.Points(file, x)
		if err != nil {
			return err
		}
		part, err := quiet.outcomes(ctx, dev, b.Model, x, proba)
		if err != nil {
			return err
		}
		values.add(part.values)
		decision.add(part.decision)
		probabilities.add(part.proba)
		targets.add(yPart)
		return each(x, part.values)
	})
	if err == nil {
		a.reportUnknown(file, "row", s.Unknown())
	}
	return outcome{values.dense(), decision.dense(), probabilities.dense()}, targets.dense(), err
}

// evaluateStream is the score of a model on a table that stays in its file.
func (a *app) evaluateStream(ctx context.Context, dev backend.Device, b modelfile.Bundle, file string, interval float64) (*score, error) {
	m := asClassifier(b.Model)
	b.Model = m
	var covers gatheredCover
	o, truth, err := a.streamOutcomes(ctx, dev, b, file, true, true, func(x, values *mat.Dense) error {
		return covers.of(ctx, a, dev, b, x, values, interval)
	})
	if err != nil {
		return nil, err
	}
	if k, ok := m.(novelty); ok {
		if err := k.checkTruth(truth); err != nil {
			return nil, err
		}
	}
	s, err := newScore(m, b.Encoder.Classes(), truth, o)
	if err == nil {
		s.setCoverage(covers.cover(), interval)
	}
	return s, err
}

// predictStream is what `mercer predict --stream` writes.
func (a *app) predictStream(ctx context.Context, f predictFlags, dev backend.Device, b modelfile.Bundle, file string) (predictions, error) {
	var variance gathered
	var covers gatheredCover
	o, _, err := a.streamOutcomes(ctx, dev, b, file, f.proba, false, func(x, values *mat.Dense) error {
		if m, ok := b.Model.(learners.Uncertain); f.std && ok {
			v, err := m.Variance(ctx, dev, x)
			if err != nil {
				return err
			}
			variance.add(v)
		}
		return covers.of(ctx, a, dev, b, x, values, f.interval)
	})
	if err != nil {
		return predictions{}, err
	}
	return newPredictions(f, b, o, variance.dense(), covers.cover())
}

package modelfile

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/gonum"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/kernels/gram"
	"github.com/mercer-go/mercer/kernels/objects"
	_ "github.com/mercer-go/mercer/kernels/strings" // registers its kernels
	_ "github.com/mercer-go/mercer/kernels/trees"   // registers its kernels
	"github.com/mercer-go/mercer/learners"
)

// TrainingFeatures returns the samples for fitting a learner to a table: the encoded columns, as a backend.CSR if the
// encoder is sparse. For a Gram matrix, x has the points of kernels.Precomputed, which must be the learner's kernel.
// For a column of texts or trees, k is their kernel, x also has points of kernels.Precomputed, and the caller must
// store trained in the model's Bundle. For any other table, k must be nil, o is ignored, and trained is nil.
func TrainingFeatures(ctx context.Context, e *dataset.Encoder, t *dataset.Table, k objects.Kernel, o objects.Options) (x mat.Matrix, trained *Objects, err error) {
	if k != nil {
		texts, err := e.Texts(t)
		if err != nil {
			return nil, nil, err
		}
		h, err := objects.TrainingPoints(ctx, k, texts, o)
		x, err = points(ctx, t.Source, h, err)
		return x, &Objects{Kernel: k.String(), Training: texts}, err
	}
	if x, err = e.Encode(t); err != nil || !e.Gram {
		return x, nil, err
	}
	h, err := gram.TrainingPoints(x)
	x, err = points(ctx, t.Source, h, err)
	return x, nil, err
}

// Features returns the model's samples for the rows of a table: the encoded columns, as a
// backend.CSR if the encoder is sparse. For a Gram matrix, or a column of texts or trees, the
// samples are the points of kernels.Precomputed. o is used only for texts and trees.
func (b Bundle) Features(ctx context.Context, t *dataset.Table, o objects.Options) (mat.Matrix, error) {
	if b.Encoder == nil {
		return nil, errors.New("modelfile: the model was saved without an encoder, so that it cannot read a table: give it a matrix of features")
	}
	if b.Objects == nil {
		x, err := b.Encoder.Encode(t)
		if err != nil {
			return nil, err
		}
		return b.Points(t.Source, x)
	}
	k, err := objects.Parse(b.Objects.Kernel)
	if err != nil {
		return nil, err
	}
	texts, err := b.Encoder.Texts(t)
	if err != nil {
		return nil, err
	}
	h, err := objects.OtherPoints(ctx, k, texts, b.Objects.Training, o)
	return points(ctx, t.Source, h, err)
}

// Points returns the model's samples for encoded columns: the points of kernels.Precomputed if the
// columns are kernel values, and otherwise the columns. source is the table's name in errors.
func (b Bundle) Points(source string, x mat.Matrix) (mat.Matrix, error) {
	if b.Encoder == nil || !b.Encoder.Gram {
		return x, nil
	}
	k, err := gonum.Host("K", x)
	if err != nil {
		return nil, err
	}
	h, err := gram.OtherPoints(k, nil)
	return points(context.Background(), source, h, err)
}

// points returns h as a matrix. source is the table's name in the error.
func points(ctx context.Context, source string, h backend.Host[float64], err error) (mat.Matrix, error) {
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil && source != "":
		return nil, fmt.Errorf("%s: %w", source, err)
	case err != nil:
		return nil, err
	}
	return gonum.Dense(h)
}

// Complete returns b with the kernel values among the training texts or trees, which a file omits. learners.Uncertain
// and learners.Jackknife need these values, but Predict does not. Complete returns models of other input unchanged.
func (b Bundle) Complete(ctx context.Context, o objects.Options) (Bundle, error) {
	if b.Objects == nil {
		return b, nil
	}
	k, err := objects.Parse(b.Objects.Kernel)
	if err != nil {
		return b, err
	}
	training, err := objects.TrainingPoints(ctx, k, b.Objects.Training, o)
	if err != nil {
		return b, err
	}
	state := b.Model.State()
	arrays := maps.Clone(state.Arrays)
	for name, h := range arrays {
		if !b.Objects.arePoints(h) {
			continue
		}
		rows := backend.NewHost[float64](h.Rows, h.Cols)
		for i := range h.Rows {
			copy(rows.Row(i), training.Row(kernels.PrecomputedIndex(h.Row(i)[0], h.Cols)))
		}
		arrays[name] = rows
	}
	state.Arrays = arrays
	if b.Model, err = learners.Restore(state); err != nil {
		return b, fmt.Errorf("modelfile: %w", err)
	}
	return b, nil
}

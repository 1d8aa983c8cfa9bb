package learners

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/message"
	"github.com/mercer-go/mercer/internal/neighbors"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

// Rows returns the samples of a file for learners with FitRows: the features and targets that e encodes, and
// weights if e has a column of weights. Each pass reads the file again. The Learn method of s must have been
// called before; e is usually the encoder that Learn returned.
func Rows(s *dataset.Stream, e *dataset.Encoder) (solvers.Rows, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	r := fileRows{stream: s, encoder: e, n: s.Rows(), d: e.Width(), t: len(e.TargetNames())}
	switch {
	case r.n < 0:
		return nil, errors.New("learners: rows of a file: the number of rows is not known; call Learn of the stream first")
	case e.Raw() != "":
		return nil, fmt.Errorf("learners: rows of a file: the input is a column of %ss, which cannot be read in passes: fit the samples in memory", e.Raw())
	case r.t == 0:
		return nil, errors.New("learners: rows of a file: the encoder has no target")
	}
	return r, nil
}

type fileRows struct {
	stream  *dataset.Stream
	encoder *dataset.Encoder
	n, d, t int
}

func (r fileRows) Dims() (n, d, t int) { return r.n, r.d, r.t }

// Encoder returns the rules for the columns of the file.
func (r fileRows) Encoder() *dataset.Encoder { return r.encoder }

// Pass implements solvers.Rows. The key of a row is computed from its cells in the file.
func (r fileRows) Pass(ctx context.Context, keyed bool, use func(b solvers.Block) error) error {
	return r.stream.EachBlock(ctx, r.encoder, r.blockRows(), keyed, func(x, y *mat.Dense, weights []float64, keys []uint64) error {
		return use(solvers.Block{X: dense(x), Y: dense(y), Weights: weights, Keys: keys})
	})
}

// blockRows returns the number of rows of a block of Pass.
func (r fileRows) blockRows() int {
	const bytes = 1 << 22 // size of a block; three blocks are in memory
	return max(1, bytes/8/(r.d+r.t))
}

// dense returns m as a backend.Host, which shares the memory of m.
func dense(m *mat.Dense) backend.Host[float64] {
	raw := m.RawMatrix()
	return backend.Host[float64]{Rows: raw.Rows, Cols: raw.Cols, Stride: raw.Stride, Data: raw.Data}
}

// RowsFitter is a Fitter for samples that are read in passes and need not fit into memory; see Rows.
type RowsFitter func(ctx context.Context, dev backend.Device, data solvers.Rows, o Options) (Model, error)

// FitRows calls f.
func (f RowsFitter) FitRows(ctx context.Context, dev backend.Device, data solvers.Rows, o Options) (Model, error) {
	if f == nil {
		return nil, errors.New("learners: fit: the RowsFitter is nil")
	}
	return f(ctx, dev, data, o)
}

// ReadsRows reports whether the learner can read its samples in passes, by MakeRows.
func (d Description) ReadsRows() bool { return d.rows != nil }

// Checkpoints reports whether the learner supports Options.Checkpoint.
func (d Description) Checkpoints() bool { return d.checkpoints }

// Traces reports whether at least one solver of the learner calls Options.Trace.
func (d Description) Traces() bool { return d.traces }

// MakeRows is like Make, for samples that are read in passes: see Settings.RowsFitter.
func (d Description) MakeRows(task Task, texts map[string]string) (RowsFitter, error) {
	s, err := d.Parse(texts)
	if err != nil {
		return nil, err
	}
	return s.RowsFitter(task)
}

// RowsFitter is like Fitter, for samples that are read in passes; it returns an error for a learner without FitRows.
// For Classification the target is an index into Options.Classes.
func (s *Settings) RowsFitter(task Task) (RowsFitter, error) {
	if s == nil || s.d.fitter == nil {
		_, err := s.Fitter(task)
		return nil, err
	}
	d := s.d
	if d.rows == nil {
		var names []string
		for _, o := range Catalogue() {
			if o.ReadsRows() {
				names = append(names, o.Name)
			}
		}
		return nil, fmt.Errorf("learners: %s needs all samples in memory; learners that read them in passes: %s", d.Name, names)
	}
	if _, err := s.Fitter(task); err != nil {
		return nil, err
	}
	fit, _ := d.rows(s.values)
	if task == Classification {
		return classifyRows(d.Name, fit), nil
	}
	return fit, nil
}

// rowsFitterOf is like fitterOf, but for the method FitRows of a learner of type L.
func rowsFitterOf[L any, M Model](parameters func(*L) []Parameter, fit func(L, context.Context, backend.Device, solvers.Rows, Options) (M, error)) func(parsed) (RowsFitter, *ParameterError) {
	return constructorOf(parameters, func(l L) RowsFitter {
		return func(ctx context.Context, dev backend.Device, data solvers.Rows, o Options) (Model, error) {
			m, err := asModel(fit(l, ctx, dev, data, o))
			return m, message.Within(err, adviceNames(parameters(&l)))
		}
	})
}

func classifyRows(name string, fit RowsFitter) RowsFitter {
	return func(ctx context.Context, dev backend.Device, data solvers.Rows, o Options) (Model, error) {
		classes := Classes{Names: slices.Clone(o.Classes)}
		for i := range classes.Names {
			classes.Labels = append(classes.Labels, float64(i))
		}
		_, _, t := data.Dims()
		switch {
		case t != 1:
			return nil, fmt.Errorf("learners: %s: y has %s; classes must be in one column", name, count.Of(t, "column"))
		case classes.Len() == 0:
			return nil, fmt.Errorf("learners: %s: samples that are read in passes need the names of their classes: set Options.Classes", name)
		case classes.Len() == 1:
			return nil, fmt.Errorf("learners: %s: y has one class only: %q; at least two are needed", name, classes.Names[0])
		}
		m, err := fit(ctx, dev, classRows{data, classes}, o)
		if err != nil {
			return nil, err
		}
		return &ClassifyModel{classified{classes}, m}, nil
	}
}

// classRows reads the samples of data, and replaces class indices by ±1 targets.
type classRows struct {
	data    solvers.Rows
	classes Classes
}

func (r classRows) Dims() (n, d, t int) {
	n, d, _ = r.data.Dims()
	return n, d, r.classes.Columns()
}

func (r classRows) Pass(ctx context.Context, keyed bool, use func(b solvers.Block) error) error {
	return r.data.Pass(ctx, keyed, r.signed(use))
}

// signed returns a function that calls use with a block in which ±1 targets replace the class indices.
func (r classRows) signed(use func(b solvers.Block) error) func(b solvers.Block) error {
	var index []int
	return func(b solvers.Block) error {
		index = index[:0]
		for i := range b.Y.Rows {
			class := r.classes.Index(b.Y.Row(i)[0])
			if class < 0 {
				return errors.New("learners: a target is not the index of a class")
			}
			index = append(index, class)
		}
		b.Y = r.classes.targets(index)
		return use(b)
	}
}

// inMemory returns x and y as Rows, for a learner with the kernel k that reads its samples in passes.
func inMemory(dev backend.Device, learner string, k kernels.Kernel, x, y mat.Matrix, o Options) (data solvers.Rows, err error) {
	defer wrapError(learner, nil, &data, &err)
	hx, hy, err := samples(dev, o, learner, x, y)
	if err != nil {
		return nil, err
	}
	points, err := numeric.SamplePoints(k, numeric.DensePoints(hx))
	if err != nil {
		return nil, err
	}
	return solvers.InMemory(points.Dense, hy, o.Weights, o.Keys), nil
}

// kernelForRows is kernelFor for samples that are read in passes. The argument sparse is the field Sparse of the
// solvers.NystromProblem.
func kernelForRows(ctx context.Context, k kernels.Kernel, data solvers.Rows, sparse *backend.CSR[float64], seed uint64) (kernels.Kernel, error) {
	if k != nil {
		return k, nil
	}
	if sparse != nil {
		if err := numeric.SparsePoints(*sparse).CheckFinite("x"); err != nil {
			return nil, err
		}
	}
	sample, err := solvers.CenterChoice{Count: neighbors.MedianRows, Seed: seed}.Sample(ctx, data)
	if err != nil {
		return nil, err
	}
	if n, _, _ := data.Dims(); sample.Rows == 1 && n > 1 {
		return nil, neighbors.ErrEqualRows
	}
	return kernelFor(ctx, nil, solvers.NystromProblem{Sparse: sparse}.Points(sample), nil, seed)
}

// copyOf returns a copy of h with contiguous rows.
func copyOf(h backend.Host[float64]) backend.Host[float64] { return dropZeroWeight(h, nil) }

package learners

import (
	"context"
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/solvers"
	"gonum.org/v1/gonum/mat"
)

// Rows are the samples of a file, for learners with FitRows: features and
// targets as e encodes them, read again in each pass. s must have learnt, so
// that the number of rows is known; e is usually what it learnt.
func Rows(s *dataset.Stream, e *dataset.Encoder) (solvers.Rows, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	r := fileRows{stream: s, encoder: e, n: s.Rows(), d: len(e.FeatureNames()), t: len(e.TargetNames())}
	switch {
	case r.n < 0:
		return nil, errors.New("learners: rows of a file: the number of rows is not known; call Learn of the stream first")
	case e.Raw() != "":
		return nil, fmt.Errorf("learners: rows of a file: the input is a column of %ss, which is not read in passes", e.Raw())
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

func (r fileRows) Pass(ctx context.Context, use func(b solvers.Block) error) error {
	return r.stream.Blocks(ctx, r.encoder, r.blockRows(), func(x, y *mat.Dense) error {
		return use(solvers.Block{X: dense(x), Y: dense(y)})
	})
}

// PassKeys implements solvers.KeyedRows: the keys are those of the cells of the file.
func (r fileRows) PassKeys(ctx context.Context, use func(b solvers.Block) error) error {
	return r.stream.KeyedBlocks(ctx, r.encoder, r.blockRows(), func(x, y *mat.Dense, keys []uint64) error {
		return use(solvers.Block{X: dense(x), Y: dense(y), Keys: keys})
	})
}

// blockRows is the number of rows of a block.
func (r fileRows) blockRows() int {
	const bytes = 1 << 22 // of a block, of which three are in memory
	return max(1, bytes/8/(r.d+r.t))
}

// dense is m where it stands.
func dense(m *mat.Dense) backend.Host[float64] {
	raw := m.RawMatrix()
	return backend.Host[float64]{Rows: raw.Rows, Cols: raw.Cols, Stride: raw.Stride, Data: raw.Data}
}

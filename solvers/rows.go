package solvers

import (
	"context"
	"errors"
	"fmt"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/stream"
	"github.com/mercer-go/mercer/kernels"
)

// Rows are samples that are read in passes, some at a time, so that they need
// not fit into memory: a file, or what InMemory makes of matrices.
type Rows interface {
	// Dims returns the number of samples, of features and of outputs.
	Dims() (n, d, t int)
	// Pass calls use with blocks of samples in their order until all have been
	// seen, and returns the first error of use or of reading, or the cause of
	// ctx. Every pass gives the same samples; how they are cut into blocks does
	// not matter. use does not change a block, nor keep it.
	Pass(ctx context.Context, use func(b Block) error) error
}

// KeyedRows are Rows that know a key for each sample, equal for equal samples. Where
// some of the samples are drawn, the keys and a seed determine which: the order of the
// samples does not matter, nor do the numbers that they were encoded as.
type KeyedRows interface {
	Rows
	// PassKeys is Pass with the Keys of the blocks.
	PassKeys(ctx context.Context, use func(b Block) error) error
}

// PassKeys is data.PassKeys, or data.Pass where data are not KeyedRows.
func PassKeys(ctx context.Context, data Rows, use func(b Block) error) error {
	if k, ok := data.(KeyedRows); ok {
		return k.PassKeys(ctx, use)
	}
	return data.Pass(ctx, use)
}

// Block is some rows of a Rows.
type Block struct {
	X, Y    backend.Host[float64] // r×d and r×t
	Weights []float64             // of the rows; nil: all 1
	Keys    []uint64              // of the rows; nil: those of the numbers in X
}

// InMemory returns the rows of matrices, which it only reads. Weights may be nil.
func InMemory(x, y backend.Host[float64], weights []float64) Rows {
	return inMemory{x, y, weights}
}

// InMemoryKeyed is InMemory of samples with keys; nil: those of the numbers in x.
func InMemoryKeyed(x, y backend.Host[float64], weights []float64, keys []uint64) Rows {
	if keys == nil {
		return InMemory(x, y, weights)
	}
	return keyedInMemory{inMemory{x, y, weights}, keys}
}

type keyedInMemory struct {
	inMemory
	keys []uint64
}

func (m keyedInMemory) PassKeys(ctx context.Context, use func(b Block) error) error {
	return use(Block{X: m.x, Y: m.y, Weights: m.weights, Keys: m.keys})
}

type inMemory struct {
	x, y    backend.Host[float64]
	weights []float64
}

func (m inMemory) Dims() (n, d, t int) { return m.x.Rows, m.x.Cols, m.y.Cols }

func (m inMemory) Pass(ctx context.Context, use func(b Block) error) error {
	return use(Block{X: m.x, Y: m.y, Weights: m.weights})
}

// sourceOf are data as the solvers read them.
func sourceOf(data Rows) stream.Source {
	n, d, t := data.Dims()
	return stream.Source{N: n, D: d, T: t, Pass: func(ctx context.Context, keyed bool, use func(b stream.Piece) error) error {
		each := func(b Block) error { return use(stream.Piece(b)) }
		if keyed {
			return PassKeys(ctx, data, each)
		}
		return data.Pass(ctx, each)
	}}
}

// checkRows holds the rules of Rows that need no pass.
func checkRows(data Rows) error {
	if data == nil {
		return errors.New("solvers: the samples are missing")
	}
	if m, ok := data.(keyedInMemory); ok {
		if len(m.keys) != m.x.Rows {
			return fmt.Errorf("solvers: %s for %s", count.Of(len(m.keys), "key"), count.Of(m.x.Rows, "row"))
		}
		data = m.inMemory
	}
	if m, ok := data.(inMemory); ok {
		return Problem{Kernel: anyKernel, X: m.x, Y: m.y, Weights: m.weights}.checkShapes()
	}
	if n, d, t := data.Dims(); n <= 0 || d <= 0 || t <= 0 {
		return fmt.Errorf("solvers: the samples are empty: %s, %s, %s", count.Of(n, "row"), count.Of(d, "feature"), count.Of(t, "output"))
	}
	return nil
}

var anyKernel kernels.Kernel = kernels.Linear{}

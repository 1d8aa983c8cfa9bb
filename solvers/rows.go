package solvers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/count"
	"github.com/mercer-go/mercer/internal/rowkey"
	"github.com/mercer-go/mercer/internal/spread"
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

// feed cuts the samples of weight > 0 into pieces of a fixed number of rows,
// whatever the blocks of the Rows are, so that no result depends on them.
type feed struct {
	data   Rows
	n      int                     // samples of weight > 0; known after the first pass
	total  float64                 // the sum of their weights
	shift  bool                    // take the targets of the first sample from all, so that an offset costs no digits
	offset []float64               // what is taken; nil: nothing is
	rule   func(x []float64) error // of the kernel, for points; nil: none
	passed bool                    // a pass has ended
	keys   []uint64                // of the rows of x; not nil: passes are with keys
	x, y   backend.Host[float64]
	w      []float64
	spread []spread.Spread // of the targets, of the first pass
}

// newFeed checks what can be checked without reading. Pieces have rows rows.
func newFeed(data Rows, rows int) *feed {
	_, d, t := data.Dims()
	return &feed{data: data, x: backend.NewHost[float64](rows, d), y: backend.NewHost[float64](rows, t), w: make([]float64, rows), spread: make([]spread.Spread, t)}
}

// withKeys makes the passes of f give the keys of the rows.
func (f *feed) withKeys() *feed {
	f.keys = make([]uint64, f.x.Rows)
	return f
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

// pass calls use with every piece, the last one shorter. from is the number of
// its first row among those of weight > 0. The first pass refuses what is not a
// finite number, and weights below 0.
func (f *feed) pass(ctx context.Context, use func(from int, x, y backend.Host[float64], w []float64) error) error {
	rows, d, t := f.x.Rows, f.x.Cols, f.y.Cols
	seen, kept, filled, total := 0, 0, 0, 0.0
	flush := func() error {
		if filled == 0 {
			return nil
		}
		err := use(kept-filled, f.x.View(0, 0, filled, d), f.y.View(0, 0, filled, t), f.w[:filled])
		filled = 0
		return err
	}
	pass := f.data.Pass
	if f.keys != nil {
		pass = func(ctx context.Context, use func(b Block) error) error { return PassKeys(ctx, f.data, use) }
	}
	err := pass(ctx, func(b Block) error {
		if b.X.Cols != d || b.Y.Cols != t || b.Y.Rows != b.X.Rows || b.Weights != nil && len(b.Weights) != b.X.Rows || b.Keys != nil && len(b.Keys) != b.X.Rows {
			return badSample("row %d: a block has %d×%d features, %d×%d targets, %d weights and %d keys, not %d features and %d outputs",
				seen+1, b.X.Rows, b.X.Cols, b.Y.Rows, b.Y.Cols, len(b.Weights), len(b.Keys), d, t)
		}
		for i := range b.X.Rows {
			w := 1.0
			if b.Weights != nil {
				w = b.Weights[i]
			}
			if !f.passed {
				if err := checkSample(seen+i, b.X.Row(i), b.Y.Row(i), w); err != nil {
					return err
				}
				if f.rule != nil {
					if err := f.rule(b.X.Row(i)); err != nil {
						return badSample("x: row %d: %v", seen+i+1, err)
					}
				}
			}
			if w == 0 {
				continue
			}
			if !f.passed {
				for j, v := range b.Y.Row(i) {
					f.spread[j].Add(v)
				}
			}
			if f.shift && f.offset == nil {
				f.offset = slices.Clone(b.Y.Row(i))
			}
			copy(f.x.Row(filled), b.X.Row(i))
			to := f.y.Row(filled)
			copy(to, b.Y.Row(i))
			for j, o := range f.offset {
				to[j] -= o
			}
			f.w[filled] = w
			if f.keys != nil && b.Keys != nil {
				f.keys[filled] = b.Keys[i]
			} else if f.keys != nil {
				f.keys[filled] = rowkey.Of(b.X.Row(i))
			}
			filled++
			kept++
			total += w
			if filled == rows {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := flush(); err != nil {
					return err
				}
			}
		}
		seen += b.X.Rows
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return err
	}
	if n, _, _ := f.data.Dims(); seen != n {
		return badSample("%d rows were read, %d were announced", seen, n)
	}
	if f.passed && (kept != f.n || total != f.total) {
		return badSample("the samples have changed since the pass before: %d of weight > 0, now %d", f.n, kept)
	}
	f.passed, f.n, f.total = true, kept, total
	switch {
	case kept == 0:
		return badSample("weights: all are 0: no sample is left")
	case math.IsInf(total, 1):
		return badSample("weights: their sum is not a finite number")
	}
	return nil
}

// constant lists the targets, from 0, that are constant up to rounding.
func (f *feed) constant() (list []int) {
	for j := range f.spread {
		if f.spread[j].Constant() {
			list = append(list, j)
		}
	}
	return list
}

// checkSample holds the rules of a sample, row i counted from 0.
func checkSample(i int, x, y []float64, w float64) error {
	if !(w >= 0) || math.IsInf(w, 1) {
		return badSample("weights: row %d: must be a finite number ≥ 0, got %v", i+1, w)
	}
	for j, v := range x {
		if v-v != 0 {
			return badSample("x: row %d, column %d is %v", i+1, j+1, v)
		}
	}
	for j, v := range y {
		if v-v != 0 {
			return badSample("y: row %d, column %d is %v", i+1, j+1, v)
		}
	}
	return nil
}

// sampleError is an error about the samples, whatever the method.
type sampleError string

func (e sampleError) Error() string { return "solvers: " + string(e) }

func badSample(format string, args ...any) error { return sampleError(fmt.Sprintf(format, args...)) }

package stream

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/rowkey"
	"github.com/mercer-go/mercer/internal/spread"
)

// Source provides N samples of D features and T outputs, which can be read in passes, piece by piece.
type Source struct {
	N, D, T int
	// Sparse holds the samples if they are sparse. Each row of Piece.X is then the index of a row of Sparse.
	Sparse *backend.CSR[float64]
	// Pass reads all samples in order, and calls use with each piece of the samples. It returns the first
	// error. If keyed is true, the pieces have keys.
	Pass func(ctx context.Context, keyed bool, use func(b Piece) error) error
}

// Piece holds consecutive samples of a Source.
type Piece struct {
	X, Y    backend.Host[float64] // features and targets, r×d and r×t
	Weights []float64             // weights of the rows; nil if all are 1
	Keys    []uint64              // keys of the rows; if nil, keys are computed from the numbers in X
}

// Feed divides the samples of weight > 0 into pieces of a fixed number of rows.
type Feed struct {
	N    int                     // number of samples of weight > 0; known after the first pass
	Rule func(x []float64) error // returns an error for a point that the kernel does not accept; may be nil
	Keys []uint64                // keys of the rows of a piece; nil if passes have no keys

	onFirstPass func(x []float64, w float64) // called in the first pass for each sample of weight > 0; may be nil
	data        Source
	total       float64   // the sum of the weights
	weighted    bool      // whether a weight is not 1
	shift       bool      // whether to subtract the first sample's targets from all targets: otherwise a large mean causes cancellation
	offset      []float64 // the subtracted targets, or nil
	passed      bool      // whether a pass has ended
	x, y        backend.Host[float64]
	w           []float64
	spread      []spread.Spread // spread of each target, computed in the first pass
	box         [2][]float64    // the smallest and the largest value of each feature over the samples of weight > 0, from the first pass
}

// NewFeed returns a feed whose pieces have the given number of rows.
func NewFeed(data Source, rows int) *Feed {
	d, t := data.D, data.T
	return &Feed{data: data, x: backend.NewHost[float64](rows, d), y: backend.NewHost[float64](rows, t), w: make([]float64, rows), spread: make([]spread.Spread, t)}
}

// WithKeys makes each pass of f set the field Keys, and returns f.
func (f *Feed) WithKeys() *Feed {
	f.Keys = make([]uint64, f.x.Rows)
	return f
}

// Each calls the function use with every piece. Only the last piece may have fewer rows. The argument from is the index
// of the first row of the piece among the rows of weight > 0. The first pass returns an error for numbers that are not
// finite and for negative weights.
func (f *Feed) Each(ctx context.Context, use func(from int, x, y backend.Host[float64], w []float64) error) error {
	rows, d, t := f.x.Rows, f.x.Cols, f.y.Cols
	rowsRead, rowsUsed, buffered, total := 0, 0, 0, 0.0
	flush := func() error {
		if buffered == 0 {
			return nil
		}
		err := use(rowsUsed-buffered, f.x.View(0, 0, buffered, d), f.y.View(0, 0, buffered, t), f.w[:buffered])
		buffered = 0
		return err
	}
	err := f.data.Pass(ctx, f.Keys != nil, func(b Piece) error {
		if b.X.Cols != d || b.Y.Cols != t || b.Y.Rows != b.X.Rows || b.Weights != nil && len(b.Weights) != b.X.Rows || b.Keys != nil && len(b.Keys) != b.X.Rows {
			return badSample("row %d: a block has %d×%d features, %d×%d targets, %d weights and %d keys, not %d features and %d outputs",
				rowsRead+1, b.X.Rows, b.X.Cols, b.Y.Rows, b.Y.Cols, len(b.Weights), len(b.Keys), d, t)
		}
		for i := range b.X.Rows {
			w := 1.0
			if b.Weights != nil {
				w = b.Weights[i]
			}
			if !f.passed {
				if err := checkSample(rowsRead+i, b.X.Row(i), b.Y.Row(i), w); err != nil {
					return err
				}
				if f.Rule != nil {
					if err := f.Rule(b.X.Row(i)); err != nil {
						return badSample("x: row %d: %v", rowsRead+i+1, err)
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
				if f.box[0] == nil {
					f.box = [2][]float64{slices.Clone(b.X.Row(i)), slices.Clone(b.X.Row(i))}
				}
				for j, v := range b.X.Row(i) {
					if v < f.box[0][j] {
						f.box[0][j] = v
					} else if v > f.box[1][j] {
						f.box[1][j] = v
					}
				}
				if f.onFirstPass != nil {
					f.onFirstPass(b.X.Row(i), w)
				}
			}
			if f.shift && f.offset == nil {
				f.offset = slices.Clone(b.Y.Row(i))
			}
			copy(f.x.Row(buffered), b.X.Row(i))
			to := f.y.Row(buffered)
			copy(to, b.Y.Row(i))
			for j, o := range f.offset {
				to[j] -= o
			}
			f.w[buffered] = w
			f.weighted = f.weighted || w != 1
			if f.Keys != nil && b.Keys != nil {
				f.Keys[buffered] = b.Keys[i]
			} else if f.Keys != nil {
				f.Keys[buffered] = rowkey.Of(b.X.Row(i))
			}
			buffered++
			rowsUsed++
			total += w
			if buffered == rows {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := flush(); err != nil {
					return err
				}
			}
		}
		rowsRead += b.X.Rows
		return nil
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return err
	}
	if n := f.data.N; rowsRead != n {
		return badSample("the source announced %d rows, but gave %d", n, rowsRead)
	}
	if f.passed && (rowsUsed != f.N || total != f.total) {
		return badSample("the samples have changed since the last pass: %d had a weight > 0, now %d have", f.N, rowsUsed)
	}
	f.passed, f.N, f.total = true, rowsUsed, total
	switch {
	case rowsUsed == 0:
		return badSample("weights: all are 0, so that no sample remains")
	case math.IsInf(total, 1):
		return badSample("weights: their sum is not a finite number")
	}
	return nil
}

// constant returns the indices of the targets that are constant up to rounding.
func (f *Feed) constant() (list []int) {
	for j := range f.spread {
		if f.spread[j].Constant() {
			list = append(list, j)
		}
	}
	return list
}

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

// SampleError is an error in the samples themselves: no other method would accept them.
type SampleError string

func (e SampleError) Error() string { return "solvers: " + string(e) }

func badSample(format string, args ...any) error { return SampleError(fmt.Sprintf(format, args...)) }

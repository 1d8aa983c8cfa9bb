package pairwise

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/mercer-go/mercer/host"
	"github.com/mercer-go/mercer/kernels/objects"
)

func TestNormalize(t *testing.T) {
	k := host.Matrix[float64]{Rows: 3, Cols: 3, Stride: 3, Data: []float64{4, 6, 0, 6, 16, 0, 0, 0, 0}}
	d := []float64{4, 16, 0}
	Normalize(k, d, d)
	for i, want := range []float64{1, 0.75, 0, 0.75, 1, 0, 0, 0, 0} {
		if k.Data[i] != want {
			t.Errorf("value %d is %v, want %v", i, k.Data[i], want)
		}
	}
}

// TestMatrix checks that Matrix evaluates every pair once, stops with its context, and reports the progress 1.
func TestMatrix(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		rows, cols int
		lower      bool
		pairs      int64
	}{{7, 5, false, 35}, {200, 200, true, 20100}, {3, 300, false, 900}, {0, 5, false, 0}, {5, 0, false, 0}} {
		for _, threads := range []int{0, 1, 7} {
			var calls atomic.Int64
			last := -1.0
			o := objects.Options{Threads: threads, Progress: func(f float64) {
				if f <= last {
					t.Errorf("%+v: progress %v after %v", c, f, last)
				}
				last = f
			}}
			h, err := Matrix(ctx, c.rows, c.cols, c.lower, o, func(Stop) func(i, lo, hi int, out []float64) {
				return func(i, lo, hi int, out []float64) {
					for j := lo; j < hi; j++ {
						calls.Add(1)
						out[j-lo] = float64(1000*i + j)
					}
				}
			})
			if err != nil || calls.Load() != c.pairs || last != 1 {
				t.Fatalf("%+v: %d pairs, progress %v, error %v", c, calls.Load(), last, err)
			}
			for i := range h.Rows {
				for j, v := range h.Row(i) {
					a, b := i, j
					if c.lower {
						a, b = max(i, j), min(i, j)
					}
					if v != float64(1000*a+b) {
						t.Fatalf("%+v: (%d, %d) is %v", c, i, j, v)
					}
				}
			}
		}
	}
	canceledCtx, cancel := context.WithCancelCause(ctx)
	reason := errors.New("enough")
	_, err := Matrix(canceledCtx, 100, 100, false, objects.Options{Threads: 2}, func(stop Stop) func(i, lo, hi int, out []float64) {
		return func(i, lo, hi int, out []float64) {
			cancel(reason)
			for !stop(0) {
			}
		}
	})
	if !errors.Is(err, reason) {
		t.Errorf("got %v", err)
	}
	if _, err := Each(ctx, 1, objects.Options{Threads: -1}, nil); err == nil || err.Error() != "objects: threads must be ≥ 0, got -1" {
		t.Errorf("got %v", err)
	}
}

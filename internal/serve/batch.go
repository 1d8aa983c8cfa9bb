package serve

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer"
	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/learners"
)

// maxBatch is the largest number of rows that are predicted together.
const maxBatch = 256

// batcher predicts rows of requests with one row. Rows that arrive during a prediction are predicted together.
type batcher struct {
	model   *mercer.Model[learners.Model]
	timeout time.Duration
	metrics *metrics

	mu      sync.Mutex
	busy    bool // whether a prediction is running
	waiting []*waiter
	idle    sync.WaitGroup // counts the goroutine of the method work
}

type waiter struct {
	ctx    context.Context
	x      mat.Matrix // 1×features
	want   mercer.PredictOptions
	result mercer.Prediction
	err    error
	done   chan struct{}
}

// predict returns the prediction for one row of features.
func (b *batcher) predict(ctx context.Context, x mat.Matrix, want mercer.PredictOptions) (mercer.Prediction, error) {
	b.mu.Lock()
	if !b.busy {
		b.busy = true
		b.mu.Unlock()
		w := &waiter{ctx: ctx, x: x, want: want}
		b.run(w)
		b.startWork()
		return w.result, w.err
	}
	w := &waiter{ctx: ctx, x: x, want: want, done: make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()
	select {
	case <-w.done:
		return w.result, w.err
	case <-ctx.Done():
		return mercer.Prediction{}, ctx.Err()
	}
}

// startWork starts the method work in a goroutine if rows are waiting.
func (b *batcher) startWork() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy = len(b.waiting) > 0; b.busy {
		b.idle.Go(b.work)
	}
}

// work predicts the waiting rows until no row is waiting.
func (b *batcher) work() {
	for {
		b.mu.Lock()
		if len(b.waiting) == 0 {
			b.busy = false
			b.mu.Unlock()
			return
		}
		var batch, later []*waiter // rows with the same options as the first row, and all other rows
		for _, w := range b.waiting {
			switch {
			case w.ctx.Err() != nil: // the request of this row was canceled
			case len(batch) < maxBatch && (len(batch) == 0 || w.want == batch[0].want):
				batch = append(batch, w)
			default:
				later = append(later, w)
			}
		}
		b.waiting = later
		b.mu.Unlock()
		if len(batch) > 0 {
			b.run(batch...)
		}
		for _, w := range batch {
			close(w.done)
		}
	}
}

// run predicts rows with the same options together. If that fails, it predicts each row separately.
func (b *batcher) run(list ...*waiter) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(list[0].ctx), b.timeout)
	if len(list) == 1 {
		ctx, cancel = list[0].ctx, func() {}
	}
	defer cancel()
	b.metrics.batches.observe(float64(len(list)))
	x, err := stackRows(list)
	var results []mercer.Prediction
	if err == nil {
		results, err = predictRows(ctx, b.model, x, list[0].want)
	}
	switch {
	case err == nil && len(results) != len(list):
		err = fmt.Errorf("serve: the model returned %d predictions for %d rows", len(results), len(list))
		fallthrough
	case err != nil && len(list) == 1:
		list[0].err = err
	case err != nil:
		for _, w := range list {
			b.run(w)
		}
	default:
		for i, w := range list {
			w.result = results[i]
		}
	}
}

// predictRows calls mercer.Model.PredictRows and turns a panic, which would end the server, into an error.
func predictRows(ctx context.Context, m *mercer.Model[learners.Model], rows any, want mercer.PredictOptions) (list []mercer.Prediction, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = failf(500, "an error inside the server: %.200v", p)
		}
	}()
	return m.PredictRows(ctx, rows, want)
}

// stackRows returns a matrix of the rows in list; all these rows are dense, or all are sparse.
func stackRows(list []*waiter) (mat.Matrix, error) {
	if len(list) == 1 {
		return list[0].x, nil
	}
	switch first := list[0].x.(type) {
	case *mat.Dense:
		_, d := first.Dims()
		x := mat.NewDense(len(list), d, nil)
		for i, w := range list {
			x.SetRow(i, w.x.(*mat.Dense).RawRowView(0))
		}
		return x, nil
	case backend.CSR[float64]:
		x := backend.CSR[float64]{Rows: len(list), Cols: first.Cols, Indptr: make([]int, 1, len(list)+1)}
		for _, w := range list {
			indices, data := w.x.(backend.CSR[float64]).Row(0)
			x.Indices, x.Data = append(x.Indices, indices...), append(x.Data, data...)
			x.Indptr = append(x.Indptr, len(x.Data))
		}
		return x, nil
	}
	return nil, fmt.Errorf("serve: rows of type %T cannot be predicted together", list[0].x)
}

func outOfMemory(err error) bool { return errors.Is(err, backend.ErrMemory) }

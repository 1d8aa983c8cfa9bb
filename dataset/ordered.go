package dataset

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
)

// ordered reads parts one after the other, decodes them on some workers, and
// hands the results to use in the order of the parts, on the caller's
// goroutine. A few parts are read ahead. It returns after everything that it
// started has ended; next returns io.EOF after the last part. The first fault in
// the order of the parts is the one that is returned.
func ordered[P, R any](ctx context.Context, workers int, next func() (P, error), decode func(P) (R, error), use func(R) error) error {
	type result struct {
		r   R
		err error
	}
	type job struct {
		part P
		done chan result // holds one
	}
	ctx, cancel := context.WithCancelCause(ctx)
	jobs := make(chan job)
	order := make(chan job, workers) // how far reading may be ahead
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel(nil)
	running.Go(func() {
		defer close(jobs)
		defer close(order)
		for {
			part, err := next()
			if err == io.EOF {
				return
			}
			j := job{part, make(chan result, 1)}
			if err != nil {
				j.done <- result{err: err}
			}
			select {
			case order <- j:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
			select {
			case jobs <- j:
			case <-ctx.Done():
				return
			}
		}
	})
	for range workers {
		running.Go(func() {
			for j := range jobs {
				if ctx.Err() != nil {
					return
				}
				r, err := decode(j.part)
				j.done <- result{r, err}
			}
		})
	}
	for j := range order {
		select {
		case r := <-j.done:
			if r.err != nil {
				return r.err
			}
			if err := use(r.r); err != nil {
				return err
			}
		case <-ctx.Done():
			return stopped(ctx)
		}
	}
	if ctx.Err() != nil {
		return stopped(ctx)
	}
	return nil
}

// parallel runs f on parts of 0 … n−1 of size numbers, on all processors, and returns the
// first fault in their order.
func parallel(n, size int, f func(first, last int) error) error {
	parts := (n + size - 1) / size
	workers := min(runtime.GOMAXPROCS(0), parts)
	if workers <= 1 {
		return f(0, n)
	}
	faults := make([]error, parts)
	var next atomic.Int64
	var failed atomic.Bool
	var running sync.WaitGroup
	for range workers {
		running.Go(func() {
			for !failed.Load() { // those before a fault have begun
				k := int(next.Add(1)) - 1
				if k >= parts {
					return
				}
				if faults[k] = f(k*size, min((k+1)*size, n)); faults[k] != nil {
					failed.Store(true)
				}
			}
		})
	}
	running.Wait()
	return cmp.Or(faults...)
}

// stopped is the error of work whose context is done.
func stopped(ctx context.Context) error {
	return fmt.Errorf("dataset: %w", context.Cause(ctx))
}

package dataset

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// ordered reads parts one after the other, decodes them on all processors, and
// hands the results to use in the order of the parts, on the caller's
// goroutine. A few parts are read ahead. It returns after everything that it
// started has ended; next returns io.EOF after the last part. The first fault in
// the order of the parts is the one that is returned.
func ordered[P, R any](ctx context.Context, next func() (P, error), decode func(P) (R, error), use func(R) error) error {
	type result struct {
		r   R
		err error
	}
	type job struct {
		part P
		done chan result // holds one
	}
	ctx, cancel := context.WithCancelCause(ctx)
	workers := runtime.GOMAXPROCS(0)
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

// stopped is the error of work whose context is done.
func stopped(ctx context.Context) error {
	return fmt.Errorf("dataset: %w", context.Cause(ctx))
}

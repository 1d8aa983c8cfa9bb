package run_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mercer-go/mercer/internal/run"
)

// slowBuild returns a function that takes more than an hour and returns the number of its calls so far.
func slowBuild(begun, canceled *atomic.Int64) func(context.Context) (*int64, error) {
	return func(ctx context.Context) (*int64, error) {
		n := begun.Add(1)
		select {
		case <-time.After(time.Hour + time.Second): // a second more, so that no deadline of whole minutes coincides with the end
			return &n, nil
		case <-ctx.Done():
			canceled.Add(1)
			return nil, context.Cause(ctx)
		}
	}
}

// TestKeptOutlivesTheFirstCaller checks that the first caller can return early, and that others get the result.
func TestKeptOutlivesTheFirstCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k run.Kept[int64]
		var begun, canceled atomic.Int64
		build := slowBuild(&begun, &canceled)
		first, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var group sync.WaitGroup
		group.Go(func() {
			start := time.Now()
			if _, err := k.Get(first, "a", build); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Minute {
				t.Errorf("the first caller returned after %v with %v", time.Since(start), err)
			}
		})
		synctest.Wait()
		for range 5 {
			group.Go(func() {
				if v, err := k.Get(t.Context(), "a", build); err != nil || *v != 1 {
					t.Errorf("a later caller: %v, %v", v, err)
				}
			})
		}
		group.Wait()
		if begun.Load() != 1 || canceled.Load() != 0 {
			t.Errorf("%d computations, %d canceled", begun.Load(), canceled.Load())
		}
	})
}

// TestKeptEndsWithItsLastCaller checks that without Life a computation ends when no caller waits.
func TestKeptEndsWithItsLastCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var k run.Kept[int64]
		var begun, canceled atomic.Int64
		build := slowBuild(&begun, &canceled)
		for i := range int64(3) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			if _, err := k.Get(ctx, "a", build); !errors.Is(err, context.DeadlineExceeded) || canceled.Load() != i+1 {
				t.Errorf("%v, %d computations canceled, want %d", err, canceled.Load(), i+1)
			}
			cancel()
		}
		if v, err := k.Get(t.Context(), "a", build); err != nil || *v != 4 {
			t.Errorf("%v, %v", v, err)
		}
	})
}

// TestKeptGoesOnForItsLife checks that a computation with the context Life continues after the deadlines of its
// callers, and that the end of Life cancels it.
func TestKeptGoesOnForItsLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		life, end := context.WithCancelCause(context.Background())
		k := run.Kept[int64]{Life: life}
		var begun, canceled atomic.Int64
		build := slowBuild(&begun, &canceled)
		for i := range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			v, err := k.Get(ctx, "a", build)
			if completed := i >= 60; completed != (err == nil) || completed && *v != 1 {
				t.Errorf("minute %d: %v, %v", i, v, err)
			}
			cancel()
		}
		// The end of Life also cancels a computation that was started on a second device, b.
		errClosed := errors.New("closed")
		var group sync.WaitGroup
		group.Go(func() {
			if _, err := k.Get(t.Context(), "b", build); !errors.Is(err, errClosed) {
				t.Errorf("after the end: %v", err)
			}
		})
		synctest.Wait()
		end(errClosed)
		group.Wait()
		if begun.Load() != 2 || canceled.Load() != 1 {
			t.Errorf("%d computations, %d canceled", begun.Load(), canceled.Load())
		}
	})
}

// TestKeptDrop checks that a dropped result is computed again, and that waiting callers still get their result.
func TestKeptDrop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := run.Kept[int64]{Life: t.Context()}
		var begun, canceled atomic.Int64
		build := slowBuild(&begun, &canceled)
		shortCtx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, _ = k.Get(shortCtx, "a", build)
		k.Drop()
		if canceled.Load() != 1 {
			t.Error("a computation without callers goes on")
		}
		var group sync.WaitGroup
		group.Go(func() {
			if v, err := k.Get(t.Context(), "a", build); err != nil || *v != 2 {
				t.Errorf("dropped while it waited: %v, %v", v, err)
			}
		})
		synctest.Wait()
		k.Drop()
		group.Wait()
		if v, err := k.Get(t.Context(), "a", build); err != nil || *v != 3 {
			t.Errorf("after Drop: %v, %v", v, err)
		}
	})
}

// TestKeptFailure checks that concurrent callers get the same error or panic, and that the next caller starts again.
func TestKeptFailure(t *testing.T) {
	var k run.Kept[int64]
	errBroken := errors.New("broken")
	if _, err := k.Get(t.Context(), "a", func(context.Context) (*int64, error) { return nil, errBroken }); !errors.Is(err, errBroken) {
		t.Error(err)
	}
	func() {
		defer func() {
			if r := recover(); r != "defect" {
				t.Errorf("recovered %v", r)
			}
		}()
		_, _ = k.Get(t.Context(), "a", func(context.Context) (*int64, error) { panic("defect") })
	}()
	value := int64(1)
	if v, err := k.Get(t.Context(), "a", func(context.Context) (*int64, error) { return &value, nil }); err != nil || *v != 1 {
		t.Error(v, err)
	}
}

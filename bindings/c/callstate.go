package main

// #include "mercer.h"
import "C"

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/mercer-go/mercer/bindings/c/internal/handles"
	"github.com/mercer-go/mercer/solvers"
)

// poll is the interval at which callState reads mercer_watch.cancel.
const poll = 10 * time.Millisecond

// callState connects a call with its mercer_watch: a request to cancel cancels ctx, and report writes the progress.
type callState struct {
	ctx    context.Context
	report func(solvers.Progress) // nil if the call has no mercer_watch
	close  func()                 // close ends all access to the mercer_watch
}

func newCallState(w *C.mercer_watch) callState {
	if w == nil {
		return callState{context.Background(), nil, func() {}}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	flag := (*int32)(unsafe.Pointer(&w.cancel))
	done := make(chan struct{})
	var mu sync.Mutex // held while the mercer_watch is written
	closed := false
	report := func(p solvers.Progress) {
		mu.Lock()
		defer mu.Unlock()
		if closed {
			return
		}
		atomic.StoreInt32((*int32)(unsafe.Pointer(&w.permille)), int32(1000*p.Fraction))
		atomic.StorePointer((*unsafe.Pointer)(unsafe.Pointer(&w.stage)), stageText(p.Stage))
	}
	var polling sync.WaitGroup
	polling.Go(func() {
		tick := time.NewTicker(poll)
		defer tick.Stop()
		for atomic.LoadInt32(flag) == 0 {
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
		cancel(handles.ErrCanceled)
	})
	return callState{ctx, report, func() {
		close(done)
		polling.Wait()
		cancel(nil)
		mu.Lock()
		closed = true
		mu.Unlock()
	}}
}

// stageText returns a stage as a C string, which is never freed: there are only about ten stages.
func stageText(stage string) unsafe.Pointer {
	stages.Lock()
	defer stages.Unlock()
	p, ok := stages.texts[stage]
	if !ok {
		p = unsafe.Pointer(C.CString(stage))
		stages.texts[stage] = p
	}
	return p
}

var stages = struct {
	sync.Mutex
	texts map[string]unsafe.Pointer
}{texts: map[string]unsafe.Pointer{}}

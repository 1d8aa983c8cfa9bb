package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/planned"
	"github.com/mercer-go/mercer/internal/process"
	"github.com/mercer-go/mercer/learners"
)

// Between two collections the heap of the command grows by spareBytes, or by
// 1/spareShare of what is live where that is more. The default of Go is all that
// is live, by which a fit would take twice its plan. What is live is for the
// largest part in arrays without pointers, which a collection does not read, so
// that more collections cost little.
const (
	spareBytes = 4 << 20
	spareShare = 20
)

// searchSpare is what the heap may grow by besides, during a search of many short fits.
var searchSpare atomic.Int64

// manyFits lets garbage grow by 64 MiB more, where there is room, until the function that
// it returns is called: fits of milliseconds would spend a third of them on collections.
func (b *budget) manyFits() (end func()) {
	more := min(64<<20, max(b.limit-b.held(), 0)/10)
	b.spare = more
	searchSpare.Store(more)
	limitGarbage()
	return func() { searchSpare.Store(0) }
}

// limitGarbage sets the collector to that, now and after each collection.
func limitGarbage() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	spare := uint64(spareBytes + searchSpare.Load())
	debug.SetGCPercent(max(100/spareShare, int(100*spare/max(live[0].Value.Uint64(), spare/10))))
	o := new(*int) // garbage at once: its finalizer runs after the next collection
	runtime.SetFinalizer(o, func(**int) { limitGarbage() })
}

var limitGarbageOnce = sync.OnceFunc(limitGarbage)

// A budget is what the data of one call and all that is made of it may take
// together, --memory or 80 % of what the process may use, and what is planned of
// it. The program itself is beside it.
type budget struct {
	program  int64 // bytes of the process before there were data, and of the device's workspace
	heap     int64 // of them live in the heap
	limit    int64
	ofDevice bool // matrices of the device are in the memory of the host

	spare int64 // of manyFits

	mu      sync.Mutex
	planned int64
}

// newBudget is to be called before data are read.
func (a *app) newBudget(dev backend.Device) *budget {
	b := &budget{heap: liveBytes(), limit: a.memoryLimit()}
	if resident, ok := process.Status("VmRSS:"); ok {
		b.program = int64(resident)
	}
	if w, ok := dev.(interface{ Workspace() int64 }); ok {
		b.program += w.Workspace()
	}
	_, b.ofDevice = dev.F64().(backend.Wrapper[float64])
	if b.limit == 0 {
		b.limit = dev.Info().Memory
	}
	return b
}

// memoryLimit is --memory, or 80 % of what the process may use, or 0 where that is
// not known.
func (a *app) memoryLimit() int64 {
	if free, known := backend.HostMemory(); a.memory == 0 && known {
		return free / 10 * 8
	}
	return int64(a.memory)
}

// liveBytes is what is live in the heap. What is not is returned to the system.
func liveBytes() int64 {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// held is what the data take now. A helper of the device that looks out for more work
// for some 0.2 ms still refers to the matrices of the fit that has ended, which a second
// look finds gone.
func (b *budget) held() int64 {
	held := liveBytes() - b.heap
	time.Sleep(time.Millisecond)
	return max(min(held, liveBytes()-b.heap), 0)
}

// note raises the plan of the whole call to bytes at a time.
func (b *budget) note(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.planned = max(b.planned, bytes)
}

// encoding plans the matrices of a table that is in memory. instead is what else would
// do where they have no room, or "".
func (b *budget) encoding(t *dataset.Table, e *dataset.Encoder, instead string) error {
	held, n := b.held(), int64(t.Rows())
	width := int64(len(e.Outputs))
	if e.Raw() == "" {
		width += int64(len(e.FeatureNames()))
	}
	if e.Gram { // the points, which are made of the matrix
		width += int64(len(e.FeatureNames())) + 2
	}
	if need := held + 8*n*width; need > b.limit {
		return fmt.Errorf("%s: %w: the table and its matrix, %s of %s, take %s, %s may be used%s%s", t.Source, backend.ErrMemory, count(t.Rows(), "row"), count(int(width), "number"), humanBytes(need), humanBytes(b.limit), ofTexts(e), instead)
	}
	b.note(held + 8*n*width)
	return nil
}

// ofTexts is how many of the numbers of a row stand for the texts of columns.
func ofTexts(e *dataset.Encoder) string {
	numbers, widest, in := 0, 0, ""
	for _, i := range e.Inputs {
		if i.Text != nil {
			numbers += len(i.Text.Categories)
			if len(i.Text.Categories) > widest {
				widest, in = len(i.Text.Categories), i.Name
			}
		}
	}
	if 2*numbers < len(e.Inputs) {
		return ""
	}
	return fmt.Sprintf(", of which %d stand for texts, %d of them for those of column %.60q", numbers, widest, in)
}

// fitting limits a fit to what the data leave, and notes what it plans.
func (b *budget) fitting(ctx context.Context, o *learners.Options) context.Context {
	held := b.held()
	b.note(held)
	if b.ofDevice {
		o.Memory = max(b.limit-held, 1)
	}
	return planned.With(ctx, func(bytes int64) { b.note(held + bytes) })
}

// streaming is fitting for what reads a file in passes: three blocks and what is made
// of one, or less where the whole file makes less. A cell takes 2 bytes of text at
// least, and 8 in each of two blocks that are not full.
func (b *budget) streaming(ctx context.Context, file string) context.Context {
	blocks := int64(4 * streamBytes)
	if info, err := os.Stat(file); err == nil {
		blocks = min(blocks, 8*info.Size())
	}
	held := b.held() + blocks
	b.note(held)
	return planned.With(ctx, func(bytes int64) { b.note(held + bytes) })
}

// total is the plan of the whole process.
func (b *budget) total() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.program + b.planned + b.spare
}

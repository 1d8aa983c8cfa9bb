package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/dataset"
	"github.com/mercer-go/mercer/internal/planned"
	"github.com/mercer-go/mercer/internal/process"
	"github.com/mercer-go/mercer/learners"
)

// garbagePercent is what garbage may take beside what is live, in percent, before it is
// collected; the default of Go is 100, by which a fit would take twice its plan. Live data
// are for the largest part arrays without pointers, which a collection does not read, so that
// more collections cost little.
const garbagePercent = 5

// ballast is live and never touched, so that it takes no memory but addresses: with it garbage
// of 4 MiB is left beside little that is live.
var ballast []byte

// limitGarbage sets the collector for the rest of the process.
func limitGarbage() {
	if ballast == nil {
		ballast = make([]byte, 4<<20*100/garbagePercent)
	}
	debug.SetGCPercent(garbagePercent)
}

// A budget is what the data of one call and all that is made of it may take together,
// --memory or 80 % of what the process may use, and what is planned of it. The program itself
// is beside it.
type budget struct {
	program  int64 // bytes of the process before there were data, and of the device's workspace
	heap     int64 // of them live in the heap
	limit    int64
	ofDevice bool // matrices of the device are in the memory of the host

	mu      sync.Mutex
	data    int64 // what the data take beside fits; 0: to be measured before the first
	planned int64
}

// newBudget is to be called before data are read.
func (a *app) newBudget(dev backend.Device) *budget {
	debug.FreeOSMemory()
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

// liveBytes is what is live in the heap.
func liveBytes() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// held is what the data take now.
func (b *budget) held() int64 { return max(liveBytes()-b.heap, 0) }

// note raises the plan of the whole call to bytes at a time.
func (b *budget) note(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.planned = max(b.planned, bytes)
}

// manyFits lets 64 MiB more of garbage grow, where there is room, until the function that it
// returns is called: fits of milliseconds would spend a third of their time on collections.
func (b *budget) manyFits() (end func()) {
	held := b.held()
	more := min(64<<20, max(b.limit-held, 0)/10)
	b.program += more
	debug.SetGCPercent(garbagePercent + int(100*more/(b.heap+held)))
	return limitGarbage
}

// encoding plans the matrices of a table that is in memory. instead is what else would
// do where they have no room, or "".
func (b *budget) encoding(t *dataset.Table, e *dataset.Encoder, instead string) error {
	if e.Sparse() {
		return b.encodingSparse(t, e, instead)
	}
	return b.encodingDense(t, e, instead)
}

// encodingDense is encoding for features without zeros left out.
func (b *budget) encodingDense(t *dataset.Table, e *dataset.Encoder, instead string) error {
	held, n := b.held(), int64(t.Rows())
	width := int64(len(e.Outputs))
	if e.Raw() == "" {
		width += int64(e.Width())
	}
	if e.Gram { // the points, which are made of the matrix
		width += int64(e.Width()) + 2
	}
	if need := held + 8*n*width; need > b.limit {
		return fmt.Errorf("%s: %w: the table and its matrix, %s of %s, take %s, %s may be used%s%s", t.Source, backend.ErrMemory, count(t.Rows(), "row"), count(int(width), "number"), humanBytes(need), humanBytes(b.limit), ofTexts(e), instead)
	}
	b.note(held + 8*n*width)
	return nil
}

// encodingSparse is encoding for sparse features: 12 bytes for each nonzero value and 8 for each row
// of a matrix, and as much again for the parts that it is made of.
func (b *budget) encodingSparse(t *dataset.Table, e *dataset.Encoder, instead string) error {
	held, nonzeros := b.held(), e.Nonzeros(t)
	need := held + 2*(12*nonzeros+8*int64(t.Rows()+1))
	if need > b.limit {
		return fmt.Errorf("%s: %w: the table and its sparse matrix, %s with %s, take %s, %s may be used%s", t.Source, backend.ErrMemory, count(t.Rows(), "row"), count(int(nonzeros), "nonzero value"), humanBytes(need), humanBytes(b.limit), instead)
	}
	b.note(need)
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

// fitting limits a fit to what the data leave, and notes what it plans. The data are measured
// once: idle workers of the device would keep the matrices of a fit that has ended alive.
func (b *budget) fitting(ctx context.Context, o *learners.Options) context.Context {
	if b.data == 0 {
		b.data = max(b.held(), 1)
	}
	b.note(b.data)
	if b.ofDevice {
		o.Memory = max(b.limit-b.data, 1)
	}
	return planned.With(ctx, func(bytes int64) { b.note(b.data + bytes) })
}

// also adds to the data what has been made since the first fit, such as the kernel values of
// all rows after a search that used some of them.
func (b *budget) also(bytes int64) {
	if b.data > 0 {
		b.data += bytes
	}
}

// blocks adds the blocks of a table that is read in passes to the data, given the first of them,
// which is the largest: three of them, and what is made of one. The size of the file says nothing
// about them, since it may be compressed.
func (b *budget) blocks(first *mat.Dense) {
	rows, cols := first.Dims()
	b.also(4 * 8 * int64(rows) * int64(cols))
	b.note(b.data)
}

// total is the plan of the whole process.
func (b *budget) total() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.program + b.planned
}

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

// garbagePercent is the amount of garbage, in percent of the live memory, at which a collection starts. Most of the
// live data are arrays without pointers, which the collector does not scan, so that frequent collections are fast.
const garbagePercent = 5

// slack is the number of bytes of garbage below which the collector does not run.
const slack = 4 << 20

// ballast counts as live memory, so that the collector runs only after slack bytes of garbage. It is never written.
var ballast []byte

// systemLimit is the memory limit of the Go runtime at the start of the process: the value of GOMEMLIMIT, if set.
var systemLimit = debug.SetMemoryLimit(-1)

// limitGarbage sets the garbage collector's parameters for the rest of the process.
func limitGarbage() {
	if ballast == nil {
		ballast = make([]byte, slack*100/garbagePercent)
	}
	debug.SetGCPercent(garbagePercent)
	debug.SetMemoryLimit(systemLimit)
}

// A budget limits the memory of the data and the results of one call, without the program itself, to --memory, or by
// default to 80 % of the memory that the process may use. It also records the planned memory.
type budget struct {
	program  int64 // bytes of the process before data are read, plus the device's workspace
	heap     int64 // bytes of the heap before data are read
	limit    int64
	ofDevice bool // the device's matrices are in the memory of the host

	mu      sync.Mutex
	data    int64 // bytes of the data, excluding the fits; measured before the first fit, and 0 until then
	planned int64
}

// newBudget returns the budget of a call. It must be called before data are read, because it measures the program.
func (a *app) newBudget(dev backend.Device) *budget {
	debug.FreeOSMemory() // collects the garbage
	b := &budget{heap: heapBytes(), limit: a.memoryLimit()}
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

// memoryLimit returns --memory, or else 80 % of the memory that the process may use, or 0 if that is unknown.
func (a *app) memoryLimit() int64 {
	if free, ok := backend.HostMemory(); a.memory == 0 && ok {
		return free / 10 * 8
	}
	return int64(a.memory)
}

// liveBytes returns the live bytes in the heap.
func liveBytes() int64 {
	runtime.GC()
	return heapBytes()
}

// heapBytes returns the bytes in the heap, garbage included.
func heapBytes() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// dataBytes returns the current size of the data. For a table of up to slack bytes it includes garbage, because a
// collection would take a tenth of the time of a small fit.
func (b *budget) dataBytes() int64 {
	bytes := heapBytes() - b.heap
	if bytes > slack || b.limit < 16*slack {
		bytes = liveBytes() - b.heap
	}
	return max(bytes, 0)
}

// note raises the planned memory of the call to at least the given number of bytes. Once fits have started, it also
// sets the memory limit of the Go runtime, slightly above the plan: if the live data alone exceeded the limit, the
// collector would take up to half of the time.
func (b *budget) note(bytes int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.planned = max(b.planned, bytes); b.data > 0 {
		total := b.program + b.planned
		debug.SetMemoryLimit(min(systemLimit, total+total/16+slack+int64(len(ballast))))
	}
}

// manyFits allows more garbage until end is called: 64 MiB, or a tenth of the free memory if that is less.
// Otherwise garbage collection takes a third of the time of fits that last milliseconds.
func (b *budget) manyFits() (end func()) {
	dataBytes := b.dataBytes()
	extraBytes := min(64<<20, max(b.limit-dataBytes, 0)/10)
	b.program += extraBytes
	debug.SetGCPercent(garbagePercent + int(100*extraBytes/(b.heap+dataBytes)))
	return limitGarbage
}

// planEncoding plans the memory of the matrices of a table. If they exceed the limit, the error ends with advice.
func (b *budget) planEncoding(t *dataset.Table, e *dataset.Encoder, advice string) error {
	if e.Sparse() {
		return b.planSparse(t, e, advice)
	}
	return b.planDense(t, e, advice)
}

// planDense plans the memory of dense features: see planEncoding.
func (b *budget) planDense(t *dataset.Table, e *dataset.Encoder, advice string) error {
	dataBytes, n := b.dataBytes(), int64(t.Rows())
	width := int64(len(e.Outputs))
	if e.Raw() == "" {
		width += int64(e.Width())
	}
	if e.Gram { // memory for the points of the kernel precomputed(), which are made from the Gram matrix
		width += int64(e.Width()) + 2
	}
	if required := dataBytes + 8*n*width; required > b.limit {
		return fmt.Errorf("%s: %w: the table and its matrix, %s of %s, take %s, but only %s may be used%s%s", t.Source, backend.ErrMemory, count(t.Rows(), "row"), count(int(width), "number"), humanBytes(required), humanBytes(b.limit), ofTexts(e), advice)
	}
	b.note(dataBytes + 8*n*width)
	return nil
}

// planSparse plans the memory of sparse features, 12 bytes for each nonzero value and 8 for each row, and as much
// again for their construction.
func (b *budget) planSparse(t *dataset.Table, e *dataset.Encoder, advice string) error {
	dataBytes, nonzeros := b.dataBytes(), e.Nonzeros(t)
	required := dataBytes + 2*(12*nonzeros+8*int64(t.Rows()+1))
	if required > b.limit {
		return fmt.Errorf("%s: %w: the table and its sparse matrix, %s with %s, take %s, but only %s may be used%s", t.Source, backend.ErrMemory, count(t.Rows(), "row"), count(int(nonzeros), "nonzero value"), humanBytes(required), humanBytes(b.limit), advice)
	}
	b.note(required)
	return nil
}

// ofTexts returns a phrase with the number of features per row that come from text columns.
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
	return fmt.Sprintf(", of which %d are features of texts, %d of them of column %.60q", numbers, widest, in)
}

// fitting limits a fit to the memory that the data do not use, and records its planned memory. It measures the data
// only before the first fit, because idle workers of the device still refer to matrices of completed fits.
func (b *budget) fitting(ctx context.Context, o *learners.Options) context.Context {
	if b.data == 0 {
		b.data = max(b.dataBytes(), 1)
	}
	b.note(b.data)
	if b.ofDevice {
		o.Memory = max(b.limit-b.data, 1)
	}
	return planned.With(ctx, func(bytes int64) { b.note(b.data + bytes) })
}

// addData adds bytes to the size of the data.
func (b *budget) addData(bytes int64) {
	if b.data > 0 {
		b.data += bytes
	}
}

// blocks adds the memory of a table that is read in blocks: three blocks, and the matrices made from one block.
// first is the first block, which is the largest.
func (b *budget) blocks(first *mat.Dense) {
	rows, cols := first.Dims()
	b.addData(4 * 8 * int64(rows) * int64(cols))
	b.note(b.data)
}

// total returns the planned memory of the whole process.
func (b *budget) total() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.program + b.planned
}

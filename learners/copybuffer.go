package learners

import (
	"sync"
	"weak"

	"github.com/mercer-go/mercer/backend"
)

// A copyBuffer holds dense copies of blocks of sparse points.
type copyBuffer struct{ data []float64 }

// lastBuffer refers to the copyBuffer that was released last, unless the garbage collector has freed it. With it, the
// next prediction reuses the memory. Otherwise a new buffer, of hundreds of megabytes for wide points, could be
// allocated before the collector has freed the previous one.
var lastBuffer struct {
	sync.Mutex
	weak.Pointer[copyBuffer]
}

// acquireBuffer returns a buffer of at least size elements, which may have any values. No other caller can acquire the
// buffer before release.
func acquireBuffer(size int) *copyBuffer {
	lastBuffer.Lock()
	b := lastBuffer.Value()
	lastBuffer.Pointer = weak.Pointer[copyBuffer]{}
	lastBuffer.Unlock()
	if b != nil && len(b.data) >= size {
		return b
	}
	return &copyBuffer{backend.NewHost[float64](1, size).Data}
}

// release lets the next call of acquireBuffer return b.
func (b *copyBuffer) release() {
	lastBuffer.Lock()
	lastBuffer.Pointer = weak.Make(b)
	lastBuffer.Unlock()
}

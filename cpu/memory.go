package cpu

import (
	"sync"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/pages"
)

// memory counts the bytes that the matrices of a device take.
type memory struct {
	name  string
	limit int64

	mu         sync.Mutex
	used, peak int64
}

// reserve adds bytes to the memory in use, or returns a *backend.MemoryError if the sum exceeds the
// budget.
func (m *memory) reserve(bytes int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes > m.limit-m.used {
		return &backend.MemoryError{Device: m.name, Requested: bytes, Free: m.limit - m.used}
	}
	m.used += bytes
	m.peak = max(m.peak, m.used)
	return nil
}

func (m *memory) release(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.used -= bytes
}

func (m *memory) inUse() (used, peak int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used, m.peak
}

// budget returns 80 % of the memory that the process may still take, including the limits
// of its control group, or 80 % of 2 GiB if the system does not report it.
func budget() int64 {
	const unknown = 1 << 31
	free, ok := backend.HostMemory()
	if !ok {
		free = unknown
	}
	return free / 10 * 8
}

// maxFreed is the maximum number of bytes that freedMemory stores. The kernel matrix of 2,500
// samples and the matrices of its derivatives fit.
const maxFreed = 60 << 20

// freedMemory stores the memory of freed matrices for new matrices, because the first access to new
// memory takes several times as long as clearing resident memory. The log evidence of 2,500 samples
// and its derivatives then take 160 ms, and otherwise 190 ms (AMD EPYC, Zen 5, two processors,
// November 2026).
type freedMemory struct{ lender[byte] }

// put stores memory if it and the stored memory have at most maxFreed bytes, and otherwise returns
// it to the system.
func (f *freedMemory) put(memory []byte) {
	if f.size()+len(memory) > maxFreed {
		discard(memory)
		return
	}
	f.lender.put(memory)
}

// zeros returns n zeros, in the memory of a freed matrix if there is a suitable one.
func (q *queue[T]) zeros(n int) []T {
	d, size := q.engine.device, int(unsafe.Sizeof(*new(T)))
	if n < discardBytes/size || n > maxFreed/size {
		return pages.Zeros[T](n)
	}
	memory := d.freed.reuse(n * size)
	if memory == nil {
		return pages.Zeros[T](n)
	}
	data := unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(memory))), len(memory)/size)[:n]
	parallelRanges(d.workers(), n, discardBytes/size, func(first, end int) { clear(data[first:end]) })
	return data
}

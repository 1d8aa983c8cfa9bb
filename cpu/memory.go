package cpu

import (
	"sync"

	"github.com/mercer-go/mercer/backend"
)

// memory counts the bytes that the matrices of a device take.
type memory struct {
	name  string
	limit int64

	mu         sync.Mutex
	used, peak int64
}

// reserve adds bytes to the memory in use, or returns a *backend.MemoryError if the sum exceeds the budget.
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

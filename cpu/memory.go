package cpu

import (
	"sync"

	"github.com/mercer-go/mercer/backend"
)

// memory counts the bytes that the matrices of a device take.
type memory struct {
	name  string
	limit int64

	mu        sync.Mutex
	now, peak int64
}

// take adds bytes to the memory in use, or returns a *backend.MemoryError if the sum exceeds the
// budget.
func (m *memory) take(bytes int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes > m.limit-m.now {
		return &backend.MemoryError{Device: m.name, Asked: bytes, Free: m.limit - m.now}
	}
	m.now += bytes
	m.peak = max(m.peak, m.now)
	return nil
}

func (m *memory) give(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now -= bytes
}

func (m *memory) inUse() (now, peak int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.now, m.peak
}

// budget returns 80 % of the memory that the process may still take, including the limits
// of its control group, or 80 % of 2 GiB if the system does not report it.
func budget() int64 {
	const unknown = 1 << 31
	free, known := backend.HostMemory()
	if !known {
		free = unknown
	}
	return free / 10 * 8
}

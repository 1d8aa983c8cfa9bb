package cpu

import (
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/internal/pages"
)

// engine holds the kernels of a tier in one precision, and the block sizes of the loops around its register tile.
type engine[T backend.Float] struct {
	device *device
	ukr    *ukr.Kernels[T]
	block  blocking

	idle     sync.Pool // contains *scratch[T]
	operands lender[T] // packed operands and vectors that the workers share
	sums     lender[T] // sums of symv, gemv and GramMul
}

func newEngine[T backend.Float](d *device, k *ukr.Kernels[T], caches cacheSizes) *engine[T] {
	return &engine[T]{device: d, ukr: k, block: blockingFor(k.MR, k.NR, int(unsafe.Sizeof(*new(T))), caches)}
}

// scratch is memory that only one worker uses at a time.
type scratch[T backend.Float] struct {
	tile      ukr.Tile[T] // arguments of the micro-kernels, allocated once and not at each call
	scaled    ukr.Scaled[T]
	span      ukr.Span[T]
	rows      ukr.Rows[T]
	strip     ukr.GemvPanel[T]
	codes     ukr.Codes[T]
	direct    ukr.Direct[T]
	transpose ukr.Direct[T]
	sparse    ukr.Sparse[T]
	block     []T // a register tile that is stored only in part, or operands padded to whole vectors
	work      []T // a first buffer; all buffers grow on demand
	second    []T // a second buffer, for routines that need two
	third     []T
	pairs     []T // a buffer for statistics that are computed pair by pair
	total     []T // a buffer for the sums of a task
}

// getScratch returns scratch memory for a worker; putScratch puts the memory back into the pool.
func (e *engine[T]) getScratch() *scratch[T] {
	if s, ok := e.idle.Get().(*scratch[T]); ok {
		return s
	}
	size := e.ukr.MR * e.ukr.NR
	for _, k := range e.ukr.GemvPanels {
		size = max(size, 2*k.Rows*k.Width)
	}
	return &scratch[T]{block: pages.Zeros[T](size)}
}

func (e *engine[T]) putScratch(s *scratch[T]) { e.idle.Put(s) }

// grow returns n elements of s.work with arbitrary contents.
func (s *scratch[T]) grow(n int) []T {
	if len(s.work) < n {
		s.work = pages.Zeros[T](n)
	}
	return s.work[:n]
}

// growSecond returns n elements of s.second with arbitrary contents.
func (s *scratch[T]) growSecond(n int) []T {
	if len(s.second) < n {
		s.second = pages.Zeros[T](n)
	}
	return s.second[:n]
}

// growThird returns n elements of s.third with arbitrary contents.
func (s *scratch[T]) growThird(n int) []T {
	if len(s.third) < n {
		s.third = pages.Zeros[T](n)
	}
	return s.third[:n]
}

// shared returns n elements with arbitrary contents, for memory that the workers of one
// operation share. The second result is a function that returns the memory to the pool.
func (e *engine[T]) shared(n int) ([]T, func()) { return e.operands.lend(n) }

// sharedSums is like shared, but for sums. Their own lender keeps sums from taking the large buffers of packed
// operands.
func (e *engine[T]) sharedSums(n int) ([]T, func()) { return e.sums.lend(n) }

// A lender lends memory. It stores returned memory for the next request, until two garbage collections have found
// the memory unused. A sync.Pool would store separate memory for each processor.
type lender[T backend.Float] struct {
	mu      sync.Mutex
	idle    []idleMemory[T] // the memory that is not lent
	watched bool            // whether the next garbage collection calls the method age
}

type idleMemory[T backend.Float] struct {
	data []T
	aged bool // whether a collection has found the memory unused
}

// lend returns n elements with arbitrary contents, and a function that returns the memory.
func (l *lender[T]) lend(n int) ([]T, func()) {
	data := l.reuse(n)
	if data == nil {
		data = pages.Zeros[T](n)
	}
	return data[:n], func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.idle = append(l.idle, idleMemory[T]{data: data})
		l.watch()
	}
}

// reuse returns the smallest idle memory of at least n elements. If there is none, reuse drops the
// largest idle memory, which the caller replaces, and returns nil.
func (l *lender[T]) reuse(n int) []T {
	l.mu.Lock()
	defer l.mu.Unlock()
	best, largest := -1, -1
	for i, m := range l.idle {
		if len(m.data) >= n && (best < 0 || len(m.data) < len(l.idle[best].data)) {
			best = i
		}
		if largest < 0 || len(m.data) > len(l.idle[largest].data) {
			largest = i
		}
	}
	switch {
	case largest < 0:
		return nil
	case best < 0:
		l.idle = slices.Delete(l.idle, largest, largest+1)
		return nil
	}
	data := l.idle[best].data
	l.idle = slices.Delete(l.idle, best, best+1)
	return data
}

// watch makes the next garbage collection call age.
func (l *lender[T]) watch() {
	if !l.watched {
		l.watched = true
		runtime.AddCleanup(new(*T), (*lender[T]).age, l)
	}
}

// age drops the memory that was already idle at the last collection.
func (l *lender[T]) age() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.idle = slices.DeleteFunc(l.idle, func(m idleMemory[T]) bool { return m.aged })
	for i := range l.idle {
		l.idle[i].aged = true
	}
	if l.watched = false; len(l.idle) > 0 {
		l.watch()
	}
}

// sums returns n elements of s.total with arbitrary contents.
func (s *scratch[T]) sums(n int) []T {
	if len(s.total) < n {
		s.total = pages.Zeros[T](n)
	}
	return s.total[:n]
}

// An allocator returns n elements with arbitrary contents, and a function that frees them.
type allocator[T backend.Float] func(n int) ([]T, func())

// fresh allocates memory that belongs to no pool.
func fresh[T backend.Float](n int) ([]T, func()) { return pages.Zeros[T](n), func() {} }

func (q *queue[T]) Sync() error { return q.wait() }

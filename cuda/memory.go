package cuda

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/check"
)

// memory counts the bytes that the matrices of a device take.
type memory struct {
	mu            sync.Mutex
	limit         int64
	current, peak int64
	allocation    map[driver.DevicePtr]int64
}

// reserve adds bytes to the count, or returns a *backend.MemoryError if they exceed the limit.
func (m *memory) reserve(device string, bytes int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if bytes > m.limit-m.current {
		return &backend.MemoryError{Device: device, Requested: bytes, Free: max(m.limit-m.current, 0)}
	}
	m.current += bytes
	m.peak = max(m.peak, m.current)
	return nil
}

func (m *memory) unreserve(bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.current -= bytes
}

func (m *memory) setLimit(limit int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.limit = limit
}

func (m *memory) limitBytes() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.limit
}

// resetPeak sets the peak to the number of bytes that are in use now.
func (m *memory) resetPeak() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.peak = m.current
}

func (m *memory) inUse() (current, peak int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.current, m.peak
}

func (m *memory) add(p driver.DevicePtr, bytes int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.allocation == nil {
		m.allocation = map[driver.DevicePtr]int64{}
	}
	m.allocation[p] = bytes
}

// remove removes the allocation at p from the list, and returns false if there is none.
func (m *memory) remove(p driver.DevicePtr) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	bytes, ok := m.allocation[p]
	if ok {
		delete(m.allocation, p)
		m.current -= bytes
	}
	return ok
}

// clear empties the list and returns the allocations that were in it.
func (m *memory) clear() []driver.DevicePtr {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []driver.DevicePtr
	for p := range m.allocation {
		list = append(list, p)
	}
	m.allocation, m.current = nil, 0
	return list
}

// matrix is a row-major matrix in the device's memory.
type matrix[T backend.Float] struct {
	device             *device
	ptr                driver.DevicePtr
	rows, cols, stride int
	owner              bool
	freed              atomic.Bool
}

func sizeOf[T backend.Float]() int { return int(unsafe.Sizeof(T(0))) }

func (m *matrix[T]) Dims() (rows, cols int) { return m.rows, m.cols }

func (m *matrix[T]) View(i, j, rows, cols int) backend.Matrix[T] {
	check.View(i, j, rows, cols, m.rows, m.cols)
	return &matrix[T]{device: m.device, ptr: m.at(i, j), rows: rows, cols: cols, stride: m.stride}
}

// window is like View, but returns a *matrix.
func (m *matrix[T]) window(i, j, rows, cols int) *matrix[T] {
	return m.View(i, j, rows, cols).(*matrix[T])
}

// at returns the address of element (i, j).
func (m *matrix[T]) at(i, j int) driver.DevicePtr {
	return m.ptr + driver.DevicePtr((i*m.stride+j)*sizeOf[T]())
}

// sameMemory reports whether two matrices have the same memory and shape.
func (m *matrix[T]) sameMemory(o *matrix[T]) bool {
	return m.ptr == o.ptr && m.rows == o.rows && m.cols == o.cols && m.stride == o.stride
}

func (m *matrix[T]) Free() {
	// The field ptr is not cleared, because queued work still uses it.
	d, p := m.device, m.ptr
	if !m.owner || p == 0 || m.freed.Swap(true) || d.closed.Load() || !d.memory.remove(p) {
		return
	}
	d.exec.queue(func() { d.freed(d.release(p)) })
}

// deallocate returns the memory at p, which comes from allocate, to the driver. It does not use the pool, because
// copies in other streams may still use the memory.
func (d *device) deallocate(p driver.DevicePtr) {
	if d.memory.remove(p) {
		d.exec.queue(func() {
			delete(d.pool.allocated, p)
			d.freed(d.api.MemFree(p))
		})
	}
}

func (q *queue[T]) New(rows, cols int) (backend.Matrix[T], error) {
	check.New(rows, cols)
	size := sizeOf[T]()
	if cols > 0 && rows > math.MaxInt/cols/size {
		return nil, &backend.MemoryError{Device: q.engine.device.name, Requested: math.MaxInt64, Free: q.engine.device.memory.limitBytes()}
	}
	bytes := int64(rows) * int64(cols) * int64(size)
	m := &matrix[T]{device: q.engine.device, rows: rows, cols: cols, stride: max(cols, 1), owner: true}
	if bytes == 0 {
		return m, nil
	}
	if d := q.engine.device; max(rows, cols) > math.MaxInt32 && bytes <= d.memory.limitBytes() {
		return nil, fmt.Errorf("%s: new: a matrix can have at most 2³¹−1 rows and columns, not %d×%d", d.name, rows, cols)
	}
	p, err := q.engine.device.allocate(bytes)
	if err != nil {
		return nil, err
	}
	m.ptr = p
	return m, nil
}

// allocate returns memory filled with zeros.
func (d *device) allocate(bytes int64) (driver.DevicePtr, error) {
	if err := d.memory.reserve(d.name, bytes); err != nil {
		return 0, err
	}
	var p driver.DevicePtr
	var err error
	executed := !d.closed.Load() && d.exec.do(func() {
		if p, err = d.alloc(bytes); err != nil {
			return
		}
		if err = d.api.Clear(p, bytes, d.stream); err != nil {
			d.release(p)
		}
	})
	if !executed {
		err = errors.New("the device has been closed")
	}
	if err != nil {
		d.memory.unreserve(bytes)
		if errors.Is(err, backend.ErrMemory) {
			return 0, err
		}
		return 0, d.checked("new", err)
	}
	d.memory.add(p, bytes)
	return p, nil
}

// valuesOf returns the memory of b as a slice of elements of type T.
func valuesOf[T backend.Float](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/sizeOf[T]())
}

// stage is a page-locked buffer through which matrices are copied.
type stage struct {
	memory []byte
	event  driver.Event // signals the end of the last copy that used the buffer
	inUse  bool         // whether a copy may still use the buffer
}

// waitUntilFree waits until no copy uses the buffer, so that it can be reused.
func (s *stage) waitUntilFree(api *driver.API) error {
	if !s.inUse {
		return nil
	}
	s.inUse = false
	return api.WaitEvent(s.event)
}

// stageBytes is the length of each stage in bytes; tests reduce it.
var stageBytes = 8 << 20

func (s *stage) open(api *driver.API) (err error) {
	if s.memory, err = api.AllocHost(stageBytes); err != nil {
		return err
	}
	s.event, err = api.NewEvent(false)
	return err
}

func (s *stage) close(api *driver.API) error {
	var errs []error
	if s.event != 0 {
		errs = append(errs, api.DestroyEvent(s.event))
	}
	if s.memory != nil {
		errs = append(errs, api.FreeHost(s.memory))
	}
	*s = stage{}
	return errors.Join(errs...)
}

// bytesOf returns the memory of p as a slice of bytes.
func bytesOf[T backend.Float](p []T) []byte {
	if len(p) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&p[0])), len(p)*sizeOf[T]())
}

package cuda

import (
	"errors"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
)

// pool keeps freed memory for the next request of the same size, because the driver takes several tenths of a
// millisecond to allocate or free memory, and first waits for all work. Pooled memory does not count in the budget,
// and is freed if the driver has no more memory. Memory is reused without waiting, because the work of one stream
// runs in order, and the stream waits for every copy of UploadAfter.
type pool struct {
	free        map[int64][]driver.DevicePtr
	allocated   map[driver.DevicePtr]int64
	pooledBytes int64
}

// poolLimit holds the largest numbers of pooled bytes, for one allocation and in total. The limit for one allocation
// includes the workspace of a factorization of order 4096, which takes 134 MB. Tests set poolLimit.total to 0.
var poolLimit = struct{ allocation, total int64 }{160 << 20, 512 << 20}

// alloc returns memory of the given number of bytes, on the executor's thread. If there is not enough free memory,
// the error gives the requested and the free bytes.
func (d *device) alloc(bytes int64) (driver.DevicePtr, error) {
	l := &d.pool
	if list := l.free[bytes]; len(list) > 0 {
		p := list[len(list)-1]
		l.free[bytes] = list[:len(list)-1]
		l.pooledBytes -= bytes
		l.allocated[p] = bytes
		return p, nil
	}
	p, err := d.api.MemAlloc(bytes)
	if l.pooledBytes > 0 && isOutOfMemory(err) {
		if err := d.emptyPool(); err != nil {
			return 0, err
		}
		p, err = d.api.MemAlloc(bytes)
	}
	if err == nil {
		if l.allocated == nil {
			l.free, l.allocated = map[int64][]driver.DevicePtr{}, map[driver.DevicePtr]int64{}
		}
		l.allocated[p] = bytes
		return p, nil
	}
	if isOutOfMemory(err) {
		if free, _, infoErr := d.api.MemInfo(); infoErr == nil {
			err = &backend.MemoryError{Device: d.name, Requested: bytes, Free: free}
		}
	}
	return 0, err
}

func isOutOfMemory(err error) bool {
	var e *driver.Error
	return errors.As(err, &e) && e.OutOfMemory()
}

// release gives memory from alloc back to the pool or, if the pool is full, to the driver.
func (d *device) release(p driver.DevicePtr) error {
	l := &d.pool
	bytes := l.allocated[p]
	delete(l.allocated, p)
	if bytes == 0 || bytes > poolLimit.allocation || l.pooledBytes+bytes > min(poolLimit.total, d.memory.limitBytes()/16) {
		return d.api.MemFree(p)
	}
	l.free[bytes] = append(l.free[bytes], p)
	l.pooledBytes += bytes
	return nil
}

// emptyPool returns all pooled memory to the driver.
func (d *device) emptyPool() error {
	var errs []error
	for bytes, list := range d.pool.free {
		for _, p := range list {
			errs = append(errs, d.api.MemFree(p))
		}
		delete(d.pool.free, bytes)
	}
	d.pool.pooledBytes = 0
	return errors.Join(errs...)
}

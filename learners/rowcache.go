package learners

import (
	"context"
	"fmt"
	"sync"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// rowCacheBytes is the memory that a rowCache takes when its user does not say.
const rowCacheBytes = 512 << 20

// rowCache serves rows of K = k(X, X) to learners that look at some of them
// again and again and never at all of them at once: perceptrons, SMO. Rows are
// computed by the backend, as many in one call as are asked for, and kept in Go
// memory; those that were not asked for the longest time make room.
//
// The diagonal is k(x_i, x_i) with distances of exactly 0. A row computed alone
// and the same row computed with others have the same bits only as far as the
// backend's Gram promises it, so that what is asked for must not depend on
// anything but the data. A rowCache is for one goroutine.
type rowCache[T backend.Float] struct {
	b    backend.Backend[T]
	k    kernels.Kernel
	host backend.Host[T]   // X
	x    backend.Matrix[T] // X on the device
	diag []T

	rows     backend.Host[T] // a slot for each kept row
	slot     []int           // of row i of K; −1: not kept
	owner    []int           // of a slot; −1: free
	newer    []int           // the next slot in the order of use; the last element is the list's head
	older    []int
	batch    int               // rows that one call of the backend computes
	gathered backend.Host[T]   // their samples
	out      backend.Matrix[T] // batch × n; nil where rows can be written in place
	wrap     backend.Wrapper[T]

	hits, misses int
}

// newRowCache places X on the device and takes at most bytes of Go memory for
// rows, but enough for least of them; bytes 0 is rowCacheBytes. batch is the
// largest number of rows that the backend computes in one call. The caller
// closes the cache.
func newRowCache[T backend.Float](ctx context.Context, b backend.Backend[T], k kernels.Kernel, x backend.Host[T], bytes int64, least, batch int) (*rowCache[T], error) {
	if bytes <= 0 {
		bytes = rowCacheBytes
	}
	n := x.Rows
	var zero T
	size := int64(8)
	if _, single := any(zero).(float32); single {
		size = 4
	}
	batch = min(max(batch, 1), n)
	slots := int(min(int64(n), max(bytes/(size*int64(n)), int64(least), int64(batch))))
	c := &rowCache[T]{
		b: b.With(ctx, nil), k: k, host: x, diag: make([]T, n),
		rows: takeRows[T](slots, n), slot: filledInts(n, -1), owner: filledInts(slots, -1),
		newer: make([]int, slots+1), older: make([]int, slots+1),
		batch: batch, gathered: backend.NewHost[T](batch, x.Cols),
	}
	for i := range slots + 1 { // a ring with the head at slots
		c.newer[i], c.older[i] = (i+1)%(slots+1), (i+slots)%(slots+1)
	}
	for i := range n {
		c.diag[i] = diagonal(k, x.Row(i))
		if v := c.diag[i]; v-v != 0 {
			return nil, notAPoint(k, i, x.Row(i), v)
		}
	}
	c.wrap, _ = b.(backend.Wrapper[T])
	var err error
	if c.x, err = backend.Place(b, x); err != nil {
		return nil, err
	}
	if c.wrap == nil {
		if c.out, err = b.New(batch, n); err != nil {
			c.x.Free()
			return nil, err
		}
	}
	return c, nil
}

// rowCachePlan is what a rowCache of float64 for batches of least rows takes: the
// rows in Go memory, at most bytes of them but for the least, and on a device that
// cannot use Go memory as it is X and a batch.
func rowCachePlan(dev backend.Device, n, d int, bytes int64, least int) int64 {
	row := 8 * int64(n)
	total := min(row*int64(n), max(bytes, row*int64(least))) + 8*int64(least)*int64(d)
	if _, ok := dev.F64().(backend.Wrapper[float64]); !ok {
		total += row*int64(d) + 8*int64(least)*int64(n+d)
	}
	return total
}

// rowCacheWithin is the part of bytes that the rows may take of the memory that a
// fit may take: half of it, so that the rest of the fit has room.
func rowCacheWithin(dev backend.Device, o Options, bytes int64) int64 {
	if bytes <= 0 {
		bytes = rowCacheBytes
	}
	return min(bytes, max(run.Available(dev, o.Memory)/2, 1))
}

func filledInts(n, v int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = v
	}
	return list
}

// diagonal is kernels.Diag of a point in either precision.
func diagonal[T backend.Float](k kernels.Kernel, x []T) T {
	if wide, ok := any(x).([]float64); ok {
		return T(kernels.Diag(k, wide))
	}
	wide := make([]float64, len(x))
	for i, v := range x {
		wide[i] = float64(v)
	}
	return T(kernels.Diag(k, wide))
}

// rowMemory holds the rows of caches that were closed: SMO on pairs of classes
// makes hundreds, and clearing their memory would cost as much as the rows.
var rowMemory sync.Pool

// takeRows returns slots rows of n elements with any contents.
func takeRows[T backend.Float](slots, n int) backend.Host[T] {
	data, _ := rowMemory.Get().(*[]T)
	if data == nil || cap(*data) < slots*n {
		return backend.NewHost[T](slots, n)
	}
	return backend.Host[T]{Rows: slots, Cols: n, Stride: n, Data: (*data)[:slots*n]}
}

// close gives the memory of the device back, and the rows to the next cache.
func (c *rowCache[T]) close() {
	rowMemory.Put(&c.rows.Data)
	c.x.Free()
	if c.out != nil {
		c.out.Free()
	}
}

// capacity is the number of rows that can be kept.
func (c *rowCache[T]) capacity() int { return c.rows.Rows }

// has reports whether a row is kept.
func (c *rowCache[T]) has(i int) bool { return c.slot[i] >= 0 }

// row returns row i of K, only for reading. It stays valid until capacity()
// other rows have been asked for.
func (c *rowCache[T]) row(i int) ([]T, error) {
	if c.slot[i] >= 0 {
		c.hits++
		c.touch(c.slot[i])
		return c.rows.Row(c.slot[i]), nil
	}
	if err := c.fetch([]int{i}); err != nil {
		return nil, err
	}
	return c.rows.Row(c.slot[i]), nil
}

// fetch sees to it that the rows of a list, at most capacity() of them and all
// different, are kept. Those that are not are computed in batches.
func (c *rowCache[T]) fetch(list []int) error {
	if len(list) > c.capacity() {
		return fmt.Errorf("row cache: %d rows were asked for at once, %d can be kept", len(list), c.capacity())
	}
	for _, i := range list { // first, so that none of them makes room for another
		if c.slot[i] >= 0 {
			c.hits++
			c.touch(c.slot[i])
		}
	}
	missing := make([]int, 0, len(list))
	for _, i := range list {
		if c.slot[i] < 0 {
			missing = append(missing, i)
		}
	}
	c.misses += len(missing)
	for len(missing) > 0 {
		part := missing[:min(c.batch, len(missing))]
		if err := c.compute(part); err != nil {
			return err
		}
		missing = missing[len(part):]
	}
	return nil
}

// compute fills slots with rows that are not kept.
func (c *rowCache[T]) compute(list []int) error {
	n := c.host.Rows
	points := c.gathered.View(0, 0, len(list), c.host.Cols)
	for r, i := range list {
		copy(points.Row(r), c.host.Row(i))
	}
	x, err := backend.Place(c.b, points)
	if err != nil {
		return err
	}
	defer x.Free()
	if c.wrap != nil {
		// Each row where it is to stay: slots that follow each other in one
		// call, which while the cache fills is all of them.
		slots := make([]int, len(list))
		for r := range list {
			slots[r] = c.take()
		}
		for r := 0; r < len(list); {
			end := r + 1
			for end < len(list) && slots[end] == slots[end-1]+1 {
				end++
			}
			out := c.wrap.Wrap(c.rows.View(slots[r], 0, end-r, n))
			c.b.Gram(out, c.k, x.View(r, 0, end-r, c.host.Cols), c.x)
			r = end
		}
		if err := c.b.Sync(); err != nil {
			return err
		}
		for r, i := range list {
			if err := c.own(slots[r], i); err != nil {
				return err
			}
		}
		return nil
	}
	out := c.out.View(0, 0, len(list), n)
	c.b.Gram(out, c.k, x, c.x)
	for r, i := range list {
		s := c.take()
		if err := c.b.Download(c.rows.View(s, 0, 1, n), out.View(r, 0, 1, n)); err != nil {
			return err
		}
		if err := c.own(s, i); err != nil {
			return err
		}
	}
	return nil
}

// take frees the slot that was not used the longest and makes it the newest.
func (c *rowCache[T]) take() int {
	s := c.newer[c.capacity()]
	if i := c.owner[s]; i >= 0 {
		c.slot[i] = -1
	}
	c.owner[s] = -1
	c.touch(s)
	return s
}

// own makes slot s that of row i, which has been computed. It refuses values
// that are no numbers: who looks for the best of them would find none, for ever.
func (c *rowCache[T]) own(s, i int) error {
	row := c.rows.Row(s)
	row[i] = c.diag[i]
	for _, v := range row {
		if v-v != 0 {
			return fmt.Errorf("values of the kernel %v overflow: scale the features down", c.k)
		}
	}
	c.owner[s], c.slot[i] = i, s
	return nil
}

// touch makes a slot the newest.
func (c *rowCache[T]) touch(s int) {
	c.newer[c.older[s]], c.older[c.newer[s]] = c.newer[s], c.older[s]
	head := c.capacity()
	last := c.older[head]
	c.newer[last], c.older[s] = s, last
	c.newer[s], c.older[head] = head, s
}

package svm

import (
	"context"
	"fmt"
	"slices"

	"gonum.org/v1/gonum/floats"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/pages"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// CacheBytes is the default memory of a RowCache.
const CacheBytes = 512 << 20

// RowCache caches rows of K = k(X, X) for learners that repeatedly need some of the rows, such as perceptrons and
// SMO. The backend computes the missing rows in batches, and they replace the least recently used rows.
//
// Only one goroutine may use a RowCache. On some backends the bits of a row depend on the other rows of the call,
// so that the order of requests must depend only on the data.
type RowCache struct {
	b    backend.Backend[float64]
	k    kernels.Kernel
	host numeric.Points          // the samples X
	x    backend.Matrix[float64] // X on the device; nil if gram is set
	gram *gram
	// Diag is the diagonal of K.
	Diag []float64

	rows     backend.Host[float64] // one cached row of K in each slot
	slot     []int                 // slot of row i of K; −1 if the row is not cached
	owner    []int                 // row of K in each slot; −1 if the slot is free
	newer    []int                 // newer and older link the slots in the order of use; their last elements are the head of this ring
	older    []int
	batch    int                     // maximum number of rows that one call of the backend computes
	gathered backend.Host[float64]   // dense samples whose rows a call computes
	out      backend.Matrix[float64] // batch × n results of a call; nil if the backend can write into rows
	wrap     backend.Wrapper[float64]
	mem      *memory

	hits   int
	Misses int // number of computed rows
}

// CacheSize determines the number of rows that a RowCache stores.
type CacheSize struct {
	Bytes int64 // bytes of Go memory for rows; 0 means CacheBytes
	Least int   // minimum number of cached rows, even if Bytes is smaller
	Batch int   // maximum number of rows that the backend computes in one call
}

// NewRowCache copies X to the device and allocates the Go memory for rows. The caller must close the cache.
func NewRowCache(ctx context.Context, b backend.Backend[float64], k kernels.Kernel, x numeric.Points, size CacheSize) (*RowCache, error) {
	return newPointCache(ctx, b, k, x, size, &memory{})
}

// newPointCache implements NewRowCache with memory that the caller may reuse after Close.
func newPointCache(ctx context.Context, b backend.Backend[float64], k kernels.Kernel, x numeric.Points, size CacheSize, m *memory) (*RowCache, error) {
	if size.Bytes <= 0 {
		size.Bytes = CacheBytes
	}
	diag, err := diagonal(k, x)
	if err != nil {
		return nil, err
	}
	c := newRowCache(k, diag, size, m)
	c.b, c.host = b.With(ctx, nil), x
	if x.Sparse == nil {
		c.gathered = m.matrix(&m.gathered, c.batch, x.Cols)
	}
	c.wrap, _ = b.(backend.Wrapper[float64])
	if c.x, err = x.Place(b); err != nil {
		return nil, err
	}
	if c.wrap == nil {
		if c.out, err = b.New(c.batch, x.Rows); err != nil {
			c.x.Free()
			return nil, err
		}
	}
	return c, nil
}

// newRowCache returns an empty cache of a matrix with the given diagonal.
func newRowCache(k kernels.Kernel, diag []float64, size CacheSize, m *memory) *RowCache {
	n := len(diag)
	batch := min(max(size.Batch, 1), n)
	slots := int(min(int64(n), max(size.Bytes/(8*int64(n)), int64(size.Least), int64(batch))))
	free := grow(&m.lists, n+3*slots+2)
	c := &RowCache{
		k: k, Diag: diag, batch: batch, mem: m,
		rows: m.takeRows(slots, n), slot: free[:n], owner: free[n : n+slots],
		newer: free[n+slots : n+2*slots+1], older: free[n+2*slots+1:],
	}
	for i := range n + slots {
		free[i] = -1
	}
	for i := range slots + 1 { // the list is a ring whose head has the index slots
		c.newer[i], c.older[i] = (i+1)%(slots+1), (i+slots)%(slots+1)
	}
	return c
}

// diagonal returns k(x_i, x_i) for each row. It returns an error for a value that is not finite.
func diagonal(k kernels.Kernel, x numeric.Points) ([]float64, error) {
	diag := x.Diagonal(k)
	for i, v := range diag {
		if v-v != 0 {
			return nil, numeric.PointError(k, i, x.Point(i), v)
		}
	}
	return diag, nil
}

// A gram is a submatrix of a matrix k(X, X). Several caches share the matrix.
type gram struct {
	k    backend.Host[float64]
	rows []int // indices of the rows and columns of k in the submatrix
}

func newGram(b backend.Backend[float64], k kernels.Kernel, x numeric.Points) (out backend.Host[float64], err error) {
	if _, err := diagonal(k, x); err != nil {
		return out, err
	}
	points, err := x.Place(b)
	if err != nil {
		return out, err
	}
	defer points.Free()
	out = backend.NewHost[float64](x.Rows, x.Rows)
	if wrap, ok := b.(backend.Wrapper[float64]); ok {
		b.Gram(wrap.Wrap(out), k, points, points)
		err = b.Sync()
	} else {
		var m backend.Matrix[float64]
		if m, err = b.New(x.Rows, x.Rows); err != nil {
			return out, err
		}
		defer m.Free()
		b.Gram(m, k, points, points)
		err = b.Download(out, m)
	}
	copyLower(out)
	return out, err
}

// copyLower copies the lower triangle of a square matrix to its upper triangle.
func copyLower(a backend.Host[float64]) {
	const block = 32
	blocks := (a.Rows + block - 1) / block
	fill := func(blockRow int) {
		first, last := blockRow*block, min(blockRow*block+block, a.Rows)
		for column := first; column < a.Rows; column += block {
			for i := first; i < last; i++ {
				to := a.Row(i)
				for j := max(column, i+1); j < min(column+block, a.Rows); j++ {
					to[j] = a.Data[j*a.Stride+i]
				}
			}
		}
	}
	run.Parallel((blocks+1)/2, func(first, last int) { // task k fills the block rows k and blocks−1−k, so that all tasks take the same time
		for k := first; k < last; k++ {
			fill(k)
			if opposite := blocks - 1 - k; opposite != k {
				fill(opposite)
			}
		}
	})
}

// submatrix returns the submatrix of g with the given rows and columns of g, or nil if g is nil.
func (g *gram) submatrix(rows []int) *gram {
	if g == nil {
		return nil
	}
	sub := &gram{k: g.k, rows: make([]int, len(rows))}
	for r, i := range rows {
		sub.rows[r] = g.rows[i]
	}
	return sub
}

// cache returns a cache whose rows are copied from g.
func (g *gram) cache(k kernels.Kernel, size CacheSize, m *memory) *RowCache {
	diag := make([]float64, len(g.rows))
	for r, i := range g.rows {
		diag[r] = g.k.Row(i)[i]
	}
	c := newRowCache(k, diag, size, m)
	c.gram = g
	return c
}

// CachePlan returns the memory of a RowCache in bytes, for n rows like those of x and batches of minRows rows. The
// cache stores as many rows of K as fit in the given number of bytes, but at least minRows rows.
func CachePlan(dev backend.Device, x numeric.Points, n int, bytes int64, minRows int) int64 {
	b, row := dev.F64(), 8*int64(n)
	total := min(row*int64(n), max(bytes, row*int64(minRows))) + x.PlacedBytes(b, n) + x.CopyBytes(minRows) + x.PlacedBytes(b, minRows)
	if _, ok := b.(backend.Wrapper[float64]); !ok {
		return total + row*int64(minRows)
	}
	return total + min(stagedBytes, row*int64(minRows))
}

// CacheWithin returns bytes, but at most half of the memory that a fit may take.
func CacheWithin(dev backend.Device, memory, bytes int64) int64 {
	if bytes <= 0 {
		bytes = CacheBytes
	}
	return min(bytes, max(run.Available(dev, memory)/2, 1))
}

// memory holds allocations that the solver reuses for the next quadratic program, because clearing new memory would
// take as long as computing rows of K. Only one goroutine may use a memory.
type memory struct {
	rows     []float64 // the slots of a RowCache
	minSize  int       // minimum length of a new allocation of rows; the caller sets it to the length for the largest program
	lists    []int     // the lists of a RowCache
	gathered []float64 // a batch of samples of a RowCache
	staged   []float64 // a block of columns of rows that a RowCache computes
	points   []float64 // the samples of a program
	program  []float64 // the vectors of a program
	state    []float64 // the vectors of SMO
	inactive []int     // the slice smo.inactive
	block    []float64 // the block of K of a working set
	vectors  []float64 // the vectors of a working set
	up, down []int     // the candidates of a working set
}

// grow returns the first n elements of *s, with arbitrary contents. It allocates them if *s is shorter.
func grow[T any](s *[]T, n int) []T {
	if cap(*s) < n {
		*s = nil // free the old memory before the allocation
		*s = make([]T, n)
	}
	return (*s)[:n]
}

// matrix returns a matrix of rows × cols elements of *s with arbitrary contents.
func (m *memory) matrix(s *[]float64, rows, cols int) backend.Host[float64] {
	return backend.Host[float64]{Rows: rows, Cols: cols, Stride: cols, Data: grow(s, rows*cols)}
}

// takeRows returns a slots×n matrix with arbitrary contents.
func (m *memory) takeRows(slots, n int) backend.Host[float64] {
	if cap(m.rows) < slots*n {
		m.rows = nil
		m.rows = pages.Zeros[float64](max(slots*n, m.minSize))
	}
	return m.matrix(&m.rows, slots, n)
}

// Close frees the device memory.
func (c *RowCache) Close() {
	if c.x != nil {
		c.x.Free()
	}
	if c.out != nil {
		c.out.Free()
	}
}

// Capacity returns the maximum number of cached rows.
func (c *RowCache) Capacity() int { return c.rows.Rows }

// Row returns row i of K, which the caller must not change. The row is valid until Capacity() other
// rows have been requested.
func (c *RowCache) Row(i int) ([]float64, error) {
	if c.slot[i] >= 0 {
		c.hits++
		c.touch(c.slot[i])
		return c.rows.Row(c.slot[i]), nil
	}
	if err := c.Fetch([]int{i}); err != nil {
		return nil, err
	}
	return c.rows.Row(c.slot[i]), nil
}

// Fetch computes the missing rows of a list in batches, so that all rows of the list are cached.
// The list must have at most Capacity() distinct rows.
func (c *RowCache) Fetch(list []int) error {
	if len(list) > c.Capacity() {
		return fmt.Errorf("row cache: %d rows were requested at once, but the cache holds at most %d rows", len(list), c.Capacity())
	}
	for _, i := range list { // missing rows must replace other rows
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
	c.Misses += len(missing)
	for len(missing) > 0 {
		batch := missing[:min(c.batch, len(missing))]
		if err := c.compute(batch); err != nil {
			return err
		}
		missing = missing[len(batch):]
	}
	return nil
}

func (c *RowCache) compute(list []int) error {
	if c.gram != nil {
		for _, i := range list {
			s := c.takeSlot()
			from, to := c.gram.k.Row(c.gram.rows[i]), c.rows.Row(s)
			for r, j := range c.gram.rows {
				to[r] = from[j]
			}
			if err := c.assign(s, i); err != nil {
				return err
			}
		}
		return nil
	}
	n := c.host.Rows
	x, err := c.gather(list)
	if err != nil {
		return err
	}
	defer x.Free()
	if c.wrap != nil {
		slots := make([]int, len(list))
		for r := range list {
			slots[r] = c.takeSlot()
		}
		if err := c.write(slots, x); err != nil {
			return err
		}
		for r, i := range list {
			if err := c.assign(slots[r], i); err != nil {
				return err
			}
		}
		return nil
	}
	out := c.out.View(0, 0, len(list), n)
	c.b.Gram(out, c.k, x, c.x)
	for r, i := range list {
		s := c.takeSlot()
		if err := c.b.Download(c.rows.View(s, 0, 1, n), out.View(r, 0, 1, n)); err != nil {
			return err
		}
		if err := c.assign(s, i); err != nil {
			return err
		}
	}
	return nil
}

// stagedBytes is the memory for a block of columns of K, which fits in the second- or third-level cache.
const stagedBytes = 2 << 20

// write computes the rows of K for the samples x in the given slots. If the slots are not consecutive, it computes
// blocks of columns of all rows and copies them to the slots.
func (c *RowCache) write(slots []int, x backend.Matrix[float64]) error {
	n := c.host.Rows
	if slots[len(slots)-1]-slots[0] == len(slots)-1 && slices.IsSorted(slots) {
		c.b.Gram(c.wrap.Wrap(c.rows.View(slots[0], 0, len(slots), n)), c.k, x, c.x)
		return c.b.Sync()
	}
	width := min(n, stagedBytes/8/len(slots))
	block := c.mem.matrix(&c.mem.staged, len(slots), width)
	for first := 0; first < n; first += width {
		cols := min(width, n-first)
		products := block.View(0, 0, len(slots), cols)
		c.b.Gram(c.wrap.Wrap(products), c.k, x, c.x.View(first, 0, cols, c.host.Cols))
		if err := c.b.Sync(); err != nil {
			return err
		}
		run.Parallel(len(slots), func(begin, end int) {
			for r := begin; r < end; r++ {
				copy(c.rows.Row(slots[r])[first:], products.Row(r))
			}
		})
	}
	return nil
}

// gather returns the samples of a list as a matrix on the device.
func (c *RowCache) gather(list []int) (backend.Matrix[float64], error) {
	if c.host.Sparse != nil && len(list) == 1 { // a copy of the sample would take as long as a row of K
		return c.x.View(list[0], 0, 1, c.host.Cols), nil
	}
	if c.host.Sparse != nil {
		return c.host.Take(list).Place(c.b)
	}
	points := c.gathered.View(0, 0, len(list), c.host.Cols)
	for r, i := range list {
		copy(points.Row(r), c.host.Dense.Row(i))
	}
	return backend.Place(c.b, points)
}

// takeSlot frees the least recently used slot and makes it the most recently used slot.
func (c *RowCache) takeSlot() int {
	s := c.newer[c.Capacity()]
	if i := c.owner[s]; i >= 0 {
		c.slot[i] = -1
	}
	c.owner[s] = -1
	c.touch(s)
	return s
}

// assign records that slot s holds row i. It returns an error if the row contains a value that is not finite: with NaN,
// the solver's search for the largest value would not end.
func (c *RowCache) assign(s, i int) error {
	row := c.rows.Row(s)
	row[i] = c.Diag[i]
	if sum := floats.Sum(row); sum-sum != 0 { // a value is not finite, or the sum of finite values overflows
		if slices.ContainsFunc(row, func(v float64) bool { return v-v != 0 }) {
			return kernels.Overflow(fmt.Errorf("values of the kernel %v overflow: scale the features down", c.k))
		}
	}
	c.owner[s], c.slot[i] = i, s
	return nil
}

func (c *RowCache) touch(s int) {
	c.newer[c.older[s]], c.older[c.newer[s]] = c.newer[s], c.older[s]
	head := c.Capacity()
	last := c.older[head]
	c.newer[last], c.older[s] = s, last
	c.newer[s], c.older[head] = head, s
}

package cuda

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/kernels"
)

// hostPacked stores a symmetric matrix in page-locked memory of the host, for cards with too little memory. The
// lower triangle is divided into panels of `width` columns. Each panel is row-major and begins with the row of the
// diagonal element of its first column.
//
//	┌ p₀       ┐   Panels p₀, p₁, … are copied to two buffers on the device: while
//	│ p₀ p₁    │   one is used, the next panel is copied to the other, in the stream of
//	└ p₀ p₁ p₂ ┘   copies. A third buffer holds the panel that is computed.
//
// The factorization is left-looking: it reads the panels before panel j, updates panel j with them, and writes
// panel j once.
type hostPacked[T backend.Float] struct {
	store *hostStore[T]
	n     int // order of the whole matrix or of a leading block
}

type hostStore[T backend.Float] struct {
	device   *device
	n, width int
	panels   [][]byte

	target driver.DevicePtr // address of the three buffers
	slots  [2]slot
	stored driver.Event // signals that the last written panel is in the host's memory
	freed  atomic.Bool
}

// slot is a device buffer for panels.
type slot struct {
	memory      driver.DevicePtr
	ready, free driver.Event // ready: a panel has been copied to the buffer; free: the work that reads the panel is done
}

// panelBytes is the size in bytes of a row of a panel, 2048 columns in float64. Each byte that is transferred is
// used for 512 operations, which take longer than the transfer through PCIe.
var panelBytes = 16 << 10

func panelWidth[T backend.Float](n int) int {
	return max(1, min(panelBytes/sizeOf[T](), n))
}

func (q *queue[T]) HostPackedBytes(n int) (device, hostBytes int64) {
	check.NewPacked(n)
	size := float64(sizeOf[T]())
	w := panelWidth[T](n)
	if float64(n)*(float64(n)+float64(w))/2*size >= math.MaxInt64/4 {
		return math.MaxInt64, math.MaxInt64
	}
	for j := 0; j < n; j += w {
		hostBytes += int64(n-j) * int64(min(w, n-j))
	}
	return 3 * int64(n) * int64(w) * int64(size), hostBytes * int64(size)
}

// HostFree returns 80 % of the bytes of memory that the process may still take, or 2 GiB if the
// system does not report this memory.
func (q *queue[T]) HostFree() int64 {
	free, known := backend.HostMemory()
	if !known {
		free = 1 << 31
	}
	return free / 10 * 8
}

func (q *queue[T]) NewHostPacked(n int) (backend.Packed[T], error) {
	check.NewPacked(n)
	d := q.engine.device
	onDevice, onHost := q.HostPackedBytes(n)
	if free := q.HostFree(); onHost > free {
		return nil, &backend.MemoryError{Device: "the memory of the host", Requested: onHost, Free: free}
	}
	s := &hostStore[T]{device: d, n: n, width: panelWidth[T](n)}
	if n == 0 {
		return &hostPacked[T]{s, 0}, nil
	}
	p, err := d.allocate(onDevice)
	if err != nil {
		return nil, err
	}
	s.target = p
	d.exec.do(func() { err = s.open(q.canceled) })
	if err != nil {
		d.exec.do(func() { err = errors.Join(err, s.close()) })
		d.deallocate(s.target)
		if errors.Is(err, errStopped) {
			return nil, fmt.Errorf("%s: stopped: %w", d.name, context.Cause(q.ctx))
		}
		var e *driver.Error
		if errors.As(err, &e) && driver.Result(e.Code) == driver.OutOfMemory {
			return nil, &backend.MemoryError{Device: "the memory of the host", Requested: onHost, Free: q.HostFree()}
		}
		return nil, d.checked("new", err)
	}
	d.mu.Lock()
	d.stores = append(d.stores, s)
	d.mu.Unlock()
	return &hostPacked[T]{s, n}, nil
}

// open allocates the memory of the store, except its buffers. It calls stop before each allocation, because locking
// the pages of some gigabytes takes about a second, and returns errStopped if stop returns true.
func (s *hostStore[T]) open(stop func() bool) (err error) {
	api, row := s.device.api, s.width*sizeOf[T]()
	if s.stored, err = api.NewEvent(false); err != nil {
		return err
	}
	for i := range s.slots {
		s.slots[i].memory = s.target + driver.DevicePtr((i+1)*s.n*row)
		for _, e := range []*driver.Event{&s.slots[i].ready, &s.slots[i].free} {
			if *e, err = api.NewEvent(false); err != nil {
				return err
			}
		}
	}
	for j := 0; j < s.n; j += s.width {
		if stop() {
			return errStopped
		}
		memory, err := api.AllocHost((s.n - j) * min(s.width, s.n-j) * sizeOf[T]())
		if err != nil {
			return err
		}
		s.panels = append(s.panels, memory)
	}
	return nil
}

// close waits for all work and releases what open has allocated.
func (s *hostStore[T]) close() error {
	api := s.device.api
	errs := []error{api.Wait(s.device.copies), api.Wait(s.device.stream)}
	events := []driver.Event{s.stored}
	for i := range s.slots {
		events = append(events, s.slots[i].ready, s.slots[i].free)
	}
	for _, e := range events {
		if e != 0 {
			errs = append(errs, api.DestroyEvent(e))
		}
	}
	for _, p := range s.panels {
		errs = append(errs, api.FreeHost(p))
	}
	s.panels = nil
	return errors.Join(errs...)
}

func (h *hostPacked[T]) Order() int { return h.n }

// Free does nothing on a leading block, or if the matrix is already freed.
func (h *hostPacked[T]) Free() {
	s := h.store
	if h.n != s.n || s.n == 0 || s.device.closed.Load() || s.freed.Swap(true) {
		return
	}
	d := s.device
	d.removeStore(s)
	d.exec.queue(func() { d.freed(s.close()) })
	d.deallocate(s.target)
}

func (h *hostPacked[T]) Leading(n int) backend.Packed[T] {
	check.Leading(n, h.n)
	return &hostPacked[T]{h.store, n}
}

// panel describes one panel of the matrix or, for a leading block, the part in the leading block.
type panel[T backend.Float] struct {
	number, first, rows, cols int // first is the index of the panel's first row and column
	stride                    int
	memory                    []byte
}

func (h *hostPacked[T]) panel(k int) panel[T] {
	s := h.store
	first := k * s.width
	return panel[T]{k, first, h.n - first, min(s.width, h.n-first), min(s.width, s.n-first), s.panels[k]}
}

// count returns the number of panels.
func (h *hostPacked[T]) count() int {
	if h.n == 0 {
		return 0
	}
	return ceil(h.n, h.store.width)
}

// row returns row i of the panel, where row 0 is the panel's first row.
func (p panel[T]) row(i int) []byte {
	size := sizeOf[T]()
	return p.memory[i*p.stride*size : (i*p.stride+min(i+1, p.cols))*size]
}

// bufferMatrix returns a device buffer as a matrix of the panel's rows from firstRow on.
func (h *hostPacked[T]) bufferMatrix(buffer driver.DevicePtr, p panel[T], firstRow int) *matrix[T] {
	return &matrix[T]{device: h.store.device, ptr: buffer, rows: p.rows - firstRow, cols: p.cols, stride: p.stride}
}

// copyPanel queues a copy of the panel's rows from firstRow on, to or from a device buffer.
func (h *hostPacked[T]) copyPanel(p panel[T], firstRow int, buffer driver.DevicePtr, toHost bool, stream driver.Stream) error {
	row := p.stride * sizeOf[T]()
	hostPlace := driver.Place{Host: p.memory[firstRow*row : p.rows*row], Pitch: row}
	devicePlace := driver.Place{Device: buffer, Pitch: row}
	c := driver.Copy2D{Src: hostPlace, Dst: devicePlace, Width: row, Height: p.rows - firstRow}
	if toHost {
		c.Src, c.Dst = devicePlace, hostPlace
	}
	if c.Height == 0 {
		return nil
	}
	return h.store.device.api.Copy(c, stream)
}

// forEachPanel copies the panels of the list numbers to the device, in order, and calls use(p, m) for each panel p,
// where m contains the panel's rows with index ≥ first. The next panel is copied while use works.
func (h *hostPacked[T]) forEachPanel(q *queue[T], numbers []int, first int, use func(p panel[T], m *matrix[T]) error) error {
	s, api, stream, copies := h.store, h.store.device.api, h.store.device.stream, h.store.device.copies
	firstRow := func(p panel[T]) int { return max(first-p.first, 0) }
	load := func(i int) error {
		slot, p := &s.slots[i%2], h.panel(numbers[i])
		if q.canceled() {
			return errStopped
		}
		return firstOf(
			func() error { return api.WaitInStream(copies, s.stored) },
			func() error { return api.WaitInStream(copies, slot.free) },
			func() error { return h.copyPanel(p, firstRow(p), slot.memory, false, copies) },
			func() error { return api.Record(slot.ready, copies) },
		)
	}
	if len(numbers) == 0 {
		return nil
	}
	if err := api.Record(s.stored, stream); err != nil {
		return err
	}
	for i := range s.slots {
		if err := api.Record(s.slots[i].free, stream); err != nil {
			return err
		}
	}
	for i, k := range numbers {
		if i == 0 {
			if err := load(0); err != nil {
				return err
			}
		}
		if i+1 < len(numbers) {
			if err := load(i + 1); err != nil {
				return err
			}
		}
		slot, p := &s.slots[i%2], h.panel(k)
		if err := api.WaitInStream(stream, slot.ready); err != nil {
			return err
		}
		if err := use(p, h.bufferMatrix(slot.memory, p, firstRow(p))); err != nil {
			return err
		}
		if err := api.Record(slot.free, stream); err != nil {
			return err
		}
	}
	return nil
}

// ascending lists 0 … n−1, and descending lists the same numbers in descending order.
func ascending(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

func descending(n int) []int {
	list := ascending(n)
	for i := range list {
		list[i] = n - 1 - i
	}
	return list
}

// hostRows waits for the device and calls f(i, j, v) for each stored part of the rows first … first+rows−1. v
// contains elements of row i, beginning with column j.
func (h *hostPacked[T]) hostRows(q *queue[T], first, rows int, f func(i, j int, v []T)) error {
	d := h.store.device
	if err := d.api.Wait(d.stream); err != nil {
		return err
	}
	for k := range h.count() {
		p := h.panel(k)
		for i := max(first, p.first); i < first+rows; i++ {
			if q.canceled() {
				return errStopped
			}
			f(i, p.first, valuesOf[T](p.row(i-p.first)))
		}
	}
	return nil
}

// diagonal waits for the device and calls f for every diagonal element in host memory.
func (h *hostPacked[T]) diagonal(q *queue[T], f func(i int, v *T)) error {
	d := h.store.device
	if err := d.api.Wait(d.stream); err != nil {
		return err
	}
	for k := range h.count() {
		p := h.panel(k)
		for i := range p.cols {
			f(p.first+i, &valuesOf[T](p.row(i))[i])
		}
	}
	return nil
}

func (h *hostPacked[T]) gram(q *queue[T], k kernels.Kernel, x *matrix[T]) error {
	s := h.store
	for j := range h.count() {
		p := h.panel(j)
		m := h.bufferMatrix(s.target, p, 0)
		x1 := x.window(p.first, 0, p.cols, x.cols)
		x2 := x.window(p.first+p.cols, 0, p.rows-p.cols, x.cols)
		err := firstOf(
			func() error { return q.gram(m.window(0, 0, p.cols, p.cols).view(), k, x1, x1, lower) },
			func() error {
				return q.gram(m.window(p.cols, 0, p.rows-p.cols, p.cols).view(), k, x2, x1, whole)
			},
			func() error { return h.copyPanel(p, 0, s.target, true, s.device.stream) },
		)
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *hostPacked[T]) symm(q *queue[T], alpha T, b *matrix[T], beta T, c *matrix[T]) error {
	if err := q.scale(beta, c.view(), whole, false); err != nil {
		return err
	}
	const noTrans, trans = backend.NoTrans, backend.Transpose
	return h.forEachPanel(q, ascending(h.count()), 0, func(p panel[T], m *matrix[T]) error {
		square, below, b1, b2 := h.splitPanel(p, m, b)
		_, _, c1, c2 := h.splitPanel(p, m, c)
		return firstOf(
			func() error { return q.symm(backend.Lower, alpha, square, b1, 1, c1) },
			func() error { return q.gemm(trans, noTrans, alpha, below, b2, 1, c1, rounding{}) },
			func() error { return q.gemm(noTrans, noTrans, alpha, below, b1, 1, c2, rounding{}) },
		)
	})
}

// splitPanel divides a panel, stored in m, into the square on the diagonal and the rows below the square. b1 and b2
// are the rows of b with the numbers of these rows.
func (h *hostPacked[T]) splitPanel(p panel[T], m, b *matrix[T]) (square, below, b1, b2 *matrix[T]) {
	end := p.first + p.cols
	return m.window(0, 0, p.cols, p.cols), m.window(p.cols, 0, p.rows-p.cols, p.cols),
		b.window(p.first, 0, p.cols, b.cols), b.window(end, 0, h.n-end, b.cols)
}

func (h *hostPacked[T]) potrf(q *queue[T], r rounding) error {
	s, api, stream := h.store, h.store.device.api, h.store.device.stream
	for j := range h.count() {
		p := h.panel(j)
		m := h.bufferMatrix(s.target, p, 0)
		square, below := m.window(0, 0, p.cols, p.cols), m.window(p.cols, 0, p.rows-p.cols, p.cols)
		if err := h.copyPanel(p, 0, s.target, false, stream); err != nil {
			return err
		}
		err := h.forEachPanel(q, ascending(j), p.first, func(_ panel[T], l *matrix[T]) error {
			diagonalRows, rowsBelow := l.window(0, 0, p.cols, l.cols), l.window(p.cols, 0, p.rows-p.cols, l.cols)
			return firstOf(
				func() error { return q.syrk(backend.Lower, backend.NoTrans, -1, diagonalRows, 1, square, r) },
				func() error {
					return q.gemm(backend.NoTrans, backend.Transpose, -1, rowsBelow, diagonalRows, 1, below, r)
				},
			)
		})
		if err == nil {
			err = q.potrf(backend.Lower, square, r)
		}
		if pivot := new(backend.PivotError); errors.As(err, &pivot) {
			pivot.Index += p.first
			// The leading rows of a failed factor are valid, so they are written back.
			return errors.Join(h.copyPanel(p, 0, s.target, true, stream), api.Wait(stream), err)
		}
		if err == nil {
			err = q.trsm(backend.Right, backend.Lower, backend.Transpose, 1, square, below, r)
		}
		if err == nil {
			err = h.copyPanel(p, 0, s.target, true, stream)
		}
		if err != nil {
			return err
		}
	}
	return api.Wait(stream)
}

func (h *hostPacked[T]) trsm(q *queue[T], t backend.Trans, b *matrix[T]) error {
	const noTrans, trans = backend.NoTrans, backend.Transpose
	order := ascending(h.count())
	if t == trans {
		order = descending(h.count())
	}
	return h.forEachPanel(q, order, 0, func(p panel[T], m *matrix[T]) error {
		square, below, b1, b2 := h.splitPanel(p, m, b)
		solve := func() error { return q.trsm(backend.Left, backend.Lower, t, 1, square, b1, rounding{}) }
		if t == noTrans {
			return firstOf(solve, func() error { return q.gemm(noTrans, noTrans, -1, below, b1, 1, b2, rounding{}) })
		}
		return firstOf(func() error { return q.gemm(trans, noTrans, -1, below, b2, 1, b1, rounding{}) }, solve)
	})
}

// onHost returns a as a *hostPacked if it is a *hostPacked of this device, and nil otherwise.
func (q *queue[T]) onHost(op string, a backend.Packed[T]) *hostPacked[T] {
	h, ok := a.(*hostPacked[T])
	if !ok {
		return nil
	}
	if h.store.device != q.engine.device {
		check.Foreign(op)
	}
	if h.store.freed.Load() {
		check.Freed(op)
	}
	return h
}

// closer is an object that Close of the device closes, unless its owner has removed it by removeStore.
type closer interface{ close() error }

// removeStore removes s from the list of objects that Close of the device closes.
func (d *device) removeStore(s closer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, store := range d.stores {
		if store == s {
			d.stores = append(d.stores[:i], d.stores[i+1:]...)
			return
		}
	}
}

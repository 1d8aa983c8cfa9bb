package cuda

import (
	"errors"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
)

// view is a matrix with any strides, in elements.
type view[T backend.Float] struct {
	ptr        driver.DevicePtr
	rows, cols int
	rs, cs     int
}

func (m *matrix[T]) view() view[T] { return view[T]{m.ptr, m.rows, m.cols, m.stride, 1} }

// diagonal returns the diagonal of a square matrix as a column.
func (m *matrix[T]) diagonal() view[T] { return view[T]{m.ptr, m.rows, 1, m.stride + 1, 1} }

func (v view[T]) t() view[T] { return view[T]{v.ptr, v.cols, v.rows, v.cs, v.rs} }

func (v view[T]) op(t backend.Trans) view[T] {
	if t == backend.Transpose {
		return v.t()
	}
	return v
}

func (v view[T]) window(i, j, rows, cols int) view[T] {
	return view[T]{v.ptr + driver.DevicePtr((i*v.rs+j*v.cs)*sizeOf[T]()), rows, cols, v.rs, v.cs}
}

// reversed returns v with the rows and the columns in reverse order, so that an upper triangle
// becomes a lower triangle.
func (v view[T]) reversed() view[T] {
	r := v.window(v.rows-1, v.cols-1, v.rows, v.cols)
	r.rs, r.cs = -v.rs, -v.cs
	return r
}

func (v view[T]) rowsReversed() view[T] {
	r := v.window(v.rows-1, 0, v.rows, v.cols)
	r.rs = -v.rs
	return r
}

// region selects a part of a square matrix. The values are those of internal/ptx/common.cuh.
type region int

const (
	whole region = iota
	lower
	upper
)

func regionOf(ul backend.Uplo) region {
	if ul == backend.Upper {
		return upper
	}
	return lower
}

func scalarArg[T backend.Float](a *driver.Args, v T) {
	if sizeOf[T]() == 8 {
		a.Double(float64(v))
	} else {
		a.Float(float32(v))
	}
}

func viewArg[T backend.Float](a *driver.Args, v view[T]) { a.Ptr(v.ptr).Long(v.rs).Long(v.cs) }

// launch queues a device function of the engine's precision.
func (e *engine[T]) launch(name string, g driver.Grid) error {
	return e.device.launch(name+e.suffix, g)
}

// spread returns a grid with one thread per element: columns along x, and rows along y. A grid has at most 65535
// rows; for more rows, each thread computes several rows.
func spread(rows, cols int) driver.Grid {
	return driver.Grid{Blocks: [3]int{ceil(cols, threads), min(rows, 65535), 1}, Threads: [3]int{threads, 1, 1}}
}

// line returns a grid of at least n threads along x.
func line(n int) driver.Grid {
	return driver.Grid{Blocks: [3]int{ceil(n, threads), 1, 1}, Threads: [3]int{threads, 1, 1}}
}

// product computes C ← α A B + β C on a part of C with the device functions; sym specifies whether A is symmetric
// and which triangle is stored.
func (q *queue[T]) product(alpha T, a, b view[T], beta T, c view[T], part, sym region) error {
	m, n, k := c.rows, c.cols, b.rows
	if m == 0 || n == 0 {
		return nil
	}
	if part == whole && isThin(m, n, k, sym) {
		return q.thinProduct(alpha, a, b, beta, c, sym)
	}
	flops := flop.Gemm(1, n, k)
	// A grid has at most 65535 blocks along y.
	rows := min(q.rowsOfStep(m, flops), 65535*tile)
	for i := 0; i < m; i += rows {
		count := min(rows, m-i)
		if part != whole {
			if err := q.partRows(alpha, a, b, beta, c, part, i, count); err != nil {
				return err
			}
			continue
		}
		aRows := a
		if sym == whole {
			aRows = a.window(i, 0, count, k)
		} else if i > 0 || count < m {
			return q.symmetricRows(alpha, a, b, beta, c, sym, rows)
		}
		err := q.step(flops*float64(count), func() error { return q.engine.gemm(alpha, aRows, b, beta, c.window(i, 0, count, n), k, whole, sym) })
		if err != nil {
			return err
		}
	}
	return nil
}

// partRows computes the rows i to i+count−1 of the triangle of C ← α A B + β C that the argument part selects.
func (q *queue[T]) partRows(alpha T, a, b view[T], beta T, c view[T], part region, i, count int) error {
	n, k := c.cols, b.rows
	first, cols := 0, i
	if part == upper {
		first, cols = i+count, n-i-count
	}
	aRows := a.window(i, 0, count, k)
	return q.step(flop.Syrk(count, k)+flop.Gemm(count, cols, k), func() error {
		err := q.engine.gemm(alpha, aRows, b.window(0, i, k, count), beta, c.window(i, i, count, count), k, part, whole)
		if err == nil && cols > 0 {
			err = q.engine.gemm(alpha, aRows, b.window(0, first, k, cols), beta, c.window(i, first, count, cols), k, whole, whole)
		}
		return err
	})
}

// symmetricRows implements product for a symmetric A that is too large for one step of the queue. Each range of rows
// of C is the sum of three products, with the parts of A on the diagonal, to the left of it and to the right of it.
func (q *queue[T]) symmetricRows(alpha T, a, b view[T], beta T, c view[T], sym region, rows int) error {
	n := a.rows
	for i := 0; i < n; i += rows {
		count := min(rows, n-i)
		cRows := c.window(i, 0, count, c.cols)
		left, right := a.window(i, 0, count, i), a.window(i+count, i, n-i-count, count).t()
		if sym == upper {
			left, right = a.window(0, i, i, count).t(), a.window(i, i+count, count, n-i-count)
		}
		steps := []struct {
			a   view[T]
			b   view[T]
			sym region
		}{
			{a.window(i, i, count, count), b.window(i, 0, count, b.cols), sym},
			{left, b.window(0, 0, i, b.cols), whole},
			{right, b.window(i+count, 0, n-i-count, b.cols), whole},
		}
		for s, x := range steps {
			if x.b.rows == 0 {
				continue
			}
			beta := beta
			if s > 0 {
				beta = 1
			}
			err := q.step(flop.Gemm(count, c.cols, x.b.rows), func() error { return q.engine.gemm(alpha, x.a, x.b, beta, cRows, x.b.rows, whole, x.sym) })
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// gemm launches the device function of the product.
func (e *engine[T]) gemm(alpha T, a, b view[T], beta T, c view[T], k int, part, sym region) error {
	args := e.device.args.Reset()
	args.Int(c.rows).Int(c.cols).Int(k)
	scalarArg(args, alpha)
	viewArg(args, a)
	viewArg(args, b)
	scalarArg(args, beta)
	viewArg(args, c)
	args.Int(int(part)).Int(int(sym))
	return e.launch("gemm", driver.Grid{Blocks: [3]int{ceil(c.cols, tile), ceil(c.rows, tile), 1}, Threads: [3]int{threads, 1, 1}})
}

// scale computes C ← β C on the given part of C. If β = 0, the elements become 0, and are only read if read is true
// (so that 0·NaN is NaN).
func (q *queue[T]) scale(beta T, c view[T], part region, read bool) error {
	if c.rows == 0 || c.cols == 0 || beta == 1 {
		return nil
	}
	args := q.engine.device.args.Reset().Int(c.rows).Int(c.cols)
	scalarArg(args, beta)
	viewArg(args, c)
	always := 0
	if read {
		always = 1
	}
	args.Int(int(part)).Int(always)
	return q.engine.launch("scale", spread(c.rows, c.cols))
}

func (q *queue[T]) AddDiag(d []T, a backend.Matrix[T]) {
	check.AddDiag(d, a)
	A, uniform := q.ownMatrix("AddDiag", a), len(d) == 1
	var value T
	if uniform {
		value = d[0]
	}
	q.run("add diagonal", q.withVector(d, func(p driver.DevicePtr) error {
		if uniform {
			p = 0
		}
		return q.addDiag(A.diagonal(), p, value)
	}, A.rows))
}

func (q *queue[T]) ColAxpy(alpha []T, x, y backend.Matrix[T]) {
	n, t := check.Columns("ColAxpy", alpha, x, y)
	X, Y := q.ownMatrix("ColAxpy", x), q.ownMatrix("ColAxpy", y)
	q.run("axpy", q.withVector(alpha, func(p driver.DevicePtr) error {
		q.engine.device.args.Reset().Int(n).Int(t).Ptr(p).Ptr(X.ptr).Long(X.stride).Ptr(Y.ptr).Long(Y.stride)
		return q.engine.launch("col_axpy", line(n*t))
	}, n*t))
}

// withVector copies v, which the caller may change, and returns a function that calls f with the copy on the device.
func (q *queue[T]) withVector(v []T, f func(p driver.DevicePtr) error, n int) func() error {
	values := append([]T(nil), v...)
	return func() error {
		if n == 0 {
			return nil
		}
		return q.scratch(int64(len(values)*sizeOf[T]()), func(p driver.DevicePtr) error {
			if err := q.engine.device.copyToDevice(p, bytesOf(values)); err != nil {
				return err
			}
			return f(p)
		})
	}
}

// scratch calls f with device memory for the work that f queues. Later calls reuse the memory without waiting, because
// the work of one stream runs in order. Nested calls and requests of more than maxSpareBytes get other memory.
func (q *queue[T]) scratch(bytes int64, f func(p driver.DevicePtr) error) error {
	d := q.engine.device
	if !d.spare.busy && bytes <= maxSpareBytes {
		p, err := d.spare.reserve(d, bytes)
		if err != nil {
			return err
		}
		d.spare.busy = true
		defer func() { d.spare.busy = false }()
		return f(p)
	}
	p, err := d.alloc(max(bytes, 1))
	if err != nil {
		return err
	}
	err = f(p)
	if waitErr := d.api.Wait(d.stream); err == nil {
		err = waitErr
	}
	if releaseErr := d.release(p); err == nil {
		err = releaseErr
	}
	return err
}

// spare is device memory that the method scratch reuses.
type spare struct {
	memory driver.DevicePtr
	bytes  int64
	busy   bool
}

// maxSpareBytes is the largest size of the spare memory in bytes.
const maxSpareBytes = 64 << 20

// reserve returns the spare memory. If it has fewer bytes than requested, reserve replaces it by a larger memory.
func (s *spare) reserve(d *device, bytes int64) (driver.DevicePtr, error) {
	if bytes <= s.bytes {
		return s.memory, nil
	}
	if err := s.close(d); err != nil {
		return 0, err
	}
	size := int64(1 << 16)
	for size < bytes {
		size *= 2
	}
	p, err := d.alloc(size)
	if err == nil {
		s.memory, s.bytes = p, size
	}
	return p, err
}

func (s *spare) close(d *device) error {
	if s.memory == 0 {
		return nil
	}
	p := s.memory
	s.memory, s.bytes = 0, 0
	return errors.Join(d.api.Wait(d.stream), d.release(p))
}

// ring is a page-locked ring buffer through which small vectors are copied to the device asynchronously.
type ring struct {
	memory []byte
	next   int
}

// ringBytes is the number of bytes of a ring. Tests reduce both sizes.
var (
	ringBytes     = 1 << 20
	maxRingVector = 1 << 16 // largest vector in bytes
)

// copyToDevice copies v to the device through the page-locked buffers.
func (d *device) copyToDevice(p driver.DevicePtr, v []byte) error {
	if r := &d.ring; len(v) <= maxRingVector {
		if len(v) == 0 {
			return nil
		}
		if r.next+len(v) > len(r.memory) {
			if err := d.api.Wait(d.stream); err != nil {
				return err
			}
			r.next = 0
		}
		from := r.memory[r.next : r.next+copy(r.memory[r.next:], v)]
		r.next = ceil(r.next+len(v), 64) * 64
		c := driver.Copy2D{Src: driver.Place{Host: from, Pitch: len(v)}, Dst: driver.Place{Device: p, Pitch: len(v)}, Width: len(v), Height: 1}
		return d.api.Copy(c, d.stream)
	}
	s := &d.staging[0]
	if err := s.waitUntilFree(d.api); err != nil {
		return err
	}
	for len(v) > 0 {
		n := copy(s.memory, v)
		c := driver.Copy2D{Src: driver.Place{Host: s.memory, Pitch: n}, Dst: driver.Place{Device: p, Pitch: n}, Width: n, Height: 1}
		if err := d.api.Copy(c, d.stream); err != nil {
			return err
		}
		if err := d.api.Wait(d.stream); err != nil {
			return err
		}
		v, p = v[n:], p+driver.DevicePtr(n)
	}
	return nil
}

// copyToHost copies len(v) bytes from the device to v.
func (d *device) copyToHost(p driver.DevicePtr, v []byte) error {
	s := &d.staging[0]
	if err := s.waitUntilFree(d.api); err != nil {
		return err
	}
	for len(v) > 0 {
		n := min(len(v), len(s.memory))
		c := driver.Copy2D{Src: driver.Place{Device: p, Pitch: n}, Dst: driver.Place{Host: s.memory, Pitch: n}, Width: n, Height: 1}
		if err := d.api.Copy(c, d.stream); err != nil {
			return err
		}
		if err := d.api.Wait(d.stream); err != nil {
			return err
		}
		copy(v, s.memory[:n])
		v, p = v[n:], p+driver.DevicePtr(n)
	}
	return nil
}

// dotBlocks returns the number of blocks of threads that sum the n rows of a dot product. It depends only on n, so
// that the sums do not depend on the device.
func dotBlocks(n int) int { return min(ceil(n, 8*threads), 256) }

func (q *queue[T]) ColDot(dst []T, x, y backend.Matrix[T]) error {
	n, t := check.Columns("ColDot", dst, x, y)
	X, Y := q.ownMatrix("ColDot", x), q.ownMatrix("ColDot", y)
	return q.wait("dot", func() error {
		if n == 0 || t == 0 {
			clear(dst)
			return nil
		}
		d, blocks := q.engine.device, dotBlocks(n)
		return q.scratch(int64(8*t*(blocks+1)), func(p driver.DevicePtr) error {
			d.args.Reset().Int(n).Int(t).Int(blocks).Ptr(X.ptr).Long(X.stride).Ptr(Y.ptr).Long(Y.stride).Ptr(p)
			if err := q.engine.launch("col_dot", driver.Grid{Blocks: [3]int{blocks, min(t, 65535), 1}, Threads: [3]int{threads, 1, 1}}); err != nil {
				return err
			}
			sums := p + driver.DevicePtr(8*t*blocks)
			d.args.Reset().Int(blocks).Int(t).Ptr(p).Ptr(sums)
			if err := d.launch("sum_blocks", line(t)); err != nil {
				return err
			}
			values := make([]float64, t)
			if err := d.copyToHost(sums, bytesOf(values)); err != nil {
				return err
			}
			for j, v := range values {
				dst[j] = T(v)
			}
			return nil
		})
	})
}

func (d *device) Narrow(dst backend.Matrix[float32], src backend.Matrix[float64]) {
	check.SameDims("Narrow", dst, src)
	q := &queue[float64]{engine: d.f64}
	to, from := (&queue[float32]{engine: d.f32}).ownMatrix("Narrow", dst), q.ownMatrix("Narrow", src)
	q.run("narrow", func() error { return convert(d, "narrow", to, from) })
}

func (d *device) Widen(dst backend.Matrix[float64], src backend.Matrix[float32]) {
	check.SameDims("Widen", dst, src)
	q := &queue[float32]{engine: d.f32}
	to, from := (&queue[float64]{engine: d.f64}).ownMatrix("Widen", dst), q.ownMatrix("Widen", src)
	q.run("widen", func() error { return convert(d, "widen", to, from) })
}

func convert[D, S backend.Float](d *device, name string, to *matrix[D], from *matrix[S]) error {
	if from.rows == 0 || from.cols == 0 {
		return nil
	}
	d.args.Reset().Int(from.rows).Int(from.cols).Ptr(from.ptr).Long(from.stride).Ptr(to.ptr).Long(to.stride)
	return d.launch(name, spread(from.rows, from.cols))
}

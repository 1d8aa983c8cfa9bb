package cuda

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/check"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/kernels"
)

// BenchmarkRoofline measures the GPU and NVIDIA's libraries: upper bounds for the rates in BenchmarkOwn.
//
//	go test ./cuda -run '^$' -bench 'Roofline|Own' -benchtime 1x
//
// Each figure is the best of three timings, by the clock of the host, of at least 30 ms of queued work.

// meter takes measurements on one device.
type meter struct {
	*device
	minTiming time.Duration // least length of a timing
	scale     int           // number by which the orders of matrices are divided
}

func newMeter(b *testing.B) *meter {
	b.Helper()
	Need(b)
	dev := backendtest.Device(b, "cuda/0")
	m := &meter{device: dev.(*device), minTiming: 30 * time.Millisecond, scale: 1}
	if isSimulated(dev) {
		m.minTiming, m.scale = 0, 128
	}
	return m
}

// measure runs f on the device's thread and returns the time until the work that f queues is done.
func (m *meter) measure(b *testing.B, f func() error) time.Duration {
	var err error
	var elapsed time.Duration
	m.exec.do(func() {
		began := time.Now()
		err = errors.Join(f(), m.api.Wait(m.stream))
		elapsed = time.Since(began)
	})
	if err != nil {
		b.Fatal(err)
	}
	return elapsed
}

// figure reports amount times the number of runs of f per second, in the given unit. setUp prepares the operands of
// each run and is not timed. If setUp is nil, each timing runs f repeatedly.
func (m *meter) figure(b *testing.B, name string, amount float64, unit string, setUp, f func() error) {
	b.Run(name, func(b *testing.B) {
		for range b.N {
			best := time.Duration(1 << 62)
			times := 1
			for timing := 0; timing < 4; { // the first timing is a warm-up
				if setUp != nil {
					m.measure(b, setUp)
				}
				elapsed := m.measure(b, func() error {
					for range times {
						if err := f(); err != nil {
							return err
						}
					}
					return nil
				})
				if setUp == nil && elapsed < m.minTiming {
					times *= 2
					continue
				}
				if timing++; timing > 1 || elapsed > time.Second {
					best = min(best, elapsed/time.Duration(times))
				}
				if elapsed > time.Second { // a long timing needs no warm-up
					break
				}
			}
			b.ReportMetric(amount/max(best.Seconds(), 1e-9), unit)
			b.ReportMetric(best.Seconds()*1e3, "ms")
		}
	})
}

// matrixOf returns a matrix of values between 0 and 1. Zeros would take less power, and so could be faster.
func matrixOf[T backend.Float](b *testing.B, q *queue[T], rows, cols int) *matrix[T] {
	fill := func(n int) *matrix[T] {
		h := backend.NewHost[T](n, 2)
		for i := range h.Data {
			h.Data[i] = T(i*7919%1000) / 1000
		}
		p, err := q.New(n, 2)
		if err == nil {
			err = q.Upload(p, h)
		}
		if err != nil {
			b.Fatal(err)
		}
		return p.(*matrix[T])
	}
	a, err := q.New(rows, cols)
	if err != nil {
		b.Fatal(err)
	}
	x, z := fill(rows), fill(cols)
	q.Gram(a, kernels.Gaussian{Sigma: 1}, x, z)
	if err := q.Sync(); err != nil {
		b.Fatal(err)
	}
	x.Free()
	z.Free()
	return a.(*matrix[T])
}

// BenchmarkRoofline measures the vendor's libraries, the memory and the driver.
func BenchmarkRoofline(b *testing.B) {
	m := newMeter(b)
	m.transfers(b)
	m.calls(b)
	if m.libraries.Blas != nil {
		products(b, m, m.F64().(*queue[float64]), "float64", false)
		products(b, m, m.F32().(*queue[float32]), "float32", false)
		products(b, m, m.F32().(*queue[float32]), "tf32", true)
		halfProducts(b, m)
		triangles(b, m, m.F64().(*queue[float64]), "float64")
		triangles(b, m, m.F32().(*queue[float32]), "float32")
	}
	if m.libraries.Solver != nil {
		factors(b, m, m.F64().(*queue[float64]), "float64")
		factors(b, m, m.F32().(*queue[float32]), "float32")
	}
}

// products measures cuBLAS's products of column-major matrices, for each choice of transposed factors.
func products[T backend.Float](b *testing.B, m *meter, q *queue[T], precision string, reduced bool) {
	for _, s := range []struct{ m, n, k, padding int }{{8192, 8192, 8192, 0}, {8192, 8192, 8192, 1}, {4096, 4864, 25000, 0}} {
		rows, cols, k := s.m/m.scale, s.n/m.scale, s.k/m.scale
		side := max(rows, cols, k)
		A, B, C := matrixOf(b, q, min(rows, k), side+s.padding), matrixOf(b, q, min(cols, k), side+s.padding), matrixOf(b, q, cols, rows)
		for t, name := range []string{"NN", "NT", "TN", "TT"} {
			tA, tB := driver.Op(t/2), driver.Op(t%2)
			if rows != k && name != "TN" { // rectangular products are measured only with the first factor transposed
				continue
			}
			m.figure(b, fmt.Sprintf("op=gemm/type=%s/order=%s/m=%d/n=%d/k=%d/ld=%d", precision, name, rows, cols, k, A.stride), flop.Gemm(rows, cols, k)/1e12, "TFLOP/s", nil, func() error {
				if err := m.setTF32(reduced); err != nil {
					return err
				}
				return driver.Gemm(m.libraries.Blas, tA, tB, rows, cols, k, T(1), A.ptr, A.stride, B.ptr, B.stride, T(0), C.ptr, C.stride)
			})
		}
		A.Free()
		B.Free()
		C.Free()
	}
	m.measure(b, func() error { return m.setTF32(false) })
}

// halfProducts measures products with factors in FP16, and the copies of the factors.
func halfProducts(b *testing.B, m *meter) {
	q := m.F32().(*queue[float32])
	n := 8192 / m.scale
	A, C := matrixOf(b, q, n, n), matrixOf(b, q, n, n)
	r := rounding{reduced: true, scale: 1, bytes: 4 * int64(n) * int64(halfPad(n))}
	m.measure(b, func() (err error) { r.memory, err = m.alloc(r.bytes); return err })
	m.figure(b, fmt.Sprintf("op=to_half/n=%d", n), float64(n)*float64(n)*6/1e9, "GB/s", nil, func() error {
		_, _, err := q.toHalf(backend.NoTrans, A, r.memory, r)
		return err
	})
	var left, right halfMatrix
	m.measure(b, func() error {
		var end driver.DevicePtr
		var errs [2]error
		left, end, errs[0] = q.toHalf(backend.NoTrans, A, r.memory, r)
		right, _, errs[1] = q.toHalf(backend.NoTrans, A, end, r)
		return errors.Join(errs[:]...)
	})
	for t, order := range []string{"NN", "NT", "TN", "TT"} {
		left.t, right.t = backend.Trans(t%2), backend.Trans(t/2)
		m.figure(b, fmt.Sprintf("op=gemm/type=fp16/order=%s/m=%d/n=%d/k=%d/ld=%d", order, n, n, n, left.stride), flop.Gemm(n, n, n)/1e12, "TFLOP/s", nil,
			func() error { return q.halfProduct(m.libraries.Blas, n, 1, left, right, 0, C, r) })
	}
	m.measure(b, func() error { return m.release(r.memory) })
	A.Free()
	C.Free()
}

// triangles measures cuBLAS's rank-k updates and triangular solves with the shapes of a factorization, and solves
// with one right-hand side.
func triangles[T backend.Float](b *testing.B, m *meter, q *queue[T], precision string) {
	k := 25000 / m.scale
	for _, n := range []int{512, 1024, 4096} {
		n /= m.scale
		A, C := matrixOf(b, q, n, k), matrixOf(b, q, n, n)
		m.figure(b, fmt.Sprintf("op=syrk/type=%s/n=%d/k=%d", precision, n, k), flop.Syrk(n, k)/1e12, "TFLOP/s", nil, func() error {
			return driver.Syrk(m.libraries.Blas, driver.Lower, driver.T, n, k, T(1), A.ptr, A.stride, T(0), C.ptr, C.stride)
		})
		A.Free()
		C.Free()
	}
	for _, s := range []struct{ n, columns int }{{3136, k}, {1024, k}, {512, 1}, {1024, 1}, {512, 32}} {
		n := s.n / m.scale
		L, B := matrixOf(b, q, n, n), matrixOf(b, q, s.columns, n)
		m.measure(b, func() error { return nearIdentity(q, L) })
		m.figure(b, fmt.Sprintf("op=trsm/type=%s/n=%d/columns=%d", precision, n, s.columns), flop.Trsm(n, s.columns)/1e12, "TFLOP/s",
			nil, func() error {
				return driver.Trsm(m.libraries.Blas, driver.Left, driver.Lower, driver.N, n, s.columns, T(1), L.ptr, L.stride, B.ptr, B.stride)
			})
		ordinary(b, q, B)
		L.Free()
		B.Free()
	}
	for _, n := range []int{4096, 16384, 32768} {
		n /= m.scale
		L, x := matrixOf(b, q, n, n), matrixOf(b, q, n, 1)
		m.measure(b, func() error { return nearIdentity(q, L) })
		for t, order := range []string{"N", "T"} {
			m.figure(b, fmt.Sprintf("op=trsv/type=%s/order=%s/n=%d", precision, order, n), float64(n)*float64(n)/2*float64(sizeOf[T]())/1e9, "GB/s", nil, func() error {
				return driver.Trsv[T](m.libraries.Blas, driver.Lower, driver.Op(t), n, L.ptr, L.stride, x.ptr, 1)
			})
		}
		ordinary(b, q, x)
		L.Free()
		x.Free()
	}
}

// nearIdentity overwrites the n × n matrix l, whose elements are between 0 and 1, by I + εl, where ε = 2⁻²⁰/n, so
// that thousands of solves in place hardly change the right-hand side.
func nearIdentity[T backend.Float](q *queue[T], l *matrix[T]) error {
	return errors.Join(q.scale(T(math.Ldexp(1/float64(l.rows), -20)), l.view(), whole, false), q.addDiag(l.diagonal(), 0, 1))
}

// ordinary fails if the elements of x have grown, vanished or become denormal, which would change the time.
func ordinary[T backend.Float](b *testing.B, q *queue[T], x *matrix[T]) {
	norm := make([]T, 1)
	if err := q.ColDot(norm, x.View(0, 0, x.rows, 1), x.View(0, 0, x.rows, 1)); err != nil {
		b.Fatal(err)
	}
	if mean := float64(norm[0]) / float64(x.rows); !(mean > 1e-6 && mean < 1e6) {
		b.Errorf("the mean square of the right-hand side is %g after the measurement", mean)
	}
}

// factors measures cuSOLVER's factorizations of both triangles, and logs the sizes of the workspace.
func factors[T backend.Float](b *testing.B, m *meter, q *queue[T], precision string) {
	for n := 1024 / m.scale; n <= 32768/m.scale; n *= 2 {
		A := matrixOf(b, q, n, n)
		C := matrixOf(b, q, n, n)
		m.measure(b, func() error { return q.addDiag(A.diagonal(), 0, T(n)) })
		for i, triangle := range []string{"lower", "upper"} {
			fill := driver.Fill(i)
			f := &factoring[T]{q: q, solver: m.libraries.Solver}
			m.measure(b, func() error {
				device, host, err := driver.PotrfWork[T](f.solver, fill, n, C.ptr, C.stride)
				b.Logf("n=%d: cuSOLVER needs a workspace of %d bytes on the device and %d on the host", n, device, host)
				if err != nil {
					return err
				}
				return f.reserveWork(fill, C)
			})
			m.figure(b, fmt.Sprintf("op=potrf/type=%s/triangle=%s/n=%d", precision, triangle, n), flop.Potrf(n)/1e12, "TFLOP/s",
				func() error { return q.copy(A.view(), C.view(), whole) },
				func() error {
					return driver.Potrf[T](f.solver, fill, n, C.ptr, C.stride, f.work, f.workBytes, f.locked, m.info+solverInfo)
				})
			m.measure(b, func() error { f.diagonal = 0; return f.close() })
		}
		A.Free()
		C.Free()
	}
}

// transfers measures copies of contiguous memory, of rows without and with a gap, and of short rows.
func (m *meter) transfers(b *testing.B) {
	bytes := 256 << 20 / m.scale / m.scale
	var there [2]driver.DevicePtr
	var here []byte
	m.measure(b, func() (err error) {
		for i := range there {
			if there[i], err = m.alloc(int64(2 * bytes)); err != nil {
				return err
			}
		}
		here, err = m.api.AllocHost(bytes)
		return err
	})
	device := func(i, pitch int) driver.Place { return driver.Place{Device: there[i], Pitch: pitch} }
	host := func(pitch int) driver.Place { return driver.Place{Host: here, Pitch: pitch} }
	for _, c := range []struct {
		name          string
		to, from      func(width int) driver.Place
		width, passes int
	}{
		{"device", func(w int) driver.Place { return device(1, w) }, func(w int) driver.Place { return device(0, w) }, bytes, 2},
		{"upload", func(w int) driver.Place { return device(0, w) }, host, bytes, 1},
		{"download", host, func(w int) driver.Place { return device(0, w) }, bytes, 1},
		{"upload rows", func(w int) driver.Place { return device(0, 2*w) }, host, 4096, 1},
		{"upload rows without a gap", func(w int) driver.Place { return device(0, w) }, host, 12, 1},
		{"upload short rows", func(w int) driver.Place { return device(0, 2*w) }, host, 12, 1},
		{"download a column", host, func(w int) driver.Place { return device(0, 2*w) }, 8, 1},
	} {
		height := bytes / c.width
		if c.width <= 12 {
			height = min(height, 1<<20)
		}
		amount := float64(c.passes) * float64(c.width) * float64(height)
		m.figure(b, fmt.Sprintf("op=copy/what=%s/width=%d", c.name, c.width), amount/1e9, "GB/s", nil, func() error {
			return m.api.Copy(driver.Copy2D{Dst: c.to(c.width), Src: c.from(c.width), Width: c.width, Height: height}, m.stream)
		})
	}
	m.measure(b, func() error {
		return errors.Join(m.api.MemFree(there[0]), m.api.MemFree(there[1]), m.api.FreeHost(here))
	})
}

// calls measures the driver calls of a step: a launch, an event, a wait, and an allocation with its release.
func (m *meter) calls(b *testing.B) {
	event, err := m.staging[0].event, error(nil)
	q := m.F64().(*queue[float64])
	a := matrixOf(b, q, 8, 8)
	m.figure(b, "op=launch", 1, "calls/s", nil, func() error { return q.addDiag(a.diagonal(), 0, 0) })
	m.figure(b, "op=launch and wait", 1, "calls/s", nil, func() error {
		err = errors.Join(q.addDiag(a.diagonal(), 0, 0), m.api.Record(event, m.stream), m.api.WaitEvent(event))
		return err
	})
	for _, mega := range []int64{1, 64, 1024, 16384} {
		if bytes := mega << 20; bytes < m.memory.limitBytes() && (m.scale == 1 || mega == 1) {
			m.figure(b, fmt.Sprintf("op=allocate and free/MB=%d", mega), 1, "calls/s", nil, func() error {
				p, err := m.alloc(bytes)
				if err != nil {
					return err
				}
				return m.api.MemFree(p)
			})
		}
	}
	a.Free()
}

// BenchmarkOwn measures Mercer's functions on pairs of points and the functions that memory bandwidth limits.
func BenchmarkOwn(b *testing.B) {
	m := newMeter(b)
	ownFunctions(b, m, m.F32().(*queue[float32]), "float32", 262144)
	ownFunctions(b, m, m.F64().(*queue[float64]), "float64", 65536)
}

func ownFunctions[T backend.Float](b *testing.B, m *meter, q *queue[T], precision string, n int) {
	if m.scale > 1 {
		n /= 8 * m.scale
	}
	k := kernels.Gaussian{Sigma: 1}
	for _, d := range []int{3, 8, 16, 17, 50, 200} {
		x := matrixOf(b, q, n, d)
		for _, t := range []int{1, 8} {
			v, out := matrixOf(b, q, n, t), matrixOf(b, q, n, t)
			var p *program[T]
			m.measure(b, func() (err error) { p, err = q.program(k, x, x); return err })
			m.figure(b, fmt.Sprintf("op=kmul/type=%s/d=%d/columns=%d/n=%d", precision, d, t, n), float64(n)*float64(n), "pairs/s", nil,
				func() error { return q.gramMul(p, out, x, x, v) })
			m.measure(b, p.free)
			v.Free()
			out.Free()
		}
		x.Free()
	}
	for _, n := range []int{50_000, 262_144, 1_000_000} { // numbers of points for k(X, X) v, the product in residuals
		n /= m.scale * m.scale
		x, v, out := matrixOf(b, q, n, 50), matrixOf(b, q, n, 1), matrixOf(b, q, n, 1)
		m.figure(b, fmt.Sprintf("op=kmul symmetric/type=%s/d=50/n=%d", precision, n), float64(n)*float64(n), "pairs/s", nil,
			func() error { return q.gramProduct(out, k, x, x, v) })
		for _, m := range []backend.Matrix[T]{x, v, out} {
			m.Free()
		}
	}
	for _, n := range []int{16384, 32768} {
		n /= m.scale
		a, v, out := matrixOf(b, q, n, n), matrixOf(b, q, n, 1), matrixOf(b, q, n, 1)
		size := float64(sizeOf[T]())
		m.figure(b, fmt.Sprintf("op=gemv/type=%s/n=%d", precision, n), float64(n)*float64(n)*size/1e9, "GB/s", nil,
			func() error { return q.gemm(backend.NoTrans, backend.NoTrans, 1, a, v, 0, out, rounding{}) })
		m.figure(b, fmt.Sprintf("op=symv/type=%s/n=%d", precision, n), float64(n)*float64(n)*size/2/1e9, "GB/s", nil,
			func() error { return q.symm(backend.Lower, 1, a, v, 0, out) })
		m.measure(b, func() error { return q.addDiag(a.diagonal(), 0, T(n)) })
		m.figure(b, fmt.Sprintf("op=trsv/type=%s/n=%d", precision, n), float64(n)*float64(n)*size/2/1e9, "GB/s", nil,
			func() error { return q.trsm(backend.Left, backend.Lower, backend.NoTrans, 1, a, v, rounding{}) })
		a.Free()
		x := matrixOf(b, q, n, 50)
		g := matrixOf(b, q, n, n)
		m.figure(b, fmt.Sprintf("op=gram/type=%s/d=50/n=%d", precision, n), float64(n)*float64(n)/2, "pairs/s", nil,
			func() error { return q.gram(g.view(), k, x, x, lower) })
		g.Free()
		packed, err := q.NewFixed(n)
		if err != nil {
			b.Fatal(err)
		}
		fixed, coding := packed.(*fixedMatrix[T]), check.GramFixed(k, 50)
		m.figure(b, fmt.Sprintf("op=gram fixed16/type=%s/d=50/n=%d", precision, n), float64(n)*float64(n)/2, "pairs/s", nil,
			func() error { return q.gramFixed(fixed, k, x, coding) })
		m.figure(b, fmt.Sprintf("op=symv fixed16/type=%s/n=%d", precision, n), float64(n)*float64(n)*2/2/1e9, "GB/s", nil,
			func() error { return q.symmFixed(1, fixed, coding, v.view(), 0, out.view()) })
		packed.Free()
		for _, m := range []backend.Matrix[T]{x, v, out} {
			m.Free()
		}
	}
}

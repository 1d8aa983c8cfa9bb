package backendtest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// bytesOf returns the smallest size of a matrix in bytes. Backends may add padding to rows.
func bytesOf[T backend.Float](rows, cols int) int64 {
	size := int64(8)
	if unit[T]() == unit[float32]() {
		size = 4
	}
	return int64(rows) * int64(cols) * size
}

func (r *rig[T]) alloc(b backend.Backend[T], rows, cols int) backend.Matrix[T] {
	r.Helper()
	m, err := b.New(rows, cols)
	if err != nil {
		r.Fatal(err)
	}
	return m
}

// testMemory checks that new matrices are zero, even in reused memory, that Free releases the bytes of New exactly
// once, and that views neither take nor free memory.
func testMemory[T backend.Float](r *rig[T]) {
	prevPeak := int64(0)
	for _, s := range [][2]int{{0, 0}, {0, 5}, {5, 0}, {1, 1}, {7, 3}, {33, 65}, {300, 200}} {
		rows, cols := s[0], s[1]
		for range 3 { // the second and third matrix reuse the memory of the first
			m := r.alloc(r.b, rows, cols)
			if gr, gc := m.Dims(); gr != rows || gc != cols {
				r.Fatalf("New(%d, %d).Dims() = %d, %d", rows, cols, gr, gc)
			}
			requireBits(r, fmt.Sprintf("New %d×%d", rows, cols), Download(r, r.b, m), backend.NewHost[T](rows, cols))
			inUse, peak := r.dev.InUse()
			if inUse < bytesOf[T](rows, cols) {
				r.Fatalf("InUse is %d bytes with a %d×%d matrix, want at least %d", inUse, rows, cols, bytesOf[T](rows, cols))
			}
			if peak < inUse || peak < prevPeak {
				r.Fatalf("InUse: the peak %d is less than the earlier peak %d or the %d bytes in use", peak, prevPeak, inUse)
			}
			prevPeak = peak

			view := m.View(0, 0, rows, cols).View(0, 0, rows, cols)
			if withView, _ := r.dev.InUse(); withView != inUse {
				r.Fatalf("InUse: a view changed it from %d to %d bytes", inUse, withView)
			}
			if err := r.b.Upload(view, round[T](filled(rows, cols, sentinel))); err != nil {
				r.Fatal(err)
			}
			view.Free()
			requireBits(r, "matrix whose view was freed", Download(r, r.b, m), round[T](filled(rows, cols, sentinel)))
			m.Free()
			m.Free() // freeing twice has no effect
			if inUse, peak := r.dev.InUse(); inUse != 0 || peak != prevPeak {
				r.Fatalf("InUse after Free: %d bytes, peak %d instead of %d", inUse, peak, prevPeak)
			}
		}
	}
	var matrices []backend.Matrix[T]
	for i := range 20 {
		matrices = append(matrices, r.alloc(r.b, 10+i, 10))
	}
	r.rng.Shuffle(len(matrices), func(i, j int) { matrices[i], matrices[j] = matrices[j], matrices[i] })
	for _, m := range matrices {
		m.Free()
	}
}

// testTransfer checks that copies between strided host matrices and views do not write memory between the rows.
func testTransfer[T backend.Float](r *rig[T]) {
	for _, s := range [][2]int{{0, 0}, {0, 4}, {4, 0}, {1, 1}, {1, 9}, {9, 1}, {17, 31}, {64, 64}, {129, 257}} {
		rows, cols := s[0], s[1]
		label := fmt.Sprintf("transfer %d×%d", rows, cols)
		source := round[T](r.normals(rows+2, cols+3))
		view := source.View(1, 2, rows, cols)
		m := Upload(r, r.b, round[T](filled(rows+3, cols+5, sentinel)))
		if err := r.b.Upload(m.View(2, 1, rows, cols), view); err != nil {
			r.Fatal(err)
		}
		want := round[T](filled(rows+3, cols+5, sentinel))
		for i := range rows {
			copy(want.Row(i + 2)[1:], view.Row(i))
		}
		requireBits(r, label+" up", Download(r, r.b, m), want)

		target := round[T](filled(rows+4, cols+1, sentinel))
		if err := r.b.Download(target.View(3, 0, rows, cols), m.View(2, 1, rows, cols)); err != nil {
			r.Fatal(err)
		}
		want = round[T](filled(rows+4, cols+1, sentinel))
		for i := range rows {
			copy(want.Row(i+3), view.Row(i))
		}
		for i, v := range target.Data {
			if bits(float64(v)) != bits(float64(want.Data[i])) {
				r.Fatalf("%s down: element %d of the host's memory is %v, want %v", label, i, v, want.Data[i])
			}
		}
		m.Free()
	}
	// Upload must not read the host matrix after its return.
	h := round[T](r.normals(200, 200))
	original := widen(h)
	m := r.alloc(r.b, 200, 200)
	if err := r.b.Upload(m, h); err != nil {
		r.Fatal(err)
	}
	fillSentinels(h.Data)
	requireBits(r, "upload of memory that is changed afterwards", Download(r, r.b, m), round[T](original))
	m.Free()
}

// testBudget checks that a device with 1 MiB of memory returns a *MemoryError for larger matrices.
func testBudget[T backend.Float](r *rig[T]) {
	const limit = 1 << 20
	dev := r.Open(r, backend.Config{Memory: limit})
	b := r.queue(dev)
	requireMemoryError := func(rows, cols int, used int64) {
		r.Helper()
		m, err := b.New(rows, cols)
		var e *backend.MemoryError
		if !errors.As(err, &e) || !errors.Is(err, backend.ErrMemory) {
			r.Fatalf("New(%d, %d) in a budget of %d bytes with %d in use: %v, %v; want a *MemoryError", rows, cols, limit, used, m, err)
		}
		requested := float64(rows) * float64(cols) * float64(bytesOf[T](1, 1))
		if float64(e.Requested) < min(requested, 1<<62) || e.Free < 0 || e.Free > limit-used {
			r.Fatalf("New(%d, %d): the MemoryError has Requested = %d and Free = %d, with %d of %d bytes in use", rows, cols, e.Requested, e.Free, used, limit)
		}
		if inUse, _ := dev.InUse(); inUse != used {
			r.Fatalf("InUse: a failed call of New changed it from %d to %d bytes", used, inUse)
		}
	}
	requireMemoryError(1<<10, 1<<10, 0)
	requireMemoryError(1<<(strconv.IntSize/2), 1<<(strconv.IntSize/2), 0) // in int, the product rows·cols overflows to 0
	requireMemoryError(math.MaxInt, math.MaxInt, 0)
	requireMemoryError(math.MaxInt, 1, 0)
	fiveEighths := r.alloc(b, 250, int(limit*5/8/bytesOf[T](250, 1)))
	used, _ := dev.InUse()
	requireMemoryError(250, int(limit*5/8/bytesOf[T](250, 1)), used)
	quarter := r.alloc(b, 250, int(limit/4/bytesOf[T](250, 1)))
	fiveEighths.Free()
	fiveEighths = r.alloc(b, 250, int(limit*5/8/bytesOf[T](250, 1)))
	fiveEighths.Free()
	quarter.Free()
	if inUse, peak := dev.InUse(); inUse != 0 || peak > limit || peak < limit*3/4 {
		r.Fatalf("InUse at the end: %d bytes, peak %d", inUse, peak)
	}

	// The 2000 × 2000 matrix k(X, Z) would take at least 16 times the limit.
	n := 2000
	x, v, dst := r.alloc(b, n, 2), r.alloc(b, n, 1), r.alloc(b, n, 1)
	b.GramMul(dst, kernels.Constant{Value: 1}, x, x, v)
	b.GramMul(dst, kernels.Gaussian{Sigma: 1}, x, x, v)
	if err := b.Sync(); err != nil {
		r.Fatalf("GramMul must not store k(X, Z): %v", err)
	}
	for _, m := range []backend.Matrix[T]{x, v, dst} {
		m.Free()
	}
	if inUse, peak := dev.InUse(); inUse != 0 || peak > limit {
		r.Fatalf("InUse after GramMul: %d bytes, peak %d", inUse, peak)
	}
}

// testWrap tests Place, and checks that the matrix that Wrap returns shares the memory of its argument.
func testWrap[T backend.Float](r *rig[T]) {
	h := round[T](r.normals(20, 30)).View(3, 4, 10, 12)
	m, err := backend.Place(r.b, h)
	if err != nil {
		r.Fatal(err)
	}
	requireBits(r, "Place", Download(r, r.b, m), h)
	m.Free()
	if inUse, _ := r.dev.InUse(); inUse != 0 {
		r.Fatalf("InUse after Free of the matrix from Place: %d bytes", inUse)
	}
	w, ok := r.b.(backend.Wrapper[T])
	if !ok {
		r.Log("the backend does not wrap Go memory")
		return
	}
	if _, ok := r.b.With(r.Context(), nil).(backend.Wrapper[T]); !ok {
		r.Error("the backend is a Wrapper, but the queue that With returns is not")
	}
	buffer, want := round[T](filled(6, 7, sentinel)), round[T](filled(6, 7, sentinel))
	view := buffer.View(1, 2, 4, 4)
	for i, row := range [][]T{{1, 0, 0, 0}, {5, 7, 5, 5}, {5, 5, 7, 5}, {0, 0, 0, 1}} {
		copy(view.Row(i), make([]T, 4))
		copy(want.View(1, 2, 4, 4).Row(i), row)
	}
	square := w.Wrap(view)
	r.b.AddDiag([]T{1}, square)
	if err := r.b.Upload(square.View(1, 0, 2, 4), round[T](filled(2, 4, 5))); err != nil {
		r.Fatal(err)
	}
	r.b.AddDiag([]T{2}, square.View(1, 1, 2, 2))
	if err := r.b.Sync(); err != nil {
		r.Fatal(err)
	}
	requireBits(r, "wrapped memory", buffer, want)
	square.Free()
	for _, bad := range []backend.Host[T]{{Rows: 2, Cols: 3, Stride: 2, Data: make([]T, 9)}, {Rows: 2, Cols: 3, Stride: 3, Data: make([]T, 5)}} {
		r.requirePanic("Wrap", func() { w.Wrap(bad) })
	}
}

// testPrefixBelow tests PrefixBelow with the first element that is not below the bound at every index in turn.
func testPrefixBelow[T backend.Float](r *rig[T]) {
	s, ok := r.b.With(r.Context(), nil).(backend.Searcher[T])
	if _, base := r.b.(backend.Searcher[T]); base != ok {
		r.Fatal("only one of the backend and the queue that With returns has PrefixBelow")
	}
	if !ok {
		r.Log("the backend has no PrefixBelow")
		return
	}
	infinity := T(math.Inf(1))
	for n := range 140 {
		x := make([]T, n, n+1)
		x[:n+1][n] = infinity // PrefixBelow must not read the element after x
		for i := range x {
			x[i] = T(-i)
		}
		if n > 1 {
			x[1] = -infinity
		}
		if got := s.PrefixBelow(x, 1); got != n {
			r.Fatalf("PrefixBelow(x, 1) with %d elements, all less than 1, is %d", n, got)
		}
		for i, v := range x {
			for _, high := range []T{1, 2, infinity, T(math.NaN())} {
				x[i] = high
				if got := s.PrefixBelow(x, 1); got != i {
					r.Fatalf("PrefixBelow(x, 1) with %d elements, of which only element %d, %v, is not less than 1, is %d", n, i, high, got)
				}
			}
			x[i] = v
		}
	}
}

// testExp compares Exp, with an error of 1 ulp, with package math, with an error of 1.5 ulp.
func testExp[T backend.Float](r *rig[T]) {
	e, ok := r.b.With(r.Context(), nil).(backend.Exponential[T])
	if _, base := r.b.(backend.Exponential[T]); base != ok {
		r.Fatal("only one of the backend and the queue that With returns has Exp")
	}
	if !ok {
		r.Log("the backend has no Exp")
		return
	}
	for n := range 70 {
		h := round[T](r.normals(1, n+1))
		for i := range n {
			h.Data[i] *= 15
		}
		for i, v := range []float64{0, math.Inf(-1), -1e6, math.Inf(1), math.NaN(), 1e6} {
			if i < n-20 {
				h.Data[i] = T(v)
			}
		}
		got := slices.Clone(h.Data)
		e.Exp(got[:n])
		for i, x := range h.Data {
			want := x
			if i < n {
				want = T(math.Exp(float64(x)))
			}
			diff := math.Abs(float64(got[i] - want))
			if got[i] != want && !(got[i] != got[i] && want != want) && !(diff <= 6*unit[T]()*float64(want)) {
				r.Errorf("n = %d: exp(%v) of element %d is %v, want %v", n, x, i, got[i], want)
			}
		}
	}
}

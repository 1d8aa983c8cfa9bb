package backendtest

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// testHalfMemory: HalfBytes keeps its promise and is what the device counts.
func testHalfMemory[T backend.Float](r *rig[T]) {
	b := r.half()
	size := bytesOf[T](1, 1)
	for _, n := range []int{0, 1, 2, 3, 63, 64, 65, 1000, 1001, 12345, 50_000, 1 << 20} {
		n64 := int64(n)
		elements := n64 * (n64 + 1) / 2
		if got := b.HalfBytes(n); got < elements*size || got > (elements+64*(n64+1))*size {
			r.Errorf("HalfBytes(%d) is %d, want %d and at most 64(n+1) elements of %d more", n, got, elements*size, size)
		}
	}
	for _, n := range []int{math.MaxInt / 2, math.MaxInt - 1, math.MaxInt} {
		if got := b.HalfBytes(n); got < math.MaxInt64 && float64(got) < float64(n)*float64(n)/2 {
			r.Errorf("HalfBytes(%d) is %d", n, got)
		}
		a, err := b.NewHalf(n)
		if e := new(backend.MemoryError); !errors.As(err, &e) || e.Asked != b.HalfBytes(n) || e.Free < 0 || e.Free >= e.Asked {
			r.Errorf("NewHalf(%d): %v, %v; want a *MemoryError", n, a, err)
		}
	}
	for _, n := range []int{0, 1, 2, 7, 64, 301, 1000} {
		for range 2 { // the second gets what the first has dirtied
			a, err := b.NewHalf(n)
			if err != nil {
				r.Fatal(err)
			}
			if a.Order() != n {
				r.Fatalf("NewHalf(%d).Order() = %d", n, a.Order())
			}
			if now, peak := r.dev.InUse(); now != b.HalfBytes(n) || peak < now {
				r.Fatalf("InUse: %d bytes, peak %d, with a half of order %d, of which HalfBytes says %d", now, peak, n, b.HalfBytes(n))
			}
			low := backend.NewHost[T](n, n)
			spoil(low.Data)
			if err := r.save(b, low, a); err != nil {
				r.Fatal(err)
			}
			for i := range n {
				for j, v := range low.Row(i)[:i+1] {
					if v != 0 {
						r.Fatalf("NewHalf(%d): element (%d, %d) is %v", n, i, j, v)
					}
				}
			}
			part := a.Leading(n).Leading(n / 2)
			if part.Order() != n/2 {
				r.Fatalf("Leading(%d).Order() = %d", n/2, part.Order())
			}
			part.Free() // does nothing
			spoil(low.Data)
			if err := b.UploadHalf(a, 0, low); err != nil {
				r.Fatal(err)
			}
			if now, _ := r.dev.InUse(); now != b.HalfBytes(n) {
				r.Fatalf("InUse: a leading part changed it to %d bytes", now)
			}
			a.Free()
			a.Free() // does nothing
			if now, _ := r.dev.InUse(); now != 0 {
				r.Fatalf("InUse after Free: %d bytes", now)
			}
		}
	}
	// A budget in which half storage fits and full storage does not.
	const n = 400
	q := r.queue(r.Open(r, backend.Config{Memory: bytesOf[T](n, n) * 3 / 4}))
	if m, err := q.New(n, n); !errors.Is(err, backend.ErrMemory) {
		r.Fatalf("New(%d, %d) in 3/4 of its bytes: %v, %v", n, n, m, err)
	}
	a, err := q.(backend.HalfBackend[T]).NewHalf(n)
	if err != nil {
		r.Fatal(err)
	}
	if second, err := q.(backend.HalfBackend[T]).NewHalf(n); !errors.Is(err, backend.ErrMemory) {
		r.Fatalf("a second NewHalf(%d): %v, %v", n, second, err)
	}
	a.Free()
}

// testHalfLeading works on the leading part of a half and requires that the
// rows below stay as they are, and that the factor of a leading part is the
// leading part of the factor.
func testHalfLeading[T backend.Float](r *rig[T]) {
	r.half()
	for _, n := range []int{1, 2, 5, 16, 33, 66, 130, 257} {
		low := r.exactTriangle(n, 12, true)
		a := mulSparse(low, transpose(low))
		for _, k := range []int{0, 1, (n + 1) / 2, n/2 + 1, n - 1, n} {
			k = min(k, n)
			what := fmt.Sprintf("leading %d rows of %d", k, n)
			x := r.integers(k, 1+r.rng.IntN(8), 3)
			diagonal := make([]T, k)
			got := r.do(what, halfCall(r, 0, func(b backend.HalfBackend[T], a backend.Half[T], _ []backend.Matrix[T]) error {
				part := a.Leading(k)
				m := upload(r, b, round[T](mul(low.View(0, 0, k, k), x)))
				defer m.Free()
				err := b.PotrfHalf(part)
				b.TrsmHalf(backend.NoTrans, part, m)
				requireBits(r, what+": solution", fetch(r, b, m), round[T](x))
				return errors.Join(err, b.DiagHalf(diagonal, part))
			}), as(backend.Lower, a))
			want := as(backend.Lower, a)
			for i := range k {
				copy(want.Row(i), low.Row(i)[:i+1])
				if float64(diagonal[i]) != low.Row(i)[i] {
					r.Fatalf("%s: DiagHalf: element %d is %v, want %v", what, i, diagonal[i], low.Row(i)[i])
				}
			}
			r.equal(what, got, want)
		}
	}
}

// testHalfMisuse is testMisuse and testForeign in half storage.
func testHalfMisuse[T backend.Float](r *rig[T]) {
	b := r.half()
	half := func(b backend.HalfBackend[T], n int) backend.Half[T] {
		a, err := b.NewHalf(n)
		if err != nil {
			r.Fatal(err)
		}
		return a
	}
	a := half(b, 3)
	m33, m34, m43 := r.alloc(b, 3, 3), r.alloc(b, 3, 4), r.alloc(b, 4, 3)
	linear := kernels.Linear{}
	host := func(rows, cols, stride int) backend.Host[T] {
		return backend.Host[T]{Rows: rows, Cols: cols, Stride: stride, Data: make([]T, rows*max(stride, cols))}
	}
	for _, c := range []struct {
		op string
		f  func()
	}{
		{"NewHalf: ", func() { b.NewHalf(-1) }},
		{"NewHalf: ", func() { b.HalfBytes(-1) }},
		{"Half.Leading: ", func() { a.Leading(-1) }},
		{"Half.Leading: ", func() { a.Leading(4) }},
		{"Half.Leading: ", func() { a.Leading(2).Leading(3) }},
		{"UploadHalf: ", func() { b.UploadHalf(a, -1, host(1, 0, 0)) }},
		{"UploadHalf: ", func() { b.UploadHalf(a, 0, host(3, 4, 4)) }},
		{"UploadHalf: ", func() { b.UploadHalf(a, 0, host(4, 4, 4)) }},
		{"UploadHalf: ", func() { b.UploadHalf(a, 1, host(2, 2, 2)) }},
		{"UploadHalf: ", func() { b.UploadHalf(a, 2, host(2, 4, 4)) }},
		{"UploadHalf: ", func() { b.UploadHalf(a, math.MaxInt, host(1, 1, 1)) }},
		{"UploadHalf: ", func() { b.UploadHalf(a, 0, host(3, 3, 2)) }},
		{"DownloadHalf: ", func() { b.DownloadHalf(host(2, 3, 3), a, 0) }},
		{"DownloadHalf: ", func() { b.DownloadHalf(host(3, 3, 2), a, 0) }},
		{"GramHalf: ", func() { b.GramHalf(a, linear, m43) }},
		{"GramHalf: ", func() { b.GramHalf(a, nil, m33) }},
		{"GramHalf: ", func() { b.GramHalf(a, kernels.Gaussian{}, m33) }},
		{"AddDiagHalf: ", func() { b.AddDiagHalf([]T{1, 2}, a) }},
		{"AddDiagHalf: ", func() { b.AddDiagHalf(nil, a) }},
		{"DiagHalf: ", func() { b.DiagHalf(make([]T, 2), a) }},
		{"SymmHalf: ", func() { b.SymmHalf(1, a, m43, 0, m33) }},
		{"SymmHalf: ", func() { b.SymmHalf(1, a, m33, 0, m43) }},
		{"SymmHalf: ", func() { b.SymmHalf(1, a, m33, 0, m34) }},
		{"TrsmHalf: ", func() { b.TrsmHalf(backend.NoTrans, a, m43) }},
		{"TrsmHalf: ", func() { b.TrsmHalf(9, a, m33) }},
	} {
		r.panics(c.op, c.f)
	}

	other := r.queue(r.Open(r, backend.Config{})).(backend.HalfBackend[T])
	stranger, strange := half(other, 3), r.alloc(other, 3, 3)
	for _, c := range []struct {
		op string
		f  func()
	}{
		{"UploadHalf", func() { b.UploadHalf(stranger, 0, host(3, 3, 3)) }},
		{"DownloadHalf", func() { b.DownloadHalf(host(3, 3, 3), stranger, 0) }},
		{"GramHalf", func() { b.GramHalf(stranger, linear, m33) }},
		{"GramHalf", func() { b.GramHalf(a, linear, strange) }},
		{"AddDiagHalf", func() { b.AddDiagHalf([]T{1}, stranger) }},
		{"DiagHalf", func() { b.DiagHalf(make([]T, 3), stranger) }},
		{"SymmHalf", func() { b.SymmHalf(1, stranger, m33, 0, m33) }},
		{"SymmHalf", func() { b.SymmHalf(1, a, strange, 0, m33) }},
		{"SymmHalf", func() { b.SymmHalf(1, a, m33, 0, strange) }},
		{"PotrfHalf", func() { b.PotrfHalf(stranger) }},
		{"TrsmHalf", func() { b.TrsmHalf(backend.NoTrans, stranger, m33) }},
		{"TrsmHalf", func() { b.TrsmHalf(backend.NoTrans, a, strange) }},
	} {
		if text := r.panics(c.op+": ", c.f); !strings.Contains(text, "another device") {
			r.Errorf("%s: a half or a matrix of another device: panic was %q", c.op, text)
		}
	}
	if err := b.Sync(); err != nil {
		r.Errorf("Sync after misuse: %v", err)
	}
	stranger.Free()
	strange.Free()
	a.Free()
	for _, m := range []backend.Matrix[T]{m33, m34, m43} {
		m.Free()
	}
}

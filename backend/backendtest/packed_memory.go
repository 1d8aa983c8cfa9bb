package backendtest

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/required"
	"github.com/mercer-go/mercer/kernels"
)

// testPackedMemory checks that a packed matrix increases InUse of the device by PackedBytes.
func testPackedMemory[T backend.Float](r *rig[T]) {
	b := r.packedBackend()
	size := bytesOf[T](1, 1)
	for _, n := range []int{0, 1, 2, 3, 63, 64, 65, 1000, 1001, 12345, 50_000, 1 << 20} {
		n64 := int64(n)
		elements := n64 * (n64 + 1) / 2
		if got := b.PackedBytes(n); got < elements*size || got > (elements+64*(n64+1))*size {
			r.Errorf("PackedBytes(%d) is %d, want %d plus at most 64(n+1) elements of %d bytes", n, got, elements*size, size)
		}
	}
	for _, n := range []int{math.MaxInt / 2, math.MaxInt - 1, math.MaxInt} {
		if got := b.PackedBytes(n); got < math.MaxInt64 && float64(got) < float64(n)*float64(n)/2 {
			r.Errorf("PackedBytes(%d) is %d, less than n²/2 elements", n, got)
		}
		a, err := b.NewPacked(n)
		if e := new(backend.MemoryError); !errors.As(err, &e) || e.Requested != b.PackedBytes(n) || e.Free < 0 || e.Free >= e.Requested {
			r.Errorf("NewPacked(%d): %v, %v; want a *MemoryError", n, a, err)
		}
	}
	for _, n := range required.Subset(4, []int{0, 1, 2, 7, 64, 301, 1000}) {
		for range 2 { // the second matrix reuses the memory of the first
			a, err := b.NewPacked(n)
			if err != nil {
				r.Fatal(err)
			}
			if a.Order() != n {
				r.Fatalf("NewPacked(%d).Order() = %d", n, a.Order())
			}
			if inUse, peak := r.dev.InUse(); inUse != b.PackedBytes(n) || peak < inUse {
				r.Fatalf("InUse: %d bytes, peak %d, with a packed matrix of order %d; PackedBytes is %d", inUse, peak, n, b.PackedBytes(n))
			}
			low := backend.NewHost[T](n, n)
			fillSentinels(low.Data)
			if err := r.save(b, low, a); err != nil {
				r.Fatal(err)
			}
			for i := range n {
				for j, v := range low.Row(i)[:i+1] {
					if v != 0 {
						r.Fatalf("NewPacked(%d): element (%d, %d) is %v, want 0", n, i, j, v)
					}
				}
			}
			leading := a.Leading(n).Leading(n / 2)
			if leading.Order() != n/2 {
				r.Fatalf("Leading(%d).Order() = %d", n/2, leading.Order())
			}
			leading.Free() // freeing a leading part has no effect
			fillSentinels(low.Data)
			if err := b.UploadPacked(a, 0, low); err != nil {
				r.Fatal(err)
			}
			if inUse, _ := r.dev.InUse(); inUse != b.PackedBytes(n) {
				r.Fatalf("InUse: a leading part changed it to %d bytes", inUse)
			}
			a.Free()
			a.Free() // freeing twice has no effect
			if inUse, _ := r.dev.InUse(); inUse != 0 {
				r.Fatalf("InUse after Free: %d bytes", inUse)
			}
		}
	}
	// This limit suffices for packed storage, but not for full storage.
	const n = 400
	q := r.queue(r.Open(r, backend.Config{Memory: bytesOf[T](n, n) * 3 / 4}))
	if m, err := q.New(n, n); !errors.Is(err, backend.ErrMemory) {
		r.Fatalf("New(%d, %d) with 3/4 of its bytes as memory limit: %v, %v; want ErrMemory", n, n, m, err)
	}
	a, err := q.(backend.PackedBackend[T]).NewPacked(n)
	if err != nil {
		r.Fatal(err)
	}
	if second, err := q.(backend.PackedBackend[T]).NewPacked(n); !errors.Is(err, backend.ErrMemory) {
		r.Fatalf("a second NewPacked(%d) beyond the memory limit: %v, %v; want ErrMemory", n, second, err)
	}
	a.Free()
}

// testPackedLeading checks operations on the leading part of a packed matrix. They must not change the rows below
// it, and its factor must equal the leading part of the whole factor.
func testPackedLeading[T backend.Float](r *rig[T]) {
	r.packedBackend()
	for _, n := range []int{1, 2, 5, 16, 33, 66, 130, 257} {
		low := r.exactTriangle(n, 12, true)
		a := mulSparse(low, transpose(low))
		for _, k := range []int{0, 1, (n + 1) / 2, n/2 + 1, n - 1, n} {
			k = min(k, n)
			label := fmt.Sprintf("leading %d rows of %d", k, n)
			x := r.integers(k, 1+r.rng.IntN(8), 3)
			diagonal := make([]T, k)
			got := r.mustCall(label, packedCall(r, 0, func(b backend.PackedBackend[T], a backend.Packed[T], _ []backend.Matrix[T]) error {
				leading := a.Leading(k)
				m := Upload(r, b, round[T](mul(low.View(0, 0, k, k), x)))
				defer m.Free()
				err := b.PotrfPacked(leading)
				b.TrsmPacked(backend.NoTrans, leading, m)
				requireBits(r, label+": solution", Download(r, b, m), round[T](x))
				return errors.Join(err, b.DiagPacked(diagonal, leading))
			}), potrfOperand(backend.Lower, a))
			want := potrfOperand(backend.Lower, a)
			for i := range k {
				copy(want.Row(i), low.Row(i)[:i+1])
				if float64(diagonal[i]) != low.Row(i)[i] {
					r.Fatalf("%s: DiagPacked: element %d is %v, want %v", label, i, diagonal[i], low.Row(i)[i])
				}
			}
			r.requireEqual(label, got, want)
		}
	}
}

// testPackedMisuse repeats the checks of testMisuse and testForeign in packed storage.
func testPackedMisuse[T backend.Float](r *rig[T]) {
	b := r.packedBackend()
	packed := func(b backend.PackedBackend[T], n int) backend.Packed[T] {
		a, err := b.NewPacked(n)
		if err != nil {
			r.Fatal(err)
		}
		return a
	}
	a := packed(b, 3)
	m33, m34, m43 := r.alloc(b, 3, 3), r.alloc(b, 3, 4), r.alloc(b, 4, 3)
	linear := kernels.Linear{}
	host := func(rows, cols, stride int) backend.Host[T] {
		return backend.Host[T]{Rows: rows, Cols: cols, Stride: stride, Data: make([]T, rows*max(stride, cols))}
	}
	for _, c := range []struct {
		op string
		f  func()
	}{
		{"NewPacked: ", func() { b.NewPacked(-1) }},
		{"NewPacked: ", func() { b.PackedBytes(-1) }},
		{"Packed.Leading: ", func() { a.Leading(-1) }},
		{"Packed.Leading: ", func() { a.Leading(4) }},
		{"Packed.Leading: ", func() { a.Leading(2).Leading(3) }},
		{"UploadPacked: ", func() { b.UploadPacked(a, -1, host(1, 0, 0)) }},
		{"UploadPacked: ", func() { b.UploadPacked(a, 0, host(3, 4, 4)) }},
		{"UploadPacked: ", func() { b.UploadPacked(a, 0, host(4, 4, 4)) }},
		{"UploadPacked: ", func() { b.UploadPacked(a, 1, host(2, 2, 2)) }},
		{"UploadPacked: ", func() { b.UploadPacked(a, 2, host(2, 4, 4)) }},
		{"UploadPacked: ", func() { b.UploadPacked(a, math.MaxInt, host(1, 1, 1)) }},
		{"UploadPacked: ", func() { b.UploadPacked(a, 0, host(3, 3, 2)) }},
		{"DownloadPacked: ", func() { b.DownloadPacked(host(2, 3, 3), a, 0) }},
		{"DownloadPacked: ", func() { b.DownloadPacked(host(3, 3, 2), a, 0) }},
		{"GramPacked: ", func() { b.GramPacked(a, linear, m43) }},
		{"GramPacked: ", func() { b.GramPacked(a, nil, m33) }},
		{"GramPacked: ", func() { b.GramPacked(a, kernels.Gaussian{}, m33) }},
		{"AddDiagPacked: ", func() { b.AddDiagPacked([]T{1, 2}, a) }},
		{"AddDiagPacked: ", func() { b.AddDiagPacked(nil, a) }},
		{"DiagPacked: ", func() { b.DiagPacked(make([]T, 2), a) }},
		{"SymmPacked: ", func() { b.SymmPacked(1, a, m43, 0, m33) }},
		{"SymmPacked: ", func() { b.SymmPacked(1, a, m33, 0, m43) }},
		{"SymmPacked: ", func() { b.SymmPacked(1, a, m33, 0, m34) }},
		{"TrsmPacked: ", func() { b.TrsmPacked(backend.NoTrans, a, m43) }},
		{"TrsmPacked: ", func() { b.TrsmPacked(9, a, m33) }},
	} {
		r.requirePanic(c.op, c.f)
	}

	other := r.queue(r.Open(r, backend.Config{})).(backend.PackedBackend[T])
	foreign, foreignMatrix := packed(other, 3), r.alloc(other, 3, 3)
	for _, c := range []struct {
		op string
		f  func()
	}{
		{"UploadPacked", func() { b.UploadPacked(foreign, 0, host(3, 3, 3)) }},
		{"DownloadPacked", func() { b.DownloadPacked(host(3, 3, 3), foreign, 0) }},
		{"GramPacked", func() { b.GramPacked(foreign, linear, m33) }},
		{"GramPacked", func() { b.GramPacked(a, linear, foreignMatrix) }},
		{"AddDiagPacked", func() { b.AddDiagPacked([]T{1}, foreign) }},
		{"DiagPacked", func() { b.DiagPacked(make([]T, 3), foreign) }},
		{"SymmPacked", func() { b.SymmPacked(1, foreign, m33, 0, m33) }},
		{"SymmPacked", func() { b.SymmPacked(1, a, foreignMatrix, 0, m33) }},
		{"SymmPacked", func() { b.SymmPacked(1, a, m33, 0, foreignMatrix) }},
		{"PotrfPacked", func() { b.PotrfPacked(foreign) }},
		{"TrsmPacked", func() { b.TrsmPacked(backend.NoTrans, foreign, m33) }},
		{"TrsmPacked", func() { b.TrsmPacked(backend.NoTrans, a, foreignMatrix) }},
	} {
		if text := r.requirePanic(c.op+": ", c.f); !strings.Contains(text, "another device") {
			r.Errorf("%s: with a matrix of another device: the panic was %q, want one that names another device", c.op, text)
		}
	}
	if err := b.Sync(); err != nil {
		r.Errorf("Sync after misuse: %v", err)
	}
	foreign.Free()
	foreignMatrix.Free()
	a.Free()
	for _, m := range []backend.Matrix[T]{m33, m34, m43} {
		m.Free()
	}
}

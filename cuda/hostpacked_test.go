package cuda

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda/cudatest"
	"github.com/mercer-go/mercer/kernels"
)

// TestHostPacked checks that packed matrices in host memory give the same results as packed matrices on the device.
func TestHostPacked(t *testing.T) {
	Need(t)
	SmallCuts(t)
	for _, level := range []cudatest.Level{cudatest.DriverOnly, cudatest.WithBlas, cudatest.WithSolver} {
		dev, err := openAt(level, backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		testHostPacked(t, dev, dev.F64())
		testHostPacked(t, dev, dev.F32())
		if inUse, _ := dev.InUse(); inUse != 0 {
			t.Errorf("%d bytes are still in use", inUse)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

func testHostPacked[T backend.Float](t *testing.T, dev backend.Device, b backend.Backend[T]) {
	const seed = 1
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	hb := b.(backend.HostPackedBackend[T])
	unit := 0x1p-53
	if sizeOf[T]() == 4 {
		unit = 0x1p-24
	}
	normals := func(rows, cols int) backend.Matrix[T] {
		h := backend.NewHost[T](rows, cols)
		for i := range h.Data {
			h.Data[i] = T(rng.NormFloat64())
		}
		m, err := b.New(rows, cols)
		if err == nil {
			err = b.Upload(m, h)
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	fetch := func(m backend.Matrix[T]) backend.Host[T] {
		h := backend.NewHost[T](m.Dims())
		if err := b.Download(h, m); err != nil {
			t.Fatal(err)
		}
		return h
	}
	lowerOf := func(a backend.Packed[T]) backend.Host[T] {
		n := a.Order()
		h := backend.NewHost[T](n, n)
		for i := 0; i < n; { // the rows are written in several parts
			rows := min(1+rng.IntN(30), n-i)
			if err := hb.DownloadPacked(h.View(i, 0, rows, i+rows), a, i); err != nil {
				t.Fatal(err)
			}
			i += rows
		}
		return h
	}
	for _, order := range []struct{ n, leading int }{{0, 0}, {1, 1}, {24, 24}, {25, 20}, {130, 130}, {131, 60}, {150, 149}} {
		device, err := hb.NewPacked(order.n)
		if err != nil {
			t.Fatal(err)
		}
		inUseBefore, _ := dev.InUse()
		onHost, err := hb.NewHostPacked(order.n)
		if err != nil {
			t.Fatal(err)
		}
		bytes, _ := hb.HostPackedBytes(order.n)
		if inUse, _ := dev.InUse(); inUse-inUseBefore != bytes {
			t.Errorf("order %d: %d bytes on the device, HostPackedBytes says %d", order.n, inUse-inUseBefore, bytes)
		}
		points := normals(order.n, 4)
		n := order.leading
		rhs := normals(n, 3)
		k := kernels.Gaussian{Sigma: 2}
		diag := make([]T, n)
		for i := range diag {
			diag[i] = T(1 + rng.Float64())
		}
		var results [2][]backend.Host[T]
		for variant, packed := range []backend.Packed[T]{device, onHost} {
			hb.GramPacked(packed, k, points)
			leading := packed.Leading(n)
			if n > 0 {
				hb.AddDiagPacked([]T{1}, leading)
				hb.AddDiagPacked(diag, leading)
			}
			record := func(h backend.Host[T]) { results[variant] = append(results[variant], h) }
			record(lowerOf(leading))
			got := make([]T, n)
			if err := hb.DiagPacked(got, leading); err != nil {
				t.Fatal(err)
			}
			record(backend.Host[T]{Rows: 1, Cols: n, Stride: n, Data: got})
			out := normals(n, 3)
			if err := b.Upload(out, fetch(rhs)); err != nil {
				t.Fatal(err)
			}
			hb.SymmPacked(0.5, leading, rhs, 2, out)
			record(fetch(out))
			if err := hb.UploadPacked(leading, 0, results[variant][0]); err != nil {
				t.Fatal(err)
			}
			if err := hb.PotrfPacked(leading); err != nil {
				t.Fatal(err)
			}
			record(lowerOf(leading))
			hb.TrsmPacked(backend.NoTrans, leading, out)
			record(fetch(out))
			hb.TrsmPacked(backend.Transpose, leading, out)
			record(fetch(out))
			if n > 3 {
				// The index of the pivot is counted from the first row of the matrix.
				indefinite := results[variant][0]
				indefinite.Row(n - 2)[n-2] = -1e3
				if err := hb.UploadPacked(leading, 0, indefinite); err != nil {
					t.Fatal(err)
				}
				var pivot *backend.PivotError
				if err := hb.PotrfPacked(leading); !errors.As(err, &pivot) || pivot.Index != n-2 || !(pivot.Value < -900) {
					t.Errorf("order %d: a negative pivot: %v", n, err)
				}
			}
			out.Free()
		}
		// All elements are between 1 and n in absolute value, and the condition number of K + I is at most n.
		for i, want := range results[0] {
			for e, v := range results[1][i].Data {
				if d := math.Abs(float64(v - want.Data[e])); !(d <= 64*float64(n*n)*unit) {
					t.Fatalf("order %d: result %d, element %d is %v, on the device %v", n, i, e, v, want.Data[e])
				}
			}
		}
		onHost.Leading(n / 2).Free() // Free does nothing on a leading block
		onHost.Free()
		onHost.Free()
		device.Free()
		points.Free()
		rhs.Free()
	}
	// If a matrix is too large for the host, the error states the number of bytes.
	const tooLarge = 10_000_000
	_, want := hb.HostPackedBytes(tooLarge)
	var e *backend.MemoryError
	if _, err := hb.NewHostPacked(tooLarge); !errors.As(err, &e) || e.Requested != want || e.Free <= 0 {
		t.Errorf("a packed matrix of order %d: %v", tooLarge, err)
	}
}

// TestNewHostPackedStops checks that NewHostPacked stops when the context is done, and that no
// memory then remains in use.
func TestNewHostPackedStops(t *testing.T) {
	Need(t)
	dev := backendtest.Device(t, "cuda/0")
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the reason")
	cancel(cause)
	if h, err := dev.F64().With(ctx, nil).(*queue[float64]).NewHostPacked(100); !errors.Is(err, cause) {
		t.Errorf("got %v, %v", h, err)
	}
	if err := dev.Sync(); err != nil {
		t.Error(err)
	}
	if inUse, _ := dev.InUse(); inUse != 0 {
		t.Errorf("%d bytes are in use", inUse)
	}
}

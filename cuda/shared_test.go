package cuda

import (
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/kernels"
)

// inContext runs f on a thread with the primary context of cuda/0, like a program that has created its own context.
func inContext(t *testing.T, f func(api *driver.API)) {
	t.Helper()
	api, err := library()
	if err != nil {
		t.Fatal(err)
	}
	handle, err := api.Device(0)
	if err != nil {
		t.Fatal(err)
	}
	context, err := api.RetainPrimary(handle)
	if err != nil {
		t.Fatal(err)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := api.SetCurrent(context); err != nil {
		t.Fatal(err)
	}
	f(api)
	if err := errors.Join(api.SetCurrent(0), api.ReleasePrimary(handle)); err != nil {
		t.Error(err)
	}
}

// TestOpenCurrent checks a device that works in the caller's context and on the caller's memory.
func TestOpenCurrent(t *testing.T) {
	Need(t)
	inContext(t, func(api *driver.API) {
		dev, err := OpenCurrent(0, nil, backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		const n, d, stride = 20, 3, 5
		p, err := api.MemAlloc(n * stride * 8)
		if err != nil {
			t.Fatal(err)
		}
		x, err := Wrap[float64](dev, uintptr(p), n, d, stride)
		if err != nil {
			t.Fatal(err)
		}
		b := dev.F64()
		r := rand.New(rand.NewPCG(3, 4))
		h := backend.NewHost[float64](n, d)
		for i := range h.Data {
			h.Data[i] = r.NormFloat64()
		}
		k, err := b.New(n, n)
		if err != nil {
			t.Fatal(err)
		}
		got := backend.NewHost[float64](n, n)
		if err := b.Upload(x, h); err != nil {
			t.Fatal(err)
		}
		b.Gram(k, kernels.Laplacian{Sigma: 2}, x, x)
		if err := b.Download(got, k); err != nil {
			t.Fatal(err)
		}
		for i := range n {
			for j := range i + 1 {
				want := kernels.Eval(kernels.Laplacian{Sigma: 2}, h.Row(i), h.Row(j))
				if diff := got.Row(i)[j] - want; diff > 16*0x1p-53 || diff < -16*0x1p-53 { // the bound covers the rounding errors of d terms and 2 units of exp
					t.Fatalf("seed 3, 4: element %d, %d is %v, want %v", i, j, got.Row(i)[j], want)
				}
			}
		}
		x.Free()
		k.Free()
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		// The context and its memory must still exist.
		if err := api.MemFree(p); err != nil {
			t.Errorf("the caller's memory: %v", err)
		}
		if c, err := api.Current(); err != nil || c == 0 {
			t.Errorf("the caller's context: %v, %v", c, err)
		}
		if _, err := Wrap[float64](dev, uintptr(p), 1, 1, 1); err == nil || !strings.Contains(err.Error(), "has been closed") {
			t.Errorf("wrap after Close: %v", err)
		}
	})
}

// TestOpenCurrentKeepsOwner checks that the owner of the context is not collected while an object uses the context.
func TestOpenCurrentKeepsOwner(t *testing.T) {
	Need(t)
	inContext(t, func(*driver.API) {
		var gone atomic.Bool
		open := func() backend.Device {
			owner := new([64]int)
			runtime.AddCleanup(owner, func(int) { gone.Store(true) }, 0)
			dev, err := OpenCurrent(0, owner, backend.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return dev
		}
		dev := open()
		b := dev.F64()
		closer := dev.Close
		for range 3 {
			runtime.GC()
		}
		if gone.Load() {
			t.Error("the owner was collected while its context was in use")
		}
		runtime.KeepAlive(b)
		if err := closer(); err != nil {
			t.Error(err)
		}
		// After Close the owner is no longer reachable, but the collector may need several cycles.
		for i := 0; i < 100 && !gone.Load(); i++ {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
		if !gone.Load() {
			t.Error("a closed device keeps the owner of its context")
		}
	})
}

func TestSharedErrors(t *testing.T) {
	Need(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, err := OpenCurrent(0, nil, backend.Config{}); !errors.Is(err, backend.ErrUnavailable) || !strings.Contains(err.Error(), "no context is current on this thread") {
		t.Errorf("without a context: %v", err)
	}
	inContext(t, func(*driver.API) {
		if _, err := OpenCurrent(99, nil, backend.Config{}); !errors.Is(err, backend.ErrUnavailable) {
			t.Errorf("device 99: %v", err)
		}
		dev, err := OpenCurrent(0, nil, backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		for _, c := range []struct {
			dev                backend.Device
			p                  uintptr
			rows, cols, stride int
			want               string
		}{
			{nil, 8, 1, 1, 1, "is not a device of this package"},
			{dev, 8, 2, 3, 2, "bad matrix: 2×3 with stride 2"},
			{dev, 8, -1, 3, 3, "bad matrix"},
			{dev, 0, 1, 1, 1, "the address is 0"},
			{dev, 12, 1, 1, 1, "not a multiple of the element size, 8 bytes"},
		} {
			if _, err := Wrap[float64](c.dev, c.p, c.rows, c.cols, c.stride); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		}
		if _, err := Wrap[float32](dev, 0, 0, 3, 3); err != nil {
			t.Errorf("an empty matrix: %v", err)
		}
	})
}

// TestFreeBesideOthers checks that host memory can be freed while other programs' work is queued in
// the same context, but is not freed while a copy uses it.
func TestFreeBesideOthers(t *testing.T) {
	Need(t)
	inContext(t, func(api *driver.API) {
		const bytes = 1 << 12
		p, err := api.MemAlloc(bytes)
		if err != nil {
			t.Fatal(err)
		}
		var streams [2]driver.Stream // one of the two streams is delayed
		for i := range streams {
			if streams[i], err = api.NewStream(); err != nil {
				t.Fatal(err)
			}
		}
		dev, err := backend.Open("cuda/0", backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		h, err := dev.F64().(*queue[float64]).NewHostPacked(100)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range streams {
			if err := api.Clear(p, bytes, s); err != nil {
				t.Fatal(err)
			}
		}
		h.Free()
		if err := errors.Join(dev.Sync(), dev.Close()); err != nil {
			t.Error(err)
		}

		locked, err := api.AllocHost(bytes)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range streams {
			row := driver.Copy2D{Src: driver.Place{Host: locked, Pitch: bytes}, Dst: driver.Place{Device: p, Pitch: bytes}, Width: bytes, Height: 1}
			if err := api.Copy(row, s); err != nil {
				t.Fatal(err)
			}
		}
		if simulated != "" {
			if err := api.FreeHost(locked); err == nil {
				t.Fatal("the simulated driver frees memory that a copy needs")
			}
		}
		for _, s := range streams {
			if err := errors.Join(api.Wait(s), api.DestroyStream(s)); err != nil {
				t.Error(err)
			}
		}
		if err := errors.Join(api.FreeHost(locked), api.MemFree(p)); err != nil {
			t.Error(err)
		}
	})
}

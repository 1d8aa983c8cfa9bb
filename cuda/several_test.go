package cuda

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/required"
)

// TestSeveralDevices uses two devices at the same time and checks that each device has its own
// memory, context and thread.
func TestSeveralDevices(t *testing.T) {
	Need(t)
	var devices []backend.Device
	for _, name := range []string{"cuda/0", "cuda/1"} {
		dev, err := backend.Open(name, backend.Config{})
		if errors.Is(err, backend.ErrUnavailable) && name == "cuda/1" && required.Names("cuda") {
			t.Skip("there is one GPU")
		}
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		if dev.Info().Device != name {
			t.Errorf("%s has the name %s", name, dev.Info().Device)
		}
		devices = append(devices, dev)
	}
	want := make([]error, len(devices))
	var group sync.WaitGroup
	for i, dev := range devices {
		group.Go(func() {
			for range 3 {
				want[i] = errors.Join(want[i], workload(dev))
			}
		})
	}
	group.Wait()
	for i, err := range want {
		if err != nil {
			t.Errorf("%s: %v", devices[i].Info().Device, err)
		}
	}
	a, err := devices[0].F64().New(10, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Free()
	if inUse, _ := devices[0].InUse(); inUse != 800 {
		t.Errorf("cuda/0 has %d bytes in use, want 800", inUse)
	}
	if inUse, _ := devices[1].InUse(); inUse != 0 {
		t.Errorf("cuda/1 has %d bytes in use, want none", inUse)
	}
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "another device") {
			t.Errorf("a matrix of cuda/0 on cuda/1: %q", text)
		}
	}()
	devices[1].F64().AddDiag([]float64{1}, a)
}

// TestContextStays checks that the CUDA context of the libraries remains valid after a device is closed. Each
// device must release its own reference to the context.
func TestContextStays(t *testing.T) {
	Need(t)
	original, err := library()
	if err != nil {
		t.Fatal(err)
	}
	previous, previousOrdinals := library, retained.ordinals
	defer func() { library, retained.ordinals = previous, previousOrdinals }()
	retained.ordinals = map[int]bool{}
	retained := 0
	api := *original
	api.Call = func(s *driver.Symbol, args ...uintptr) int32 {
		switch s.Name {
		case "cuDevicePrimaryCtxRetain":
			retained++
		case "cuDevicePrimaryCtxRelease_v2":
			retained--
		}
		return original.Call(s, args...)
	}
	library = func() (*driver.API, error) { return &api, nil }
	for range 3 {
		dev, err := backend.Open("cuda/0", backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if retained != 2 {
			t.Errorf("the context is retained %d times while a device is open", retained)
		}
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
		if retained != 1 {
			t.Errorf("the context is retained %d times after Close", retained)
		}
	}
}

package backendtest

import (
	"context"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
)

// Devices returns every registered device that this machine can run. With -short it returns only ref and the best
// device, or ref and the device that MERCER_DEVICE names.
func Devices(t testing.TB) []string {
	t.Helper()
	var names []string
	for _, s := range backend.Report() {
		if s.Err == nil {
			names = append(names, s.Device)
		}
	}
	if len(names) == 0 {
		t.Fatal("no usable backend is registered: import a backend, such as package cpu, for its side effect")
	}
	if !testing.Short() {
		return names
	}
	best := "ref"
	if dev, err := backend.Open("", backend.Config{}); err == nil {
		best = dev.Info().Device
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
	return slices.DeleteFunc(names, func(name string) bool { return name != best && name != "ref" })
}

// Device opens a device with the settings c, or else backend.Config{}, and closes it when the test ends.
func Device(t testing.TB, name string, c ...backend.Config) backend.Device {
	t.Helper()
	dev, err := backend.Open(name, append(c, backend.Config{})[0])
	return Closed(t, dev, err)
}

// Closed returns dev, and closes it when the test ends. err is the error of opening dev, and ends the test.
func Closed(t testing.TB, dev backend.Device, err error) backend.Device {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	})
	return dev
}

// Far wraps a device and hides the optional abilities of its float64 queue: its memory appears not to be Go memory.
type Far struct{ backend.Device }

type farQueue struct{ backend.Backend[float64] }

// F64 returns the float64 queue without its optional abilities.
func (d Far) F64() backend.Backend[float64] { return farQueue{d.Device.F64()} }

func (q farQueue) With(ctx context.Context, done func(float64)) backend.Backend[float64] {
	return farQueue{q.Backend.With(ctx, done)}
}

// OnDevices runs f on the devices "ref" and "cpu", and on "cpu" wrapped in Far. f must free all memory.
func OnDevices(t *testing.T, f func(t *testing.T, dev backend.Device)) {
	for name, device := range map[string]string{"ref": "ref", "best": "cpu", "far": "cpu"} {
		t.Run(name, func(t *testing.T) {
			dev := Device(t, device)
			if name == "far" {
				f(t, Far{dev})
			} else {
				f(t, dev)
			}
			if inUse, _ := dev.InUse(); inUse != 0 {
				t.Errorf("%d bytes have not been freed", inUse)
			}
		})
	}
}

// Upload returns a new matrix with the elements of h.
func Upload[T backend.Float](t testing.TB, b backend.Backend[T], h backend.Host[T]) backend.Matrix[T] {
	t.Helper()
	m, err := b.New(h.Rows, h.Cols)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Upload(m, h); err != nil {
		t.Fatal(err)
	}
	return m
}

// Download returns the elements of m.
func Download[T backend.Float](t testing.TB, b backend.Backend[T], m backend.Matrix[T]) backend.Host[T] {
	t.Helper()
	h := backend.NewHost[T](m.Dims())
	if err := b.Download(h, m); err != nil {
		t.Fatal(err)
	}
	return h
}

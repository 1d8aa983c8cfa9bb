package handles

import (
	"context"
	"sync"

	"github.com/mercer-go/mercer/backend"
)

// Device is an open device.
type Device struct {
	*refCount
	dev backend.Device
}

// Open opens the device with the given name; "" means the best available device. If threads or
// memory is 0, the default of backend.Config is used.
func Open(name string, threads int, memory int64) (*Device, error) {
	dev, err := backend.Open(name, backend.Config{Threads: threads, Memory: memory})
	if err != nil {
		return nil, err
	}
	return &Device{newRefCount(func() { dev.Close() }), dev}, nil
}

// Default returns the device of the handle 0. The first successful call opens the device by
// Open("", 0, 0). The device is never closed.
func Default() (*Device, error) {
	standard.Lock()
	defer standard.Unlock()
	if standard.device == nil {
		d, err := Open("", 0, 0)
		if err != nil {
			return nil, err
		}
		standard.device = d
	}
	return standard.device, nil
}

var standard struct {
	sync.Mutex
	device *Device
}

// Free closes the device when no call uses it and all factors on it are freed.
func (d *Device) Free() error { return d.free() }

func (d *Device) use(ctx context.Context, f func(dev backend.Device) error) error {
	if err := d.acquire(); err != nil {
		return err
	}
	defer d.release()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return f(d.dev)
}

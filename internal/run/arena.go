package run

import "github.com/mercer-go/mercer/backend"

// Arena hands out matrices on the device, remembers them so that one deferred
// call frees them on every path, and measures what they take.
type Arena struct {
	dev          backend.Device
	b            backend.Backend[float64]
	live         []Releaser
	before, peak int64 // bytes in use when the work began; the peak seen above that
	peakBefore   int64 // the device's own high-water mark when the work began
}

// Releaser is a matrix of any precision and storage.
type Releaser interface{ Free() }

// NewArena counts from what is in use on dev; its matrices are of b.
func NewArena(dev backend.Device, b backend.Backend[float64]) *Arena {
	now, peak := dev.InUse()
	return &Arena{dev: dev, b: b, before: now, peakBefore: peak}
}

// Use makes b the queue of what is made from now on.
func (m *Arena) Use(b backend.Backend[float64]) { m.b = b }

// New returns a matrix of zeros in float64.
func (m *Arena) New(rows, cols int) (backend.Matrix[float64], error) {
	return NewMatrix(m, m.b, rows, cols)
}

// NewMatrix is Arena.New in the precision of b.
func NewMatrix[T backend.Float](m *Arena, b backend.Backend[T], rows, cols int) (backend.Matrix[T], error) {
	a, err := b.New(rows, cols)
	if err != nil {
		return nil, err
	}
	m.Keep(a)
	return a, nil
}

// Place puts h on the device for reading, without a copy where possible.
func (m *Arena) Place(h backend.Host[float64]) (backend.Matrix[float64], error) {
	a, err := backend.Place(m.b, h)
	if err != nil {
		return nil, err
	}
	m.Keep(a)
	return a, nil
}

// Keep remembers a until it is freed.
func (m *Arena) Keep(a Releaser) {
	m.live = append(m.live, a)
	now, _ := m.dev.InUse()
	m.peak = max(m.peak, now-m.before)
}

// Free gives a back before the end of the work; nil is nothing.
func (m *Arena) Free(a Releaser) {
	for i, l := range m.live {
		if l == a {
			m.live = append(m.live[:i], m.live[i+1:]...)
			a.Free()
			return
		}
	}
}

// FreeAll gives everything back.
func (m *Arena) FreeAll() {
	for _, a := range m.live {
		a.Free()
	}
	m.live = nil
}

// PeakBytes returns the peak of what the work had on the device, in bytes. When the
// device's high-water mark has risen it is exact; otherwise it is what was seen
// after each allocation.
func (m *Arena) PeakBytes() int64 {
	if _, peak := m.dev.InUse(); peak > m.peakBefore {
		return max(m.peak, peak-m.before)
	}
	return m.peak
}

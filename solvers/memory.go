package solvers

import "github.com/mercer-go/mercer/backend"

// arena hands out matrices on the device, remembers them so that one deferred
// call frees them on every path, and measures what they take.
type arena struct {
	dev          backend.Device
	b            backend.Backend[float64]
	live         []releaser
	before, peak int64 // bytes in use when the work began; the peak seen above that
	peakBefore   int64 // the device's own high-water mark when the work began
}

// releaser is a matrix of any precision and storage.
type releaser interface{ Free() }

func newArena(dev backend.Device, b backend.Backend[float64]) *arena {
	now, peak := dev.InUse()
	return &arena{dev: dev, b: b, before: now, peakBefore: peak}
}

func (m *arena) new(rows, cols int) (backend.Matrix[float64], error) {
	return newMatrix(m, m.b, rows, cols)
}

// newMatrix is arena.new in the precision of b.
func newMatrix[T backend.Float](m *arena, b backend.Backend[T], rows, cols int) (backend.Matrix[T], error) {
	a, err := b.New(rows, cols)
	if err != nil {
		return nil, err
	}
	m.keep(a)
	return a, nil
}

// place puts h on the device for reading, without a copy where possible.
func (m *arena) place(h backend.Host[float64]) (backend.Matrix[float64], error) {
	a, err := backend.Place(m.b, h)
	if err != nil {
		return nil, err
	}
	m.keep(a)
	return a, nil
}

// keep remembers a until it is freed.
func (m *arena) keep(a releaser) {
	m.live = append(m.live, a)
	now, _ := m.dev.InUse()
	m.peak = max(m.peak, now-m.before)
}

// free gives a back before the end of the work; nil is nothing.
func (m *arena) free(a releaser) {
	for i, l := range m.live {
		if l == a {
			m.live = append(m.live[:i], m.live[i+1:]...)
			a.Free()
			return
		}
	}
}

func (m *arena) freeAll() {
	for _, a := range m.live {
		a.Free()
	}
	m.live = nil
}

// peakBytes returns the peak of what the work had on the device, in bytes. When the
// device's high-water mark has risen it is exact; otherwise it is what was seen
// after each allocation.
func (m *arena) peakBytes() int64 {
	if _, peak := m.dev.InUse(); peak > m.peakBefore {
		return max(m.peak, peak-m.before)
	}
	return m.peak
}

// wrapper returns dev's ability to use Go memory without a copy, or nil.
func wrapper(dev backend.Device) backend.Wrapper[float64] {
	w, _ := dev.F64().(backend.Wrapper[float64])
	return w
}

package solvers

import "github.com/mercer-go/mercer/backend"

// memory hands out matrices on the device, remembers them so that one deferred
// call frees them on every path, and measures what they take.
type memory struct {
	dev          backend.Device
	b            backend.Backend[float64]
	live         []freer
	before, most int64 // bytes in use when the work began; the most seen above that
	peakBefore   int64 // the device's own high-water mark when the work began
}

// freer is a matrix of any precision and storage.
type freer interface{ Free() }

func newMemory(dev backend.Device, b backend.Backend[float64]) *memory {
	now, peak := dev.InUse()
	return &memory{dev: dev, b: b, before: now, peakBefore: peak}
}

func (m *memory) new(rows, cols int) (backend.Matrix[float64], error) {
	return newMatrix(m, m.b, rows, cols)
}

// newMatrix is memory.new in the precision of b.
func newMatrix[T backend.Float](m *memory, b backend.Backend[T], rows, cols int) (backend.Matrix[T], error) {
	a, err := b.New(rows, cols)
	if err != nil {
		return nil, err
	}
	m.keep(a)
	return a, nil
}

// place puts h on the device for reading, without a copy where possible.
func (m *memory) place(h backend.Host[float64]) (backend.Matrix[float64], error) {
	a, err := backend.Place(m.b, h)
	if err != nil {
		return nil, err
	}
	m.keep(a)
	return a, nil
}

// keep remembers a until it is freed.
func (m *memory) keep(a freer) {
	m.live = append(m.live, a)
	now, _ := m.dev.InUse()
	m.most = max(m.most, now-m.before)
}

// free gives a back before the end of the work; nil is nothing.
func (m *memory) free(a freer) {
	for i, l := range m.live {
		if l == a {
			m.live = append(m.live[:i], m.live[i+1:]...)
			a.Free()
			return
		}
	}
}

func (m *memory) freeAll() {
	for _, a := range m.live {
		a.Free()
	}
	m.live = nil
}

// peak returns the most bytes that the work had on the device. When the
// device's high-water mark has risen it is exact; otherwise it is what was seen
// after each allocation.
func (m *memory) peak() int64 {
	if _, peak := m.dev.InUse(); peak > m.peakBefore {
		return max(m.most, peak-m.before)
	}
	return m.most
}

// wrapper returns dev's ability to use Go memory without a copy, or nil.
func wrapper(dev backend.Device) backend.Wrapper[float64] {
	w, _ := dev.F64().(backend.Wrapper[float64])
	return w
}

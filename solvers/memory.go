package solvers

import "github.com/mercer-go/mercer/backend"

// memory hands out matrices on the device, remembers them so that one deferred
// call frees them on every path, and measures what they take.
type memory struct {
	dev          backend.Device
	b            backend.Backend[float64]
	live         []backend.Matrix[float64]
	before, most int64 // bytes in use when the work began; the most seen above that
	peakBefore   int64 // the device's own high-water mark when the work began
}

func newMemory(dev backend.Device, b backend.Backend[float64]) *memory {
	now, peak := dev.InUse()
	return &memory{dev: dev, b: b, before: now, peakBefore: peak}
}

func (m *memory) new(rows, cols int) (backend.Matrix[float64], error) {
	a, err := m.b.New(rows, cols)
	return m.keep(a, err)
}

// place puts h on the device for reading, without a copy where possible.
func (m *memory) place(h backend.Host[float64]) (backend.Matrix[float64], error) {
	if w := wrapper(m.dev); w != nil {
		return m.keep(w.Wrap(h), nil)
	}
	a, err := backend.Place(m.b, h)
	return m.keep(a, err)
}

func (m *memory) keep(a backend.Matrix[float64], err error) (backend.Matrix[float64], error) {
	if err != nil {
		return nil, err
	}
	m.live = append(m.live, a)
	now, _ := m.dev.InUse()
	m.most = max(m.most, now-m.before)
	return a, nil
}

func (m *memory) free(a backend.Matrix[float64]) {
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
// device's high-water mark has risen it is exact; otherwise it is what was seen after each allocation.
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

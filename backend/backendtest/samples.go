package backendtest

import (
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// EachDevice runs f on every device of Devices, and fails if device memory then remains in use.
func EachDevice(t *testing.T, f func(t *testing.T, dev backend.Device)) {
	for _, name := range Devices(t) {
		t.Run(name, func(t *testing.T) {
			dev := Device(t, name)
			f(t, dev)
			if inUse, _ := dev.InUse(); inUse != 0 {
				t.Errorf("%d bytes are still in use on the device", inUse)
			}
		})
	}
}

// Normal returns an n×d matrix of standard normal numbers.
func Normal(seed uint64, n, d int) backend.Host[float64] {
	r := rand.New(rand.NewPCG(seed, 0))
	h := backend.NewHost[float64](n, d)
	for i := range h.Data {
		h.Data[i] = r.NormFloat64()
	}
	return h
}

// GramOf returns k(X, Z), computed by kernels.Eval.
func GramOf(k kernels.Kernel, x, z backend.Host[float64]) backend.Host[float64] {
	g := backend.NewHost[float64](x.Rows, z.Rows)
	for i := range x.Rows {
		for j := range z.Rows {
			g.Row(i)[j] = kernels.Eval(k, x.Row(i), z.Row(j))
		}
	}
	return g
}

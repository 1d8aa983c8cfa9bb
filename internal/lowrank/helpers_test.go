package lowrank

import (
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/kernels"
)

// eachDevice runs f on every device that is usable here.
func eachDevice(t *testing.T, f func(t *testing.T, dev backend.Device)) {
	for _, name := range backendtest.Devices(t) {
		t.Run(name, func(t *testing.T) {
			dev := backendtest.Device(t, name)
			f(t, dev)
			if now, _ := dev.InUse(); now != 0 {
				t.Errorf("%d bytes are left on the device", now)
			}
		})
	}
}

// normal returns n×d standard normal numbers.
func normal(seed uint64, n, d int) backend.Host[float64] {
	r := rand.New(rand.NewPCG(seed, 0))
	h := backend.NewHost[float64](n, d)
	for i := range h.Data {
		h.Data[i] = r.NormFloat64()
	}
	return h
}

// hostGram is k(X, Z) by kernels.Eval.
func hostGram(k kernels.Kernel, x, z backend.Host[float64]) *mat.Dense {
	g := mat.NewDense(x.Rows, z.Rows, nil)
	for i := range x.Rows {
		for j := range z.Rows {
			g.Set(i, j, kernels.Eval(k, x.Row(i), z.Row(j)))
		}
	}
	return g
}

package cpu_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/kernels"
)

// BenchmarkGram times the lower triangle of k(X, X), K·V and, for comparison, the product XXᵀ alone
// (kernel=none), on all processors.
func BenchmarkGram(b *testing.B) {
	const d = 50
	sigma := math.Sqrt(d)
	for _, n := range []int{2000, 10000} {
		if n > 2000 && testing.Short() {
			continue
		}
		for _, precision := range []string{"float64", "float32"} {
			prefix := fmt.Sprintf("n=%d/d=%d/precision=%s/kernel=", n, d, precision)
			run := func(name string, columns int, k kernels.Kernel) {
				b.Run(prefix+name, func(b *testing.B) {
					dev := backendtest.Device(b, "")
					if precision == "float32" {
						benchmarkGram(b, dev.F32(), n, d, columns, k)
					} else {
						benchmarkGram(b, dev.F64(), n, d, columns, k)
					}
				})
			}
			run("none", 0, nil)
			for _, k := range []kernels.Kernel{kernels.Linear{}, kernels.Gaussian{Sigma: sigma}, kernels.Laplacian{Sigma: d}, kernels.Matern{Nu: 2.5, Sigma: sigma}} {
				run(k.String(), 0, k)
			}
			for _, columns := range []int{1, 8, 16} {
				k := kernels.Gaussian{Sigma: sigma}
				run(fmt.Sprintf("%v/columns=%d", k, columns), columns, k)
			}
		}
	}
}

// benchmarkGram times K·V if columns > 0, and otherwise K.
func benchmarkGram[T backend.Float](b *testing.B, q backend.Backend[T], n, d, columns int, k kernels.Kernel) {
	rng := rand.New(rand.NewPCG(1, 0))
	matrix := func(rows, cols int) backend.Matrix[T] {
		h := backend.NewHost[T](rows, cols)
		for i := range h.Data {
			h.Data[i] = T(rng.NormFloat64())
		}
		m, err := backend.Place(q, h)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(m.Free)
		return m
	}
	x, v := matrix(n, d), matrix(n, max(columns, 1))
	size := n
	if columns > 0 {
		size = columns
	}
	out, err := q.New(n, size)
	if err != nil {
		b.Fatal(err)
	}
	defer out.Free()
	for b.Loop() {
		switch {
		case k == nil:
			q.Syrk(backend.Lower, backend.NoTrans, 1, x, 0, out)
		case columns > 0:
			q.GramMul(out, k, x, x, v)
		default:
			q.Gram(out, k, x, x)
		}
		if err := q.Sync(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(n)*float64(n)/2*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mvalues/s")
}

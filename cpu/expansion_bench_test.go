package cpu_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// BenchmarkExpansion times the prediction for a few points by 2,000 points of 20 features, with one worker.
func BenchmarkExpansion(b *testing.B) {
	const m, d = 2000, 20
	rng := rand.New(rand.NewPCG(1, 8))
	normals := func(rows, cols int) backend.Host[float64] {
		h := backend.NewHost[float64](rows, cols)
		for i := range h.Data {
			h.Data[i] = rng.NormFloat64()
		}
		return h
	}
	dev, err := backend.Open("cpu", backend.Config{Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = dev.Close() }()
	f, err := dev.F64().(backend.Expander[float64]).NewExpansion(kernels.Gaussian{Sigma: 6}, normals(m, d), normals(m, 1))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Free()
	for _, n := range []int{1, 8, 256} {
		x, dst := normals(n, d), backend.NewHost[float64](n, 1)
		b.Run(fmt.Sprintf("n=%d/m=%d/d=%d", n, m, d), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f.Apply(context.Background(), dst, x); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

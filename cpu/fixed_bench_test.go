package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// BenchmarkFixed times a packed Gram matrix and its product with a small number of columns,
// in float32 and with 16 bits per element.
func BenchmarkFixed(b *testing.B) {
	const d, maxCols = 50, 10
	sizes := []int{4096}
	if !testing.Short() {
		sizes = append(sizes, 20000)
	}
	for _, n := range sizes {
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		points, right := backend.NewHost[float32](n, d), backend.NewHost[float32](n, maxCols)
		for _, h := range []backend.Host[float32]{points, right} {
			for i := range h.Data {
				h.Data[i] = float32(rng.NormFloat64())
			}
		}
		dev, err := driver{}.Open(bestDevice().tier.Name, backend.Config{})
		if err != nil {
			b.Fatal(err)
		}
		q := dev.F32().(backend.FixedBackend[float32])
		w := q.(backend.Wrapper[float32])
		x, rhs := w.Wrap(points), w.Wrap(right)
		out, err := q.New(n, maxCols)
		if err != nil {
			b.Fatal(err)
		}
		pairs := float64(n) * float64(n) / 2
		for _, storage := range []struct {
			name  string
			alloc func(int) (backend.Packed[float32], error)
		}{{"float32", q.NewPacked}, {"fixed16", q.NewFixed}} {
			a, err := storage.alloc(n)
			if err != nil {
				b.Fatal(err)
			}
			gram := func() error { q.GramPacked(a, kernels.Gaussian{Sigma: 7}, x); return q.Sync() }
			if err := gram(); err != nil { // the Gram matrix is computed even if only the product is timed
				b.Fatal(err)
			}
			run := func(name string, f func() error) {
				b.Run(fmt.Sprintf("n=%d/%s/%s", n, name, storage.name), func(b *testing.B) {
					for range b.N {
						if err := f(); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(pairs*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gpairs/s")
				})
			}
			run("gram", gram)
			for _, cols := range []int{1, 2, 4, 10} {
				run(fmt.Sprintf("columns=%d", cols), func() error {
					q.SymmPacked(1, a, rhs.View(0, 0, n, cols), 0, out.View(0, 0, n, cols))
					return q.Sync()
				})
			}
			a.Free()
		}
		out.Free()
	}
}

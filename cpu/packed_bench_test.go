package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/kernels"
)

// BenchmarkPacked times operations in packed and in full storage, on the best tier, with one worker and with two.
func BenchmarkPacked(b *testing.B) {
	b.Run("float64", func(b *testing.B) { benchPacked(b, backend.Device.F64) })
	b.Run("float32", func(b *testing.B) { benchPacked(b, backend.Device.F32) })
}

func benchPacked[T backend.Float](b *testing.B, queue func(backend.Device) backend.Backend[T]) {
	const d, manyCols = 50, 64
	kernel := kernels.Gaussian{Sigma: 5}
	for _, n := range []int{256, 1024, 2048, 4096} {
		if n > 1024 && testing.Short() {
			continue
		}
		rng := rand.New(rand.NewPCG(1, uint64(n)))
		random := func(rows, cols int) backend.Host[T] {
			h := backend.NewHost[T](rows, cols)
			for i := range h.Data {
				h.Data[i] = T(rng.NormFloat64())
			}
			return h
		}
		points, right := random(n, d), random(n, manyCols)
		for _, threads := range []int{1, 2} {
			dev, err := driver{}.Open(bestDevice().tier.Name, backend.Config{Threads: threads})
			if err != nil {
				b.Fatal(err)
			}
			q := queue(dev)
			pq := q.(backend.PackedBackend[T])
			full, err := q.New(n, n)
			if err != nil {
				b.Fatal(err)
			}
			packed, err := pq.NewPacked(n)
			if err != nil {
				b.Fatal(err)
			}
			out, err := q.New(n, manyCols)
			if err != nil {
				b.Fatal(err)
			}
			w := q.(backend.Wrapper[T])
			x, rhs := w.Wrap(points), w.Wrap(right)
			const low = backend.Lower
			fill := func() {
				q.Gram(full, kernel, x, x)
				q.AddDiag([]T{1}, full)
				pq.GramPacked(packed, kernel, x)
				pq.AddDiagPacked([]T{1}, packed)
			}
			fill() // also for operations that only read: reading memory that was never written is faster
			for _, op := range []struct {
				name         string
				flops        float64
				refill       bool // restore the matrix before each call, outside the measured time
				full, packed func() error
			}{
				{"Gram", flop.Gram(n, n, d, true), false,
					func() error { q.Gram(full, kernel, x, x); return q.Sync() },
					func() error { pq.GramPacked(packed, kernel, x); return q.Sync() }},
				{"Symm1", flop.Symm(n, 1), false,
					func() error {
						q.Symm(low, 1, full, rhs.View(0, 0, n, 1), 0, out.View(0, 0, n, 1))
						return q.Sync()
					},
					func() error {
						pq.SymmPacked(1, packed, rhs.View(0, 0, n, 1), 0, out.View(0, 0, n, 1))
						return q.Sync()
					}},
				{"Symm64", flop.Symm(n, manyCols), false,
					func() error { q.Symm(low, 1, full, rhs, 0, out); return q.Sync() },
					func() error { pq.SymmPacked(1, packed, rhs, 0, out); return q.Sync() }},
				{"Potrf", flop.Potrf(n), true,
					func() error { return q.Potrf(low, full) },
					func() error { return pq.PotrfPacked(packed) }},
				{"PotrfReduced", flop.Potrf(n), true,
					func() error { return q.Potrf(low, full) },
					func() error { return q.(backend.ReducedBackend[T]).PotrfPackedReduced(packed) }},
				{"Trsm1", flop.Trsm(n, 1), false,
					func() error {
						q.Trsm(backend.Left, low, backend.NoTrans, 1, full, out.View(0, 0, n, 1))
						return q.Sync()
					},
					func() error { pq.TrsmPacked(backend.NoTrans, packed, out.View(0, 0, n, 1)); return q.Sync() }},
				{"Trsm64", flop.Trsm(n, manyCols), false,
					func() error { q.Trsm(backend.Left, low, backend.NoTrans, 1, full, out); return q.Sync() },
					func() error { pq.TrsmPacked(backend.NoTrans, packed, out); return q.Sync() }},
			} {
				for _, storage := range []struct {
					name string
					run  func() error
				}{{"full", op.full}, {"half", op.packed}} {
					b.Run(fmt.Sprintf("%s/n=%d/threads=%d/%s", op.name, n, threads, storage.name), func(b *testing.B) {
						for range b.N {
							if op.refill {
								b.StopTimer()
								fill()
								b.StartTimer()
							}
							if err := storage.run(); err != nil {
								b.Fatal(err)
							}
						}
						b.ReportMetric(op.flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
					})
				}
			}
		}
	}
}

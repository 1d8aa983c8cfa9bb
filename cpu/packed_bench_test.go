package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/kernels"
)

// BenchmarkPacked times the same operations in packed and in full storage, on the best
// tier, with one worker and with two.
func BenchmarkPacked(b *testing.B) {
	b.Run("float64", func(b *testing.B) { benchPacked(b, backend.Device.F64) })
	b.Run("float32", func(b *testing.B) { benchPacked(b, backend.Device.F32) })
}

func benchPacked[T backend.Float](b *testing.B, queue func(backend.Device) backend.Backend[T]) {
	const d, many = 50, 64
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
		points, right := random(n, d), random(n, many)
		for _, threads := range []int{1, 2} {
			dev, err := driver{}.Open(bestDevice().tier.Name, backend.Config{Threads: threads})
			if err != nil {
				b.Fatal(err)
			}
			q := queue(dev)
			hq := q.(backend.PackedBackend[T])
			full, err := q.New(n, n)
			if err != nil {
				b.Fatal(err)
			}
			half, err := hq.NewPacked(n)
			if err != nil {
				b.Fatal(err)
			}
			out, err := q.New(n, many)
			if err != nil {
				b.Fatal(err)
			}
			w := q.(backend.Wrapper[T])
			x, rhs := w.Wrap(points), w.Wrap(right)
			const low = backend.Lower
			fill := func() {
				q.Gram(full, kernel, x, x)
				q.AddDiag([]T{1}, full)
				hq.GramPacked(half, kernel, x)
				hq.AddDiagPacked([]T{1}, half)
			}
			fill() // also for operations that only read: reading memory that was never written is faster
			for _, op := range []struct {
				name       string
				flops      float64
				refill     bool // restore the matrix before each call, outside the measured time
				full, half func() error
			}{
				{"Gram", flop.Gram(n, n, d, true), false,
					func() error { q.Gram(full, kernel, x, x); return q.Sync() },
					func() error { hq.GramPacked(half, kernel, x); return q.Sync() }},
				{"Symm1", flop.Symm(n, 1), false,
					func() error {
						q.Symm(low, 1, full, rhs.View(0, 0, n, 1), 0, out.View(0, 0, n, 1))
						return q.Sync()
					},
					func() error {
						hq.SymmPacked(1, half, rhs.View(0, 0, n, 1), 0, out.View(0, 0, n, 1))
						return q.Sync()
					}},
				{"Symm64", flop.Symm(n, many), false,
					func() error { q.Symm(low, 1, full, rhs, 0, out); return q.Sync() },
					func() error { hq.SymmPacked(1, half, rhs, 0, out); return q.Sync() }},
				{"Potrf", flop.Potrf(n), true,
					func() error { return q.Potrf(low, full) },
					func() error { return hq.PotrfPacked(half) }},
				{"PotrfReduced", flop.Potrf(n), true,
					func() error { return q.Potrf(low, full) },
					func() error { return q.(backend.ReducedBackend[T]).PotrfPackedReduced(half) }},
				{"Trsm1", flop.Trsm(n, 1), false,
					func() error {
						q.Trsm(backend.Left, low, backend.NoTrans, 1, full, out.View(0, 0, n, 1))
						return q.Sync()
					},
					func() error { hq.TrsmPacked(backend.NoTrans, half, out.View(0, 0, n, 1)); return q.Sync() }},
				{"Trsm64", flop.Trsm(n, many), false,
					func() error { q.Trsm(backend.Left, low, backend.NoTrans, 1, full, out); return q.Sync() },
					func() error { hq.TrsmPacked(backend.NoTrans, half, out); return q.Sync() }},
			} {
				for _, way := range []struct {
					name string
					run  func() error
				}{{"full", op.full}, {"half", op.half}} {
					b.Run(fmt.Sprintf("%s/n=%d/threads=%d/%s", op.name, n, threads, way.name), func(b *testing.B) {
						for range b.N {
							if op.refill {
								b.StopTimer()
								fill()
								b.StartTimer()
							}
							if err := way.run(); err != nil {
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

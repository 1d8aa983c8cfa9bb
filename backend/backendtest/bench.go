package backendtest

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/kernels"
)

// Bench times the device that open opens, in both precisions, and reports GFLOP/s as counted in
// internal/flop. The names of the benchmarks have the form Gemm/float64/n=1024.
func Bench(b *testing.B, open Open) { Suite{Open: open}.Bench(b) }

// Bench times the device that s.Open opens, for sizes up to s.LargeN, whose default is 2048, or 512 with -short.
func (s Suite) Bench(b *testing.B) {
	if s.LargeN == 0 {
		s.LargeN = 2048
	}
	if s.Seed == 0 {
		s.Seed = 1
	}
	benchPrecision(b, s, "float64", backend.Device.F64)
	benchPrecision(b, s, "float32", backend.Device.F32)
}

func benchPrecision[T backend.Float](b *testing.B, s Suite, precision string, queue func(backend.Device) backend.Backend[T]) {
	for _, n := range []int{128, 512, 1024, 2048} {
		if n > s.LargeN || n > 512 && short() {
			break
		}
		dev := s.Open(b, backend.Config{})
		q := queue(dev)
		rng := rand.New(rand.NewPCG(s.Seed, uint64(n)))
		random := func(rows, cols int) backend.Matrix[T] {
			h := backend.NewHost[T](rows, cols)
			for i := range h.Data {
				h.Data[i] = T(rng.NormFloat64())
			}
			return Upload(b, q, h)
		}
		const d, t = 32, 8
		a, e, c, rhs, spd := random(n, n), random(n, n), random(n, n), random(n, n), random(n, n)
		spdHost, unitHost := Download(b, q, spd), Download(b, q, a)
		for i := range n {
			spdHost.Row(i)[i] = T(4 * n)
			// The matrix of repeated solves is nearly the identity: the solutions neither grow nor shrink.
			for j := range n {
				unitHost.Row(i)[j] *= 1e-9
			}
			unitHost.Row(i)[i] = 1
		}
		unit := Upload(b, q, unitHost)
		x, z, v, out := random(n, d), random(n, d), random(n, t), random(n, t)
		gaussian, matern := kernels.Gaussian{Sigma: 4}, kernels.Matern{Nu: 2.5, Sigma: 4}
		const noTrans, trans, lower = backend.NoTrans, backend.Transpose, backend.Lower
		for _, op := range []struct {
			name  string
			flops float64
			run   func() error
		}{
			{"Gemm", flop.Gemm(n, n, n), func() error { q.Gemm(noTrans, noTrans, 1, a, e, 0, c); return q.Sync() }},
			{"GemmTransposed", flop.Gemm(n, n, n), func() error { q.Gemm(trans, trans, 1, a, e, 0, c); return q.Sync() }},
			{"Syrk", flop.Syrk(n, n), func() error { q.Syrk(lower, noTrans, 1, a, 0, c); return q.Sync() }},
			{"Symm", flop.Symm(n, n), func() error { q.Symm(lower, 1, a, e, 0, c); return q.Sync() }},
			{"TrsmLeft", flop.Trsm(n, n), func() error { q.Trsm(backend.Left, lower, noTrans, 1, unit, rhs); return q.Sync() }},
			{"TrsmRight", flop.Trsm(n, n), func() error { q.Trsm(backend.Right, lower, trans, 1, unit, rhs); return q.Sync() }},
			{"Potrf", flop.Potrf(n), func() error {
				if err := q.Upload(spd, spdHost); err != nil {
					return err
				}
				return q.Potrf(lower, spd)
			}},
			{"GramGaussian", flop.Gram(n, n, d, true), func() error { q.Gram(c, gaussian, x, x); return q.Sync() }},
			{"GramMatern52", flop.Gram(n, n, d, false), func() error { q.Gram(c, matern, x, z); return q.Sync() }},
			{"GramMul", flop.GramMul(n, n, d, t), func() error { q.GramMul(out, gaussian, x, z, v); return q.Sync() }},
		} {
			b.Run(fmt.Sprintf("%s/%s/n=%d", op.name, precision, n), func(b *testing.B) {
				for b.Loop() {
					if err := op.run(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(op.flops*float64(b.N)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}

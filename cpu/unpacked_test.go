package cpu

import (
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// TestFewColumnsHaveTheBitsOfMany requires the same bits of a product with a small number of columns, for which A
// is not packed, and of a product with more columns. The generic tier, which adds in another order, is omitted.
func TestFewColumnsHaveTheBitsOfMany(t *testing.T) {
	for _, tier := range ukr.Tiers() {
		if tier.Missing() != "" || tier.Name == "generic" {
			continue
		}
		t.Run(tier.Name+"/float64", func(t *testing.T) { testFewColumns(t, tier.Name, backend.Device.F64) })
		t.Run(tier.Name+"/float32", func(t *testing.T) { testFewColumns(t, tier.Name, backend.Device.F32) })
	}
}

func testFewColumns[T backend.Float](t *testing.T, tier string, queue func(backend.Device) backend.Backend[T]) {
	dev, err := driver{}.Open(tier, backend.Config{Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	q := queue(dev)
	w := q.(backend.Wrapper[T])
	t.Log("seed 91")
	rng := rand.New(rand.NewPCG(91, 0))
	random := func(rows, cols int) backend.Host[T] {
		h := backend.NewHost[T](rows, cols)
		for i := range h.Data {
			h.Data[i] = T(rng.NormFloat64())
		}
		return h
	}
	const manyCols = narrowColumns + 4
	for _, s := range []struct{ m, n, k int }{{200, 10, 700}, {97, narrowColumns, 2*depth + 1}, {300, thinColumns + 1, 300}} {
		for _, trans := range []backend.Trans{backend.NoTrans, backend.Transpose} {
			a := random(s.m, s.k)
			if trans == backend.Transpose {
				a = random(s.k, s.m)
			}
			b, c := random(s.k, manyCols), random(s.m, manyCols)
			narrow := random(s.m, s.n)
			for i := range s.m {
				copy(narrow.Row(i), c.Row(i)[:s.n])
			}
			q.Gemm(trans, backend.NoTrans, -0.7, w.Wrap(a), w.Wrap(b), 0.5, w.Wrap(c))
			q.Gemm(trans, backend.NoTrans, -0.7, w.Wrap(a), w.Wrap(b).View(0, 0, s.k, s.n), 0.5, w.Wrap(narrow))
			if err := q.Sync(); err != nil {
				t.Fatal(err)
			}
			for i := range s.m {
				for j, v := range narrow.Row(i) {
					if v != c.Row(i)[j] {
						t.Fatalf("%v, %+v: element (%d, %d) is %v, and %v with %d columns", trans, s, i, j, v, c.Row(i)[j], manyCols)
					}
				}
			}
		}
	}
}

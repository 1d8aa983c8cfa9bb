package cpu

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
)

// TestCachesDoNotChangeResults requires results with the same bits for very different sizes of the caches.
func TestCachesDoNotChangeResults(t *testing.T) {
	const seed, n, k = 19, 300, 1100
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	a := backend.NewHost[float64](n, k)
	for i := range a.Data {
		a.Data[i] = rng.Float64() - 0.5
	}
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		var want []float64
		for _, caches := range []cacheSizes{{}, {L2: 1 << 10, L3: 1 << 12}, {L2: 256 << 10, L3: 2 << 20}, {L2: 4 << 20, L3: 512 << 20}} {
			dev, err := openWith(tier.Name, backend.Config{}, caches)
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			b := dev.F64()
			x, c := b.(backend.Wrapper[float64]).Wrap(a), backend.NewHost[float64](n, n)
			y := b.(backend.Wrapper[float64]).Wrap(c)
			b.Gemm(backend.NoTrans, backend.Transpose, 1, x, x, 0, y)
			b.Syrk(backend.Lower, backend.NoTrans, 1, x, 1, y)
			b.AddDiag([]float64{1}, y)
			if err := b.Potrf(backend.Lower, y); err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = c.Data
			} else if !slices.Equal(want, c.Data) {
				t.Errorf("%+v changes the result", caches)
			}
		}
	})
}

// TestBlocking checks that the block sizes satisfy the conditions that the loops need.
func TestBlocking(t *testing.T) {
	for _, caches := range []cacheSizes{{}, {L2: 1, L3: 1}, {L2: 1 << 30, L3: math.MaxInt}} {
		for _, tile := range [][3]int{{14, 16, 8}, {14, 32, 4}, {6, 8, 8}, {6, 16, 4}, {4, 4, 8}} {
			b := blockingFor(tile[0], tile[1], tile[2], caches)
			if b.mc < 2*b.mr || b.mc%b.mr != 0 || b.nc < b.kc || b.nc%b.nr != 0 || b.kc != depth {
				t.Errorf("%+v, tile %v: %+v", caches, tile, b)
			}
		}
	}
}

// TestBlockEdges compares products of small integers exactly, for all dimensions one below, equal to, and one
// above MC, NC and KC. C is padded and initially NaN.
func TestBlockEdges(t *testing.T) {
	const seed, pad = 23, 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	random := func(rows, cols int) backend.Host[float64] {
		h := backend.Host[float64]{Rows: rows, Cols: cols, Stride: cols + pad, Data: make([]float64, rows*(cols+pad))}
		for i := range h.Data {
			h.Data[i] = float64(rng.IntN(9) - 4)
		}
		return h
	}
	forEachAssembledTier(t, func(t *testing.T, tier *ukr.Tier) {
		dev, err := openWith(tier.Name, backend.Config{}, cacheSizes{L2: 1, L3: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer dev.Close()
		b := dev.F64()
		wrap := b.(backend.Wrapper[float64]).Wrap
		size := dev.(*device).f64.block
		for _, m := range []int{size.mc - 1, size.mc, size.mc + 1} {
			for _, n := range []int{size.nc - 1, size.nc, size.nc + 1} {
				for _, k := range []int{size.kc - 1, size.kc, size.kc + 1} {
					x, y := random(m, k), random(n, k)
					want := make([]float64, m*n)
					for i := range m {
						for j := range n {
							sum, row := 0.0, y.Row(j)
							for p, v := range x.Row(i) {
								sum += v * row[p]
							}
							want[i*n+j] = sum
						}
					}
					c := random(m, n)
					for i := range c.Data {
						c.Data[i] = math.NaN()
					}
					b.Gemm(backend.NoTrans, backend.Transpose, 1, wrap(x), wrap(y), 0, wrap(c))
					for i := range m {
						if !slices.Equal(c.Row(i), want[i*n:][:n]) {
							t.Fatalf("%d×%d×%d: row %d differs", m, n, k, i)
						}
						for _, v := range c.Data[i*c.Stride+n : (i+1)*c.Stride] {
							if v == v {
								t.Fatalf("%d×%d×%d: row %d: written past its end", m, n, k, i)
							}
						}
					}
				}
			}
		}
	})
}

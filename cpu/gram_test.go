package cpu

import (
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/kernels"
)

// TestGramBlocks uses points with so many features that they are packed in several blocks. K·V from the lower
// triangle, from all of K, and from a stored K must agree up to the rounding of the sums, in bounded memory.
func TestGramBlocks(t *testing.T) {
	const seed, n, d, columns = 29, 600, 6000, 3
	t.Logf("seed %d", seed)
	if block := gramBlock(d, 8); block >= n/2 {
		t.Fatalf("blocks of %d points: choose more features", block)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	host := func(rows, cols int) backend.Host[float64] {
		h := backend.NewHost[float64](rows, cols)
		for i := range h.Data {
			h.Data[i] = rng.NormFloat64()
		}
		return h
	}
	x, v := host(n, d), host(n, columns)
	copyOfX := backend.Host[float64]{Rows: n, Cols: d, Stride: d, Data: append([]float64(nil), x.Data...)}
	k := kernels.Gaussian{Sigma: math.Sqrt(d)} // kernel values are then about 1/e
	forEachAssembledTier(t, func(t *testing.T, tier *ukr.Tier) {
		dev := backendtest.Device(t, "cpu/"+tier.Name)
		b := dev.F64()
		wrap := b.(backend.Wrapper[float64]).Wrap
		byTriangle, byFullGram, byStoredGram, gram := backend.NewHost[float64](n, columns), backend.NewHost[float64](n, columns), backend.NewHost[float64](n, columns), backend.NewHost[float64](n, n)
		X, V := wrap(x), wrap(v)
		// A sync.Pool drops its contents when garbage is collected, and has separate contents for each processor.
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		b.GramMul(wrap(byTriangle), k, X, X, V)
		runtime.ReadMemStats(&after)
		// The bound covers two packed blocks with their norms, the rounding of sizes to huge pages, and the tiles;
		// two packed copies of X would take 58 MB. The race detector makes sync.Pool drop some of its contents.
		if allocated, limit := after.TotalAlloc-before.TotalAlloc, uint64(48<<20); allocated > limit && !underRace {
			t.Errorf("K·V allocated %d bytes, expected at most %d", allocated, limit)
		}
		b.GramMul(wrap(byFullGram), k, X, wrap(copyOfX), V)
		b.Gram(wrap(gram), k, X, X)
		b.Symm(backend.Lower, 1, wrap(gram), V, 0, wrap(byStoredGram))
		if err := b.Sync(); err != nil {
			t.Fatal(err)
		}
		// The bound allows for n roundings of a sum of terms k·v with k ≤ 1, and for 2d roundings of each distance.
		for i := range n {
			for j := range columns {
				bound := 0.0
				for p := range n {
					bound += math.Abs(v.Row(p)[j])
				}
				bound *= (n + 4*d) * 0x1p-53
				if h, a, s := byTriangle.Row(i)[j], byFullGram.Row(i)[j], byStoredGram.Row(i)[j]; math.Abs(h-a) > bound || math.Abs(h-s) > bound {
					t.Fatalf("row %d, column %d: %v by the triangle, %v by all of K, %v by stored K; bound %g", i, j, h, a, s, bound)
				}
			}
		}
	})
}

// TestGramPastCaches requires the same bits with a third-level cache smaller than the matrix, so that non-temporal
// stores are used, and with a larger one, even for points that are equal or near each other.
func TestGramPastCaches(t *testing.T) {
	const seed, n, m, d = 31, 520, 512, directDistance + 4
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	x, z := backend.NewHost[float64](n, d), backend.NewHost[float64](m, d)
	for _, h := range []backend.Host[float64]{x, z} {
		for i := range h.Data {
			h.Data[i] = rng.NormFloat64()
		}
	}
	copy(z.Row(300), x.Row(200))
	z.Row(301)[3] += 1e-9
	copy(z.Row(400), x.Row(0))
	k := kernels.Gaussian{Sigma: math.Sqrt(d)}
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		gram := func(l3 int) (cross, triangle backend.Host[float64]) {
			dev, err := openWith(tier.Name, backend.Config{}, cacheSizes{L3: l3})
			if err != nil {
				t.Fatal(err)
			}
			defer dev.Close()
			b := dev.F64()
			results := [2]backend.Host[float64]{}
			for i, rows := range []backend.Host[float64]{x, z} {
				points, others := b.(backend.Wrapper[float64]).Wrap(rows), b.(backend.Wrapper[float64]).Wrap(z)
				out, err := b.New(rows.Rows, m)
				if err != nil {
					t.Fatal(err)
				}
				if i == 1 {
					others = points
				}
				if streams := b.(*queue[float64]).streams(out.(*matrix[float64])); streams != (l3 < n*m*8) {
					t.Fatalf("with a cache of %d bytes: non-temporal stores: %v", l3, streams)
				}
				b.Gram(out, k, points, others)
				results[i] = backend.NewHost[float64](rows.Rows, m)
				if err := b.Download(results[i], out); err != nil {
					t.Fatal(err)
				}
				out.Free()
			}
			return results[0], results[1]
		}
		cross, triangle := gram(64 << 20)
		pastCross, pastTriangle := gram(1 << 20)
		for i := range n {
			for j := range m {
				if cross.Row(i)[j] != pastCross.Row(i)[j] || i < m && triangle.Row(i)[j] != pastTriangle.Row(i)[j] {
					t.Fatalf("element %d, %d differs", i, j)
				}
			}
		}
		if cross.Row(200)[300] != 1 || cross.Row(0)[400] != 1 {
			t.Errorf("equal points: %v and %v, want 1", cross.Row(200)[300], cross.Row(0)[400])
		}
	})
}

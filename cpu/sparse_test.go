package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/kernels"
)

// TestGramOfPointsWithZeros compares Gram matrices of points with many zeros, and their products with V, with the
// definition. Some features are always or never 0, some points are equal, and some features are NaN or Inf.
func TestGramOfPointsWithZeros(t *testing.T) {
	const seed, n, d, width = 53, 391, 70, 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	x, v := backend.NewHost[float64](n, d), backend.NewHost[float64](n, width)
	for i := range n {
		for j := range d {
			switch {
			case j%10 == 0:
				x.Row(i)[j] = 100 + rng.NormFloat64()
			case j%10 < 8 && rng.IntN(6) == 0:
				x.Row(i)[j] = rng.NormFloat64()
			}
		}
		for j := range width {
			v.Row(i)[j] = rng.NormFloat64()
		}
	}
	copy(x.Row(300), x.Row(7))
	clone := func() backend.Host[float64] {
		return backend.Host[float64]{Rows: n, Cols: d, Stride: d, Data: append([]float64(nil), x.Data...)}
	}
	finiteX, nonfiniteX := clone(), clone()
	nonfiniteX.Row(20)[9], nonfiniteX.Row(381)[1], nonfiniteX.Row(390)[69] = math.NaN(), math.Inf(1), math.Inf(-1)
	list := []kernels.Kernel{kernels.Gaussian{Sigma: 4}, kernels.Matern{Sigma: 4, Nu: 1.5}}
	value := func(k kernels.Kernel, a, b []float64) float64 { // computes ‖a−b‖² from the differences
		sq := 0.0
		for j := range a {
			sq += (a[j] - b[j]) * (a[j] - b[j])
		}
		m, ok := k.(kernels.Matern)
		switch s := math.Sqrt(3*sq) / m.Sigma; {
		case !ok:
			return math.Exp(-sq / 32)
		case math.IsInf(s, 1):
			return 0
		default:
			return (1 + s) * math.Exp(-s)
		}
	}
	forEachTier(t, func(t *testing.T, tier *ukr.Tier) {
		dev := backendtest.Device(t, "cpu/"+tier.Name)
		q := dev.F64().(*queue[float64])
		g := q.newGram(list[0], q.Wrap(x).(*matrix[float64]), q.Wrap(x).(*matrix[float64]))
		if !g.packs[0].sparse || g.packs[0].center[0] == 0 || g.packs[0].center[1] != 0 {
			t.Fatalf("zeros omitted: %v, center %v", g.packs[0].sparse, g.packs[0].center)
		}
		tm, _ := g.tileSize()
		if square := (&gramMul[float64]{gram: g}).squareSize(); tm%ukr.SparseRows != 0 || square%ukr.SparseRows != 0 || g.size%ukr.SparseRows != 0 {
			t.Fatalf("%d and %d rows of tiles, %d of blocks: no multiples of %d", tm, square, g.size, ukr.SparseRows)
		}
		for _, k := range list {
			for _, points := range []backend.Host[float64]{finiteX, nonfiniteX} {
				gram, product, symmetric := backend.NewHost[float64](n, n), backend.NewHost[float64](n, width), backend.NewHost[float64](n, width)
				X, Z := q.Wrap(points), q.Wrap(x)
				q.Gram(q.Wrap(gram), k, X, Z)
				q.GramMul(q.Wrap(product), k, X, Z, q.Wrap(v))
				q.GramMul(q.Wrap(symmetric), k, Z, Z, q.Wrap(v))
				if err := q.Sync(); err != nil {
					t.Fatal(err)
				}
				// The squared distance has 2d roundings of numbers up to the squared norms, about 3d. The
				// derivative of each kernel with respect to the squared distance is below 1/16.
				const bound = (2*d + 20) * 0x1p-53 * 3 * d
				for i := range n {
					sums, sizes := [width]float64{}, 0.0
					for j := range n {
						want := value(k, points.Row(i), x.Row(j))
						got := gram.Row(i)[j]
						if math.IsNaN(want) != math.IsNaN(got) || math.Abs(got-want) > bound || i == 300 && j == 7 && got != 1 {
							t.Fatalf("%v: element %d, %d is %v, want %v", k, i, j, got, want)
						}
						for c, w := range v.Row(j) {
							sums[c] += want * w
							sizes = max(sizes, math.Abs(w))
						}
					}
					for c, want := range sums {
						limit := n * sizes * (bound + n*0x1p-53)
						got := product.Row(i)[c]
						if math.IsNaN(want) != math.IsNaN(got) || math.Abs(got-want) > limit {
							t.Fatalf("%v: product %d, %d is %v, want %v", k, i, c, got, want)
						}
						if &points.Data[0] == &finiteX.Data[0] && math.Abs(symmetric.Row(i)[c]-want) > limit {
							t.Fatalf("%v: symmetric product %d, %d is %v, want %v", k, i, c, symmetric.Row(i)[c], want)
						}
					}
				}
			}
		}
	})
}

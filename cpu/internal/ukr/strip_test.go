package ukr

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestStrips compares Strip and StripBoth with their definitions, exactly, for
// every length around the unrolled loop.
func TestStrips(t *testing.T) {
	usable(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testStrips(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testStrips(t, tier.F32) })
	})
}

func testStrips[T Float](t *testing.T, k Kernels[T]) {
	const seed = 41
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	rows, w := k.StripRows, k.NR/2
	for n := range 14 {
		ldz := n + rng.IntN(3)
		z, v, sum := integers[T](rng, rows*ldz+1), integers[T](rng, n*w+1), integers[T](rng, n*w+1)
		x, y := integers[T](rng, rows*w), integers[T](rng, rows*w)
		v[n*w], z[rows*ldz] = T(math.NaN()), T(math.NaN()) // what lies behind is not read
		wantY, wantSum := slices.Clone(y), slices.Clone(sum)
		for r := range rows {
			for i := range n {
				for c := range w {
					wantY[r*w+c] += z[r*ldz+i] * v[i*w+c]
					wantSum[i*w+c] += z[r*ldz+i] * x[r*w+c]
				}
			}
		}
		for _, both := range []bool{false, true} {
			gotY, gotSum, f, want := slices.Clone(y), slices.Clone(sum), k.Strip, sum
			if both {
				f, want = k.StripBoth, wantSum
			}
			f(&Strip[T]{Z: first(z), V: first(v), Sum: first(gotSum), X: first(x), Y: first(gotY), N: n, Ldz: ldz})
			if !slices.Equal(gotY, wantY) || !slices.Equal(gotSum, want) {
				t.Fatalf("n=%d, both %v: %v and %v, want %v and %v", n, both, gotY, gotSum, wantY, want)
			}
		}
	}
}

package ukr

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestStrips compares the functions on strips exactly with their definitions, for lengths around
// PanelTerms and around the length of the unrolled loop.
func TestStrips(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		for _, k := range tier.F64.GemvPanels {
			t.Run(fmt.Sprintf("float64/width=%d", k.Width), func(t *testing.T) { testStrips(t, k) })
		}
		for _, k := range tier.F32.GemvPanels {
			t.Run(fmt.Sprintf("float32/width=%d", k.Width), func(t *testing.T) { testStrips(t, k) })
		}
	})
}

func testStrips[T Float](t *testing.T, k GemvPanels[T]) {
	const seed = 41
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	rows, w := k.Rows, k.Width
	for n := range 2*PanelTerms + 6 {
		ldz := n + rng.IntN(3)
		z, v, sum := integers[T](rng, rows*ldz+1), integers[T](rng, n*w+1), integers[T](rng, n*w+1)
		x, y := integers[T](rng, rows*w), integers[T](rng, rows*w)
		v[n*w], z[rows*ldz] = T(math.NaN()), T(math.NaN()) // the functions must not read past the end
		wantY, wantSum := slices.Clone(y), slices.Clone(sum)
		for r := range rows {
			for i := range n {
				for c := range w {
					wantY[r*w+c] += z[r*ldz+i] * v[i*w+c]
					wantSum[i*w+c] += z[r*ldz+i] * x[r*w+c]
				}
			}
		}
		for _, pair := range []bool{false, true} {
			gotY, gotSum, f, want := slices.Clone(y), slices.Clone(sum), k.Apply, sum
			if pair {
				f, want = k.ApplyPair, wantSum
			}
			f(&GemvPanel[T]{Z: first(z), V: first(v), Sum: first(gotSum), X: first(x), Y: first(gotY), N: n, Ldz: ldz})
			if !slices.Equal(gotY, wantY) || !slices.Equal(gotSum, want) {
				t.Fatalf("n=%d, both %v: %v and %v, want %v and %v", n, pair, gotY, gotSum, wantY, want)
			}
		}
	}
}

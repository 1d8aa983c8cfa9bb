package ukr

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestSparse compares Sparse exactly with the product over all columns, and checks that it writes only to C.
func TestSparse(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testSparse(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testSparse(t, tier.F32) })
	})
}

func testSparse[T Float](t *testing.T, k Kernels[T]) {
	const seed, depth, margin, sentinel = 47, 9, 3, 12345
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for panels := range 6 {
		for m := 1; m <= SparseRows; m++ {
			ldb, ldc := depth*k.NR+rng.IntN(5), panels*k.NR+margin
			b := integers[T](rng, panels*ldb+1)
			full, a, offsets := make([]T, SparseRows*depth), []T{0}[:0], []int32{0}[:0]
			for p := range depth {
				if rng.IntN(2) == 0 {
					continue
				}
				column := integers[T](rng, SparseRows)
				copy(full[p*SparseRows:], column)
				a, offsets = append(a, column...), append(offsets, int32(p*k.NR))
			}
			c := slices.Repeat([]T{sentinel}, SparseRows*ldc+1)
			want := slices.Clone(c)
			for r := range m {
				for j := range panels * k.NR {
					want[r*ldc+j] = 0
					for p := range depth {
						want[r*ldc+j] += full[p*SparseRows+r] * b[j/k.NR*ldb+p*k.NR+j%k.NR]
					}
				}
			}
			k.Sparse(&Sparse[T]{A: first(a), B: &b[0], C: &c[0], K: len(offsets), M: m, N: panels, Ldc: ldc, Ldb: ldb, At: &offsets[:1][0]})
			if !slices.Equal(c, want) {
				t.Fatalf("%d rows, %d panels, columns %v: %v, want %v", m, panels, offsets, c, want)
			}
		}
	}
}

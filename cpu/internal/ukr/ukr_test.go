package ukr

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"
)

// forEachUsableTier calls f for each tier that this machine can run.
func forEachUsableTier(t *testing.T, f func(t *testing.T, tier *Tier)) {
	for _, tier := range Tiers() {
		if tier.Missing() == "" {
			t.Run(tier.Name, func(t *testing.T) { f(t, tier) })
		}
	}
}

// TestTiles compares every micro-kernel exactly with the definition, on small integers: for all m up to two
// panels, all n ≤ NR, all k around the unrolled loop, padded and negative strides, and several α and β.
func TestTiles(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testTiles(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testTiles(t, tier.F32) })
	})
}

func testTiles[T Float](t *testing.T, k Kernels[T]) {
	const seed = 7
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, c := range []struct {
		name   string
		kernel func(*Tile[T])
		term   func(a, b T) T
	}{
		{"gemm", k.Gemm, func(a, b T) T { return a * b }},
		{"sqDist", k.SqDist, func(a, b T) T { return (a - b) * (a - b) }},
		{"l1", k.L1, func(a, b T) T { return max(a-b, b-a) }},
	} {
		for m := 1; m <= 2*k.MR; m++ {
			for n := 1; n <= k.NR; n++ {
				depth := []int{0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 33}[rng.IntN(11)]
				alpha := []T{1, -1, 2, 0}[rng.IntN(4)]
				beta := []T{0, 1, -1, 3}[rng.IntN(4)]
				checkTile(t, k, c.name, c.kernel, c.term, rng, m, n, depth, alpha, beta, rng.IntN(2) == 0)
				if t.Failed() {
					return
				}
			}
		}
	}
}

func integers[T Float](rng *rand.Rand, n int) []T {
	x := make([]T, n)
	for i := range x {
		x[i] = T(rng.IntN(17) - 8)
	}
	return x
}

// first returns the address of the first element of a slice, which may be empty.
func first[T Float](x []T) *T {
	return unsafe.SliceData(x)
}

func checkTile[T Float](t *testing.T, k Kernels[T], name string, kernel func(*Tile[T]), term func(a, b T) T, rng *rand.Rand, m, n, depth int, alpha, beta T, reverse bool) {
	t.Helper()
	panels := (m + k.MR - 1) / k.MR
	lda := k.MR*depth + rng.IntN(3)
	a := integers[T](rng, panels*lda+1)
	b := integers[T](rng, depth*k.NR+1)
	ldc := n + rng.IntN(5)
	const margin, sentinel = 9, 12345
	initial := make([]T, 2*margin+m*ldc)
	for i := range initial {
		initial[i] = sentinel
	}
	row := func(i int) int {
		if reverse {
			i = m - 1 - i
		}
		return margin + i*ldc
	}
	nan := T(0)
	nan /= nan
	for i := range m {
		for j := range n {
			initial[row(i)+j] = T(rng.IntN(17) - 8)
			if beta == 0 {
				initial[row(i)+j] = nan
			}
		}
	}
	got := slices.Clone(initial)
	tile := &Tile[T]{A: first(a), B: first(b), C: &got[row(0)], K: depth, M: m, N: n, Ldc: ldc, Lda: lda, Alpha: alpha, Beta: beta}
	if reverse {
		tile.Ldc = -ldc
	}
	kernel(tile)
	want := slices.Clone(initial)
	for i := range m {
		for j := range n {
			var sum T
			for p := range depth {
				sum += term(a[i/k.MR*lda+p*k.MR+i%k.MR], b[p*k.NR+j])
			}
			sum *= alpha
			if beta != 0 {
				sum += beta * initial[row(i)+j]
			}
			want[row(i)+j] = sum
		}
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s: m=%d n=%d k=%d alpha=%v beta=%v ldc=%d: C[%d] is %v, want %v", name, m, n, depth, alpha, beta, tile.Ldc, i-margin, got[i], want[i])
			return
		}
	}
}

// TestTrsm solves with triangles of integers and powers of two on the diagonal, so that solutions are exact.
func TestTrsm(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testTrsm(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testTrsm(t, tier.F32) })
	})
}

func testTrsm[T Float](t *testing.T, k Kernels[T]) {
	const seed = 11
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for depth := range 3*k.MR + 1 {
		a := make([]T, (depth+k.MR)*k.MR)
		for i := range a {
			a[i] = T(rng.IntN(3) - 1)
		}
		for p := range k.MR {
			a[(depth+p)*k.MR+p] = 0.5 // the inverse of the diagonal element 2
		}
		b := make([]T, (depth+k.MR)*k.NR)
		x := make([]T, len(b))
		for i := range x {
			x[i] = T(rng.IntN(5) - 2)
		}
		copy(b, x[:depth*k.NR])
		for i := range k.MR {
			for j := range k.NR {
				sum := 2 * x[(depth+i)*k.NR+j]
				for p := range depth + i {
					sum += a[p*k.MR+i] * x[p*k.NR+j]
				}
				b[(depth+i)*k.NR+j] = sum
			}
		}
		k.Trsm(&Tile[T]{A: first(a), B: first(b), K: depth})
		if !slices.Equal(b, x) {
			t.Fatalf("k=%d: wrong solution", depth)
		}
	}
}

// TestTileLayout tests the offsets that tools/asmgen uses.
func TestTileLayout(t *testing.T) {
	check := func(precision string, beta, want uintptr) {
		if beta != want {
			t.Errorf("%s: Beta is at offset %d, the assembly reads %d", precision, beta, want)
		}
	}
	var d Tile[float64]
	var f Tile[float32]
	check("float64", unsafe.Offsetof(d.Beta), 72)
	check("float32", unsafe.Offsetof(f.Beta), 68)
	var sd Span[float64]
	var sf Span[float32]
	if unsafe.Offsetof(sd.Z) != 56 || unsafe.Sizeof(uintptr(0)) == 8 && unsafe.Offsetof(sf.Z) != 48 || unsafe.Offsetof(sd.C) != 48 || unsafe.Offsetof(sf.C) != 40 || unsafe.Sizeof(uintptr(0)) == 8 && unsafe.Offsetof(sd.A) != 32 {
		t.Errorf("Span: A, C are at offsets %d, %d (float64), C at %d (float32)", unsafe.Offsetof(sd.A), unsafe.Offsetof(sd.C), unsafe.Offsetof(sf.C))
	}
	var rd Rows[float64]
	if unsafe.Sizeof(uintptr(0)) == 8 && (unsafe.Offsetof(rd.N) != 24 || unsafe.Offsetof(rd.Ldz) != 32 || unsafe.Offsetof(rd.A) != 40) {
		t.Errorf("Rows: N, Ldz, A are at offsets %d, %d, %d", unsafe.Offsetof(rd.N), unsafe.Offsetof(rd.Ldz), unsafe.Offsetof(rd.A))
	}
	for i, got := range []uintptr{
		unsafe.Offsetof(d.A), unsafe.Offsetof(d.B), unsafe.Offsetof(d.C), unsafe.Offsetof(d.K), unsafe.Offsetof(d.M),
		unsafe.Offsetof(d.N), unsafe.Offsetof(d.Ldc), unsafe.Offsetof(d.Lda), unsafe.Offsetof(d.Alpha),
	} {
		if want := uintptr(8 * i); unsafe.Sizeof(uintptr(0)) == 8 && got != want {
			t.Errorf("field %d is at offset %d, the assembly reads %d", i, got, want)
		}
	}
}

// TestTierInvariants checks the properties of tiers on which package cpu relies.
func TestTierInvariants(t *testing.T) {
	tiers := Tiers()
	if last := tiers[len(tiers)-1]; last.Name != "generic" || last.Missing() != "" {
		t.Errorf("the last tier must be the generic one, and usable: %s lacks %q", last.Name, last.Missing())
	}
	seen := map[string]bool{}
	for _, tier := range tiers {
		if seen[tier.Name] {
			t.Errorf("two tiers are called %s", tier.Name)
		}
		seen[tier.Name] = true
		if err := checkComplete(tier.F32); err != nil {
			t.Errorf("%s: float32: %v", tier.Name, err)
		}
		if err := checkComplete(tier.F64); err != nil {
			t.Errorf("%s: float64: %v", tier.Name, err)
		}
	}
}

func checkComplete[T Float](k Kernels[T]) error {
	if k.MR < 1 || k.NR < 1 || k.Gemm == nil || k.SqDist == nil || k.L1 == nil || k.Trsm == nil {
		return fmt.Errorf("an empty slot: %+v", k)
	}
	return nil
}

// TestChi2 compares Chi2 exactly with its definition for the numbers 0, 2 and 6, whose terms are integers.
func TestChi2(t *testing.T) {
	forEachUsableTier(t, func(t *testing.T, tier *Tier) {
		t.Run("float64", func(t *testing.T) { testChi2(t, tier.F64) })
		t.Run("float32", func(t *testing.T) { testChi2(t, tier.F32) })
	})
}

func testChi2[T Float](t *testing.T, k Kernels[T]) {
	const seed = 43
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for depth := range 10 {
		a, b, c := make([]T, k.MR*depth+1), make([]T, k.NR*depth+1), make([]T, k.MR*k.NR)
		for _, x := range [][]T{a, b} {
			for i := range x {
				x[i] = []T{0, 2, 6}[rng.IntN(3)]
			}
		}
		k.Chi2(&Tile[T]{A: first(a), B: first(b), C: first(c), K: depth, M: k.MR, N: k.NR, Ldc: k.NR, Lda: k.MR * depth, Alpha: 1})
		for i := range k.MR {
			for j := range k.NR {
				var want T
				for p := range depth {
					if x, z := a[p*k.MR+i], b[p*k.NR+j]; x != z {
						want += (x - z) * (x - z) / (x + z)
					}
				}
				if got := c[i*k.NR+j]; got != want {
					t.Fatalf("depth %d: element %d, %d is %v, want %v", depth, i, j, got, want)
				}
			}
		}
	}
}

package selection_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/internal/selection"
)

// TestNth checks that Nth returns the value at index k of the sorted list, and partitions the other values.
func TestNth(t *testing.T) {
	const seed = 3
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for n := 1; n < 200; n++ {
		for shape, value := range map[string]func(i int) float64{
			"random": func(int) float64 { return rng.Float64() },
			"few":    func(int) float64 { return float64(rng.IntN(3)) },
			"rising": func(i int) float64 { return float64(i) },
			"organ":  func(i int) float64 { return float64(min(i, n-i)) },
		} {
			a := make([]float64, n)
			for i := range a {
				a[i] = value(i)
			}
			sorted := slices.Sorted(slices.Values(a))
			k := rng.IntN(n)
			if got := selection.Nth(a, k); got != sorted[k] {
				t.Fatalf("%s, n %d: element %d is %v, want %v", shape, n, k, got, sorted[k])
			}
			for i, v := range a {
				if i < k && v > a[k] || i > k && v < a[k] {
					t.Fatalf("%s, n %d: elements %d and %d are in the wrong order", shape, n, i, k)
				}
			}
		}
	}
}

// TestLargest compares Largest with the first elements of a stably sorted list, with many equal keys.
func TestLargest(t *testing.T) {
	t.Log("seed 71")
	r := rand.New(rand.NewPCG(71, 0))
	for range 2000 {
		n := 1 + r.IntN(40)
		keys := make([]float64, n)
		for i := range keys {
			keys[i] = float64(r.IntN(1 + r.IntN(2*n)))
		}
		want, list := make([]int, n), r.Perm(n)
		for i := range want {
			want[i] = i
		}
		slices.SortStableFunc(want, func(a, b int) int { return -cmp.Compare(keys[a], keys[b]) })
		k := r.IntN(n + 2)
		got := selection.Largest(list, k, func(i int) float64 { return keys[i] })
		if !slices.Equal(got, want[:min(k, n)]) {
			t.Fatalf("the %d largest of %v: got %v, want %v", k, keys, got, want[:min(k, n)])
		}
	}
}

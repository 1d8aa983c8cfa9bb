package trees_test

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/kernels/objects"
	"github.com/mercer-go/mercer/kernels/trees"
)

// TestPairsOfDifferentProductionsTakeNoMemory compares two trees with different roots above the same 4000 leaves,
// all of different productions. The evaluation must not store the pairs of different leaves.
func TestPairsOfDifferentProductionsTakeNoMemory(t *testing.T) {
	const n = 4000
	tree := func(root string) string {
		var b strings.Builder
		b.WriteString("(" + root)
		for i := range n {
			fmt.Fprintf(&b, " (L%d w)", i)
		}
		return b.String() + ")"
	}
	// Decay is small so that k(a, a), about (1 + Decay)ⁿ, does not overflow.
	k := trees.Subtree{Decay: 0.1, Raw: true}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cross, err := k.Cross(t.Context(), []string{tree("A")}, []string{tree("B")}, objects.Options{Threads: 1})
	runtime.ReadMemStats(&after)
	if err != nil {
		t.Fatal(err)
	}
	// The tolerance allows for n additions.
	if v, want := cross.Row(0)[0], n*k.Decay; math.Abs(v-want) > n*0x1p-53*want {
		t.Errorf("k(a, b) is %v, not %v", v, want)
	}
	allocated, square := after.TotalAlloc-before.TotalAlloc, uint64(8*n*n)
	t.Logf("%d bytes taken, one number per pair of nodes would take %d", allocated, square)
	if allocated > square/4 {
		t.Errorf("%d bytes were taken", allocated)
	}
}

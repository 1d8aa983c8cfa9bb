package backend_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/cpu"
)

// plainBackend is a Backend without its optional abilities.
type plainBackend struct{ backend.Backend[float64] }

// TestPlaceSparseWithoutTheAbility checks that PlaceSparse makes a dense copy, in several uploads, on a backend
// without sparse matrices.
func TestPlaceSparseWithoutTheAbility(t *testing.T) {
	const n, d, perRow = 19, 1 << 20, 30
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	x := backend.CSR[float64]{Rows: n, Cols: d, Indptr: []int{0}}
	for range n {
		for c := range perRow {
			x.Indices, x.Data = append(x.Indices, int32(c*1000+rng.IntN(1000))), append(x.Data, rng.NormFloat64())
		}
		x.Indptr = append(x.Indptr, len(x.Data))
	}
	dev := backendtest.Device(t, "cpu/generic")
	b := plainBackend{dev.F64()}
	initial, _ := dev.InUse()
	m, err := backend.PlaceSparse[float64](b, x)
	if err != nil {
		t.Fatal(err)
	}
	if inUse, _ := dev.InUse(); inUse-initial != backend.SparseBytes[float64](b, n, d, x.NNZ()) {
		t.Errorf("PlaceSparse took %d bytes, SparseBytes is %d", inUse-initial, backend.SparseBytes[float64](b, n, d, x.NNZ()))
	}
	got := backendtest.Download[float64](t, b, m)
	m.Free()
	want := backend.NewHost[float64](n, d)
	x.DenseTo(want)
	for i, v := range got.Data {
		if v != want.Data[i] {
			t.Fatalf("element %d is %v, not %v", i, v, want.Data[i])
		}
	}
	if got := backend.SparseBytes[float64](b, math.MaxInt32, math.MaxInt32, 0); got != math.MaxInt64 {
		t.Errorf("SparseBytes of a matrix without bounds is %d", got)
	}
}

package cuda

import (
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/cudatest"
)

// TestPotrfPreservesTriangle: the triangle that the factor does not take stays to the
// bit, in one leaf of cuSOLVER, whose algorithm changes with the order, and in several.
// Of a GPU the orders are those of production, of the simulated one they are small.
func TestPotrfPreservesTriangle(t *testing.T) {
	need(t)
	const seed = 3
	t.Logf("seed %d", seed)
	dev, err := openAt(cudatest.WithSolver, backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	orders := []int{1000, 12500, 16384, 20000}
	if isSimulated(dev) {
		SmallCuts(t)
		orders = []int{10, 97, 100, 130}
	}
	q, rng := dev.F64().(*queue[float64]), rand.New(rand.NewPCG(seed, 0))
	for _, n := range orders {
		h := backend.NewHost[float64](n, n)
		for i := range n {
			row := h.Row(i)
			for j := range row {
				row[j] = rng.Float64()
			}
			row[i] += float64(n)
		}
		a, err := q.New(n, n)
		if err == nil {
			err = q.Upload(a, h)
		}
		if err == nil {
			err = q.PotrfPreserve(a)
		}
		got := backend.NewHost[float64](n, n)
		if err == nil {
			err = q.Download(got, a)
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range n {
			for j := range i {
				if got.Row(i)[j] != h.Row(i)[j] {
					t.Fatalf("order %d: element %d, %d is %v, and was %v", n, i, j, got.Row(i)[j], h.Row(i)[j])
				}
			}
		}
		a.Free()
	}
}

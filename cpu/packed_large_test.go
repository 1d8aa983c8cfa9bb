package cpu

import (
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// TestPackedOfAnyOrder factors a Gaussian Gram matrix plus I in float32 and packed storage, and compares elements
// of LLᵀ with their definition. MERCER_HALF_ORDER=50000 takes 5 GB and minutes; otherwise the order is small.
func TestPackedOfAnyOrder(t *testing.T) {
	n := 1201
	if text := os.Getenv("MERCER_HALF_ORDER"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1 {
			t.Fatalf("MERCER_HALF_ORDER must be a positive number, is %q", text)
		}
	}
	const d, seed, u = 8, 1, 0x1p-24
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, uint64(n)))
	dev, err := driver{}.Open(bestDevice().tier.Name, backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b := dev.F32().(backend.PackedBackend[float32])
	points := backend.NewHost[float32](n, d)
	for i := range points.Data {
		points.Data[i] = float32(rng.NormFloat64())
	}
	x, err := backend.Place(b, points)
	if err != nil {
		t.Fatal(err)
	}
	a, err := b.NewPacked(n)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Free()
	if inUse, _ := dev.InUse(); inUse != b.PackedBytes(n) {
		t.Errorf("InUse: %d bytes, PackedBytes says %d", inUse, b.PackedBytes(n))
	}
	kernel := kernels.Gaussian{Sigma: 2}
	b.GramPacked(a, kernel, x)
	b.AddDiagPacked([]float32{1}, a)
	if err := b.PotrfPacked(a); err != nil {
		t.Fatal(err)
	}
	if _, peak := dev.InUse(); peak != b.PackedBytes(n) {
		t.Errorf("InUse: peak of %d bytes, PackedBytes says %d", peak, b.PackedBytes(n))
	}

	row := func(i int) []float64 { // row i of the points
		r := make([]float64, d)
		for p, v := range points.Row(i) {
			r[p] = float64(v)
		}
		return r
	}
	factor := func(i int) []float32 { // row i of L
		// DownloadPacked requires a host matrix with exactly the columns of row i.
		h := backend.NewHost[float32](1, i+1)
		if err := b.DownloadPacked(h, a, i); err != nil {
			t.Fatal(err)
		}
		return h.Data
	}
	for range 100 {
		i := rng.IntN(n)
		j := rng.IntN(i + 1)
		if rng.IntN(10) == 0 {
			j = i
		}
		li, lj := factor(i), factor(j)
		var sum, size float64
		for p, v := range lj {
			product := float64(li[p]) * float64(v)
			sum += product
			size += math.Abs(product)
		}
		want := kernels.Eval(kernel, row(i), row(j))
		if i == j {
			want++
		}
		// |LLᵀ − A| ≤ γ_{n+2}|L||Lᵀ| (Higham 2002, theorem 10.3, with one more rounding for a reciprocal). An
		// element of A has d+4 roundings of the exponent, and exp and the addition of 1 add at most 8u.
		bound := float64(n+2)*u/(1-float64(n+2)*u)*size + float64(d+4+8)*u*want
		if !(math.Abs(sum-want) <= bound) {
			t.Fatalf("n=%d: element (%d, %d) of LLᵀ is %v, want %v: bound %.3g", n, i, j, sum, want, bound)
		}
	}
}

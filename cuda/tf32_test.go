package cuda

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/cuda/cudatest"
)

// SmallCuts lets small matrices be cut as large ones are while a test runs.
func SmallCuts(t testing.TB) {
	before, bytes := cuts, panelBytes
	panelBytes = 8 * 24
	cuts.tile, cuts.solve, cuts.columns, cuts.symm, cuts.reduced = 16, 3*block, 16, 2*block, 2*block
	cuts.squares, cuts.solver, cuts.lower, cuts.copied, cuts.few, cuts.thin = 2, 40, 100, 70, 3, 2*block
	t.Cleanup(func() { cuts, panelBytes = before, bytes })
}

// TestReducedPrecisionFactor: a factor in reduced precision differs from A by what the rounding of the products'
// factors makes, and by more than float32 does; its diagonal block does not.
func TestReducedPrecisionFactor(t *testing.T) {
	need(t)
	SmallCuts(t)
	const n, seed = 300, 1
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	low := backend.NewHost[float32](n, n)
	for i := range n {
		for j := range i {
			low.Row(i)[j] = float32(rng.NormFloat64())
		}
		low.Row(i)[i] = float32(10 + rng.Float64())
	}
	a := backend.NewHost[float32](n, n)
	for i := range n {
		for j := range i + 1 {
			sum := 0.0
			for p := range j + 1 {
				sum += float64(low.Row(i)[p]) * float64(low.Row(j)[p])
			}
			a.Row(i)[j] = float32(sum)
		}
	}
	for _, level := range []cudatest.Level{cudatest.DriverOnly, cudatest.WithBlas, cudatest.WithSolver} {
		dev, err := openAt(level, backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if unit := dev.F64().(backend.ReducedBackend[float64]).ReducedUnit(); unit != 0 {
			t.Errorf("float64 has reduced-precision products: %g", unit)
		}
		b := dev.F32().(backend.ReducedBackend[float32])
		want := 0.0
		if p := dev.(*device).props; level >= cudatest.WithBlas && p.reduced() > p.single() {
			want = 0x1p-11
		}
		if unit := b.ReducedUnit(); unit != want {
			t.Fatalf("level %d: ReducedUnit is %g, want %g", level, unit, want)
		}
		h, err := b.NewPacked(n)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.UploadPacked(h, 0, a); err != nil {
			t.Fatal(err)
		}
		if err := b.PotrfPackedReduced(h); err != nil {
			t.Fatal(err)
		}
		l := backend.NewHost[float32](n, n)
		if err := b.DownloadPacked(l, h, 0); err != nil {
			t.Fatal(err)
		}
		// Errors relative to |L||Lᵀ|: each factor of a product is off by the
		// unit, and the sums are in float32.
		worst, first := 0.0, 0.0
		for i := range n {
			for j := range i + 1 {
				sum, size := 0.0, 0.0
				for p := range j + 1 {
					v := float64(l.Row(i)[p]) * float64(l.Row(j)[p])
					sum, size = sum+v, size+math.Abs(v)
				}
				e := math.Abs(sum-float64(a.Row(i)[j])) / size
				worst = max(worst, e)
				if i < cuts.reduced {
					first = max(first, e)
				}
			}
		}
		single := float64(n+2) * 0x1p-24
		if worst > 2*want+0x1p-22+single || first > single {
			t.Errorf("level %d: the error is %g of |L||Lᵀ|, %g in the first block", level, worst, first)
		}
		// A library may round; the simulated one always does.
		if want > 0 && worst < want/64 && isSimulated(dev) {
			t.Errorf("level %d: the error is %g: nothing was rounded to TF32", level, worst)
		}
		h.Free()
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

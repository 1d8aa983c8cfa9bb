package cuda

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda/cudatest"
	"github.com/mercer-go/mercer/cuda/internal/driver"
	"github.com/mercer-go/mercer/internal/precision"
	"github.com/mercer-go/mercer/kernels"
	"github.com/mercer-go/mercer/solvers"
)

// SmallCuts reduces the sizes in cuts during a test, so that small matrices are divided like large ones.
func SmallCuts(t testing.TB) {
	previous, bytes := cuts, panelBytes
	panelBytes = 8 * 24
	cuts.tile, cuts.solve, cuts.columns, cuts.symm, cuts.reduced = 16, 3*block, 16, 2*block, 2*block
	cuts.squares, cuts.side, cuts.minSolver, cuts.maxInPlace, cuts.maxCopied, cuts.fewColumns, cuts.fewOrder = 2, 1, 40, 100, 70, 3, 2*block
	cuts.minHalf, cuts.halfBytes = 16, 0
	t.Cleanup(func() { cuts, panelBytes = previous, bytes })
}

// TestReducedPrecisionFactor checks that the error of a factor in reduced precision is within the bound for
// products whose operands are rounded. If the rows of A have similar norms, products must be in FP16, whatever the
// scale of A. If the norms differ by more than the range of FP16, products must be in TF32.
func TestReducedPrecisionFactor(t *testing.T) {
	Need(t)
	SmallCuts(t)
	for _, c := range []struct {
		name       string
		first, row float64 // row i of L is multiplied by first·row^i
		inFP16     bool
	}{
		{"as it is", 1, 1, true},
		{"as it is, in the memory of the host", 1, 1, true},
		{"small", 0x1p-40, 1, true},
		{"large", 0x1p50, 1, true},
		{"too small", 0x1p-56, 1, false},
		{"large and small rows", 1, 1 - 0x1p-5, true}, // the last row is scaled by 2⁻¹⁴
		{"larger and smaller rows", 1, 1 - 0x1p-4, false},
		{"smaller and larger rows", 0x1p-14, 1 + 0x1p-4, false},
	} {
		t.Run(c.name, func(t *testing.T) { reducedFactor(t, c.first, c.row, c.inFP16, strings.Contains(c.name, "host")) })
	}
}

func reducedFactor(t *testing.T, first, row float64, inFP16, onHost bool) {
	const n, seed = 300, 1
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	low := backend.NewHost[float32](n, n)
	for i := range n {
		size := first * math.Pow(row, float64(i))
		for j := range i {
			low.Row(i)[j] = float32(size * rng.NormFloat64())
		}
		low.Row(i)[i] = float32(size * (10 + rng.Float64()))
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
		if testing.Short() && level == cudatest.WithBlas {
			continue
		}
		dev, err := openAt(level, backend.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if unit := dev.F64().(backend.ReducedBackend[float64]).ReducedUnit(); unit != 0 {
			t.Errorf("float64 has reduced-precision products: %g", unit)
		}
		b := dev.F32().(backend.ReducedBackend[float32])
		calls := map[string]int{}
		if bl := dev.(*device).libraries.Blas; bl != nil {
			call := bl.Call
			bl.Call = func(s *driver.Symbol, args ...uintptr) int32 {
				calls[s.Name]++
				return call(s, args...)
			}
		}
		want := 0.0
		if p := dev.(*device).props; level >= cudatest.WithBlas && p.reducedRate() > p.singleRate() {
			want = 0x1p-11
		}
		if unit := b.ReducedUnit(); unit != want {
			t.Fatalf("level %d: ReducedUnit is %g, want %g", level, unit, want)
		}
		newPacked := b.NewPacked
		if onHost {
			newPacked = b.(backend.HostPackedBackend[float32]).NewHostPacked
		}
		h, err := newPacked(n)
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
		// Errors are relative to |L||Lᵀ|. Each factor of a product has a relative error of at most 2⁻¹¹,
		// and the sums are in float32.
		maxError, block := 0.0, 0.0
		for i := range n {
			for j := range i + 1 {
				sum, size := 0.0, 0.0
				for p := range j + 1 {
					v := float64(l.Row(i)[p]) * float64(l.Row(j)[p])
					sum, size = sum+v, size+math.Abs(v)
				}
				e := math.Abs(sum-float64(a.Row(i)[j])) / size
				maxError = max(maxError, e)
				if i < cuts.reduced {
					block = max(block, e)
				}
			}
		}
		singleBound := float64(n+2) * 0x1p-24
		if maxError > 2*want+0x1p-22+singleBound || block > singleBound {
			t.Errorf("level %d: the error is %g of |L||Lᵀ|, %g in the first block", level, maxError, block)
		}
		// A library is free to use a higher precision; the simulated library always rounds.
		if want > 0 && maxError < want/64 && isSimulated(dev) {
			t.Errorf("level %d: the error is %g: no product was rounded", level, maxError)
		}
		if inHalf, otherCalls := calls["cublasGemmEx"], calls["cublasSgemm_v2"]; want > 0 && (inHalf > 0) != inFP16 || inFP16 && otherCalls > inHalf {
			t.Errorf("level %d: %d products in FP16, %d others", level, inHalf, otherCalls)
		}
		h.Free()
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestMixedWithoutHalf checks that, if a library rejects products in FP16 in the middle of a fit,
// the method "mixed" continues with another factor and reports the change.
func TestMixedWithoutHalf(t *testing.T) {
	Need(t)
	SmallCuts(t)
	dev := backendtest.Device(t, "cuda/0")
	b := dev.(*device).libraries.Blas
	if b == nil {
		t.Skip("there is no cuBLAS")
	}
	call, refused := b.Call, 0
	b.Call = func(s *driver.Symbol, args ...uintptr) int32 {
		if s.Name == "cublasGemmEx" {
			refused++
			return 15 // CUBLAS_STATUS_NOT_SUPPORTED
		}
		return call(s, args...)
	}
	const n = 150
	p := solvers.Problem{Kernel: kernels.Gaussian{Sigma: 1}, X: backend.NewHost[float64](n, 2), Y: backend.NewHost[float64](n, 1), Lambda: 1}
	for i := range n {
		p.X.Row(i)[0], p.X.Row(i)[1], p.Y.Data[i] = math.Sin(float64(i)), math.Cos(float64(i*i)), math.Sin(float64(3*i))
	}
	defer precision.Force(precision.Reduced)()
	r, err := solvers.Solve(t.Context(), dev, p, solvers.Params{Method: solvers.Mixed, Tol: 1e-10})
	if err != nil || !(r.Residual <= 1e-10) || r.Fallback == "" || refused == 0 {
		t.Errorf("%d refused products, %+v, %v", refused, r, err)
	}
	t.Log(r.Fallback)
}

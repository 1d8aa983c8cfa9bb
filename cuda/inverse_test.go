package cuda

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda/internal/driver"
)

// TestSolvesByInverses checks solves with a factor of reduced precision: they are products with the
// inverses of its diagonal blocks, one for a block and one between two, without a solve by cuBLAS; the
// solutions satisfy LX = B and LᵀX = B within the rounding of float32; and a matrix that has changed,
// or for which no memory is free, is solved with as before.
func TestSolvesByInverses(t *testing.T) {
	Need(t)
	SmallCuts(t)
	before := poolMost
	poolMost.all = 0 // pooled memory would replace memory that is refused
	defer func() { poolMost = before }()
	dev := backendtest.Device(t, "cuda/0")
	d := dev.(*device)
	if d.libraries.Blas == nil {
		t.Skip("there is no cuBLAS")
	}
	b := dev.F32().(*queue[float32])
	calls, real := map[string]int{}, d.libraries.Blas.Call
	d.libraries.Blas.Call = func(s *driver.Symbol, args ...uintptr) int32 {
		calls[s.Name]++
		return real(s, args...)
	}
	const seed = 2
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{1, 64, 129, 500} {
		a := backend.NewHost[float32](n, n) // diagonally dominant: the blocks of L have condition numbers below 4
		for i := range n {
			for j := range i {
				a.Row(i)[j] = float32(rng.NormFloat64()) / float32(8*math.Sqrt(float64(n)))
			}
			a.Row(i)[i] = float32(2 + rng.Float64())
		}
		h, err := b.NewPacked(n)
		if err == nil {
			err = b.UploadPacked(h, 0, a)
		}
		if err == nil {
			err = b.PotrfPackedReduced(h)
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.(*packedMatrix[float32]).inverses == nil {
			t.Fatalf("order %d: there are no inverses", n)
		}
		l := backend.NewHost[float32](n, n)
		solved := func(columns int, trans backend.Trans) {
			t.Helper()
			if err := b.DownloadPacked(l, h, 0); err != nil {
				t.Fatal(err)
			}
			right := backendtest.Normal(seed, n, columns)
			rhs, x := backend.NewHost[float32](n, columns), backend.NewHost[float32](n, columns)
			for i, v := range right.Data {
				rhs.Data[i] = float32(v)
			}
			m := hostMatrix(t, b, rhs)
			b.TrsmPacked(trans, h, m)
			if err := b.Download(x, m); err != nil {
				t.Fatal(err)
			}
			m.Free()
			for j := range columns {
				for i := range n {
					sum, size := 0.0, math.Abs(float64(rhs.Row(i)[j]))
					for k := range n {
						v := float64(l.Row(max(i, k))[min(i, k)]) * float64(x.Row(k)[j])
						if (trans == backend.NoTrans) == (k <= i) || k == i {
							sum, size = sum+v, size+math.Abs(v)
						}
					}
					// Each sum has at most n terms, and the inverses err by 4 times as much.
					if diff := math.Abs(sum - float64(rhs.Row(i)[j])); !(diff <= 8*float64(n+2)*0x1p-24*max(size, 1)) {
						t.Fatalf("order %d, %d columns, %v: row %d differs by %g", n, columns, trans, i, diff)
					}
				}
			}
		}
		for _, columns := range []int{1, 3} {
			for _, trans := range []backend.Trans{backend.NoTrans, backend.Transpose} {
				clear(calls)
				solved(columns, trans)
				p, products := h.(*packedMatrix[float32]), 0
				for _, order := range []int{p.n1, p.n2} {
					products += max(2*ceil(order, cuts.thin)-1, 0)
				}
				if p.n2 > 0 {
					products++ // with A₂₁, by a device function if there are few columns
				}
				made := calls["cublasSgemv_v2"] + calls["cublasSgemm_v2"]
				if calls["cublasStrsv_v2"]+calls["cublasStrsm_v2"] > 0 || made > products || made < products-1 {
					t.Errorf("order %d, %d columns: %v, want %d products and no solves", n, columns, calls, products)
				}
			}
		}
		b.AddDiagPacked([]float32{1}, h) // another triangle
		solved(1, backend.NoTrans)
		if h.(*packedMatrix[float32]).inverses != nil {
			t.Errorf("order %d: the inverses are those of another matrix", n)
		}
		if err := b.UploadPacked(h, 0, a); err != nil {
			t.Fatal(err)
		}
		p, refused, api := h.(*packedMatrix[float32]), 0, d.api
		full := *api
		full.Call = func(s *driver.Symbol, args ...uintptr) int32 {
			if s.Name == "cuMemAlloc_v2" && int(args[1]) == 4*cuts.thin*cuts.thin*(ceil(p.n1, cuts.thin)+ceil(p.n2, cuts.thin)) {
				refused++
				return int32(driver.OutOfMemory)
			}
			return api.Call(s, args...)
		}
		d.exec.do(func() { d.api = &full })
		err = b.PotrfPackedReduced(h)
		d.exec.do(func() { d.api = api })
		if err != nil || refused == 0 || p.inverses != nil {
			t.Fatalf("order %d: %d refused allocations, %v", n, refused, err)
		}
		solved(1, backend.Transpose)
		h.Free()
	}
}

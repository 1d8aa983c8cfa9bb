package cuda

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cuda/internal/driver"
)

// TestSolvesByInverses checks that solves with a factor in reduced precision call products only, and that the
// solutions satisfy LX = B and LᵀX = B within the rounding of float32. If the matrix has changed, or if there is no
// memory for inverses, the solves must not use inverses.
func TestSolvesByInverses(t *testing.T) {
	Need(t)
	SmallCuts(t)
	previous := poolLimit
	poolLimit.total = 0 // the pool could satisfy a request without a call of the driver that can fail
	defer func() { poolLimit = previous }()
	dev := backendtest.Device(t, "cuda/0")
	d := dev.(*device)
	if d.libraries.Blas == nil {
		t.Skip("there is no cuBLAS")
	}
	b := dev.F32().(*queue[float32])
	calls, original := map[string]int{}, d.libraries.Blas.Call
	d.libraries.Blas.Call = func(s *driver.Symbol, args ...uintptr) int32 {
		calls[s.Name]++
		return original(s, args...)
	}
	const seed = 2
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, n := range []int{1, 64, 129, 500} {
		a := backend.NewHost[float32](n, n) // D + E, where D is diagonal with elements ≥ 2, and ‖E‖ is about 1/4
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
		checkSolution := func(columns int, trans backend.Trans) {
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
			// The solve with a diagonal block of order m adds at most mu(s + s²)·size to the residual, where u is the
			// unit roundoff, s bounds the norms of |L||L⁻¹| and |L⁻¹||L|, and size bounds the right-hand side
			// (Higham 2002, sections 3.5 and 8.1). The products with other blocks, sums of at most n terms, add at
			// most nu·size. The factor 2 covers terms of second order.
			s := skeel(l)
			const u = 0x1p-24
			for j := range columns {
				residual, size := 0.0, 0.0
				for i := range n {
					sum, sizes := -float64(rhs.Row(i)[j]), math.Abs(float64(rhs.Row(i)[j]))
					for k := range n {
						v := float64(l.Row(max(i, k))[min(i, k)]) * float64(x.Row(k)[j])
						if (trans == backend.NoTrans) == (k <= i) || k == i {
							sum, sizes = sum+v, sizes+math.Abs(v)
						}
					}
					residual, size = max(residual, math.Abs(sum)), max(size, sizes)
				}
				if limit := 2 * u * (float64(n) + float64(min(n, cuts.fewOrder))*(s+s*s)) * size; !(residual <= limit) {
					t.Fatalf("order %d, %d columns, %v: column %d differs by %g, more than %g", n, columns, trans, j, residual, limit)
				}
			}
		}
		for _, columns := range []int{1, 3, invertedColumns} {
			for _, trans := range []backend.Trans{backend.NoTrans, backend.Transpose} {
				clear(calls)
				checkSolution(columns, trans)
				p, products := h.(*packedMatrix[float32]), 0
				for _, order := range []int{p.n1, p.n2} {
					products += max(2*ceil(order, cuts.fewOrder)-1, 0)
				}
				if p.n2 > 0 {
					products++ // the product with A₂₁
				}
				productCalls := calls["cublasSgemv_v2"] + calls["cublasSgemm_v2"]
				if calls["cublasStrsv_v2"]+calls["cublasStrsm_v2"] > 0 || productCalls != products {
					t.Errorf("order %d, %d columns: %v, want %d products and no solves", n, columns, calls, products)
				}
			}
		}
		b.AddDiagPacked([]float32{1}, h.Leading((n+1)/2)) // changes A₁₁, but not A₂₂
		checkSolution(1, backend.NoTrans)
		if h.(*packedMatrix[float32]).inverses != nil {
			t.Errorf("order %d: the inverses are those of another matrix", n)
		}
		if err := b.UploadPacked(h, 0, a); err != nil {
			t.Fatal(err)
		}
		p, refused, api := h.(*packedMatrix[float32]), 0, d.api
		fullDevice := *api
		fullDevice.Call = func(s *driver.Symbol, args ...uintptr) int32 {
			if s.Name == "cuMemAlloc_v2" && int(args[1]) == 4*cuts.fewOrder*cuts.fewOrder*(ceil(p.n1, cuts.fewOrder)+ceil(p.n2, cuts.fewOrder)) {
				refused++
				return int32(driver.OutOfMemory)
			}
			return api.Call(s, args...)
		}
		d.exec.do(func() { d.api = &fullDevice })
		err = b.PotrfPackedReduced(h)
		d.exec.do(func() { d.api = api })
		if err != nil || refused == 0 || p.inverses != nil {
			t.Fatalf("order %d: %d refused allocations, %v", n, refused, err)
		}
		checkSolution(1, backend.Transpose)
		h.Free()
	}
}

// skeel returns the largest row sum or column sum of |B||B⁻¹| and |B⁻¹||B| for the diagonal blocks B of a packed L.
func skeel(l backend.Host[float32]) float64 {
	largest, n1 := 0.0, l.Rows-l.Rows/2
	for first, end := 0, n1; first < l.Rows; first = min(first+cuts.fewOrder, end) {
		if first == n1 {
			end = l.Rows
		}
		m := min(cuts.fewOrder, end-first)
		a, z := mat.NewTriDense(m, mat.Lower, nil), mat.NewTriDense(m, mat.Lower, nil)
		for i := range m {
			for j := range i + 1 {
				a.SetTri(i, j, float64(l.Row(first + i)[first+j]))
			}
		}
		if err := z.InverseTri(a); err != nil {
			return math.NaN()
		}
		size := func(x mat.Matrix) *mat.Dense {
			var d mat.Dense
			d.Apply(func(_, _ int, v float64) float64 { return math.Abs(v) }, x)
			return &d
		}
		for _, pair := range [][2]*mat.Dense{{size(a), size(z)}, {size(z), size(a)}} {
			var product mat.Dense
			product.Mul(pair[0], pair[1])
			largest = max(largest, mat.Norm(&product, 1), mat.Norm(&product, math.Inf(1)))
		}
	}
	return largest
}

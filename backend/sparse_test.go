package backend_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/kernels"
)

// plain has no ability but packed storage.
type plain struct {
	backend.PackedBackend[float64]
}

// unpacked has no ability at all.
type unpacked struct{ backend.Backend[float64] }

// TestSparseOfDenseMethods compares a backend that takes sparse matrices with the same backend
// without the ability, on rows so long that the dense ones go there in several blocks.
func TestSparseOfDenseMethods(t *testing.T) {
	const n, m, d, each, columns = 11, 9, 1 << 20, 30, 2
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	points := func(rows int) backend.CSR[float64] {
		x := backend.CSR[float64]{Rows: rows, Cols: d, Indptr: []int{0}}
		for range rows {
			for c := range each { // half of the columns are common
				at := c * 1000
				if c%2 == 1 {
					at += rng.IntN(1000)
				}
				x.Indices, x.Data = append(x.Indices, int32(at)), append(x.Data, rng.NormFloat64())
			}
			x.Indptr = append(x.Indptr, len(x.Data))
		}
		return x
	}
	dev := backendtest.Device(t, "cpu/generic")
	native, other := backend.SparseOf(dev.F64()), backend.SparseOf[float64](plain{dev.F64().(backend.PackedBackend[float64])})
	x, z := points(n), points(m)
	v, w, tall := backendtest.Normal(seed, m, columns), backendtest.Normal(seed+1, n, columns), backendtest.Normal(seed+2, d, columns)
	k := kernels.Gaussian{Sigma: 5}
	results := func(b backend.SparseBackend[float64]) (list []backend.Host[float64]) {
		sx, err := b.NewSparse(x)
		if err != nil {
			t.Fatal(err)
		}
		defer sx.Free()
		sz, err := b.NewSparse(z)
		if err != nil {
			t.Fatal(err)
		}
		defer sz.Free()
		run := func(rows, cols int, f func(out backend.Matrix[float64]) error) {
			t.Helper()
			out, err := b.New(rows, cols)
			if err != nil {
				t.Fatal(err)
			}
			defer out.Free()
			if err := f(out); err != nil {
				t.Fatal(err)
			}
			list = append(list, backendtest.Download[float64](t, b, out))
		}
		place := func(h backend.Host[float64]) backend.Matrix[float64] { return backendtest.Upload[float64](t, b, h) }
		run(n, m, func(out backend.Matrix[float64]) error { return b.GramSparse(out, k, sx, sz) })
		run(n, n, func(out backend.Matrix[float64]) error { return b.GramSparse(out, k, sx, sx) })
		run(n, columns, func(out backend.Matrix[float64]) error { return b.GramMulSparse(out, k, sx, sz, place(v)) })
		run(n, columns, func(out backend.Matrix[float64]) error {
			return b.GemmSparse(backend.NoTrans, 2, sx, place(tall), 0, out)
		})
		run(d, columns, func(out backend.Matrix[float64]) error {
			return b.GemmSparse(backend.Transpose, 2, sx, place(w), 0, out)
		})
		packed := dev.F64().(backend.PackedBackend[float64])
		a, err := packed.NewPacked(n)
		if err != nil {
			t.Fatal(err)
		}
		defer a.Free()
		low := backend.NewHost[float64](n, n)
		if err := errors.Join(b.GramPackedSparse(a, k, sx), packed.DownloadPacked(low, a, 0)); err != nil {
			t.Fatal(err)
		}
		return append(list, low)
	}
	want := results(native)
	for r, got := range results(other) {
		for i, v := range got.Data {
			// Sums of 60 products up to 5² each, of which the kernel keeps less; the sums of
			// GemmSparse have up to 30 terms of this size.
			if math.Abs(v-want[r].Data[i]) > 2*60*0x1p-53*60*25 {
				t.Fatalf("result %d: element %d is %v, not %v", r, i, v, want[r].Data[i])
			}
		}
	}
	b := backend.SparseOf[float64](unpacked{dev.F64()})
	sx, err := b.NewSparse(x)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.GramPackedSparse(nil, k, sx); !errors.Is(err, backend.ErrNoPacked) {
		t.Errorf("without packed storage: %v", err)
	}
}

package lowrank

import (
	"math"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
)

// TestLowRankIsInverse checks that (FFᵀ + D) P⁻¹r is a multiple of r in both precisions, with and without weights.
// The first column of F gives the eigenvalue n; the other eigenvalues are about 1.
func TestLowRankIsInverse(t *testing.T) {
	backendtest.EachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, n := range []int{40, squareRows + 300} {
			for _, weighted := range []bool{false, true} {
				lowRankIsInverse(t, dev, dev.F64(), n, weighted)
				lowRankIsInverse(t, dev, dev.F32(), n, weighted)
			}
		}
	})
}

func lowRankIsInverse[T backend.Float](t *testing.T, dev backend.Device, b backend.Backend[T], n int, weighted bool) {
	t.Helper()
	const k, columns, seed = 5, 2, 7
	t.Logf("%s, n = %d, weighted %v, seed %d", numeric.PrecisionOf[T](), n, weighted, seed)
	random := backendtest.Normal(seed, n, k+columns)
	f, r := backend.NewHost[T](n, k), backend.NewHost[T](n, columns)
	for i := range n {
		f.Row(i)[0] = 1
		for j := 1; j < k; j++ {
			f.Row(i)[j] = T(random.Row(i)[j] / math.Sqrt(float64(n)))
		}
		for j := range columns {
			r.Row(i)[j] = T(random.Row(i)[k+j])
		}
	}
	d := []float64{1}
	if weighted {
		d = make([]float64, n)
		for i := range d {
			d[i] = 1 / (1 + float64(i%3))
		}
	}
	frame := run.New(t.Context(), dev, nil)
	mem := frame.Mem
	defer mem.FreeAll()
	var m [3]backend.Matrix[T]
	for i, h := range []backend.Host[T]{f, r, r} {
		var err error
		if m[i], err = run.NewMatrix(mem, b, h.Rows, h.Cols); err != nil {
			t.Fatal(err)
		}
		if err := b.Upload(m[i], h); err != nil {
			t.Fatal(err)
		}
	}
	p, err := newPreconditioner(&frame, b, m[0], k, d, 0, columns)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(m[2], m[1]); err != nil {
		t.Fatal(err)
	}
	z := backend.NewHost[T](n, columns)
	if err := b.Download(z, m[2]); err != nil {
		t.Fatal(err)
	}
	// D may be raised by about the rounding error of its trace, which is at most n.
	unit := numeric.UnitOf[T]()
	if p.Raised > 4*unit*float64(n+k) {
		t.Errorf("D is raised by %g", p.Raised)
	}
	for j := range columns {
		var ftz [k]float64
		for i := range n {
			for q := range k {
				ftz[q] += float64(f.Row(i)[q]) * float64(z.Row(i)[j])
			}
		}
		difference, size := 0.0, 0.0
		for i := range n {
			pz := d[i%len(d)] * float64(z.Row(i)[j])
			for q := range k {
				pz += float64(f.Row(i)[q]) * ftz[q]
			}
			difference, size = math.Hypot(difference, pz-float64(r.Row(i)[j])), math.Hypot(size, float64(r.Row(i)[j]))
		}
		// The bound assumes that z has an error of a few times unit·‖z‖, which the product with FFᵀ multiplies by n.
		if bound := 8 * unit * 3 * float64(n); difference > bound*size {
			t.Errorf("(FFᵀ + D) P⁻¹r is off by %.2g of r, bound %.2g", difference/size, bound)
		}
	}
}

package cpu

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/cpu/internal/ukr"
	"github.com/mercer-go/mercer/kernels"
)

// TestColumns checks kernels that use a subset of the columns, for dense and for sparse points. The statistics are
// sums of cosines, of sines and of χ² terms.
func TestColumns(t *testing.T) {
	const seed, n, m, d = 31, 37, 21, 6
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	points := func(rows int) (backend.Host[float64], backend.CSR[float64]) {
		h := backend.NewHost[float64](rows, d)
		s := backend.CSR[float64]{Rows: rows, Cols: d, Indptr: []int{0}}
		for i := range rows {
			for j := range d {
				if rng.IntN(3) == 0 {
					continue
				}
				v := rng.NormFloat64()
				if j == 4 {
					v = math.Abs(v)
				}
				h.Row(i)[j] = v
				s.Indices, s.Data = append(s.Indices, int32(j)), append(s.Data, v)
			}
			s.Indptr = append(s.Indptr, len(s.Data))
		}
		return h, s
	}
	x, sx := points(n)
	z, sz := points(m)
	var list []kernels.Kernel
	for _, text := range []string{
		"columns([0,3],cosine(theta=1.5))", "columns(1-2,cosineseries(l=3))", "columns(2,sinc())", "columns([1,5],sinc())",
		"columns(4,chi2(gamma=0.7))", "0.5*columns([0,2],cosine(theta=0.5))+columns(4,chi2())*columns(1-3,gaussian(sigma=1))",
	} {
		k, err := kernels.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(append(list, k), kernels.Gradient(k)...)
	}
	forEachAssembledTier(t, func(t *testing.T, tier *ukr.Tier) {
		b := backendtest.Device(t, "cpu/"+tier.Name).F64()
		wrap := func(h backend.Host[float64]) backend.Matrix[float64] { return b.(backend.Wrapper[float64]).Wrap(h) }
		sparse := func(s backend.CSR[float64]) backend.Matrix[float64] {
			m, err := backend.PlaceSparse(b, s)
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		X, Z, SX, SZ := wrap(x), wrap(z), sparse(sx), sparse(sz)
		for _, k := range list {
			for kind, pair := range map[string][2]backend.Matrix[float64]{"dense": {X, Z}, "sparse": {SX, SZ}} {
				got := backend.NewHost[float64](n, m)
				out := wrap(got)
				b.Gram(out, k, pair[0], pair[1])
				if err := b.Download(got, out); err != nil {
					t.Fatal(err)
				}
				for i := range n {
					for j := range m {
						// Each sum has at most 3·4 terms ≤ 2π. Each angle is at most 2π·8 and has three roundings. A
						// product of kernels or a derivative has less than 8 times the error of a sum.
						const terms, angle = 12, 2 * math.Pi * 8
						tol := 8 * terms * 2 * math.Pi * (3*angle + terms + 8) * 0x1p-53
						if want := kernels.Eval(k, x.Row(i), z.Row(j)); !(math.Abs(got.Row(i)[j]-want) <= tol) {
							t.Fatalf("%s: %v of points %d and %d is %v, want %v within %g", kind, k, i, j, got.Row(i)[j], want, tol)
						}
					}
				}
			}
		}
	})
}

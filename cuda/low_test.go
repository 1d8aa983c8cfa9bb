package cuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/kernels"
)

// TestFewFeatures: products with kernels that have a function of their own for few
// features, over several tiles of points and with coordinates so large that their
// squares are infinite; and that it is this function.
func TestFewFeatures(t *testing.T) {
	need(t)
	dev, err := backend.Open("cuda/0", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	testFewFeatures(t, dev.F64().(*queue[float64]), 0x1p-53)
	testFewFeatures(t, dev.F32().(*queue[float32]), 0x1p-24)
}

func testFewFeatures[T backend.Float](t *testing.T, q *queue[T], unit float64) {
	const n, m, seed = 40, 530, 5
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, d := range []int{1, 3, 4, 8} {
		for name, k := range map[string]kernels.Kernel{
			"gauss": kernels.Gaussian{Sigma: 1.5}, "laplace": kernels.Laplacian{Sigma: 2}, "matern12": kernels.Matern{Nu: 0.5, Sigma: 1.5},
			"matern32": kernels.Matern{Nu: 1.5, Sigma: 1.5}, "matern52": kernels.Matern{Nu: 2.5, Sigma: 1.5},
			"rational": kernels.RationalQuadratic{A: 1, Sigma: 1.5},
		} {
			x, z, v := backend.NewHost[T](n, d), backend.NewHost[T](m, d), backend.NewHost[T](m, 1)
			for _, h := range []backend.Host[T]{x, z, v} {
				for i := range h.Data {
					h.Data[i] = T(rng.NormFloat64())
				}
			}
			copy(x.Row(7), z.Row(9)) // distance 0
			x.Row(8)[0] = T(math.Sqrt(0x1p1000))
			if sizeOf[T]() == 4 {
				x.Row(8)[0] = 1e30 // its square is ∞
			}
			var held []*matrix[T]
			place := func(h backend.Host[T]) *matrix[T] {
				p, err := q.New(h.Rows, h.Cols)
				if err == nil {
					err = q.Upload(p, h)
				}
				if err != nil {
					t.Fatal(err)
				}
				held = append(held, p.(*matrix[T]))
				return p.(*matrix[T])
			}
			X, Z, V, out := place(x), place(z), place(v), place(backend.NewHost[T](n, 1))
			q.GramMul(out, k, X, Z, V)
			got := backend.NewHost[T](n, 1)
			if err := q.Download(got, out); err != nil {
				t.Fatal(err)
			}
			var function string
			if err := q.wait("test", func() error {
				p, err := q.program(k, X, Z)
				if err == nil {
					function, _, _ = p.mul(d, 1)
				}
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(function, name+"_mul") {
				t.Errorf("%v of %d features is done by %s", k, d, function)
			}
			for i := range n {
				want, size := 0.0, 0.0
				for j := range m {
					a, b := make([]float64, d), make([]float64, d)
					for p := range d {
						a[p], b[p] = float64(x.Row(i)[p]), float64(z.Row(j)[p])
					}
					term := kernels.Eval(k, a, b) * float64(v.Row(j)[0])
					want, size = want+term, size+math.Abs(term)
				}
				// Each kernel value: d + 3 roundings of the distance, which count as often
				// as the exponent is large, 20 at most where values matter, and some of the
				// functions; then a sum of m terms.
				bound := unit * (float64(m+2) + 20*float64(d+8)) * max(size, math.SmallestNonzeroFloat32*float64(m))
				if diff := math.Abs(float64(got.Row(i)[0]) - want); !(diff <= bound) {
					t.Fatalf("%T, %v, %s: element %d is %v, want %v: error %.3g, bound %.3g", unit, k, fmt.Sprint(d), i, got.Row(i)[0], want, diff, bound)
				}
			}
			for _, h := range held {
				h.Free()
			}
		}
	}
}

package cuda

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/kernels"
)

// TestFewFeatures checks kernel products by the specialized functions for a small number of features. There are
// several tiles of points, and the square of one coordinate overflows.
func TestFewFeatures(t *testing.T) {
	Need(t)
	dev := backendtest.Device(t, "cuda/0")
	testFewFeatures(t, dev.F64().(*queue[float64]), 0x1p-53)
	testFewFeatures(t, dev.F32().(*queue[float32]), 0x1p-24)
}

func testFewFeatures[T backend.Float](t *testing.T, q *queue[T], unit float64) {
	const n, m, seed = 40, 530, 5
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, d := range []int{1, 3, 4, 8, 16} {
		for name, k := range map[string]kernels.Kernel{
			"gauss": kernels.Gaussian{Sigma: 1.5}, "laplace": kernels.Laplacian{Sigma: 2}, "matern12": kernels.Matern{Nu: 0.5, Sigma: 1.5},
			"matern32": kernels.Matern{Nu: 1.5, Sigma: 1.5}, "matern52": kernels.Matern{Nu: 2.5, Sigma: 1.5},
			"rational": kernels.RationalQuadratic{A: 1, Sigma: 1.5},
		} {
			if d > fewFeatures(name)[len(fewFeatures(name))-1] {
				continue // only the Gaussian kernel has a function for 16 features
			}
			x, z, v := backend.NewHost[T](n, d), backend.NewHost[T](m, d), backend.NewHost[T](m, 1)
			for _, h := range []backend.Host[T]{x, z, v} {
				for i := range h.Data {
					h.Data[i] = T(rng.NormFloat64())
				}
			}
			copy(x.Row(7), z.Row(9)) // a pair with distance 0
			x.Row(8)[0] = T(math.Sqrt(0x1p1000))
			if sizeOf[T]() == 4 {
				x.Row(8)[0] = 1e30 // the square of this coordinate is ∞
			}
			X, Z, V, out := hostMatrix(t, q, x), hostMatrix(t, q, z), hostMatrix(t, q, v), hostMatrix(t, q, backend.NewHost[T](n, 1))
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
				// The distance has d + 3 rounding errors, which exp multiplies by at most 20 unless the kernel
				// value is negligible. The functions add at most 5 rounding errors, and the sum of m terms adds m.
				bound := unit * (float64(m+2) + 20*float64(d+8)) * max(size, math.SmallestNonzeroFloat32*float64(m))
				if diff := math.Abs(float64(got.Row(i)[0]) - want); !(diff <= bound) {
					t.Fatalf("%T, %v, %s: element %d is %v, want %v: error %.3g, bound %.3g", unit, k, fmt.Sprint(d), i, got.Row(i)[0], want, diff, bound)
				}
			}
			for _, m := range []*matrix[T]{X, Z, V, out} {
				m.Free()
			}
		}
	}
}

// TestSymmetricKernelProduct checks k(X, X) v against package kernels, in one and in several steps of the queue. A
// coordinate that is ∞ must give NaN in exactly the rows that depend on it.
func TestSymmetricKernelProduct(t *testing.T) {
	Need(t)
	SmallCuts(t)
	dev := backendtest.Device(t, "cuda/0")
	d := dev.(*device)
	clock := d.props.clock
	defer func() { d.props.clock = clock }()
	for _, slowdown := range []float64{1, 1e6} {
		if testing.Short() && slowdown == 1 {
			continue
		}
		d.props.clock = clock / slowdown
		testSymmetric(t, dev.F64().(*queue[float64]), 3, 0x1p-53)
		testSymmetric(t, dev.F64().(*queue[float64]), 50, 0x1p-53)
		testSymmetric(t, dev.F32().(*queue[float32]), 17, 0x1p-24)
	}
	for _, name := range []string{"dot_f64", "sqdist_f64", "scaled_f64", "dot_f32", "sqdist_f32", "scaled_f32"} {
		if _, used := d.functions["gram_symv_"+name]; !used {
			t.Errorf("gram_symv_%s was not used", name)
		}
	}
}

func testSymmetric[T backend.Float](t *testing.T, q *queue[T], d int, unit float64) {
	const seed = 6
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	sigmas := make([]float64, d)
	for i := range sigmas {
		sigmas[i] = 1 + float64(d)*rng.Float64()
	}
	for _, n := range []int{1, 64, 65, 200} {
		for _, k := range []kernels.Kernel{
			kernels.Linear{}, kernels.Gaussian{Sigma: float64(d)}, kernels.Gaussian{Sigmas: sigmas},
			kernels.Matern{Nu: 1.5, Sigma: float64(d)}, kernels.RationalQuadratic{A: 1, Sigma: float64(d)},
		} {
			x, v, got := backend.NewHost[T](n, d), backend.NewHost[T](n, 1), backend.NewHost[T](n, 1)
			for _, h := range []backend.Host[T]{x, v} {
				for i := range h.Data {
					h.Data[i] = T(rng.NormFloat64())
				}
			}
			_, linear := k.(kernels.Linear)
			spoiled := n > 100 && !linear
			if spoiled {
				x.Row(70)[0], x.Row(n - 1)[d-1] = T(math.Inf(1)), T(math.Sqrt(0x1p1000)) // the kernel value of these two points and any other point is 0
				v.Data[70] = 2
			}
			X, V, out := hostMatrix(t, q, x), hostMatrix(t, q, v), hostMatrix(t, q, got)
			var work float64
			q.With(context.Background(), func(flops float64) { work += flops }).GramMul(out, k, X, X, V)
			if err := q.Download(got, out); err != nil {
				t.Fatal(err)
			}
			if err := q.Sync(); err != nil {
				t.Fatal(err)
			}
			if want := flop.GramMul(n, n, d, 1); math.Abs(work/want-1) > 1e-12 {
				t.Errorf("the steps do %g operations, want %g", work, want)
			}
			for i := range n {
				want, size := 0.0, 0.0
				for j := range n {
					a, b := make([]float64, d), make([]float64, d)
					for p := range d {
						a[p], b[p] = float64(x.Row(i)[p]), float64(x.Row(j)[p])
					}
					term := kernels.Eval(k, a, b) * float64(v.Row(j)[0])
					want, size = want+term, size+math.Abs(term)
					if linear {
						for p := range d {
							size += math.Abs(a[p] * b[p] * float64(v.Row(j)[0]))
						}
					}
				}
				// The bound is derived in testFewFeatures.
				bound := unit * (float64(n+2) + 20*float64(d+8)) * max(size, math.SmallestNonzeroFloat32*float64(n))
				if diff := math.Abs(float64(got.Row(i)[0]) - want); !(diff <= bound) && !(math.IsNaN(want) && diff != diff) {
					t.Fatalf("%T, %v, n = %d, d = %d: element %d is %v, want %v: error %.3g, bound %.3g", unit, k, n, d, i, got.Row(i)[0], want, diff, bound)
				}
			}
			for _, m := range []*matrix[T]{X, V, out} {
				m.Free()
			}
		}
	}
}

// hostMatrix returns a device matrix with a copy of h.
func hostMatrix[T backend.Float](t *testing.T, q *queue[T], h backend.Host[T]) *matrix[T] {
	p, err := q.New(h.Rows, h.Cols)
	if err == nil {
		err = q.Upload(p, h)
	}
	if err != nil {
		t.Fatal(err)
	}
	return p.(*matrix[T])
}

// TestFormsOfKernelProduct checks k(X, Z) V for each form of the function gram_mul, for one column
// and for several columns, against package kernels.
func TestFormsOfKernelProduct(t *testing.T) {
	Need(t)
	dev := backendtest.Device(t, "cuda/0")
	testForms(t, dev.F64().(*queue[float64]), 0x1p-53)
	testForms(t, dev.F32().(*queue[float32]), 0x1p-24)
}

func testForms[T backend.Float](t *testing.T, q *queue[T], unit float64) {
	const n, m, d, seed = 20, 70, 12, 7
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	sigmas := make([]float64, d)
	for i := range sigmas {
		sigmas[i] = 3 + 3*rng.Float64()
	}
	for _, columns := range []int{1, 3} {
		x, z, v := backend.NewHost[T](n, d), backend.NewHost[T](m, d), backend.NewHost[T](m, columns)
		for _, h := range []backend.Host[T]{x, z, v} {
			for i := range h.Data {
				h.Data[i] = T(rng.Float64()) // no element is negative, so that Σ|xᵢzᵢ| = x·z
			}
		}
		X, Z, V, out := hostMatrix(t, q, x), hostMatrix(t, q, z), hostMatrix(t, q, v), hostMatrix(t, q, backend.NewHost[T](n, columns))
		for _, k := range []kernels.Kernel{kernels.Linear{}, kernels.Gaussian{Sigma: 3}, kernels.Gaussian{Sigmas: sigmas}, kernels.Laplacian{Sigma: 3}, kernels.RationalQuadratic{A: 1, Sigma: 3}} {
			q.GramMul(out, k, X, Z, V)
			got := backend.NewHost[T](n, columns)
			if err := q.Download(got, out); err != nil {
				t.Fatal(err)
			}
			for i := range n {
				for c := range columns {
					want := 0.0
					for j := range m {
						a, b := make([]float64, d), make([]float64, d)
						for p := range d {
							a[p], b[p] = float64(x.Row(i)[p]), float64(z.Row(j)[p])
						}
						want += kernels.Eval(k, a, b) * float64(v.Row(j)[c])
					}
					// The bound is derived in testFewFeatures.
					bound := unit * (float64(m+2) + 20*float64(d+8)) * want
					if diff := math.Abs(float64(got.Row(i)[c]) - want); !(diff <= bound) {
						t.Fatalf("%T, %v: element (%d, %d) is %v, want %v: error %.3g, bound %.3g", unit, k, i, c, got.Row(i)[c], want, diff, bound)
					}
				}
			}
		}
		for _, m := range []*matrix[T]{X, Z, V, out} {
			m.Free()
		}
	}
}

package lowrank

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// powersAfter expands k(x, z) in powers of xᵀz and returns the sum of the terms of degree above q. For a Gaussian
// kernel, it first subtracts the vector median from x and z, and does not expand the factor exp(−(‖x‖² + ‖z‖²)/(2σ²)).
func powersAfter(k kernels.Kernel, q int, x, z, median []float64) float64 {
	switch k := k.(type) {
	case kernels.Scaled:
		return k.Weight * powersAfter(k.Kernel, q, x, z, median)
	case kernels.Gaussian:
		dot, sizes := 0.0, 0.0
		for j := range x {
			sigma := k.Sigma
			if k.Sigmas != nil {
				sigma = k.Sigmas[j]
			}
			u, v := (x[j]-median[j])/sigma, (z[j]-median[j])/sigma
			dot, sizes = dot+u*v, sizes+u*u+v*v
		}
		sum := 0.0
		for p := 80; p > q; p-- {
			gamma, _ := math.Lgamma(float64(p + 1))
			sum += math.Pow(dot, float64(p)) * math.Exp(-gamma)
		}
		return sum * math.Exp(-sizes/2)
	case kernels.Polynomial:
		dot, sum := 0.0, 0.0
		for j := range x {
			dot += x[j] * z[j]
		}
		for p := k.Degree; p > q; p-- {
			binomial := 1.0
			for i := range p {
				binomial *= float64(k.Degree-i) / float64(i+1)
			}
			sum += binomial * math.Pow(k.C, float64(k.Degree-p)) * math.Pow(dot, float64(p))
		}
		return sum
	}
	panic("no series")
}

// TestTaylorFeatures checks that F has the C(d+q, q) monomials of degree at most q, and that K − FFᵀ and the
// returned diagonal are the sums of the terms of higher degree.
func TestTaylorFeatures(t *testing.T) {
	backendtest.EachDevice(t, func(t *testing.T, dev backend.Device) {
		for _, test := range []struct {
			kernel  kernels.Kernel
			d, rank int
			q, want int
		}{
			{kernels.Gaussian{Sigma: 2}, 3, 1, 0, 1},
			{kernels.Gaussian{Sigma: 2}, 3, 9, 1, 4},
			{kernels.Gaussian{Sigma: 2}, 3, 35, 4, 35},
			{kernels.Gaussian{Sigma: 1.5}, 1, 12, 11, 12},
			{kernels.Gaussian{Sigmas: []float64{1, 3, 0.7, 5}}, 4, 20, 2, 15},
			{kernels.Scaled{Weight: 2.5, Kernel: kernels.Gaussian{Sigma: 3}}, 5, 56, 3, 56},
			{kernels.Polynomial{Degree: 3, C: 0.5}, 4, 34, 2, 15},
			{kernels.Polynomial{Degree: 3, C: 0.5}, 4, 40, 3, 35},
			{kernels.Scaled{Weight: 0.1, Kernel: kernels.Polynomial{Degree: 2, C: 3}}, 2, 3, 1, 3},
		} {
			t.Run(fmt.Sprintf("%v, %d", test.kernel, test.rank), func(t *testing.T) {
				taylorFeaturesAre(t, dev, dev.F64(), test.kernel, test.d, test.rank, test.q, test.want)
				taylorFeaturesAre(t, dev, dev.F32(), test.kernel, test.d, test.rank, test.q, test.want)
			})
		}
	})
}

func taylorFeaturesAre[T backend.Float](t *testing.T, dev backend.Device, b backend.Backend[T], k kernels.Kernel, d, rank, q, want int) {
	t.Helper()
	const n, seed = 23, 12
	x := backendtest.Normal(seed, n, d)
	host, median := backend.NewHost[T](n, d), make([]float64, d)
	for i := range n {
		for j := range d {
			x.Row(i)[j] = float64(T(x.Row(i)[j] + 1))
			host.Row(i)[j] = T(x.Row(i)[j])
		}
	}
	for j := range d {
		column := make([]float64, n) // n is odd
		for i := range n {
			column[i] = x.Row(i)[j]
		}
		slices.Sort(column)
		median[j] = column[n/2]
	}
	mem := run.NewArena(dev, dev.F64())
	defer mem.FreeAll()
	onDevice, err := run.NewMatrix(mem, b, n, d)
	if err != nil {
		t.Fatal(err)
	}
	f, err := run.NewMatrix(mem, b, n, rank)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Upload(onDevice, host); err != nil {
		t.Fatal(err)
	}
	a, err := taylorFeatures(Task[T]{Ctx: t.Context(), B: b, Mem: mem, Kernel: k, X: onDevice}, f)
	if err != nil {
		t.Fatal(err)
	}
	if a.rank != want {
		t.Fatalf("%s: rank %d, want %d", numeric.PrecisionOf[T](), a.rank, want)
	}
	got := backend.NewHost[T](n, rank)
	if err := b.Download(got, f); err != nil {
		t.Fatal(err)
	}
	trace, traces := 0.0, 0.0
	for i := range n {
		for j := range n {
			sum, size := 0.0, 0.0
			for c := range a.rank {
				product := float64(got.Row(i)[c]) * float64(got.Row(j)[c])
				sum, size = sum+product, size+math.Abs(product)
			}
			value, remainder := kernels.Eval(k, x.Row(i), x.Row(j)), powersAfter(k, q, x.Row(i), x.Row(j), median)
			// The bound allows about 3 roundings for each degree, and d+3 roundings of arguments.
			bound := (8*numeric.UnitOf[T]() + numeric.Epsilon*float64(8*(d+q)+100)) * (size + math.Abs(value))
			if !(math.Abs(value-remainder-sum) <= bound) {
				t.Fatalf("%s: (K − FFᵀ) is %g at rows %d and %d, want %g ± %.2g", numeric.PrecisionOf[T](), value-sum, i, j, remainder, bound)
			}
			if i != j {
				continue
			}
			trace, traces = trace+remainder, traces+bound
			if a.diagonal == nil {
				if remainder > bound {
					t.Fatalf("no diagonal, but row %d has %g", i, remainder)
				}
				continue
			}
			if !(math.Abs(a.diagonal[i]-remainder) <= (16*numeric.UnitOf[T]()+numeric.Epsilon*float64(8*(d+q)+100))*value) {
				t.Fatalf("%s: diagonal element %d is %g, want %g", numeric.PrecisionOf[T](), i, a.diagonal[i], remainder)
			}
		}
	}
	if !(math.Abs(a.trace-trace) <= traces) {
		t.Errorf("the trace is %g, want %g", a.trace, trace)
	}
}

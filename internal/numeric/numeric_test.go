package numeric_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/kernels"
)

func random(r *rand.Rand, rows, cols int) backend.Host[float64] {
	h := backend.NewHost[float64](rows, cols)
	for i := range h.Data {
		h.Data[i] = r.NormFloat64()
	}
	return h
}

// gram returns XᵀX on the host.
func gram(x backend.Host[float64]) numeric.Small {
	s := numeric.NewSmall(x.Cols, x.Cols)
	for i := range x.Cols {
		for j := range x.Cols {
			for r := range x.Rows {
				s.Set(i, j, s.At(i, j)+x.Row(r)[i]*x.Row(r)[j])
			}
		}
	}
	return s
}

// TestSmallCholesky compares the solution of a system with the solution by gonum's factor. The tolerance is 100
// rounding errors times the condition number.
func TestSmallCholesky(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 9 {
		x := random(r, n+12, n+1)
		s, b := gram(x), numeric.NewSmall(n+1, 3)
		for i := range b.Data {
			b.Data[i] = r.NormFloat64()
		}
		sym := mat.NewSymDense(n+1, slices.Clone(s.Data))
		var f mat.Cholesky
		if !f.Factorize(sym) {
			t.Fatal("gonum has no factor")
		}
		var want mat.Dense
		if err := f.SolveTo(&want, mat.NewDense(n+1, 3, slices.Clone(b.Data))); err != nil {
			t.Fatal(err)
		}
		if !s.Cholesky() {
			t.Fatalf("order %d: no factor", n+1)
		}
		s.Solve(b)
		tol := 100 * f.Cond() * numeric.Epsilon * mat.Norm(&want, 2)
		if distance := floats.Distance(b.Data, want.RawMatrix().Data, 2); !(distance <= tol) {
			t.Errorf("order %d: the solutions differ by %g, want at most %g", n+1, distance, tol)
		}
	}
	for _, pivot := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		s := numeric.NewSmall(2, 2)
		s.Set(0, 0, 1)
		s.Set(1, 1, pivot)
		if s.Cholesky() {
			t.Errorf("a pivot of %v is accepted", pivot)
		}
	}
}

// TestBasis checks that ZT is orthonormal, with as many columns as Z has independent columns.
func TestBasis(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 1))
	z := random(r, 20, 5)
	for i := range z.Rows {
		z.Row(i)[3] = 2*z.Row(i)[0] - z.Row(i)[1] // a linearly dependent column
		z.Row(i)[4] = 0
	}
	s := gram(z)
	basis := s.Basis(1e-13)
	if basis.Cols != 3 {
		t.Fatalf("%d columns are independent, want 3", basis.Cols)
	}
	q := backend.NewHost[float64](z.Rows, 3)
	for i := range z.Rows {
		for c := range 3 {
			for j, v := range z.Row(i) {
				q.Row(i)[c] += v * basis.At(j, c)
			}
		}
	}
	unit := gram(q)
	for i := range 3 {
		unit.Set(i, i, unit.At(i, i)-1)
	}
	if norm := numeric.Norm(9, func(i int) float64 { return unit.Data[i] }); norm > 1e-12 {
		t.Errorf("‖QᵀQ − I‖ = %g", norm)
	}
}

func TestSizesDoNotOverflow(t *testing.T) {
	const maxInt = math.MaxInt64
	for _, c := range []struct {
		name      string
		got, want int64
	}{
		{"elements", numeric.Elements(3, 5), 15},
		{"elements of 2⁶³", numeric.Elements(1<<31, 1<<32), maxInt},
		{"total", numeric.Total(1, 2, 3), 6},
		{"total of 2⁶³", numeric.Total(maxInt, 1), maxInt},
		{"bytes", numeric.Bytes(5), 40},
		{"bytes of 2⁶³", numeric.Bytes(1 << 60), maxInt},
		{"bytes in float32", numeric.ElementBytes[float32](1 << 60), 1 << 62},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.name, c.got, c.want)
		}
	}
}

// TestNormOfExtremes checks norms of vectors whose squares are outside the range of float64.
func TestNormOfExtremes(t *testing.T) {
	for _, scale := range []float64{1e-320, 1e-200, 1, 1e200, 1e307} {
		v := []float64{3 * scale, -4 * scale}
		if got := numeric.Norm(2, func(i int) float64 { return v[i] }); math.Abs(got-5*scale) > 2e-3*scale {
			t.Errorf("the norm of %v is %g", v, got)
		}
	}
	if v := numeric.Norm(2, func(i int) float64 { return []float64{1, math.NaN()}[i] }); !math.IsNaN(v) {
		t.Errorf("the norm with a NaN is %v", v)
	}
}

// TestDeviceOperations checks the operations that are composed of several operations of the backend.
func TestDeviceOperations(t *testing.T) {
	for _, name := range backendtest.Devices(t) {
		t.Run(name, func(t *testing.T) {
			dev := backendtest.Device(t, name)
			b, r := dev.F64(), rand.New(rand.NewPCG(3, 1))
			const n = 300 // more than a block of Mirror and of Diagonal
			h := random(r, n, n)
			upload := func() backend.Matrix[float64] {
				m, err := backend.Copy(b, h)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(m.Free)
				return m
			}
			check := func(name string, m backend.Matrix[float64], want func(i, j int) float64) {
				t.Helper()
				got := backend.NewHost[float64](n, n)
				if err := b.Download(got, m); err != nil {
					t.Fatal(err)
				}
				for i := range n {
					for j, v := range got.Row(i) {
						if v != want(i, j) {
							t.Fatalf("%s: element (%d, %d) is %v, want %v", name, i, j, v, want(i, j))
						}
					}
				}
			}
			m := upload()
			d, err := numeric.Diagonal(b, m)
			if err != nil || d[0] != h.Data[0] || d[n-1] != h.Row(n - 1)[n-1] {
				t.Fatalf("diagonal: %v, %v", d, err)
			}
			if err := numeric.Mirror(b, m); err != nil {
				t.Fatal(err)
			}
			check("mirror", m, func(i, j int) float64 { return h.Row(max(i, j))[min(i, j)] })
			m = upload()
			numeric.ClearLower(b, m)
			check("clear", m, func(i, j int) float64 {
				if j <= i {
					return 0
				}
				return h.Row(i)[j]
			})
			scales := make([]float64, n)
			for i := range scales {
				scales[i] = float64(i)
			}
			m = upload()
			if err := numeric.ScaleRows(b, m, m, scales); err != nil {
				t.Fatal(err)
			}
			check("scale", m, func(i, j int) float64 { return float64(i) * h.Row(i)[j] })
			numeric.Zero(b, m)
			check("zero", m, func(_, _ int) float64 { return 0 })
			numeric.Copy(b, m, upload())
			check("copy", m, func(i, j int) float64 { return h.Row(i)[j] })
		})
	}
}

// TestFactorGram checks that L agrees with gonum's factor, and that equal points without a shift give an error.
func TestFactorGram(t *testing.T) {
	dev, err := backend.Open("ref", backend.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	b := dev.F64()
	h := backend.Host[float64]{Rows: 3, Cols: 1, Stride: 1, Data: []float64{0, 1, 1}}
	x, err := backend.Copy(b, h)
	if err != nil {
		t.Fatal(err)
	}
	defer x.Free()
	a, err := b.New(3, 3)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Free()
	k := kernels.Gaussian{Sigma: 1}
	if err := numeric.FactorGram(b, a, k, x, []float64{0}); !errors.Is(err, backend.ErrNotPosDef) {
		t.Errorf("equal points: %v", err)
	}
	if err := numeric.FactorGram(b, a, k, x, []float64{0.5}); err != nil {
		t.Fatal(err)
	}
	scratch, err := b.New(3, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer scratch.Free()
	got, err := numeric.InverseDiagonal(t.Context(), b, a, scratch)
	if err != nil {
		t.Fatal(err)
	}
	e := math.Exp(-0.5)
	var inverse mat.Dense
	if err := inverse.Inverse(mat.NewDense(3, 3, []float64{1.5, e, e, e, 1.5, 1, e, 1, 1.5})); err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if want := inverse.At(i, i); math.Abs(v-want) > 1e-14*want {
			t.Errorf("element %d of the inverse's diagonal is %v, want %v", i, v, want)
		}
	}
}

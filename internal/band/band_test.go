package band_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/band"
	"github.com/mercer-go/mercer/internal/run"
)

// TestSolverIsInverse compares solutions, diagonals of the inverse, traces and determinants with those of gonum,
// for orders near the widths of blocks and panels, and checks that Errs has an error exactly for the λ with
// indefinite A + λI. The tolerance is 100 rounding errors for each row, times the condition number.
func TestSolverIsInverse(t *testing.T) {
	for _, name := range backendtest.Devices(t) {
		for _, inverses := range []bool{false, true} {
			for _, n := range []int{1, 31, 64, 65, 150, 290} {
				dev := backendtest.Device(t, name)
				solverIsInverse(t, dev, n, inverses)
				if inUse, _ := dev.InUse(); inUse != 0 {
					t.Errorf("%d bytes are left on the device", inUse)
				}
			}
		}
	}
}

func solverIsInverse(t *testing.T, dev backend.Device, n int, inverses bool) {
	const columns = 3
	r := rand.New(rand.NewPCG(uint64(n), 7))
	b := dev.F64()
	mem := run.NewArena(dev, b)
	defer mem.FreeAll()
	a, err := mem.New(n, n)
	if err != nil {
		t.Fatal(err)
	}
	// A is ZZᵀ/n, extended by one row and column with the eigenvalue −1.
	z, sym := mat.NewDense(n, n, nil), mat.NewSymDense(n, nil)
	for i := range n {
		for j := range n {
			z.Set(i, j, r.NormFloat64()/math.Sqrt(float64(n)))
		}
	}
	sym.SymOuterK(1, z)
	for i := range n {
		sym.SetSym(i, n-1, 0)
	}
	sym.SetSym(n-1, n-1, -1)
	h := backend.NewHost[float64](n, n)
	for i := range n {
		for j := range n {
			if j <= i {
				h.Row(i)[j] = sym.At(i, j)
			}
		}
	}
	if err := b.Upload(a, h); err != nil {
		t.Fatal(err)
	}
	p := band.Params{Columns: columns, Inverses: inverses, Samples: n, Workers: 2, Queue: func(ctx context.Context) backend.Backend[float64] { return dev.F64().With(ctx, nil) }}
	s, err := band.New(mem, b, a, p)
	if err != nil {
		t.Fatal(err)
	}
	y := backend.NewHost[float64](n, columns)
	for i := range y.Data {
		y.Data[i] = r.NormFloat64()
	}
	rotated, err := s.Rotate(b, y)
	if err != nil {
		t.Fatal(err)
	}
	lambdas := []float64{1.5, 0.5, 3}
	sols, err := s.Solve(t.Context(), b, lambdas, rotated)
	if err != nil {
		t.Fatal(err)
	}
	diagonals := make([][]float64, len(lambdas))
	for i := range diagonals {
		diagonals[i] = make([]float64, n)
	}
	if inverses {
		if err := s.Diagonals(t.Context(), b, s.Transposed(), diagonals); err != nil {
			t.Fatal(err)
		}
	}
	for i, l := range lambdas {
		var f mat.Cholesky
		shifted := mat.NewSymDense(n, nil)
		shifted.CopySym(sym)
		for k := range n {
			shifted.SetSym(k, k, sym.At(k, k)+l)
		}
		if f.Factorize(shifted) != (s.Errs[i] == nil) || s.Errs[i] != nil && !errors.Is(s.Errs[i], backend.ErrNotPosDef) {
			t.Fatalf("n %d, λ %v: %v", n, l, s.Errs[i])
		}
		if s.Errs[i] != nil {
			continue
		}
		var want mat.Dense
		if err := f.SolveTo(&want, y); err != nil {
			t.Fatal(err)
		}
		var inverse mat.SymDense
		if err := f.InverseTo(&inverse); err != nil {
			t.Fatal(err)
		}
		tol := 100 * float64(n) * 0x1p-53 * f.Cond()
		checkNear := func(name string, got, want, size float64) {
			t.Helper()
			if !(math.Abs(got-want) <= tol*size) {
				t.Fatalf("n %d, λ %v: %s is %v, want %v within %.1e", n, l, name, got, want, tol*size)
			}
		}
		size, trace := mat.Norm(&want, 2), 0.0
		for row := range n {
			for c := range columns {
				checkNear("the solution", sols.Row(row)[i*columns+c], want.At(row, c), size)
			}
			if inverses {
				checkNear("the diagonal", diagonals[i][row], inverse.At(row, row), mat.Norm(&inverse, 2))
			}
			trace += inverse.At(row, row)
		}
		if !inverses {
			checkNear("the trace", s.Factors[i].Trace, trace, trace)
		}
		checkNear("the determinant", s.Factors[i].LogDet, f.LogDet(), float64(n))
	}
}

package stream

import (
	"context"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/backend/backendtest"
	_ "github.com/mercer-go/mercer/backend/ref"
	_ "github.com/mercer-go/mercer/cpu"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// sourceOf returns a Source of the rows of x and y, in pieces of the given number of rows.
func sourceOf(x, y backend.Host[float64], weights []float64, rows int) Source {
	return Source{N: x.Rows, D: x.Cols, T: y.Cols, Pass: func(_ context.Context, _ bool, use func(Piece) error) error {
		for i := 0; i < x.Rows; i += rows {
			r := min(rows, x.Rows-i)
			if err := use(Piece{X: x.View(i, 0, r, x.Cols), Y: y.View(i, 0, r, y.Cols), Weights: weights[i : i+r]}); err != nil {
				return err
			}
		}
		return nil
	}}
}

// TestEquationsAreDense compares the solutions for both preconditioners with the solution of dense normal
// equations on the host. If all pieces are stored, the samples must be read only once. The tolerance is 1e-10, the
// bound on the residual, times the condition number of H.
func TestEquationsAreDense(t *testing.T) {
	const n, d, m, columns, lambda = 9000, 3, 7, 2, 0.3 // n fills three pieces
	x, y, centers := backendtest.Normal(1, n, d), backendtest.Normal(2, n, columns), backendtest.Normal(3, m, d)
	weights := make([]float64, n)
	for i := range weights {
		weights[i] = float64(i % 3)
	}
	k := kernels.Gaussian{Sigma: 2}
	h, z := mat.NewDense(m, m, nil), mat.NewDense(m, columns, nil)
	for a := range m {
		for b := range m {
			h.Set(a, b, lambda*kernels.Eval(k, centers.Row(a), centers.Row(b)))
		}
		for i, w := range weights {
			phi := kernels.Eval(k, x.Row(i), centers.Row(a))
			for b := range m {
				h.Set(a, b, h.At(a, b)+w*phi*kernels.Eval(k, x.Row(i), centers.Row(b)))
			}
			for j, v := range y.Row(i) {
				z.Set(a, j, z.At(a, j)+w*phi*v)
			}
		}
	}
	var want mat.Dense
	if err := want.Solve(h, z); err != nil {
		t.Fatal(err)
	}
	tol := 1e-10 * mat.Cond(h, 2) * mat.Norm(&want, 2)
	timed := func(_ string, body func() error) error { return body() }
	for _, name := range backendtest.Devices(t) {
		dev := backendtest.Device(t, name)
		for _, normalEquations := range []bool{true, false} {
			for i, storedPieces := range []Stored{1, 1, 2, AllPieces} {
				rows := []int{n, 13}[min(i, 1)]
				source, reads := sourceOf(x, y, weights, rows), 0
				read := source.Pass
				source.Pass = func(ctx context.Context, keyed bool, use func(Piece) error) error {
					reads++
					return read(ctx, keyed, use)
				}
				b := dev.F64()
				mem := run.NewArena(dev, b)
				c := &Centers{Kernel: k, Points: numeric.DensePoints(centers), Columns: columns}
				w, err := NewEquations(t.Context(), b, mem, source, storedPieces, c, Penalty{Lambda: lambda})
				if err != nil {
					t.Fatal(err)
				}
				var pre *Preconditioner
				if normalEquations {
					pre, err = w.Normal(timed)
				} else {
					sampler, offer := SamplerOfRows(30, d, 1)
					if err := NewFeed(sourceOf(x, y, weights, rows), 20).Each(t.Context(), func(from int, x, _ backend.Host[float64], w []float64) error {
						offer(from, x, w)
						return nil
					}); err != nil {
						t.Fatal(err)
					}
					pre, err = w.Falkon(timed, c, sampler.Sampled(n-n/3))
				}
				if err != nil {
					t.Fatal(err)
				}
				s, err := w.Iterate(pre, 1e-10, 100)
				if err != nil || s.Reason != "" || !(s.Residual <= 1e-10) {
					t.Fatalf("%s: residual %g, %q, %v", name, s.Residual, s.Reason, err)
				}
				wantReads := w.passes
				if storedPieces == AllPieces {
					wantReads = 1
				}
				if reads != wantReads || !normalEquations && w.passes < 3 {
					t.Errorf("%s: %d of %d passes read the samples, with %d pieces stored", name, reads, w.passes, storedPieces)
				}
				if inUse, _ := dev.InUse(); inUse > Bytes(n, m, d, columns, storedPieces)+FalkonBytes(m)+IterationBytes(m, columns)+8*m*(d+columns) {
					t.Errorf("%s: %d bytes are in use, with %d pieces stored", name, inUse, storedPieces)
				}
				if normalEquations != (s.Iters <= 4) {
					t.Errorf("%s, normal equations %v: %d passes", name, normalEquations, s.Iters)
				}
				for i := range m {
					for j, v := range s.Beta.Row(i) {
						if !(math.Abs(v-want.At(i, j)) <= tol) {
							t.Errorf("%s, normal equations %v: element (%d, %d) is %v, want %v", name, normalEquations, i, j, v, want.At(i, j))
						}
					}
				}
				mem.FreeAll()
			}
		}
	}
}

package stream

import (
	"context"
	"errors"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// falkon is the preconditioner of Rudi, Carratino and Rosasco (2017). It approximates the matrix H of the normal
// equations by a sum over a sample Q instead of all n samples:
//
//	P = (n/|Q|) Φ_Qᵀ W_Q Φ_Q + λS = Tᵀ(A Aᵀ)T,  TᵀT = S
//	A Aᵀ = (n/|Q|) T⁻ᵀ Φ_Qᵀ W_Q Φ_Q T⁻¹ + λI
//
// In the paper Q consists of the centers. Here Q is a sample several times as large (StreamParams.sample), which
// for small λ more than halves the number of steps (falkonPasses).
//
// T is the upper triangle of the first M rows of one matrix, and A the lower triangle of its last M rows.
type falkon struct {
	b       backend.Backend[float64]
	t       backend.Matrix[float64] // T, an upper triangle
	a       backend.Matrix[float64] // A, a lower triangle
	storage backend.Matrix[float64] // the matrix that contains t and a
}

// Falkon computes z in the first pass and returns the preconditioner.
func (w *Equations) Falkon(timed Timed, c *Centers, q Sampled) (*Preconditioner, error) {
	if err := timed("gram", func() error { return w.firstPass(nil, nil) }); err != nil {
		return nil, err
	}
	pre := &Preconditioner{}
	err := timed("factor", func() error {
		f, jitter, err := newFalkon(w, c, q)
		pre.Preconditioner, pre.Jitter = f, jitter
		return err
	})
	if err != nil {
		return nil, err
	}
	return pre, nil
}

// FalkonBytes returns the device memory of newFalkon, in bytes.
func FalkonBytes(m int) int64 { return numeric.Bytes(numeric.Elements(m+1, m)) }

// newFalkon computes the preconditioner from the samples q, in pieces of as many rows as those of w. The result jitter
// is the number that was added to the diagonal of S to factor S.
func newFalkon(w *Equations, c *Centers, q Sampled) (f *falkon, jitter float64, err error) {
	if f, jitter, err = beginFalkon(w, c); err != nil {
		return nil, 0, err
	}
	rows, _ := w.phi.Dims()
	storedRows, _ := w.x.Dims()
	for i := 0; i < q.X.Rows; i += rows {
		h := q.X.View(i, 0, min(rows, q.X.Rows-i), w.d)
		phi := w.phi.View(0, 0, h.Rows, w.m)
		first := i % storedRows
		if w.storedPieces == AllPieces {
			first = w.feed.data.N
		}
		x, err := w.placePiece(first, h)
		if err != nil {
			return nil, 0, err
		}
		w.basis.Fill(phi, x)
		w.setMark(first)
		w.b.Trsm(backend.Right, backend.Upper, backend.NoTrans, 1, f.t, phi)
		alpha := 1.0
		if roots := q.roots[i : i+h.Rows]; slices.Min(roots) == slices.Max(roots) {
			alpha = roots[0] * roots[0] // multiply the product by the common weight: scaling the rows would transfer Φ to the host
		} else if err := numeric.ScaleRows(w.b, phi, phi, roots); err != nil {
			return nil, 0, err
		}
		w.b.Syrk(backend.Lower, backend.Transpose, alpha, phi, 1, f.a)
		if err := w.releasePiece(x); err != nil {
			return nil, 0, err
		}
	}
	return f, jitter, f.factor()
}

// FullFalkon is Falkon with all samples as Q. If there is an intercept, A Aᵀ is centered. P is therefore equal to H
// except for the jitter in S. It makes one pass and takes 2nM² operations, twice as many as Normal. Its factors are
// accurate enough for the posterior, because their rounding errors do not grow with the condition number of S. If
// gradient is false, the caller must not call Gradient.
func (w *Equations) FullFalkon(timed Timed, c *Centers, gradient bool) (*Preconditioner, error) {
	pre := &Preconditioner{exact: true}
	var derivatives []kernels.Kernel
	if gradient {
		derivatives = kernels.Gradient(c.Kernel)
		w.traceGradient = make([]float64, len(derivatives))
	}
	w.feed.onFirstPass = func(x []float64, weight float64) {
		points, i := numeric.DensePoints(numeric.Row(x)), 0
		if s := w.feed.data.Sparse; s != nil {
			points, i = numeric.SparsePoints(*s), int(x[0])
		}
		w.kernelTrace += weight * points.Diag(c.Kernel, i)
		for j, d := range derivatives {
			w.traceGradient[j] += weight * points.Diag(d, i)
		}
	}
	var f *falkon
	err := timed("gram", func() (err error) {
		if f, pre.Jitter, err = beginFalkon(w, c); err != nil {
			return err
		}
		pre.Preconditioner = f
		return w.firstPass(f.a, f.t)
	})
	if err == nil {
		err = timed("factor", f.factor)
	}
	if err != nil {
		return nil, err
	}
	return pre, nil
}

// beginFalkon allocates the preconditioner, computes T, and sets A to λI. Like newFalkon, it returns the jitter.
func beginFalkon(w *Equations, c *Centers) (f *falkon, jitter float64, err error) {
	f = &falkon{b: w.b}
	if f.storage, err = w.mem.New(w.m+1, w.m); err != nil {
		return nil, 0, err
	}
	f.a = f.storage.View(1, 0, w.m, w.m)
	f.t = f.storage.View(0, 0, w.m, w.m)
	if jitter, err = f.factorGram(w, c); err != nil {
		return nil, 0, err
	}
	w.b.AddDiag([]float64{w.Lambda}, f.a)
	return f, jitter, nil
}

// factor replaces the matrix A Aᵀ by its Cholesky factor A.
func (f *falkon) factor() error {
	err := f.b.Potrf(backend.Lower, f.a)
	var pivot *backend.PivotError
	if errors.As(err, &pivot) && numeric.Overflowed(pivot) {
		return numeric.ExplainPivot(pivot, "the preconditioner is not finite at center %d: values overflow: scale the features down", pivot.Index+1)
	}
	if pivot != nil {
		return numeric.ExplainPivot(pivot, "the preconditioner is not positive definite at center %d (pivot %.3g): {raise $lambda}", pivot.Index+1, pivot.Value)
	}
	return err
}

func (f *falkon) factorGram(w *Equations, c *Centers) (added float64, err error) {
	if added, err = c.factor(w.b, f.t); err != nil {
		return 0, err
	}
	// The factorization of T has used the lower triangle. Clear it for A.
	numeric.ClearLower(w.b, f.a)
	return added, nil
}

// Root returns the M×M upper triangle T with TᵀT = k(c, c). It places c on dev. Do not use c on another device.
func (c *Centers) Root(ctx context.Context, dev backend.Device) (backend.Host[float64], error) {
	f := run.New(ctx, dev, nil)
	defer f.Mem.FreeAll()
	h := backend.NewHost[float64](c.Size(), c.Size())
	if err := c.Place(f.B, f.Mem); err != nil {
		return h, err
	}
	t, err := f.Mem.New(h.Rows, h.Cols)
	if err != nil {
		return h, err
	}
	if _, err := c.factor(f.B, t); err != nil {
		return h, err
	}
	err = f.B.Download(h, t)
	for i := range h.Rows {
		clear(h.Row(i)[:i])
	}
	return h, err
}

// factor computes T in the upper triangle of t; the lower triangle becomes arbitrary. It adds a number to the
// diagonal, at first the rounding error, because rounding may make k(c, c) indefinite.
func (c *Centers) factor(b backend.Backend[float64], t backend.Matrix[float64]) (added float64, err error) {
	j := numeric.Jitter{Uplo: backend.Upper, Added: 4 * numeric.Epsilon * numeric.Trace(c.Points.Diagonal(c.Kernel)), Growth: 100, MaxAttempts: 5}
	err = numeric.FactorJittered(&j, b, t, func() error { c.gramUpper(b, t); return nil })
	var pivot *backend.PivotError
	if errors.As(err, &pivot) {
		return 0, numeric.ExplainPivot(pivot, "k(c, c) of the %d centers is not positive semidefinite (pivot %.3g at center %d with %.3g added to the diagonal): the kernel %v is not positive definite: use a positive definite kernel",
			c.Size(), pivot.Value, pivot.Index+1, j.Added, c.Kernel)
	}
	return j.Added, err
}

// gramUpper queues dst ← k(c, c) for the upper triangle. It also changes elements of the lower triangle.
func (c *Centers) gramUpper(b backend.Backend[float64], dst backend.Matrix[float64]) {
	const blockSize = 256
	m, d := c.c.Dims()
	for i, r := 0, 0; i < m; i += r {
		r = min(blockSize, m-i)
		if r == m-i && r > 1 {
			r-- // keep the matrices different: for equal matrices Gram may write only the lower triangle
		}
		x := c.c.View(i, 0, r, d)
		b.Gram(dst.View(i, i, r, m-i), c.Kernel, x, c.c.View(i, 0, m-i, d))
	}
}

// Apply implements krylov.Preconditioner: z ← T⁻¹ A⁻ᵀ A⁻¹ T⁻ᵀ r.
func (f *falkon) Apply(z, r backend.Matrix[float64]) error {
	numeric.Copy(f.b, z, r)
	f.b.Trsm(backend.Left, backend.Upper, backend.Transpose, 1, f.t, z)
	numeric.SolveCholesky(f.b, f.a, z)
	f.b.Trsm(backend.Left, backend.Upper, backend.NoTrans, 1, f.t, z)
	return nil
}

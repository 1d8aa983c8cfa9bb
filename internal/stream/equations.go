package stream

import (
	"context"
	"math"
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Equations is the state of the solution of
//
//	minimize Σ_i w_i (y_i − φ(x_i)ᵀβ − b)² + λ βᵀSβ
//
// for the samples of a Source. Let Φ be the n×M matrix of the φ(x_i), minus their weighted mean if the problem has
// an intercept b. The solution solves the normal equations
//
//	Hβ = z,  H = ΦᵀWΦ + λS,  z = ΦᵀWy
//
// Equations evaluates Φ piece by piece and stores one piece. It stores H only if H is the preconditioner.
type Equations struct {
	ctx         context.Context
	b           backend.Backend[float64]
	mem         *run.Arena
	feed        *Feed
	Checkpoints *Checkpoints // nil if no checkpoints are saved
	basis       Basis
	Penalty
	m, d, t int

	phi, y, sums   backend.Matrix[float64] // Φ and targets of a piece, r×M and r×t, and column sums, 1×t
	storedPieces   Stored
	uploader       backend.UploadBackend[float64] // b, or nil if b is no UploadBackend
	allOnDevice    bool                           // whether all samples are on the device
	x, w, targets  backend.Matrix[float64]        // the stored samples, their weights and, if more than one piece is stored, their targets
	weights        []float64                      // the weights of the stored samples
	z, g           backend.Matrix[float64]        // z = ΦᵀWy, M×t; with an intercept, g = ΦᵀW1, M×1
	ybar           []float64                      // the weighted mean of y, minus feed.offset
	squares        []float64                      // upper bound on Σ w (y − feed.offset)² for each output
	basisTrace     float64                        // Σ w ‖φ‖² for φ without centering
	kernelTrace    float64                        // Σ w k(x, x); only FullFalkon computes it
	explainedTrace float64                        // Σ w ‖T⁻ᵀφ‖² for φ without centering, with T from the argument root of firstPass
	traceGradient  []float64                      // Σ w ∂k(x, x)/∂θ for each parameter of the kernel; only FullFalkon computes it
	passes         int
}

// Penalty holds the λ of the penalty, and whether there is an intercept. The intercept is not penalized.
type Penalty struct {
	Lambda    float64
	Intercept bool
}

// PieceRows returns the number of rows in a piece of the n×m matrix Φ, so that a piece takes about 48 MiB. It is n or a
// multiple of 512, because a product sums 512 rows at a time. For M = 3000, d = 784 and n = 15,000 a pass took 3.8 s with 2048
// rows and 4.4 s with 699 rows (AMD EPYC of family 25, November 2026).
func PieceRows(n, m int) int { return min(n, max(1, min(8, 6<<20/(512*max(m, 1))))*512) }

// Stored is the number of pieces whose samples are on the device at the same time, or AllPieces. With two pieces,
// a device with its own memory works on one piece while it receives the other piece.
type Stored int

// AllPieces stores all samples on the device, so that only the first pass reads the Source.
const AllPieces Stored = -1

// rows returns the number of samples that the device can store; AllPieces includes one piece for other points.
func (s Stored) rows(n, m int) int {
	if s == AllPieces {
		return n + PieceRows(n, m)
	}
	return min(n, int(s)*PieceRows(n, m))
}

// Bytes returns the device memory of NewEquations, in bytes.
func Bytes(n, m, d, t int, s Stored) int64 {
	samples := numeric.Elements(s.rows(n, m), d+1)
	if s != 1 {
		samples = numeric.Total(samples, numeric.Elements(s.rows(n, m), t))
	}
	return numeric.Bytes(numeric.Total(samples, numeric.Elements(PieceRows(n, m), t+m), int64(t), numeric.Elements(m, t+1)))
}

// NewEquations copies the basis to the device and allocates the memory for pieces and for the stored samples. If
// the samples are sparse, the device stores one piece at a time.
func NewEquations(ctx context.Context, b backend.Backend[float64], mem *run.Arena, data Source, s Stored, phi Basis, p Penalty) (*Equations, error) {
	n, d, t := data.N, data.D, data.T
	m := phi.Size()
	r := PieceRows(n, m)
	w := &Equations{ctx: ctx, b: b, mem: mem, feed: NewFeed(data, r), basis: phi, Penalty: p, m: m, d: d, t: t, storedPieces: s}
	storedRows, targetRows := s.rows(n, m), 0
	if s != 1 {
		targetRows = storedRows
	}
	w.weights = make([]float64, storedRows)
	var err error
	if f, ok := phi.(*Fourier); ok && data.Sparse != nil {
		err = f.PlaceSparse(b, mem, r)
	} else {
		err = phi.Place(b, mem)
	}
	if err != nil {
		return nil, err
	}
	for _, a := range []struct {
		to         *backend.Matrix[float64]
		rows, cols int
	}{{&w.x, storedRows, d}, {&w.w, storedRows, 1}, {&w.targets, targetRows, t}, {&w.y, r, t}, {&w.phi, r, m}, {&w.sums, 1, t}, {&w.z, m, t}, {&w.g, m, 1}} {
		if *a.to, err = mem.New(a.rows, a.cols); err != nil {
			return nil, err
		}
	}
	if w.uploader, _ = b.(backend.UploadBackend[float64]); w.uploader != nil { // let the first uploads wait until the memory has been cleared
		w.uploader.Mark(0)
		w.uploader.Mark(1)
	}
	w.feed.shift = p.Intercept
	if c, ok := phi.(*Centers); ok && data.Sparse == nil {
		w.feed.Rule = kernels.PointRule(c.Kernel)
	}
	return w, nil
}

// piece holds some rows of X, Φ, y and the weights on the device.
type piece struct {
	x, phi, y, w backend.Matrix[float64]
	weights      []float64 // nil if all weights are 1
}

// forEachPiece calls f with the pieces of one pass over the samples. f may overwrite the pieces.
func (w *Equations) forEachPiece(f func(p piece) error) error {
	w.passes++
	rows, _ := w.phi.Dims()
	storedRows, _ := w.x.Dims()
	usePiece := func(first, r int, x backend.Matrix[float64]) error {
		p := piece{x: x, phi: w.phi.View(0, 0, r, w.m), y: w.y.View(0, 0, r, w.t), w: w.w.View(first, 0, r, 1)}
		if weights := w.weights[first : first+r]; slices.ContainsFunc(weights, func(v float64) bool { return v != 1 }) {
			p.weights = weights
		}
		if w.storedPieces != 1 {
			numeric.Copy(w.b, p.y, w.targets.View(first, 0, r, w.t))
		}
		w.basis.Fill(p.phi, x)
		w.setMark(first)
		return f(p)
	}
	for first := 0; w.allOnDevice && first < w.feed.N; first += rows {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		r := min(rows, w.feed.N-first)
		if err := usePiece(first, r, w.x.View(first, 0, r, w.d)); err != nil {
			return err
		}
	}
	if w.allOnDevice {
		return nil
	}
	err := w.feed.Each(w.ctx, func(from int, hx, hy backend.Host[float64], hw []float64) error {
		r, first := hx.Rows, from%storedRows
		x, err := w.placePiece(first, hx)
		if err != nil {
			return err
		}
		if w.storedPieces == 1 {
			err = w.b.Upload(w.y.View(0, 0, r, w.t), hy)
		} else {
			err = w.upload(first, w.targets.View(first, 0, r, w.t), hy)
		}
		if err != nil {
			return err
		}
		if err := w.b.Upload(w.w.View(first, 0, r, 1), backend.Host[float64]{Rows: r, Cols: 1, Stride: 1, Data: hw}); err != nil {
			return err
		}
		copy(w.weights[first:], hw)
		if err := usePiece(first, r, x); err != nil {
			return err
		}
		return w.releasePiece(x) // waits only for sparse samples
	})
	w.allOnDevice = err == nil && w.storedPieces == AllPieces
	return err
}

// placePiece returns the samples of a piece as a matrix on the device. It stores dense samples in w.x, starting at
// row first. The caller must call releasePiece with the matrix.
func (w *Equations) placePiece(first int, h backend.Host[float64]) (backend.Matrix[float64], error) {
	if w.feed.data.Sparse == nil {
		x := w.x.View(first, 0, h.Rows, w.d)
		return x, w.upload(first, x, h)
	}
	x, err := numeric.SparsePoints(*w.feed.data.Sparse).Take(RowNumbers(h)).Place(w.b)
	if err == nil {
		w.mem.Keep(x)
	}
	return x, err
}

// markIndex returns the index of the mark, 0 or 1, that the backend sets after its work on the stored samples from row
// `first` on. If all samples are stored, uploads need not wait for such work, and mark 0 is never set.
func (w *Equations) markIndex(first int) int {
	if w.storedPieces == AllPieces && first < w.feed.data.N || first == 0 {
		return 0
	}
	return 1
}

// upload overwrites stored samples, or their targets, as soon as the device has finished the work on these samples.
func (w *Equations) upload(first int, to backend.Matrix[float64], h backend.Host[float64]) error {
	if w.uploader != nil {
		return w.uploader.UploadAfter(w.markIndex(first), to, h)
	}
	return w.b.Upload(to, h)
}

// setMark marks the end of the present work on the stored samples from row `first` on, for which upload waits.
func (w *Equations) setMark(first int) {
	if index := w.markIndex(first); w.uploader != nil && !(w.storedPieces == AllPieces && index == 0) {
		w.uploader.Mark(index)
	}
}

func (w *Equations) releasePiece(x backend.Matrix[float64]) error {
	if w.feed.data.Sparse == nil {
		return nil
	}
	err := w.b.Sync()
	w.mem.Free(x)
	return err
}

// RowNumbers returns the row numbers in the only column of h, which represent sparse samples.
func RowNumbers(h backend.Host[float64]) []int {
	list := make([]int, h.Rows)
	for i := range list {
		list[i] = int(h.Row(i)[0])
	}
	return list
}

// firstPass runs the first pass. It sets z and, with an intercept, g and ybar. If the argument a is not nil,
// firstPass adds the lower triangle of ΦᵀWΦ to a. If the argument root has an upper triangle T, firstPass adds
// T⁻ᵀΦᵀWΦT⁻¹ instead, and sets explainedTrace.
func (w *Equations) firstPass(a, root backend.Matrix[float64]) error {
	beta := 0.0
	w.squares, w.basisTrace, w.explainedTrace = make([]float64, w.t), 0, 0
	dots, columns := make([]float64, w.t), make([]float64, w.m)
	err := w.forEachPiece(func(p piece) error {
		if err := w.b.ColDot(dots, p.y, p.y); err != nil {
			return err
		}
		maxWeight := 1.0
		if p.weights != nil {
			maxWeight = slices.Max(p.weights)
		}
		for j, v := range dots {
			w.squares[j] += maxWeight * v
		}
		if w.Intercept {
			w.b.Gemm(backend.Transpose, backend.NoTrans, 1, p.w, p.y, beta, w.sums)
			w.b.Gemm(backend.Transpose, backend.NoTrans, 1, p.phi, p.w, beta, w.g)
		}
		if p.weights != nil {
			if err := numeric.ScaleRows(w.b, p.y, p.y, p.weights); err != nil {
				return err
			}
		}
		w.b.Gemm(backend.Transpose, backend.NoTrans, 1, p.phi, p.y, beta, w.z)
		beta = 1
		if p.weights != nil {
			if err := numeric.ScaleRows(w.b, p.phi, p.phi, numeric.Roots(p.weights)); err != nil {
				return err
			}
		}
		if err := w.b.ColDot(columns, p.phi, p.phi); err != nil {
			return err
		}
		w.basisTrace += numeric.Trace(columns)
		if a == nil {
			return nil
		}
		if root != nil {
			w.b.Trsm(backend.Right, backend.Upper, backend.NoTrans, 1, root, p.phi)
			if err := w.b.ColDot(columns, p.phi, p.phi); err != nil {
				return err
			}
			w.explainedTrace += numeric.Trace(columns)
		}
		w.b.Syrk(backend.Lower, backend.Transpose, 1, p.phi, 1, a)
		return nil
	})
	if err != nil || !w.Intercept {
		return err
	}
	// Centering Φ and y replaces W by W(I − 11ᵀW/Σw): subtract a term of rank one from each sum.
	sums := backend.NewHost[float64](1, w.t)
	if err := w.b.Download(sums, w.sums); err != nil {
		return err
	}
	w.ybar = make([]float64, w.t)
	for j, v := range sums.Data {
		w.ybar[j] = v / w.feed.total
	}
	w.b.Gemm(backend.NoTrans, backend.NoTrans, -1/w.feed.total, w.g, w.sums, 1, w.z)
	if a == nil {
		return nil
	}
	g := w.g
	if root != nil {
		if g, err = w.mem.New(w.m, 1); err != nil {
			return err
		}
		defer w.mem.Free(g)
		numeric.Copy(w.b, g, w.g)
		w.b.Trsm(backend.Left, backend.Upper, backend.Transpose, 1, root, g)
	}
	w.b.Syrk(backend.Lower, backend.NoTrans, -1/w.feed.total, g, 1, a)
	return nil
}

// apply computes out ← Hv, M×t, in one pass.
func (w *Equations) apply(out, v backend.Matrix[float64]) error { return w.multiply(out, 1, v, 0) }

// residual computes r ← ΦᵀW(y − Φβ) − λSβ in one pass. Its rounding error is proportional to y − Φβ, not to z.
func (w *Equations) residual(r, beta backend.Matrix[float64]) error {
	return w.multiply(r, -1, beta, 1)
}

// multiply computes out ← yFactor·ΦᵀWy + sign·(ΦᵀWΦ + λS)v. It evaluates each piece of Φ once.
func (w *Equations) multiply(out backend.Matrix[float64], sign float64, v backend.Matrix[float64], yFactor float64) error {
	beta := 0.0
	err := w.forEachPiece(func(p piece) error {
		w.b.Gemm(backend.NoTrans, backend.NoTrans, sign, p.phi, v, yFactor, p.y)
		if w.Intercept {
			w.b.Gemm(backend.Transpose, backend.NoTrans, 1, p.w, p.y, beta, w.sums)
		}
		if p.weights != nil {
			if err := numeric.ScaleRows(w.b, p.y, p.y, p.weights); err != nil {
				return err
			}
		}
		w.b.Gemm(backend.Transpose, backend.NoTrans, 1, p.phi, p.y, beta, out)
		beta = 1
		return nil
	})
	if err != nil {
		return err
	}
	if w.Intercept {
		w.b.Gemm(backend.NoTrans, backend.NoTrans, -1/w.feed.total, w.g, w.sums, 1, out)
	}
	w.basis.Penalize(out, v, sign*w.Lambda)
	return nil
}

// bias returns b = ȳ − gᵀβ/Σw for each output, where g = ΦᵀW1.
func (w *Equations) bias(beta backend.Matrix[float64]) ([]float64, error) {
	b := make([]float64, w.t)
	if !w.Intercept {
		return b, nil
	}
	w.b.Gemm(backend.Transpose, backend.NoTrans, 1, w.g, beta, 0, w.sums)
	h := backend.NewHost[float64](1, w.t)
	if err := w.b.Download(h, w.sums); err != nil {
		return nil, err
	}
	for j, v := range h.Data {
		b[j] = w.feed.offset[j] + w.ybar[j] - v/w.feed.total
	}
	return b, nil
}

// scales returns for each output the divisor that makes the norm of its residual relative.
func (w *Equations) scales(tol float64) ([]float64, error) {
	size, err := w.norms(w.z)
	for j := range size {
		size[j] = numeric.ScaleOf(size[j], math.Sqrt(w.basisTrace)*math.Sqrt(w.squares[j]), numeric.SumRounding(w.feed.N+w.m), tol)
	}
	return size, err
}

func (w *Equations) norms(a backend.Matrix[float64]) ([]float64, error) {
	m, t := a.Dims()
	h := backend.NewHost[float64](m, t)
	if err := w.b.Download(h, a); err != nil {
		return nil, err
	}
	list := make([]float64, t)
	for j := range list {
		list[j] = numeric.Norm(m, func(i int) float64 { return h.Data[i*t+j] })
	}
	return list, nil
}

package numeric

import (
	"context"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Symmetric is a symmetric matrix on the device, or its Cholesky factor in the same memory. It uses packed storage if
// the backend supports it. As in package backend, methods queue their work unless a comment says that they wait.
type Symmetric[T backend.Float] interface {
	run.Releaser
	Gram(k kernels.Kernel, x backend.Matrix[T]) // sets the matrix to k(X, X)
	AddDiag(d []T)
	Diagonal() ([]T, error)     // waits for the queued work
	Mul(q, p backend.Matrix[T]) // q ← A p
	Factor(reduced bool) error  // A = L Lᵀ, in reduced precision if reduced is set; waits for the result
	Solve(r backend.Matrix[T])  // r ← (L Lᵀ)⁻¹ r

	On(b backend.Backend[T]) Symmetric[T] // the same matrix, with operations in the queue b
	Leading(n int) Symmetric[T]           // the first n rows and columns
	// Upload and Download wait for the copy, as in backend.PackedBackend.
	Upload(first int, h backend.Host[T]) error
	Download(h backend.Host[T], first int) error
	Substitute(r backend.Matrix[T]) // r ← L⁻¹ r
}

// NewSymmetric allocates the matrix on the device.
func NewSymmetric[T backend.Float](mem *run.Arena, b backend.Backend[T], n int) (Symmetric[T], error) {
	if hb, ok := b.(backend.PackedBackend[T]); ok {
		return NewPacked(mem, hb, n, hb.NewPacked)
	}
	a, err := b.New(n, n)
	if err != nil {
		return nil, err
	}
	s := &squareStored[T]{b, a}
	mem.Keep(s)
	return s, nil
}

// NewFixed allocates a matrix with 16 bits for each element, which supports only products.
func NewFixed[T backend.Float](mem *run.Arena, b backend.Backend[T], n int) (Symmetric[T], error) {
	fb := b.(backend.FixedBackend[T])
	return NewPacked(mem, fb, n, fb.NewFixed)
}

func NewPacked[T backend.Float](mem *run.Arena, b backend.PackedBackend[T], n int, alloc func(n int) (backend.Packed[T], error)) (Symmetric[T], error) {
	a, err := alloc(n)
	if err != nil {
		return nil, err
	}
	s := &packedStored[T]{b, a}
	mem.Keep(s)
	return s, nil
}

func SymmetricBytes[T backend.Float](b backend.Backend[T], n int) int64 {
	if hb, ok := b.(backend.PackedBackend[T]); ok {
		return hb.PackedBytes(n)
	}
	return ElementBytes[T](Elements(n, n))
}

// ReducedUnit returns the relative rounding error of Cholesky factors in reduced precision, or 0 if b has none.
func ReducedUnit[T backend.Float](b backend.Backend[T]) float64 {
	if r, ok := b.(backend.ReducedBackend[T]); ok {
		return r.ReducedUnit()
	}
	return 0
}

type packedStored[T backend.Float] struct {
	b backend.PackedBackend[T]
	a backend.Packed[T]
}

func (s *packedStored[T]) Free() { s.a.Free() }

func (s *packedStored[T]) Gram(k kernels.Kernel, x backend.Matrix[T]) { s.b.GramPacked(s.a, k, x) }

func (s *packedStored[T]) AddDiag(d []T) { s.b.AddDiagPacked(d, s.a) }

func (s *packedStored[T]) Mul(q, p backend.Matrix[T]) { s.b.SymmPacked(1, s.a, p, 0, q) }

func (s *packedStored[T]) Factor(reduced bool) error {
	if b, ok := s.b.(backend.ReducedBackend[T]); ok && reduced {
		return b.PotrfPackedReduced(s.a)
	}
	return s.b.PotrfPacked(s.a)
}

func (s *packedStored[T]) Diagonal() ([]T, error) {
	d := make([]T, s.a.Order())
	return d, s.b.DiagPacked(d, s.a)
}

func (s *packedStored[T]) Substitute(r backend.Matrix[T]) { s.b.TrsmPacked(backend.NoTrans, s.a, r) }

func (s *packedStored[T]) Solve(r backend.Matrix[T]) {
	s.Substitute(r)
	s.b.TrsmPacked(backend.Transpose, s.a, r)
}

func (s *packedStored[T]) On(b backend.Backend[T]) Symmetric[T] {
	return &packedStored[T]{b.(backend.PackedBackend[T]), s.a}
}

func (s *packedStored[T]) Leading(n int) Symmetric[T] {
	return &packedStored[T]{s.b, s.a.Leading(n)}
}

func (s *packedStored[T]) Upload(first int, h backend.Host[T]) error {
	return s.b.UploadPacked(s.a, first, h)
}

func (s *packedStored[T]) Download(h backend.Host[T], first int) error {
	return s.b.DownloadPacked(h, s.a, first)
}

type squareStored[T backend.Float] struct {
	b backend.Backend[T]
	a backend.Matrix[T]
}

func (s *squareStored[T]) Free() { s.a.Free() }

func (s *squareStored[T]) Gram(k kernels.Kernel, x backend.Matrix[T]) { s.b.Gram(s.a, k, x, x) }

func (s *squareStored[T]) AddDiag(d []T) { s.b.AddDiag(d, s.a) }

func (s *squareStored[T]) Factor(bool) error { return s.b.Potrf(backend.Lower, s.a) }

func (s *squareStored[T]) Diagonal() ([]T, error) { return Diagonal(s.b, s.a) }

func (s *squareStored[T]) Mul(q, p backend.Matrix[T]) {
	s.b.Symm(backend.Lower, 1, s.a, p, 0, q)
}

func (s *squareStored[T]) Solve(r backend.Matrix[T]) { SolveCholesky(s.b, s.a, r) }

func (s *squareStored[T]) Substitute(r backend.Matrix[T]) {
	s.b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, s.a, r)
}

func (s *squareStored[T]) On(b backend.Backend[T]) Symmetric[T] { return &squareStored[T]{b, s.a} }

func (s *squareStored[T]) Leading(n int) Symmetric[T] {
	return &squareStored[T]{s.b, s.a.View(0, 0, n, n)}
}

func (s *squareStored[T]) Upload(first int, h backend.Host[T]) error {
	return s.b.Upload(s.a.View(first, 0, h.Rows, h.Cols), h)
}

func (s *squareStored[T]) Download(h backend.Host[T], first int) error {
	return s.b.Download(h, s.a.View(first, 0, h.Rows, h.Cols))
}

// copyInLowerTriangle stores a matrix K below the diagonal, and its Cholesky factor on and above the diagonal.
type copyInLowerTriangle struct {
	squareStored[float64]
	diag       []float64 // diagonal of the factored matrix, which Factor sets
	factorDiag []float64 // diagonal of the factor, which Factor sets
}

func NewCopyInLowerTriangle(mem *run.Arena, b backend.Backend[float64], n int) (Symmetric[float64], error) {
	a, err := b.New(n, n)
	if err != nil {
		return nil, err
	}
	s := &copyInLowerTriangle{squareStored: squareStored[float64]{b, a}}
	mem.Keep(s)
	return s, nil
}

func (s *copyInLowerTriangle) Factor(bool) (err error) {
	if s.diag, err = s.Diagonal(); err != nil {
		return err
	}
	if err = s.b.(backend.PreserveBackend[float64]).PotrfPreserve(s.a); err != nil {
		return err
	}
	s.factorDiag, err = s.Diagonal()
	return err
}

func (s *copyInLowerTriangle) Solve(r backend.Matrix[float64]) {
	s.b.Trsm(backend.Left, backend.Upper, backend.Transpose, 1, s.a, r)
	s.b.Trsm(backend.Left, backend.Upper, backend.NoTrans, 1, s.a, r)
}

// A Product computes products with the matrix K of a solver that stores K in float64.
type Product interface {
	// Times queues q ← B p for a matrix B that differs from K + λW⁻¹ only on the diagonal. It returns the diagonal of
	// K + λW⁻¹ − B.
	Times(q, p backend.Matrix[float64]) []float64
}

// Times implements Product. B is K, except that its diagonal is the diagonal of the factor.
func (s *copyInLowerTriangle) Times(q, p backend.Matrix[float64]) []float64 {
	s.Mul(q, p)
	d := make([]float64, len(s.diag))
	for i := range d {
		d[i] = s.diag[i] - s.factorDiag[i]
	}
	return d
}

// Narrowing returns a function that rounds the elements of `from` to float32 and stores them in its argument. It
// returns nil if dev cannot round matrices in this storage.
func Narrowing(dev backend.Device, from Symmetric[float64]) func(to Symmetric[float32]) error {
	n, ok := dev.(backend.PackedNarrower)
	p, packed := from.(*packedStored[float64])
	if !ok || !packed {
		return nil
	}
	return func(to Symmetric[float32]) error {
		if err := p.b.Sync(); err != nil {
			return err
		}
		n.NarrowPacked(to.(*packedStored[float32]).a, p.a)
		return dev.Sync()
	}
}

// FactorGram sets the lower triangle of a to the Cholesky factor of k(X, X) + D. d is the diagonal of D and has
// length 1 or n. If a pivot is a rounding error, FactorGram returns a *backend.PivotError.
func FactorGram(b backend.Backend[float64], a backend.Matrix[float64], k kernels.Kernel, x backend.Matrix[float64], d []float64) error {
	b.Gram(a, k, x, x)
	b.AddDiag(d, a)
	matrixDiag, err := Diagonal(b, a)
	if err != nil {
		return err
	}
	if err := b.Potrf(backend.Lower, a); err != nil {
		return err
	}
	factorDiag, err := Diagonal(b, a)
	if err != nil {
		return err
	}
	return RoundedPivot(factorDiag, matrixDiag)
}

// InverseDiagonal returns the diagonal of (LLᵀ)⁻¹. The matrix scratch has n rows, and its number of columns is the
// width of a block of columns of L⁻¹.
func InverseDiagonal(ctx context.Context, b backend.Backend[float64], l, scratch backend.Matrix[float64]) ([]float64, error) {
	n, width := scratch.Dims()
	diag := make([]float64, n)
	for first := 0; first < n; first += width {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		cols, remaining := min(width, n-first), n-first
		x := scratch.View(0, 0, remaining, cols)
		Zero(b, x)
		b.AddDiag([]float64{1}, x.View(0, 0, cols, cols))
		b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, l.View(first, first, remaining, remaining), x)
		if err := b.ColDot(diag[first:first+cols], x, x); err != nil {
			return nil, err
		}
	}
	return diag, nil
}

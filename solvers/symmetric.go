package solvers

import (
	"math"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// symmetric is a symmetric matrix on the device, or its Cholesky factor in the
// same place: in packed storage where the backend has it, as the lower triangle of
// a square matrix elsewhere. What queues and what waits is as in backend.
type symmetric[T backend.Float] interface {
	run.Releaser
	gram(k kernels.Kernel, x backend.Matrix[T]) // ← k(X, X)
	addDiag(d []T)
	diagonal() ([]T, error)     // waits
	mul(q, p backend.Matrix[T]) // q ← A p
	factor(reduced bool) error  // waits: A = L Lᵀ, or about that
	solve(r backend.Matrix[T])  // r ← (L Lᵀ)⁻¹ r

	on(b backend.Backend[T]) symmetric[T] // the same, in another queue
	leading(n int) symmetric[T]           // the first n rows and columns
	// upload and download wait, and are as in backend.PackedBackend.
	upload(first int, h backend.Host[T]) error
	download(h backend.Host[T], first int) error
	substitute(r backend.Matrix[T]) // r ← L⁻¹ r
}

// newSymmetric takes symmetricBytes(b, n) on the device.
func newSymmetric[T backend.Float](mem *run.Arena, b backend.Backend[T], n int) (symmetric[T], error) {
	if hb, ok := b.(backend.PackedBackend[T]); ok {
		return newPacked(mem, hb, n, hb.NewPacked)
	}
	a, err := b.New(n, n)
	if err != nil {
		return nil, err
	}
	s := &squareStored[T]{b, a}
	mem.Keep(s)
	return s, nil
}

// newFixed is newSymmetric with 16 bits for an element, for products only.
func newFixed[T backend.Float](mem *run.Arena, b backend.Backend[T], n int) (symmetric[T], error) {
	fb := b.(backend.FixedBackend[T])
	return newPacked(mem, fb, n, fb.NewFixed)
}

// newFactored is newSymmetric for a matrix that is to be factored: in the memory of
// the host where the method wants it there.
func newFactored[T backend.Float](w *work, b backend.Backend[T], n int) (symmetric[T], error) {
	if !w.onHost {
		return newSymmetric(w.Mem, b, n)
	}
	hb := b.(backend.HostPackedBackend[T])
	return newPacked(w.Mem, hb, n, hb.NewHostPacked)
}

func newPacked[T backend.Float](mem *run.Arena, b backend.PackedBackend[T], n int, make func(n int) (backend.Packed[T], error)) (symmetric[T], error) {
	a, err := make(n)
	if err != nil {
		return nil, err
	}
	s := &packedStored[T]{b, a}
	mem.Keep(s)
	return s, nil
}

func symmetricBytes[T backend.Float](b backend.Backend[T], n int) int64 {
	if hb, ok := b.(backend.PackedBackend[T]); ok {
		return hb.PackedBytes(n)
	}
	return elementBytes[T](elements(n, n))
}

// reducedUnit is to what precision a factor of reduced precision rounds; 0: there is none.
func reducedUnit[T backend.Float](b backend.Backend[T]) float64 {
	if r, ok := b.(backend.ReducedBackend[T]); ok {
		return r.ReducedUnit()
	}
	return 0
}

// elementBytes is the size of elements of T.
func elementBytes[T backend.Float](elements int64) int64 {
	var zero T
	size := int64(8)
	if _, single := any(zero).(float32); single {
		size = 4
	}
	if elements > math.MaxInt64/size {
		return math.MaxInt64
	}
	return size * elements
}

type packedStored[T backend.Float] struct {
	b backend.PackedBackend[T]
	a backend.Packed[T]
}

func (s *packedStored[T]) Free()                                      { s.a.Free() }
func (s *packedStored[T]) gram(k kernels.Kernel, x backend.Matrix[T]) { s.b.GramPacked(s.a, k, x) }
func (s *packedStored[T]) addDiag(d []T)                              { s.b.AddDiagPacked(d, s.a) }
func (s *packedStored[T]) mul(q, p backend.Matrix[T])                 { s.b.SymmPacked(1, s.a, p, 0, q) }

func (s *packedStored[T]) factor(reduced bool) error {
	if b, ok := s.b.(backend.ReducedBackend[T]); ok && reduced {
		return b.PotrfPackedReduced(s.a)
	}
	return s.b.PotrfPacked(s.a)
}

func (s *packedStored[T]) diagonal() ([]T, error) {
	d := make([]T, s.a.Order())
	return d, s.b.DiagPacked(d, s.a)
}

func (s *packedStored[T]) substitute(r backend.Matrix[T]) { s.b.TrsmPacked(backend.NoTrans, s.a, r) }

func (s *packedStored[T]) solve(r backend.Matrix[T]) {
	s.substitute(r)
	s.b.TrsmPacked(backend.Transpose, s.a, r)
}

func (s *packedStored[T]) on(b backend.Backend[T]) symmetric[T] {
	return &packedStored[T]{b.(backend.PackedBackend[T]), s.a}
}

func (s *packedStored[T]) leading(n int) symmetric[T] {
	return &packedStored[T]{s.b, s.a.Leading(n)}
}

func (s *packedStored[T]) upload(first int, h backend.Host[T]) error {
	return s.b.UploadPacked(s.a, first, h)
}

func (s *packedStored[T]) download(h backend.Host[T], first int) error {
	return s.b.DownloadPacked(h, s.a, first)
}

type squareStored[T backend.Float] struct {
	b backend.Backend[T]
	a backend.Matrix[T]
}

func (s *squareStored[T]) Free()                                      { s.a.Free() }
func (s *squareStored[T]) gram(k kernels.Kernel, x backend.Matrix[T]) { s.b.Gram(s.a, k, x, x) }
func (s *squareStored[T]) addDiag(d []T)                              { s.b.AddDiag(d, s.a) }
func (s *squareStored[T]) factor(bool) error                          { return s.b.Potrf(backend.Lower, s.a) }
func (s *squareStored[T]) diagonal() ([]T, error)                     { return diagonal(s.b, s.a) }

func (s *squareStored[T]) mul(q, p backend.Matrix[T]) {
	s.b.Symm(backend.Lower, 1, s.a, p, 0, q)
}

func (s *squareStored[T]) solve(r backend.Matrix[T]) { cholesky(s.b, s.a, r) }

func (s *squareStored[T]) substitute(r backend.Matrix[T]) {
	s.b.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, s.a, r)
}

func (s *squareStored[T]) on(b backend.Backend[T]) symmetric[T] { return &squareStored[T]{b, s.a} }

func (s *squareStored[T]) leading(n int) symmetric[T] {
	return &squareStored[T]{s.b, s.a.View(0, 0, n, n)}
}

func (s *squareStored[T]) upload(first int, h backend.Host[T]) error {
	return s.b.Upload(s.a.View(first, 0, h.Rows, h.Cols), h)
}

func (s *squareStored[T]) download(h backend.Host[T], first int) error {
	return s.b.Download(h, s.a.View(first, 0, h.Rows, h.Cols))
}

// cholesky queues b ← (LLᵀ)⁻¹ b.
func cholesky[T backend.Float](q backend.Backend[T], l, b backend.Matrix[T]) {
	q.Trsm(backend.Left, backend.Lower, backend.NoTrans, 1, l, b)
	q.Trsm(backend.Left, backend.Lower, backend.Transpose, 1, l, b)
}

// diagonal returns the diagonal of a, read in square blocks along it.
func diagonal[T backend.Float](b backend.Backend[T], a backend.Matrix[T]) ([]T, error) {
	const side = 64
	n, _ := a.Dims()
	d := make([]T, n)
	h := backend.NewHost[T](min(n, side), min(n, side))
	for i := 0; i < n; i += side {
		r := min(side, n-i)
		part := h.View(0, 0, r, r)
		if err := b.Download(part, a.View(i, i, r, r)); err != nil {
			return nil, err
		}
		for p := range r {
			d[i+p] = part.Row(p)[p]
		}
	}
	return d, nil
}

// wrapper returns dev's ability to use Go memory without a copy, or nil.
func wrapper(dev backend.Device) backend.Wrapper[float64] {
	w, _ := dev.F64().(backend.Wrapper[float64])
	return w
}

// copyInLowerTriangle is a symmetric matrix in a square, whose factor is made in the upper
// triangle: below the diagonal K stays, for the residual of the first solution.
type copyInLowerTriangle struct {
	squareStored[float64]
	diag []float64 // of A, after factor
	own  []float64 // what stands on the diagonal then
}

// preserveOrder is from what order on evaluating K again is slow enough for the other
// half of the memory to be worth it.
const preserveOrder = 4096

// preserves reports whether dual keeps K where that fits.
func (z *sizes) preserves(par Params) bool {
	if _, ok := z.dev.F64().(backend.PreserveBackend[float64]); !ok {
		return false
	}
	return par.Operator == Stored64 || par.Operator == OperatorAuto && z.n >= preserveOrder
}

func newCopyInLowerTriangle(mem *run.Arena, b backend.Backend[float64], n int) (symmetric[float64], error) {
	a, err := b.New(n, n)
	if err != nil {
		return nil, err
	}
	s := &copyInLowerTriangle{squareStored: squareStored[float64]{b, a}}
	mem.Keep(s)
	return s, nil
}

func (s *copyInLowerTriangle) factor(bool) (err error) {
	if s.diag, err = s.diagonal(); err != nil {
		return err
	}
	if err = s.b.(backend.PreserveBackend[float64]).PotrfPreserve(s.a); err != nil {
		return err
	}
	s.own, err = s.diagonal()
	return err
}

func (s *copyInLowerTriangle) solve(r backend.Matrix[float64]) {
	s.b.Trsm(backend.Left, backend.Upper, backend.Transpose, 1, s.a, r)
	s.b.Trsm(backend.Left, backend.Upper, backend.NoTrans, 1, s.a, r)
}

// A product is K·V by what an inner solver has of K in float64.
type product interface {
	// times queues q ← B p for a B that differs from K + λW⁻¹ on its diagonal
	// alone, by what it returns.
	times(q, p backend.Matrix[float64]) []float64
}

// times is that of the factored matrix.
func (s *copyInLowerTriangle) times(q, p backend.Matrix[float64]) []float64 {
	s.mul(q, p)
	d := make([]float64, len(s.diag))
	for i := range d {
		d[i] = s.diag[i] - s.own[i]
	}
	return d
}

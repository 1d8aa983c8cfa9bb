package krylov

import (
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// An Operator is A = K + λW⁻¹ on the device, for products.
type Operator[T backend.Float] interface {
	run.Releaser
	// Apply queues q ← A p for n×c matrices. It overwrites work, which is n×c. It waits for the device only if a
	// step runs on the host.
	Apply(q, p, work backend.Matrix[T]) error
}

// OperatorParams specifies an operator.
type OperatorParams struct {
	Kernel  kernels.Kernel
	Shift   []float64 // the diagonal λW⁻¹, of length 1 or n
	Columns int       // maximum number of columns of a product
	Stored  bool
	Fixed   bool // whether K is stored with 16 bits per element
}

// NewOperator returns the operator K + λW⁻¹ for the n×d matrix X on the device. If K is not stored,
// X must remain on the device while the operator is used.
func NewOperator[T backend.Float](mem *run.Arena, b backend.Backend[T], x backend.Matrix[T], par OperatorParams) (Operator[T], error) {
	if !par.Stored {
		if f, ok := AffineOf(par.Kernel); ok {
			return newAffine(mem, b, f, x, par)
		}
		return &unstored[T]{b, par.Kernel, x, par.Shift}, nil
	}
	shift := make([]T, len(par.Shift))
	for i, v := range par.Shift {
		shift[i] = T(v)
	}
	maker := numeric.NewSymmetric[T]
	if par.Fixed {
		maker = numeric.NewFixed[T]
	}
	n, _ := x.Dims()
	a, err := maker(mem, b, n)
	if err != nil {
		return nil, err
	}
	a.Gram(par.Kernel, x)
	a.AddDiag(shift)
	if err := b.Sync(); err != nil {
		mem.Free(a)
		return nil, err
	}
	return &storedOperator[T]{a, mem}, nil
}

// StoredBy returns the matrix that an operator stores, or nil.
func StoredBy[T backend.Float](o Operator[T]) numeric.Symmetric[T] {
	if s, ok := o.(*storedOperator[T]); ok {
		return s.a
	}
	return nil
}

type storedOperator[T backend.Float] struct {
	a   numeric.Symmetric[T]
	mem *run.Arena
}

func (s *storedOperator[T]) Free() { s.mem.Free(s.a) }

func (s *storedOperator[T]) Apply(q, p, _ backend.Matrix[T]) error {
	s.a.Mul(q, p)
	return nil
}

// Times implements numeric.Product for a stored K in float64.
func (s *storedOperator[T]) Times(q, p backend.Matrix[T]) []float64 {
	s.a.Mul(q, p)
	return []float64{0}
}

type unstored[T backend.Float] struct {
	b      backend.Backend[T]
	kernel kernels.Kernel
	x      backend.Matrix[T]
	shift  []float64 // λW⁻¹, of length 1 or n
}

func (u *unstored[T]) Free() {}

func (u *unstored[T]) Apply(q, p, work backend.Matrix[T]) error {
	u.b.GramMul(q, u.kernel, u.x, u.x, p)
	return addShifted(u.b, q, p, work, u.shift)
}

// addShifted queues q ← q + D p for the diagonal d of D, of length 1 or n. It overwrites work.
func addShifted[T backend.Float](b backend.Backend[T], q, p, work backend.Matrix[T], d []float64) error {
	_, c := p.Dims()
	if len(d) == 1 {
		b.ColAxpy(numeric.Repeated(T(d[0]), c), p, q)
		return nil
	}
	if err := numeric.ScaleRows(b, work, p, d); err != nil {
		return err
	}
	b.ColAxpy(numeric.Repeated[T](1, c), work, q)
	return nil
}

// Affine is the kernel a·xᵀz + c, for which K = aXXᵀ + c·11ᵀ. A product Kv = aX(Xᵀv) + c·1(1ᵀv) takes 4nd + 4n
// operations.
type Affine struct{ A, C float64 }

// AffineOf returns k as an affine kernel, or false if k is not affine.
func AffineOf(k kernels.Kernel) (Affine, bool) {
	switch k := k.(type) {
	case kernels.Linear:
		return Affine{A: 1}, true
	case kernels.Constant:
		return Affine{C: k.Value}, true
	case kernels.Polynomial:
		return Affine{1, k.C}, k.Degree == 1
	case kernels.Scaled:
		f, ok := AffineOf(k.Kernel)
		return Affine{k.Weight * f.A, k.Weight * f.C}, ok
	case kernels.Sum:
		var sum Affine
		for _, term := range k {
			f, ok := AffineOf(term)
			if !ok {
				return Affine{}, false
			}
			sum = Affine{sum.A + f.A, sum.C + f.C}
		}
		return sum, true
	case kernels.Product:
		product := Affine{C: 1}
		for _, factor := range k {
			f, ok := AffineOf(factor)
			if !ok || f.A != 0 && product.A != 0 {
				return Affine{}, false
			}
			product = Affine{product.A*f.C + product.C*f.A, product.C * f.C}
		}
		return product, true
	}
	return Affine{}, false
}

// AffineElements returns the number of elements that an affine kernel's operator stores on the device in addition
// to X, for products with the given number of columns. It returns 0 for other kernels.
func AffineElements(k kernels.Kernel, n, d, columns int) int64 {
	f, ok := AffineOf(k)
	if !ok {
		return 0
	}
	width := min(columns, BlockWidth)
	e := numeric.Elements(d, width)
	if f.C != 0 {
		e = numeric.Total(e, int64(n), int64(width))
	}
	return e
}

// affineOperator is A = aXXᵀ + c·11ᵀ + λW⁻¹.
type affineOperator[T backend.Float] struct {
	mem   *run.Arena
	b     backend.Backend[T]
	f     Affine
	x     backend.Matrix[T] // n×d
	t     backend.Matrix[T] // d×width: Xᵀp
	ones  backend.Matrix[T] // n×1; nil if c is 0
	s     backend.Matrix[T] // 1×width: 1ᵀp
	shift []float64         // λW⁻¹, of length 1 or n
}

func newAffine[T backend.Float](mem *run.Arena, b backend.Backend[T], f Affine, x backend.Matrix[T], par OperatorParams) (Operator[T], error) {
	n, d := x.Dims()
	width := min(par.Columns, BlockWidth)
	o := &affineOperator[T]{mem: mem, b: b, f: f, x: x, shift: par.Shift}
	var err error
	if o.t, err = run.NewMatrix(mem, b, d, width); err != nil {
		return nil, err
	}
	if f.C == 0 {
		return o, nil
	}
	if o.s, err = run.NewMatrix(mem, b, 1, width); err != nil {
		return nil, err
	}
	if o.ones, err = run.NewMatrix(mem, b, n, 1); err != nil {
		return nil, err
	}
	return o, b.Upload(o.ones, backend.Host[T]{Rows: n, Cols: 1, Stride: 1, Data: slices.Repeat([]T{1}, n)})
}

func (o *affineOperator[T]) Free() {
	o.mem.Free(o.t)
	if o.ones != nil {
		o.mem.Free(o.ones)
		o.mem.Free(o.s)
	}
}

func (o *affineOperator[T]) Apply(q, p, work backend.Matrix[T]) error {
	_, d := o.x.Dims()
	_, c := p.Dims()
	t := o.t.View(0, 0, d, c)
	o.b.Gemm(backend.Transpose, backend.NoTrans, 1, o.x, p, 0, t)
	o.b.Gemm(backend.NoTrans, backend.NoTrans, T(o.f.A), o.x, t, 0, q)
	if o.ones != nil {
		s := o.s.View(0, 0, 1, c)
		o.b.Gemm(backend.Transpose, backend.NoTrans, 1, o.ones, p, 0, s)
		o.b.Gemm(backend.NoTrans, backend.NoTrans, T(o.f.C), o.ones, s, 1, q)
	}
	return addShifted(o.b, q, p, work, o.shift)
}

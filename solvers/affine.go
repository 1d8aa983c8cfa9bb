package solvers

import (
	"slices"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// affine is a kernel a·xᵀz + c. Its matrix is aXXᵀ + c·11ᵀ, so that a product with v
// takes 4nd + 4n operations as aX(Xᵀv) + c·1(1ᵀv), not the 2n²d + 2n² of one whose
// values are made anew.
type affine struct{ a, c float64 }

// affineOf reports whether k is one.
func affineOf(k kernels.Kernel) (affine, bool) {
	switch k := k.(type) {
	case kernels.Linear:
		return affine{a: 1}, true
	case kernels.Constant:
		return affine{c: k.Value}, true
	case kernels.Polynomial:
		return affine{1, k.C}, k.Degree == 1
	case kernels.Scaled:
		f, ok := affineOf(k.Kernel)
		return affine{k.Weight * f.a, k.Weight * f.c}, ok
	case kernels.Sum:
		var sum affine
		for _, part := range k {
			f, ok := affineOf(part)
			if !ok {
				return affine{}, false
			}
			sum = affine{sum.a + f.a, sum.c + f.c}
		}
		return sum, true
	case kernels.Product:
		product := affine{c: 1}
		for _, part := range k {
			f, ok := affineOf(part)
			if !ok || f.a != 0 && product.a != 0 {
				return affine{}, false
			}
			product = affine{product.a*f.c + product.c*f.a, product.c * f.c}
		}
		return product, true
	}
	return affine{}, false
}

// affineElements is what an affineOperator takes on the device beside X, for
// products with so many columns; 0 for other kernels.
func affineElements(k kernels.Kernel, n, d, columns int) int64 {
	f, ok := affineOf(k)
	if !ok {
		return 0
	}
	width := min(columns, blockWidth)
	e := numeric.Elements(d, width)
	if f.c != 0 {
		e = numeric.Total(e, int64(n), int64(width))
	}
	return e
}

// productFlops are those of K·V for a K that is not stored, V n×c.
func (z *sizes) productFlops(c int) float64 {
	f, ok := affineOf(z.kernel)
	if !ok {
		return backend.GramMulFlops(z.n, z.n, z.d, c)
	}
	flops := 2 * backend.GemmFlops(z.n, c, z.d)
	if f.c != 0 {
		flops += 2 * backend.GemmFlops(z.n, c, 1)
	}
	return flops
}

// productCost is the cost of that.
func (z *sizes) productCost(c int, single bool) float64 {
	if _, ok := affineOf(z.kernel); !ok {
		return z.gramMulCost(c, single)
	}
	cost := z.productFlops(c) * z.costs().thin
	if single {
		cost /= z.rates().Single
	}
	return cost
}

// textOf is Operator.text for the kernel.
func (z *sizes) textOf(o Operator) string {
	if _, ok := affineOf(z.kernel); !ok || o.stored() {
		return o.text()
	}
	if o.single() {
		return "products with X and its transpose in float32"
	}
	return "products with X and its transpose"
}

// affineOperator is A = aXXᵀ + c·11ᵀ + λW⁻¹.
type affineOperator[T backend.Float] struct {
	mem   *run.Arena
	b     backend.Backend[T]
	f     affine
	x     backend.Matrix[T] // n×d
	t     backend.Matrix[T] // d×width: Xᵀp
	ones  backend.Matrix[T] // n×1; nil where c is 0
	s     backend.Matrix[T] // 1×width: 1ᵀp
	shift []float64         // of length 1 or n
}

func newAffine[T backend.Float](w *work, b backend.Backend[T], f affine, x backend.Matrix[T]) (operator[T], error) {
	n, d := x.Dims()
	columns := w.s.t
	if w.s.bordered() {
		columns++
	}
	width := min(columns, blockWidth)
	o := &affineOperator[T]{mem: w.Mem, b: b, f: f, x: x, shift: w.s.shift()}
	var err error
	if o.t, err = run.NewMatrix(w.Mem, b, d, width); err != nil {
		return nil, err
	}
	if f.c == 0 {
		return o, nil
	}
	if o.s, err = run.NewMatrix(w.Mem, b, 1, width); err != nil {
		return nil, err
	}
	if o.ones, err = run.NewMatrix(w.Mem, b, n, 1); err != nil {
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

func (o *affineOperator[T]) apply(q, p, spare backend.Matrix[T]) error {
	_, d := o.x.Dims()
	_, c := p.Dims()
	t := o.t.View(0, 0, d, c)
	o.b.Gemm(backend.Transpose, backend.NoTrans, 1, o.x, p, 0, t)
	o.b.Gemm(backend.NoTrans, backend.NoTrans, T(o.f.a), o.x, t, 0, q)
	if o.ones != nil {
		s := o.s.View(0, 0, 1, c)
		o.b.Gemm(backend.Transpose, backend.NoTrans, 1, o.ones, p, 0, s)
		o.b.Gemm(backend.NoTrans, backend.NoTrans, T(o.f.c), o.ones, s, 1, q)
	}
	return addShifted(o.b, q, p, spare, o.shift)
}

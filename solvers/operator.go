package solvers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Operator is how an iterative method keeps K.
type Operator string

const (
	OperatorAuto Operator = ""        // the fastest that fits and is precise enough
	Stored64     Operator = "float64" // stored, in packed storage where the backend has it
	Stored32     Operator = "float32" // the same in float32, inside refinement in float64
	Fixed16      Operator = "fixed16" // stored with 16 bits for an element, products in float32, inside refinement; of a kernel with bounds
	Unstored64   Operator = "never64" // evaluated anew for every product; of a·xᵀz + c, products with X and Xᵀ
	Unstored32   Operator = "never32" // the same in float32, inside refinement in float64
)

var operators = []Operator{Stored64, Stored32, Fixed16, Unstored64, Unstored32}

func (o Operator) check() error {
	for _, known := range operators {
		if o == OperatorAuto || o == known {
			return nil
		}
	}
	names := make([]string, len(operators))
	for i, known := range operators {
		names[i] = fmt.Sprintf("%q", known)
	}
	return fmt.Errorf("solvers: no operator is called %q: there are %s", o, strings.Join(names, ", "))
}

// single reports whether products are in float32.
func (o Operator) single() bool { return o == Stored32 || o == Unstored32 || o == Fixed16 }
func (o Operator) stored() bool { return o == Stored32 || o == Stored64 || o == Fixed16 }

// text is the operator in a sentence.
func (o Operator) text() string {
	switch o {
	case Stored64:
		return "K stored in float64"
	case Stored32:
		return "K stored in float32"
	case Fixed16:
		return "K stored in 16 bits"
	case Unstored64:
		return "K evaluated for every product"
	}
	return "K evaluated in float32 for every product"
}

// contraction is about by what a step of refinement multiplies the residual where the
// inner solver has K with the elements of o and no eigenvalue of K + λW⁻¹ is below lambda:
// ‖E‖/lambda for the rounding E of those elements, whose norm is 2σ√n when it is like noise
// of the standard deviation σ; 0 where it is in float64. What noise does not cover, the
// first step shows.
func (z *sizes) contraction(o Operator, lambda float64) float64 {
	switch {
	case o == Fixed16:
		low, high, _ := kernels.Bounds(z.kernel, z.d)
		return (high - low) / math.MaxUint16 * math.Sqrt(float64(z.n)/3) / lambda
	case o.single():
		largest := z.spectrum().Largest() // of W^½ K W^½
		if z.weighted {
			largest /= slices.Max(z.p.Weights)
		}
		return numeric.EpsilonSingle * min(1, 32/math.Sqrt(float64(z.n))) * largest / lambda
	}
	return 0
}

// leastShift is the minimum of the diagonal λW⁻¹.
func (z *sizes) leastShift() float64 {
	if z.weighted {
		return z.p.Lambda / slices.Max(z.p.Weights)
	}
	return z.p.Lambda
}

// fixedError is why there is no Fixed16, or nil.
func (z *sizes) fixedError() error {
	if _, ok := z.dev.F32().(backend.FixedBackend[float32]); !ok {
		return fmt.Errorf("solvers: operator: the device %s does not store K in 16 bits: use %q", z.dev.Info().Device, Stored32)
	}
	if _, _, ok := kernels.Bounds(z.kernel, z.d); !ok {
		return fmt.Errorf("solvers: operator: the values of the kernel %v have no known bounds, which 16 bits need: use %q", z.kernel, Stored32)
	}
	return nil
}

// An operator is A = K + λW⁻¹ on the device, for products.
type operator[T backend.Float] interface {
	run.Releaser
	// apply queues q ← A p, both n×c; it waits only where it needs the host.
	// spare, n×c, is overwritten.
	apply(q, p, spare backend.Matrix[T]) error
}

// operatorBytes is the peak that newOperator takes on the device: for a stored
// one in float32 X is there in both precisions while K is formed.
func operatorBytes(z *sizes, o Operator, n int) int64 {
	single := numeric.ElementBytes[float32](numeric.Elements(n, z.d))
	affine := affineElements(z.kernel, n, z.d, z.columns)
	switch o {
	case Stored64:
		return numeric.SymmetricBytes(z.dev.F64(), n)
	case Stored32:
		return numeric.Total(single, numeric.SymmetricBytes(z.dev.F32(), n))
	case Fixed16:
		return numeric.Total(single, z.dev.F32().(backend.FixedBackend[float32]).FixedBytes(n))
	case Unstored32:
		return numeric.Total(single, numeric.ElementBytes[float32](affine))
	}
	return numeric.Bytes(affine)
}

// newOperator makes A from X, which is on the device in float64 and stays there.
func newOperator(w *work, o Operator, x backend.Matrix[float64]) (operator[float64], error) {
	return makeOperator(w, w.B, o, x)
}

// newOperator32 is newOperator in float32, from an X of its own, which it frees.
func newOperator32(w *work, o Operator, x backend.Matrix[float32]) (operator[float32], error) {
	a, err := makeOperator(w, w.B32, o, x)
	if err != nil || o.stored() {
		w.Mem.Free(x)
		return a, err
	}
	return &withPoints{a, w.Mem, x}, nil
}

// withPoints frees the points with the operator that was made of them.
type withPoints struct {
	operator[float32]
	mem *run.Arena
	x   backend.Matrix[float32]
}

func (a *withPoints) Free() {
	a.operator.Free()
	a.mem.Free(a.x)
}

func makeOperator[T backend.Float](w *work, b backend.Backend[T], o Operator, x backend.Matrix[T]) (operator[T], error) {
	shift := make([]T, 0, 1)
	for _, v := range w.s.shift() {
		shift = append(shift, T(v))
	}
	if !o.stored() {
		if f, ok := affineOf(w.s.Kernel); ok {
			return newAffine(w, b, f, x)
		}
		return &unstored[T]{b, w.s.Kernel, x, w.s.shift()}, nil
	}
	maker := numeric.NewSymmetric[T]
	if o == Fixed16 {
		maker = numeric.NewFixed[T]
	}
	a, err := maker(w.Mem, b, w.s.n)
	if err != nil {
		return nil, err
	}
	a.Gram(w.s.Kernel, x)
	a.AddDiag(shift)
	if err := b.Sync(); err != nil {
		w.Mem.Free(a)
		return nil, err
	}
	return &storedOperator[T]{a, w.Mem}, nil
}

type storedOperator[T backend.Float] struct {
	a   numeric.Symmetric[T]
	mem *run.Arena
}

func (s *storedOperator[T]) Free() { s.mem.Free(s.a) }

func (s *storedOperator[T]) apply(q, p, _ backend.Matrix[T]) error {
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
	shift  []float64 // of length 1 or n
}

func (u *unstored[T]) Free() {}

func (u *unstored[T]) apply(q, p, spare backend.Matrix[T]) error {
	u.b.GramMul(q, u.kernel, u.x, u.x, p)
	return addShifted(u.b, q, p, spare, u.shift)
}

// addShifted queues q ← q + D p for the diagonal D, of length 1 or n; spare is
// overwritten.
func addShifted[T backend.Float](b backend.Backend[T], q, p, spare backend.Matrix[T], d []float64) error {
	_, c := p.Dims()
	if len(d) == 1 {
		b.ColAxpy(numeric.Repeated(T(d[0]), c), p, q)
		return nil
	}
	if err := numeric.ScaleRows(b, spare, p, d); err != nil {
		return err
	}
	b.ColAxpy(numeric.Repeated[T](1, c), spare, q)
	return nil
}

// placeX32 puts the samples that take part on the device in float32. Where the
// kernel allows, their mean is taken from them first: beside an offset float32
// would keep few digits of the differences.
func (w *work) placeX32() (backend.Matrix[float32], error) {
	s := w.s
	x, err := run.NewMatrix(w.Mem, w.B32, s.n, s.d)
	if err != nil {
		return nil, err
	}
	mean := s.meanX
	if mean == nil && translationInvariant(s.Kernel) {
		mean = s.mean(s.X)
	}
	r := blockRows(s.n, s.d)
	from, to := backend.NewHost[float64](r, s.d), backend.NewHost[float32](r, s.d)
	for i := 0; i < s.n; i += r {
		h, h32 := from.View(0, 0, min(r, s.n-i), s.d), to.View(0, 0, min(r, s.n-i), s.d)
		s.fill(h, s.X, mean, i, false)
		for q := range h.Rows {
			for j, v := range h.Row(q) {
				h32.Row(q)[j] = float32(v)
			}
		}
		if err := w.B32.Upload(x.View(i, 0, h.Rows, s.d), h32); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// translationInvariant reports whether a vector may be added to all samples.
func translationInvariant(k kernels.Kernel) bool {
	for _, s := range kernels.Compile(k).Stats {
		if !s.Kind.TranslationInvariant() {
			return false
		}
	}
	return true
}

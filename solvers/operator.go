package solvers

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/mercer-go/mercer/backend"
	"github.com/mercer-go/mercer/internal/flop"
	"github.com/mercer-go/mercer/internal/krylov"
	"github.com/mercer-go/mercer/internal/numeric"
	"github.com/mercer-go/mercer/internal/run"
	"github.com/mercer-go/mercer/kernels"
)

// Operator specifies how an iterative method stores K.
type Operator string

const (
	OperatorAuto Operator = ""        // the fastest operator that fits in memory and is precise enough
	Stored64     Operator = "float64" // K is stored, in packed storage if the backend has it
	Stored32     Operator = "float32" // like Stored64, but in float32; iterative refinement in float64 restores the precision
	Fixed16      Operator = "fixed16" // K is stored with 16 bits per element; products are in float32 and refined like Stored32; only for a kernel whose values have bounds
	Unstored64   Operator = "never64" // K is evaluated again for every product; for a·xᵀz + c, products use X and Xᵀ
	Unstored32   Operator = "never32" // like Unstored64, but in float32, refined like Stored32
)

var operators = []Operator{Stored64, Stored32, Fixed16, Unstored64, Unstored32}

func (o Operator) check() error {
	for _, operator := range operators {
		if o == OperatorAuto || o == operator {
			return nil
		}
	}
	names := make([]string, len(operators))
	for i, operator := range operators {
		names[i] = fmt.Sprintf("%q", operator)
	}
	return fmt.Errorf("solvers: no operator is called %q; the operators are %s", o, strings.Join(names, ", "))
}

// single reports whether products are in float32.
func (o Operator) single() bool { return o == Stored32 || o == Unstored32 || o == Fixed16 }
func (o Operator) stored() bool { return o == Stored32 || o == Stored64 || o == Fixed16 }

// text describes the operator in a sentence.
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

// contraction is the approximate factor by which a step of refinement with the operator o multiplies the residual
// if the eigenvalues of K + λW⁻¹ are at least lambda: ‖E‖/lambda for the matrix E of the rounding errors of K. For
// independent errors with standard deviation σ, ‖E‖ = 2σ√n. For elements in float64 the result is 0.
func (z *sizes) contraction(o Operator, lambda float64) float64 {
	switch {
	case o == Fixed16:
		low, high, _ := kernels.Bounds(z.kernel, z.d)
		return (high - low) / math.MaxUint16 * math.Sqrt(float64(z.n)/3) / lambda
	case o.single():
		largest := z.spectrum().Largest() // largest eigenvalue of W^½ K W^½
		if z.weighted {
			largest /= slices.Max(z.p.Weights)
		}
		return numeric.EpsilonSingle * min(1, 32/math.Sqrt(float64(z.n))) * largest / lambda
	}
	return 0
}

// productFlops is the number of operations of K·V for an unstored K and V of size n×c.
func (z *sizes) productFlops(c int) float64 {
	f, ok := krylov.AffineOf(z.kernel)
	if !ok {
		return flop.GramMul(z.n, z.n, z.width, c)
	}
	flops := 2 * flop.Gemm(z.n, c, z.width)
	if f.C != 0 {
		flops += 2 * flop.Gemm(z.n, c, 1)
	}
	return flops
}

// productCost is the cost of K·V for an unstored K and V of size n×c.
func (z *sizes) productCost(c int, single bool) float64 {
	if _, ok := krylov.AffineOf(z.kernel); !ok {
		return z.gramMulCost(c, single)
	}
	cost := z.productFlops(c) * z.costs().thin
	if single {
		cost /= z.rates().Single
	}
	return cost
}

// textOf is Operator.text for the problem's kernel.
func (z *sizes) textOf(o Operator) string {
	if _, ok := krylov.AffineOf(z.kernel); !ok || o.stored() {
		return o.text()
	}
	if o.single() {
		return "products with X and its transpose in float32"
	}
	return "products with X and its transpose"
}

// leastShift is the smallest element of the diagonal matrix λW⁻¹.
func (z *sizes) leastShift() float64 {
	if z.weighted {
		return z.p.Lambda / slices.Max(z.p.Weights)
	}
	return z.p.Lambda
}

// fixedError returns nil, or an error with the reason why Fixed16 is not possible.
func (z *sizes) fixedError() error {
	if _, ok := z.dev.F32().(backend.FixedBackend[float32]); !ok {
		return fmt.Errorf("solvers: operator: the device %s does not store K in 16 bits: use %q", z.dev.Info().Device, Stored32)
	}
	if _, _, ok := kernels.Bounds(z.kernel, z.d); !ok {
		return fmt.Errorf("solvers: operator: storage in 16 bits needs bounds of the kernel's values, and %v has none: use %q", z.kernel, Stored32)
	}
	return nil
}

// operatorBytes is the peak memory of an operator on the device, with the copy of X in float32 if it needs one.
func operatorBytes(z *sizes, o Operator, n int) int64 {
	single := copied(z, z.dev.F32(), n)
	affine := krylov.AffineElements(z.kernel, n, z.d, z.columns)
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

// operatorOf returns the operator A = K + λW⁻¹ for the samples x, which stay on the device.
func operatorOf[T backend.Float](w *work, b backend.Backend[T], o Operator, x backend.Matrix[T]) (a krylov.Operator[T], err error) {
	par := krylov.OperatorParams{Kernel: w.s.Kernel, Shift: w.s.shift(), Columns: w.s.columns(), Stored: o.stored(), Fixed: o == Fixed16}
	if !o.stored() {
		return krylov.NewOperator(w.Mem, b, x, par)
	}
	err = w.Timed("gram", &w.res.Seconds.Gram, func() (err error) {
		a, err = krylov.NewOperator(w.Mem, b, x, par)
		return err
	})
	return a, err
}

// placeX32 copies the samples of weight > 0 to the device in float32. For a translation-invariant kernel, it
// subtracts the mean of dense samples, because a large offset would leave few correct digits.
func (w *work) placeX32() (backend.Matrix[float32], error) {
	s := w.s
	if s.Sparse != nil {
		x, err := backend.PlaceSparse(w.B32, s.positivePoints().Sparse.Float32())
		if err == nil {
			w.Mem.Keep(x)
		}
		return x, err
	}
	x, err := run.NewMatrix(w.Mem, w.B32, s.n, s.d)
	if err != nil {
		return nil, err
	}
	mean := s.meanX
	if mean == nil && translationInvariant(s.Kernel) {
		mean = s.mean(s.X)
	}
	r := blockRows(s.n, s.d)
	double, single := backend.NewHost[float64](r, s.d), backend.NewHost[float32](r, s.d)
	for i := 0; i < s.n; i += r {
		h, h32 := double.View(0, 0, min(r, s.n-i), s.d), single.View(0, 0, min(r, s.n-i), s.d)
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

// translationInvariant reports whether adding a vector to all samples leaves the kernel values unchanged.
func translationInvariant(k kernels.Kernel) bool {
	for _, s := range kernels.Compile(k).Stats {
		if !s.Kind.TranslationInvariant() {
			return false
		}
	}
	return true
}

package driver

import (
	"runtime"
	"unsafe"
)

// Blas holds cuBLAS and a handle. All calls are queued in the stream that SetStream selects.
// Matrices are in column-major order.
type Blas struct {
	Call   func(s *Symbol, args ...uintptr) int32
	Path   string
	Failed Failed // decides whether to repeat a failed call; nil means never

	symbols []Symbol
	handle  uintptr
	scalars *[2]uint64 // memory for α and β, on the heap
}

// newBlas binds the library and, if create is set, creates a handle.
func (l loader) newBlas(library uintptr, path string, create bool) (*Blas, error) {
	symbols, err := l.bind(library, path, blasTable)
	if err != nil {
		return nil, err
	}
	b := &Blas{Call: l.caller(), Path: path, symbols: symbols, scalars: cell()}
	if !create {
		return b, nil
	}
	out := cell()
	if err := b.invoke(cublasCreate, address(&out[0])); err != nil {
		return nil, err
	}
	b.handle = uintptr(out[0])
	return b, nil
}

func (b *Blas) invoke(op int, args ...uintptr) error {
	s := &b.symbols[op]
	return call(func() int32 { return b.Call(s, args...) }, s.Name, blasNames, b.Failed)
}

func (b *Blas) Close() error { return b.invoke(cublasDestroy, b.handle) }

// Version returns the version, for example 110503 for 11.5.3.
func (b *Blas) Version() (int, error) {
	out := cell()
	err := b.invoke(cublasGetVersion, b.handle, address(&out[0]))
	return int(int32(out[0])), err
}

func (b *Blas) SetStream(s Stream) error { return b.invoke(cublasSetStream, b.handle, uintptr(s)) }

// SetTF32 sets whether float32 products may round their factors to TF32, which has 10 fraction bits.
func (b *Blas) SetTF32(enabled bool) error {
	const standard, tf32 = 0, 3
	mode := uintptr(standard)
	if enabled {
		mode = tf32
	}
	return b.invoke(cublasSetMathMode, b.handle, mode)
}

// Deterministic makes cuBLAS work without atomic additions, whose order varies.
func (b *Blas) Deterministic() error {
	const notAllowed = 0
	return b.invoke(cublasSetAtomicsMode, b.handle, notAllowed)
}

// These types are options of cuBLAS functions.
type (
	Op   uintptr
	Fill uintptr
	Side uintptr
)

const (
	N     Op   = 0
	T     Op   = 1
	Lower Fill = 0
	Upper Fill = 1
	Left  Side = 0
	Right Side = 1

	nonUnit = 0
)

// Float is the element type.
type Float interface{ float32 | float64 }

// pick returns the index of the function for the precision of E.
func pick[E Float](single, double int) int {
	if unsafe.Sizeof(E(0)) == 4 {
		return single
	}
	return double
}

// scalar stores α or β in memory that cuBLAS reads before the call returns.
func scalar[E Float](b *Blas, i int, v E) uintptr {
	*(*E)(unsafe.Pointer(&b.scalars[i])) = v
	return address(&b.scalars[i])
}

func size(n int) uintptr { return uintptr(uint32(int32(n))) }

// Gemm computes C ← α op(A) op(B) + β C for an m × n matrix C.
func Gemm[E Float](b *Blas, tA, tB Op, m, n, k int, alpha E, A DevicePtr, lda int, B DevicePtr, ldb int, beta E, C DevicePtr, ldc int) error {
	err := b.invoke(pick[E](cublasSgemm, cublasDgemm), b.handle, uintptr(tA), uintptr(tB), size(m), size(n), size(k),
		scalar(b, 0, alpha), uintptr(A), size(lda), uintptr(B), size(ldb), scalar(b, 1, beta), uintptr(C), size(ldc))
	runtime.KeepAlive(b)
	return err
}

// GemmHalf is Gemm for A and B in FP16 and C in float32; it sums in float32.
func GemmHalf(b *Blas, tA, tB Op, m, n, k int, alpha float32, A DevicePtr, lda int, B DevicePtr, ldb int, beta float32, C DevicePtr, ldc int) error {
	const half, single, inSingle = 2, 0, 68 // half, single: cudaDataType; inSingle: cublasComputeType_t
	byDefault := size(-1)
	err := b.invoke(cublasGemmEx, b.handle, uintptr(tA), uintptr(tB), size(m), size(n), size(k),
		scalar(b, 0, alpha), uintptr(A), half, size(lda), uintptr(B), half, size(ldb), scalar(b, 1, beta), uintptr(C), single, size(ldc), inSingle, byDefault)
	runtime.KeepAlive(b)
	return err
}

// Gemv computes y ← α op(A) x + β y for an m × n matrix A; consecutive elements of x and y are incx and incy apart.
func Gemv[E Float](b *Blas, t Op, m, n int, alpha E, A DevicePtr, lda int, x DevicePtr, incx int, beta E, y DevicePtr, incy int) error {
	err := b.invoke(pick[E](cublasSgemv, cublasDgemv), b.handle, uintptr(t), size(m), size(n),
		scalar(b, 0, alpha), uintptr(A), size(lda), uintptr(x), size(incx), scalar(b, 1, beta), uintptr(y), size(incy))
	runtime.KeepAlive(b)
	return err
}

// Syrk computes C ← α op(A) op(A)ᵀ + β C on a triangle of the n × n matrix C.
func Syrk[E Float](b *Blas, fill Fill, t Op, n, k int, alpha E, A DevicePtr, lda int, beta E, C DevicePtr, ldc int) error {
	err := b.invoke(pick[E](cublasSsyrk, cublasDsyrk), b.handle, uintptr(fill), uintptr(t), size(n), size(k),
		scalar(b, 0, alpha), uintptr(A), size(lda), scalar(b, 1, beta), uintptr(C), size(ldc))
	runtime.KeepAlive(b)
	return err
}

// Symm computes C ← α A B + β C or α B A + β C for a symmetric A and an m × n matrix C.
func Symm[E Float](b *Blas, side Side, fill Fill, m, n int, alpha E, A DevicePtr, lda int, B DevicePtr, ldb int, beta E, C DevicePtr, ldc int) error {
	err := b.invoke(pick[E](cublasSsymm, cublasDsymm), b.handle, uintptr(side), uintptr(fill), size(m), size(n),
		scalar(b, 0, alpha), uintptr(A), size(lda), uintptr(B), size(ldb), scalar(b, 1, beta), uintptr(C), size(ldc))
	runtime.KeepAlive(b)
	return err
}

// Trsv computes x ← op(A)⁻¹ x for an n × n triangle A; consecutive elements of x are incx apart.
func Trsv[E Float](b *Blas, fill Fill, t Op, n int, A DevicePtr, lda int, x DevicePtr, incx int) error {
	return b.invoke(pick[E](cublasStrsv, cublasDtrsv), b.handle, uintptr(fill), uintptr(t), nonUnit, size(n), uintptr(A), size(lda), uintptr(x), size(incx))
}

// Trsm computes B ← α op(A)⁻¹ B or α B op(A)⁻¹ for a triangle A and an m × n matrix B.
func Trsm[E Float](b *Blas, side Side, fill Fill, t Op, m, n int, alpha E, A DevicePtr, lda int, B DevicePtr, ldb int) error {
	err := b.invoke(pick[E](cublasStrsm, cublasDtrsm), b.handle, uintptr(side), uintptr(fill), uintptr(t), nonUnit, size(m), size(n),
		scalar(b, 0, alpha), uintptr(A), size(lda), uintptr(B), size(ldb))
	runtime.KeepAlive(b)
	return err
}
